"""Images become gradient orientations along public axes: nobody's data is in the map, and a record in its own row."""

from __future__ import annotations

import json
from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tacit.errors import IncompatibleError, RunDirectoryError, SpecError
from tacit.features import axes, gradients, orientations, registry
from tacit.features.gradients import GRID, Gradients, windows
from tacit.features.map import BLOCK, FeatureSpec, PublicFacts, apply
from tacit.features.orientations import OrientationsMap
from tacit.features.strokes import strokes
from tacit.types import Array

BUILT = pytest.mark.skipif(gradients.compiled() is None, reason="the compiled loops were not built")
CODES = pytest.mark.parametrize("code", ["numpy", pytest.param("compiled", marks=BUILT)])
SHAPES = pytest.mark.parametrize("shape", [(28, 28, 1), (8, 8, 1), (8, 8, 3), (11, 9, 2), (4, 4, 1), (65, 12, 1)])


def use(patch: pytest.MonkeyPatch, code: str) -> None:
    """Map by this code."""
    if code == "numpy":
        patch.setattr(gradients, "compiled", lambda: None)
        patch.setattr(orientations, "compiled", lambda: None)


@lru_cache
def images(shape: tuple[int, int, int], n: int = BLOCK, seed: int = 5) -> Array:
    """Half of them strokes, half noise that leaves [0, 1]."""
    drawn = strokes(*shape, n, seed)
    noise = np.random.default_rng(seed).normal(0.5, 0.5, drawn.shape).astype(np.float32)
    return np.where(np.arange(n)[:, None] % 2, drawn, noise)


# --- one record in, one record out


@CODES
@SHAPES
def test_a_row_is_the_same_bits_wherever_it_stands_and_whatever_stands_around_it(
    code: str, shape: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, code)
    found, x = OrientationsMap(*shape), images(shape)
    whole = found.block(x)
    assert whole.dtype == np.float32
    assert whole.shape == (BLOCK, found.n_outputs)
    order = np.random.default_rng(0).permutation(BLOCK)
    np.testing.assert_array_equal(found.block(x[order]), whole[order])
    np.testing.assert_array_equal(found.block(np.roll(x, 1, axis=0)), np.roll(whole, 1, axis=0))
    np.testing.assert_array_equal(found.block(x[:7]), whole[:7])
    others = np.where(np.arange(BLOCK)[:, None] % 3, np.float32(3e38), x)
    np.testing.assert_array_equal(found.block(others)[::3], whole[::3])


