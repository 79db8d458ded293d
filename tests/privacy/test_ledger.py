"""A release is on record before it leaves, is never free, and a broken record releases nothing."""

import hashlib
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import (
    BudgetExhausted,
    DataError,
    IncompatibleError,
    LedgerCorrupt,
    QuestionChanged,
    Refused,
    SpecError,
    TermsChanged,
)
from tacit.message import fingerprint
from tacit.privacy import chain
from tacit.privacy.ledger import Key, Ledger, Limit
from tacit.privacy.release import GaussianRelease, LaplaceRelease
from tacit.privacy.terms import Place, Terms
from tacit.privacy.witness import Witness

from .rounds import GAUSSIAN, LIMIT, asked, noisy, price

SCRIPT = Path(__file__).with_name("rounds.py")
ALLOWED = next(n for n in range(1, 1000) if price([(GAUSSIAN, n + 1)], LIMIT.dp_delta) > LIMIT.epsilon)


MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None  # quick to sync: these tests kill processes, not machines


@pytest.fixture
def fast():
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        yield Path(folder)


@pytest.fixture
def path(fast):
    return fast / "agent.ledger"


def answer(ledger, t, run="run", data="data", release=GAUSSIAN, make=noisy, step=0):
    return ledger.release(Key(data, run, t, step), asked(t), release, make)


def written(path, rounds=3):
    with Ledger.open(path, price, LIMIT) as ledger:
        return [answer(ledger, t) for t in range(1, rounds + 1)]


def never():
    raise AssertionError("noise was drawn a second time")


def test_the_same_question_gets_the_stored_answer_again_at_no_cost(path):
    with Ledger.open(path, price, LIMIT) as ledger:
        first = answer(ledger, 1)
        spent = ledger.show()
        np.testing.assert_array_equal(answer(ledger, 1, make=never), first)
        assert ledger.show() == spent
    with Ledger.open(path, price) as ledger:
        again = answer(ledger, 1, make=never)
        assert again.dtype == first.dtype
        np.testing.assert_array_equal(again, first)
        assert ledger.show()[0].releases == 1


def test_another_question_under_the_same_key_is_refused(path):
    with Ledger.open(path, price, LIMIT) as ledger:
        answer(ledger, 1)
        before = ledger.verify()
        with pytest.raises(QuestionChanged, match="new name"):
            ledger.release(Key("data", "run", 1), asked(2), GAUSSIAN, never)
        with pytest.raises(QuestionChanged):
            ledger.release(Key("data", "run", 1), asked(1), GaussianRelease(20.0), never)
        assert ledger.verify() == before


def test_every_part_of_a_broadcast_is_part_of_the_question():
    w = np.arange(6.0).reshape(2, 3)
    other = w.copy()
    other[1, 2] = np.nextafter(5.0, 6.0)

    def asked(w, t, rho, name="w"):
        return fingerprint(t, {name: w, "rho": rho})

    different = [asked(w, 1, 1.0), asked(other, 1, 1.0), asked(w, 2, 1.0), asked(w, 1, 2.0), asked(w, 1, 1.0, "v"),
                 asked(w.reshape(3, 2), 1, 1.0), asked(w.astype(np.float32), 1, 1.0), asked(-0.0 * w, 1, 1.0),
                 asked(0.0 * w, 1, 1.0)]  # fmt: skip
    assert len(set(different)) == len(different)
    assert asked(np.asfortranarray(w), 1, 1.0) == different[0]


def test_each_part_of_a_key_makes_another_release(path):
    with Ledger.open(path, price, LIMIT) as ledger:
        kept = [answer(ledger, 1), answer(ledger, 2), answer(ledger, 1, step=1), answer(ledger, 1, run="b")]
        assert len({z.tobytes() for z in kept}) == 4
        assert ledger.show()[0].releases == 4


