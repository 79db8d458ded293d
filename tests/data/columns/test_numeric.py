"""Numbers: bins, splines, log scales, and missing cells as a level."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.data.column_kinds import NumericColumn, Tally
from tacit.types import Array


def encoded(kind: NumericColumn, *values: object) -> list[list[float]]:
    rows: list[list[float]] = kind.encode(np.array(values, dtype=object), ())[0].tolist()
    return rows


def test_a_bin_has_its_lower_end_and_the_last_one_both() -> None:
    kind = NumericColumn(0, 1, bins=4)
    assert kind.features("u") == ("u in [0, 0.25)", "u in [0.25, 0.5)", "u in [0.5, 0.75)", "u in [0.75, 1]")
    found = encoded(kind, 0, 0.2499, 0.25, 0.75, 1, 9, -9)
    assert [row.index(1) for row in found] == [0, 0, 1, 3, 3, 3, 0]
    assert all(sum(row) == 1 for row in found)


def test_an_end_of_a_bin_is_where_its_name_says() -> None:
    kind = NumericColumn(0, 1, bins=100)
    for k in range(100):  # 100 * 0.29 is 28.999999999999996
        assert encoded(kind, k / 100)[0][k] == 1


def test_edges_are_the_ends_of_the_bins_between_lo_and_hi() -> None:
    kind = NumericColumn(0, 120, edges=(18, 65))
    assert kind.features("age") == ("age in [0, 18)", "age in [18, 65)", "age in [65, 120]")
    assert encoded(kind, 17.9, 18, 64, 65) == [[1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1]]


def test_names_of_bins_have_as_many_digits_as_tell_them_apart() -> None:
    names = NumericColumn(1e6, 1e6 + 1e-3, bins=3).features("t")
    assert len(set(names)) == 3
    assert NumericColumn(0, 99999, spline=2).features("gain") == ("gain near 0", "gain near 99999")


@given(st.lists(st.floats(-1, 2), min_size=1, max_size=9), st.integers(2, 9))
def test_hats_are_a_partition_of_unity_to_the_bit_and_their_mean_of_knots_is_the_number(
    values: list[float], knots: int
) -> None:
    x, _ = NumericColumn(0, 1, spline=knots).encode(np.array(values), ())
    assert x.dtype == np.float32
    assert (x.astype(np.float64).sum(axis=1) == 1).all()
    assert (np.count_nonzero(x, axis=1) <= 2).all()
    np.testing.assert_allclose(x @ np.linspace(0, 1, knots), np.clip(values, 0, 1), atol=1e-6)


def test_a_log_scale_gives_every_decade_the_same_room() -> None:
    kind = NumericColumn(1, 1000, scale="log")
    assert np.ravel(encoded(kind, 1, 10, 100, 1000, 0, "")).tolist() == pytest.approx([0, 1 / 3, 2 / 3, 1, 0, 0.5])


def test_a_log_scale_from_zero_is_logarithmic_over_four_decades_in_any_unit() -> None:
    dollars, cents = NumericColumn(0, 99999, scale="log"), NumericColumn(0, 9999900, scale="log")
    found = np.ravel(encoded(dollars, 0, 9.9999, 99.999, 999.99, 9999.9, 99999))
    assert found[0] == 0
    assert np.diff(found[2:]).tolist() == pytest.approx([0.25, 0.25, 0.25], abs=0.01)
    assert np.ravel(encoded(cents, 5000)).tolist() == pytest.approx(np.ravel(encoded(dollars, 50)).tolist())


def test_bins_and_knots_of_a_log_scale_are_equal_on_that_scale() -> None:
    assert NumericColumn(1, 1000, scale="log", bins=3).cuts == pytest.approx((10, 100))
    assert NumericColumn(1, 100, scale="log", spline=3).knots == pytest.approx((1, 10, 100))


@pytest.mark.parametrize("keys", [{}, {"bins": 3}, {"spline": 3}, {"edges": (4.0,)}])
def test_a_missing_number_can_be_a_level_and_nothing_else(keys: dict[str, object]) -> None:
    kind = NumericColumn(0, 10, missing="level", marks=("0",), **keys)  # type: ignore[arg-type]
    x, tally = kind.encode(np.array(["", None, "x", "0.0", 5], dtype=object), ("?",))
    assert x[:4].tolist() == [[0] * (x.shape[1] - 1) + [1]] * 4
    assert x[4, -1] == 0
    assert x[4].sum() == (0.5 if not keys else 1)
    assert kind.features("u")[-1] == "u=missing"
    assert tally == Tally(missing=3, unreadable=1)
    assert kind.blocks("u")[0].number is (not keys)


def test_a_mark_of_one_column_is_none_of_another() -> None:
    marked, bare = (NumericColumn(0, 10, marks=marks) for marks in (("0",), ()))
    assert encoded(marked, "0", 0.0) == [[0.5], [0.5]]
    assert encoded(bare, "0", 0.0) == [[0], [0]]


@pytest.mark.parametrize("kind", [
    NumericColumn(0.5, 7, scale="log"), NumericColumn(0, 7, scale="log", spline=5), NumericColumn(0, 7, bins=5),
])  # fmt: skip
def test_a_number_becomes_the_same_bits_at_any_place_of_a_long_column(kind: NumericColumn) -> None:
    value: Array = np.random.default_rng(0).random(1003) * 8
    whole, _ = kind.encode(value, ())
    for start in (1, 2, 5, 1000):  # vectorised logarithms treat the ends of an array apart
        np.testing.assert_array_equal(kind.encode(value[start:], ())[0], whole[start:])
    texts = np.array([repr(float(v)) for v in value], dtype=object)
    np.testing.assert_array_equal(kind.encode(texts, ())[0], whole)


def test_numbers_beyond_floats_end_at_the_bounds() -> None:
    for keys in ({}, {"bins": 2}, {"spline": 2}, {"scale": "log"}):
        kind = NumericColumn(0, 1, **keys)  # type: ignore[arg-type]
        low, high = encoded(kind, "-1e400", "1e400")
        assert (low[0], high[-1]) == (0 if low[0] == 0 else 1, 1)
        assert math.isfinite(sum(low) + sum(high))
