"""The standing of each method at each budget, from the records of a comparison."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tacit import toml
from tacit.errors import RecordError
from tacit.jsontext import Values

SPLIT = {"trial": "all but a random sixth of each agent's records, which judges", "run": "all training records"}
LARGEST = 1e15  # of the numbers in a record
_NUMBER, _TEXT = (int, float), (str,)
_KINDS: dict[str, tuple[type, ...]] = {  # of the values of a record that a row is made of
    "method": _TEXT, "choice": (dict,), "budget_epsilon": _NUMBER, "budget_dp_delta": _NUMBER, "error": _NUMBER,
    "auc": _NUMBER, "features": _TEXT, "rounds": (int,), "seconds": _NUMBER, "sent_bytes": _NUMBER, "failed": _TEXT,
    "private": (bool,), "guarantee": _TEXT, "epsilon": _NUMBER, "dp_delta": _NUMBER, "accountant": _TEXT,
    "unit": _TEXT, "trusted": _TEXT, "coalition": (list,), "best_guess": _NUMBER,
}  # fmt: skip
_KNOWN = {"method", "choice", "rounds", "seconds", "sent_bytes", "private", "guarantee"}  # never null


@dataclass(frozen=True)
class Standing:
    """One method at one budget: its trials, and its runs with the choice that they led to."""

    method: str
    epsilon: float  # the total budget; inf for no noise
    dp_delta: float
    trials: tuple[Values, ...]
    runs: tuple[Values, ...]


def shared(values: Values) -> Values:
    """Return the keys of [data], [features] and [problem]."""
    return {key: value for key, value in values.items() if key.startswith(("data.", "features.", "problem."))}


def check_role(one: Values, where: str) -> None:
    """Refuse a record that is not of a comparison."""
    if str(one.get("role")) not in SPLIT:
        raise RecordError(f"{where} holds records that are none of a comparison: name another --out.")


def is_compared(one: Mapping[str, Any]) -> bool:
    """Tell whether a record is of a comparison."""
    return str(one.get("role")) in SPLIT and "budget_epsilon" in one


def read(records: Sequence[Values], where: str) -> list[list[Standing]]:
    """Return the standings that records tell: a list for each setting of the data, the features and the problem."""
    found: dict[str, dict[str, list[Values]]] = {}
    there: set[str] = set()
    for n, one in enumerate(records, 1):
        spec = _checked(one, f"{where}, record {n}")
        if one["spec"] in there:
            raise RecordError(f"{where}, record {n}: {one['name']} is there twice, and would count twice. Remove one.")
        there.add(one["spec"])
        budget = [spec.get(f"budget.{key}") for key in ("epsilon", "dp_delta", "trust")]
        setting, who = json.dumps(shared(spec)), json.dumps([one["method"], *map(str, budget)])
        found.setdefault(setting, {}).setdefault(who, []).append(one)
    return [[_standing(own) for own in by_method.values()] for by_method in found.values()]


def _checked(one: Values, where: str) -> Values:
    """Return the spec of a record; refuse a record that no row can be made of, or that is not of its spec."""
    told = str(one.get("name", "a record"))
    again = f"Remove it, and run the same `tacit compare` again: it repeats only {told}."
    check_role(one, where)
    spec = toml.parsed(one["spec"], where)
    for key, kinds in _KINDS.items():
        if not _fits(one.get(key), kinds, key in _KNOWN):
            raise RecordError(f"{where}: {told} has no {key} that a comparison writes. {again}")
    if (spec.get("method.name"), spec.get("budget.epsilon"), spec.get("run.seed")) != (
        one["method"], _epsilon(one), one.get("seed")
    ):  # fmt: skip
        raise RecordError(f"{where}: {told} is not of its spec. {again}")
    return spec


def _fits(value: Any, kinds: tuple[type, ...], known: bool) -> bool:
    """Tell whether a value is of one of the kinds, and no larger than can be shown."""
    if value is None:
        return not known
    if type(value) not in kinds:
        return False
    if isinstance(value, list):  # a coalition: how many may collude, and of how many
        return len(value) == 2 and all(_fits(one, (int,), True) for one in value)
    return not isinstance(value, int | float) or abs(value) <= LARGEST


def _standing(records: Sequence[Values]) -> Standing:
    """Return the standing of one method at one budget; of equal trials, the one whose choice was run."""
    first = records[0]
    trials, runs = ([one for one in records if one["role"] == role] for role in SPLIT)
    least = min((one["error"] for one in trials if one["error"] is not None), default=None)
    choices = [one["choice"] for one in trials if one["error"] is not None and one["error"] == least]
    chosen = [one for one in runs if one["choice"] in choices] if trials else runs
    own = [one for one in chosen if one["choice"] == chosen[0]["choice"]]
    return Standing(first["method"], _epsilon(first), first["budget_dp_delta"], tuple(trials), tuple(own))


def _epsilon(one: Values) -> float:
    """Return the total budget of a record: JSON has no infinity."""
    return math.inf if one["budget_epsilon"] is None else float(one["budget_epsilon"])
