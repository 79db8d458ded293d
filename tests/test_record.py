"""A record is of the spec it names, and whole."""

import json

import pytest

from tacit import record
from tacit.errors import RecordError

SPEC = "[run]\nseed = 0\n"
ONE = {"name": "objt-seed0", "test_error": 0.1, "epsilon": float("inf"), "curve": {"t": [1, 2]}, "spec": SPEC}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "records.jsonl"
    path.write_text(record.lines([record.sealed(ONE)]))
    return path


def test_what_was_sealed_is_read_back(path):
    (back,) = record.read(path)
    assert back["test_error"] == 0.1
    assert back["epsilon"] is None  # JSON has no infinity
    assert record.sealed(back) == back


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"test_error": 0.05}, "objt-seed0 was changed"),
        ({"curve": {"t": [1, 3]}}, "objt-seed0 was changed"),
        ({"spec": "[run]\nseed = 1\n"}, "not the record of the spec"),
        ({"spec": None}, "without a spec"),
        ({"seal": "0"}, "Run objt-seed0 again"),
    ],
)
def test_an_edited_record_is_refused_and_named(path, change, says):
    path.write_text(json.dumps(json.loads(path.read_text()) | change) + "\n")
    with pytest.raises(RecordError, match=says):
        record.read(path)


def test_half_a_line_and_no_file_are_refused(path):
    path.write_text(path.read_text()[:-20])
    with pytest.raises(RecordError, match="line 1: not a whole record"):
        record.read(path)
    with pytest.raises(RecordError, match="Check the path"):
        record.read(path.with_name("none.jsonl"))


@pytest.mark.parametrize("value", ["NaN", "-Infinity", "1e999", r'"\ud800"'])
@pytest.mark.parametrize("key", ["test_error", "spec", "name"])
def test_what_is_no_number_or_no_text_is_refused(path, key, value):
    held = json.dumps(json.loads(path.read_text())[key])
    path.write_text(path.read_text().replace(f'"{key}": {held}', f'"{key}": {value}'))
    assert value in path.read_text()
    with pytest.raises(RecordError, match="line 1: not a whole record"):
        record.read(path)


def test_a_curve_ends_with_a_value_to_six_digits():
    assert record.ends([0.5, 0.123457], 0.1234567)
    assert not record.ends([0.5, 0.123457], 0.12350)
    assert record.ends([0.5, None], None)
    assert not record.ends([0.5, None], 0.1)
    assert not record.ends([0.5], None)