def test_the_limit_is_over_all_runs_on_the_same_data_and_only_those(path):
    with Ledger.open(path, price, LIMIT) as ledger:
        for t in range(1, ALLOWED + 1):
            answer(ledger, t, run=f"run {t % 3}")
        before = ledger.verify()
        with pytest.raises(BudgetExhausted, match="beyond the limit"):
            answer(ledger, 1, run="another", make=never)
        assert ledger.verify() == before
        assert answer(ledger, 1, run="run 1", make=never).shape == (2, 3)  # already paid for
        answer(ledger, 1, data="other data")
    with Ledger.open(path, price) as ledger, pytest.raises(BudgetExhausted):
        answer(ledger, 1, run="yet another", make=never)


def terms(run="run", rounds=3, release=GAUSSIAN, **changed):
    return replace(Terms(run, "spec", rounds, release, "zero_out", 1.0, 1e-6, 1.0), **changed)


def test_a_run_that_does_not_fit_under_the_limit_is_not_joined(path):
    with Ledger.open(path, price, LIMIT) as ledger:
        before = ledger.verify()
        with pytest.raises(BudgetExhausted, match=f"{ALLOWED + 1} more releases"):
            ledger.join("data", terms(rounds=ALLOWED + 1))
        assert ledger.verify() == before
        ledger.join("data", terms(rounds=ALLOWED))
        for t in range(1, ALLOWED + 1):
            answer(ledger, t)
        with pytest.raises(BudgetExhausted):
            ledger.join("data", terms("next", rounds=1))
        ledger.join("data", terms(rounds=ALLOWED))  # the same again: no new entry, and nothing more to pay
        assert ledger.verify().entries == ALLOWED + 2


def test_a_run_of_another_adjacency_is_not_joined(path):
    with Ledger.open(path, price) as ledger:
        answer(ledger, 1)
        with pytest.raises(Refused, match="priced for zero_out"):
            ledger.join("data", terms("other", adjacency="replace_one"))


@pytest.mark.parametrize("change", [
    {"rounds": 4}, {"spec": "other"}, {"release": GaussianRelease(20.0)}, {"adjacency": "replace_one"}, {"scale": 0.5},
    {"dp_delta": 1e-5},
])  # fmt: skip
def test_terms_are_agreed_once_and_outlive_the_process(path, change):
    with Ledger.open(path, price) as ledger:
        ledger.join("data", terms())
        ledger.join("data", terms("other run", rounds=9))
        ledger.join("other data", terms(rounds=9))
    with Ledger.open(path, price) as ledger:
        with pytest.raises(TermsChanged):
            ledger.join("data", terms(**change))
        ledger.join("data", terms())
        assert ledger.verify().entries == 4


def test_a_run_gets_the_rounds_it_agreed_to_in_order_and_no_other_release(path):
    with Ledger.open(path, price) as ledger:
        ledger.join("data", terms(rounds=5))
        answer(ledger, 1)
        answer(ledger, 3)
    with Ledger.open(path, price) as ledger:
        for t in (0, -1, 2, 6, 200):
            with pytest.raises(TermsChanged, match="rounds 1 to 5"):
                answer(ledger, t, make=never)
        with pytest.raises(TermsChanged, match="repeat rounds 0 times"):
            answer(ledger, 3, step=1, make=never)
        with pytest.raises(TermsChanged, match="multiplier=10"):
            answer(ledger, 4, release=GaussianRelease(5.0), make=never)
        answer(ledger, 3, make=never)
        answer(ledger, 5)
        assert ledger.verify().releases == 3


def test_a_run_that_has_ended_answers_no_later_round(path):
    with Ledger.open(path, price) as ledger:
        ledger.join("data", terms(rounds=5))
        answer(ledger, 1)
        assert not ledger.end("data", "another run", "closed")
        assert ledger.end("data", "run", "closed by its owner")
        assert not ledger.end("data", "run", "again")
    with Ledger.open(path, price) as ledger:
        with pytest.raises(TermsChanged, match="has ended here \\(closed by its owner\\)"):
            answer(ledger, 2, make=never)
        answer(ledger, 1, make=never)  # on record, and sent again at no cost
        assert ledger.verify().entries == 4


