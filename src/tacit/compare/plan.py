"""What to compare: a plan, made of the keys of a TOML file and of flags."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
from typing import Any

from tacit import toml
from tacit.engine.registry import require
from tacit.errors import IncompatibleError, SpecError, unknown
from tacit.jsontext import Values
from tacit.leaderboard.table import TUNING_SEED
from tacit.methods.registry import METHODS
from tacit.run import in_sum
from tacit.run.presets import fitted, preset
from tacit.run.spec import Spec

KEYS = ("data", "agents", "epsilon", "dp_delta", "methods", "trust", "seeds", "rounds", "engine")


@dataclass(frozen=True)
class Plan:
    """One comparison for each total epsilon; `base` holds [data], [features] and [problem] of the sound preset."""

    base: Spec
    epsilons: tuple[float, ...]
    dp_delta: float
    methods: tuple[str, ...]
    seeds: int
    rounds: int | None  # at most, whatever a choice says
    trust: str | None = None  # "sum": every method behind a secure sum; None: each as its name says


def read(path: Path) -> Values:
    """The keys of [compare], and those of [data] and [features] by their dotted names."""
    values: Values = {}
    for key, value in toml.read(path).items():
        section, _, name = key.partition(".")
        if section == "compare" and name in KEYS:
            values[name] = value
        elif section in ("data", "features"):
            values[key] = value
        elif section == "compare":
            raise unknown("key of [compare]", name, KEYS)
        else:
            raise SpecError(f"{path}: a comparison has the sections [compare], [data] and [features], not [{section}].")
    return values


def plan(values: Values) -> Plan:
    """The plan that keys of [compare] and dotted data keys ask for; what is out of range is refused."""
    short = {"data": "data.source", "agents": "data.agents"}
    data = {short.get(key, key): value for key, value in values.items() if key in short or "." in key}
    for key in data:
        if not key.startswith(("data.", "features.")):
            todo = "give keys of [data] and [features] alone"
            raise SpecError(f"a comparison fixes all but the data and their features, so it takes no {key}: {todo}.")
    source = data.get("data.source", "mnist")
    if not isinstance(source, str):
        raise SpecError(f"data takes a name or a path, got {source!r}.")
    base = fitted(preset("sound", "objt", source).with_values(data).checked())
    base = base.with_values({"run.engine": _engine(values.get("engine", "fast"))})
    if base.data.row_norm != "l2":
        raise IncompatibleError(
            f"every method needs records bounded in l2, and data.row_norm = {base.data.row_norm}: drop it."
        )
    seeds = f"seeds is how many runs are reported, from 1 to {TUNING_SEED} (seed {TUNING_SEED} tunes)"
    rounds = "rounds is the most that a method may take, at least 1"
    trust = "trust takes sum, which puts every method behind a secure sum; without it each is as its name says"
    asked = None if values.get("trust") is None else _checked(values["trust"], str, lambda given: given == "sum", trust)
    delta = "dp_delta must lie between 0 and 1 (1e-6 is usual)"
    return Plan(
        base,
        _epsilons(values.get("epsilon", 1.0)),
        float(_checked(values.get("dp_delta", 1e-6), int | float, lambda given: 0 < given < 1, delta)),
        _methods(values.get("methods"), asked),
        _checked(values.get("seeds", 5), int, lambda given: 1 <= given <= TUNING_SEED, seeds),
        None if values.get("rounds") is None else _checked(values["rounds"], int, lambda given: given >= 1, rounds),
        asked,
    )


def _checked(given: Any, kind: type | UnionType, fits: Callable[[Any], bool], says: str) -> Any:
    """A number of this kind that fits; any other value is refused."""
    if isinstance(given, bool) or not isinstance(given, kind) or not fits(given):
        raise SpecError(f"{says}: got {given!r}.")
    return given


def _engine(given: Any) -> str:
    """Refuse an engine that does not compute every method, or is not on this machine."""
    if given not in ("fast", "mpi"):
        raise SpecError(f"a comparison runs on the fast engine, or on mpi over the ranks of mpiexec, not on {given!r}.")
    require(str(given), "cpu")
    return str(given)


def _epsilons(given: Any) -> tuple[float, ...]:
    several = list(given) if isinstance(given, list | tuple) else [given]
    says = "epsilon is a total budget, a positive number, or inf for no noise"
    for one in several:
        _checked(one, int | float, lambda epsilon: epsilon > 0, says)
    if not several or len(set(several)) < len(several):
        raise SpecError(f"epsilon takes one value, or several that differ: got {several}.")
    return tuple(map(float, several))


def _methods(given: Any, trust: str | None) -> tuple[str, ...]:
    """The methods of these names, in their order; without names, all that are ranked and can be trusted as asked."""
    if given is None:
        return tuple(name for name in (METHODS if trust is None else in_sum.takers()) if METHODS[name].ranked)
    if not isinstance(given, list | tuple) or not given:
        raise SpecError(f"methods takes a list of names, got {given!r}: tacit compare --list shows them.")
    for name in given:
        if name not in METHODS:
            raise unknown("method", str(name), METHODS)
        if trust == "sum" and not METHODS[name].sums:
            raise IncompatibleError(in_sum.refused(name))
    if len(set(given)) < len(given):
        raise SpecError(f"methods names one twice: {', '.join(given)}.")
    return tuple(given)
