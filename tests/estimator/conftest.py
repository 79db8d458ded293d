"""Records that the estimators are tried on, and a process that has fitted nothing yet."""

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def forget():
    """Forget the fits of other tests, which would add up; return what forgets those of this test."""
    pytest.importorskip("sklearn")
    from tacit.estimator.repeated import ODOMETER

    ODOMETER.forget()
    return ODOMETER.forget


@pytest.fixture(scope="session")
def records():
    """Return (x, y, agents): 400 records of 3 numbers in [0, 1], two classes by the first number, 4 agents."""
    x = np.random.default_rng(0).uniform(size=(400, 3))
    return x, (x[:, 0] > 0.5).astype(int), np.array(["a", "b", "c", "d"])[np.arange(400) % 4]
