"""Attacks on an agent with a list of queries: the agreement decides what is answered and how, and no message does.

Records are shut while a hostile question is asked: whoever reads them then stops the test.
"""

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.agent.agreement import Agreement, NoisyQuery
from tacit.errors import IncompatibleError, SpecError
from tacit.privacy import lattice
from tacit.privacy.release import GaussianRelease
from tacit.privacy.summed import InSum
from tacit.problem.sensitivity import Adjacency
from tacit.query.moments import Moments
from tests.agent.listed import (
    ALONE,
    CELLS,
    GAUSSIAN,
    IN_SUM,
    MOMENTS,
    PEERS,
    SHAPE,
    N,
    agent_of,
    answered,
    every,
    question,
    refused,
    rows,
    spent,
)  # fmt: skip
from tests.conformance.query_samples import SAMPLES

# --- the cover -------------------------------------------------------------------------------------------------------


def test_an_agent_that_agreed_to_answer_alone_puts_no_answer_into_a_sum(store):
    """Its answer would carry a share of the noise if a message could choose the cover."""
    agent, shut = agent_of(ALONE, store)
    for t in range(1, ALONE.rounds + 1):
        for peers in (PEERS, ("ann",), ("ann", "bob"), ("mallory",)):
            refused(agent, question(agent, t, peers=peers), "names peers if and only if the run has a secure sum")
    assert answered(agent, shut, question(agent)).dtype == np.float64


def test_an_agent_that_agreed_to_a_sum_never_answers_alone(store, masks):
    agent, shut = agent_of(IN_SUM, store, masks)
    for t in range(1, IN_SUM.rounds + 1):
        refused(agent, question(agent, t, peers=()), "names peers if and only if the run has a secure sum")
    assert answered(agent, shut, question(agent)).dtype == np.uint64


@pytest.mark.parametrize(("peers", "reason"), [
    (("ann",), "1 of 1 agents cannot collude"), (("ann", "bob"), "a sum over 2 agents"),
    (("bob", "cid", "dee"), "a sum without 'ann' is none of its business"),
    (("ann", "bob", "mallory"), "a peer that has shown no signed key"),
    (("ann", "ann", "bob"), "each once"), (("cid", "bob", "ann"), "in their order"),
    (["ann", "bob", "cid"], "names that can be printed"), ("ann", "names that can be printed"),
    (("ann", "bob", 3), "names that can be printed"), (("ann", "bob", "\x1b"), "names that can be printed"),
    (None, "names that can be printed"), (("", "ann", "bob"), "names that can be printed"),
])  # fmt: skip
def test_a_sum_has_the_peers_whose_keys_are_known_and_enough_of_them(masks, peers, reason):
    agent, _ = agent_of(IN_SUM, masks=masks)
    refused(agent, question(agent, peers=peers), reason)


@pytest.mark.parametrize("attempt", [-1, 3, 10**30, True, 0.0, "0", None])
def test_attempts_are_those_of_the_agreement(masks, attempt):
    agent, _ = agent_of(IN_SUM, masks=masks)
    refused(agent, question(agent, attempt=attempt), "an attempt is a whole number from 0 to 2")


def test_an_agent_that_answers_alone_repeats_no_round(store):
    agent, shut = agent_of(ALONE, store)
    refused(agent, question(agent, attempt=1), "an attempt is a whole number from 0 to 0")
    answered(agent, shut, question(agent))
    refused(agent, question(agent, attempt=1), "an attempt is a whole number from 0 to 0")


# --- parameters ------------------------------------------------------------------------------------------------------

ODD = (math.nan, -1.0, math.inf, -math.inf, 0.0, 1e60, "1", None, True, 1j, np.ones(2))
OF_MOMENTS = (
    *({name: odd} for name in ("gram", "cross", "square", "row_norm") for odd in ODD), {"gram": 1.0},
    {"shape": (4, 4)}, {"view": "raw cells"}, {"cube": 1.0}, {"point": np.zeros(SHAPE)}, {1: 1.0}, None, [], (), "{}",
)  # fmt: skip
OF_COUNTS = (
    {}, None, [], {"model": None}, {"model": [[0.0] * 3] * 4}, {"model": np.zeros((3, 4))}, {"model": np.zeros((4, 1))},
    {"model": np.zeros(12)}, {"model": np.zeros((7, *SHAPE))}, {"model": np.zeros(SHAPE, np.float32)},
    {"model": np.zeros(SHAPE, object)}, {"model": np.zeros(SHAPE, complex)}, {"model": np.full(SHAPE, math.nan)},
    {"model": np.full(SHAPE, -math.inf)}, {"model": np.full(SHAPE, 1e51)}, {"model": np.ma.zeros(SHAPE)},
    {"model": np.zeros(SHAPE), "edges": ((1.0, 0.0),)}, {"model": np.zeros(SHAPE), "columns": ("c0",)},
    {"edges": ((0.0, 1.0),)}, {"Model": np.zeros(SHAPE)},
)  # fmt: skip
OF_CELLS = ({"columns": ("c1",)}, {"edges": ((1.0, 0.0),)}, {"edges": ((math.nan,),)}, {"model": np.zeros(SHAPE)}, None)


