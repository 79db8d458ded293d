"""What is known of ObjT: its bound term by term, a floor that no z in reach passes, and what followed runs show."""

import math
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit import record
from tacit.admm.rule import Trust
from tacit.paper import convergence, trust
from tacit.paper.artefact import Artefact, Scale, read_all
from tacit.paper.theorem import Constants, Merit, optimum
from tacit.paper.trust import WideBound, holds_set, region_binding
from tacit.problem.domain import Ball, Box
from tacit.problem.objective import Problem
from tacit.run import build
from tacit.run.presets import preset
from tacit.schedule import RADII, Constant, Power
from tacit.types import Norm
from tests.conftest import federation

RECORDS = Path(__file__).parents[2] / "records"

pytestmark = pytest.mark.filterwarnings("ignore::tacit.errors.TacitWarning")


@lru_cache
def merit():
    """A merit whose gamma is large enough to hold the agents together at every point of the tests."""
    over = federation()
    return replace(Merit.of(Problem(over.n_agents, 1 / over.n_records, beta=0.01, domain=Box(20.0)), over), gamma=1.0)


@lru_cache
def floor_and_nearest(a, rounds):
    found, reach = merit(), sum(a / t**2 for t in range(1, rounds + 1))
    within = replace(found.problem, domain=Box(reach))
    return trust.floor(found, Trust(Power(a, -2)), rounds), optimum(within, found.federation), reach


def test_the_bound_is_the_proposition_term_by_term():
    bound = WideBound(Constants(3.0, 5.0, 0.5), n_agents=2, noise=1.5, gamma=4.0, rho_first=8.0)
    steps = 5 / 2 * (2 * 9 + 1.5) * 7.0
    expected = steps + 4 * math.sqrt(2) * 5 + 2 * 25 * 10 / 2 + 16 / 16
    assert bound(100, rho=10.0, inverse_rho=7.0) == pytest.approx(expected / 100)


def test_with_a_penalty_like_sqrt_t_the_bound_falls_like_one_over_sqrt_t_and_with_a_constant_one_to_a_floor():
    bound = WideBound(Constants(0.4, 6.0, 0.01), n_agents=10, noise=0.2, gamma=0.05, rho_first=0.1)
    t = np.arange(1, 10**6 + 1)
    rho = 0.1 * np.sqrt(t)
    sums = np.cumsum(1 / rho)
    falling = [bound(n, rho[n - 1], sums[n - 1]) for n in (10**4, 10**6)]
    assert falling[0] / falling[1] == pytest.approx(10, rel=0.02)
    constant = bound(10**9, 0.1, 10**9 / 0.1)
    assert constant == pytest.approx(5 / 2 * (10 * 0.16 + 0.2) / 0.1, rel=1e-3)


@pytest.mark.parametrize(
    ("rule", "domain", "rounds", "wide"),
    [
        (Trust(Constant(8.0)), Box(4.0), 5, True),
        (Trust(Constant(7.9)), Box(4.0), 5, False),
        (Trust(Constant(8.0), Norm.L2), Box(4.0), 5, False),  # the diameter is 8 sqrt(6)
        (Trust(Constant(8.0), Norm.L2), Ball(4.0), 5, True),
        (Trust(Power(80.0, -2)), Box(4.0), 3, True),
        (Trust(Power(80.0, -2)), Box(4.0), 4, False),
    ],
)
def test_a_region_is_wide_if_it_holds_the_set_in_every_round(rule, domain, rounds, wide):
    assert holds_set(rule, domain, 6, rounds) is wide


@given(seed=st.integers(0, 10**4), a=st.sampled_from([0.05, 0.1, 0.3]), spread=st.sampled_from([0.0, 0.1, 1.0]))
def test_no_point_in_reach_has_a_merit_below_the_floor(seed, a, spread):
    least, nearest, reach = floor_and_nearest(a, 50)
    assert least is not None
    assert least > 0
    rng = np.random.default_rng(seed)
    z = np.clip(nearest + spread * rng.normal(size=(3, *nearest.shape)), -reach, reach)
    w = z.mean(0) + spread * rng.normal(size=nearest.shape) * rng.integers(2)
    assert merit()(z, w) >= least - 1e-7
    assert merit()(np.stack([nearest] * 3), nearest) == pytest.approx(least, abs=1e-7)  # the floor is attained


def test_the_floor_is_zero_in_reach_of_the_optimum_and_unknown_where_the_proof_ends():
    found = merit()
    assert trust.floor(found, Trust(Constant(1.0)), 30) == 0.0
    assert trust.floor(found, Trust(Power(0.1, -2), Norm.L2), 30) is None
    assert trust.floor(replace(found, gamma=1e-6), Trust(Power(0.1, -2)), 30) is None  # too little for |nu|


