"""ADMM without a server: what agents on any network have in common with gradient descent and with the paper's ADMM."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.admm.agent import Agent, Variant
from tacit.admm.messages import Broadcast, Order
from tacit.admm.rule import Objective, Point, Trust
from tacit.errors import IncompatibleError
from tacit.methods.gradient_descent import FEDGD
from tacit.methods.graph_admm import ENTRY, GraphADMM, build_on
from tacit.methods.method import Budget, simulate
from tacit.methods.network import Network, circulant, path, star
from tacit.methods.task import Task, noise_std, noisy_gradients
from tacit.privacy.mechanism import Gaussian
from tacit.problem.domain import Ball
from tacit.problem.loss import Squared
from tacit.problem.objective import Problem
from tacit.problem.sensitivity import Clipped
from tacit.run import build
from tacit.run.presets import preset
from tacit.schedule import Constant, Cooling
from tacit.types import Norm, Shard
from tests.conftest import federation
from tests.methods.tasks import empty, followed, of_the_paper, task
from tests.methods.test_network import mixing

NETWORKS = {"ring": circulant(5, 2), "path": path(5), "star": star(5), "all": circulant(5, 4)}
EVERY = pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)


def ridge(n_agents=5, seed=0):
    """Agents whose records differ: each has its own mean and its own answer."""
    rng = np.random.default_rng(seed)
    shards = []
    for p in range(n_agents):
        x = rng.normal(0.4 * p - 0.8, 0.6, size=(6 + p, 3))
        shards.append(Shard(x, (x @ [1.0, -p, 0.5] / 10).clip(-1, 1), dtype=np.float64))
    n_records = sum(map(len, shards))
    problem = Problem(n_agents, 1 / n_records, loss=Squared(), beta=0.05)
    row_norm = max(float(np.linalg.norm(one.x, axis=1).max()) for one in shards)
    return Task.whole(tuple(shards), problem, (3, 1), row_norm)


def best(own):
    """The pooled optimum of squared errors with beta |w|^2, in closed form."""
    x, y = (np.concatenate([getattr(one, name) for one in own.shards]) for name in ("x", "y"))
    curved = own.problem.weight * x.T @ x + 2 * own.problem.beta * np.eye(3)
    return np.linalg.solve(curved, own.problem.weight * x.T @ y)[:, None]


def stiff(own, times):
    """rho: so many times the largest curvature of an agent."""
    each = [own.problem.weight * np.linalg.eigvalsh(one.x.T @ one.x)[-1] for one in own.shards]
    return Constant(times * (max(each) + 2 * own.problem.beta / own.n_agents))


@EVERY
@pytest.mark.parametrize("at", list(Point))
def test_without_noise_every_agent_reaches_the_optimum_of_all_records(network, at):
    own = ridge()
    *_, (state, info, kept) = followed(own, GraphADMM(1500, 1e6, 0.0, stiff(own, 2.1), network, at))
    np.testing.assert_allclose(state.w, best(own), rtol=0, atol=1e-9)
    for z in info.seen[0]:
        np.testing.assert_allclose(z, best(own), rtol=0, atol=1e-8)
    slopes = own.gradients(best(own), Clipped(Norm.L2, 1e6))
    np.testing.assert_allclose(kept["dual"], slopes, rtol=0, atol=1e-7)  # the price of agreeing: f'_p at the optimum


@EVERY
def test_steps_at_the_mean_of_neighbours_are_stable_where_gradient_descent_is(network):
    """rho > L / 2, whatever the network; steps at z_p need rho > 2 L where a network mixes at once."""
    own = ridge()
    *_, (state, _) = simulate(GraphADMM(3000, 1e6, 0.0, stiff(own, 0.52), network), own)
    np.testing.assert_allclose(state.w, best(own), rtol=0, atol=1e-7)


@EVERY
@given(seed=st.integers(0, 10**6))
@settings(max_examples=10)
def test_the_duals_sum_to_zero_and_the_mean_of_all_models_does_noisy_gradient_descent(network, seed):
    own, rho = replace(ridge(), seed=seed), Cooling(1.5, 6)
    std, z = noise_std(own, 2.0, 0.4), own.zeros
    for state, info, kept in followed(own, GraphADMM(6, 0.4, 2.0, rho, network)):
        slope = noisy_gradients(own, network.means(z, own.index, network.bound), 0.4, std, state.t)
        np.testing.assert_allclose(state.w, z.mean(0) - slope.mean(0) / rho(state.t), rtol=0, atol=1e-12)
        np.testing.assert_allclose(kept["dual"].sum(0), 0, atol=1e-11)
        (z,) = info.seen


@EVERY
def test_the_step_minimises_the_objective_of_decentralised_admm(network):
    """Zhang & Zhu's, with penalty e = rho / g on links, and alpha_p = -dual_p / 2 from released models alone."""
    own, rho = ridge(), 1.5
    e = rho / network.bound
    std, last, alpha = noise_std(own, 2.0, 0.4), own.zeros, own.zeros
    for state, info, kept in followed(own, GraphADMM(4, 0.4, 2.0, Constant(rho), network)):
        (z,) = info.seen
        np.testing.assert_allclose(kept["dual"], -2 * alpha, rtol=0, atol=1e-12)
        slope = noisy_gradients(own, network.means(last, own.index, network.bound), 0.4, std, state.t)
        for p, near in enumerate(network.neighbours):
            s = rho - 2 * e * len(near)
            pulls = 2 * e * sum(z[p] - (last[p] + last[q]) / 2 for q in near) + s * (z[p] - last[p])
            np.testing.assert_allclose(slope[p] + 2 * alpha[p] + pulls, 0, atol=1e-11)
        alpha = alpha + np.stack([e / 2 * sum(z[p] - z[q] for q in near) for p, near in enumerate(network.neighbours)])
        last = z


