"""Every method that can be compared, and what it declares: built on small synthetic data at a total of (1, 1e-6)."""

from __future__ import annotations

from typing import Any

from tacit.compare.job import Job, declared, guarantee
from tacit.methods.method import AnyEntry, Budget
from tacit.methods.promise import Promise
from tacit.methods.registry import METHODS
from tacit.privacy.release import Events, GaussianRelease, GeneralRelease, Release
from tacit.run import build
from tacit.run.presets import preset
from tacit.run.spec import Spec
from tacit.types import Federation

BUDGET = Budget(1.0, 1e-6)
SMALL = {"data.records": 600, "data.agents": 10, "data.features": 5}


def listing() -> list[dict[str, Any]]:
    """One entry a method."""
    base = preset("sound", "objt", "synthetic").with_values(SMALL)
    over = build.federation(base)
    return [_described(METHODS[name], base, over) for name in METHODS]


def _described(who: AnyEntry, base: Spec, over: Federation) -> dict[str, Any]:
    rounds, promise = declared(Job(base, who.name, who.grid[0], BUDGET, 0, "run"), over)
    facts = guarantee(promise, rounds, BUDGET)
    return {
        "name": who.name,
        "about": who.about,
        "unit": promise.unit.value,
        "trusted": promise.trusted.value,
        "rounds": rounds,
        "events": events(promise),
        **{key: facts[key] for key in ("private", "guarantee", "epsilon", "dp_delta")},
        "docs": f"docs/methods/{who.name}.md",
        "grid": [dict(choice) for choice in who.grid],
    }


def events(promise: Promise) -> str:
    """What a round releases about one unit, and what the run releases once."""
    parts = []
    if promise.each_round:
        parts.append(f"each round: {_made(promise.each_round)}")
    if promise.once:
        parts.append(f"once: {_made(promise.once)}")
    return "; ".join(parts) or "none that is accounted"


def _made(releases: Events) -> str:
    return ", ".join(f"{n} {_kind(release)}" for release, n in releases)


def _kind(release: Release) -> str:
    kind = type(release).__name__.removesuffix("Release")
    if isinstance(release, GeneralRelease):
        return "release of which only its epsilon and delta are known"
    if isinstance(release, GaussianRelease) and release.sampled:
        return f"{kind} on a sample of rate {release.rate:.3g}"
    return kind
