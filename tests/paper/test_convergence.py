"""The convergence theorem's constants hold over W, its merit is zero at the optimum, and its bound is what it says."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit import record
from tacit.engine.registry import ENGINES
from tacit.errors import IncompatibleError
from tacit.paper import convergence
from tacit.paper.artefact import Artefact, Scale, read_all
from tacit.paper.theorem import Bound, Constants, Merit, constants, diameter, noise_energy, optimum, slope
from tacit.problem.domain import Ball, Box, Everywhere
from tacit.problem.loss import Squared
from tacit.problem.objective import Problem
from tacit.problem.sensitivity import Adjacency
from tacit.rounds import rounds
from tacit.run import build
from tacit.types import Federation, Shard
from tests.conftest import federation

RECORDS = Path(__file__).parents[2] / "records"

def recorded(algorithm):
    return [one for one in record.read(RECORDS / "paper.jsonl") if "theorem" in one and one["algorithm"] == algorithm]


pytestmark = pytest.mark.filterwarnings("ignore::tacit.errors.TacitWarning")


def problem(over, domain, beta=0.1, **rest):
    return Problem(over.n_agents, 1 / over.n_records, beta=beta, domain=domain, **rest)


@given(seed=st.integers(0, 99), domain=st.sampled_from([Box(0.3), Box(20.0), Ball(2.0)]))
def test_no_point_of_the_set_passes_u1_u2_u3(seed, domain):
    over = federation(seed=seed % 3)
    ours, rng = problem(over, domain), np.random.default_rng(seed)
    found = constants(ours, over, Adjacency.ZERO_OUT)
    u, v = (domain.project(40 * rng.normal(size=(4, 3))) for _ in range(2))
    assert np.linalg.norm(u - v) <= found.u2 * (1 + 1e-9)
    for shard in over.shards:
        whole = ours.gradient(u, shard)
        assert np.linalg.norm(whole) <= found.u1
        for i in range(len(shard)):
            without = ours.gradient(u, Shard(np.delete(shard.x, i, 0), np.delete(shard.y, i)))
            assert np.abs(whole - without).sum() <= found.u3 * (1 + 1e-6)


def test_one_record_and_a_large_set_reach_u1_u2_u3():
    over = Federation((Shard(np.array([[3.0, 4.0]]), np.array([0])),), Shard(np.zeros((0, 2)), np.zeros(0, int)), 2)
    ours = problem(over, Box(100.0), beta=0.0)
    found = constants(ours, over, Adjacency.ZERO_OUT)
    assert found.u1 == pytest.approx(math.sqrt(2) * 5)  # |x|_2 |a|_2
    assert found.u2 == pytest.approx(2 * 100 * math.sqrt(4))
    assert found.u3 == pytest.approx(2 * 7)  # |x|_1 |a|_1
    wrong = ours.gradient(np.array([[-100.0, 100.0], [-100.0, 100.0]]), over.shards[0])
    assert np.linalg.norm(wrong) == pytest.approx(found.u1)
    assert np.abs(wrong).sum() == pytest.approx(found.u3)
    assert constants(ours, over, Adjacency.REPLACE_ONE).u3 == 2 * found.u3


def test_the_regulariser_enters_u1_at_the_rim():
    over = federation()
    bare, heavy = (constants(problem(over, Ball(2.0), beta), over, Adjacency.ZERO_OUT).u1 for beta in (0.0, 0.3))
    assert heavy - bare == pytest.approx(0.3 / 3 * 2 * 2.0)  # (beta / P) |r'(u)|, r' = 2 u, |u| = 2


def test_a_set_without_end_has_no_diameter():
    assert diameter(Ball(3.0), 12) == 6.0
    with pytest.raises(IncompatibleError, match="compact W"):
        diameter(Everywhere(), 12)


def test_the_optimum_of_the_squared_loss_is_the_ridge_solution():
    over = federation()
    ours = problem(over, Ball(50.0), loss=Squared())
    x = np.vstack([shard.x for shard in over.shards]).astype(np.float64)
    y = np.eye(3)[np.concatenate([shard.y for shard in over.shards])]
    ridge = np.linalg.solve(x.T @ x / len(x) + 2 * 0.1 * np.eye(4), x.T @ y / len(x))
    np.testing.assert_allclose(optimum(ours, over), ridge, atol=1e-7)
    inside = problem(over, Box(0.1), loss=Squared())
    best = optimum(inside, over)
    assert inside.domain.contains(best)
    uphill = sum(inside.gradient(best, shard) for shard in over.shards)
    np.testing.assert_allclose(inside.domain.project(best - uphill), best, atol=1e-7)  # first-order optimality


def test_the_merit_is_zero_at_the_optimum_and_counts_disagreement_by_gamma():
    over = federation()
    ours = problem(over, Box(20.0))
    merit, best = Merit.of(ours, over), optimum(ours, over)
    at_optimum = np.stack([best] * 3)
    assert merit(at_optimum, best) == pytest.approx(0, abs=1e-9)
    away = np.full((4, 3), 0.5)
    assert merit(at_optimum, best + away) == pytest.approx(merit.gamma * math.sqrt(3 * 12 * 0.25))
    assert merit(np.zeros((3, 4, 3)), np.zeros((4, 3))) == pytest.approx(merit.f_zero - merit.f_star)
    duals = [ours.gradient(best, shard) for shard in over.shards]
    assert merit.gamma == pytest.approx(2 * math.sqrt(sum(np.square(dual).sum() for dual in duals)))
    np.testing.assert_allclose(sum(duals), 0, atol=1e-8)


@pytest.mark.parametrize(("a", "growing"), [(1.0, 2 * 9 + 2 * 2 * 6 * 0.25 / 4 + 5 / 2), (10.0, 195 + 5 / 20)])
def test_the_bound_is_the_theorem_term_by_term(a, growing):
    noise = noise_energy(2, 6, u3=0.5, epsilon=2.0)
    assert noise == 2 * 2 * 6 * 0.25 / 4
    bound = Bound(Constants(3.0, 5.0, 0.5), 2, noise, gamma=4.0, rho_first=8.0, rho_last=10.0, a=a)
    fixed = 4 * 5 + 5 * 10 / 2 + 16 / 16
    assert bound(100) == pytest.approx((growing * 10 + fixed) / 100)
    squares = growing + (2 * 25 - 5) / (2 * a)
    assert bound.repaired(100) == pytest.approx((squares * 10 + 4 * math.sqrt(2) * 5 + 50 * 10 / 2 + 1) / 100)


def test_the_slope_is_that_of_the_last_two_decades():
    t = [float(n) for n in np.geomspace(1, 1e5, 60)]
    merit = [3 * n**-0.5 if n >= 1e3 else 100.0 for n in t]
    assert slope(t, merit) == pytest.approx(-0.5)


GRID = {
    "data": {"source": "synthetic", "agents": 3, "records": 60, "features": 3},
    "problem": {"domain": "box", "domain_radius": 2.0, "beta": 0.01},
    "algorithm": {"name": "objp"},
    "schedule": {"eta_a": [1.0, 100.0]},
    "privacy": {"epsilon": 1.0},
    "run": {"preset": "paper", "rounds": 40, "seed": [0, 1]},
}
PANEL = {"title": "{}", "x": "t", "y": "merit", "where": {"privacy.epsilon": [1.0]}, "lines_by": ["schedule.eta_a"]}


def test_the_followed_merit_is_that_of_iterates_averaged_by_hand():
    artefact = Artefact("c", "c", "c", grid=(GRID,), panels=(PANEL,))
    members = artefact.members(Scale.FULL)
    records = list(convergence.finish(members, None))
    assert {one["name"] for one in records} == {member.name for member in members}
    spec = members[0].spec
    over = build.federation(spec)
    setup = build.setup(spec, over)
    engine = ENGINES["plain"]([setup.agents], setup.shape, "cpu")
    before, sent = [], []

    def exchange(msgs):
        before.append(engine.save(0)["z"].copy())
        sent.append(msgs[0].w)
        return engine.exchange_all(msgs)

    assert len(list(rounds([setup.server], [setup.server.start()], exchange))) == 40
    merit = Merit.of(setup.problem, over)
    ours = next(one for one in records if one["name"] == members[0].name)
    assert ours["curve"]["merit"][-1] == pytest.approx(merit(np.mean(before, 0), np.mean(sent, 0)), rel=1e-4)
    assert ours["curve"]["t"][-1] == 40
    shown = convergence.shown(records, artefact.all_panels())
    assert [row[:4] for row in shown["table"]["rows"]] == [[1.0, 1.0, 40, 2], [1.0, 100.0, 40, 2]]
    assert all(len(row) == len(shown["table"]["columns"]) for row in shown["table"]["rows"])
    assert [line["panel"] for line in shown["series"]] == [0, 0]


@pytest.mark.parametrize(
    ("merit", "bound", "repaired", "says"),
    [
        ([3.0, 0.5], [9.0, 0.6], [99.0, 50.0], "holds"),
        ([3.0, 0.5], [9.0, 1.1], [99.0, 50.0], "vacuous: above F(0) - F*"),
        ([3.0, 0.5], [9.0, 0.4], [99.0, 50.0], "violated; repaired it holds"),
        ([3.0, 0.5], [2.0, 0.6], [99.0, 50.0], "violated; repaired it holds"),  # not at the end
        ([3.0, 0.5], [2.0, 1.1], [99.0, 50.0], "violated; repaired it holds"),
        ([3.0, 0.5], [2.0, 0.6], [2.5, 50.0], "violated; repaired too"),
    ],
)
def test_a_verdict_is_about_every_measured_round(merit, bound, repaired, says):
    assert convergence.verdict(merit, bound, repaired, gap=1.0) == says


def test_the_recorded_runs_violate_the_printed_bound_as_the_note_says():
    artefact = read_all()["convergence"]
    kept = recorded("objp")
    verdicts = {tuple(row[:2]): row[-1] for row in convergence.shown(kept, artefact.all_panels())["table"]["rows"]}
    assert verdicts[1.0, 1.0] == "violated; repaired it holds"
    assert any("At epsilon 1 with eta as written" in note for note in artefact.notes)
    gap = kept[0]["theorem"]["f_zero"] - kept[0]["theorem"]["f_star"]
    assert all(convergence.bound_of(one).repaired(one["rounds"]) > gap for one in kept)  # true and vacuous


def test_bounds_computed_from_recorded_constants_are_those_that_older_records_hold():
    """Records of version 0.1 hold the bounds as lists; since then a record holds what bounds are made of."""
    held = [one for one in recorded("objp") if "bound" in one["theorem"]]
    assert held
    for one in held:
        bound, t = convergence.bound_of(one), one["curve"]["t"]
        assert [bound(rounds) for rounds in t] == pytest.approx(one["theorem"]["bound"])
        assert [bound.repaired(rounds) for rounds in t] == pytest.approx(one["theorem"]["repaired"])


def test_a_run_that_diverges_is_recorded_and_the_others_go_on():
    grid = GRID | {"schedule": {"rho": "static", "rho_static": [1.0, 1e39]}}
    artefact = Artefact("c", "c", "c", grid=(grid,), panels=(PANEL,))
    members = artefact.members(Scale.FULL)
    records = {one["name"]: one for one in convergence.finish(members, None)}
    for member in members:
        lost = member.spec.schedule.rho_static > 1
        assert ("diverged" in records[member.name]) == lost
        assert lost or records[member.name]["curve"]["t"][-1] == 40
    lost = [one for one in records.values() if "diverged" in one]
    assert all(one["diverged"].endswith("w is not finite. Raise rho, or lower the step.") for one in lost)
    assert record.lines(lost)
    (row,) = convergence.shown(list(records.values()), artefact.all_panels())["table"]["rows"]
    assert row[3] == 2  # seeds that are left
    (row,) = convergence.shown(lost, artefact.all_panels())["table"]["rows"]
    assert row[-1] == "diverged"
