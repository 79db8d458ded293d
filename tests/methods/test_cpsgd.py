"""cpSGD: whole numbers that one record moves by so much, binomial noise on them, gradient descent by the server."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.audit import methods as audit
from tacit.errors import SpecError
from tacit.methods.cpsgd import CPSGD, ENTRY
from tacit.methods.gradient_descent import FEDGD, cooled
from tacit.methods.method import Budget, simulate
from tacit.methods.task import noise_std
from tacit.privacy import noise
from tacit.privacy.release import BinomialRelease
from tests.methods.tasks import empty, one_round, pooled_gradient, task

BUDGET = Budget(1.0, 1e-6)


def test_the_mean_of_many_rounds_is_a_step_of_gradient_descent():
    own = task(beta=1e-2)
    method = CPSGD(1, 100.0, BinomialRelease(400, 16.0, math.prod(own.shape), 1e-8), 1000.0, 0.5, 32)
    w = np.random.default_rng(0).normal(size=own.shape)
    seeds = range(400)
    steps = [(w - one_round(replace(own, seed=seed), method, w)[0].w) / cooled(0.5, 1, 1) for seed in seeds]
    std = math.sqrt(own.n_agents * (400 / 4 + 1 / 4) / len(seeds)) * method.grain(own)
    assert (np.abs(np.mean(steps, 0) - pooled_gradient(own, w)) < 5 * std).all()


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), clip=st.floats(0.05, 2))
def test_one_record_moves_what_is_rounded_by_no_more_steps_than_are_promised(seed, clip):
    rng = np.random.default_rng(seed)
    own, w = audit.task(), 3 * rng.normal(size=(4, 3))
    shard = own.shards[0]
    rows = shard.x.copy()
    rows[-1] = 5 * rng.normal(size=4)  # longer than declared: it is clipped
    present = replace(own, shards=(replace(shard, x=rows), *own.shards[1:]))
    method = CPSGD(1, clip, BinomialRelease(400, 16.0, 12, 1e-8), 16.0, 0.5, 32)
    whole = []
    for side in (present, audit.without(present, method.promise(own).unit)):
        msg = replace(method.ask(own, method.start(own)), w=w)
        sent = method.answer(side, {}, msg)[1]["gradient"][0]
        whole.append(sent - noise.binomial((side.seed, 0), 1, 0, 400, sent.shape))
    apart = np.abs(whole[0] - whole[1])  # with one U each entry moves by a number next to the move before rounding
    assert np.linalg.norm(np.maximum(apart - 1, 0)) <= method.moved
    assert apart.max() <= math.ceil(method.moved)


def test_the_noise_is_about_that_of_fedgd_at_the_same_budget():
    own = task()
    one, other = (entry.build(own, BUDGET, entry.grid[0]) for entry in (ENTRY, FEDGD))
    std = math.sqrt(one.release.coins) / 2 * one.grain(own)
    assert 1 < std / noise_std(own, other.multiplier, other.clip) < 1.25


def test_an_answer_has_as_many_bits_as_are_said_and_saturates_after_the_noise():
    own = task()
    for bits, word in ((8, np.int8), (16, np.int16), (32, np.int32)):
        method = ENTRY.build(own, BUDGET, {**ENTRY.grid[0], "bits": bits, "rounds": 2})
        _, info = next(simulate(method, own))
        assert info.seen[0].dtype == word
        assert info.sent == bits / 8 * math.prod(own.shape)
    crowded = ENTRY.build(own, Budget(0.1, 1e-6), {**ENTRY.grid[0], "bits": 8, "rounds": 2})
    _, info = next(simulate(crowded, empty(own)))
    assert math.sqrt(crowded.release.coins) / 2 > 127
    assert info.seen[0].max() == 127
    assert info.seen[0].min() == -127


def test_where_the_noise_would_not_fit_into_the_bits_steps_are_coarser():
    facts = replace(task().facts, shape=(1000, 20), sizes=(6000,) * 10)
    fine, coarse = (ENTRY.build(facts, Budget(0.5, 1e-6), {**ENTRY.grid[0], "bits": bits}) for bits in (32, 16))
    assert fine.moved == pytest.approx(2 * math.sqrt(20_000))
    assert coarse.moved < fine.moved / 2
    assert 3 < (2**15 - 1) / (math.sqrt(coarse.release.coins) / 2) < 4
    for method in (fine, coarse):
        assert 0.499 < method.promise(facts).total(100, 1e-6).epsilon <= 0.5


def test_an_epsilon_that_takes_more_coins_than_can_be_drawn_is_refused():
    with pytest.raises(SpecError, match=r"coins an entry, more than 2\^60: raise privacy\.epsilon"):
        ENTRY.build(task(), Budget(1e-8, 1e-12), ENTRY.grid[0])


def test_other_numbers_of_bits_are_refused():
    with pytest.raises(SpecError, match=r"method\.bits of cpsgd must be one of 8, 16, 32: got 12"):
        ENTRY.build(task(), BUDGET, {**ENTRY.grid[0], "bits": 12})


def test_without_a_budget_numbers_are_rounded_and_nothing_is_promised():
    own = task(beta=1e-2)
    method = ENTRY.build(own, Budget(math.inf), {**ENTRY.grid[0], "clip": 100.0, "fineness": 1000.0, "bits": 32})
    *_, (state, _) = simulate(replace(method, rounds=400, step=1.0), own)
    assert np.linalg.norm(pooled_gradient(own, state.w)) < 1e-3
    assert method.promise(own).caveats == ("no noise is added.",)
