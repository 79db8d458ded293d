"""What is claimed, what was measured, and the verdict."""

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
from tacit.privacy.budget import Guarantee, total
from tacit.privacy.divergence import gaussian_epsilon
from tacit.privacy.lower_bounds import epsilon_lower_bound, mu_lower_bound, one_run_lower_bound
from tacit.privacy.mechanism import Gaussian
from tacit.privacy.release import Events, LaplaceRelease
from tacit.problem.sensitivity import Observed
from tacit.run.spec import Spec
from tacit.types import Array

SHARP = 0.8  # of the risk of error, for the test that suits a claim best; all other tests share the rest
CONFIDENCE = 0.95  # that no finding of an audit is wrong
CONFIDENCE_DEPLOYED = 0.999  # of one finding, where noise is new every time, and with it the risk of a false alarm
FACTORS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.98)  # of the noise, for `detects`
NOISE = "noise"  # the name of the one test that is of the noise and not an attack (tacit.audit.noise)
_LEAST = 1e-9  # of the claimed noise: less is as good as none, and its epsilon is no number


@dataclass(frozen=True)
class OneGaussian:
    """A Gaussian release that is claimed to reveal no less than all that is attacked: its epsilon at dp_delta."""

    epsilon: float
    dp_delta: float


@dataclass(frozen=True)
class Claim:
    """(epsilon, dp_delta) as stated, and the Gaussian release that dominates where the accountant knows one.

    The Gaussian is a claim of its own, also where another argument gives the smaller epsilon. `note` says why a claim
    is only nominal, where tacit itself gives no guarantee. `events` are the releases that the claim adds up, where
    their law and scale are part of it.
    """

    epsilon: float
    dp_delta: float
    gaussian: OneGaussian | None = None
    note: str = ""
    events: Events = ()

    def with_noise(self, factor: float) -> float:
        """The epsilon at dp_delta of the claimed releases with `factor` of their noise, by the quick arguments."""
        fainter = [(one.quieter(1 / max(factor, _LEAST)), times) for one, times in self.events]
        return total(fainter, self.dp_delta, pld=False).epsilon

    @property
    def sharp(self) -> str:
        """The test that suits the claim: rates of likely events for a pure epsilon, mu where one Gaussian dominates."""
        return "mu" if self.gaussian is not None and self.dp_delta > 0 else "rates"


@dataclass(frozen=True, eq=False)
class Trials:
    """Scores of independent draws with the record, and of as many without it.

    `paired`: entry i of both has the same noise. `coins`: (scores, included) where all are of one run, in which a fair
    coin included each record.
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
    """One test: the epsilon that it tests, and the lower bound that it certifies."""

    claimed: float
    measured: float

    @property
    def violated(self) -> bool:
        return self.measured > self.claimed

    @property
    def share(self) -> float:
        """How much of the claim was seen."""
        return self.measured / max(self.claimed, 1e-12)


@dataclass(frozen=True)
class Finding:
    """One attack: the claim and every test of it.

    `detects` is a share of the noise that is claimed, or of the noise as it is where the claim names no scale: these
    very draws, with so much noise or with less, would have refuted the claim (as far as FACTORS were tried). None where
    nothing was found, or where the claim is refuted as it stands.
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
        """The test that saw most of what it tests: one that refutes before all others, then attacks."""
        return max(self.checks, key=lambda name: (self.checks[name].violated, name != NOISE, self.checks[name].share))

    @property
    def measured(self) -> float:
        """The lower bound by that test, on the epsilon that the test is for."""
        return self.checks[self.by].measured

    @property
    def violated(self) -> bool:
        """Whether a test refutes its claim."""
        return any(check.violated for check in self.checks.values())

    @property
    def verdict(self) -> str:
        return "VIOLATED" if self.violated else "no guarantee" if self.claim.note else "consistent"

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
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
    """The confidence, and for deployed agents CONFIDENCE_DEPLOYED where that is more."""
    return max(confidence, CONFIDENCE_DEPLOYED) if spec.privacy.noise == "exact" else confidence


def claimed(spec: Spec, variant: Variant, rounds: int) -> Claim:
    """The total of `rounds` releases by the accountant; where there is none, the epsilon that the spec names."""
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


def dominating(guarantee: Guarantee) -> OneGaussian | None:
    """The Gaussian release among the arguments of a guarantee, whether or not it gives the smallest epsilon."""
    found = [bound.epsilon for bound in guarantee.bounds if bound.name == "gdp"]
    return OneGaussian(found[0], guarantee.dp_delta) if found else None


def weigh(
    attack: str,
    name: str,
    claim: Claim,
    trials: Callable[[float], Trials],
    confidence: float,
    beside: Mapping[str, tuple[Claim, Trials]] = {},
    noise: Noise | None = None,
) -> Finding:
    """Every test that applies, each against its own claim; together they err with probability 1 - confidence at most.

    trials(f) are the draws with their noise shrunk by f. Views `beside` the main one are tested by their sharpest test.
    `noise` is the noise of the draws, in units of the claimed scale.
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


def _tests(
    claim: Claim, trials: Trials, noise: Noise | None = None
) -> dict[str, tuple[float, Callable[[float], float]]]:
    """(the epsilon that is tested, confidence -> lower bound on it) of every test that applies, the quickest first."""
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
    """The last factor, from the smallest on, before the first that would not have been refuted."""
    found = None
    for factor in FACTORS:
        if not refuted(factor):
            break
        found = factor
    return found
