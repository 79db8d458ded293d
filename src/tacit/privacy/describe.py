"""Releases as JSON and in words, for ledgers and results."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from tacit.errors import SpecError
from tacit.privacy.release import Events, GaussianRelease, GeneralRelease, LaplaceRelease, Release

_KINDS: dict[str, type[Release]] = {
    "gaussian": GaussianRelease,
    "laplace": LaplaceRelease,
    "general": GeneralRelease,
}


def describe(release: Release) -> dict[str, Any]:
    """A release as JSON."""
    for name, kind in _KINDS.items():
        if type(release) is kind:
            return {"mechanism": name, **asdict(release)}
    raise SpecError(f"a ledger records {' and '.join(_KINDS)} releases, not {type(release).__name__}.")


def restored(description: Mapping[str, Any]) -> Release:
    """What `describe` described. Some JSON has no infinity: an l1 that is null bounds nothing."""
    terms = dict(description)
    kind = _KINDS[terms.pop("mechanism")]
    if kind is LaplaceRelease and terms["l1"] is None:
        terms["l1"] = math.inf
    return kind(**terms)


def described(each_round: Events, once: Events) -> list[dict[str, Any]]:
    """What a run releases as JSON; `count` where a round makes several of one kind, `once` where a run does."""
    each = [describe(one) | ({} if n == 1 else {"count": n}) for one, n in each_round]
    return each + [describe(one) | {"count": n, "once": True} for one, n in once]


def events(descriptions: Sequence[Mapping[str, Any]], rounds: int) -> Events:
    """What the first `rounds` rounds release, of a run that `described` described."""
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
