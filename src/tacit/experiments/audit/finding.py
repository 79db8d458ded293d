"""What is claimed, what was measured, and the verdict."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from tacit.admm import compatible
from tacit.admm.agent import Method
from tacit.admm.price import release
from tacit.errors import SpecError
from tacit.experiments.spec import Spec
from tacit.privacy import audit
from tacit.privacy.budget import total
from tacit.privacy.divergence import gaussian_epsilon
from tacit.privacy.mechanism import Gaussian
from tacit.privacy.release import LaplaceRelease
from tacit.problem.sensitivity import Observed
from tacit.types import Array


@dataclass(frozen=True)
class Claim:
    """(epsilon, dp_delta) as stated; `gaussian` where it is the epsilon of a Gaussian mean, which one test settles.

    `note` says why it is only nominal, where tacit itself gives no guarantee.
    """

    epsilon: float
    dp_delta: float
    gaussian: bool = False
    note: str = ""


@dataclass(frozen=True)
class Finding:
    """One attack: the claim, the largest certified lower bound and its name, and all bounds that were tried."""

    attack: str
    name: str
    claim: Claim
    measured: float
    by: str
    samples: int
    bounds: dict[str, float] = field(default_factory=dict)

    @property
    def violated(self) -> bool:
        """Whether the measured lower bound refutes the claim."""
        return self.measured > self.claim.epsilon

    @property
    def verdict(self) -> str:
        return "VIOLATED" if self.violated else "no guarantee" if self.claim.note else "consistent"

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        claim = asdict(self.claim)
        claimed = {"claimed": claim.pop("epsilon"), "dp_delta": claim["dp_delta"], "note": claim["note"]}
        rest = {"measured": self.measured, "by": self.by, "samples": self.samples, "bounds": self.bounds}
        return {"attack": self.attack, "name": self.name} | claimed | rest | {"verdict": self.verdict}


def claimed(spec: Spec, method: Method, rounds: int) -> Claim:
    """The total of `rounds` releases by the accountant; where there is none, the epsilon that the spec names."""
    p = spec.privacy
    if math.isinf(p.epsilon):
        raise SpecError("epsilon = inf claims nothing, so there is nothing to audit: give --epsilon.")
    one = release(method)
    if one is None:
        times = 1 if p.covers == "run" else rounds
        dp_delta = times * p.dp_delta if p.mechanism == "gaussian" or p.covers == "run" else 0.0
        reasons = " ".join(compatible.caveats(method))
        shaped = isinstance(method.mechanism, Gaussian) and not isinstance(method.bound, Observed)
        return Claim(times * p.epsilon, min(dp_delta, 0.5), shaped, f"nominal epsilon; not private: {reasons}")
    pure = isinstance(one, LaplaceRelease) and math.isfinite(one.l1) and rounds == 1
    found = total([(one, rounds)], 0.0 if pure else p.dp_delta)
    return Claim(found.epsilon, found.dp_delta, found.name == "gdp")


def weigh(
    attack: str, name: str, claim: Claim, scores: tuple[Array, Array], confidence: float, included: Array | None = None
) -> Finding:
    """The largest of the bounds that apply, which share the risk of error.

    scores are (in, out); with `included`, they are (of all records, of none) of a single run.
    """
    if included is None:
        scores_in, scores_out = scores
    else:
        scores_in, scores_out = scores[0][included], scores[0][~included]
    delta = claim.dp_delta
    tests: dict[str, Callable[[float], float]] = {
        "rates": lambda sure: audit.epsilon_lower_bound(scores_in, scores_out, delta, sure)
    }
    if claim.gaussian:
        tests["mu"] = lambda sure: gaussian_epsilon(
            audit.mu_lower_bound(scores_in, scores_out, confidence=sure), delta
        )
    if included is not None:
        tests["one run"] = lambda sure: audit.one_run_lower_bound(scores[0], included, delta, sure)
    sure = 1 - (1 - confidence) / len(tests)
    bounds = {test: bound(sure) for test, bound in tests.items()}
    by = max(bounds, key=lambda test: bounds[test])
    return Finding(attack, name, claim, bounds[by], by, len(scores_in) + len(scores_out), bounds)