@BUILT
@SHAPES
def test_compiled_loops_and_numpy_agree_to_the_bit(
    shape: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    found, x = OrientationsMap(*shape, low=-0.25, high=1.5), images(shape)
    compiled = found.block(x)
    use(monkeypatch, "numpy")
    np.testing.assert_array_equal(found.block(x), compiled)


@BUILT
def test_sizes_that_do_not_belong_together_are_refused_before_a_loop_runs() -> None:
    kernels = gradients.compiled()
    assert kernels is not None
    g = Gradients(8, 8)
    x, out = np.zeros((2, 64), np.float32), np.zeros((2, g.n_outputs), np.float32)
    good = (x, (8, 8, 1), 12, (1.0, GRID), gradients.ANGLE, g.rows, g.columns, out)
    kernels.describe(*good)
    for place, bad in (
        (0, x[:1]), (1, (8, 9, 1)), (1, (0, 8, 1)), (1, (2**40, 2**40, 1)), (2, 1), (2, 13), (5, g.rows[:7]),
        (7, out[:1]),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="do not belong together"):
            kernels.describe(*good[:place], bad, *good[place + 1 :])
    q, mean, panels, scale = out, out[0], np.zeros((2, g.n_outputs, kernels.WIDE), np.float32), np.ones(9)
    right = (q, mean, panels, scale, 1.0, np.zeros((2, 9), np.float32))
    kernels.project(*right)
    for place, wrong in ((0, q[:, :9].copy()), (1, mean[:0]), (2, panels[:1]), (3, np.ones(17)), (5, q)):
        with pytest.raises(ValueError, match="do not belong together"):
            kernels.project(*right[:place], wrong, *right[place + 1 :])


# --- what a record may be


@CODES
@settings(max_examples=30)
@given(x=hnp.arrays(np.float32, (3, 6 * 5 * 2), elements=st.floats(width=32)))
def test_every_record_is_finite_and_within_the_bound_whatever_it_holds(code: str, x: Array) -> None:
    with pytest.MonkeyPatch.context() as patch:
        use(patch, code)
        found = OrientationsMap(6, 5, 2, low=-3.0, high=2.0)
        norms = np.linalg.norm(found.block(x).astype(np.float64), axis=1)
    assert ((norms <= found.bound) & (norms > 1 - 1e-5)).all()


def test_a_blank_image_is_the_way_from_the_mean_stroke_to_nothing() -> None:
    found = OrientationsMap(28, 28)
    black, grey = found.block(np.zeros((1, 784), np.float32)), found.block(np.full((1, 784), 0.5, np.float32))
    np.testing.assert_array_equal(black, grey)  # no gradient, whatever the level
    assert np.linalg.norm(black) == pytest.approx(1, abs=1e-5)
    near_mean = found.block(strokes(28, 28, 1, 200, 9)).astype(np.float64).mean(axis=0)
    assert np.linalg.norm(near_mean) < 0.2  # strokes lie around zero


def test_pixels_are_read_by_their_public_range() -> None:
    x = images((28, 28, 1))[1::2]
    usual = OrientationsMap(28, 28).block(x)
    bytes_ = OrientationsMap(28, 28, high=255.0).block(np.rint(x * 255))
    assert np.abs(bytes_ - usual).max() < 1e-3
    np.testing.assert_array_equal(OrientationsMap(28, 28).block(np.clip(images((28, 28, 1)), 0, 1)),
                                  OrientationsMap(28, 28).block(images((28, 28, 1))))  # fmt: skip


# --- what the features mean


def test_an_edge_falls_into_the_bin_of_its_direction() -> None:
    side, turns = 28, 12
    i, j = np.mgrid[:side, :side] / side
    for k in range(turns):
        angle = 2 * np.pi * k / turns
        ramp = 0.5 + 0.3 * (np.cos(angle) * (j - 0.5) + np.sin(angle) * (i - 0.5))
        q = Gradients(side, side, turns=turns)(ramp.reshape(1, -1)).reshape(-1, turns)
        inner = q.reshape(7, 7, turns)[2:5, 2:5].reshape(-1, turns).mean(axis=0)
        assert inner.argmax() == k
        strength = 0.3 / side * 16  # of one pixel, times the weight of a whole window
        assert inner[k] / GRID == pytest.approx(np.sqrt(strength), rel=1e-3)
        assert np.delete(inner, k).max() < 0.02 * inner[k]  # the square root of a share


def test_directions_are_those_of_atan2() -> None:
    rng = np.random.default_rng(0)
    g = rng.normal(size=(400, 2)).astype(np.float32) / 9
    centre = np.zeros((400, 3, 3, 1), np.float32)  # the gradient in the middle is g
    centre[:, 1, 2, 0], centre[:, 1, 0, 0] = g[:, 0], -g[:, 0]
    centre[:, 2, 1, 0], centre[:, 0, 1, 0] = g[:, 1], -g[:, 1]
    strength, turn = Gradients(3, 3, turns=16)._polar(centre)
    expected = np.arctan2(g[:, 1], g[:, 0]) / (2 * np.pi) % 1 * 16
    np.testing.assert_allclose(turn[:, 1, 1], expected, atol=2e-5)
    np.testing.assert_allclose(strength[:, 1, 1], np.linalg.norm(g, axis=1), rtol=1e-5)


def test_a_small_shift_changes_little_and_another_stroke_much() -> None:
    drawn = strokes(28, 28, 1, 40, 3)
    found = OrientationsMap(28, 28)
    moved = np.roll(drawn.reshape(-1, 28, 28), 1, axis=2).reshape(40, -1)
    a, b = found.block(drawn).astype(np.float64), found.block(moved).astype(np.float64)
    assert (a * b).sum(axis=1).min() > 0.5
    assert abs((a[:20] * a[20:]).sum(axis=1).mean()) < 0.3


@pytest.mark.parametrize("side", [4, 8, 11, 28, 32, 64])
def test_windows_share_every_pixel_inside_evenly(side: int) -> None:
    w = windows(side)
    assert w.shape == (side, min(8, max(1, round(side / 4))))
    inside = (np.arange(side) + 0.5 > side / w.shape[1] / 2) & (np.arange(side) + 0.5 < side - side / w.shape[1] / 2)
    if w.shape[1] > 1:
        np.testing.assert_allclose(w[inside].sum(axis=1), 1, rtol=1e-6)
    np.testing.assert_allclose(w, w[::-1, ::-1], atol=1e-6)


def test_colour_alone_is_seen() -> None:
    found = OrientationsMap(8, 8, 3)
    red, blue = np.zeros((2, 8, 8, 3), np.float32)
    red[..., 0] = blue[..., 2] = 1
    one, other = found.block(np.stack([red, blue]).reshape(2, -1))
    assert np.abs(one - other).max() > 0.1


def test_a_large_image_gives_what_its_small_copy_gives() -> None:
    small = images((33, 6, 1))[1::2][:20]
    large = small.reshape(-1, 33, 6).repeat(2, axis=1).repeat(2, axis=2)
    whole, part = OrientationsMap(66, 12), OrientationsMap(33, 6)
    assert whole.gradients == part.gradients
    np.testing.assert_allclose(whole.block(large.reshape(20, -1)), part.block(small), atol=2e-3)


# --- public constants


def test_the_shipped_axes_are_made_again_bit_for_bit() -> None:
    made, shipped = axes.made(axes.SHIPPED), axes.shipped()
    first = slice(axes.SHIPPED_AXES)
    for again, kept in (
        (made.mean, shipped.mean), (made.axes[:, first], shipped.axes), (made.spread[first], shipped.spread)
    ):  # fmt: skip
        assert again.dtype == kept.dtype
        np.testing.assert_array_equal(again, kept)


def test_the_map_of_digits_uses_the_shipped_axes() -> None:
    assert OrientationsMap(28, 28).gradients == axes.SHIPPED
    assert OrientationsMap(28, 28).n_outputs <= axes.SHIPPED_AXES


def test_axes_are_orthonormal_and_fall_in_spread() -> None:
    public = axes.shipped()
    a = public.axes / axes.AXIS_GRID
    np.testing.assert_allclose(a.T @ a, np.eye(a.shape[1]), atol=5e-3)
    assert (np.diff(public.spread) <= 0).all()
    assert public.spread[0] == axes.SPREAD_GRID


@SHAPES
def test_sums_of_the_projection_are_exact_in_float64(shape: tuple[int, int, int]) -> None:
    found = OrientationsMap(*shape)
    mean, a, _ = orientations._constants(found)
    assert (a == np.rint(a)).all()
    assert (mean == np.rint(mean)).all()
    q = found.gradients(images((found.gradients.height, found.gradients.width, shape[2])))
    assert (q == np.rint(q)).all()
    largest = GRID * np.sqrt(found.gradients.rows.sum(axis=0).max() * found.gradients.columns.sum(axis=0).max())
    assert ((largest + mean) @ np.abs(a)).max() < 2**53


def test_strokes_are_the_same_on_every_machine_and_in_every_number() -> None:
    few, many = strokes(28, 28, 1, 3, 1), strokes(28, 28, 1, 203, 1)
    np.testing.assert_array_equal(many[:3], few)
    levels = many * np.float32(255)
    assert np.abs(levels - np.rint(levels)).max() < 1e-4  # grey levels: no last bit survives
    assert (np.rint(levels).max(axis=1) == 255).mean() > 0.9
    mass = many.reshape(-1, 28, 28).astype(np.float64)
    centre = (mass.sum(axis=2) @ np.arange(28)) / mass.sum(axis=(1, 2))
    assert np.abs(centre - 13.5).max() < 1


# --- what it is made from


def test_facts_make_the_map() -> None:
    found = OrientationsMap.made_for(PublicFacts(784, 60_000, 10, 10, (0.0, 1.0), (28, 28, 1)), FeatureSpec())
    assert (found.height, found.width, found.channels, found.n_inputs) == (28, 28, 1, 784)
    facts = PublicFacts(784, bounds=(0.0, 1.0), image=(28, 28, 1))
    assert OrientationsMap.made_for(facts, FeatureSpec(size=33)).n_outputs == 33
    with pytest.raises(IncompatibleError, match=r"give features\.shape"):
        OrientationsMap.made_for(PublicFacts(784, bounds=(0.0, 1.0)), FeatureSpec())
    with pytest.raises(IncompatibleError, match=r"data\.low and data\.high"):
        OrientationsMap.made_for(PublicFacts(784, image=(28, 28, 1)), FeatureSpec())


def test_more_records_teach_more_axes_and_more_agents_fewer() -> None:
    def axes_for(records: int, agents: int) -> int:
        return orientations.axes_for(PublicFacts(784, records, agents, 10, (0.0, 1.0), (28, 28, 1)))

    by_records = [axes_for(10**n, 10) for n in range(1, 10)]
    assert by_records == sorted(by_records)
    assert (by_records[0], by_records[-1]) == (orientations.FEWEST_AXES, axes.SHIPPED_AXES)
    assert axes_for(60_000, 1) > axes_for(60_000, 10) > axes_for(60_000, 1000)


@pytest.mark.parametrize(
    "wrong",
    [
        {"height": 3}, {"width": 28.0}, {"channels": 10**9}, {"axes": 0}, {"axes": True}, {"turns": 10**6},
        {"turns": 3},
        {"whitening": float("nan")}, {"whitening": 2}, {"low": 1.0}, {"high": float("inf")}, {"high": 1e-40},
        {"height": "28"}, {"whitening": None}, {"low": "0"},
    ],
)  # fmt: skip
def test_a_recipe_that_asks_for_too_much_or_for_nothing_is_refused(wrong: dict[str, object]) -> None:
    text = json.dumps({"map": "orientations", "height": 28, "width": 28} | wrong)
    with pytest.raises(RunDirectoryError, match="names no feature map"):
        registry.read(text)
    if not isinstance(next(iter(wrong.values())), (str, type(None))):
        with pytest.raises(SpecError):
            OrientationsMap(**({"height": 28, "width": 28} | wrong))  # type: ignore[arg-type]


def test_a_map_that_is_read_again_gives_equal_bits() -> None:
    facts = PublicFacts(64, 1000, 3, 2, (0.0, 1.0), (8, 8, 1))
    found = registry.chosen(FeatureSpec(map="orientations"), facts)
    assert found is not None
    x = images((8, 8, 1), 300)
    np.testing.assert_array_equal(apply(registry.read(found[1]), x), apply(found[0], x))
