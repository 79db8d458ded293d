"""Records are appended, and found again by a key, whatever ended the process that wrote them."""

import os

import pytest

from tacit import record
from tacit.errors import RecordError
from tacit.record import RecordFile

ONE, TWO, THREE = (
    record.sealed({"name": f"objt-seed{seed}", "test_error": 0.1, "spec": f"[run]\nseed = {seed}\n"})
    for seed in range(3)
)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "new" / "records.jsonl"
    RecordFile(path).add([ONE, TWO])
    return path


def test_records_are_appended_in_order_and_found_by_the_hash_of_their_specs(path):
    assert path.read_text() == record.lines([ONE, TWO])
    held = RecordFile(path)
    assert list(held) == [ONE, TWO]
    assert TWO["spec_hash"] in held
    assert held[TWO["spec_hash"]] == TWO
    assert THREE["spec_hash"] not in held


def test_a_run_that_is_there_keeps_its_record(path):
    RecordFile(path).add([record.sealed(ONE | {"test_error": 0.2}), THREE, THREE])
    assert record.read(path) == [ONE, TWO, THREE]


@pytest.mark.parametrize("left", [1, 20])
def test_a_line_that_was_cut_is_dropped_and_the_next_one_stands_in_its_place(path, left):
    path.write_text(record.lines([ONE, TWO])[: -left - 1])
    held = RecordFile(path)
    assert list(held) == [ONE]
    held.add([THREE])
    assert path.read_text() == record.lines([ONE, THREE])


def test_a_line_that_is_cut_between_two_records_is_dropped_too(path):
    held = RecordFile(path)
    with path.open("a") as file:
        file.write('{"name": "objt-se')  # by another process, which was killed
    held.add([THREE])
    assert record.read(path) == [ONE, TWO, THREE]


def test_a_last_record_without_the_end_of_its_line_is_a_record(path):
    path.write_text(record.lines([ONE, TWO])[:-1])
    held = RecordFile(path)
    assert list(held) == [ONE, TWO]
    held.add([THREE])
    assert path.read_text() == record.lines([ONE, TWO, THREE])


def test_an_edited_record_is_refused_and_two_of_one_run_are_too(path):
    path.write_text(record.lines([ONE | {"test_error": 0.0}]))
    with pytest.raises(RecordError, match="objt-seed0 was changed"):
        RecordFile(path)
    path.write_text(record.lines([ONE, record.sealed(ONE | {"test_error": 0.2})]))
    with pytest.raises(RecordError, match="two records of objt-seed0"):
        RecordFile(path)


@pytest.mark.skipif(os.getuid() == 0, reason="root may write anywhere")
def test_a_file_that_cannot_be_written_is_said(path):
    path.chmod(0o400)
    with pytest.raises(RecordError, match=r"cannot write .* Name another place"):
        RecordFile(path).add([THREE])
