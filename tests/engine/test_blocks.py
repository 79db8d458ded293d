"""Sums over blocks of agents, whoever holds them."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.engine.blocks import LEAST, MOST, block_size, folded, parts, shares


@given(st.integers(1, 100), st.integers(1, 20), st.lists(st.integers(0, 100), max_size=4))
def test_parts_of_any_cut_fold_to_the_sum_of_one_process(n_agents, block, cuts):
    z = np.random.default_rng(n_agents).standard_normal(n_agents).astype(np.float32).astype(np.float64)
    whole = 0.0
    for first in range(0, n_agents, block):
        own = 0.0
        for each in z[first : first + block]:
            own += each
        whole += own
    edges = [0, *sorted(min(cut, n_agents) for cut in cuts), n_agents]
    runs = [run for a, b in itertools.pairwise(edges) for run in parts(a, b, block)]
    assert [p for run in runs for p in run] == list(range(n_agents))

    def total(run):
        own = 0.0
        for p in run:
            own += z[p]
        return np.array(own)

    assert folded(((run, total(run)) for run in runs), block) == whole


@given(st.lists(st.integers(1, 50), min_size=1, max_size=300), st.integers(1, 12))
def test_shares_hold_every_agent_once_in_order_and_rank_0_holds_one(counts, n_ranks):
    found = shares(counts, n_ranks)
    assert len(found) == n_ranks
    assert [p for own in found for p in own] == list(range(len(counts)))
    assert len(found[0]) >= 1


@given(st.lists(st.integers(1, 50), min_size=40, max_size=300), st.integers(1, 8))
def test_shares_differ_by_no_more_than_the_largest_agents(counts, n_ranks):
    sizes = [sum(counts[p] for p in own) for own in shares(counts, n_ranks)]
    assert max(sizes) <= sum(counts) / n_ranks + 2 * max(counts)


@pytest.mark.parametrize("n_agents", [10**5, 10**6])
def test_of_many_agents_whole_blocks_are_dealt_and_few_sums_sent(n_agents):
    block = block_size(n_agents)
    assert block_size(LEAST * MOST) == LEAST
    runs = [parts(own.start, own.stop, block) for own in shares([1] * n_agents, 7)]
    assert sum(map(len, runs)) <= MOST
    assert max(map(len, runs)) <= -(-MOST // 7) + 1
