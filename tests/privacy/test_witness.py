"""What leaves is in the file of the ledger and in its witness, and a ledger that went back does not start."""

import json
import shutil
import sqlite3
import threading
from pathlib import Path

import pytest

from tacit.errors import LedgerCorrupt, LedgerMissing, Refused, TacitError
from tacit.privacy import chain
from tacit.privacy.ledger import Ledger
from tacit.privacy.release import GaussianRelease, GeneralRelease
from tacit.privacy.witness import Witness

from .rounds import GAUSSIAN, LIMIT, noisy, price
from .test_ledger import answer, fast, never, path, terms

__all__ = ["fast", "path"]  # fixtures


@pytest.fixture
def witness(fast):
    (fast / "elsewhere").mkdir()
    return Witness(fast / "elsewhere" / "agent.witness", "north")


@pytest.fixture
def ledger(path, witness):
    """A new ledger with its witness."""
    with Ledger.open(path, price, LIMIT) as made:
        made.attest(witness)
        yield made


def again(path, witness):
    """The ledger, opened as a service does that is started again."""
    return Ledger.open(path, price, create=False, witness=Witness(witness.path, "north"))


def alone(path, to):
    """A copy of the file, without its log."""
    shutil.copy(path, to)
    return Ledger.open(to, price, create=False)


def test_a_copy_of_the_file_alone_has_every_release_that_has_left(ledger, path, fast):
    ledger.join("data", terms(rounds=5))
    for t in range(1, 6):
        answer(ledger, t)
        with alone(path, fast / f"copy{t}") as copy:
            assert copy.verify().releases == t
    assert Path(f"{path}-wal").exists()


def test_a_copy_made_during_a_write_has_what_had_left_or_does_not_open(fast):
    """The file is copied piece by piece, as cp does, while another thread answers."""
    file, left, end, whole, torn = fast / "ledger", [0], threading.Event(), 0, 0
    with Ledger.open(file, price) as ledger:

        def answers():
            for t in range(1, 150):
                answer(ledger, t)
                ledger.forget_later("run", t - 3)
                left[0] = t
            end.set()

        thread = threading.Thread(target=answers)
        thread.start()
        n = 0
        while not end.is_set():
            n += 1
            copy, before = fast / f"copy{n}", left[0]
            with file.open("rb") as source, copy.open("wb") as target:
                while piece := source.read(4096):
                    target.write(piece)
            try:
                with Ledger.open(copy, price, create=False) as found:
                    assert found.verify().releases >= before
                    whole += 1
            except (LedgerCorrupt, Refused):
                torn += 1
            copy.unlink()
        thread.join()
    assert whole > 3


def test_a_busy_checkpoint_keeps_the_answer_back_and_it_is_sent_later(ledger, path, monkeypatch):
    monkeypatch.setattr(chain, "_BUSY", 0.05)
    answer(ledger, 1)
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM tip").fetchall()  # it keeps the state of now, so that the log cannot go into the file
    drawn = []
    with pytest.raises(Refused, match="another process has been reading"):
        answer(ledger, 2, make=lambda: drawn.append(noisy()) or drawn[-1])
    with pytest.raises(Refused, match="another process has been reading"):
        answer(ledger, 2, make=never)
    assert Witness(ledger._witness.path, "north").read().entries == 2
    reader.close()
    assert answer(ledger, 2, make=never).tobytes() == drawn[0].tobytes()
    assert ledger.verify().releases == 2


def test_a_charge_is_entered_once_while_another_process_keeps_the_file_busy(ledger, path, monkeypatch):
    monkeypatch.setattr(chain, "_BUSY", 0.05)
    answer(ledger, 1)
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM tip").fetchall()
    ledger.charge("data", [GaussianRelease(10.0)], "lost with a disk")
    ledger.join("data", terms(rounds=5))
    ledger.end("data", "run", "its owner has closed it")
    assert Witness(ledger._witness.path, "north").read().entries == 2
    with pytest.raises(Refused, match="another process has been reading"):
        answer(ledger, 1, run="other")
    reader.close()
    answer(ledger, 1, run="other", make=never)
    assert Witness(ledger._witness.path, "north").read().entries == ledger.verify().entries
    assert ledger.history().spent["data"].total() == 3


