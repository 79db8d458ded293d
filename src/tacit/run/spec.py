"""The spec of a run: sections of plain values, complete enough to repeat the run."""

from __future__ import annotations

import dataclasses
import functools
import math
import types
import typing
from dataclasses import dataclass
from typing import Any

from tacit import toml
from tacit.data.spec import DataSpec
from tacit.errors import SpecError, nearest, printable, unknown
from tacit.features.map import FeatureSpec
from tacit.methods.registry import METHODS, check_constant, own_constants
from tacit.privacy.summed import InSum
from tacit.run.sections import AlgorithmSpec, PrivacySpec, ProblemSpec, RunSpec, ScheduleSpec
from tacit.types import is_unicode


@dataclass(frozen=True)
class Spec:
    """Everything that a run depends on."""

    data: DataSpec = DataSpec()
    features: FeatureSpec = FeatureSpec()
    problem: ProblemSpec = ProblemSpec()
    algorithm: AlgorithmSpec = AlgorithmSpec()
    schedule: ScheduleSpec = ScheduleSpec()
    privacy: PrivacySpec = PrivacySpec()
    run: RunSpec = RunSpec()
    method: tuple[tuple[str, float], ...] = ()  # [method]: constants of the method that no other section holds

    def with_values(self, values: dict[str, Any]) -> Spec:
        """Return the spec with the values of dotted keys replaced: {"privacy.epsilon": 0.1}."""
        changed: dict[str, dict[str, Any]] = {}
        values = {MOVED.get(key, key): value for key, value in values.items()}
        for key, value in values.items():
            section, _, name = key.partition(".")
            if section != "method":
                changed.setdefault(section, {})[name] = _checked(key, value)
        spec = dataclasses.replace(
            self, **{name: dataclasses.replace(getattr(self, name), **new) for name, new in changed.items()}
        )
        own = dict(self.method) if spec.algorithm.name == self.algorithm.name else {}
        own |= {key[7:]: value for key, value in values.items() if key.startswith("method.")}
        return dataclasses.replace(spec, method=_constants(spec.algorithm.name, own)) if own or self.method else spec

    def values(self) -> dict[str, Any]:
        """Return all dotted keys with their values, in order."""
        return {
            f"{section.name}.{key.name}": getattr(getattr(self, section.name), key.name)
            for section in dataclasses.fields(self)
            if section.name != "method"
            for key in dataclasses.fields(getattr(self, section.name))
        } | {f"method.{name}": value for name, value in self.method}

    @property
    def in_sum(self) -> InSum | None:
        """What the run agrees on if it trusts a secure sum; in earlier versions the name of a method alone said so."""
        p, named = self.privacy, METHODS[self.algorithm.name].values.get("privacy.trust")
        if (named if p.trust is None else p.trust) == "sum":
            return InSum(1 if p.colluding is None else p.colluding, p.repetitions or 0)
        for key in ("colluding", "repetitions"):
            if getattr(p, key) is not None:
                raise SpecError(f"privacy.{key} is of a secure sum: set trust to 'sum', or drop it.")
        return None

    def toml(self) -> str:
        """Return the complete spec as TOML; a key that is absent is unset."""
        return toml.text(self.values())

    def checked(self) -> Spec:
        """Return this spec; refuse a spec with a value out of range, and name the first such value."""
        for key, (least, most) in _WITHIN.items():
            value = self.values()[key]
            if value is not None and not value >= least:
                raise SpecError(f"{key} must be at least {least}, got {value}.")
            if value is not None and (value > most or math.isinf(value)):
                raise SpecError(f"{key} must be {'finite' if math.isinf(most) else f'at most {most}'}, got {value}.")
        for key in ("data.seed", "features.seed", "run.seed"):
            value = self.values()[key]
            if value is not None and not 0 <= value < 2**63:
                raise SpecError(f"{key} must be a whole number from 0 to 2^63 - 1, got {value}.")
        for key in _POSITIVE:
            value = self.values()[key]
            if value is None:
                continue
            if not value > 0 or (math.isinf(value) and key != "privacy.epsilon"):
                raise SpecError(f"{key} must be positive, got {value}.")
        if not 0 <= self.data.test_fraction < 1:
            raise SpecError(f"data.test_fraction must be at least 0 and below 1, got {self.data.test_fraction}.")
        if not 0 <= (self.algorithm.momentum or 0.0) < 1:
            raise SpecError(f"algorithm.momentum must be at least 0 and below 1, got {self.algorithm.momentum}.")
        if not 0 < self.privacy.dp_delta < 1:
            raise SpecError(f"privacy.dp_delta must lie between 0 and 1, got {self.privacy.dp_delta}.")
        return self


