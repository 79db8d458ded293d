"""What the machine offers, and the compiled generator against its twin in NumPy."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.engine.kernels import aligned, compiled, filled, filled_counts, grouped, of_run, patches, tiled, width
from tacit.machine import cores
from tacit.privacy import noise
from tacit.problem.loss import Softmax, Squared
from tacit.types import Norm, Shard
from tests.conftest import examples, instructions

WORD = st.integers(0, 2**63 - 1)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system does not pin processes to cores")
def test_a_process_counts_the_cores_it_may_use():
    allowed = os.sched_getaffinity(0)
    assert cores() == len(allowed)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        assert cores() == 1
    finally:
        os.sched_setaffinity(0, allowed)


@pytest.mark.skipif(compiled() is None, reason="kernels were not built")
@pytest.mark.parametrize("name", ["avx512", "avx2", "plain"])
@given(key=st.tuples(WORD, WORD), t=WORD, step=WORD, n=st.integers(1, 2500))
def test_the_compiled_noise_is_that_of_numpy(name, key, t, step, n):
    words, laplace, gaussian = np.empty(n, np.uint32), np.empty(n, np.float32), np.empty(n, np.float32)
    with instructions(name) as kernels:
        kernels.noise(kernels.INTEGERS, *key, t, step, words)
        kernels.noise(kernels.LAPLACE, *key, t, step, laplace)
        kernels.noise(kernels.GAUSSIAN, *key, t, step, gaussian)
    np.testing.assert_array_equal(words, noise.integers(key, t, step, n))
    np.testing.assert_allclose(laplace, noise.laplace(key, t, step, (n,)), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(gaussian, noise.gaussian(key, t, step, (n,)), rtol=1e-5, atol=1e-6)


# --- the compiled passes against their twin in NumPy

BUILT = pytest.mark.skipif(compiled() is None, reason="kernels were not built")
SETS = pytest.mark.parametrize("name", ["avx512", "avx2", "plain"])
FORMS = {
    "whole": lambda shard, norms, k, _, dtype: grouped(shard, norms, k, whole=True, dtype=dtype),
    "grouped": lambda shard, norms, k, _, dtype: grouped(shard, norms, k, whole=False, dtype=dtype),
    "ordered": lambda shard, norms, k, _, dtype: grouped(
        shard, norms, k, whole=False, dtype=dtype, order=np.random.default_rng(0).permutation(shard.x.shape[1])
    ),
    "tiled": lambda shard, norms, k, wide, _: tiled(shard, norms, k, wide),
}


def instance(n, features, classes, runs, density, pixels, seed):
    """A shard, and a point for each run."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 256, (n, features)) / 255 if pixels else rng.normal(size=(n, features))
    x = (x * (rng.random(x.shape) < density)).astype(np.float32)
    return Shard(x, rng.integers(0, classes, n)), [0.3 * rng.normal(size=(features, classes)) for _ in range(runs)]


def twin(shard, points, loss, clips, norm):
    """The sums of each run in float64, and the largest |x_i| |a_i|."""
    x, sums, largest = shard.x.astype(np.float64), [], []
    for point, clip in zip(points, clips, strict=True):
        residual = loss.residual(x @ point, shard.y)
        size = norm.of_rows(x) * norm.of_rows(residual)
        largest.append(size.max(initial=0.0))
        sums.append(x.T @ (residual * np.minimum(1, clip / np.maximum(size, 1e-30))[:, None]))
    return sums, largest


def compiled_sums(kernels, records, points, classes, squared, clips, norm, dtype=np.float32, piece=-1):
    """The sums of each run and the largest of each, through the loops."""
    packed = np.zeros((len(points[0]), width(len(points), classes)), dtype)
    for r, point in enumerate(points):
        of_run(packed, r, classes)[...] = point
    out, largest = np.full_like(packed, np.nan), np.full(len(points), np.nan, dtype)
    order = 1 if norm is Norm.L1 else 2
    kernels.gradient(records, piece, packed, len(points), squared, order, np.array(clips, dtype), out, largest)
    assert not out[:, len(points) * classes :].any()
    return [of_run(out, r, classes) for r in range(len(points))], largest


