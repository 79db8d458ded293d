"""What one release tells of one record, per unit of noise: all that accounting needs to know of a release.

s is how far one record moves the released vector; every norm of s is a public bound, never read from the data.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TypeAlias

from tacit import jsontext
from tacit.errors import SpecError
from tacit.jsontext import Values


@dataclass(frozen=True)
class LaplaceRelease:
    """Laplace noise of scale b: l1 = |s|_1 / b (the epsilon of the release), l2 = |s|_2 / b, peak = max|s_j| / b.

    l2 and peak are None where no bound is known; l1 is inf where only l2 is known. LaplaceRelease(inf) has no noise.
    """

    l1: float
    l2: float | None = None
    peak: float | None = None

    def __post_init__(self) -> None:
        for name, value in (("l1", self.l1), ("l2", self.l2), ("peak", self.peak)):
            if value is not None and not value >= 0:
                raise SpecError(f"{name} is a sensitivity over a noise scale, so at least 0: got {value}.")

    @property
    def norms(self) -> tuple[float, float, float]:
        """(l1, l2, peak), each no larger than the others allow: peak <= l2 <= l1 and l2^2 <= l1 peak."""
        l2 = min(self.l1, math.inf if self.l2 is None else self.l2)
        peak = min(l2, math.inf if self.peak is None else self.peak)
        return self.l1, min(l2, math.sqrt(self.l1) * math.sqrt(peak)) if peak else 0.0, peak

    def quieter(self, factor: float) -> LaplaceRelease:
        """The release with its noise divided by `factor`."""
        l2 = None if self.l2 is None else self.l2 * factor
        peak = None if self.peak is None else self.peak * factor
        return LaplaceRelease(self.l1 * factor, l2, peak)


@dataclass(frozen=True)
class GaussianRelease:
    """Gaussian noise of standard deviation multiplier * |s|_2, on a Poisson sample of the records if rate < 1."""

    multiplier: float
    rate: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.multiplier < math.inf:
            raise SpecError(f"a Gaussian release needs a positive, finite noise multiplier: got {self.multiplier}.")
        if not 0 < self.rate <= 1:
            raise SpecError(f"a sampling rate lies in (0, 1]: got {self.rate}; use 1 for full batches.")

    @property
    def sampled(self) -> bool:
        """Whether a release sees only a sample of the records."""
        return self.rate < 1

    def quieter(self, factor: float) -> GaussianRelease:
        """The release with its noise divided by `factor`."""
        return GaussianRelease(self.multiplier / factor, self.rate)


@dataclass(frozen=True)
class GeneralRelease:
    """A release of which only this is known: it is (epsilon, dp_delta)-differentially private.

    It reveals no more than a coin that tells the record with probability dp_delta, and otherwise answers "with" or
    "without" with odds e^epsilon to one for the truth (Kairouz, Oh & Viswanath 2015). Laplace noise of the same
    epsilon reveals less: only the coin is a bound.
    """

    epsilon: float
    dp_delta: float = 0.0

    def __post_init__(self) -> None:
        if not self.epsilon >= 0:
            raise SpecError(f"the epsilon of a release is at least 0: got {self.epsilon}.")
        if not 0 <= self.dp_delta < 1:
            raise SpecError(f"the dp_delta of a release is a probability below 1: got {self.dp_delta}.")

    def quieter(self, factor: float) -> GeneralRelease:
        """The release with `factor` times the epsilon, and the same dp_delta."""
        return GeneralRelease(self.epsilon * factor, self.dp_delta)


@dataclass(frozen=True)
class BinomialRelease:
    """Whole numbers with binomial noise: `coins` fair coins an entry, an even number, less half of them.

    A record moves the `entries` numbers, before they are rounded at random, by `moved` steps in l2. What is known of
    the release (tacit.privacy.binomial) holds but for a probability dp_delta.
    """

    coins: int
    moved: float
    entries: int
    dp_delta: float

    def __post_init__(self) -> None:
        if self.coins < 2 or self.coins % 2 or self.entries < 1:
            raise SpecError(
                f"a binomial release needs an even number of coins and an entry: got {self.coins}, {self.entries}."
            )
        if not 0 <= self.moved < math.inf or not 0 < self.dp_delta < 1:
            raise SpecError(
                "a binomial release needs a finite sensitivity and a dp_delta between 0 and 1: "
                f"got {self.moved}, {self.dp_delta}."
            )

    def quieter(self, factor: float) -> BinomialRelease:
        """The release with its noise divided by `factor`: 1 / factor^2 times the coins, rounded up."""
        return replace(self, coins=2 * max(1, math.ceil(self.coins / (2 * factor**2))))


Release: TypeAlias = LaplaceRelease | GaussianRelease | GeneralRelease | BinomialRelease
Events: TypeAlias = Sequence[tuple[Release, int]]  # releases, and how often each is made: rounds * local steps
# by the name that ledgers and results give them
_KINDS: dict[str, type[Release]] = {
    "gaussian": GaussianRelease,
    "laplace": LaplaceRelease,
    "general": GeneralRelease,
    "binomial": BinomialRelease,
}


def merge(events: Events) -> tuple[tuple[Release, int], ...]:
    """Counts equal releases together, in a fixed order, and drops releases that say nothing of the record."""
    counts: dict[Release, int] = {}
    for release, count in events:
        if count < 0 or count != int(count):
            raise SpecError(f"a release is made a whole number of times, 0 or more: got {count} for {release}.")
        if count and not says_nothing(release):
            counts[release] = counts.get(release, 0) + int(count)
    return tuple(sorted(counts.items(), key=repr))


def says_nothing(release: Release) -> bool:
    """Tell whether a release moves nothing, so that it needs no noise."""
    if isinstance(release, LaplaceRelease):
        return release.norms[1] == 0
    if isinstance(release, BinomialRelease):
        return release.moved == 0
    return isinstance(release, GeneralRelease) and release.epsilon == release.dp_delta == 0


def pure_epsilon(release: Release) -> float:
    """The epsilon of a release with delta = 0; of a general release, given that it does not reveal the record."""
    if isinstance(release, GaussianRelease | BinomialRelease):
        return math.inf
    return release.l1 if isinstance(release, LaplaceRelease) else release.epsilon


def describe(release: Release) -> Values:
    """A release as JSON."""
    for name, kind in _KINDS.items():
        if type(release) is kind:
            return {"mechanism": name, **asdict(release)}
    raise SpecError(f"a ledger records {', '.join(_KINDS)} releases, not {type(release).__name__}.")


def restored(description: Values) -> Release:
    """The release that `describe` described. Results have no infinity in JSON: an l1 that is null is infinite."""
    terms = dict(description)
    kind = _KINDS[terms.pop("mechanism")]
    if kind is LaplaceRelease and terms["l1"] is None:
        terms["l1"] = math.inf
    return kind(**terms)


def read_strictly(description: Values) -> Release:
    """The release that `describe` described, from a file that may be forged: an exception for anything else."""
    for name, term in description.items():
        if name != "mechanism" and term is not None:
            jsontext.number(term)
    found = restored(description)
    if jsontext.dumps(describe(found)) != jsontext.dumps(description):
        raise ValueError("no description that tacit writes")
    return found


def described(each_round: Events, once: Events) -> list[Values]:
    """The releases of a run as JSON: `count` where a round makes several of one kind, `once` where a run does."""
    each = [describe(one) | ({} if n == 1 else {"count": n}) for one, n in each_round]
    return each + [describe(one) | {"count": n, "once": True} for one, n in once]


def events_of(descriptions: Sequence[Values], rounds: int) -> Events:
    """The releases of the first `rounds` rounds of a run that `described` described."""
    found = []
    for one in descriptions:
        terms = dict(one)
        count, once = terms.pop("count", 1), terms.pop("once", False)
        found.append((restored(terms), count if once else count * rounds))
    return found


def spell(release: Release) -> str:
    """A release in a few words: gaussian multiplier=37.3 rate=1."""
    terms = describe(release)
    return " ".join([terms.pop("mechanism"), *(f"{k}={v:.4g}" for k, v in terms.items() if v is not None)])


def noise_in_words(release: Release, count: int = 1) -> str:
    """The noise of `count` equal releases: 2 times Gaussian noise of 37.3 sensitivities."""
    times = "" if count == 1 else f"{count} times "
    if isinstance(release, GaussianRelease):
        sampled = f" on a sample of rate {release.rate:.3g}" if release.sampled else ""
        return f"{times}Gaussian noise of {release.multiplier:.4g} sensitivities{sampled}"
    if isinstance(release, LaplaceRelease):
        norm = release.l1 if math.isfinite(release.l1) else release.norms[1]
        return f"{times}Laplace noise of {1 / norm:.4g} sensitivities"
    if isinstance(release, BinomialRelease):
        return f"{times}binomial noise of {math.sqrt(release.coins) / 2 / release.moved:.4g} sensitivities"
    assert isinstance(release, GeneralRelease)
    return f"{times}a release of ({release.epsilon:.4g}, {release.dp_delta:g})"