@given(st.integers(1, 4), st.integers(0, 3), st.data())
def test_the_remaining_releases_of_a_run_are_the_most_that_its_terms_allow(rounds, again, data):
    """Whatever was answered, no sequence of later attempts is longer than what is counted as remaining."""
    place = Place(terms(rounds=rounds, repetitions=again))
    while True:
        assert _longest(place, rounds, again) == place.remaining
        fitting = [key for key in _attempts(rounds, again) if _fits(place, key)]
        if not fitting or data.draw(st.booleans()):
            break
        place.count(data.draw(st.sampled_from(fitting)))


def _attempts(rounds, again):
    return [Key("data", "run", t, step) for t in range(1, rounds + 1) for step in range(again + 1)]


def _fits(place, key):
    try:
        place.check_next(key, GAUSSIAN, "zero_out")
    except TermsChanged:
        return False
    return True


def _longest(place, rounds, again):
    """The number of attempts that are answered if every one is asked, in order."""
    later = replace(place)
    for key in _attempts(rounds, again):
        if _fits(later, key):
            later.count(key)
    return later.releases - place.releases


def test_a_ledger_of_an_earlier_version_is_read_and_goes_on(path):
    """It says add_remove, and holds no terms."""
    with Ledger.open(path, price) as ledger:
        for t in (1, 2):
            ledger.release(Key("data", "run", t), asked(t), GAUSSIAN, noisy, "add_remove" if t == 1 else "zero_out")
    with Ledger.open(path, price) as ledger:
        assert ledger.show()[0].adjacency == "zero_out"
        answer(ledger, 1, make=never)
        ledger.join("data", terms(rounds=3))
        answer(ledger, 3)
        with pytest.raises(TermsChanged):
            answer(ledger, 4, make=never)


def test_the_server_is_told_the_same_whatever_the_reason():
    texts = {kind("secret detail").public for kind in (Refused, BudgetExhausted, QuestionChanged, LedgerCorrupt)}
    assert len(texts) == 1
    assert "secret" not in texts.pop()


@given(st.lists(st.sampled_from([3.0, 5.0, 12.0, 40.0]), min_size=1, max_size=40), st.floats(0.5, 8.0))
def test_exactly_the_releases_that_fit_are_made_however_they_are_mixed(multipliers, epsilon):
    made = Counter()
    with (
        tempfile.TemporaryDirectory(dir=MEMORY) as folder,
        Ledger.open(Path(folder) / "ledger", price, Limit(epsilon, 1e-6)) as ledger,
    ):
        for t, multiplier in enumerate(multipliers):
            release = GaussianRelease(multiplier)
            fits = price((made + Counter([release])).items(), 1e-6) <= epsilon
            try:
                answer(ledger, t, release=release)
            except BudgetExhausted:
                assert not fits
            else:
                assert fits
                made[release] += 1


def test_a_long_run_is_priced_seldom(path):
    asked_for = []

    def counted(events, dp_delta):
        asked_for.append(sum(n for _, n in events))
        return price(events, dp_delta)

    with Ledger.open(path, counted, Limit(9.0, 1e-6)) as ledger:
        t = 0
        with pytest.raises(BudgetExhausted):  # noqa: PT012
            while True:
                t += 1
                answer(ledger, t)
    assert t == asked_for[-1] > 100
    assert len(asked_for) < t / 3


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_price_that_is_no_number_is_refused(path, bad):
    with Ledger.open(path, lambda *_: bad, LIMIT) as ledger, pytest.raises(BudgetExhausted):
        answer(ledger, 1, make=never)


def test_without_a_limit_everything_is_recorded_and_nothing_refused(path):
    with Ledger.open(path, price) as ledger:
        answer(ledger, 1, release=LaplaceRelease(float("inf")))
        assert ledger.history().spent == {"data": Counter({LaplaceRelease(float("inf")): 1})}


