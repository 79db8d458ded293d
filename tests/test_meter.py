"""The meter counts what it says it counts, on trees small enough to count by hand."""

from pathlib import Path

from tests.meter import source
from tests.meter.__main__ import TRAIN, Measured, files_entered, report, table

SRC = Path(__file__).parent.parent / "src"

CODE = '''"""A docstring
of two lines."""

# a comment
WORDS = """a string
that is code"""  # with a comment behind it


def one():
    """Return one."""
    return max(
        1,

        0,
    )
'''


def tree(at: Path, files: dict[str, str]) -> Path:
    """Write the modules of a package, by path below it, and return the directory that holds the package."""
    for path, text in {"__init__.py": "", **files}.items():
        (at / "small" / path).parent.mkdir(parents=True, exist_ok=True)
        (at / "small" / path).write_text(text)
    return at


def test_docstrings_comments_and_blank_lines_are_no_code_lines() -> None:
    assert source.code_lines(CODE) == 2 + 1 + 4
    assert source.code_lines('"""A docstring alone."""\n') == 0
    assert source.code_lines("class A:\n    'The docstring.'\n    'not the docstring'\n") == 2


def test_the_total_lines_of_a_module_include_docstrings_and_blank_lines(tmp_path: Path) -> None:
    src = tree(tmp_path, {"code.py": CODE, "short.py": "\n"})
    assert source.total_lines(src) == [("small/code.py", 15), ("small/short.py", 1), ("small/__init__.py", 0)]


def test_a_package_counts_the_modules_that_lie_directly_in_it(tmp_path: Path) -> None:
    src = tree(tmp_path, {"a.py": "", "b.py": "", "sub/__init__.py": "", "sub/c.py": ""})
    assert [*source.modules(src)] == ["small", "small.a", "small.b", "small.sub", "small.sub.c"]
    assert source.modules_per_package(src) == {"small": 2, "small.sub": 1}


def test_a_cycle_through_an_import_inside_a_function_is_found(tmp_path: Path) -> None:
    late = "def f():\n    from small import c\n"
    src = tree(tmp_path, {"a.py": "import small.b", "b.py": late, "c.py": "from small.a import x", "d.py": late})
    assert source.import_cycles(src) == [["small.a", "small.b", "small.c"]]


def test_two_cycles_that_do_not_reach_each_other_both_ways_are_two(tmp_path: Path) -> None:
    src = tree(tmp_path, {
        "a.py": "from small import b, c", "b.py": "from small import a",
        "c.py": "from .d import x", "d.py": "from . import c",
    })  # fmt: skip
    assert source.import_cycles(src) == [["small.a", "small.b"], ["small.c", "small.d"]]


def test_a_module_that_imports_a_sibling_from_its_package_imports_the_package(tmp_path: Path) -> None:
    src = tree(tmp_path, {"sub/__init__.py": "from small.sub.a import x", "sub/a.py": "from small.sub import b",
                          "sub/b.py": ""})  # fmt: skip
    assert source.import_cycles(src) == [["small.sub", "small.sub.a"]]
    (src / "small/sub/a.py").write_text("from small.sub.b import y")
    assert source.import_cycles(src) == []


def test_imports_for_types_make_a_cycle_only_if_they_are_asked_for(tmp_path: Path) -> None:
    typed = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from small import a\nelse:\n    import small.c\n"
    src = tree(tmp_path, {"a.py": "from small import b", "b.py": typed, "c.py": ""})
    assert source.import_cycles(src) == []
    assert source.import_cycles(src, type_checking=True) == [["small.a", "small.b"]]
    assert source.imports(src)["small.b"] == {"small.c"}


def test_a_class_name_defined_twice_is_listed_with_its_modules(tmp_path: Path) -> None:
    src = tree(tmp_path, {"a.py": "class One: ...\nclass Two: ...", "b.py": "def f():\n    class Two: ...\n"})
    assert source.classes_defined_twice(src) == {"Two": ["small.a", "small.b"]}


def test_files_entered_are_modules_in_which_a_function_runs_in_the_second_run(tmp_path: Path) -> None:
    src = tree(tmp_path, {
        "once.py": "def once():\n    pass\n", "unused.py": "def unused():\n    pass\n",
        "always.py": "def always():\n    pass\n",
    })  # fmt: skip
    (src / "small").rename(src / "tacit")
    (src / "tacit" / "cli.py").write_text(
        "import threading\nfrom tacit import always, once, unused\nruns = []\n\n"
        "def main(words):\n    print(words)\n    if not runs:\n        once.once()\n    runs.append(words)\n"
        "    thread = threading.Thread(target=always.always)\n    thread.start()\n    thread.join()\n"
    )
    assert files_entered(src, TRAIN) == ["always.py", "cli.py"]


def test_the_table_has_a_column_per_tree_and_a_dash_for_what_a_tree_does_not_have() -> None:
    shown = table({"abc1234": {"modules": 1000}, "now": {"modules": 20, "classes": 3}}).splitlines()
    assert [line.split() for line in shown] == [["abc1234", "now"], ["modules", "1,000", "20"], ["classes", "-", "3"]]
    assert len({len(line) for line in shown}) == 1


def test_the_report_lists_cycles_and_repeated_names_of_the_last_tree() -> None:
    before = Measured({"small.a": 30}, [("small/a.py", 301)], {"small": 1}, ["a.py"], ["a.py"], [], [], {})
    cycle = ["small.a", "small.b"]
    now = Measured(
        {"small.a": 29, "small.b": 1, "small": 0}, [("small/a.py", 299)], {"small": 2}, ["a.py"], [], [cycle], [cycle],
        {"One": ["small.a", "small.b"]},
    )  # fmt: skip
    shown = [line.split() for line in report({"abc1234": before, "now": now}).splitlines()]
    assert ["code", "lines", "30", "30"] in shown
    assert ["modules", "1", "3"] in shown
    assert ["modules", "without", "__init__", "1", "2"] in shown
    assert ["modules", "under", "30", "code", "lines", "0", "3"] in shown
    assert ["modules", "over", "300", "lines", "1", "0"] in shown
    assert ["import", "cycles", "0", "1"] in shown
    assert cycle in shown
    assert ["One:", "small.a,", "small.b"] in shown


def test_no_module_of_the_package_imports_itself_through_others() -> None:
    assert source.import_cycles(SRC) == []