def test_a_checkpoint_of_another_process_is_waited_for_and_keeps_no_answer_back(ledger, path):
    """SQLite gives up at once if somebody else is moving the log into the file: that is over in a moment."""
    end, beside = threading.Event(), sqlite3.connect(path, isolation_level=None, check_same_thread=False)

    def checkpoints():
        while not end.is_set():
            beside.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()

    thread = threading.Thread(target=checkpoints)
    thread.start()
    try:
        for t in range(1, 101):
            answer(ledger, t, release=GaussianRelease(1e6))
    finally:
        end.set()
        thread.join()
        beside.close()
    assert ledger.verify().releases == 100


def test_a_witness_that_cannot_be_written_keeps_the_answer_back_and_it_is_sent_later(ledger, witness):
    answer(ledger, 1)
    kept = witness.path.read_bytes()
    witness.path.unlink()
    witness.path.mkdir()  # renaming a file over it fails
    drawn = []
    for make in (lambda: drawn.append(noisy()) or drawn[-1], never):
        with pytest.raises(Refused, match=r"witness .* cannot be written .*, so that nothing leaves"):
            answer(ledger, 2, make=make)
    witness.path.rmdir()
    witness.path.write_bytes(kept)
    assert answer(ledger, 2, make=never).tobytes() == drawn[0].tobytes()
    assert json.loads(witness.path.read_text())["entries"] == ledger.verify().entries == 3


def test_a_ledger_ahead_of_its_witness_starts_and_one_behind_does_not(ledger, path, witness, fast):
    answer(ledger, 1)
    early = alone(path, fast / "early")
    early.close()
    before = witness.path.read_bytes()
    answer(ledger, 2)
    ledger.close()
    after = witness.path.read_bytes()
    witness.path.write_bytes(before)  # killed between the commit and the witness
    with again(path, witness) as found:
        assert found.verify().releases == 2
        found.settle()
    assert witness.path.read_bytes() == after
    shutil.copy(fast / "early", path)  # an ordinary backup, put back
    with pytest.raises(LedgerCorrupt, match=r"does not have the entry 3 .* older copy or another ledger"):
        again(path, witness)


def test_a_copy_that_went_on_by_itself_does_not_start(ledger, path, witness, fast):
    answer(ledger, 1)
    alone(path, fast / "copy").close()
    answer(ledger, 2)
    answer(ledger, 3)
    ledger.close()
    with Ledger.open(fast / "copy", price) as copy:
        for t in (2, 3, 4):
            answer(copy, t)
    shutil.copy(fast / "copy", path)  # it has more entries than the witness, and another at its number
    with pytest.raises(LedgerCorrupt, match="older copy or another ledger"):
        again(path, witness)


def test_an_old_copy_restored_into_an_open_ledger_answers_nothing(ledger, path, fast):
    """By SQLite's own means, into the same file: only the chain shows it."""
    answer(ledger, 1)
    alone(path, fast / "early").close()
    answer(ledger, 2)
    with sqlite3.connect(fast / "early") as source, sqlite3.connect(path) as target:
        source.backup(target)
    source.close(), target.close()
    for t in (2, 3):
        with pytest.raises(LedgerCorrupt, match="does not have the entry 3"):
            answer(ledger, t, make=never)


@pytest.mark.parametrize(("text", "says"), [
    ("", "cannot be used"),
    ("{}", "it needs agent, first, entries and head"),
    ("[1]", "it needs agent"),
    ('{"agent": "north", "first": "0", "entries": true, "head": "1"}', "it needs agent"),
    ('{"agent": "south", "first": "0", "entries": 1, "head": "1"}', "it is the witness of agent 'south'"),
    ('{"agent": "north", "first": "0", "entries": 0, "head": "1"}', "cannot be those of a ledger"),
    (b"\xff\xfe", "cannot be used"),
])  # fmt: skip
@pytest.mark.usefixtures("ledger")
def test_a_damaged_witness_starts_nothing(path, witness, text, says):
    witness.path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(LedgerCorrupt, match=says):
        again(path, witness)


