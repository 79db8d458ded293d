"""The records of the paper's runs: each run once, its record of its spec, whatever version of tacit wrote it."""

from __future__ import annotations

from pathlib import Path

from tacit import record
from tacit.data.spec import DataSpec
from tacit.errors import RecordError, SpecError
from tacit.jsontext import Values
from tacit.paper.artefact import key_of, spec_of
from tacit.record import RecordFile
from tacit.run.spec import Spec


class Archive(RecordFile):
    """A file of records in which a run is found by its spec, but for how often the run is measured."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, _key, completed)

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


def _key(one: Values) -> str:
    return key_of(Spec().with_values(spec_of(one)))


def completed(one: Values, where: str) -> Values:
    """The record with every key that specs have by now: a run from before a key had the default of that key.

    A record that says another length, seed or algorithm than its spec, or another end than its curve, is refused.
    """
    name = one.get("name", "a run without a name")
    try:
        values = spec_of(one)
        spec = Spec().with_values(values).toml()
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
