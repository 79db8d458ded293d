"""Every set W of the registry passes one suite: its projection is feasible, nearest, and keeps the precision."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import SpecError
from tacit.problem.domain import DOMAINS, Ball, Box

every_domain = pytest.mark.parametrize("domain", [make(0.7) for make in DOMAINS.values()], ids=DOMAINS)


@every_domain
@given(seed=st.integers(0, 10**6), size=st.floats(0.1, 10))
def test_a_projection_lies_in_the_set_and_nothing_in_the_set_is_nearer(domain, seed, size):
    c, other = size * np.random.default_rng(seed).normal(size=(2, 3, 2))
    nearest, inside = domain.project(c), domain.project(other)
    assert domain.contains(nearest)
    assert ((c - nearest) * (inside - nearest)).sum() <= 1e-9 * size**2
    np.testing.assert_allclose(domain.project(nearest), nearest, rtol=1e-12)


@every_domain
def test_the_radius_of_a_set_decides_what_it_holds(domain):
    assert domain.contains(np.zeros((3, 2)))
    far = np.full((3, 2), 1e6)
    assert domain.contains(far) == bool((domain.project(far) == far).all())


@every_domain
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_projection_keeps_the_precision_of_the_point(domain, dtype):
    assert domain.project(np.full((3, 2), 5, dtype)).dtype == dtype


@pytest.mark.parametrize("make", [Box, Ball])
@pytest.mark.parametrize("radius", [0.0, -1.0, float("inf"), float("nan")])
def test_a_radius_that_bounds_nothing_is_refused(make, radius):
    with pytest.raises(SpecError, match="positive, finite radius"):
        make(radius)