def test_binding_counts_what_the_region_stopped_and_not_what_w_stopped():
    rule, domain = Trust(Power(1.0, -1)), Box(2.0)
    before = np.zeros(4, np.float32)
    after = np.array([0.5, -0.5, 0.2, 0.0], np.float32)
    assert region_binding(rule, domain, 2, before, after) == 0.5
    assert region_binding(rule, domain, 2, np.full(4, 1.5, np.float32), np.full(4, 2.0, np.float32)) == 0.0  # W's
    assert region_binding(Trust(Constant(8.0)), domain, 1, before, after) == 0.0
    assert region_binding(rule, domain, 10**12, after, after) == 0.75  # a radius below rounding; zero has no rounding


@pytest.mark.parametrize(
    ("radius", "at_four"), [("constant", 0.8), ("root", 0.4), ("inverse", 0.2), ("power", 0.05)]
)
def test_radii_and_the_growing_penalty_are_choices_of_a_spec(radius, at_four):
    values = {"schedule.radius": radius, "schedule.radius_a": 0.8, "schedule.rho": "root", "schedule.rho_static": 3.0}
    setup = build.setup(preset("paper", "objt").with_values(values), federation())
    assert setup.agents[0].variant.rule.radius(4) == pytest.approx(at_four)
    assert [setup.rho(t) for t in (1, 4, 100)] == pytest.approx([3, 6, 30])


GRID = {
    "data": {"source": "synthetic", "agents": 3, "records": 60, "features": 3},
    "problem": {"domain": "box", "domain_radius": 2.0, "beta": 0.01},
    "algorithm": {"name": "objt"},
    "schedule": {"rho": ["static", "root"], "radius": list(RADII), "radius_a": [0.1, 4.0]},
    "privacy": {"epsilon": 1.0},
    "run": {"preset": "paper", "rounds": 40, "seed": 0},
}


def test_followed_runs_of_objt_hold_a_merit_and_a_bound_where_there_is_one():
    panel = {"title": "", "x": "t", "y": "merit", "where": {"privacy.epsilon": 1.0}, "lines_by": ["schedule.radius"]}
    artefact = Artefact("c", "c", "c", grid=(GRID,), panels=(panel,))
    records = list(convergence.finish(artefact.members(Scale.FULL), None))
    assert len(records) == 16
    shown = trust.shown(records, artefact.all_panels())
    rows = {(row[1], row[2]): dict(zip(trust.COLUMNS, row, strict=True)) for row in shown["table"]["rows"]}
    assert len(rows) == 16
    for (rho, radius), row in rows.items():
        assert (row["bound at T"] != "-") == (radius == "4")  # the only region that holds W, from -2 to 2
        assert row["merit at T"] >= row["merit at least"]
        if row["bound at T"] != "-":
            assert row["merit at T"] < row["bound at T"]
            assert row["binds, last 90 %"] == 0
        if radius == "0.1/t^2":
            assert row["merit at least"] > 0
            assert row["binds, last 90 %"] > 0.8
        assert rho in ("1", "1 sqrt(t)")
    drawn = {line["name"] for line in shown["series"]}
    assert drawn == {f"least merit, radius {row['radius']}" for row in rows.values() if row["merit at least"]}
    assert "least merit, radius 0.1/t^2" in drawn
    assert "least merit, radius 4/t" not in drawn
    wide = next(one for one in records if one["theorem"]["wide"] and 'rho = "root"' in one["spec"])
    assert wide["curve"]["inverse_rho"][-1] == pytest.approx(sum(1 / math.sqrt(t) for t in range(1, 41)), rel=1e-5)
    lost = {key: records[0][key] for key in ("name", "spec")} | {"diverged": "in round 1"}
    (row,) = trust.shown([lost], [])["table"]["rows"]
    assert row[-1] == "diverged"
    assert len(row) == len(trust.COLUMNS)


def test_the_recorded_runs_show_what_the_page_says():
    """Docs/reproduction.md, "ObjT, the open question"."""
    kept = [one for one in record.read(RECORDS / "paper.jsonl") if "theorem" in one and one["algorithm"] == "objt"]
    assert len(kept) == 90
    table = trust.shown(kept, read_all()["trust"].all_panels())["table"]["rows"]
    rows = {tuple(row[:3]): dict(zip(trust.COLUMNS, row, strict=True)) for row in table}
    assert all(row["merit at T"] < row["bound at T"] for row in rows.values() if row["bound at T"] != "-")
    assert all(row["merit at T"] > row["merit at least"] for row in rows.values())
    for epsilon in (0.03, 0.1, 1.0):
        freezes, grows = rows[epsilon, "1", "1/t^2"], rows[epsilon, "0.1 sqrt(t)", "8"]
        assert freezes["merit at least"] > 0.01
        assert freezes["slope, last two decades"] > -0.01
        assert grows["slope, last two decades"] < -0.5
        assert grows["last w: F - F*"] < rows[epsilon, "1", "8"]["last w: F - F*"]
    assert rows[0.03, "1", "8"]["merit at T"] > 5 * rows[0.03, "0.1 sqrt(t)", "8"]["merit at T"]  # a floor of the mean
