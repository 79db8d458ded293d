"""A receipt proves to a site that one of its ledgers had come so far; nobody else can make one."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import LedgerCorrupt
from tacit.privacy.ledger import Ledger
from tacit.privacy.release import GaussianRelease
from tacit.privacy.terms import ZERO_OUT, Key, Terms
from tacit.privacy.witness import KEY_BYTES, Position, ReceiptKey, Witness
from tacit.run.deployment import price

KEY = ReceiptKey(bytes(range(KEY_BYTES)))
POSITION = Position("north", "1" * 64, 7, "2" * 64)
RELEASE = GaussianRelease(2.0)


def terms(run: str) -> Terms:
    return Terms(run, "spec", 9, RELEASE, ZERO_OUT, 0.1, 1e-6, 1.0)


def ledger(folder, name="a.ledger"):
    """A ledger with a witness, beside which a copy can be put."""
    path, witness = folder / name, Witness(folder / "a.witness", "north")
    if witness.path.exists():
        return Ledger.open(path, price, create=False, witness=witness)
    made = Ledger.open(path, price)
    made.attest(witness)
    return made


def answer(one: Ledger, t: int, run: str = "r") -> Position:
    """Answer one round, and return the position after it."""
    one.join("data", terms(run))
    one.release(Key("data", run, t, 0), f"question {t}", RELEASE, lambda: [float(t)])
    return one.position_after("north", Key("data", run, t, 0))


def test_a_key_recognises_its_own_receipts():
    assert KEY.made(KEY.receipt(POSITION))
    assert KEY.receipt(POSITION).position == POSITION


@pytest.mark.parametrize(
    "change", [{"agent": "south"}, {"first": "3" * 64}, {"entries": 8}, {"head": "4" * 64}, {"tag": "0" * 64}]
)
def test_a_receipt_of_which_a_field_was_changed_is_not_recognised(change):
    assert not KEY.made(replace(KEY.receipt(POSITION), **change))


@given(st.binary(min_size=KEY_BYTES, max_size=KEY_BYTES), st.text("0123456789abcdef", min_size=64, max_size=64))
def test_neither_another_key_nor_an_invented_tag_makes_a_receipt(secret, tag):
    assert ReceiptKey(secret).made(KEY.receipt(POSITION)) == (secret == bytes(range(KEY_BYTES)))
    assert not KEY.made(replace(KEY.receipt(POSITION), tag=tag))


def test_a_ledger_is_not_contradicted_by_any_position_that_it_had(tmp_path):
    with ledger(tmp_path) as one:
        had = [answer(one, t) for t in (1, 2, 3)]
        for position in had:
            one.confront(position)
        assert [position.entries for position in had] == sorted({position.entries for position in had})
        assert answer(one, 4).first == had[0].first


def rolled_back(tmp_path) -> Position:
    """Put back an older ledger together with its witness; return a position that it does not have."""
    with ledger(tmp_path) as one:
        answer(one, 1)
        one.backup(tmp_path / "copy")
        witness = (tmp_path / "a.witness").read_bytes()
        lost = answer(one, 2)
    for left in tmp_path.glob("a.ledger*"):
        left.unlink()
    (tmp_path / "copy").rename(tmp_path / "a.ledger")
    (tmp_path / "a.witness").write_bytes(witness)
    return lost


def test_a_ledger_that_was_put_back_with_its_witness_answers_nobody_once_it_is_contradicted(tmp_path):
    lost = rolled_back(tmp_path)
    with ledger(tmp_path) as one:  # ledger and witness agree: nothing shows here
        one.join("data", terms("other"))
        with pytest.raises(LedgerCorrupt, match=r"valid receipt of entry 4.*tacit agent restore"):
            one.confront(lost)
        for t in (2, 3):
            with pytest.raises(LedgerCorrupt):
                one.release(Key("data", "r", t, 0), f"question {t}", RELEASE, lambda: [0.0])
        with pytest.raises(LedgerCorrupt):  # not even what was answered before
            one.release(Key("data", "r", 1, 0), "question 1", RELEASE, lambda: [0.0])
    with pytest.raises(LedgerCorrupt, match="does not have the entry 4"):
        ledger(tmp_path)


def test_an_answer_that_was_committed_before_a_contradiction_does_not_leave_after_it(tmp_path):
    lost = rolled_back(tmp_path)
    with ledger(tmp_path) as one:
        settle = one.settle

        def contradicted() -> None:  # another thread's join comes between the commit and the witness
            with pytest.raises(LedgerCorrupt):
                one.confront(lost)
            settle()

        one.settle = contradicted  # type: ignore[method-assign]
        with pytest.raises(LedgerCorrupt):
            one.release(Key("data", "r", 2, 0), "question 2", RELEASE, lambda: [0.0])
        one.settle = settle  # type: ignore[method-assign]


def test_a_restore_mark_lists_the_head_that_was_lost_and_no_other(tmp_path):
    lost = rolled_back(tmp_path)
    with ledger(tmp_path) as one, pytest.raises(LedgerCorrupt):
        one.confront(lost)
    with Ledger.open(tmp_path / "a.ledger", price, create=False) as one:
        one.mark_restored("data", witnessed=[Witness(tmp_path / "a.witness", "north").read().head])
        one.attest(Witness(tmp_path / "a.witness", "north"))
    with ledger(tmp_path) as one:
        one.confront(lost)
        with pytest.raises(LedgerCorrupt):
            one.confront(replace(lost, head="5" * 64))


def test_a_mark_lists_no_head_that_the_ledger_has(tmp_path):
    with ledger(tmp_path) as one:
        had = answer(one, 1)
        one.mark_restored("data", witnessed=[had.head])
        assert "lost_heads" not in one.entries()[-1].body


def test_the_witness_holds_the_head_of_the_last_answer_beside_the_last_head(tmp_path):
    with ledger(tmp_path) as one:
        had = answer(one, 1)
        assert Witness(tmp_path / "a.witness", "north").read().answered == had.head
        one.end("data", "r", "closed")
        noted = Witness(tmp_path / "a.witness", "north").read()
    assert (noted.answered, noted.entries) == (had.head, had.entries + 1)
    assert noted.head != had.head


def test_a_witness_of_an_earlier_version_is_read(tmp_path):
    with ledger(tmp_path) as one:
        answer(one, 1)
    path = tmp_path / "a.witness"
    noted = json.loads(path.read_text())
    noted.pop("answered")
    path.write_text(json.dumps(noted))
    with ledger(tmp_path) as one:
        assert answer(one, 2).head == Witness(path, "north").read().answered


@pytest.mark.parametrize("answered", [None, 3, ["0" * 64]])
def test_a_witness_whose_last_answer_is_no_hash_is_refused(tmp_path, answered):
    ledger(tmp_path).close()
    path = tmp_path / "a.witness"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"answered": answered}))
    with pytest.raises(LedgerCorrupt, match="needs agent, first, entries and head"):
        ledger(tmp_path)
