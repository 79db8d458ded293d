"""A projection is feasible, and no feasible point makes an acute angle with the step to it."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.admm.project import RAY_STEPS, TrustRegion, dykstra, project
from tacit.errors import IncompatibleError, SpecError
from tacit.problem.domain import Ball, Box, Everywhere
from tacit.problem.halfspaces import Halfspaces
from tacit.problem.simplex import Simplex
from tacit.types import Norm
from tests.conftest import examples
from tests.problem.domains import SETS, SHAPE

NORMS = (Norm.INF, Norm.L2)


@dataclass(frozen=True)
class HalfSpace:
    """W = {u : sum u <= bound}: a set that tacit does not know."""

    bound: float

    def project(self, c):
        return c - max(c.sum() - self.bound, 0.0) / c.size

    def contains(self, u, tolerance=1e-9):
        return bool(u.sum() <= self.bound + tolerance)


KNOWN = (Everywhere(), Box(1.0), Ball(1.5))
KNOWN_TYPES = tuple(map(type, KNOWN))


def pairs_of(domains):
    pairs = tuple(itertools.product(domains, NORMS))
    names = {id(domain): name for name, domain in SETS.items()}
    ids = [f"{names.get(id(domain), type(domain).__name__)}-{norm}" for domain, norm in pairs]
    return pytest.mark.parametrize(("domain", "norm"), pairs, ids=ids)


every_pair = pairs_of((*KNOWN, HalfSpace(0.5)))
every_known_pair = pairs_of(KNOWN)
MORE = tuple(domain for domain in SETS.values() if not isinstance(domain, KNOWN_TYPES))
every_pair_there_is = pairs_of((*KNOWN, HalfSpace(0.5), *MORE))  # of models (3, 2)


def for_all(**strategies):
    return lambda test: examples(25)(given(**strategies)(test))


# quarters meet each other, zero and the faces of the box; the other entries are in general position
entries = st.one_of(
    st.integers(-12, 12).map(lambda n: n / 4),
    st.floats(-3, 3).map(lambda x: round(x, 6)),
)
points = st.lists(entries, min_size=6, max_size=6).map(lambda xs: np.array(xs).reshape(SHAPE))
radii = st.sampled_from((0.25, 0.4, 1.0, 1.7))
problems = {"c": points, "near": points, "radius": radii}


def around(domain, near, radius, norm):
    """A trust region whose centre lies in W."""
    return TrustRegion(domain.project(near), radius, norm)


def distance(u, region):
    return np.abs(u - region.center).max() if region.norm is Norm.INF else np.linalg.norm(u - region.center)


def feasible(rng, domain, region, near, n=40):
    """Points of W ∩ T: a segment from the centre to a point of W, cut where it leaves T."""
    for spread in rng.choice((0.01, 0.3, 3.0), n):
        u = domain.project(near + spread * rng.normal(size=near.shape))
        far = distance(u, region)
        yield region.center + (u - region.center) * min(1.0, region.radius / far if far else 1.0)


def assert_projection(z, c, domain, region, tolerance=1e-9):
    """z in W ∩ T, and <c - z, y - z> <= 0 for y in W ∩ T: together these define the projection."""
    scale = 1 + np.linalg.norm(c)
    assert domain.contains(z)
    slack = 1e-14 if isinstance(domain, KNOWN_TYPES) else 1e-12 * 2 * scale  # Dykstra stops at a gap
    assert distance(z, region) <= region.radius + slack
    for y in feasible(np.random.default_rng(0), domain, region, z):
        assert np.vdot(c - z, y - z) <= tolerance * scale


@every_pair_there_is
@for_all(**problems)
def test_the_step_to_the_projection_makes_no_acute_angle_with_the_set(domain, norm, c, near, radius):
    region = around(domain, near, radius, norm)
    assert_projection(project(c, domain, region), c, domain, region)


@pairs_of([domain for domain in (*KNOWN, *MORE) if not isinstance(domain, Halfspaces)])
@for_all(**problems)
def test_every_exact_method_agrees_with_dykstra(domain, norm, c, near, radius):
    region = around(domain, near, radius, norm)
    slow = dykstra(c, region.project, domain.project, tolerance=1e-14 if isinstance(domain, KNOWN_TYPES) else 1e-12)
    assert np.abs(project(c, domain, region) - slow).max() < 1e-9


@every_pair_there_is
@for_all(c=points, other=points, near=points, radius=radii)
def test_projections_bring_no_two_points_apart(domain, norm, c, other, near, radius):
    region = around(domain, near, radius, norm)
    apart = np.linalg.norm(project(c, domain, region) - project(other, domain, region))
    assert apart <= np.linalg.norm(c - other) + 1e-9


@every_pair_there_is
@for_all(**problems)
def test_projecting_twice_is_projecting_once(domain, norm, c, near, radius):
    region = around(domain, near, radius, norm)
    once = project(c, domain, region)
    np.testing.assert_allclose(project(once, domain, region), once, rtol=0, atol=1e-9)


@every_pair_there_is
@for_all(**problems)
def test_a_feasible_point_stays_bit_for_bit(domain, norm, c, near, radius):
    region = around(domain, near, radius, norm)
    for y in feasible(np.random.default_rng(1), domain, region, c, n=4):
        inside = region.center + 0.99 * (y - region.center)
        if domain.contains(inside, tolerance=0.0):
            np.testing.assert_array_equal(project(inside, domain, region), inside)


@every_pair
def test_a_feasible_point_far_from_the_centre_stays_bit_for_bit(domain, norm):
    center, c = np.array([-1.0, 0.0]), np.array([0.1, 0.2])
    assert (center + (c - center) != c).any()  # rounding would show
    np.testing.assert_array_equal(project(c, domain, TrustRegion(center, 1.7, norm)), c)


@pytest.mark.parametrize("distance_out", [1e3, 1e6, 1e9])
@every_known_pair
def test_far_points_and_small_regions_lose_no_digits(domain, norm, distance_out):
    rng = np.random.default_rng(2)
    for _ in range(10):
        region = around(domain, rng.normal(size=(20, 5)), 1e-3, norm)
        c = distance_out * rng.normal(size=(20, 5))
        assert_projection(project(c, domain, region), c, domain, region, tolerance=1e-12)


def test_two_balls_answer_from_the_domain_the_region_or_the_rim():
    domain, region = Ball(1.0), TrustRegion(np.array([0.5, 0.0]), 0.75, Norm.L2)
    from_domain = project(np.array([2.0, 0.0]), domain, region)
    from_region = project(np.array([-2.0, 0.0]), domain, region)
    from_rim = project(np.array([1.5, 2.4]), domain, region)
    np.testing.assert_allclose(from_domain, [1.0, 0.0])
    np.testing.assert_allclose(from_region, [-0.25, 0.0])
    np.testing.assert_allclose(np.linalg.norm(from_rim), 1.0)
    np.testing.assert_allclose(distance(from_rim, region), 0.75)


@pytest.mark.parametrize("gap", [0.0, 1e-300, 1e-160, 1e-17, 1e-12, 1e-6])
@pytest.mark.parametrize("radius", [1.0, 1.0 - 1e-16, 0.5, 2.0])
def test_balls_with_nearly_one_centre_are_projected_on_the_smaller(gap, radius):
    domain, region = Ball(1.0), TrustRegion(np.array([gap, 0.0]), radius, Norm.L2)
    anywhere = 3 * np.random.default_rng(4).normal(size=(50, 2))
    for c in np.array([[3.0, 0.0], [-3.0, 0.0], [0.0, 3.0], [gap, 0.0], [0.0, 0.0], *anywhere]):
        smaller = c * min(1.0, min(1.0, radius) / (np.linalg.norm(c) or 1.0))
        np.testing.assert_allclose(project(c, domain, region), smaller, atol=2 * gap + 1e-15)


@pytest.mark.parametrize("depth", [1e-3, 1e-9, 1e-15])
def test_a_lens_as_thin_as_rounding_is_still_hit(depth):
    """The centre on the sphere of W and a small radius: c beyond the rim, beside the axis and on it."""
    domain, region = Ball(1.0), TrustRegion(np.array([1.0, 0.0]), depth, Norm.L2)
    for c in np.array([[1.0, 5.0], [5.0, 0.1], [9.0, 0.0], [-9.0, 0.0]]):
        assert_projection(project(c, domain, region), c, domain, region)


def test_faces_that_alone_reach_the_sphere_leave_the_rest_where_they_are():
    """The entries on a face use up the radius to the last digit, and the others have almost no way to go."""
    rng = np.random.default_rng(5)
    for _ in range(300):
        center, step = rng.uniform(-1, 1, 4), np.array([9.0, -9.0, *(1e-8 * rng.normal(size=2))])
        used = np.clip(center + step, -1, 1) - center
        region = TrustRegion(center, float(np.linalg.norm(used[:2])) * (1 + 1e-16 * rng.integers(-2, 3)), Norm.L2)
        z = project(center + step, Box(1.0), region)
        np.testing.assert_allclose(z, center + used, atol=1e-7)
        assert distance(z, region) <= region.radius * (1 + 1e-15)


@pytest.mark.parametrize(
    ("domain", "norm", "center", "c"),
    [
        (Box(1.0), Norm.L2, [0.8, 0.0], [3.0, 1.0]),
        (Ball(1.0), Norm.L2, [0.5, 0.0], [1.5, 2.4]),
        (Ball(1.0), Norm.INF, [0.6, 0.0], [1.0, 3.0]),
    ],
)
def test_one_set_after_the_other_is_not_the_projection(domain, norm, center, c):
    c, region = np.array(c), TrustRegion(np.array(center), 0.75, norm)
    z = project(c, domain, region)
    assert_projection(z, c, domain, region)
    assert np.linalg.norm(domain.project(region.project(c)) - z) > 1e-2
    assert np.linalg.norm(region.project(domain.project(c)) - z) > 1e-2


@pytest.mark.parametrize("domain", [*KNOWN, HalfSpace(0.5), *MORE])
@for_all(c=points)
def test_without_a_region_only_the_domain_counts(domain, c):
    np.testing.assert_array_equal(project(c, domain), domain.project(c))


@every_pair_there_is
@for_all(c=points, near=points)
def test_a_radius_of_zero_leaves_the_centre(domain, norm, c, near):
    region = around(domain, near, 0.0, norm)
    np.testing.assert_array_equal(project(c, domain, region), region.center)


@every_pair_there_is
@for_all(c=points, near=points)
def test_an_infinite_radius_leaves_the_domain(domain, norm, c, near):
    region = around(domain, near, np.inf, norm)
    np.testing.assert_allclose(project(c, domain, region), domain.project(c), atol=1e-15)


@every_pair
def test_zeros_give_zero(domain, norm):
    zero = np.zeros(SHAPE)
    np.testing.assert_array_equal(project(zero, domain, TrustRegion(zero, 0.5, norm)), zero)


@every_pair_there_is
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("radius", [0.0, 0.3])
def test_the_dtype_of_the_point_is_kept_and_nothing_is_written_to(domain, norm, dtype, radius):
    rng = np.random.default_rng(3)
    c, center = (3 * rng.normal(size=SHAPE)).astype(dtype), domain.project(rng.normal(size=SHAPE))
    c.flags.writeable = center.flags.writeable = False
    for held in (center.astype(dtype), center):
        z = project(c, domain, TrustRegion(held, radius, norm))
        assert z.dtype == dtype
        assert z.shape == c.shape
        assert dykstra(c, domain.project, domain.project).dtype == dtype
        exact = project(c.astype(np.float64), domain, TrustRegion(held.astype(np.float64), radius, norm))
        np.testing.assert_allclose(z, exact, atol=4 * np.finfo(dtype).eps)


@every_known_pair
def test_a_centre_that_rounding_left_outside_the_domain_does_no_harm(domain, norm):
    """float32 centres lie outside W by up to an ulp, which may exceed the radius."""
    center = np.array([1.5, 0.0]) if isinstance(domain, Ball) else np.array([1.0, 0.0])
    region = TrustRegion(center * (1 + 1e-7), 1e-9, norm)
    for c in np.array([[5.0, 5.0], [-5.0, 5.0], [0.0, 0.0]]):
        np.testing.assert_allclose(project(c, domain, region), center, atol=2e-7)


@pairs_of(SETS.values())
@for_all(c=points, near=points, slip=st.sampled_from((1e-7, 1e-12)))
def test_a_centre_that_rounding_left_outside_ends_no_run_even_where_the_radius_is_smaller(domain, norm, c, near, slip):
    inside = domain.project(near)
    region = TrustRegion(inside + slip * np.sign(c), slip / 100, norm)
    np.testing.assert_allclose(project(c, domain, region), inside, atol=4 * slip)


@pytest.mark.parametrize("far", [1e12, 1e50, 1e150])
@pairs_of([domain for domain in SETS.values() if not isinstance(domain, Halfspaces)])
def test_a_point_from_a_hostile_server_is_projected_in_a_bounded_number_of_steps(domain, norm, far, monkeypatch):
    """What a deployed agent may have to project: no error, no number that is not finite, and no end that is far off."""
    asked = []
    count = type(domain).project
    monkeypatch.setattr(type(domain), "project", lambda self, c: asked.append(1) or count(self, c))
    for seed in range(5):
        rng = np.random.default_rng(seed)
        region = TrustRegion(domain.project(rng.normal(size=SHAPE)), 0.3, norm)
        for c in (far * rng.normal(size=SHAPE), np.full(SHAPE, -far)):
            z = project(c, domain, region)
            assert distance(z, region) <= 0.3 * (1 + 1e-9)
            assert domain.contains(z, tolerance=1e-6)
    assert len(asked) <= 10 * (RAY_STEPS + 4)


def test_a_simplex_and_a_box_that_do_not_meet_give_an_end_of_the_box():
    region = TrustRegion(np.full((3, 1), 5.0), 0.1, Norm.INF)
    np.testing.assert_allclose(project(np.zeros((3, 1)), Simplex(1.0), region), 4.9)


def test_dykstra_finds_the_nearest_point_where_alternating_finds_another():
    domain, region = HalfSpace(0.0), TrustRegion(np.array([-0.5, 0.0]), 1.0, Norm.INF)
    c = np.array([2.0, 0.5])
    np.testing.assert_allclose(project(c, domain, region), [0.5, -0.5], atol=1e-9)
    alternating = c
    for _ in range(200):
        alternating = domain.project(region.project(alternating))
    assert np.linalg.norm(alternating - [0.5, -0.5]) > 0.1


def test_dykstra_says_so_when_the_sets_do_not_meet():
    with pytest.raises(IncompatibleError, match="do not meet"):
        dykstra(np.zeros(1), lambda u: np.clip(u, 1, 2), lambda u: np.clip(u, -2, -1), max_rounds=50)


def test_a_region_refuses_a_negative_radius_and_an_unknown_norm():
    with pytest.raises(SpecError, match="at least 0"):
        TrustRegion(np.zeros(2), -1.0, Norm.INF)
    with pytest.raises(SpecError, match="at least 0"):
        TrustRegion(np.zeros(2), float("nan"), Norm.INF)
    with pytest.raises(SpecError, match="choose from inf, l2"):
        TrustRegion(np.zeros(2), 1.0, Norm.L1)
