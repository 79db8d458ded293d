"""Intercepts and row norms."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tacit.data.transform import rescale_rows, with_intercept
from tacit.errors import DataError, SpecError
from tacit.types import BLOCK, Array, Federation, Shard

ORDER = {"l1": 1, "l2": 2}


def federation(x: Array, **facts: object) -> Federation:
    y = np.zeros(len(x), int)
    return Federation((Shard(x, y),), Shard(x[:1], y[:1]), 2, **facts)  # type: ignore[arg-type]


def size(x: Array, norm: str) -> Array:
    return np.asarray(np.linalg.norm(x.astype(np.float64), ord=ORDER[norm], axis=1))


matrices = arrays.arrays(
    np.float32,
    st.tuples(st.integers(1, 4), st.integers(1, 40)),
    elements=st.floats(-(2.0**120), 2.0**120, width=32),
)
bounds = st.floats(1e-30, 1e30)


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("mode", ["clip", "unit"])
@given(x=matrices, bound=bounds)
def test_no_record_is_longer_than_the_bound_in_float64(norm: str, mode: str, x: Array, bound: float) -> None:
    changed = rescale_rows(federation(x), norm, bound, mode)
    for shard in (*changed.shards, changed.test):
        assert shard.x.dtype == np.float32
        assert (size(shard.x, norm) <= bound).all()
        assert not shard.x[(x[: len(shard)] == 0).all(1)].any()


@pytest.mark.parametrize("norm", ["l1", "l2"])
@given(x=matrices, bound=bounds)
def test_clip_leaves_short_records_bitwise_alone(norm: str, x: Array, bound: float) -> None:
    short = size(x, norm) <= bound
    assert np.array_equal(rescale_rows(federation(x), norm, bound).shards[0].x[short], x[short])


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_many_records_are_rescaled_as_each_alone(norm: str) -> None:
    x = np.random.default_rng(0).standard_normal((BLOCK + 7, 3)).astype(np.float32)
    whole = rescale_rows(federation(x), norm, 1.0).shards[0].x
    for i in (0, BLOCK - 1, BLOCK, BLOCK + 6):
        assert np.array_equal(whole[i], rescale_rows(federation(x[[i]]), norm, 1.0).shards[0].x[0])


def test_records_that_are_short_already_are_not_copied() -> None:
    before = federation(np.ones((3, 2), np.float32))
    assert rescale_rows(before, "l2", 2.0).shards[0].x is before.shards[0].x


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_unit_gives_the_norm_and_keeps_the_direction(norm: str) -> None:
    x = np.array([[3, -4], [0.03, 0.04], [0, 0]], np.float32)
    unit = rescale_rows(federation(x), norm, 2.0, "unit").shards[0].x
    assert size(unit, norm) == pytest.approx([2, 2, 0], rel=2e-6)
    assert unit[:, 0] * x[:, 1] == pytest.approx(unit[:, 1] * x[:, 0])


@pytest.mark.parametrize(
    ("declared", "bound", "mode", "known"),
    [
        (None, 2.0, "clip", (-2, 2)),
        ((0.0, 1.0), 2.0, "clip", (0, 1)),
        ((0.0, 1.0), 0.5, "clip", (0, 0.5)),
        ((0.0, 1.0), 2.0, "unit", (0, 2)),
        ((0.5, 1.0), 2.0, "clip", (0, 1)),
        ((-1.0, 1.0), 3.0, "unit", (-3, 3)),
    ],
)
def test_bounds_follow_from_what_was_public(
    declared: tuple[float, float] | None, bound: float, mode: str, known: tuple[float, float]
) -> None:
    x = np.array([[0.5, 1.0]], np.float32)
    assert rescale_rows(federation(x, bounds=declared), "l2", bound, mode).bounds == known


def test_an_intercept_is_a_last_column_of_ones() -> None:
    before = federation(np.array([[2, 3]], np.float32), features=("a", "b"), bounds=(2.0, 3.0))
    after = with_intercept(before)
    assert after.shards[0].x.tolist() == after.test.x.tolist() == [[2, 3, 1]]
    assert after.shards[0].x.dtype == np.float32
    assert after.features == ("a", "b", "intercept")
    assert after.bounds == (1.0, 3.0)
    assert with_intercept(replace(before, bounds=None)).bounds is None
    assert with_intercept(replace(before, features=())).features == ()
    with pytest.raises(DataError, match="add it once"):
        with_intercept(after)


def test_unknown_choices_and_impossible_bounds_are_refused() -> None:
    some = federation(np.ones((1, 2), np.float32))
    with pytest.raises(SpecError, match="unknown norm"):
        rescale_rows(some, "inf", 1.0)
    with pytest.raises(SpecError, match="did you mean 'clip'"):
        rescale_rows(some, "l1", 1.0, "clipp")
    for bound in (0.0, -1.0, float("inf"), float("nan")):
        with pytest.raises(SpecError, match="positive"):
            rescale_rows(some, "l1", bound)


@pytest.mark.parametrize(("longest", "norm", "bound", "mode", "rescaled"), [
    ((3.0, 1.5), "l2", 1.5, "clip", False),
    ((3.0, 1.5), "l2", 1.4, "clip", True),
    ((3.0, 1.5), "l1", 2.0, "clip", True),
    ((3.0, 1.5), "l1", 3.0, "clip", False),
    ((3.0, 1.5), "l2", 1.5, "unit", True),
    (None, "l2", 1e6, "clip", True),
])  # fmt: skip
def test_whether_records_may_be_rescaled_follows_from_public_bounds_alone(
    longest: tuple[float, float] | None, norm: str, bound: float, mode: str, rescaled: bool
) -> None:
    for x in (np.zeros((2, 3)), np.full((2, 3), 0.8)):
        shard = Shard(x, np.array([0, 1]))
        made = rescale_rows(Federation((shard,), shard, 2, longest=longest), norm, bound, mode)
        assert made.rescaled is rescaled
        assert rescale_rows(made, "l2", 1e6).rescaled is (rescaled or longest is None)
