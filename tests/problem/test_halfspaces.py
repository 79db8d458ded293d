"""Halfspaces, alone and within a box: the nearest point from near and from very far, files that are damaged."""

import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import IncompatibleError, SpecError
from tacit.problem import active_set, halfspaces
from tacit.problem.active_set import TOLERANCE, nearest
from tacit.problem.ball_around import BallAround
from tacit.problem.bounds import Bounds
from tacit.problem.domain import nearest_to_zero
from tacit.problem.halfspaces import Halfspaces, from_file

EPS = np.finfo(np.float64).eps


def some_halfspaces(kind, m, n, rng):
    """(Halfspaces for models (n, 1), a point of all of them)."""
    inside, room = rng.normal(size=(n, 1)), 0.1 * rng.random(m)
    normals = rng.normal(size=(m, n, 1))
    if kind == "a cone with ties":  # many halfspaces meet in one point
        normals, inside, room = rng.integers(-1, 2, size=(m, n, 1)).astype(float), np.zeros((n, 1)), 0.0
        normals[~normals.any(axis=(1, 2)), 0] = 1
    elif kind == "nearly parallel":
        normals, room = normals[:1] + 10.0 ** rng.integers(-13, -1) * normals, 0.0
    elif kind == "equalities":
        normals, room = np.concatenate([normals[: n // 2], -normals[: n // 2]]), 0.0
    elif kind == "all scales":
        normals *= 10.0 ** rng.integers(-9, 9, size=normals.shape)
    lengths = np.linalg.norm(normals, axis=(1, 2))
    return Halfspaces(normals, np.tensordot(normals, inside, 2) + room * lengths), inside


kinds = st.sampled_from(["general", "a cone with ties", "nearly parallel", "equalities", "all scales"])
sets = {"kind": kinds, "m": st.integers(1, 20), "n": st.integers(2, 12), "seed": st.integers(0, 10**6)}


@given(**sets, far=st.sampled_from([1e-3, 1.0, 1e3, 1e6, 1e8]), radius=st.sampled_from([None, 1.0, 0.01, 1e-6]))
def test_the_nearest_point_is_found_however_far_out_the_point_lies(kind, m, n, seed, far, radius):
    """Feasible to a share of the numbers of the answer; <c - u, v - u> <= 0 for v in the set, up to the digits of c."""
    rng = np.random.default_rng(seed)
    W, inside = some_halfspaces(kind, m, n, rng)

    def onto(point):
        return W.project(point) if radius is None else W.project_near(point, inside, radius)

    c = inside + far * (1 if radius is None else radius) * rng.normal(size=(n, 1))
    u = onto(c)
    size = np.abs(u).max() + np.abs(W.offsets).max()
    beyond = (np.tensordot(W.normals, u, 2) - W.offsets).max()
    assert beyond <= 2 * TOLERANCE * size + 1e-30 * np.abs(c).max()  # the last: W is the point zero
    if radius is not None:
        assert np.abs(u - inside).max() <= radius + 4 * TOLERANCE * size
    away = np.linalg.norm(c - u)
    for reach in (0.01, 0.1, 1.0):
        v = onto(inside + reach * rng.normal(size=(n, 1)))
        rounding = 100 * EPS * (np.linalg.norm(c) + np.linalg.norm(v)) + 4 * TOLERANCE * size
        assert np.vdot(c - u, v - u) <= rounding * (away + np.linalg.norm(v - u))


@pytest.mark.parametrize(("m", "n", "radius", "far"), [(8, 10, 0.01, 1e3), (3, 6, 0.1, 1e5), (3, 6, 0.1, 1e6)])
def test_small_sets_and_far_points_take_few_steps(m, n, radius, far, monkeypatch):
    monkeypatch.setattr(active_set, "STEPS", 5)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        W, inside = some_halfspaces("general", m, n, rng)
        assert W.contains(W.project_near(inside + far * rng.normal(size=(n, 1)), inside, radius), 1e-12)


@given(seed=st.integers(0, 10**6), far=st.floats(0.1, 100))
def test_the_multipliers_prove_the_answer(seed, far):
    """c - u is a sum of normals of what binds, none of them with a negative weight (Karush, Kuhn and Tucker)."""
    rng = np.random.default_rng(seed)
    W, inside = some_halfspaces("general", 6, 8, rng)
    a, low, high = W.normals[:, :, 0], inside[:, 0] - 0.5, inside[:, 0] + 0.5
    c = inside[:, 0] + far * rng.normal(size=8)
    search = active_set._Search(c, a, W.offsets, low, high)
    u = search.end()
    assert (search.tau >= 0).all()
    assert (search.y >= 0).all()
    np.testing.assert_allclose(a[search.binds] @ u, W.offsets[search.binds], atol=1e-12)
    np.testing.assert_array_equal(u[search.side > 0], high[search.side > 0])
    np.testing.assert_array_equal(u[search.side < 0], low[search.side < 0])
    np.testing.assert_allclose(c - u, search.tau @ a[search.binds] + search.side * search.y, atol=1e-12 * far * 10)


@pytest.mark.parametrize("kind", ["general", "nearly parallel"])
@pytest.mark.parametrize("radius", [None, 0.5])
def test_large_ones_by_cholesky_and_by_qr_are_one_point(kind, radius, monkeypatch):
    rng = np.random.default_rng(3)
    W, inside = some_halfspaces(kind, 30, 200, rng)
    c = inside + 3 * rng.normal(size=(200, 1))
    found = []
    for large in (0, 10**9):
        monkeypatch.setattr(active_set, "LARGE", large)
        found.append(W.project(c) if radius is None else W.project_near(c, inside, radius))
    np.testing.assert_allclose(found[0], found[1], atol=1e-9)
    assert np.abs(found[0] - c).max() > 0.1


def test_a_point_inside_comes_back_as_it_is():
    W, inside = some_halfspaces("general", 8, 10, np.random.default_rng(0))
    assert W.project(inside) is inside
    assert W.project_near(inside, inside, 0.1) is inside


def test_an_entry_without_room_stays_where_it_is():
    bounds = np.array([1.0, -5.0]), np.array([1.0, 5.0])
    u = nearest(np.array([3.0, 3.0]), np.array([[0.6, 0.8]]), np.array([0.6]), *bounds)
    np.testing.assert_allclose(u, [1.0, 0.0], atol=1e-15)


def test_a_box_that_misses_the_halfspaces_is_told_so():
    with pytest.raises(IncompatibleError, match="contradict"):
        nearest(np.zeros(2), np.array([[-1.0, 0.0]]), np.array([-2.0]), -np.ones(2), np.ones(2))


@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e-160, 1e160, 1e200, 1e300])
def test_halfspaces_do_not_depend_on_the_scale_of_their_normals(scale):
    rng = np.random.default_rng(1)
    normals, offsets, c = rng.normal(size=(3, 4, 2)), rng.random(3), 5 * rng.normal(size=(4, 2))
    u = Halfspaces(normals * scale, offsets * scale).project(c)
    np.testing.assert_allclose(u, Halfspaces(normals, offsets).project(c), rtol=1e-9)


def test_an_offset_beyond_every_number_is_refused():
    with pytest.raises(SpecError, match="too large for its normal"):
        Halfspaces(np.full((1, 3, 2), 1e-300), np.array([1e300]))


def test_more_numbers_than_a_projection_can_pass_over_are_refused(monkeypatch):
    monkeypatch.setattr(halfspaces, "LARGEST_SET", 11)
    with pytest.raises(SpecError, match=r"2 halfspaces of models of shape .* have 12 numbers, and 11 is the most"):
        Halfspaces(np.ones((2, 3, 2)), np.ones(2))


def damaged(folder, how):
    """A file of halfspaces, and what is wrong with it."""
    file, normals = folder / "halves.npz", np.random.default_rng(0).normal(size=(40, 3, 2))
    good = {"normals": normals, "offsets": np.ones(40)}
    if how == "good":
        np.savez(file, **good)
    elif how == "flipped":
        np.savez_compressed(file, **good)
        data = bytearray(file.read_bytes())
        data[200:260] = (255 - byte for byte in data[200:260])
        file.write_bytes(data)
    elif how == "huge":
        header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (2000000000, 1000, 1), }\n"
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("normals.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    elif how == "encrypted":
        np.savez(file, **good)
        data = bytearray(file.read_bytes())
        for mark, flag in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
            data[data.index(mark) + flag] |= 1
        file.write_bytes(data)
    elif how == "cut":
        np.savez(file, **good)
        file.write_bytes(file.read_bytes()[:500])
    elif how == "pickled":
        np.savez(file, **good | {"normals": np.array([{}], object)})
    elif how == "missing":
        np.savez(file, normals=good["normals"])
    elif how == "single":
        with file.open("wb") as opened:
            np.save(opened, good["normals"])
    return file


@pytest.mark.parametrize("how", ["flipped", "huge", "encrypted", "cut", "pickled", "missing", "single"])
def test_a_damaged_file_is_one_line_that_says_what_to_write(tmp_path, how):
    file = damaged(tmp_path, how)
    with pytest.raises(SpecError, match=r"is no \.npz file with the arrays normals and .+numpy\.savez") as told:
        from_file(str(file))
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("shape", [(2,), (3,), (3, 1), (1, 2), (2, 3), (4, 2), (1, 3, 2)])
def test_arrays_of_another_shape_than_the_model_are_refused_at_the_start(shape):
    for domain in (Bounds(low=np.ones(shape)), Bounds(high=np.ones(shape)), BallAround(np.ones(shape), 0.5)):
        with pytest.raises(SpecError, match=r"has shape .*, and the model has \(3, 2\): give one number for all"):
            nearest_to_zero(domain, (3, 2))


def test_bounds_of_two_shapes_are_refused():
    with pytest.raises(SpecError, match=r"shapes \(3,\) and \(2,\)"):
        Bounds(np.zeros(3), np.ones(2))
