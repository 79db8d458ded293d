"""Messages that are lost, late, doubled or forged, processes that are killed: what a run makes of them."""

import copy
import random
import tempfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from tacit.cli import main
from tacit.errors import Suspended
from tacit.federation import status
from tacit.federation.individual_rounds import IndividualRounds
from tacit.federation.messages import Refusal, written
from tacit.federation.remote_engine import RemoteEngine
from tacit.privacy import lattice
from tacit.run.directory import RunDirectory
from tests.federation import sites as small
from tests.federation.room import QUICK, SITES, Room, close, folder, go, seeded, services

FAULTS = "deadline = 60.0\nresend = 10.0\nstart_deadline = 1000.0\n"
ROUNDS = 6


@pytest.fixture
def quick():
    """A place that is quick to sync."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as place:
        yield Path(place)


def trained(quick, name="c", faults=FAULTS, fate=None, change=None, rounds=ROUNDS):
    """A run over a room, and the room."""
    room = Room(services(quick / name), **({"fate": fate} if fate else {}), change=change)
    said = []
    try:
        where = folder(quick / name / "c", rounds, faults)
        return go(where, room, lambda text, **_: said.append(text)), room, said
    finally:
        close(room)


def asks(header, t):
    return header["kind"] in ("ask", "answer") and header["t"] == t


def ledgers(room):
    return room.paid


def once(room):
    for rounds in ledgers(room).values():
        assert len(set(rounds)) == len(rounds)


@pytest.mark.parametrize("seed", range(6))
def test_messages_that_are_lost_doubled_and_out_of_order_change_nothing(quick, monkeypatch, seed):
    monkeypatch.setattr(lattice, "release", seeded)
    rng = random.Random(seed)

    def fate(_way, _site, _header):
        return [rng.expovariate(1 / 8) for _ in range(rng.choice([0, 1, 1, 1, 2, 3]))]

    calm, *_ = trained(quick, "calm")
    stormy, room, _ = trained(quick, "stormy", FAULTS.replace("60.0", "100000.0"), fate)
    np.testing.assert_array_equal(calm.w, stormy.w)
    assert all(rounds == list(range(1, ROUNDS + 1)) for rounds in ledgers(room).values())


@pytest.mark.parametrize("seed", range(8))
def test_a_run_ends_and_no_answer_is_paid_twice_whatever_is_lost_or_late(quick, seed):
    rng = random.Random(seed)

    def fate(_way, _site, _header):
        return [rng.expovariate(1 / 40) for _ in range(rng.choice([0, 0, 1, 1, 2]))]

    faults = "deadline = 60.0\nresend = 15.0\nstart_deadline = 100000.0\nmost_missed = 1000\n"
    room, where, result = Room(services(quick), fate), folder(quick / "c", 12, faults), None
    while result is None:
        with suppress(Suspended):  # of a round in which nobody was heard
            result = go(where, room)
    close(room)
    once(room)
    for name, rounds in ledgers(room).items():  # nothing was taken that is not on record, and nothing is paid twice
        told = result.summary["took_part"][name]
        assert told["answered"] + told["missed"] == 12
        assert told["released"] <= len(rounds) <= 12
        assert told["released"] == told["answered"] + told["late"]


def test_a_site_that_is_down_for_a_while_is_missed_and_comes_back(quick):
    def fate(_way, site, header):
        return [] if site == "pair" and any(asks(header, t) for t in (3, 4)) else [QUICK]

    result, room, said = trained(quick, fate=fate, rounds=9)
    told = result.summary["took_part"]
    assert told["north"]["answered"] == 9
    assert told["south"]["missed"] >= 2
    assert told["south"]["answered"] == 9 - told["south"]["missed"]
    assert any("goes on without agent south" in line for line in said)
    assert ledgers(room)["south"][-1] == 9
    once(room)


def test_a_late_answer_is_taken_and_the_site_takes_part_in_the_next_round(quick):
    def fate(way, site, header):
        return [70.0] if site == "pair" and way == "from" and asks(header, 2) else [QUICK]

    result, room, _ = trained(quick, fate=fate)
    told = result.summary["took_part"]["east"]
    assert (told["answered"], told["missed"], told["late"]) == (ROUNDS - 2, 2, 1)
    assert ledgers(room)["east"] == [1, 2, 4, 5, 6]
    assert told["released"] == 5


def test_missing_agents_suspend_the_run_where_the_rule_is_to_stop(quick):
    def fate(_way, site, header):
        return [] if site == "pair" and asks(header, 3) else [QUICK]

    with pytest.raises(Suspended, match=r'round 3: missing = "stop", and no answer came from south, east'):
        trained(quick, faults=FAULTS + 'missing = "stop"', fate=fate)


def test_a_run_whose_answers_stand_for_no_later_ones_stops_for_missing_agents_unless_told_otherwise(quick):
    def fate(_way, site, header):
        return [] if site == "pair" and asks(header, 3) else [QUICK]

    at_z = '"algorithm.order" = ["zwd", "wzd"]\n"algorithm.linearize_at" = ["w", "z"]'
    room = Room(services(quick, agree=at_z), fate)
    where = folder(quick / "c", ROUNDS, FAULTS, '[algorithm]\norder = "wzd"\nlinearize_at = "z"\n')
    with pytest.raises(Suspended, match=r'round 3: missing = "stop", and no answer came from south, east'):
        go(where, room)
    room.fate = lambda *_: [QUICK]
    assert go(where, room).summary["took_part"]["east"]["answered"] == ROUNDS
    close(room)
    once(room)


def test_an_agent_that_misses_too_many_rounds_suspends_the_run_which_goes_on_later(quick):
    down = [True]

    def fate(_way, site, header):
        return [] if down[0] and site == "pair" and header["kind"] == "ask" and header["t"] > 2 else [QUICK]

    room = Room(services(quick), fate)
    where = folder(quick / "c", 8, FAULTS + "most_missed = 2")
    with pytest.raises(Suspended, match="round 5: more than 2 rounds in a row without south, east"):
        go(where, room)
    assert "more than 2 rounds" in status.read(where)["reason"]
    down[0] = False
    told = go(where, room).summary["took_part"]
    assert told["south"]["missed"] == 3  # 3, 4, and 5, in which its answer to 3 came
    assert told["south"]["late"] == 1
    close(room)
    once(room)


def test_nobody_answers_and_the_run_is_suspended(quick):
    with pytest.raises(Suspended, match="round 4: no agent has answered"):
        trained(quick, fate=lambda _way, _site, header: [] if asks(header, 4) else [QUICK])


def test_a_service_that_was_started_again_joins_again_and_pays_nothing_twice(quick, monkeypatch):
    monkeypatch.setattr(lattice, "release", seeded)
    calm, *_ = trained(quick, "calm")
    room, left = Room(services(quick)), {2, 5}

    def change(site, header, reply):
        if site == "pair" and header["kind"] == "ask" and header["t"] in left:
            left.remove(header["t"])
            room.services["pair"].close()  # it has answered, and dies before the answer has left
            room.services["pair"] = small.service(quick / "pair", SITES["pair"], name="pair")
        else:
            yield reply

    room.change = change
    result = go(folder(quick / "c", ROUNDS, FAULTS), room)
    np.testing.assert_array_equal(calm.w, result.w)
    close(room)
    assert all(rounds == list(range(1, ROUNDS + 1)) for rounds in ledgers(room).values())


class Killed(BaseException):
    """What a kill does: no handler runs, as far as we can tell."""


@pytest.mark.parametrize("seed", range(12))
def test_a_coordinator_that_is_killed_anywhere_goes_on_to_the_same_model(quick, monkeypatch, seed):
    monkeypatch.setattr(lattice, "release", seeded)
    calm, *_ = trained(quick, "calm")
    rng, room = random.Random(seed), Room(services(quick))
    where = folder(quick / "c", ROUNDS, FAULTS)
    left = [0]

    def mortal(owner, name):
        whole = getattr(owner, name)

        def dying(*given, **named):
            left[0] -= 1
            if left[0] == 0 and rng.random() < 0.5:
                raise Killed
            found = whole(*given, **named)
            if left[0] == 0:
                raise Killed
            return found

        monkeypatch.setattr(owner, name, dying)

    for owner, name in ((Room, "send"), (Room, "received"), (RunDirectory, "checkpoint"), (RunDirectory, "append"),
                        (RunDirectory, "finish"), (RemoteEngine, "save"), (IndividualRounds, "_conclude")):  # fmt: skip
        mortal(owner, name)
    result, kills = None, 0
    while result is None:
        left[0] = rng.randrange(1, 40)
        try:
            result = go(where, room)
        except Killed:
            kills += 1
            room.events.clear()  # answers to a process that is gone
    assert kills
    np.testing.assert_array_equal(calm.w, result.w)
    assert len(list((where / "runs").iterdir())) == 1
    close(room)
    assert all(rounds == list(range(1, ROUNDS + 1)) for rounds in ledgers(room).values())


@pytest.mark.parametrize("seed", range(6))
def test_kills_and_a_storm_together_pay_no_round_twice(quick, seed):
    rng, left = random.Random(seed), [0]

    def fate(_way, _site, _header):
        left[0] -= 1
        if left[0] == 0:
            raise Killed
        return [rng.expovariate(1 / 30) for _ in range(rng.choice([0, 1, 1, 2]))]

    room = Room(services(quick), fate)
    faults = "deadline = 60.0\nresend = 15.0\nstart_deadline = 100000.0\nmost_missed = 1000\n"
    where, result = folder(quick / "c", 8, faults), None
    while result is None:
        left[0] = rng.randrange(20, 80)
        try:
            result = go(where, room)
        except (Killed, Suspended):  # of a round in which nobody was heard
            continue
    close(room)
    once(room)
    for name, rounds in ledgers(room).items():
        told = result.summary["took_part"][name]
        assert told["released"] <= len(rounds) <= told["asked"]  # a kill hides no question
        assert told["epsilon"] <= room.priced[name] <= told["epsilon_at_most"]


def test_a_coordinator_that_starts_again_takes_the_late_answer_to_what_it_asked_before(quick):
    killed = [False]

    def fate(way, site, header):
        if site == "alone" and way == "to" and asks(header, 3) and not killed[0]:
            killed[0] = True
            raise Killed
        lost = site == "pair" and way == "from" and asks(header, 2) and not killed[0]
        return [] if lost else [QUICK]

    room, where = Room(services(quick), fate), folder(quick / "c", ROUNDS, FAULTS)
    with pytest.raises(Killed):
        go(where, room)
    result = go(where, room)
    close(room)
    told = result.summary["took_part"]["east"]
    assert (told["released"], told["late"], told["missed"]) == (5, 1, 2)
    assert ledgers(room)["east"] == [1, 2, 4, 5, 6]  # nothing that was paid for is lost


def test_a_coordinator_that_starts_again_gives_a_question_up_when_it_did_before(quick):
    """Else it would wait for an answer to an old question, having asked a newer one that it does not count."""
    killed, asked = [False], []

    def fate(way, site, header):
        if site == "pair" and header["kind"] == "ask":
            if header["t"] == 5 and way == "to" and not killed[0]:  # of round 2, given up after three deadlines
                killed[0] = True
                raise Killed
            asked.append(header["t"])
            return [] if header["t"] == 2 else [QUICK]
        return [QUICK]

    room, where = Room(services(quick), fate), folder(quick / "c", ROUNDS, FAULTS)
    with pytest.raises(Killed):
        go(where, room)
    before = set(asked)
    asked.clear()
    result = go(where, room)
    close(room)
    assert (before, set(asked)) == ({1, 2}, {5, 6})
    assert ledgers(room)["east"] == [1, 5, 6]
    assert result.summary["took_part"]["east"]["asked"] == 4


def test_an_answer_that_was_paid_for_and_lost_is_within_the_account(quick):
    def fate(way, site, header):
        return [] if (way, site) == ("from", "pair") and asks(header, ROUNDS) else [QUICK]

    result, room, _ = trained(quick, fate=fate)
    told = result.summary["took_part"]["east"]
    assert ledgers(room)["east"] == list(range(1, ROUNDS + 1))
    assert (told["released"], told["asked"]) == (ROUNDS - 1, ROUNDS)
    assert told["epsilon"] < room.priced["east"] == pytest.approx(told["epsilon_at_most"])


def test_of_an_agent_that_never_answered_no_head_is_noted(quick):
    def fate(_way, site, header):
        return [] if site == "pair" and header["kind"] in ("ask", "answer") else [QUICK]

    result, *_ = trained(quick, faults=FAULTS + "most_missed = 100\n", fate=fate)
    assert set(result.summary["ledger_heads"]) == {"north"}
    (run,) = (quick / "c" / "c" / "runs").iterdir()
    for name, site, code in (("north", "alone", 0), ("east", "pair", 2)):  # 1 would say that the ledger is damaged
        file = quick / "c" / site / "ledgers" / f"{name}.ledger"
        assert main(["ledger", "verify", str(file), "--run", str(run)]) == code


def forged(site, t, forge):
    """A change of what a site answers to the first question of round t."""

    def change(of, header, reply):
        if of == site and header["kind"] == "ask" and header["t"] == t:
            yield from forge(*copy.deepcopy(reply))
        else:
            yield reply

    return change


def with_number(value):
    def forge(header, body):
        numbers = np.frombuffer(body, "<f8").copy()
        numbers[0] = value
        yield header, numbers.tobytes()

    return forge


def with_shape(header, body):
    yield header | {"arrays": {"words": header["arrays"]["words"][::-1]}}, body


def with_names(*names):
    def forge(header, body):
        given = [one | {"agent": name} for one, name in zip(header["given"], names, strict=True)]
        yield header | {"given": given}, body

    return forge


def with_round(header, body):
    yield header | {"t": header["t"] + 1}, body


def with_run(header, body):
    yield header | {"run": "another"}, body


def as_both(header, body):
    yield header | {"refused": [header["given"][0]["agent"]]}, body


def as_refusal(header, _body):
    yield written(Refusal(header["run"]))


def as_nonsense(header, body):
    yield header | {"arrays": {"words": [2**30, 2**30, 4]}}, b""
    yield header | {"more": 1}, body
    yield {"kind": ["answer"]}, b"\0" * 9


FORGERIES = {
    "nan": (with_number(np.nan), {"south"}), "inf": (with_number(-np.inf), {"south"}),
    "huge": (with_number(1e200), {"south"}),
    "shape": (with_shape, {"south", "east"}), "another's name": (with_names("north", "east"), {"south", "east"}),
    "nobody's name": (with_names("south", "west"), {"south", "east"}),
    "one name twice": (with_names("south", "south"), {"south", "east"}), "round": (with_round, {"south", "east"}),
    "run": (with_run, {"south", "east"}), "given and refused": (as_both, {"south", "east"}),
    "refusal": (as_refusal, {"south", "east"}), "nonsense": (as_nonsense, {"south", "east"}),
}  # fmt: skip


@pytest.mark.parametrize("kind", FORGERIES)
def test_a_hostile_answer_is_refused_and_named_and_the_others_lose_nothing(quick, kind):
    forge, who = FORGERIES[kind]
    result, room, said = trained(quick, change=forged("pair", 3, forge))
    told = result.summary["took_part"]
    for name in ("north", "south", "east"):
        # a word of another run is no word of this one: the question is asked again for three deadlines
        assert told[name]["missed"] == (0 if name not in who else 3 if kind == "run" else 1)
    for name in who:
        assert any(name in line and "round 3" in line for line in said), said
    assert told["north"]["answered"] == ROUNDS
    once(room)


def test_a_word_of_another_site_does_not_count(quick):
    """Room says who sent a message; a site that answers in the name of another is heard as itself."""

    def change(site, header, reply):
        yield reply
        if site == "pair" and header["kind"] == "ask":
            forged_header = copy.deepcopy(reply[0])
            for one in forged_header["given"]:
                one["agent"] = "north"
            yield forged_header, reply[1]

    result, room, _ = trained(quick, change=change)
    assert result.summary["took_part"]["north"]["answered"] == ROUNDS
    assert ledgers(room)["north"] == list(range(1, ROUNDS + 1))
    once(room)


def test_refusals_count_and_give_no_reason_to_wait(quick):
    def forge(header, body):
        _, n = header["arrays"]["words"]
        yield header | {
            "given": header["given"][:1], "refused": ["east"], "arrays": {"words": [1, n]},
        }, body[: len(body) // 2]  # fmt: skip

    result, room, said = trained(quick, change=forged("pair", 3, forge))
    told = result.summary["took_part"]
    assert (told["east"]["refused"], told["east"]["missed"], told["south"]["missed"]) == (1, 1, 0)
    assert any("agent east: it refuses to answer" in line for line in said)
    assert room.now < 60