def test_a_limit_changes_on_purpose_only_and_leaves_a_trace(path):
    written(path, ALLOWED)
    with pytest.raises(IncompatibleError, match="tacit ledger limit"):
        Ledger.open(path, price, Limit(9.0, 1e-6))
    with Ledger.open(path, price, LIMIT) as ledger:
        ledger.set_limit(Limit(9.0, 1e-6))
        answer(ledger, ALLOWED + 1)
        ledger.set_limit(LIMIT)
        with pytest.raises(BudgetExhausted):
            answer(ledger, ALLOWED + 2, make=never)
        assert ledger.verify().entries == ALLOWED + 4


def test_an_answer_that_fails_leaves_nothing(path):
    with Ledger.open(path, price, LIMIT) as ledger:
        before = ledger.verify()
        with pytest.raises(ZeroDivisionError):
            answer(ledger, 1, make=lambda: 1 / 0)
        with pytest.raises(ValueError, match="Object"):
            answer(ledger, 1, make=lambda: np.array([None]))
        with pytest.raises(Refused, match="within a transaction"):
            answer(ledger, 1, make=lambda: answer(ledger, 2))
        assert ledger.verify() == before
        answer(ledger, 1)
        assert ledger.verify().releases == 1


class FullDisk:
    """A connection whose next commit fails."""

    def __init__(self, connection):
        self.connection, self.full = connection, True

    def __getattr__(self, name):
        return getattr(self.connection, name)

    def execute(self, statement, *values):
        if statement == "COMMIT" and self.full:
            self.full = False
            raise sqlite3.OperationalError("database or disk is full")
        return self.connection.execute(statement, *values)


def test_a_commit_that_fails_releases_nothing_and_is_not_believed(path):
    with Ledger.open(path, price, LIMIT) as ledger:
        made = []
        ledger._chain._connection = FullDisk(ledger._chain._connection)
        with pytest.raises(Refused, match="disk is full"):
            answer(ledger, 1, make=lambda: made.append(noisy()) or made[-1])
        assert ledger.verify().releases == 0
        np.testing.assert_array_equal(answer(ledger, 1, make=lambda: made.append(noisy()) or made[-1]), made[1])
        assert ledger.show()[0].releases == 1


def test_show_gives_runs_alone_and_their_composed_total(path):
    with Ledger.open(path, price, LIMIT) as ledger:
        for t in (1, 2):
            answer(ledger, t, step=0)
            answer(ledger, t, step=1)
        answer(ledger, 1, run="second", release=GaussianRelease(5.0))
        (account,) = ledger.show()
        assert [(r.run, r.rounds, r.releases) for r in account.runs] == [("run", 2, 4), ("second", 1, 1)]
        assert account.runs[1].mechanisms == ("gaussian multiplier=5 rate=1",)
        assert account.epsilon == price([(GAUSSIAN, 4), (GaussianRelease(5.0), 1)], 1e-6)
        assert account.remaining == pytest.approx(3 - account.epsilon)
        assert account.epsilon < sum(r.epsilon for r in account.runs)
        (other,) = ledger.show(dp_delta=1e-9)
        assert other.epsilon > account.epsilon
        assert other.remaining is None


def test_forgotten_answers_are_never_made_again(path):
    written(path, 4)
    with Ledger.open(path, price) as ledger:
        assert ledger.forget("run", before=3) == 2
        assert ledger.forget("run", before=3) == 0
        for t in (1, 2):
            with pytest.raises(Refused, match="no longer stored"):
                answer(ledger, t, make=never)
        answer(ledger, 3, make=never)
        found = ledger.verify()
        assert (found.releases, found.forgotten) == (4, 2)


def forgotten(path):
    with Ledger.open(path, price) as ledger:
        return ledger.verify().forgotten


def test_what_is_to_be_forgotten_later_goes_with_the_next_release_and_costs_nothing(path):
    written(path, 4)
    with Ledger.open(path, price) as ledger:
        spent, head = ledger.show(), ledger.head
        ledger.forget_later("run", before=3)
        ledger.forget_later("other run", before=100)
        assert (ledger.verify().forgotten, ledger.head) == (0, head)
        answer(ledger, 2, make=never)  # it is sent again: that is no new release
        assert ledger.verify().forgotten == 0
        answer(ledger, 5)
        assert ledger.verify(head).forgotten == 2
        for t in (1, 2):
            with pytest.raises(Refused, match="no longer stored"):
                answer(ledger, t, make=never)
        answer(ledger, 3, make=never)
        assert ledger.show()[0].releases == 5
        assert ledger.show()[0].epsilon > spent[0].epsilon
        answer(ledger, 6)
        assert ledger.verify().forgotten == 2  # it was said once