def test_a_path_of_two_by_hand():
    """One feature, one record each: x = 1, y = 1 and x = 1, y = 0; f'_p(z) = (z - y_p) / 2. M has halves, rho = 1."""
    shards = tuple(Shard(np.ones((1, 1)), np.array([y]), dtype=np.float64) for y in (1.0, 0.0))
    own = Task.whole(shards, Problem(2, 0.5, loss=Squared(), beta=0.0), (1, 1), 1.0)
    told = [(info.seen[0].ravel(), kept["dual"].ravel()) for _, info, kept in
            followed(own, GraphADMM(3, 10.0, 0.0, Constant(1.0), path(2)))]  # fmt: skip
    # round 1: c = 0, f' = (-1/2, 0), z = (1/2, 0); then c = 1/4, dual = c - z = (-1/4, 1/4)
    # round 2: f' = (-3/8, 1/8), z = c + dual - f' = (3/8, 3/8); then c = 3/8, and the dual stays
    # round 3: f' = (-5/16, 3/16), z = (3/8 - 1/4 + 5/16, 3/8 + 1/4 - 3/16) = (7/16, 7/16)
    expected = [((0.5, 0), (0, 0)), ((0.375, 0.375), (-0.25, 0.25)), ((0.4375, 0.4375), (-0.25, 0.25))]
    for (z, dual), (z_wanted, dual_wanted) in zip(told, expected, strict=True):
        np.testing.assert_allclose(z, z_wanted, atol=1e-15)
        np.testing.assert_allclose(dual, dual_wanted, atol=1e-15)


@pytest.mark.parametrize("budget", [Budget(3.0, 1e-5), Budget(math.inf)])
def test_where_all_are_linked_to_all_it_is_federated_gradient_descent(budget):
    own, choice = task(), dict(ENTRY.grid[0], rounds=8, degree=2)  # of three agents
    ones, others = simulate(ENTRY.build(own, budget, choice), own), simulate(FEDGD.build(own, budget, choice), own)
    for (one, _), (other, _) in zip(ones, others, strict=True):
        np.testing.assert_allclose(one.w, other.w, rtol=1e-9, atol=1e-9 * np.abs(other.w).max())


def test_where_all_are_linked_to_all_and_f_is_linearised_at_z_it_is_the_admm_of_the_paper():
    own, rho = task(federation(sizes=(6, 6, 6))), Cooling(1.5, 6)  # then all agents have noise of the same size
    admm = Variant(Trust(Constant(1e3)), Objective(), Gaussian(2.0), Clipped(Norm.L2, 0.4), order=Order.ZWD)
    agents = [Agent(shard, own.problem, admm, (0, p)) for p, shard in enumerate(own.shards)]
    twin = of_the_paper(agents, own.shape, rho, Order.ZWD, 6)
    ours = simulate(GraphADMM(6, 0.4, 2.0, rho, circulant(3, 2), Point.LOCAL), own)
    for (state, info), (other, z) in zip(ours, twin, strict=True):
        np.testing.assert_allclose(info.seen[0], z, rtol=0, atol=1e-12)
        np.testing.assert_allclose(state.w, other.w, rtol=0, atol=1e-12)


def test_one_agent_has_nobody_to_agree_with():
    own = ridge(1)
    *_, (state, _) = simulate(GraphADMM(800, 1e6, 0.0, stiff(own, 1.1), circulant(1, 4)), own)
    np.testing.assert_allclose(state.w, best(own), rtol=0, atol=1e-9)