_WITHIN = {
    "data.agents": (1, 10**7), "data.class_count": (2, 10**6), "data.records": (1, 10**8),
    "data.features": (1, 10**6), "data.classes": (2, 10**5), "problem.beta": (0, math.inf),
    "schedule.rho_c2": (0, math.inf), "privacy.colluding": (1, 10**7), "privacy.repetitions": (0, 10**9),
    "run.rounds": (1, 10**9), "run.record_every": (1, 10**9),
}  # fmt: skip
_RENAMED = {("privacy.adjacency", "add_remove"): "zero_out"}  # the name in specs and records of versions 0.1 and 0.2
MOVED = {"method.colluding": "privacy.colluding"}  # keys in specs and records of earlier versions
_POSITIVE = (
    "data.alpha", "data.row_bound", "problem.threshold", "problem.domain_radius", "algorithm.tolerance",
    "schedule.rho_c1",
    "schedule.rho_period", "schedule.rho_static", "schedule.rho_factor", "schedule.step", "schedule.score_noise",
    "schedule.eta_a", "schedule.c_w",
    "schedule.radius_a", "privacy.epsilon", "privacy.clip", "privacy.limit",
)  # fmt: skip


@functools.cache
def keys() -> dict[str, dataclasses.Field[Any]]:
    """Return every dotted key with its field, for help texts and for checks."""
    return {
        f"{section.name}.{key.name}": key
        for section in dataclasses.fields(Spec)
        if section.name != "method"
        for key in dataclasses.fields(section.default)  # type: ignore[arg-type]
    }


def _constants(method: str, values: dict[str, Any]) -> tuple[tuple[str, float], ...]:
    """Return the constants of a method that no other section holds, in the order in which the method names them."""
    entry = METHODS[method]
    known = own_constants(entry)
    for name in values:
        if not known:
            raise SpecError(f"{method} has no constants of its own: drop method.{name}.")
        if name not in known:
            raise unknown(f"constant of {method}", name, known)
    numbers = {name: _convert(float, value) for name, value in values.items()}
    for name, number in numbers.items():
        if number is None:
            raise SpecError(f"method.{name} takes a number, got {printable(values[name])}.")
        check_constant(entry, name, number)
    return tuple((name, numbers[name]) for name in known if name in numbers)


def _find(key: str) -> dataclasses.Field[Any]:
    known = keys()
    if key not in known:
        if nearest(key, known) is None:
            raise SpecError(f"unknown key {printable(key)}: tacit train --keys lists all keys.")
        raise unknown("key", key, known)
    return known[key]


def _checked(key: str, value: Any) -> Any:
    """Return the value with the declared type of its key: text is parsed, and a whole number may become a float."""
    found = _find(key)
    kinds = _kinds(key)
    value = _RENAMED.get((key, value), value) if isinstance(value, str) else value
    if value is None and types.NoneType in kinds:
        return None
    if isinstance(value, str) and not is_unicode(value):
        raise SpecError(f"{key}: {value!r} is not UTF-8, as spec.toml must be: rename it.")
    choices = found.metadata["choices"]
    if choices and not isinstance(value, str):
        raise SpecError(f"{key} takes one of {', '.join(choices)}, got {printable(value)}.")
    if choices and value not in choices:
        raise unknown(f"value of {key}", value, choices)
    for kind in kinds:
        converted = _convert(kind, value)
        if converted is not None:
            return converted
    wanted = " or ".join(kind.__name__ for kind in kinds if kind is not types.NoneType)
    raise SpecError(f"{key} takes a value of type {wanted}, got {printable(value)}.")


@functools.cache
def _kinds(key: str) -> tuple[type, ...]:
    section, _, name = key.partition(".")
    owner = typing.get_type_hints(Spec)[section]
    hint = typing.get_type_hints(owner)[name]
    plain = (kind for kind in typing.get_args(hint) or (hint,) if typing.get_origin(kind) is None)
    return tuple(plain)  # a tuple can be given in Python, never in a spec


def _convert(kind: type, value: Any) -> Any:
    if kind is bool:
        return {"true": True, "false": False}.get(str(value).lower())
    if kind is str:
        return value if isinstance(value, str) else None
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        if kind is int and (isinstance(value, int) or (isinstance(value, str) and value.isdecimal())):
            whole = int(value)  # exact, up to the largest seed and beyond
            return whole if whole.bit_length() <= 64 else None
        number = float(value)
    except (ValueError, OverflowError):  # text that is no number, or a number of thousands of digits
        return None
    if kind is int:
        return int(number) if number.is_integer() else None
    return None if kind is not float or math.isnan(number) else number