def test_a_release_that_fails_forgets_nothing_and_the_next_one_does(path):
    written(path, 2)
    with Ledger.open(path, price) as ledger:
        ledger.forget_later("run", before=2)
        with pytest.raises(ZeroDivisionError):
            answer(ledger, 3, make=lambda: 1 / 0)
        whole = ledger._chain._connection
        ledger._chain._connection = FullDisk(whole)
        with pytest.raises(Refused, match="disk is full"):
            answer(ledger, 3)
        assert ledger.verify().forgotten == 0
        answer(ledger, 1, make=never)
        answer(ledger, 3)
        assert ledger.verify().forgotten == 1


def test_a_ledger_that_forgets_stays_small(path):
    """As a run does: every ten rounds the answers before may go. The log is bounded too, and gone at the end."""
    large = np.zeros((100, 100))
    with Ledger.open(path, price) as ledger:
        for t in range(1, 121):
            answer(ledger, t, make=lambda: large)
            if t % 10 == 0:
                ledger.forget_later("run", before=t + 1)
        log = path.with_name(path.name + "-wal").stat().st_size
        assert log < 2 * 4096 * chain._LOG_PAGES
        assert ledger.show()[0].releases == 120
    assert path.stat().st_size < 15 * large.nbytes
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert forgotten(path) == 110


def test_a_commit_is_in_the_log_at_once_and_in_the_file_at_the_latest_when_the_ledger_is_closed(path, fast):
    ledger = Ledger.open(path, price)
    for t in range(1, 4):
        answer(ledger, t)
    copy = fast / "copy" / path.name  # what a machine finds that lost its power now
    copy.parent.mkdir()
    for file in path.parent.glob(f"{path.name}*"):
        if not file.name.endswith("-shm"):
            shutil.copy(file, copy.parent)
    with Ledger.open(copy, price) as found:
        assert found.verify().releases == 3
    ledger.close()
    shutil.copy(path, fast / "alone")
    with Ledger.open(fast / "alone", price) as found:
        assert found.verify().releases == 3


def test_the_file_is_its_owners_and_every_commit_reaches_the_disk(path):
    with Ledger.open(path, price, LIMIT) as ledger:
        answer(ledger, 1)
        for file in path.parent.iterdir():
            assert file.stat().st_mode & 0o777 == 0o600
        pragma = ledger._chain._connection.execute
        assert pragma("PRAGMA synchronous").fetchone() == (2,)
        assert pragma("PRAGMA journal_mode").fetchone() == ("wal",)
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    path.chmod(0o644)
    Ledger.open(path, price).close()
    assert path.stat().st_mode & 0o777 == 0o600


def test_names_limits_and_places_that_cannot_be_are_refused(path, fast):
    for epsilon, dp_delta in [(0, 1e-6), (-1, 1e-6), (float("inf"), 0), (float("nan"), 0), (1, 1), (1, -1)]:
        with pytest.raises(SpecError, match="limit"):
            Limit(epsilon, dp_delta)
    with pytest.raises(SpecError, match="empty"):
        Key("", "run", 1)
    with pytest.raises(TypeError):
        Key("data", "run", 1.5)
    assert Key("data", "run", np.int64(3)) == Key("data", "run", 3)
    with pytest.raises(DataError, match="does not exist"):
        Ledger.open(path, price, create=False)
    (fast / "file").touch()
    with pytest.raises(DataError, match="cannot create"):
        Ledger.open(fast / "file" / "ledger", price)
    with Ledger.open(path, price) as ledger, pytest.raises(SpecError, match="ledger records gaussian"):
        answer(ledger, 1, release=object())


# --- killed at every point -------------------------------------------------------------------------------------


