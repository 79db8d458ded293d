"""The finding of an audit: the claimed epsilon, the measured epsilon, and the verdict."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tacit.admm import compatible
from tacit.admm.agent import Variant
from tacit.admm.compatible import release
from tacit.audit.noise import Noise
from tacit.errors import SpecError
from tacit.privacy.budget import Total, total
from tacit.privacy.divergence import gaussian_epsilon
from tacit.privacy.lower_bounds import epsilon_lower_bound, mu_lower_bound, one_run_lower_bound
from tacit.privacy.mechanism import Gaussian
from tacit.privacy.release import Events, LaplaceRelease
from tacit.problem.sensitivity import Observed
from tacit.run.spec import Spec
from tacit.types import Array

SHARP = 0.8  # the share of the risk of error of the test that suits a claim best; all other tests share the rest
CONFIDENCE = 0.95  # the confidence that no finding of an audit is wrong
CONFIDENCE_DEPLOYED = 0.999  # of one finding: exact noise is new every time, and so is the risk of a false alarm
FACTORS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.98)  # shares of the noise, for `detects`
NOISE = "noise"  # the name of the only test that is no attack: the test of the noise scale (tacit.audit.noise)
_LEAST = 1e-9  # share of the claimed noise: less noise is as good as none, and its epsilon is no number


@dataclass(frozen=True)
class OneGaussian:
    """A Gaussian release, by its epsilon at dp_delta, that is claimed to reveal no less than the attacked releases."""

    epsilon: float
    dp_delta: float


@dataclass(frozen=True)
class Claim:
    """The stated (epsilon, dp_delta), and the dominating Gaussian release if the accountant knows one.

    The Gaussian is a claim of its own, even if another argument gives a smaller epsilon. `note` says why a claim is
    only nominal, where tacit itself gives no guarantee. `events` are the releases that the claim adds up, where the
    law and the scale of the releases are part of the claim.
    """

    epsilon: float
    dp_delta: float
    gaussian: OneGaussian | None = None
    note: str = ""
    events: Events = ()

    def with_noise(self, factor: float) -> float:
        """Return the epsilon at dp_delta of the releases with `factor` of the claimed noise, by the quick arguments."""
        fainter = [(one.quieter(1 / max(factor, _LEAST)), times) for one, times in self.events]
        return total(fainter, self.dp_delta, pld=False).epsilon

    @property
    def sharp(self) -> str:
        """Return the test that suits the claim: mu if one Gaussian dominates, else rates of likely events."""
        return "mu" if self.gaussian is not None and self.dp_delta > 0 else "rates"


@dataclass(frozen=True, eq=False)
class Trials:
    """Scores of independent draws with the record, and scores of as many draws without it.

    `paired`: entry i of both arrays has the same noise. `coins`: (scores, included) where all scores are of one run,
    in which a fair coin included each record.
    """

    present: Array
    absent: Array
    paired: bool = False
    coins: tuple[Array, Array] | None = None

    @classmethod
    def of_one_run(cls, scores: Array, included: Array) -> Trials:
        return cls(scores[included], scores[~included], coins=(scores, included))


@dataclass(frozen=True)
class Check:
    """The outcome of one test: the claimed epsilon, and the measured lower bound on epsilon."""

    claimed: float
    measured: float

    @property
    def violated(self) -> bool:
        return self.measured > self.claimed

    @property
    def share(self) -> float:
        """Return the measured epsilon as a share of the claimed epsilon."""
        return self.measured / max(self.claimed, 1e-12)


@dataclass(frozen=True)
class Finding:
    """The finding of one attack: the claim and every test of the claim.

    `detects` is a share of the claimed noise, or of the actual noise where the claim names no scale: the same draws
    with this share of the noise, or with less, would have refuted the claim (as far as FACTORS were tried). `detects`
    is None if no factor would have refuted the claim, or if the claim is refuted as it stands.
    """

    attack: str
    name: str
    claim: Claim
    samples: int
    confidence: float
    checks: dict[str, Check] = field(default_factory=dict)
    detects: float | None = None

    @property
    def by(self) -> str:
        """Return the test with the largest share; tests that refute come first, and attacks before the noise test."""
        return max(self.checks, key=lambda name: (self.checks[name].violated, name != NOISE, self.checks[name].share))

    @property
    def measured(self) -> float:
        """Return the lower bound of the test `by` on the epsilon of that test."""
        return self.checks[self.by].measured

    @property
    def violated(self) -> bool:
        """Tell whether a test refutes its claim."""
        return any(check.violated for check in self.checks.values())

    @property
    def verdict(self) -> str:
        return "VIOLATED" if self.violated else "no guarantee" if self.claim.note else "consistent"

    def as_dict(self) -> dict[str, Any]:
        """Return the finding as values for JSON."""
        checks = {name: {"claimed": one.claimed, "measured": one.measured} for name, one in self.checks.items()}
        return {
            "attack": self.attack,
            "name": self.name,
            "claimed": self.claim.epsilon,
            "dp_delta": self.claim.dp_delta,
            "note": self.claim.note,
            "measured": self.measured,
            "by": self.by,
            "samples": self.samples,
            "confidence": self.confidence,
            "checks": checks,
            "detects": self.detects,
            "verdict": self.verdict,
        }


def at_least(confidence: float, spec: Spec) -> float:
    """Return the confidence; for deployed agents, at least CONFIDENCE_DEPLOYED."""
    deployed = spec.privacy.noise == "exact" or spec.privacy.trust == "sum"  # a sum is attacked as it is deployed
    return max(confidence, CONFIDENCE_DEPLOYED) if deployed else confidence


def claimed(spec: Spec, variant: Variant, rounds: int) -> Claim:
    """Return the accountant's total of `rounds` releases; if there is no total, the epsilon that the spec names."""
    p = spec.privacy
    if math.isinf(p.epsilon):
        raise SpecError("epsilon = inf claims nothing, so there is nothing to audit: give --epsilon.")
    one = release(variant)
    if one is None:
        times = 1 if p.covers == "run" else rounds
        dp_delta = times * p.dp_delta if p.mechanism == "gaussian" or p.covers == "run" else 0.0
        dp_delta = min(dp_delta, 0.5)
        shaped = isinstance(variant.mechanism, Gaussian) and not isinstance(variant.bound, Observed)
        note = f"nominal epsilon; not private: {' '.join(compatible.caveats(variant))}"
        nominal = times * p.epsilon
        return Claim(nominal, dp_delta, OneGaussian(nominal, dp_delta) if shaped else None, note)
    pure = isinstance(one, LaplaceRelease) and math.isfinite(one.l1) and rounds == 1
    found = total([(one, rounds)], 0.0 if pure else p.dp_delta)
    shape = dominating(total([(one, rounds)], p.dp_delta, pld=False) if pure else found)
    return Claim(found.epsilon, found.dp_delta, shape, events=((one, rounds),))


