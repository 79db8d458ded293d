"""Partitions: every record once, no agent empty, whatever the sizes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.data.cells import Coded
from tacit.data.partition import (
    PARTITIONS,
    by_column,
    by_name,
    contiguous,
    dirichlet,
    distinct,
    shuffled,
    unequal,
)
from tacit.errors import DataError, SpecError
from tacit.types import Array

Cut = Callable[[Array, int, np.random.Generator], list[Array]]

RANDOM: list[Cut] = [
    shuffled,
    unequal,
    lambda y, n, rng: dirichlet(y, n, rng, 0.05),
    lambda y, n, rng: dirichlet(y, n, rng, 1e-300),
    lambda y, n, rng: dirichlet(y, n, rng, 100.0),
]


def assert_every_record_once(parts: list[Array], n_records: int, n_agents: int) -> None:
    assert len(parts) == n_agents
    assert min(map(len, parts)) >= 1
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(n_records))
    assert all(np.array_equal(part, np.sort(part)) for part in parts)


@pytest.mark.parametrize("cut", RANDOM)
@given(labels=st.lists(st.integers(0, 4), min_size=1, max_size=60), data=st.data(), seed=st.integers(0, 99))
def test_random_partitions_give_every_record_once_and_no_agent_nothing(
    cut: Cut, labels: list[int], data: st.DataObject, seed: int
) -> None:
    y = np.array(labels)
    n_agents = data.draw(st.integers(1, len(y)))
    parts = cut(y, n_agents, np.random.default_rng(seed))
    assert_every_record_once(parts, len(y), n_agents)
    again = cut(y, n_agents, np.random.default_rng(seed))
    assert all(map(np.array_equal, parts, again))


@given(n_agents=st.integers(1, 12), size=st.integers(1, 12))
def test_contiguous_blocks_are_equal_and_in_order(n_agents: int, size: int) -> None:
    parts = contiguous(np.zeros(n_agents * size), n_agents)
    assert_every_record_once(parts, n_agents * size, n_agents)
    assert {len(part) for part in parts} == {size}
    assert np.array_equal(np.concatenate(parts), np.arange(n_agents * size))


def test_contiguous_names_the_nearest_numbers_of_agents_that_divide() -> None:
    with pytest.raises(DataError, match=r"5 or 10 agents.*'unequal'"):
        contiguous(np.zeros(100), 7)


@given(n_records=st.integers(1, 200), data=st.data())
def test_shuffled_sizes_differ_by_one_at_most(n_records: int, data: st.DataObject) -> None:
    n_agents = data.draw(st.integers(1, n_records))
    sizes = [len(part) for part in shuffled(np.zeros(n_records), n_agents, np.random.default_rng(0))]
    assert max(sizes) - min(sizes) <= 1


def test_small_alpha_skews_labels_and_large_alpha_does_not() -> None:
    y = np.repeat(np.arange(5), 200)

    def purity(alpha: float) -> float:
        """The mean share of an agent's commonest label."""
        parts = dirichlet(y, 5, np.random.default_rng(1), alpha)
        return float(np.mean([np.bincount(y[part]).max() / len(part) for part in parts]))

    assert purity(1e4) < 0.25 < 0.6 < purity(0.01)


def test_unequal_sizes_are_unequal() -> None:
    sizes = [len(part) for part in unequal(np.zeros(1000), 10, np.random.default_rng(0))]
    assert max(sizes) > 2 * min(sizes)


@given(st.lists(st.sampled_from(["b", "a", "10", "2"]), min_size=1, max_size=30))
def test_by_column_gives_each_value_its_records_in_the_order_of_distinct(values: list[str]) -> None:
    parts = by_column(Coded.of(np.array(values)))
    assert_every_record_once(parts, len(values), len(set(values)))
    for name, part in zip(distinct(values), parts, strict=True):
        assert {values[i] for i in part} == {name}


def test_distinct_sorts_integers_by_number_and_the_rest_as_text() -> None:
    assert distinct(["10", "9", "-1"]) == ["-1", "9", "10"]
    assert distinct(["10", "9", "x"]) == ["10", "9", "x"]


@pytest.mark.parametrize("name", PARTITIONS)
def test_impossible_numbers_of_agents_are_refused(name: str) -> None:
    with pytest.raises(DataError, match="3 records cannot give 4 agents"):
        by_name(name, np.zeros(3, int), 4, seed=0)
    with pytest.raises(SpecError, match="at least 1"):
        by_name(name, np.zeros(3, int), 0, seed=0)


@pytest.mark.parametrize("alpha", [0.0, -1.0, float("inf"), float("nan")])
def test_an_impossible_alpha_is_refused(alpha: float) -> None:
    with pytest.raises(SpecError, match="alpha"):
        by_name("dirichlet", np.zeros(3, int), 2, seed=0, alpha=alpha)


def test_an_unknown_partition_gets_the_nearest_name() -> None:
    with pytest.raises(SpecError, match="did you mean 'dirichlet'"):
        by_name("dirichelt", np.zeros(3, int), 2, seed=0)
