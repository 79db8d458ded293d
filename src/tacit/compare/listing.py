"""Every method that can be compared, and what it declares: built on small synthetic data at a total of (1, 1e-6)."""

from __future__ import annotations

from tacit.compare.comparison import promise_of
from tacit.compare.job import Job, guarantee
from tacit.jsontext import Values
from tacit.methods.method import Budget, Entry
from tacit.methods.promise import Promise
from tacit.methods.registry import METHODS
from tacit.privacy.release import GaussianRelease, GeneralRelease, Release
from tacit.run import build
from tacit.run.presets import preset
from tacit.run.spec import Spec
from tacit.types import Federation

BUDGET = Budget(1.0, 1e-6)
SMALL = {"data.records": 600, "data.agents": 10, "data.features": 5}


def listing() -> list[Values]:
    """One entry a method."""
    base = preset("sound", "objt", "synthetic").with_values(SMALL)
    federation = build.federation(base)
    return [_described(who, base, federation) for who in METHODS.values()]


def _described(who: Entry, base: Spec, federation: Federation) -> Values:
    spec = Job(base, who.name, who.grid[0], BUDGET, 0, "run").run_spec
    promise = promise_of(spec, build.setup(spec, federation))
    facts = guarantee(promise, spec.run.rounds, BUDGET)
    return {
        "name": who.name, "about": who.about, "unit": promise.unit.value, "trusted": promise.trusted.value,
        "rounds": spec.run.rounds, "events": events(promise),
        **{key: facts[key] for key in ("private", "guarantee", "epsilon", "dp_delta")},
        "docs": f"docs/methods/{who.name}.md", "grid": [dict(choice) for choice in who.grid],
    }  # fmt: skip


def events(promise: Promise) -> str:
    """What a round releases about one unit, and what the run releases once."""
    made = {"each round": promise.each_round, "once": promise.once}
    parts = [
        f"{when}: {', '.join(f'{n} {_kind(release)}' for release, n in releases)}"
        for when, releases in made.items()
        if releases
    ]
    return "; ".join(parts) or "none that is accounted"


def _kind(release: Release) -> str:
    kind = type(release).__name__.removesuffix("Release")
    if isinstance(release, GeneralRelease):
        return "release of which only its epsilon and delta are known"
    if isinstance(release, GaussianRelease) and release.sampled:
        return f"{kind} on a sample of rate {release.rate:.3g}"
    return kind