HOSTILE = {"moments": (3, OF_MOMENTS), "scores": (4, OF_COUNTS), "cells": (6, OF_CELLS)}


@pytest.mark.parametrize("of", HOSTILE)
def test_hostile_parameters_are_refused_before_a_record_is_read(store, of):
    """A message holds the parts that the agreement leaves open, and no weight, block, edge or column."""
    (agent, shut), (t, hostile) = agent_of(ALONE, store), HOSTILE[of]
    for parameters in hostile:
        refused(agent, question(agent, t, parameters=parameters), "the parts|float64 array of shape|not finite")
    answered(agent, shut, question(agent, t))


WRONG = {
    **{f"{key} {odd}": lambda key=key, odd=odd: replace(MOMENTS, **{key: odd})
       for key in ("gram", "cross", "square", "row_norm") for odd in ODD if odd is not None},
    **{f"edges {edges}": lambda edges=edges: replace(CELLS, edges=(edges, (0.0,)))
       for edges in ((), (0.0, 0.0), (1.0, 0.0), (0.0, math.nan), (0.0, math.inf), (0, 1), [0.0], None)},
    "no block": lambda: Moments(SHAPE, 1.0), "another shape": lambda: replace(MOMENTS, shape=(4,)),
    "an unknown block": lambda: replace(MOMENTS, cube=1.0), "raw cells": lambda: replace(MOMENTS, view="raw cells"),
}  # fmt: skip


@pytest.mark.parametrize("made", WRONG.values(), ids=WRONG)
def test_no_agreement_lists_a_query_with_wrong_weights_blocks_or_edges(made):
    with pytest.raises((SpecError, IncompatibleError, TypeError)):
        made()


# --- records ---------------------------------------------------------------------------------------------------------

GARBAGE = (math.nan, math.inf, -math.inf, 1e308, -1e308)


@pytest.mark.parametrize("what", GARBAGE)
def test_an_absent_record_adds_zero_to_every_answer_whatever_its_row_holds(monkeypatch, what):
    """Without noise, and bit for bit: the answers of blank rows, and of no rows at all if nobody is present."""
    monkeypatch.setattr(lattice, "release", lambda value, _scale, _law: value)
    present = np.arange(N) % 3 > 0
    own = rows()
    odd = replace(own, x=own.x.copy(), y=own.y.copy(), present=present)
    odd.x[~present], odd.y[~present] = what, 10**9
    odd = replace(odd, cells={name: np.where(present, cell, what) for name, cell in own.cells.items()})
    blank = replace(odd, x=np.where(present[:, None], own.x, 0), y=np.where(present, own.y, 0))
    none = np.zeros(N, bool)
    for other, wanted in ((odd, blank), (replace(odd, x=np.full_like(odd.x, what), present=none), None)):
        found = every(*agent_of(ALONE, table=other))
        expected = every(*agent_of(ALONE, table=wanted)) if wanted else {t: np.zeros(v.size) for t, v in found.items()}
        for t, value in found.items():
            np.testing.assert_array_equal(value, expected[t].reshape(value.shape))


EXTREME = (0.0, -0.0, 1.0, -1.0, 5e-324, 1e-160, 1e19, 3e38, 1e50, -1e50, *GARBAGE)


@pytest.mark.parametrize("covered", ["alone", "in a sum"])
@pytest.mark.parametrize("name", SAMPLES)
@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 60), features=st.sampled_from([1, 7, 64]))
def test_after_the_check_no_record_makes_an_answer_fail(masks, name, covered, seed, n, features):
    rng = np.random.default_rng(seed)
    case = SAMPLES[name].draw(rng, features)
    drawn = case.table(rng, n)
    with np.errstate(over="ignore"):
        x = rng.choice(EXTREME, size=drawn.x.shape).astype(drawn.x.dtype)
    cells = {key: rng.choice(EXTREME, size=n) for key in drawn.cells}
    table = replace(drawn, x=x, cells=cells, present=rng.random(n) < 0.8)
    in_sum = InSum() if covered == "in a sum" else None
    agreement = Agreement((NoisyQuery(case.query, GAUSSIAN, 1),), Adjacency.ZERO_OUT, n, in_sum)
    agent, shut = agent_of(agreement, None, masks, table)
    with np.errstate(all="raise"):
        value = answered(agent, shut, question(agent, parameters=case.body))
    assert value.size == case.query.size
    assert value.dtype == (np.float64 if covered == "alone" else np.uint64)
    assert np.isfinite(value).all()
    assert spent(agent.store) == Counter({GaussianRelease(5.0): 1})
