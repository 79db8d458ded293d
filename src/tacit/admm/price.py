"""What a round of a method releases about one record, for the accountant."""

from __future__ import annotations

from tacit.admm.agent import Method
from tacit.admm.perturbation import Output
from tacit.admm.rule import Exact
from tacit.privacy.mechanism import Gaussian, Laplace
from tacit.privacy.release import GaussianRelease, LaplaceRelease, Release
from tacit.problem.sensitivity import Declared
from tacit.types import Norm


def release(method: Method) -> Release | None:
    """The noisy gradient of one round; None where it has no guarantee (admm.compatible.caveats says why).

    Everything an agent sends is a public function of it and of earlier releases, so W, the trust region, the
    penalty and the order of updates cost nothing.
    """
    squared = isinstance(method.perturbation, Output) and method.perturbation.squared
    if not method.bound.public or squared or isinstance(method.rule, Exact):
        return None
    mechanism = method.mechanism
    if isinstance(mechanism, Gaussian):
        return GaussianRelease(mechanism.multiplier)
    if not isinstance(mechanism, Laplace):
        return None
    if mechanism.norm is Norm.L2:
        return LaplaceRelease(float("inf"), 1 / mechanism.multiplier)
    bound = method.bound
    ratio = bound.euclidean / bound.value if isinstance(bound, Declared) else 1.0
    return LaplaceRelease(1 / mechanism.multiplier, min(ratio, 1.0) / mechanism.multiplier)
