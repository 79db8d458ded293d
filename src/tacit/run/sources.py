"""Load the data that a spec names, also data that are not shipped and lie elsewhere on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from tacit import data
from tacit.data.spec import ESTIMATOR, GIVEN, DataSpec
from tacit.errors import DataError, RecordError
from tacit.run import build
from tacit.run.spec import Spec
from tacit.types import Federation

FEMNIST = "femnist"
HOW_TO_GET = (
    "FEMNIST is not shipped: give --femnist DIR, LEAF's directory with train/ and test/ "
    "(in LEAF's data/femnist: preprocess.sh -s niid --sf 0.05 -k 0 -t sample)"
)


def how_to_declare(source: str) -> str:
    """Return how to declare the classes of a source whose classes are not public."""
    if source == GIVEN + ESTIMATOR:
        return "classes of the estimator"
    if source.startswith(GIVEN):
        return "class_names, class_count or a schema in tacit.load, or public_classes of the Federation"
    return "--set data.class_count=K" if source == FEMNIST or data.is_leaf(source) else "--classes or --schema"


@dataclass(frozen=True)
class Sources:
    """A loader of the data that a spec names; `femnist` is LEAF's directory, if there is one.

    `recorded` has the numbers of agents and records in earlier runs: data with other numbers are refused.
    """

    femnist: Path | None = None
    recorded: Mapping[DataSpec, tuple[int, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.femnist is not None and not data.is_leaf(str(self.femnist)):
            raise DataError(f"{self.femnist} is no LEAF directory: it needs JSON files in train/ and in test/.")

    def has(self, spec: Spec) -> bool:
        """Tell whether the data of the spec are on this machine."""
        return spec.data.source != FEMNIST or self.femnist is not None

    def __call__(self, spec: Spec) -> Federation:
        federation = self.load(spec)
        found = federation.n_agents, federation.n_records
        known = self.recorded.get(spec.data, found)
        if known != found:
            raise RecordError(
                f"{spec.data.source} has {found[0]} agents with {found[1]} records here, and had {known[0]} with "
                f"{known[1]} in the runs recorded of it: give the data of those runs, or another --records."
            )
        return federation

    def load(self, spec: Spec) -> Federation:
        """Load the data of the spec, without a look at `recorded`."""
        if spec.data.source != FEMNIST:
            return build.federation(spec)
        if self.femnist is None:
            raise DataError(f"{HOW_TO_GET}.")
        there = build.federation(spec.with_values({"data.source": str(self.femnist)}))
        return replace(there, name=FEMNIST)
