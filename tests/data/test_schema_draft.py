"""Drafts of schemas: they fit their file, say what they read from it, and are refused until that is replaced."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.data.column_kinds import CategoricalColumn, NumericColumn
from tacit.data.feature_table import count
from tacit.data.formats import read_raw
from tacit.data.schema import parse
from tacit.data.schema_draft import draft_schema
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
        "blood group": ["0", "AB"] * 30,
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
