"""Missing agents: which methods count them with their last answer, what that makes of the model, and late answers."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from tacit.admm.local_models import LocalModels
from tacit.errors import IncompatibleError, InputError, Suspended
from tacit.federation.remote_engine import RemoteEngine
from tacit.methods.gradient_descent import cooled
from tacit.methods.queried import Gathered
from tacit.privacy import lattice
from tacit.rounds import FADING
from tacit.run import build, deploy
from tests.federation import room as rooms
from tests.federation import summing
from tests.federation.one_process import spec_of, together

ROUNDS = 6
FAULTS = "deadline = 60.0\nresend = 10.0\nmost_missed = 100\n"
AGREE = '"algorithm.name" = ["objt", "fedgd", "onemessage", "outp-huang", "outp-plus"]\n'
LATE = 70.0  # seconds: longer than a deadline, shorter than two


def lost(*rounds):
    """A fate: no question of these rounds reaches the site of south and east."""

    def fate(way, site, header):
        gone = (way, site) == ("to", "pair") and header["kind"] == "ask" and header["t"] in rounds
        return [] if gone else [rooms.QUICK]

    return fate


def late(*rounds):
    """A fate: the answers of south and east to the questions of these rounds come in the round after."""

    def fate(way, site, header):
        slow = (way, site) == ("from", "pair") and header["kind"] == "answer" and header["t"] in rounds
        return [LATE if slow else rooms.QUICK]

    return fate


def down(*rounds):
    """A fate: the site of south and east hears nothing while the other one is asked these rounds."""
    now = [0]

    def fate(way, site, header):
        if (way, site, header["kind"]) == ("to", "alone", "ask"):
            now[0] = header["t"]
        return [] if (way, site) == ("to", "pair") and now[0] in rounds else [rooms.QUICK]

    return fate


# a fate -> for every round, the round of the last answer of south and east that the server has at its end
ABSENCES = {
    "for a round": (lambda: down(3), (1, 2, 2, 3, 5, 6)),  # asked again in round 4, it answers round 3
    "to the end": (lambda: lost(3, 6), (1, 2, 2, 2, 2, 2)),
    "from the start": (lambda: lost(1), (0, 0, 0, 4, 5, 6)),  # a question is given up after three rounds
    "late": (lambda: late(2, 5), (1, 1, 2, 4, 4, 5)),
}
ABSENT = pytest.mark.parametrize(("fate", "last"), ABSENCES.values(), ids=ABSENCES)


@pytest.fixture
def silent(monkeypatch):
    """No noise, so that a test knows every answer."""
    monkeypatch.setattr(lattice, "release", lambda value, *_: value)


@pytest.fixture
def trained(tmp_path):
    """What trains over a room; its services end with the test."""
    made = []

    def go(method, fate=rooms.fate, name="c", faults=FAULTS, rounds=ROUNDS, values=None, room=None):
        values = values or {}
        if room is None:
            agree = AGREE + "".join(f'"{key}" = {toml_of(value)}\n' for key, value in values.items())
            room = rooms.Room(rooms.services(tmp_path / name, agree=agree), fate)
            made.append(room)
        asked: dict[str, str] = {}
        for key, value in {"algorithm.name": method, **values}.items():
            section, _, own = key.partition(".")
            asked[section] = asked.get(section, f"[{section}]\n") + f"{own} = {toml_of(value)}\n"
        go.room, go.where = room, rooms.folder(tmp_path / name / "c", rounds, faults, "".join(asked.values()))
        return rooms.go(go.where, room)

    yield go
    for room in made:
        rooms.close(room)


def toml_of(value) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def known(trained):
    """The setup of a run, and what each agent answers at w without noise."""
    spec = spec_of(trained.where)
    federation = build.transformed(spec, together(trained.room))
    setup = build.setup(spec, federation)
    agreements = zip(setup.deployment.agreements, federation.shards, strict=True)
    values = [deploy.queries_of(own, shard)[0].value for own, shard in agreements]
    return setup, lambda w: np.stack([value({"point": w}) for value in values])


@ABSENT
@pytest.mark.usefixtures("silent")
def test_gradient_descent_counts_a_missing_agent_with_its_last_gradient_halved_every_round(trained, fate, last):
    result = trained("fedgd", fate())
    setup, gradient = known(trained)
    method, problem = setup.hosted.method, setup.problem
    w, of = [np.zeros(setup.shape)], []
    for t in range(1, ROUNDS + 1):
        of.append(gradient(w[-1]))
        north, others = of[-1][0], (last[t - 1] > 0) * FADING ** (t - last[t - 1]) * of[last[t - 1] - 1][1:]
        slope = north + others.sum(0) + problem.beta * problem.regularizer.gradient(w[-1])
        w.append(w[-1] - cooled(method.step, ROUNDS, t) * slope)
    np.testing.assert_allclose(result.w, w[-1], rtol=1e-12, atol=1e-15)
    told = result.summary["took_part"]["south"]
    fresh = sum(t == one for t, one in enumerate(last, 1))
    assert (told["answered"], told["missed"]) == (fresh, ROUNDS - fresh)
    assert told["late"] == len({one for t, one in enumerate(last, 1) if 0 < one < t and one not in last[: t - 1]})


@pytest.mark.parametrize("fate", [fate for fate, _ in ABSENCES.values()], ids=ABSENCES)
@pytest.mark.usefixtures("silent")
def test_gradient_descent_fades_missing_agents_as_admm_with_z_first_does(trained, fate):
    """Both take the same steps. ADMM fades the slope of the regulariser too, so that there is none here."""
    values = {"problem.regularizer": "none"}
    descent = trained("fedgd", fate(), "fedgd", values=values)
    method = known(trained)[0].hosted.method
    values |= {"algorithm.momentum": 0.0, "privacy.clip": method.clip, "schedule.step": method.step}
    admm = trained("objt", fate(), "objt", values=values)
    np.testing.assert_allclose(admm.w, descent.w, rtol=1e-9, atol=1e-12)
    assert admm.summary["took_part"] == descent.summary["took_part"]


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize("method", ["fedgd", "objt"])
def test_a_late_answer_moves_its_agent_with_its_own_w_and_rho(trained, monkeypatch, method):
    of, moved = {}, []
    owner = Gathered if method == "fedgd" else LocalModels
    move, question = owner.move, RemoteEngine.question

    def moving(program, p, msg, answer, whole=1.0):
        moved.append((p, msg, answer))
        return move(program, p, msg, answer, whole)

    def asking(remote, msg, *named):
        of[msg.t] = msg
        return question(remote, msg, *named)

    monkeypatch.setattr(owner, "move", moving)
    monkeypatch.setattr(RemoteEngine, "question", asking)
    trained(method, late(2, 5))
    _, gradient = known(trained)
    by_agent = [[msg.t for p, msg, _ in moved if p == agent] for agent in range(3)]
    assert by_agent == [[1, 2, 3, 4, 5, 6], [1, 2, 4, 5], [1, 2, 4, 5]]
    for p, msg, answer in moved:
        assert (msg.rho, msg.w.tobytes()) == (of[msg.t].rho, of[msg.t].w.tobytes())
        np.testing.assert_array_equal(answer, gradient(msg.w)[p].ravel())
    assert len({msg.w.tobytes() for msg in of.values()}) == ROUNDS
    assert method == "fedgd" or len({msg.rho for msg in of.values()}) == ROUNDS


class Killed(BaseException):
    """What a kill does: no handler runs, as far as we can tell."""


@pytest.mark.parametrize("absence", sorted(set(ABSENCES) - {"late"}))  # what is late to a process that is gone is lost
@pytest.mark.parametrize("method", ["fedgd", "objt"])
def test_a_coordinator_that_is_killed_in_every_round_counts_missing_agents_as_before(
    trained, monkeypatch, method, absence
):
    monkeypatch.setattr(lattice, "release", rooms.seeded)
    absent, _ = ABSENCES[absence]
    calm, fate, killed = trained(method, absent(), "calm"), absent(), set()

    def mortal(way, site, header):
        if (way, site, header["kind"]) == ("from", "alone", "answer") and header["t"] not in killed:
            killed.add(header["t"])
            raise Killed
        return fate(way, site, header)

    result, room = None, None
    while result is None:
        try:
            result = trained(method, mortal, room=room)
        except Killed:
            room = trained.room
            room.events.clear()  # answers to a process that is gone
    assert killed == set(range(1, ROUNDS + 1))
    np.testing.assert_array_equal(result.w, calm.w)
    for service in room.services.values():
        for paid in rooms.spent(service).values():
            assert len(set(paid)) == len(paid)


REFUSING = pytest.mark.parametrize(
    ("method", "values"),
    [("onemessage", {}), ("outp-huang", {}), ("outp-plus", {}), ("objt", {"algorithm.order": "wzd"}),
     ("objt", {"algorithm.linearize_at": "z"})],
)  # fmt: skip


@REFUSING
def test_a_method_whose_answers_do_not_stand_for_later_ones_refuses_to_use_them_again(trained, method, values):
    told = r'missing = "reuse" needs .*gradients at w.*set faults\.missing = "stop"'
    with pytest.raises(IncompatibleError, match=told):
        trained(method, faults=FAULTS + 'missing = "reuse"\n', values=values, rounds=rounds_of(method))
    assert issubclass(IncompatibleError, InputError)  # a command ends with 2
    assert not list(trained.where.glob("runs/*"))
    for service in trained.room.services.values():
        assert not any(ledger.runs() for ledger in service._ledgers.values())


@REFUSING
def test_without_a_rule_such_a_method_waits_for_missing_agents_and_goes_on_where_it_was(
    trained, monkeypatch, method, values
):
    monkeypatch.setattr(lattice, "release", rooms.seeded)
    monkeypatch.setattr(build, "secrets", SimpleNamespace(randbits=lambda _: 7))
    rounds, away = rounds_of(method), [True]
    calm = trained(method, name="calm", rounds=rounds, values=values)

    def fate(_way, site, header):
        gone = away[0] and site == "pair" and header["kind"] == "ask" and header["t"] == rounds
        return [] if gone else [rooms.QUICK]

    with pytest.raises(Suspended, match=f'round {rounds}: missing = "stop", and no answer came from south, east'):
        trained(method, fate, rounds=rounds, values=values)
    away[0] = False
    result = trained(method, room=trained.room, rounds=rounds, values=values)
    np.testing.assert_array_equal(result.w, calm.w)
    for service in trained.room.services.values():
        assert all(paid == list(range(1, rounds + 1)) for paid in rooms.spent(service).values())


def rounds_of(method) -> int:
    return 1 if method == "onemessage" else 3


@pytest.mark.usefixtures("silent")
def test_behind_a_sum_the_total_of_the_agents_that_answered_stands_for_all(tmp_path, monkeypatch):
    """Without noise, to the grid of the sum."""
    monkeypatch.setattr("tacit.privacy.summed.sample", lambda _law, _steps, shape, _bits: np.zeros(shape, np.int64))
    agree = '"algorithm.name" = "fedgd"\n' + summing.AGREE

    def fate(_way, site, header):
        return [] if site == "two" and header.get("t") == 3 else [rooms.QUICK]

    room = rooms.Room(summing.services(tmp_path, agree=agree), fate)
    where = summing.folder(tmp_path / "c", ROUNDS, FAULTS, repetitions=2, run='[algorithm]\nname = "fedgd"\n')
    result = rooms.go(where, room)
    own = SimpleNamespace(where=where, room=room)
    setup, gradient = known(own)
    method, problem, sizes = setup.hosted.method, setup.problem, np.array(setup.deployment.records)
    names = result.summary["took_part"]
    there = np.array([names[name]["site"] != "two" for name in together(room).agents])
    w = np.zeros(setup.shape)
    for t in range(1, ROUNDS + 1):
        present = there if t in (3, 4) else np.ones(5, bool)  # a sign of life in round 4 lets it in from round 5 on
        total = sizes.sum() / sizes[present].sum() * gradient(w)[present].sum(0)
        slope = total + problem.beta * problem.regularizer.gradient(w)
        w = w - cooled(method.step, ROUNDS, t) * slope
    np.testing.assert_allclose(result.w, w, rtol=1e-6, atol=1e-8)
    assert [names[name]["missed"] for name in ("north", "west")] == [0, 2]
    rooms.close(room)