@given(st.permutations(range(5)), st.sampled_from(sorted(NETWORKS)))
@settings(max_examples=15)
def test_other_names_for_the_agents_and_their_links_give_the_same_models_under_other_names(names, network):
    own, links = ridge(), NETWORKS[network].links
    renamed = Network(5, tuple((min(pair), max(pair)) for pair in ((names[p], names[q]) for p, q in links)))
    moved = replace(own, shards=tuple(own.shards[names.index(p)] for p in range(5)))
    moved = replace(moved, sizes=tuple(map(len, moved.shards)))
    pairs = zip(*(simulate(GraphADMM(5, 0.4, 0.0, Constant(1.5), one), of)
                  for one, of in ((NETWORKS[network], own), (renamed, moved))), strict=True)  # fmt: skip
    for (_, info), (_, other) in pairs:
        np.testing.assert_allclose(other.seen[0][list(names)], info.seen[0], rtol=0, atol=1e-12)


@EVERY
def test_a_disagreement_shrinks_as_the_links_say(network):
    """Without records each mode of the network obeys r^2 - 2 (1 - a) r + (1 - a) = 0, of modulus sqrt(1 - a)."""
    own = empty(ridge())
    own = replace(own, problem=replace(own.problem, beta=0.0))
    method = GraphADMM(60, 1.0, 0.0, Constant(1.0), network)
    z, dual = np.random.default_rng(0).normal(size=own.zeros.shape), own.zeros
    kept, apart = {"z": z, "dual": dual}, []
    for t in range(1, 61):
        kept, sent = method.answer(own, kept, Broadcast(t, kept["z"]))
        apart.append(float(np.abs(sent["z"] - sent["z"].mean(0)).max()))
    slowest = math.sqrt(np.linalg.eigvalsh(mixing(network))[-2].clip(0))
    assert apart[-1] <= max(50 * slowest**60, 1e-13)
    assert slowest < 1e-6 or apart[-1] >= 1e-3 * slowest**60
    np.testing.assert_allclose(kept["z"].mean(0), z.mean(0), atol=1e-12)


@EVERY
def test_what_an_agent_keeps_and_sends_follows_from_what_was_released_and_its_own_noisy_slope(network):
    """Whoever saw every message knows c_p and dual_p, and reads the noisy gradients off: nothing else is hidden."""
    own, rho = replace(ridge(), seed=3), Cooling(1.5, 5)
    std, z, dual = noise_std(own, 2.0, 0.4), own.zeros, own.zeros
    for state, info in simulate(GraphADMM(5, 0.4, 2.0, rho, network), own):
        c = network.means(z, own.index, network.bound)
        dual = dual + (rho(state.t - 1) * (c - z) if state.t > 1 else 0)
        slope = dual - rho(state.t) * (info.seen[0] - c)
        np.testing.assert_allclose(slope, noisy_gradients(own, c, 0.4, std, state.t), rtol=0, atol=1e-10)
        (z,) = info.seen


def test_agents_stay_in_the_set():
    own = ridge()
    own = replace(own, problem=replace(own.problem, domain=Ball(0.02)))
    for state, info in simulate(GraphADMM(20, 1e3, 0.0, stiff(own, 2.1), path(5)), own):
        assert all(own.problem.domain.contains(z) for z in info.seen[0])
        assert own.problem.domain.contains(state.w)


def test_a_round_is_one_release_and_one_model_for_each_link_end():
    own = task()
    method = build_on(path(3), own, Budget(1.0, 1e-5), ENTRY.grid[0])
    assert [count for _, count in method.promise(own).each_round] == [1]
    assert 0.99 < method.promise(own).total(100, 1e-5).epsilon <= 1.0
    (_, info), *_ = simulate(method, own)
    assert [array.shape for array in info.seen] == [(3, *own.shape)]
    assert info.sent == 4 * math.prod(own.shape)


def test_a_network_of_other_agents_is_refused():
    with pytest.raises(IncompatibleError, match="the network has 4 agents, and the records 3"):
        build_on(path(4), task(), Budget(1.0, 1e-5), ENTRY.grid[0])


@pytest.mark.parametrize("name", ["graph-admm", "gadmm"])
def test_agents_start_in_a_set_that_does_not_hold_zero(name):
    values = {"data.agents": 3, "run.rounds": 4, "run.seed": 0, "problem.domain": "box", "problem.domain_low": 0.5}
    spec = preset("sound", name, "synthetic").with_values(values)
    setup = build.setup(spec, build.federation(spec))
    state = setup.server.start()
    assert (state.w == 0.5).all()
    assert (state.own["z"] == 0.5).all()