@BUILT
@SETS
@pytest.mark.parametrize("form", FORMS)
@examples(60)
@given(
    n=st.integers(0, 300), features=st.sampled_from([1, 2, 7, 8, 9, 16, 30, 67, 520, 1100]),
    classes=st.integers(2, 21), runs=st.integers(1, 6), density=st.sampled_from([0, 0.02, 0.3, 1]),
    pixels=st.booleans(),
    loss=st.sampled_from([Softmax(), Squared()]), norm=st.sampled_from([Norm.L1, Norm.L2]),
    clip=st.sampled_from([np.inf, 5.0, 0.1]), seed=st.integers(0, 10**6),
)  # fmt: skip
def test_every_form_gives_the_sums_of_numpy(
    name, form, n, features, classes, runs, density, pixels, loss, norm, clip, seed
):
    shard, points = instance(n, features, classes, runs, density, pixels, seed)
    norms = {each: each.of_rows(shard.x) for each in (Norm.L1, Norm.L2)}
    clips = [clip] * (runs - 1) + [np.inf]
    expected, most = twin(shard, points, loss, clips, norm)
    scale = max(1.0, *(np.abs(own).max() for own in expected), *most)
    with instructions(name) as kernels:
        records = FORMS[form](shard, norms, classes, width(runs, classes), np.float32)
        got, largest = compiled_sums(kernels, records, points, classes, loss == Squared(), clips, norm)
        for ours, theirs in zip(got, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=5e-6 * scale)
        np.testing.assert_allclose(largest, most, rtol=1e-4, atol=5e-6 * scale)
        if form != "tiled":  # and in float64, which a deployed agent computes in
            double = FORMS[form](shard, norms, classes, 0, np.float64)
            got, largest = compiled_sums(kernels, double, points, classes, loss == Squared(), clips, norm, np.float64)
            for ours, theirs in zip(got, expected, strict=True):
                np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-6 * scale)


@BUILT
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("n", [2048, 2049, 7000, 200_000])
def test_pieces_in_order_are_the_whole_sum_to_the_bit(form, n):
    kernels, classes = compiled(), 3
    shard, points = instance(n, 9, classes, 1, 0.5, False, 0)
    records = FORMS[form](shard, {Norm.L2: Norm.L2.of_rows(shard.x)}, classes, 16, np.float32)
    (whole,), most = compiled_sums(kernels, records, points, classes, False, [0.7], Norm.L2)
    pieces = kernels.pieces(records)
    assert 1 <= pieces <= 64
    total, largest = None, 0
    for piece in range(pieces):
        (own,), seen = compiled_sums(kernels, records, points, classes, False, [0.7], Norm.L2, piece=piece)
        total, largest = own if total is None else total + own, max(largest, seen[0])
    np.testing.assert_array_equal(total, whole)
    assert largest == most[0]
    with pytest.raises(ValueError, match="no such piece"):
        compiled_sums(kernels, records, points, classes, False, [0.7], Norm.L2, piece=pieces)


