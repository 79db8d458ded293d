"""Drafts of schemas: they fit their file, say what they read from it, and are refused until that is replaced."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.data.column_kinds import CategoricalColumn, IgnoredColumn, NumericColumn
from tacit.data.encoded_table import count
from tacit.data.file_layout import FileLayout
from tacit.data.formats import read_raw
from tacit.data.schema import parse
from tacit.data.schema_draft import Draft, draft_schema
from tacit.errors import DataError, InputError, SpecError
from tests.data.test_schema import RECORDS, TEXT, raw, without, write_csv

INFINITE = re.compile(r"[+-]?(inf|infinity|1e999)", re.IGNORECASE)


@given(
    st.dictionaries(
        st.text(min_size=1, max_size=6).filter(lambda name: name not in ("label", "agent")),
        st.lists(TEXT.filter(lambda cell: not re.fullmatch(r"9+", cell)), min_size=4, max_size=4),
        min_size=1,
        max_size=4,
    )
)
def test_a_draft_is_a_schema_of_its_own_file_and_is_refused_for_training(columns: dict[str, list[str]]) -> None:
    found = raw(columns | {"u": ["1", "2", "3", "4"], "label": ["é\x7f😀", '"', "\\", "\n#"]})
    draft = draft_schema([found], "a\nb.csv", "label")
    text, looked = draft.text, draft.looked
    schema = parse(text)
    assert schema.drafted == tuple(looked)
    assert {"u", "label"} <= set(looked)
    with pytest.raises(SpecError, match="read from the data"):
        schema.check_public()
    counts = count([found], schema)
    for name, tally in counts.columns.items():
        infinite = sum(bool(INFINITE.fullmatch(cell.strip())) for cell in columns.get(name, []))
        assert tally.unknown == tally.unreadable == 0
        assert tally.clipped <= infinite
    for key in ("lo", "hi", "values", "classes"):  # every number and list says where it is from
        lines = re.findall(rf"^{key} = .*$", text, re.MULTILINE)
        assert all("# READ FROM THE DATA" in line for line in lines)


def test_a_draft_guesses_kinds_and_takes_many_texts_for_names(tmp_path: Path) -> None:
    columns = {
        "site": ["a", "b"] * 30,
        "age": ["?", "20"] + ["31.5"] * 58,
        "blood group": ["0", "0", "AB", "AB"] * 15,
        "id": [f"p{n}" for n in range(60)],
        "constant": ["7"] * 60,
        "empty": [""] * 60,
        "outcome": ["ill", "well"] * 30,
    }
    path = write_csv(tmp_path / "t.csv", columns)
    draft = draft_schema(list(read_raw(path)), "t.csv", "outcome", "site")
    schema, looked = parse(draft.text), draft.looked
    assert (schema.label, schema.agent) == ("outcome", "site")
    assert schema.encoded == {
        "age": NumericColumn(20, 31.5),
        "blood group": CategoricalColumn(("0", "AB")),
        "constant": NumericColumn(7, 14),
    }
    assert looked == ["age", "blood group", "constant", "outcome"]
    unique = "an identifier? nearly every record has a text of its own"
    assert draft.ignored == {"id": unique, "empty": "every cell is missing"}
    assert draft.notes == []


N = 1000


def drafted(**columns: list[str]) -> Draft:
    """The draft of these columns beside one that is never left out, and a label."""
    n = len(next(iter(columns.values())))
    sure = {"x": [str(i % 7) for i in range(n)], "label": ["ill", "well"] * (n // 2)}
    return draft_schema([raw(columns | sure)], "t.csv")


def test_a_numeric_column_with_a_few_unreadable_cells_is_kept_and_they_are_named() -> None:
    cells = [str(i % 90) for i in range(N)]
    cells[10:13] = ["unknown", "ca. 40", "unknown"]
    draft = drafted(age=cells)
    assert parse(draft.text).columns["age"] == NumericColumn(0, 89)
    assert draft.notes == ["'age': no number in 3 of 1000 cells (0.3 %), such as 'unknown', 'ca. 40': read as missing"]
    assert "unknown" not in draft.text  # what a record holds is for the terminal of its owner
    assert draft.ignored == {}


def test_a_column_of_few_codes_beside_a_text_stays_a_list() -> None:
    draft = drafted(children=(["0", "1", "2"] * N)[: N - 10] + ["3+"] * 10)
    assert parse(draft.text).columns["children"] == CategoricalColumn(("0", "1", "2", "3+"))


@pytest.mark.parametrize(
    ("name", "cells", "why"),
    [
        ("id", [str(7 * i + 1000) for i in range(N)], "called a number or key"),
        ("patient_no", [str(7 * i % 7919) for i in range(N)], "called a number or key"),
        ("patientId", [str(7 * i % 7919) for i in range(N)], "called a number or key"),
        ("SSN", [f"{i * i + 10**8}" for i in range(N)], "called a number or key"),
        ("anything", [str(N - i) for i in range(N)], "they count the records"),
        ("surname", [f"name{i}" for i in range(N)], "a text of its own"),
    ],
)
def test_an_identifier_is_not_proposed(name: str, cells: list[str], why: str) -> None:
    draft = drafted(**{name: cells})
    assert why in draft.ignored[name]
    assert isinstance(parse(draft.text).columns[name], IgnoredColumn)
    assert name not in draft.looked


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("income", [str(37 * i * i) for i in range(N)]),  # each once, and a quantity
        ("paid", [str(7 * i % 7919) for i in range(N)]),  # the name ends in id
        ("score", [str(i / 8) for i in range(N)]),
        ("id", [str(i % 40) for i in range(N)]),  # few: codes of something
        ("age", [str(20 + i) for i in range(18)]),  # too few records to tell
    ],
)
def test_a_quantity_is_no_identifier(name: str, cells: list[str]) -> None:
    assert drafted(**{name: cells}).ignored == {}


DAYS = [f"2024-{i % 12 + 1:02}-{i % 28 + 1:02}" for i in range(N)]
PROSE = [f"the patient was seen at {i} and sent home" for i in range(N)]


@pytest.mark.parametrize(
    ("cells", "known"),
    [
        (DAYS, ['kind = "date"', 'lo = "2024-01-01"', 'hi = "2024-12-28"', "read_from_data = true"]),
        ([f"{day}T12:30:00Z" for day in DAYS], ['lo = "2024-01-01T00:00"', 'hi = "2024-12-28T23:59"']),
        (PROSE, ['kind = "text"']),
    ],
)
def test_dates_and_prose_are_known_and_drafted(cells: list[str], known: list[str]) -> None:
    draft = drafted(c=cells)
    assert draft.ignored == {}
    for line in known:
        assert line in draft.text


@pytest.mark.parametrize(
    ("cells", "lines"),
    [
        ([f"{i % 28 + 1}.{i % 12 + 1}.2024" for i in range(N)], ['format = "%d.%m.%Y"', 'lo = "2024-01-01"']),
        ([f"{i % 12 + 1}/{i % 28 + 1}/2024" for i in range(N)], ['format = "%m/%d/%Y"', 'hi = "2024-12-28"']),
        ([f"{i % 12 + 1}/{i % 12 + 1}/2024" for i in range(N)], ["dates, and it is not sure what is the day"]),
        (["2024-02-30", "2024-02-29"] * 50 + DAYS, ['lo = "2024-01-01"']),  # a day that there is not
        (["2024-02-29"] * N, ['lo = "2024-02-29"', 'hi = "2024-02-29T23:59"']),
        ([f"{day} 08:15" for day in DAYS], ['lo = "2024-01-01T00:00"', 'hi = "2024-12-28T23:59"']),
    ],
)
def test_the_form_of_dates_is_drafted_where_it_is_sure(cells: list[str], lines: list[str]) -> None:
    text = drafted(c=cells).text
    for line in lines:
        assert line in text


def test_columns_of_many_texts_are_left_out_by_name() -> None:
    towns = [f"town {i % 70}" for i in range(N)]
    assert drafted(c=towns).ignored == {"c": "many different texts: a name, a place, a code? (70 of them)"}
    assert "70" not in drafted(c=towns).text


def test_a_label_that_is_a_quantity_is_said_to_be_one() -> None:
    table = raw({"u": ["1", "2"] * 30, "label": [str(i / 2) for i in range(60)]})
    draft = draft_schema([table], "t.csv")
    assert "it looks like the target of a regression" in draft.notes[0]
    assert re.search(r'kind = "target"\nlo = 0 .*\nhi = 29.5 .*\nread_from_data = true', draft.text)
    real = draft_schema([raw({"u": ["1", "2"] * 30, "label": ["0.5", "1.5"] * 30})], "t.csv")
    assert 'kind = "target"' in real.text
    few = draft_schema([raw({"u": ["1", "2"] * 30, "label": ["1", "2", "3"] * 20})], "t.csv")
    assert few.notes == []


@pytest.mark.parametrize("layout", [FileLayout(), FileLayout("\t", "'", ",", newlines=True), FileLayout("|", "")])
def test_the_layout_is_written_and_read_back(layout: FileLayout) -> None:
    assert parse(draft_schema([raw()], "t.csv", "outcome", layout=layout).text).file == layout
    assert parse(draft_schema([raw()], "t.npz", "outcome").text).file == FileLayout()


@pytest.mark.parametrize(
    ("label", "agent", "says"),
    [
        ("outcom", None, "no column 'outcom': did you mean 'outcome'"),
        ("outcome", "hospitl", "no column 'hospitl': did you mean 'hospital'"),
        ("outcome", "outcome", "name two columns"),
        ("one", None, "holds 1 classes"),
    ],
)
def test_a_draft_needs_its_label_and_agent_columns(label: str, agent: str | None, says: str) -> None:
    with pytest.raises(InputError, match=says):
        draft_schema([raw(RECORDS | {"one": ["1"] * 6})], "t.csv", label, agent)


def test_a_draft_of_files_that_differ_is_refused() -> None:
    with pytest.raises(DataError, match="'age' is a column of only one"):
        draft_schema([raw(), raw(without("age"))], "t", "outcome")
