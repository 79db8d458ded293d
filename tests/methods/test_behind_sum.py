"""Behind a secure sum: integers that add up exactly, the noise of one release, and one method under two names."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import SpecError
from tacit.methods import behind_sum
from tacit.methods.gradient_descent import FedGD, cooled
from tacit.methods.method import Budget, Coordinator, Here, simulate
from tacit.methods.onemessage import OneMessage
from tacit.methods.promise import Trusted
from tacit.methods.registry import METHODS
from tacit.methods.task import noise_std
from tacit.privacy.exact import Law, sample
from tacit.privacy.noise import stream
from tacit.privacy.summed import InSum, Peers
from tacit.problem.sensitivity import Clipped
from tacit.types import Federation, Norm, Shard
from tests.conftest import federation
from tests.methods.tasks import pooled_gradient, task

CLIP = Clipped(Norm.L2, 0.4)
PAIRS = [("secure-sum", "fedgd"), ("onemessage-sum", "onemessage")]


def descent(colluding=1, multiplier=2.0, rounds=3, repetitions=0):
    return FedGD(rounds, 0.4, multiplier, 0.5, InSum(colluding, repetitions))


def asked(method, own, w=None):
    """The words of all agents in round 1, and their sum modulo 2^64, of which the server has the total."""
    w = np.zeros(own.shape) if w is None else w
    asking = Coordinator(method, own.facts)
    msg = replace(asking.ask(asking.start()), w=w)
    _, sent = method.answer(own, method.carried(own), msg)
    (arrived,) = Here(asking, own)([msg])
    (words,), (total,) = sent.values(), arrived.values()
    residues = words.sum(0)
    np.testing.assert_array_equal(total, method.behind(own).total(residues))
    return words, residues


@given(seed=st.integers(0, 10**6), colluding=st.integers(0, 2))
def test_a_total_is_the_sum_of_the_rounded_values_and_of_the_noise_that_was_drawn_in_integers(seed, colluding):
    own = task(seed=seed)
    method = descent(colluding)
    w = np.random.default_rng(seed).normal(size=own.shape)
    words, residues = asked(method, own, w)
    attempt = method.behind(own).attempt
    values = own.data_gradients(w, CLIP)
    whole = [[int(x) for x in np.rint(value / attempt.step).ravel()] for value in values]
    drawn = [sample(Law.GAUSSIAN, attempt.share_steps, own.shape, stream((seed, p), 1, 0)) for p in own.index]
    noise = [[int(n) for n in one.ravel()] for one in drawn]
    expected = [sum(column) for column in zip(*whole, *noise, strict=True)]  # Python's integers do not wrap
    assert words.dtype == residues.dtype == np.uint64
    assert attempt.steps(residues).ravel().tolist() == expected
    assert method.behind(own).total(residues).ravel().tolist() == [n * attempt.step for n in expected]


@pytest.mark.parametrize("name", ["secure-sum", "onemessage-sum"])
def test_words_wrap_around_and_the_total_does_not(name):
    """Words of 200 agents pass 2^k together many times over: half of them stand for numbers below zero."""
    own = task(federation(n_agents=200))
    method = METHODS[name].build(own, Budget(0.05), METHODS[name].grid[0])
    words, residues = asked(method, own)
    attempt = method.behind(own).attempt
    half, whole = 1 << (attempt.width - 1), 1 << attempt.width
    columns = words.reshape(200, -1).T.tolist()
    assert all(sum(column) > whole for column in columns)
    exact = [sum(word if word < half else word - whole for word in column) for column in columns]
    assert attempt.steps(residues).ravel().tolist() == exact
    assert attempt.holds(residues)


@given(seed=st.integers(0, 10**6), colluding=st.integers(0, 2))
def test_rounds_are_gradient_descent_on_totals_and_the_server_adds_the_regulariser(seed, colluding):
    own, method = task(seed=seed, beta=0.5), descent(colluding)
    w = np.zeros(own.shape)
    for state, info in simulate(method, own):
        (total,) = info.seen
        assert total.shape == (math.prod(own.shape),)  # and nothing else was seen
        slope = total.reshape(own.shape) + own.problem.beta * own.problem.regularizer.gradient(w)
        w = w - cooled(0.5, 3, state.t) * slope
        np.testing.assert_array_equal(state.w, w)


@pytest.mark.parametrize("colluding", [0, 1, 2])
def test_the_noise_of_a_total_has_the_law_of_one_release_with_that_of_the_colluding(colluding):
    own, rounds = task(), 400
    method, w, noise = descent(colluding, rounds=rounds), np.zeros(own.shape), []
    for state, info in simulate(method, own):
        noise.append(info.seen[0].reshape(own.shape) - own.data_gradients(w, CLIP).sum(0))
        w = state.w
    found, n = np.ravel(noise) / (noise_std(own, 2.0, 0.4) * math.sqrt(3 / (3 - colluding))), np.size(noise)
    assert abs(np.mean(found)) < 5 / math.sqrt(n)
    assert abs(np.mean(found**2) - 1) < 5 * math.sqrt(2 / n)
    assert abs(np.mean(found**4) - 3) < 5 * math.sqrt(96 / n)  # a Gaussian's, and no sum of a few uniform numbers
    assert method.behind(own).std == pytest.approx(noise_std(own, 2.0, 0.4) * math.sqrt(3 / (3 - colluding)), rel=1e-4)


@pytest.mark.parametrize("name", ["fedgd", "onemessage"])
@pytest.mark.parametrize("colluding", [0, 1, 2])
def test_the_agents_that_do_not_collude_have_the_noise_of_one_release_together(name, colluding):
    own = task()
    method = METHODS[name].build(own, Budget(1.0, 1e-5, InSum(colluding)), METHODS[name].grid[0])
    sum_ = method.behind(own)
    honest = sum_.attempt.step * sum_.attempt.share_steps * math.sqrt(3 - colluding)
    ((release, _),) = method.promise(own).each_round
    assert honest >= release.multiplier * sum_.summed.sensitivity
    assert honest == pytest.approx(release.multiplier * sum_.summed.sensitivity, rel=1e-4)


@pytest.mark.parametrize(("name", "plain"), PAIRS)
def test_a_name_that_stands_for_a_sum_is_the_method_behind_a_sum(name, plain):
    own, budget = task(), Budget(1.0, 1e-5)
    for choice in METHODS[plain].grid:
        behind = METHODS[plain].build(own, replace(budget, in_sum=InSum()), choice)
        assert METHODS[name].build(own, budget, choice) == behind
        assert METHODS[name].build(own, replace(budget, in_sum=InSum(2)), choice).in_sum == InSum(2)
    assert METHODS[name].grid == METHODS[plain].grid
    assert METHODS[plain].build(own, budget, choice).in_sum is None


def test_a_record_moves_no_entry_of_a_value_beyond_the_bound_that_sizes_words():
    """All records alike and as long as allowed: an entry is I_p times what one record moves it, and no more."""
    n, rows = 40, np.array([[1.0, 0.0]])
    shards = tuple(Shard(np.repeat(rows, n, 0), np.zeros(n, int), np.float64) for _ in range(3))
    own = task(Federation(shards, shards[0], 2))
    own = replace(own, row_norm=1.0)
    for method in (descent(), OneMessage(2.0, 1.0, InSum())):
        quiet = replace(method, multiplier=0.0)
        _, sent = quiet.answer(own, {}, quiet.ask(own, quiet.start(own)))
        sum_ = method.behind(own)
        assert 0.3 * sum_.summed.largest < np.abs(sent["answer"]).max() <= sum_.summed.largest
        assert sum_.summed.largest == n * sum_.summed.sensitivity


def test_the_sensitivities_are_those_of_what_is_summed():
    own = task()
    assert descent().behind(own).summed.sensitivity == noise_std(own, 1.0, 0.4)
    assert OneMessage(2.0, 0.7, InSum()).behind(own).summed.sensitivity == OneMessage(0.0, 0.7).sensitivity(own)


@pytest.mark.parametrize("name", ["fedgd", "onemessage"])
def test_repetitions_are_calibrated_for_and_promised(name):
    own, budget = task(), Budget(1.0, 1e-5, InSum(1, 7))
    method = METHODS[name].build(own, budget, METHODS[name].grid[0])
    promise = method.promise(own)
    assert sum(count for _, count in promise.events(method.rounds)) == method.rounds + 7
    assert method.behind(own).summed.releases == method.rounds + 7
    assert 0.99 < promise.total(method.rounds, 1e-5).epsilon <= 1.0
    assert method.multiplier == budget.multiplier(method.rounds + 7) > budget.multiplier(method.rounds)


@pytest.mark.parametrize(("name", "plain"), PAIRS)
def test_it_trusts_the_sum_and_says_who_may_collude(name, plain):
    own = task()
    promise = METHODS[name].build(own, Budget(1.0), METHODS[name].grid[0]).promise(own)
    assert (promise.trusted, promise.coalition) == (Trusted.SUM, (1, 3))
    alone = METHODS[plain].build(own, Budget(1.0), METHODS[plain].grid[0]).promise(own)
    assert (alone.trusted, alone.coalition) == (Trusted.NOBODY, None)


def test_without_noise_a_round_is_one_gradient_step_on_the_pooled_loss_and_promises_nothing():
    """A grid follows the noise: without noise the total is one of floats."""
    own, method = task(), FedGD(5, 1e3, 0.0, 0.7, InSum())
    state, info = next(simulate(method, own))
    np.testing.assert_allclose(state.w, -0.7 * pooled_gradient(own, np.zeros(own.shape)), rtol=0, atol=1e-14)
    assert info.seen[0].dtype == np.float64
    assert method.behind(own) is None
    assert method.promise(own).caveats


def test_a_word_is_counted_as_eight_bytes():
    own = task()
    for method, width in ((descent(), 8), (FedGD(3, 0.4, 2.0, 0.5), 4)):
        _, info = next(simulate(method, own))
        assert info.sent == width * math.prod(own.shape)


def test_all_agents_cannot_collude():
    own = task()
    for colluding in (3, 4, -1):
        with pytest.raises(SpecError, match="cannot collude"):
            METHODS["fedgd"].build(own, Budget(1.0, 1e-6, InSum(colluding)), METHODS["fedgd"].grid[0])


def test_a_sum_that_no_word_holds_is_refused_before_a_round_begins():
    facts = replace(task().facts, sizes=(10**9,) * 3)
    with pytest.raises(SpecError, match="bits and a residue has 64"):
        METHODS["fedgd"].build(facts, Budget(50.0, 1e-6, InSum()), METHODS["fedgd"].grid[0])


def test_a_gradient_at_a_hidden_z_would_move_by_many_times_the_clip():
    """Why a sum takes gradients at w: one record moves a hidden z_p, and all other gradients are taken there."""
    bound, rho, weight = Clipped(Norm.L2, 0.5), 0.002, 1 / 41
    with_it, without = _balanced(41, weight), _balanced(40, weight)
    w = np.zeros(with_it.shape)
    at_w = [own.gradients(w, bound)[0] for own in (with_it, without)]
    assert np.linalg.norm(at_w[0] - at_w[1]) <= 0.5 * weight
    hidden = [w - gradient / rho for gradient in at_w]  # the next z_p, less a noise that the sum hides
    at_z = [own.gradients(z, bound)[0] for own, z in zip((with_it, without), hidden, strict=True)]
    assert np.linalg.norm(at_z[0] - at_z[1]) > 10 * 0.5 * weight


def _balanced(n, weight):
    """One agent with n equal records, every second one of class 1."""
    shard = Shard(np.ones((n, 1)), np.arange(n) % 2)
    own = task(Federation((shard,), shard, 2))
    return replace(own, problem=replace(own.problem, weight=weight, beta=0.0))


def test_noises_of_a_total():
    facts = task().facts
    assert behind_sum.noises(facts, None) == 3
    assert behind_sum.noises(facts, InSum(1)) == 3 / Peers(3, 1).honest == 1.5