def run_script(*arguments):
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # the script forks
    return subprocess.Popen([sys.executable, str(SCRIPT), *map(str, arguments)], env=environment)


def test_a_round_killed_at_any_line_is_either_not_made_or_on_record(fast):
    assert run_script("answer", fast).wait() == 0
    places = sorted(place for place in fast.iterdir() if place.is_dir())
    assert len(places) > 100
    recorded_unsent = 0
    for place in places:
        made = []
        shutil.copy(place / "ledger", place / "alone")  # without its log
        # whole, wherever it was killed, and not behind its witness
        with Ledger.open(place / "ledger", price, witness=Witness(place / "witness", "north")) as ledger:
            releases = ledger.verify().releases
            assert ledger.verify().forgotten == releases - 2  # the first answer goes with the third, or stays
            again = answer(ledger, 3, make=lambda made=made: made.append(noisy()) or made[-1])
            assert ledger.verify().releases == 3
            assert len(made) == 3 - releases  # an entry: the stored answer, no new noise; no entry: one answer, charged
        if (place / "sent").exists():
            assert releases == 3
            with Ledger.open(place / "alone", price, create=False) as copy:
                assert copy.verify().releases == 3
            assert (place / "sent").read_bytes() in (b"", again.tobytes())  # b"": killed between open and write
        recorded_unsent += releases == 3 and not (place / "sent").exists()
    assert recorded_unsent > 0  # the case in which the stored answer matters did occur
    assert (places[-1] / "sent").exists()


def test_a_ledger_killed_in_the_making_is_there_whole_or_not_at_all(fast):
    assert run_script("create", fast).wait() == 0
    found = Counter()
    for place in sorted(fast.iterdir()):
        found[(place / "ledger").exists()] += 1
        with Ledger.open(place / "ledger", price, LIMIT) as ledger:
            assert ledger.verify().entries == 1
            assert ledger.history().limit == LIMIT
    assert min(found[True], found[False]) > 10


def logged(log):
    lines = log.read_text().split("\n")[:-1] if log.exists() else []
    return {(run, int(t)): digest for run, t, digest in (line.split() for line in lines)}


def stored(path):
    with Ledger.open(path, price) as ledger:
        return {
            (key.run, key.round): hashlib.sha256(answer(ledger, key.round, key.run, make=never).tobytes()).hexdigest()
            for key in ledger.history().answers
        }


def test_processes_killed_at_any_moment_leave_nothing_unrecorded(fast):
    path = fast / "ledger"
    Ledger.open(path, price, Limit(1000.0, 1e-6)).close()
    rng = random.Random(0)
    sent = {}
    for n in range(6):
        log = fast / f"log{n}"
        process = run_script("spend", path, log, f"run{n}")
        while not log.exists() or not log.stat().st_size:
            time.sleep(0.005)
        time.sleep(rng.uniform(0, 0.03))
        process.kill()
        process.wait()
        sent |= logged(log)
    kept = stored(path)
    assert sent.items() <= kept.items()
    assert len(sent) <= len(kept) <= len(sent) + 6


# --- shared by processes and threads -----------------------------------------------------------------------------