@BUILT
def test_records_that_do_not_fit_together_are_refused_when_they_are_packed():
    kernels = compiled()
    x, label, one = np.ones((4, 8), np.float32), np.zeros(4, np.int64), np.ones(1, np.float32)
    start, bits, columns = np.arange(5), np.ones((4, 1), np.uint64), np.array([[[0b1111, 0]]], np.uint64)
    lists = (start, np.zeros(4, np.uint8), np.ones(4, np.float32))
    by_feature = (np.array([0, 4]), np.arange(4, dtype=np.uint8), np.ones(4, np.float32))

    def whole(features=8, x=x, label=label, order=None, classes=2):
        norms = (None, np.ones(4, np.float32))
        return kernels.groups(4, features, classes, 1.0, x, None, None, None, order, label, norms)

    def groups(start=start, bits=bits, columns=columns):
        return kernels.groups(4, 8, 2, 1.0, x, start, bits, columns, None, label, (None, np.ones(4, np.float32)))

    def tiles(lists=lists, by_feature=by_feature):
        return kernels.tiles(4, 1, 2, 1, 4, 1.0, lists, by_feature, label, (None, np.ones(4, np.float32)))

    assert [kernels.pieces(records) for records in (whole(), groups(), tiles())] == [1, 1, 1]
    beyond_tile, beyond_block = (start, by_feature[1], lists[2]), (by_feature[0], by_feature[1] + 1, lists[2])
    refused = [
        ("labels must lie", lambda: whole(label=label + 2)),
        ("label holds 3 numbers", lambda: whole(label=label[:3])),
        ("n_classes is then 1", lambda: whole(label=label.astype(float))),
        ("numbers to predict lie in", lambda: whole(label=np.full(4, 1.5), classes=1)),
        ("numbers to predict lie in", lambda: whole(label=np.full(4, np.nan), classes=1)),
        ("expected one of 'qd'", lambda: whole(label=label.astype(np.float32), classes=1)),
        ("n \\* features values", lambda: whole(features=9)),
        ("summed in float64", lambda: whole(x=x.astype(float))),
        ("every feature once", lambda: whole(order=np.zeros(8, np.int64))),
        ("every feature once", lambda: whole(order=np.arange(8) - 1)),
        ("order holds 7", lambda: whole(order=np.arange(7))),
        ("same groups", lambda: groups(columns=columns | 16)),
        ("same groups", lambda: groups(columns=columns ^ 1)),
        ("same groups", lambda: groups(bits=bits * 3)),
        ("same groups", lambda: groups(start=start[[0, 0, 2, 3, 4]])),
        ("beyond its panel", lambda: tiles(lists=beyond_tile)),
        ("beyond its panel", lambda: tiles(by_feature=beyond_block)),
        ("start must rise", lambda: tiles(lists=(start * 2, *lists[1:]))),
        ("PyCapsule", lambda: kernels.pieces(object())),
        ("row for each feature", lambda: ask(aligned(7, 16))),
        ("norm must be 1 or 2", lambda: ask(aligned(8, 16), norm=1)),
        ("padded to 16", lambda: ask(aligned(8, 15))),
        ("no such piece", lambda: ask(aligned(8, 16), piece=1)),
    ]

    def ask(point, norm=2, piece=-1):
        kernels.gradient(whole(), piece, point, 1, False, norm, one, np.empty_like(point), one.copy())

    for why, act in refused:
        with pytest.raises(ValueError, match=why):
            act()


def test_the_pixels_of_a_square_image_come_in_patches():
    order = patches(64)
    assert sorted(order) == list(range(64))
    assert order[:8].tolist() == [0, 1, 8, 9, 16, 17, 24, 25]  # four rows of an image of 8 x 8, two columns
    assert [patches(features) for features in (1, 4, 30, 36, 63)] == [None] * 5
    strokes = np.zeros((1, 8, 8), np.float32)
    strokes[0, :4, :2] = 1
    assert filled(filled_counts(strokes.reshape(1, 64)))[1] == 0.5
    assert filled(filled_counts(strokes.reshape(1, 64), order))[1] == 0.125


@BUILT
def test_labels_that_change_after_packing_reach_no_loop():
    y = np.zeros(5, np.int64)
    shard = Shard(np.ones((5, 9), np.float32), y)
    norms = {Norm.L2: Norm.L2.of_rows(shard.x)}
    point = [np.zeros((9, 3))]
    for form in FORMS.values():
        records = form(shard, norms, 3, 16, np.float32)
        before, _ = compiled_sums(compiled(), records, point, 3, False, [np.inf], Norm.L2)
        y[0] = 2
        after, _ = compiled_sums(compiled(), records, point, 3, False, [np.inf], Norm.L2)
        y[0] = 0
        np.testing.assert_array_equal(before, after)


def test_labels_may_be_a_column_of_a_table():
    table = np.arange(12).reshape(6, 2) % 2
    shard = Shard(np.ones((6, 9), np.float32), table[:, 1])
    assert shard.y.flags.c_contiguous