def dominating(spent: Total) -> OneGaussian | None:
    """Return the dominating Gaussian release of a total, even if another argument gives a smaller epsilon."""
    found = [bound.epsilon for bound in spent.bounds if bound.name == "gdp"]
    return OneGaussian(found[0], spent.dp_delta) if found else None


def weigh(
    attack: str,
    name: str,
    claim: Claim,
    trials: Callable[[float], Trials],
    confidence: float,
    beside: Mapping[str, tuple[Claim, Trials]] = {},
    noise: Noise | None = None,
) -> Finding:
    """Run every test that applies; all tests together err with probability 1 - confidence at most.

    Each test has its own claim. trials(f) are the draws with their noise multiplied by f. Views `beside` the main view
    are tested by their sharpest test. `noise` is the noise of the draws, in units of the claimed scale.
    """
    whole = trials(1.0)
    count = len(_tests(claim, whole, noise)) + len(beside)
    sharp = 1 - (1 - confidence) * (SHARP if count > 1 else 1.0)
    dull = 1 - (1 - confidence) * (1 - SHARP) / max(1, count - 1)

    def checked(seen: Trials, noise: Noise | None) -> Iterator[tuple[str, Check]]:
        for test, (of, bound) in _tests(claim, seen, noise).items():
            yield test, Check(of, bound(sharp if test == claim.sharp else dull))

    def refuted(factor: float) -> bool:
        tried = checked(trials(factor), None if noise is None else noise.shrunk(factor))
        return any(check.violated for _, check in tried)

    checks = dict(checked(whole, noise))
    for view, (own, seen) in beside.items():
        of, bound = _tests(own, seen)[own.sharp]
        checks[view] = Check(of, bound(dull))
    made = Finding(attack, name, claim, len(whole.present) + len(whole.absent), confidence, checks)
    found = None if made.violated else _detected(refuted)
    if found is None:
        return made
    return replace(made, detects=math.floor(100 * found * (1.0 if noise is None else noise.scale)) / 100)


def weigh_all(
    attack: str, name: str, claim: Claim, several: Mapping[str, Callable[[float], Trials]], confidence: float
) -> Finding:
    """Run every test on the trials of several attacks by name, which share the risk of error equally.

    The finding detects what one of the attacks detects; its samples are the draws of one attack.
    """
    sure = 1 - (1 - confidence) / len(several)
    each = {by: weigh(attack, name, claim, trials, sure) for by, trials in several.items()}
    checks = {f"{test} {by}".strip(): check for by, one in each.items() for test, check in one.checks.items()}
    made = Finding(attack, name, claim, max(one.samples for one in each.values()), confidence, checks)
    seen = [one.detects for one in each.values() if one.detects is not None]
    return made if made.violated else replace(made, detects=max(seen, default=None))


def _tests(
    claim: Claim, trials: Trials, noise: Noise | None = None
) -> dict[str, tuple[float, Callable[[float], float]]]:
    """Return (claimed epsilon, confidence -> lower bound on epsilon) of every test that applies, the quickest first."""
    tests: dict[str, tuple[float, Callable[[float], float]]] = {}
    if noise is not None and claim.events and not noise.hidden:
        tests[NOISE] = claim.with_noise(1.0), lambda sure: claim.with_noise(noise.scale_at_most(sure))
    tests["rates"] = (
        claim.epsilon,
        lambda sure: epsilon_lower_bound(trials.present, trials.absent, claim.dp_delta, sure),
    )
    if claim.gaussian is not None:
        one = claim.gaussian
        tests["mu"] = (
            one.epsilon,
            lambda sure: gaussian_epsilon(
                mu_lower_bound(trials.present, trials.absent, confidence=sure, paired=trials.paired), one.dp_delta
            ),
        )
    if trials.coins is not None:
        scores, included = trials.coins
        tests["one run"] = (
            claim.epsilon,
            lambda sure: one_run_lower_bound(scores, included, claim.dp_delta, sure),
        )
    return tests


def _detected(refuted: Callable[[float], bool]) -> float | None:
    """Return the largest factor such that this factor and all smaller FACTORS would have been refuted, or None."""
    found = None
    for factor in FACTORS:
        if not refuted(factor):
            break
        found = factor
    return found