def test_processes_that_share_a_ledger_spend_its_budget_once(fast):
    path = fast / "ledger"
    Ledger.open(path, price, LIMIT).close()
    processes = [run_script("spend", path, fast / f"log{n}", "shared", f"own{n}") for n in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    kept = stored(path)
    assert len(kept) == ALLOWED
    seen = set()
    for n in range(3):
        sent = logged(fast / f"log{n}")
        assert sent.items() <= kept.items()  # the same key, the same answer, whoever asked
        seen |= sent.keys()
    assert seen == kept.keys()


def test_threads_that_share_a_ledger_get_one_answer(fast):
    with Ledger.open(fast / "ledger", price, LIMIT) as ledger:
        got = []
        threads = [threading.Thread(target=lambda: got.append(answer(ledger, 1).tobytes())) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(got) == 6
        assert len(set(got)) == 1


# --- a broken record ----------------------------------------------------------------------------------------------


def edit(path, statement, *values):
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        changed = connection.execute(statement, values).rowcount
    connection.close()
    assert changed


COLUMNS = [("entry", column) for column in ("n", "key", "body", "hash")] + [
    ("payload", "n"), ("payload", "data"), ("tip", "one"), ("tip", "n"), ("tip", "hash"),
]  # fmt: skip


def flipped(value):
    if isinstance(value, int):
        return value + 1000
    half = len(value) // 2
    if isinstance(value, bytes):
        return value[:half] + bytes([value[half] ^ 1]) + value[half + 1 :]
    return value[:half] + chr(ord(value[half]) ^ 1) + value[half + 1 :]


@pytest.mark.parametrize(("table", "column"), COLUMNS)
def test_one_altered_value_anywhere_and_nothing_is_released(fast, table, column):
    path = fast / "ledger"
    written(path)
    with sqlite3.connect(path) as connection:
        rows = connection.execute(f"SELECT rowid, {column} FROM {table}").fetchall()
    connection.close()
    for row, value in rows:
        copy = fast / "copy"
        shutil.copy(path, copy)
        edit(copy, f"UPDATE {table} SET {column} = ? WHERE rowid = ?", flipped(value), row)
        with pytest.raises(LedgerCorrupt, match="cannot be trusted"):
            Ledger.open(copy, price)


@pytest.mark.parametrize("statement", [
    "DELETE FROM entry WHERE n = 1", "DELETE FROM entry WHERE n = 2", "DELETE FROM entry WHERE n = 4",
    "DELETE FROM tip", "INSERT INTO payload VALUES (99, x'00')",
    "UPDATE payload SET data = (SELECT data FROM payload WHERE n = 2) WHERE n = 3",
    "UPDATE payload SET data = 'text'", "UPDATE entry SET body = 7 WHERE n = 2",
    "INSERT INTO entry SELECT n + 10, key || ' ', body, hash FROM entry",
])  # fmt: skip
def test_rows_removed_added_or_moved_and_nothing_is_released(path, statement):
    written(path)
    edit(path, statement)
    with pytest.raises(LedgerCorrupt):
        Ledger.open(path, price)


def test_a_table_or_index_that_is_gone_shows(path):
    written(path)
    for statement in ("DROP TABLE payload", "ALTER TABLE tip RENAME TO top", "CREATE TABLE more (x)"):
        copy = path.with_name("copy")
        shutil.copy(path, copy)
        with sqlite3.connect(copy) as connection:
            connection.execute(statement)
        connection.close()
        with pytest.raises(LedgerCorrupt, match="tables"):
            Ledger.open(copy, price)


def test_an_edit_under_an_open_ledger_stops_it(path):
    with Ledger.open(path, price, LIMIT) as ledger:
        for t in (1, 2):
            answer(ledger, t)
        body = ledger._chain._connection.execute("SELECT body FROM entry WHERE n = 2").fetchone()[0]
        edit(path, "UPDATE entry SET body = ? WHERE n = 2", body.replace("10.0", "99.0"))
        for _ in range(2):
            with pytest.raises(LedgerCorrupt, match="entry 2 was altered"):
                answer(ledger, 3, make=never)
        edit(path, "UPDATE entry SET body = ? WHERE n = 2", body)
        edit(path, "UPDATE payload SET data = x'00' WHERE n = 2")
        with pytest.raises(LedgerCorrupt, match="answer stored with entry 2"):
            answer(ledger, 1, make=never)


def test_a_cut_file_and_a_file_of_another_kind_are_refused(path):
    written(path)
    whole = path.read_bytes()
    for content in (b"", b"not a database" * 100, *(whole[:n] for n in (50, 4096, len(whole) // 2, -4096, -1))):
        path.write_bytes(content)
        with pytest.raises(LedgerCorrupt):
            Ledger.open(path, price, LIMIT)
        assert path.read_bytes() == content
    path.unlink()
    sqlite3.connect(path).execute("CREATE TABLE other (x)").connection.close()
    with pytest.raises(LedgerCorrupt, match="not a ledger"):
        Ledger.open(path, price)


def test_a_flipped_bit_anywhere_in_the_file_is_found_or_changes_nothing(fast):
    path = fast / "ledger"
    written(path)
    whole = path.read_bytes()
    with Ledger.open(path, price) as ledger:
        true, held = ledger.verify(), ledger.history()
    rng = random.Random(1)
    found = 0
    for offset in [*range(100), *(rng.randrange(100, len(whole)) for _ in range(200))]:
        damaged = bytearray(whole)
        damaged[offset] ^= 1 << rng.randrange(8)
        for extra in ("-wal", "-shm"):
            path.with_name(path.name + extra).unlink(missing_ok=True)
        path.write_bytes(damaged)
        try:
            with Ledger.open(path, price) as ledger:
                assert ledger.verify() == true
                assert ledger.history() == held
        except Refused:
            found += 1
    assert found > 20


def test_a_head_noted_elsewhere_reveals_an_old_copy_put_back(path):
    written(path, 2)
    old = path.read_bytes()
    with Ledger.open(path, price) as ledger:
        answer(ledger, 3)
        head = ledger.verify().head
        answer(ledger, 4)
        assert ledger.verify(head).releases == 4
    path.write_bytes(old)
    with Ledger.open(path, price) as ledger:
        assert ledger.verify().releases == 2  # whole in itself
        with pytest.raises(LedgerCorrupt, match="noted earlier"):
            ledger.verify(head)


def test_a_ledger_in_use_for_too_long_and_a_ledger_after_a_fork_are_refused(path, monkeypatch):
    with Ledger.open(path, price, LIMIT) as ledger:
        ledger._chain._connection.execute("PRAGMA busy_timeout = 50")
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(Refused, match="try again"):
            answer(ledger, 1, make=never)
        other.close()
        monkeypatch.setattr(os, "getpid", lambda: -1)
        with pytest.raises(Refused, match="fork"):
            answer(ledger, 1, make=never)
        monkeypatch.undo()
        answer(ledger, 1)


def moved(path):
    path.rename(path.with_name("elsewhere"))


def replaced(path):
    shutil.copy(path, path.with_name("copy"))
    path.with_name("copy").replace(path)


def without_log(path):
    path.with_name(f"{path.name}-wal").unlink()


def without_both_logs(path):
    without_log(path)
    path.with_name(f"{path.name}-shm").unlink()


@pytest.mark.parametrize("change", [Path.unlink, moved, replaced, lambda path: os.truncate(path, 0),
                                    lambda path: os.truncate(path, 4096), without_log, without_both_logs])  # fmt: skip
def test_nothing_leaves_once_the_file_at_its_path_is_not_the_one_that_is_open(path, change):
    with Ledger.open(path, price) as ledger:
        answer(ledger, 1)
        change(path)
        with pytest.raises(LedgerCorrupt, match=r"while it was open|cannot read"):
            answer(ledger, 2)


def test_a_file_that_goes_away_while_an_answer_is_made_takes_the_answer_with_it(path):
    def make():
        path.unlink()
        return noisy()

    with Ledger.open(path, price) as ledger, pytest.raises(LedgerCorrupt):
        answer(ledger, 1, make=make)


def test_a_new_ledger_is_not_made_over_what_is_left_of_another(path):
    Path(f"{path}-wal").write_bytes(b"entries that were not yet in the file")
    with pytest.raises(DataError, match="put that ledger back"):
        Ledger.open(path, price)


def test_an_answer_priced_for_another_adjacency_is_refused_though_both_runs_were_joined_before(path):
    with Ledger.open(path, price) as ledger:
        for run, adjacency in (("one", "zero_out"), ("two", "replace_one")):
            ledger.join("data", Terms(run, "spec", 5, GAUSSIAN, adjacency, 1.0, 1e-6, 1.0))
        ledger.release(Key("data", "two", 1), asked(1), GAUSSIAN, noisy, "replace_one")
        with pytest.raises(Refused, match="kept apart"):
            ledger.release(Key("data", "one", 1), asked(1), GAUSSIAN, noisy, "zero_out")
