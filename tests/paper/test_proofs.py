"""Every step of two convergence proofs, on paths of small problems in float64: the paper's for ObjP, ours for ObjT.

The inequalities before the expectation hold for each path of the noise, so they are checked path by path, with the
left-hand and the right-hand side computed from the iterates alone.
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.admm.updates import ascent, consensus, prox_center, trust_center
from tacit.paper.theorem import Bound, Constants, Merit, constants, noise_energy, optimum
from tacit.paper.trust import WideBound
from tacit.problem.domain import Box
from tacit.problem.objective import Problem
from tacit.problem.sensitivity import Adjacency
from tacit.schedule import Constant, Power, Staircase
from tacit.types import Federation
from tests.conftest import examples, federation

TINY = 1e-9
RHOS = {"static": Constant(0.3), "root": Power(0.02, 0.5), "stairs": Staircase(0.1, 0.0, period=3, epsilon=1.0)}


def sq(u):
    return float(np.square(u).sum())


def dot(u, v):
    return float((u * v).sum())


@dataclass
class Path:
    """All iterates of a run: z and dual have one more than w, g and xi."""

    problem: Problem
    over: Federation
    rho: list
    eta: list | None
    z: list
    dual: list
    w: list
    g: list
    xi: list

    @property
    def rounds(self):
        return len(self.w)

    def value(self, z):
        return float(sum(self.problem.value(own, shard) for own, shard in zip(z, self.over.shards, strict=True)))


def walk(seed, rounds=40, rho="static", proximal=True, box=1.0, scale=0.05):
    """A run of ObjP (eta = 1/sqrt(t)), or of ObjT in regions that hold W, with Laplace noise."""
    over = federation(seed=seed % 5)
    problem = Problem(over.n_agents, 1 / over.n_records, beta=0.1, domain=Box(box))
    rng = np.random.default_rng(seed)
    shape = (over.n_agents, over.n_features, over.n_classes)
    z, dual = np.zeros(shape), np.zeros(shape)
    path = Path(problem, over, [], [] if proximal else None, [z], [dual], [], [], [])
    for t in range(1, rounds + 1):
        rho_t, eta = RHOS[rho](t), 1 / math.sqrt(t)
        w = consensus(z.mean(0), dual.mean(0), rho_t)
        g = np.stack([problem.gradient(own, shard) for own, shard in zip(z, over.shards, strict=True)])
        xi = rng.laplace(scale=scale, size=shape)
        center = prox_center(w, z, dual, g + xi, rho_t, eta) if proximal else trust_center(w, dual, g + xi, rho_t)
        z = problem.domain.project(center)
        dual = ascent(dual, w, z, rho_t)
        for kept, one in ((path.rho, rho_t), (path.z, z), (path.dual, dual), (path.w, w), (path.g, g), (path.xi, xi)):
            kept.append(one)
        if path.eta is not None:
            path.eta.append(eta)
    return path


def points(path, seed):
    """A w, a z in W^P and a dual to test the inequalities with; w and z agree in every second case."""
    rng = np.random.default_rng(1000 + seed)
    z = path.problem.domain.project(rng.normal(size=path.z[0].shape))
    if seed % 2:
        z = np.broadcast_to(z[0], z.shape)
    return rng.normal(size=z.shape[1:]), z, rng.normal(size=z.shape) * 0.1


def left(path, t, w, z):
    """LHS^t(w, z) of the paper, t = 0, 1, ... here."""
    tilde = path.dual[t] + path.rho[t] * (path.w[t] - path.z[t])
    linear = dot(path.dual[t + 1], path.z[t + 1] - z)
    return path.value(path.z[t]) - path.value(z) - linear + dot(tilde, path.w[t] - w)


def lemma(path, t, w, z, dual):
    """The right-hand side of Lemma 2, which the paper sets equal to LHS^t."""
    rho, tilde = path.rho[t], path.dual[t] + path.rho[t] * (path.w[t] - path.z[t])
    skew = dot(path.w[t] - w, dual.sum(0)) - dot(path.z[t] - z, dual) + dot(tilde - dual, z - w)
    telescopes = rho / 2 * (sq(z - path.z[t + 1]) - sq(z - path.z[t]))
    telescopes += (sq(dual - path.dual[t + 1]) - sq(dual - path.dual[t])) / (2 * rho)
    fixed = path.value(path.z[t]) - path.value(z) - dot(dual, path.z[t + 1] - path.z[t])
    return fixed + skew + telescopes


paths = given(seed=st.integers(0, 10**4), rho=st.sampled_from(sorted(RHOS)))
few = examples(15)


@few
@given(seed=st.integers(0, 10**4), rho=st.sampled_from(sorted(RHOS)), proximal=st.booleans())
def test_lemma_2_is_an_inequality_and_what_it_lacks_is_known(seed, rho, proximal):
    """LHS^t = the printed right-hand side + rho/2 |A w^{t+1} - z^t|^2, for both algorithms."""
    path = walk(seed, 12, rho, proximal)
    w, z, dual = points(path, seed)
    for t in range(path.rounds):
        lacks = path.rho[t] / 2 * sq(path.w[t] - path.z[t])
        assert left(path, t, w, z) == pytest.approx(lemma(path, t, w, z, dual) + lacks, abs=1e-7)
        assert lacks > 0 or t == 0


@few
@paths
def test_the_papers_proposition_holds_on_every_path(seed, rho):
    path = walk(seed, 12, rho)
    w, z, _ = points(path, seed)
    for t, eta in enumerate(path.eta):
        steps = eta / 2 * sq(path.g[t] + path.xi[t])
        distances = (sq(z - path.z[t]) - sq(z - path.z[t + 1])) / (2 * eta)
        right = steps + distances + dot(path.xi[t], z - path.z[t])
        assert left(path, t, w, z) <= right + TINY  # the term of w is zero: w minimises its subproblem


@few
@paths
def test_without_a_proximal_term_consensus_bounds_the_step(seed, rho):
    """|z^{t+1} - z^t| <= |A w^{t+1} - z^t| + |s^t - s^{t-1}| / rho^t with s = f' + xi and s^0 = lambda^1 = 0.

    So <s^t, z^t - z^{t+1}> <= rho/2 |A w^{t+1} - z^t|^2 + (|s^t|^2 / 2 + |s^t| |s^t - s^{t-1}|) / rho^t: the square is
    what Lemma 2 leaves unused.
    """
    path = walk(seed, 30, rho, proximal=False)
    w, z, _ = points(path, seed)
    before = np.zeros_like(path.z[0])
    for t in range(path.rounds):
        slope, apart = path.g[t] + path.xi[t], path.w[t] - path.z[t]
        change = math.sqrt(sq(slope - before))
        assert math.sqrt(sq(path.z[t + 1] - path.z[t])) <= math.sqrt(sq(apart)) + change / path.rho[t] + TINY
        spent = (sq(slope) / 2 + math.sqrt(sq(slope)) * change) / path.rho[t]
        absorbed = path.rho[t] / 2 * sq(apart)
        assert left(path, t, w, z) <= absorbed + spent + dot(path.xi[t], z - path.z[t]) + TINY
        before = slope


def test_where_nothing_binds_the_mean_of_all_agents_does_gradient_descent():
    path = walk(0, 30, "static", proximal=False, box=100.0)
    for t, rho in enumerate(path.rho):
        slope = path.g[t] + path.xi[t]
        np.testing.assert_allclose(path.dual[t + 1], slope, atol=1e-12)
        moved = path.z[t + 1].mean(0) - path.z[t].mean(0)
        np.testing.assert_allclose(moved, -slope.mean(0) / rho, atol=1e-12)


@pytest.mark.parametrize(("ratio", "stable"), [(2.1, True), (1.9, False)])
def test_agents_of_one_curvature_are_stable_above_twice_that_curvature(ratio, stable):
    """f_p(u) = L/2 (u - b_p)^2 without noise and without W."""
    curvature, at = 0.5, np.array([-1.0, 0.0, 4.0])
    z, dual, rho = np.zeros(3), np.zeros(3), ratio * 0.5
    for _ in range(1000):
        w = consensus(z.mean(), dual.mean(), rho)
        z = trust_center(w, dual, curvature * (z - at), rho)
        dual = ascent(dual, w, z, rho)
    assert (np.abs(z - 1.0).max() < 1e-6) == stable
    assert stable or np.abs(z).max() > 100


def merit_and_bound(path, merit, best, squared, plain):
    """Both sides of the theorem before the expectation, T times: distances as given, the noise as it was drawn."""
    found, gamma = merit(np.mean(path.z[:-1], 0), np.mean(path.w, 0)), merit.gamma
    slopes = [g + xi for g, xi in zip(path.g, path.xi, strict=True)]
    noise = sum(dot(xi, best - z) for xi, z in zip(path.xi, path.z[:-1], strict=True))
    fixed = gamma * plain + squared * path.rho[-1] / 2 + gamma**2 / (2 * path.rho[0])
    if path.eta is not None:
        steps = sum(eta / 2 * sq(s) for eta, s in zip(path.eta, slopes, strict=True)) + squared / (2 * path.eta[-1])
    else:
        before = [np.zeros_like(slopes[0]), *slopes]
        sizes = [sq(s) / 2 + math.sqrt(sq(s) * sq(s - b)) for s, b in zip(slopes, before, strict=False)]
        steps = sum(size / rho for size, rho in zip(sizes, path.rho, strict=True))
    return path.rounds * found, steps + noise + fixed


@lru_cache
def best_of(seed, box):
    """The merit and the optimum of the data of a seed."""
    path = walk(seed, 1, box=box)
    return Merit.of(path.problem, path.over), optimum(path.problem, path.over)


@examples(25)
@given(
    seed=st.integers(0, 10**4), rho=st.sampled_from(sorted(RHOS)), proximal=st.booleans(),
    gamma=st.sampled_from([0.0, 0.1, 1.0]), rounds=st.sampled_from([1, 2, 30]),
)  # fmt: skip
def test_both_theorems_hold_on_every_path(seed, rho, proximal, gamma, rounds):
    """T merit <= the sums of the path, with P U2^2 and sqrt(P) U2 for distances of stacked models."""
    path = walk(seed, rounds, rho, proximal, box=0.5)
    merit, best = best_of(seed % 5, 0.5)
    agents, u2 = path.over.n_agents, 2 * 0.5 * math.sqrt(best.size)
    found, bound = merit_and_bound(path, replace(merit, gamma=gamma), best, agents * u2**2, math.sqrt(agents) * u2)
    assert found <= bound + TINY


@pytest.mark.parametrize("proximal", [True, False])
def test_the_mean_merit_over_many_seeds_is_below_the_bound(proximal):
    """The bounds in expectation, with the constants as they are computed."""
    over, rounds, epsilon = federation(seed=0), 400, 2.0
    problem = Problem(over.n_agents, 1 / over.n_records, beta=0.1, domain=Box(0.5))
    found = constants(problem, over, Adjacency.ZERO_OUT)
    merit, dimension = Merit.of(problem, over), over.n_features * over.n_classes
    noise = noise_energy(over.n_agents, dimension, found.u3, epsilon)
    merits = []
    for seed in range(0, 50, 5):  # the data of seed 0
        path = walk(seed, rounds, "root", proximal, box=0.5, scale=found.u3 / epsilon)
        merits.append(merit(np.mean(path.z[:-1], 0), np.mean(path.w, 0)))
    if proximal:
        bound = Bound(found, over.n_agents, noise, merit.gamma, path.rho[0], path.rho[-1]).repaired(rounds)
    else:
        wide = WideBound(found, over.n_agents, noise, merit.gamma, path.rho[0])
        bound = wide(rounds, path.rho[-1], sum(1 / rho for rho in path.rho))
    assert 0 < np.mean(merits) < bound
    assert np.max(merits) < bound


def test_the_printed_bound_is_false_for_a_linear_function_of_one_number():
    """f(u) = -u over [-50, 50], one agent, no noise, gamma = 0, rho = 1: after 100 rounds of ObjP.

    From zero no more than 2 sqrt(T) = 20 of the 50 can be travelled, so the merit is at least 30. The printed bound is
    (1 + 100/2) / 10 + 100 / 200 = 5.6; with U2^2 it is 550.1.
    """
    rounds, z, dual, total = 100, 0.0, 0.0, 0.0
    for t in range(1, rounds + 1):
        total += z
        w = consensus(z, dual, 1.0)
        z = min(prox_center(w, z, dual, -1.0, 1.0, 1 / math.sqrt(t)), 50.0)
        dual = ascent(dual, w, z, 1.0)
    merit = 50 - total / rounds
    bound = Bound(Constants(1.0, 100.0, 0.0), 1, 0.0, 0.0, 1.0, 1.0)
    assert bound(rounds) == pytest.approx(5.6)
    assert bound.repaired(rounds) == pytest.approx(550.1)
    assert 30 < merit < bound.repaired(rounds)