@pytest.mark.usefixtures("ledger")
def test_without_its_witness_a_ledger_does_not_start(path, witness):
    witness.path.unlink()
    with pytest.raises(LedgerMissing, match="nothing shows whether its ledger is complete"):
        again(path, witness)


def test_threads_of_two_runs_never_move_a_witness_back(ledger, witness, monkeypatch):
    numbers, whole = [], Witness.write

    def noting(self, position):
        numbers.append(position.entries)
        whole(self, position)

    monkeypatch.setattr(Witness, "write", noting)
    threads = [
        threading.Thread(target=lambda run=run: [answer(ledger, t, run) for t in range(1, 11)]) for run in ("a", "b")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert numbers == sorted(numbers)
    assert Witness(witness.path, "north").read().entries == 21


def test_a_backup_is_whole_while_the_ledger_is_in_use(ledger, path, fast):
    answer(ledger, 1)
    with Ledger.open(path, price) as other:
        other.backup(fast / "copy")
    answer(ledger, 2)
    assert (fast / "copy").stat().st_mode & 0o777 == 0o600
    with Ledger.open(fast / "copy", price, create=False) as copy:
        assert copy.verify().releases == 1
    with pytest.raises(FileExistsError):
        ledger.backup(fast / "copy")


def test_a_restored_ledger_counts_its_open_runs_to_their_end_and_answers_none_of_them(ledger, fast):
    ledger.join("data", terms("open", rounds=4, repetitions=2))
    ledger.join("data", terms("over", rounds=1))
    ledger.join("data", terms("ended", rounds=9))
    answer(ledger, 1, "open")
    answer(ledger, 1, "over")
    ledger.end("data", "ended", "closed")
    ledger.backup(fast / "copy")
    for t in range(2, 5):
        answer(ledger, t, "open")  # what the backup does not know
    spent = ledger.show(1e-6)[0].epsilon
    with Ledger.open(fast / "copy", price, create=False) as copy:
        copy.mark_restored("data", [])
        assert copy.history().spent["data"] == {GAUSSIAN: 7}  # 4 rounds and 2 repetitions of "open", 1 of "over"
        assert copy.show(1e-6)[0].epsilon >= spent
        runs = {run.run: (run.rounds, run.releases) for run in copy.show(1e-6)[0].runs}
        assert runs == {"open": (1, 6), "over": (1, 1)}
        for run in ("open", "over"):
            with pytest.raises(Refused, match="has ended here \\(restored from a backup\\)"):
                answer(copy, 4, run, make=never)
        copy.join("data", terms("next", rounds=2))
        answer(copy, 1, "next")
        head = copy.head
    with Ledger.open(fast / "copy", price, create=False) as copy:  # the mark is read again as it was written
        assert copy.verify(head).releases == 3
        assert copy.history().spent["data"] == {GAUSSIAN: 8}


def test_what_the_owner_enters_counts_for_the_limit(path):
    from tacit.run.deployment import price as real

    with Ledger.open(path, real, LIMIT) as ledger:
        ledger.charge("data", [GeneralRelease(2.9, 1e-7)], "lost with a disk")
        (account,) = ledger.show()
        assert account.epsilon == pytest.approx(2.9, abs=1e-5)
        assert [run.run for run in account.runs] == ["(entered by the owner)"]
        with pytest.raises(TacitError, match="beyond the limit of 3"):
            ledger.join("data", terms(rounds=5))
        ledger.charge("data", [GeneralRelease(0.0, 1e-3)], "more delta than the limit has")
        assert ledger.show()[0].epsilon == float("inf")
