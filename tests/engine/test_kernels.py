"""What the machine offers, and the compiled generator against its twin in NumPy."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.engine.kernels import compiled, cores
from tacit.privacy import noise
from tests.conftest import instructions

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
