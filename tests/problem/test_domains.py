"""Every set W passes one suite: its projection is feasible, nearest, and keeps the precision."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.admm.project import dykstra
from tacit.errors import SpecError
from tacit.problem.ball_around import BallAround
from tacit.problem.bounds import Bounds
from tacit.problem.domain import DOMAINS, Ball, Box, Everywhere, from_values, nearest_to_zero
from tacit.problem.halfspaces import Halfspaces
from tacit.problem.simplex import Simplex
from tacit.run.sections import ProblemSpec
from tests.problem.domains import SETS, SHAPE, rising, skew

every_domain = pytest.mark.parametrize("domain", SETS.values(), ids=SETS)


def test_the_suite_has_every_set_of_the_registry(tmp_path):
    np.savez(tmp_path / "halves.npz", normals=rising().normals, offsets=rising().offsets)
    made = {
        type(from_values(vars(ProblemSpec(domain=name, domain_file=file))))
        for name in DOMAINS
        for file in [str(tmp_path / "halves.npz") if name == "halfspaces" else None]
    }
    assert made <= set(map(type, SETS.values()))


@every_domain
@given(seed=st.integers(0, 10**6), size=st.floats(0.1, 10))
def test_a_projection_lies_in_the_set_and_nothing_in_the_set_is_nearer(domain, seed, size):
    c, other = size * np.random.default_rng(seed).normal(size=(2, *SHAPE))
    nearest, inside = domain.project(c), domain.project(other)
    assert domain.contains(nearest)
    assert ((c - nearest) * (inside - nearest)).sum() <= 1e-9 * max(size, 1) ** 2
    np.testing.assert_allclose(domain.project(nearest), nearest, rtol=1e-12, atol=1e-10)
    assert np.linalg.norm(nearest - inside) <= np.linalg.norm(c - other) * (1 + 1e-9) + 1e-10


@every_domain
def test_what_a_set_holds_is_what_its_projection_leaves_alone(domain):
    assert domain.contains(nearest_to_zero(domain, SHAPE))
    far = np.full(SHAPE, 1e6)
    assert domain.contains(far) == bool((domain.project(far) == far).all())


@every_domain
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_projection_keeps_the_precision_of_the_point_and_writes_to_nothing(domain, dtype):
    c = np.full(SHAPE, 5, dtype)
    c.flags.writeable = False
    assert domain.project(c).dtype == dtype


@every_domain
def test_the_start_is_zero_where_the_set_holds_it_to_the_last_bit(domain):
    start = nearest_to_zero(domain, SHAPE)
    assert domain.contains(np.zeros(SHAPE)) == (not start.any())
    np.testing.assert_array_equal(start, domain.project(np.zeros(SHAPE)))


@pytest.mark.parametrize("make", [Box, Ball, Simplex, lambda radius: BallAround(0.5, radius)])
@pytest.mark.parametrize("radius", [0.0, -1.0, float("inf"), float("nan")])
def test_a_radius_that_bounds_nothing_is_refused(make, radius):
    with pytest.raises(SpecError, match="positive, finite radius"):
        make(radius)


@pytest.mark.parametrize(
    ("low", "high"),
    [(1.0, 0.0), (float("nan"), 1.0), (0.0, float("nan")), (np.inf, np.inf), (-np.inf, -np.inf), ([0.0, 2.0], 1.0)],
)
def test_bounds_between_which_there_is_nothing_are_refused(low, high):
    with pytest.raises(SpecError, match="the lower first"):
        Bounds(low, high)


@pytest.mark.parametrize("center", [np.nan, np.inf, np.array([[0.0, np.nan]])])
def test_a_centre_that_is_nowhere_is_refused(center):
    with pytest.raises(SpecError, match="finite"):
        BallAround(center, 1.0)


@given(seed=st.integers(0, 10**6))
def test_every_column_of_a_simplex_adds_up_by_itself_and_a_shift_of_a_column_changes_nothing(seed):
    c = np.random.default_rng(seed).normal(size=(7, 3))
    u = Simplex(1.0).project(c)
    np.testing.assert_allclose(u.sum(0), 1.0)
    np.testing.assert_allclose(Simplex(1.0).project(c + np.array([5.0, -3.0, 1e3])), u, atol=1e-12)
    for k in range(3):
        np.testing.assert_array_equal(Simplex(1.0).project(c[:, [k]]), u[:, [k]])


@pytest.mark.parametrize("scale", [1e-300, 1e10, 1e150, 1e300])
def test_a_simplex_takes_points_from_anywhere(scale):
    rng = np.random.default_rng(0)
    for c in (scale * rng.normal(size=(6, 2)), np.full((6, 2), scale), scale + rng.normal(size=(6, 2))):
        assert Simplex(1.0).contains(Simplex(1.0).project(c))


@given(seed=st.integers(0, 10**6))
def test_one_halfspace_is_reached_along_its_normal(seed):
    a, c = np.random.default_rng(seed).normal(size=(2, *SHAPE))
    beyond = max(np.vdot(a, c) - 0.3, 0.0)
    one = Halfspaces(a[None], np.array([0.3]))
    np.testing.assert_allclose(one.project(c), c - beyond * a / np.vdot(a, a), atol=1e-12)


def test_halfspaces_that_make_a_box_are_a_box():
    units = np.eye(6).reshape(6, *SHAPE)
    cube = Halfspaces(np.concatenate([units, -units]), np.concatenate([np.full(6, 0.5), np.zeros(6)]))
    c = np.random.default_rng(0).normal(size=SHAPE)
    np.testing.assert_allclose(cube.project(c), np.clip(c, 0, 0.5), atol=1e-12)


@pytest.mark.parametrize(
    ("normals", "offsets", "why"),
    [
        (np.zeros((0, 3, 2)), np.zeros(0), "M from 1"),
        (np.ones((2, 3)), np.zeros(2), r"normals \(M, J, K\)"),
        (np.ones((2, 3, 2)), np.zeros(3), r"offsets \(M,\)"),
        (np.full((1, 3, 2), np.nan), np.zeros(1), "finite"),
        (np.ones((1, 3, 2)), np.array([np.inf]), "finite"),
        (np.ones((1, 3, 2), complex), np.zeros(1), "finite numbers"),
        (np.zeros((1, 3, 2)), np.zeros(1), "bounds nothing"),
        (np.stack([np.ones(SHAPE), -np.ones(SHAPE)]), np.array([-1.0, -1.0]), "contradict"),
    ],
)
def test_halfspaces_that_are_none_or_share_no_point_are_refused(normals, offsets, why):
    with pytest.raises(SpecError, match=why):
        Halfspaces(normals, offsets)


def test_halfspaces_of_other_models_are_refused():
    with pytest.raises(SpecError, match=r"shape \(3, 2\), and this one has \(4, 2\)"):
        rising().project(np.zeros((4, 2)))


@given(seed=st.integers(0, 10**6))
def test_halfspaces_agree_with_dykstra_over_each_of_them(seed):
    """The dual form, and the method as its author wrote it."""
    c, domain = 2 * np.random.default_rng(seed).normal(size=SHAPE), skew()

    def onto(a, b):
        return lambda u: u - max(np.vdot(a, u) - b, 0.0) * a

    each = [onto(a, b) for a, b in zip(domain.normals, domain.offsets, strict=True)]
    np.testing.assert_allclose(domain.project(c), dykstra(c, *each), atol=1e-9)


def test_a_model_that_is_no_longer_finite_ends_a_projection():
    nowhere = np.full(SHAPE, np.nan)
    assert np.isnan(dykstra(nowhere, np.negative, np.negative)).all()
    assert np.isnan(rising().project(nowhere)).all()


def of(**values):
    return from_values(vars(ProblemSpec(**values)))


def test_a_spec_gives_a_set_what_the_set_names():
    assert of() == Everywhere()
    assert of(domain="box", domain_radius=0.3) == Box(0.3)
    assert of(domain="ball", domain_radius=0.3) == Ball(0.3)
    assert of(domain="simplex", domain_radius=2.0) == Simplex(2.0)
    low, high, around = of(domain="box", domain_low=0.0), of(domain="box", domain_high=2.0), of(
        domain="ball", domain_center=0.5, domain_radius=0.3
    )
    assert (low.low, low.high, high.low, high.high) == (0.0, np.inf, -np.inf, 2.0)
    assert (around.center, around.radius) == (0.5, 0.3)


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"domain_low": 0.0}, "the set everywhere has no low: drop problem.domain_low"),
        ({"domain": "ball", "domain_high": 1.0}, "the set ball has no high"),
        ({"domain": "simplex", "domain_center": 1.0}, "the set simplex has no center"),
        ({"domain": "box", "domain_file": "x.npz"}, "the set box has no file"),
        ({"domain": "box", "domain_low": 0.0, "domain_radius": 2.0}, "a radius or bounds"),
        ({"domain": "box", "domain_low": 1.0, "domain_high": 0.0}, "the lower first"),
        ({"domain": "halfspaces"}, "needs file: set problem.domain_file"),
        ({"domain": "halfspaces", "domain_file": "nowhere.npz"}, "there is no file nowhere.npz"),
        ({"domain": "halfspaces", "domain_file": __file__}, "is no .npz file"),
    ],
)
def test_values_that_do_not_make_a_set_are_refused(values, why):
    with pytest.raises(SpecError, match=why):
        of(**values)


@pytest.mark.parametrize("kept", [{"normals": np.ones((1, 3, 2))}, {"normals": np.array([{}]), "offsets": np.zeros(1)}])
def test_a_file_that_lacks_an_array_or_holds_objects_is_refused(tmp_path, kept):
    np.savez(tmp_path / "bad.npz", **kept)
    with pytest.raises(SpecError, match="file with the arrays normals"):
        of(domain="halfspaces", domain_file=str(tmp_path / "bad.npz"))


def test_a_set_that_asks_for_what_no_spec_has_is_told_so(monkeypatch):
    monkeypatch.setitem(DOMAINS, "mine", lambda r: Box(r))
    with pytest.raises(SpecError, match="the set mine needs r: a spec tells of a set radius, low, high, center, file"):
        of(domain="mine")
