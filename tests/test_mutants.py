"""The list of faults follows the code: `make mutants` runs rarely, and this test runs always."""

from tests.mutants import MUTANTS, ROOT


def test_the_text_of_every_fault_stands_in_its_file_once():
    texts = {file: (ROOT / "src" / "tacit" / file).read_text() for file in {m.file for m in MUTANTS}}
    assert [(m.name, m.file) for m in MUTANTS if texts[m.file].count(m.old) != 1] == []


def test_every_fault_has_a_name_of_its_own_and_a_test_that_is_there():
    assert len({m.name for m in MUTANTS}) == len(MUTANTS)
    for mutant in MUTANTS:
        file, *names = mutant.test.partition("[")[0].split("::")
        text = (ROOT / file).read_text()
        assert all(f"def {name}(" in text or f"class {name}" in text for name in names), mutant.test
