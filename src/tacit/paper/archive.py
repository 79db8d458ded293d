"""The records of the paper's runs: each run once, its record of its spec, whatever version of tacit wrote it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tacit import record, toml
from tacit.data.spec import DataSpec
from tacit.errors import RecordError, SpecError
from tacit.jsontext import Values
from tacit.record import RecordFile
from tacit.run.noise import simulated
from tacit.run.spec import Spec

MEASURED, ONE_WEIGHT = "noise_gradient_units", "noise_one_weight"


class Archive(RecordFile):
    """A file of records in which a run is found by its spec, but for how often the run is measured."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, lambda one: key_of(Spec().with_values(spec_of(one))), completed)

    @property
    def data(self) -> dict[DataSpec, tuple[int, int]]:
        """How many agents and records the data of the recorded runs had."""
        found: dict[DataSpec, tuple[int, int]] = {}
        for one in self:
            if "diverged" not in one:
                size = one["agents"], one["records"]
                if found.setdefault(Spec().with_values(spec_of(one)).data, size) != size:
                    raise RecordError(
                        f"{self.path}: {one['name']} is of {size[1]} records, and another run of the same data is not. "
                        "Remove the runs of other data."
                    )
        return found


def key_of(spec: Spec) -> str:
    """What names a run: its spec, but for how often it is measured, which changes nothing of the run."""
    return record.spec_hash(simulated(spec.with_values({"run.record_every": None})).toml())


def spec_of(one: Values) -> Values:
    """The dotted keys of a record's spec."""
    return toml.parsed(one["spec"], f"the spec of {one['name']}")


def select(records: Iterable[Values], where: Values) -> list[Values]:
    """The records whose specs have these values, without the runs that diverged."""
    whole = ((one, spec_of(one)) for one in records if "diverged" not in one)
    return [one for one, spec in whole if all(spec.get(key) == value for key, value in where.items())]


def mean(records: Iterable[Values], quantity: str) -> float | None:
    """The mean of a quantity over the records that have a value of it; None without any."""
    found = [value for one in records if (value := _last(one, quantity)) is not None]
    return sum(found) / len(found) if found else None


def _last(one: Values, quantity: str) -> float | None:
    """A quantity of a record: of its summary, or the last point of its curve."""
    if quantity not in one and quantity not in one["curve"]:
        raise RecordError(f"{one['name']} holds no {quantity}: run it again with this version of tacit.")
    value: float | None = one[quantity] if quantity in one else (one["curve"][quantity] or [None])[-1]
    return value


def completed(one: Values, where: str) -> Values:
    """The record with every key that specs have by now: a run from before a key had the default of that key.

    A record that says another length, seed or algorithm than its spec, or another end than its curve, is refused.
    """
    name = one.get("name", "a run without a name")
    try:
        values = spec_of(one)
        spec = simulated(Spec().with_values(values)).toml()  # before there was a choice, noise was simulated
        fits = _fits(one, values)
    except (LookupError, AttributeError, TypeError, SpecError):  # without a section, a key, or a list
        fits = False
    if not fits:
        raise RecordError(f"{where}: the record of {name} does not fit its spec. Run {name} again.")
    return one if spec == one["spec"] else record.sealed(one | {"spec": spec})


def _fits(one: Values, spec: Values) -> bool:
    asked = spec["algorithm.name"], spec["run.rounds"], spec["run.seed"], spec["run.rounds"]
    if "diverged" in one:
        return True
    told = one["algorithm"], one["rounds"], one["seed"], one["curve"]["t"][-1]
    sized = one["agents"] > 0 and one["records"] > 0
    return sized and told == asked and record.ends(one["curve"]["test_error"], one["test_error"])


def on_one_weight(one: Values) -> Values:
    """The record with the curve `noise_one_weight`: the mean |noise| for gradients that are weighed by 1/I.

    A run records the noise in the units of its own gradients. Released OutP weighs a gradient by 1/I_p, and ObjP and
    ObjT weigh it by 1/I: with ten equal agents the same noise is ten times as large a number for OutP. The curve is
    mean_p |xi_p| I_p / I, where agents weigh by 1/I_p. Records hold the mean over agents alone, so this is exact for
    agents with equally many records or equal noise, and the mean agent's number for others: (1/P) mean_p |xi_p|.
    """
    curve = one.get("curve", {})
    if MEASURED not in curve:
        return one
    share = 1 / one["agents"] if spec_of(one)["algorithm.gradient_weight"] == "local" else 1.0
    scaled = [None if value is None else value * share for value in curve[MEASURED]]
    return record.sealed(one | {"curve": curve | {ONE_WEIGHT: scaled}})
