"""What to compare, from a TOML file and flags."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit import toml
from tacit.compare.tune import TUNING_SEED
from tacit.errors import IncompatibleError, SpecError, unknown
from tacit.methods.registry import METHODS
from tacit.run.presets import preset
from tacit.run.spec import Spec

KEYS = ("data", "agents", "epsilon", "dp_delta", "methods", "seeds", "rounds")


@dataclass(frozen=True)
class Plan:
    """One comparison for each total epsilon; `base` holds [data] and [problem] of the sound preset."""

    base: Spec
    epsilons: tuple[float, ...] = (1.0,)
    dp_delta: float = 1e-6
    methods: tuple[str, ...] = ()
    seeds: int = 5
    rounds: int | None = None  # at most, whatever a choice says


def read(path: Path) -> dict[str, Any]:
    """The keys of [compare], and those of [data] by their dotted names."""
    values: dict[str, Any] = {}
    for key, value in toml.read(path).items():
        section, _, name = key.partition(".")
        if section == "compare" and name in KEYS:
            values[name] = value
        elif section == "data":
            values[key] = value
        elif section == "compare":
            raise unknown("key of [compare]", name, KEYS)
        else:
            raise SpecError(f"{path}: a comparison has the sections [compare] and [data], not [{section}].")
    return values


def plan(values: Mapping[str, Any]) -> Plan:
    """The plan that keys of [compare] and dotted data keys ask for; what is out of range is refused."""
    short = {"data": "data.source", "agents": "data.agents"}
    data = {short.get(key, key): value for key, value in values.items() if key in short or "." in key}
    for key in data:
        if not key.startswith("data."):
            raise SpecError(f"a comparison fixes all but the data, so it takes no {key}: give keys of [data] alone.")
    source = data.get("data.source", "mnist")
    if not isinstance(source, str):
        raise SpecError(f"data takes a name or a path, got {source!r}.")
    base = preset("sound", "objt", source).with_values(data).checked()
    if base.data.row_norm != "l2":
        raise IncompatibleError(
            f"every method needs records bounded in l2, and data.row_norm = {base.data.row_norm}: drop it."
        )
    return Plan(
        base,
        _epsilons(values.get("epsilon", 1.0)),
        _delta(values.get("dp_delta", 1e-6)),
        _methods(values.get("methods")),
        _seeds(values.get("seeds", 5)),
        _rounds(values.get("rounds")),
    )


def _epsilons(given: Any) -> tuple[float, ...]:
    several = tuple(given) if isinstance(given, list | tuple) else (given,)
    for one in several:
        if isinstance(one, bool) or not isinstance(one, int | float) or not one > 0:
            raise SpecError(f"epsilon is a total budget, a positive number, or inf for no noise: got {one!r}.")
    if not several or len(set(several)) < len(several):
        raise SpecError(f"epsilon takes one value, or several that differ: got {list(several)}.")
    return tuple(float(one) for one in several)


def _delta(given: Any) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given < 1:
        raise SpecError(f"dp_delta must lie between 0 and 1, got {given!r}: 1e-6 is usual.")
    return float(given)


def _methods(given: Any) -> tuple[str, ...]:
    """Those named, in their order; all without a name."""
    if given is None:
        return tuple(name for name in METHODS if METHODS[name].ranked)
    if not isinstance(given, list | tuple) or not given:
        raise SpecError(f"methods takes a list of names, got {given!r}: tacit compare --list shows them.")
    for name in given:
        if name not in METHODS:
            raise unknown("method", str(name), METHODS)
    if len(set(given)) < len(given):
        raise SpecError(f"methods names one twice: {', '.join(given)}.")
    return tuple(given)


def _rounds(given: Any) -> int | None:
    if given is not None and (isinstance(given, bool) or not isinstance(given, int) or given < 1):
        raise SpecError(f"rounds is the most that a method may take, at least 1: got {given!r}.")
    return given


def _seeds(given: Any) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= TUNING_SEED:
        raise SpecError(
            f"seeds is how many runs are reported, from 1 to {TUNING_SEED} (seed {TUNING_SEED} tunes): got {given!r}."
        )
    return given
