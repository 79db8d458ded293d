"""A coordinator behind a secure sum: agents that drop out and come back, storms, kills, forged words."""

import random
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tacit.cli import main
from tacit.errors import IncompatibleError, LedgerCorrupt, RunDirectoryError, Suspended
from tacit.federation import status
from tacit.federation.attendance import SumAttendance
from tacit.federation.closing import FILE, ClosingState
from tacit.federation.coordinator import close_all
from tacit.federation.exchange import ASKED_AGAIN
from tacit.federation.messages import REPLIES, Join, Refusal, Unjoined, read, written
from tacit.federation.remote_engine import RemoteEngine
from tacit.federation.service import Service
from tacit.federation.site import read as read_site
from tacit.privacy.summed import Attempt
from tests.federation.one_process import spec_of, trained
from tests.federation.room import QUICK, Room, close, go
from tests.federation.summing import SIZES, folder, paid, seeded, services

FAULTS = "deadline = 60.0\nresend = 10.0\nstart_deadline = 1000.0\nmost_missed = 100\n"
ROUNDS = 6
EVERYBODY = sorted(SIZES)


@pytest.fixture
def quick():
    """A place that is quick to sync."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as place:
        yield Path(place)


@pytest.fixture
def run(quick):
    """What starts or resumes a run over a room; services end with the test."""
    rooms = []

    def start(fate=None, change=None, rounds=ROUNDS, faults=FAULTS, repetitions=2, name="c", room=None, said=None):
        if room is None:
            room = Room(services(quick / name), **({"fate": fate} if fate else {}), change=change)
            rooms.append(room)
        where = folder(quick / name / "c", rounds, faults, repetitions)
        room.where = where
        start.room = room
        return go(where, room, lambda text, **_: (said if said is not None else []).append(text)), room

    yield start
    for room in rooms:
        close(room)


def down(site, rounds):
    """A fate: the site hears nothing and says nothing while these rounds are asked, but Joins and Meets at any time."""

    def fate(_way, who, header):
        return [] if who == site and header.get("t") in rounds else [QUICK]

    return fate


def test_a_sum_over_a_federation_is_bit_for_bit_one_in_one_process(run, monkeypatch):
    monkeypatch.setattr(Attempt, "share", seeded)
    result, room = run()
    here = trained(room.where, room)
    np.testing.assert_array_equal(result.w, here.w)
    np.testing.assert_array_equal(result.w_average, here.w_average)
    for ours, theirs in zip(result.rounds, here.rounds, strict=True):
        for key in ("t", "step", "rho", "noise_scale", "noise_gradient_units"):
            assert ours[key] == theirs[key], key
    assert result.summary["guarantee"] == here.summary["guarantee"]


def totals(monkeypatch):
    """Let tests see integers: what each agent adds before its masks, and what the coordinator makes of the words."""
    shares, sums = [], []

    def share(attempt, value, _bits=None):
        own = seeded(attempt, value)
        shares.append((attempt, own))
        return own

    whole = Attempt.total

    def total(attempt, residues):
        sums.append((attempt, attempt.steps(residues), [one for same, one in shares if same == attempt]))
        shares.clear()
        return whole(attempt, residues)

    monkeypatch.setattr(Attempt, "share", share)
    monkeypatch.setattr(Attempt, "total", total)
    return sums


def test_the_sum_over_the_survivors_is_exact_in_integers(run, monkeypatch):
    sums = totals(monkeypatch)
    run(down("alone", range(3, 10)))
    assert [len(shares) for _, _, shares in sums] == [5, 5, 4, 4, 4, 4]
    for attempt, steps, shares in sums:
        half = 1 << (attempt.width - 1)
        whole = sum(np.asarray(share, dtype=object).ravel() for share in shares)
        np.testing.assert_array_equal(steps, [(int(one) + half) % (2 * half) - half for one in whole])


def test_attempts_are_counted_as_the_ledgers_have_them(run):
    said = []
    result, room = run(down("alone", [3]), said=said)
    assert {(t, attempt): peers for _, t, attempt, peers in room.attempts if t == 3} == {
        (3, 0): tuple(EVERYBODY), (3, 1): ("east", "mid", "south", "west"),
    }  # fmt: skip
    told = "asks 4 agents, 1 repetition left: no words came from north (no answer came in time)"
    assert any(told in line for line in said)
    assert result.summary["repetitions"] == {"used": 1, "declared": 2}
    others = [(1, 0), (2, 0), (3, 0), (3, 1), (4, 0), (5, 0), (6, 0)]
    found = paid(room)
    assert found == {"north": [(1, 0), (2, 0), (5, 0), (6, 0)]} | dict.fromkeys(set(EVERYBODY) - {"north"}, others)
    for service in room.services.values():
        for name, ledger in service._ledgers.items():
            told = result.summary["took_part"][name]
            assert told["released"] == len(found[name])
            assert told["epsilon"] == pytest.approx(ledger.show()[0].epsilon)
            ledger.verify(result.summary["ledger_heads"][name])
            assert [run.state for run in ledger.runs()] == ["ended"]
            assert told["epsilon_at_most"] <= 1.0
    north, east = result.summary["took_part"]["north"], result.summary["took_part"]["east"]
    assert (north["answered"], north["missed"], north["dropped"], north["asked"]) == (4, 2, 1, 5)
    assert (east["answered"], east["missed"], east["spoiled"], east["asked"]) == (6, 0, 1, 7)


def test_an_agent_that_comes_back_takes_part_from_the_next_round_on(run):
    said = []
    _, room = run(down("two", [2, 3]), said=said)
    sets = {t: peers for _, t, _, peers in room.attempts}
    assert [len(sets[t]) for t in range(1, 7)] == [5, 3, 3, 5, 5, 5]
    assert any("agent mid is back" in line for line in said)


def test_agents_that_drop_out_again_and_again_wait_longer_each_time(run):
    result, _ = run(down("alone", [2, 4, 6, 7, 8, 9, 10, 12]), rounds=14, repetitions=10)
    assert result.summary["took_part"]["north"]["dropped"] < 5
    assert result.summary["repetitions"]["used"] == result.summary["took_part"]["north"]["dropped"]


def test_nobody_is_let_in_again_where_it_could_cost_a_repetition_that_there_is_not(run):
    def late(way, who, header):
        return [59.9] if way == "from" and who == "alone" and header.get("t") == 2 else [2 * QUICK]

    result, room = run(late, repetitions=1)
    assert paid(room)["north"] == [(1, 0), (2, 0)]
    told = result.summary["took_part"]["north"]
    assert (told["missed"], told["released"], told["asked"]) == (5, 1, 2)
    assert run(late, name="d")[0].summary["took_part"]["north"]["missed"] == 1  # a late answer is a sign of life


def test_a_run_without_repetitions_left_is_suspended_and_asks_the_same_again(run):
    away = [True]

    def fate(_way, who, header):
        return [] if away[0] and who == "alone" and header.get("t") == 3 else [QUICK]

    with pytest.raises(Suspended, match=r"no repetition is left of the 0 .*the same attempt again"):
        run(fate, repetitions=0)
    away[0] = False
    result, room = run(room=run.room, repetitions=0)
    assert all(rounds == [(t, 0) for t in range(1, ROUNDS + 1)] for rounds in paid(room).values())
    assert result.summary["took_part"]["east"]["asked"] == ROUNDS


def test_a_refusal_without_repetitions_left_does_not_promise_that_resuming_helps(run):
    with pytest.raises(Suspended, match=r"no repetition is left of the 0.*refuse it again a new run is needed"):
        run(change=forged(only("alone"), _refusal), repetitions=0)


def test_too_few_agents_suspend_the_run_and_the_same_attempt_is_asked_again_free_of_cost(run):
    away = [True]

    def fate(_way, who, header):
        return [] if away[0] and who != "pair" and header.get("t") == 2 else [QUICK]

    with pytest.raises(Suspended, match="a sum with 1 colluding agent needs 3, and 2 answered"):
        run(fate)
    assert "needs 3" in status.read(run.room.where)["reason"]
    away[0] = False
    result, room = run(room=run.room)
    assert all(rounds == [(t, 0) for t in range(1, ROUNDS + 1)] for rounds in paid(room).values())
    assert result.summary["repetitions"]["used"] == 0


def test_missing_agents_suspend_the_run_where_the_rule_is_to_stop_or_they_miss_too_many_rounds(run):
    with pytest.raises(Suspended, match='missing = "stop"'):
        run(down("alone", [3]), faults=FAULTS + 'missing = "stop"')
    with pytest.raises(Suspended, match="more than 1 round in a row without a sign of life of north"):
        run(absent("alone", range(3, 9)), faults=FAULTS.replace("100\n", "1\n"), name="d")


def absent(site, rounds):
    """A fate: nothing at all reaches the site, or comes from it, from the first of these rounds to the last."""
    now = [0]

    def fate(_way, who, header):
        now[0] = header.get("t", now[0])
        return [] if who == site and now[0] in rounds else [QUICK]

    return fate


def test_a_run_that_was_suspended_for_an_absent_agent_goes_on_when_it_is_back(run):
    away, once = [True], FAULTS.replace("100\n", "1\n")
    gone = absent("alone", range(3, 20))

    def fate(way, who, header):
        return gone(way, who, header) if away[0] else [3.0 if who == "alone" else QUICK]  # slower than all others

    for start in ({"fate": fate}, {}):
        with pytest.raises(Suspended, match=r"a sign of life of north.*raise faults\.most_missed"):
            run(faults=once, rounds=10, repetitions=3, room=run.room if not start else None, **start)
    away[0] = False
    result, room = run(room=run.room, faults=once, rounds=10, repetitions=3)
    told = result.summary["took_part"]["north"]
    assert (told["missed"], told["in_a_row"]) == (2, 0)
    assert result.summary["repetitions"]["used"] == 1
    assert all(len(set(rounds)) == len(rounds) <= 11 for rounds in paid(room).values())


USUAL = FAULTS.replace("most_missed = 100\n", "")


def test_an_agent_that_we_keep_out_is_not_away(run):
    """A default run outlives one missed round, its last repetition, one refusal, and an agent that waits."""
    said = []
    result, _ = run(down("alone", [2]), faults=USUAL, rounds=10, repetitions=1, said=said)
    told = result.summary["took_part"]["north"]
    assert (told["missed"], told["in_a_row"]) == (9, 0)
    assert sum("agent north is back, and stays out: no repetition is left" in line for line in said) == 1
    refused, _ = run(change=forged(only("pair", t=2), _refusal), faults=USUAL, rounds=12, repetitions=3, name="d")
    assert refused.summary["took_part"]["south"]["missed"] == 11
    flapping, _ = run(down("alone", [2, 4, 7, 12]), faults=USUAL, rounds=22, repetitions=8, name="e")
    assert flapping.summary["took_part"]["north"]["dropped"] == 4


def test_a_run_without_repetitions_left_is_still_suspended_where_an_agent_is_away_for_good(run):
    with pytest.raises(Suspended, match="more than 5 rounds in a row without a sign of life of north"):
        run(absent("alone", range(2, 20)), faults=USUAL, rounds=10, repetitions=1)
    result, _ = run(faults=FAULTS, rounds=10, repetitions=1, room=run.room)  # most_missed was raised
    assert result.summary["took_part"]["north"]["in_a_row"] == 9


@pytest.mark.parametrize("seed", range(4))
def test_messages_that_are_lost_doubled_and_out_of_order_change_nothing(run, monkeypatch, seed):
    monkeypatch.setattr(Attempt, "share", seeded)
    rng = random.Random(seed)

    def fate(_way, _site, _header):
        return [rng.expovariate(1 / 8) for _ in range(rng.choice([0, 1, 1, 1, 2, 3]))]

    calm, _ = run(name="calm")
    stormy, room = run(fate, faults=FAULTS.replace("60.0", "100000.0"))
    np.testing.assert_array_equal(calm.w, stormy.w)
    assert all(rounds == [(t, 0) for t in range(1, ROUNDS + 1)] for rounds in paid(room).values())


class Killed(BaseException):
    """What a kill does: no handler runs, as far as we can tell."""


@pytest.mark.parametrize("seed", range(8))
def test_kills_and_a_storm_together_ask_each_attempt_of_one_set_and_count_every_release(run, seed):
    rng, left = random.Random(seed), [0]

    def fate(_way, _site, header):
        left[0] -= 1
        if left[0] == 0 and header["kind"] not in ("close", "closed"):
            raise Killed
        return [rng.expovariate(1 / 10) for _ in range(rng.choice([0, 1, 1, 1, 2]))]

    faults, rounds, again = "deadline = 40.0\nresend = 15.0\nstart_deadline = 100000.0\nmost_missed = 1000\n", 8, 60
    result, kills, room = None, 0, None
    while result is None:
        left[0] = rng.randrange(20, 120)
        try:
            result, _ = run(fate, rounds=rounds, faults=faults, repetitions=again, room=room)
        except (Killed, Suspended) as error:
            kills += isinstance(error, Killed)
        room = run.room
    assert kills
    assert len(list((room.where / "runs").iterdir())) == 1
    sets = {}
    for _, t, attempt, peers in room.attempts:
        assert sets.setdefault((t, attempt), peers) == peers
        assert len(peers) >= 3
    assert len(sets) <= rounds + result.summary["repetitions"]["used"] <= rounds + again
    for name, rounds_of in paid(room).items():
        told = result.summary["took_part"][name]
        assert told["answered"] + told["missed"] == rounds
        assert told["released"] <= len(rounds_of) <= told["asked"]  # a kill hides no question
        assert told["epsilon"] <= told["epsilon_at_most"] <= 1.0


@pytest.mark.parametrize("seed", range(6))
def test_a_coordinator_that_is_killed_anywhere_goes_on_to_the_same_model_and_nobody_pays_twice(run, monkeypatch, seed):
    monkeypatch.setattr(Attempt, "share", seeded)
    fate = down("alone", range(3, 10))
    calm, quiet = run(fate, name="calm", repetitions=1)  # so that nobody comes back, sooner or later
    rng, left = random.Random(seed), [0]

    def mortal(way, who, header):
        left[0] -= 1
        if left[0] == 0 and header["kind"] not in ("close", "closed"):
            raise Killed
        return fate(way, who, header)

    whole = RemoteEngine.save

    def save(engine, r):
        if rng.random() < 0.2:
            raise Killed
        return whole(engine, r)

    monkeypatch.setattr(RemoteEngine, "save", save)
    result, kills, room = None, 0, None
    while result is None:
        left[0] = rng.randrange(1, 40)
        try:
            result, _ = run(mortal, room=room, repetitions=1)
        except Killed:
            kills += 1
            run.room.events.clear()  # answers to a process that is gone
        room = run.room
    assert kills
    np.testing.assert_array_equal(calm.w, result.w)
    assert paid(room) == paid(quiet)
    assert result.summary["took_part"] == calm.summary["took_part"]


def forged(where, change):
    """A change of what one site answers to a question, where `where` says so of site and request."""

    def forge(site, header, reply):
        if header["kind"] == "ask" and where(site, header):
            for one in change(read(*reply, REPLIES)):
                yield written(one)
        else:
            yield reply

    return forge


def only(site, t=3, attempt=0):
    return lambda who, header: (who, header["t"], header["attempt"]) == (site, t, attempt)


def test_garbage_spoils_one_attempt_and_no_budget_beyond_it(run):
    rng = np.random.default_rng(0)

    def garbage(answer):
        top = int(answer.words.max()).bit_length() - 1
        yield replace(answer, words=rng.integers(0, 1 << top, answer.words.shape, dtype=np.uint64))

    with pytest.raises(Suspended, match=r"somebody has sent garbage.*after that 1 repetition can"):
        run(change=forged(only("pair"), garbage))
    result, room = run(room=run.room)
    assert result.summary["repetitions"]["used"] == 1
    expected = sorted([(t, 0) for t in range(1, ROUNDS + 1)] + [(3, 1)])
    assert all(rounds == expected for rounds in paid(room).values())
    assert all(told["spoiled"] == 1 for told in result.summary["took_part"].values())


def test_garbage_without_a_repetition_left_asks_for_a_new_run(run):
    def garbage(answer):
        yield replace(answer, words=answer.words[:, ::-1].copy())

    with pytest.raises(Suspended, match="no repetition is left"):
        run(change=forged(only("pair"), garbage), repetitions=0)


def _another(answer):
    yield replace(answer, given=tuple(replace(one, agent="north") for one in answer.given[:1]), words=answer.words[:1])


def _both(answer):
    yield replace(answer, refused=(answer.given[0].agent,))


def _narrow(answer):
    yield replace(answer, words=answer.words[:, :-1].copy())


def _fewer(answer):
    yield replace(answer, words=answer.words[:1])


def _wide(answer):
    yield replace(answer, words=np.full_like(answer.words, 2**64 - 1))


def _later(answer):
    yield replace(answer, attempt=answer.attempt + 1)


def _refusal(answer):
    yield Refusal(answer.run)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_another, "agents that are not its own"), (_both, "twice for one"), (_narrow, "an array of shape"),
        (_fewer, "an array of shape"), (_wide, "words of more than"), (_later, "a round that it was not asked"),
        (_refusal, "it refuses to answer"),
    ],
)  # fmt: skip
def test_an_answer_that_is_none_is_named_and_the_others_go_on_without_that_site(run, change, said):
    lines = []
    result, room = run(change=forged(only("pair"), change), said=lines)
    assert any("site pair does not answer" in line and said in line for line in lines)
    sets = {(t, attempt): peers for _, t, attempt, peers in room.attempts}
    assert sets[3, 1] == ("mid", "north", "west")
    assert all(len(sets[t, 0]) == 3 for t in (4, 5, 6))  # who refused is asked again by a new process alone
    told = result.summary["took_part"]
    assert (told["south"]["refused"], told["south"]["answered"], told["mid"]["answered"]) == (1, 2, ROUNDS)


@pytest.mark.parametrize("change", [_wide, _later, _refusal, None])
def test_one_message_that_is_no_answer_costs_nobody_a_repetition(run, change):
    left = [ASKED_AGAIN]

    def forge(site, header, reply):
        if header["kind"] == "ask" and header["t"] == 3 and site == "pair" and left[0]:
            left[0] -= 1
            for one in change(read(*reply, REPLIES)) if change else ():
                yield written(one)
            if change is None:
                yield {"kind": "nonsense"}, b""
        else:
            yield reply

    result, room = run(change=forge)
    assert left == [0]
    assert result.summary["repetitions"]["used"] == 0
    assert all(rounds == [(t, 0) for t in range(1, ROUNDS + 1)] for rounds in paid(room).values())


def test_a_site_that_lies_about_an_agent_that_refuses_loses_that_agent_alone(run):
    def lie(answer):
        yield replace(answer, given=answer.given[:1], refused=(answer.given[1].agent,), words=answer.words[:1])

    result, room = run(change=forged(only("pair"), lie))
    told = result.summary["took_part"]
    assert sorted((told["south"]["answered"], told["east"]["answered"])) == [2, ROUNDS]
    (liar,) = (name for name in ("south", "east") if told[name]["answered"] == 2)
    assert len(paid(room)[liar]) == told[liar]["asked"] == 3  # what was paid and withheld is counted as asked
    assert told[liar]["released"] == 2


def test_words_of_a_failed_attempt_are_used_in_no_later_one(run, monkeypatch):
    """North is missing in the first attempt at round 3, an agent of the pair in the second: three are left."""

    def withheld(answer):
        yield replace(answer, given=answer.given[:1], refused=(answer.given[1].agent,), words=answer.words[:1])

    sums = totals(monkeypatch)
    result, room = run(down("alone", [3]), change=forged(only("pair", attempt=1), withheld))
    assert result.summary["repetitions"]["used"] == 2
    assert [len(peers) for _, t, attempt, peers in sorted(set(room.attempts)) if (t, attempt) == (3, 2)] == [3, 3]
    assert [len(shares) for _, _, shares in sums][:3] == [5, 5, 3]


def test_words_of_an_earlier_attempt_are_not_taken_for_those_of_a_later_one(run, monkeypatch):
    sums = totals(monkeypatch)
    kept = []

    def replayed(site, header, reply):
        if header["kind"] == "ask" and site == "pair" and header["t"] == 3:
            kept.append(reply)
            if header["attempt"] == 1:
                yield kept[0]
        yield reply

    result, _ = run(down("alone", [3]), change=replayed)
    assert len(kept) >= 2
    assert result.summary["repetitions"]["used"] == 1
    assert [len(shares) for _, _, shares in sums] == [5, 5, 4, 4, 5, 5]


def test_an_attempt_that_everybody_refuses_is_skipped_once(run):
    result, room = run(change=forged(lambda _, header: (header["t"], header["attempt"]) == (3, 0), _refusal))
    assert result.summary["repetitions"]["used"] == 1
    assert {peers for _, t, attempt, peers in room.attempts if (t, attempt) == (3, 1)} == {tuple(EVERYBODY)}
    with pytest.raises(Suspended, match="needs 3, and 0 answered"):
        run(change=forged(lambda _, header: header["t"] == 3, _refusal), name="d", repetitions=9)
    assert {attempt for _, t, attempt, _ in run.room.attempts if t == 3} == {0, 1}


def test_a_coordinator_with_an_old_checkpoint_goes_on_with_new_attempts(run, quick):
    """The set of the next round is in the checkpoint: one that is lost makes ledgers refuse, and costs repetitions."""
    away, kept = [True], {}

    def fate(_way, who, header):
        if header.get("t") == 3 and not kept:
            (path,) = (quick / "c" / "c" / "runs").glob("*/checkpoint*")
            kept[path] = path.read_bytes()
        if header.get("t") == 5 and away[0]:
            raise Killed
        return [] if away[0] and who == "alone" and header.get("t") == 3 else [QUICK]

    with pytest.raises(Killed):
        run(fate, repetitions=4)
    away[0] = False
    run.room.events.clear()
    for path, content in kept.items():
        path.write_bytes(content)
    with pytest.raises(Suspended, match=r"it refuses to answer.*a new attempt"):
        run(room=run.room, repetitions=4)
    result, room = run(room=run.room, repetitions=4)
    assert result.summary["rounds"] == ROUNDS
    assert all(len(set(rounds)) == len(rounds) <= ROUNDS + 4 for rounds in paid(room).values())


def test_a_service_that_is_started_again_joins_and_meets_again_and_costs_nothing(run, quick):
    restarted = []

    def change(site, header, reply):
        if header["kind"] == "ask" and header["t"] == 3 and site == "pair" and not restarted:
            restarted.append(True)
            room = run.room
            room.services["pair"].close()
            room.services["pair"] = services(quick / "c")["pair"]
            return
        yield reply

    result, room = run(change=change)
    assert restarted
    assert result.summary["repetitions"]["used"] == 0
    assert all(rounds == [(t, 0) for t in range(1, ROUNDS + 1)] for rounds in paid(room).values())


def test_a_service_that_is_started_again_between_join_and_meet_joins_again(run):
    once = []

    def change(site, header, reply):
        if header["kind"] == "meet" and site == "pair" and not once:
            once.append(True)
            reply = written(Unjoined(header["run"]))
        yield reply

    assert run(change=change)[0].summary["rounds"] == ROUNDS
    assert once


def test_keys_end_with_the_run_and_what_the_coordinator_keeps_of_them_is_public(run, quick):
    _, room = run()
    assert not list(quick.rglob("*.runkey"))
    (path,) = (room.where / "runs").glob(f"*/{FILE}")
    told = path.read_text()
    assert all(who in told for who in EVERYBODY)
    for file in quick.rglob("keys/*.key"):
        assert file.read_text().strip() not in told


def test_a_site_that_pins_other_keys_stops_the_run_before_anything_is_released(run, quick):
    room = Room(services(quick / "c"))
    room.services["pair"].close()
    file = quick / "c" / "pair" / "site.toml"
    line = next(line for line in file.read_text().splitlines() if line.startswith("north = "))
    file.write_text(file.read_text().replace(line, f'north = "{"ab" * 32}"'))
    room.services["pair"] = Service(read_site(file))
    with pytest.raises(IncompatibleError, match="site pair does not take the keys of the others"):
        run(room=room)
    assert not any(paid(room).values())
    close(room)


def test_status_says_who_is_in_the_set_and_what_is_left(run):
    _, room = run(down("alone", [3]))
    told = status.read(room.where)
    assert told["sum"] == {"set": EVERYBODY, "attempt": 0, "repeated": 1, "repetitions_left": 1}
    said = "\n".join(status.lines(told))
    assert "secure sum: attempt 0 over 5 agents (east, mid, north, south, west); 1 repetition used, 1 left" in said
    assert "answered 6, missed 0, spoiled 1, refused 0" in said


def test_a_federation_pays_for_one_repetition_in_ten_rounds_where_nobody_says_otherwise(run):
    _, room = run(rounds=11, repetitions=None)
    assert spec_of(room.where).privacy.repetitions == 2


def test_a_site_that_sends_no_keys_stops_the_run_before_anything_is_released(run):
    def change(_site, header, reply):
        answer = read(*reply, REPLIES)
        yield written(replace(answer, signed=answer.signed[1:])) if header["kind"] == "join" else reply

    with pytest.raises(IncompatibleError, match="does not send a key for each of its agents"):
        run(change=change)
    assert not any(paid(run.room).values())


def test_a_site_that_never_meets_does_not_keep_the_coordinator_for_ever(run):
    def change(_site, header, reply):
        yield written(Unjoined(header["run"])) if header["kind"] == "meet" else reply

    with pytest.raises(Suspended, match="did not stay long enough to meet the others"):
        run(change=change)


def test_a_site_that_does_not_hear_of_the_end_keeps_nobody_waiting(run):
    def fate(_way, who, header):
        return [] if who == "alone" and header["kind"] == "close" else [QUICK]

    result, room = run(fate, said=(said := []))
    assert result.summary["rounds"] == ROUNDS
    assert room.now < 60
    (path,) = (room.where / "runs").iterdir()
    assert ClosingState.read(path).closed == ("pair", "two")
    assert not any("site alone has closed" in line for line in said)


def left_of_keys(quick):
    return sorted(path.parent.parent.name for path in quick.rglob("*.runkey"))


@pytest.mark.parametrize("again", ["the same run, by a process that finds it finished", "another run"])
def test_a_coordinator_that_is_killed_before_the_end_was_told_tells_it_when_it_starts_again(run, quick, again):
    dead = [True]

    def fate(_way, _who, header):
        if dead[0] and header["kind"] == "close":
            raise Killed
        return [QUICK]

    with pytest.raises(Killed):
        run(fate, repetitions=0, rounds=2)
    room, said = run.room, []
    assert left_of_keys(quick) == ["alone", "pair", "pair", "two", "two"]
    dead[0] = False
    room.events.clear()
    if again == "another run":
        run(room=room, repetitions=0, rounds=2, said=said)
        assert len(list((room.where / "runs").iterdir())) == 2
    else:
        close_all(room.where, room, lambda text, **_: said.append(text), room.clock)
    assert left_of_keys(quick) == []
    assert all(set(ClosingState.read(path).closed) == set(room.services) for path in (room.where / "runs").iterdir())
    assert sum("has closed the run" in line for line in said) == (6 if again == "another run" else 3)
    close_all(room.where, None, clock=room.clock)  # nothing is left to send


def test_a_site_that_was_down_at_the_end_is_told_of_it_before_the_next_run(run, quick):
    deaf = [True]

    def fate(_way, who, header):
        return [] if deaf[0] and who == "alone" and header["kind"] == "close" else [QUICK]

    _, room = run(fate, repetitions=0, rounds=2)
    assert left_of_keys(quick) == ["alone"]
    deaf[0] = False
    ((path),) = (room.where / "runs").iterdir()
    (path / "federation.json").rename(quick / "kept")
    said = []
    close_all(room.where, room, lambda text, **_: said.append(text), room.clock)
    assert any("cannot be closed" in line for line in said)
    (quick / "kept").rename(path / "federation.json")
    close_all(room.where, room, clock=room.clock)
    assert left_of_keys(quick) == []


@pytest.mark.parametrize("reply", [Refusal, Unjoined])
def test_a_site_that_does_not_say_that_it_has_closed_has_not(run, reply):
    def change(site, header, answer):
        yield written(reply(header["run"])) if header["kind"] == "close" and site == "pair" else answer

    _, room = run(change=change, rounds=2, said=(said := []))
    (path,) = (room.where / "runs").iterdir()
    assert ClosingState.read(path).closed == ("alone", "two")
    assert any("site pair did not close the run" in line for line in said)
    assert not any("site pair has closed" in line for line in said)


def test_keys_that_are_damaged_are_named(run):
    with pytest.raises(Suspended):
        run(down("alone", [3]), repetitions=0)
    (path,) = (run.room.where / "runs").glob(f"*/{FILE}")
    path.write_text("[{}]")
    with pytest.raises(RunDirectoryError, match=r"closing\.json is damaged"):
        run(room=run.room, repetitions=0)


def test_a_flapping_agent_waits_twice_as_long_each_time():
    once = SumAttendance.zero(2).failed(3, np.zeros(2, bool), np.array([True, False]), np.zeros(2, bool))
    assert once.may_return(4).tolist() == [True, True]
    twice = once.failed(4, np.zeros(2, bool), np.array([True, False]), np.zeros(2, bool))
    assert twice.may_return(5).tolist() == [False, True]
    assert twice.may_return(6).tolist() == [True, True]


def test_a_run_that_counts_on_fewer_colluding_agents_than_a_site_has_says_so_in_its_log(run):
    lines = []
    run(rounds=1, said=lines)
    assert any("which know all of each other, and privacy.colluding = 1 counts on fewer" in line for line in lines)


def going_back(run, kept):
    """A fate that puts back the ledger and the witness of north between its answers to rounds 1 and 4."""

    def fate(way, who, header):
        if (way, who, header.get("t"), header.get("kind")) == ("to", "alone", 4, "ask") and "early" in kept:
            one, early = run.room.services["alone"], kept.pop("early")
            one.close()
            for path, data in early.items():
                path.write_bytes(data)
            run.room.services["alone"] = Service(one.site)
        if (way, who, header.get("t")) == ("from", "alone", 1):
            site = run.room.services["alone"].site
            account = [site.ledger / "north.ledger", site.witness / "north.witness"]
            kept.setdefault("early", {path: path.read_bytes() for path in account})
        return [QUICK]

    return fate


def test_a_ledger_that_went_back_with_its_witness_during_a_run_is_found_by_the_receipts_of_the_run(run):
    """The service is asked to join again, and is shown how far its ledger had come. The others go on."""
    result, room = run(going_back(run, {}))
    assert result.summary["took_part"]["north"]["released"] == 3
    assert result.summary["took_part"]["south"]["missed"] == 0
    site = room.services["alone"].site
    with pytest.raises(LedgerCorrupt, match="does not have the entry"):
        Service(site)
    room.services.pop("alone").close()


def test_a_ledger_that_went_back_with_its_witness_during_a_run_is_found_by_the_numbers_of_the_run(
    run, capsys, monkeypatch
):
    """A service that is shown no receipt cannot notice that both went back. The run ends well, with more releases than
    the ledger has.
    """
    monkeypatch.setattr(Join, "to", lambda self, *_: self)
    result, room = run(going_back(run, {}))
    assert paid(room)["north"] == [(1, 0), (4, 0), (5, 0), (6, 0)]
    assert result.summary["took_part"]["north"]["released"] == ROUNDS
    (path,) = (room.where / "runs").iterdir()
    for who, status_of in (("north", 1), ("south", 0)):
        site = "alone" if who == "north" else "pair"
        ledger = room.services[site].site.ledger / f"{who}.ledger"
        assert main(["ledger", "verify", str(ledger), "--run", str(path)]) == status_of
    out, err = capsys.readouterr()
    assert "has 4 releases of run" in err
    assert "but the server has 6, and asked for at most 6. If the ledger has too few, it is an older copy" in err
    assert "6 releases of run" in " ".join(out.split())
