"""Where data that are not shipped lie on this machine; a spec names them without a path."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from tacit import data
from tacit.errors import DataError
from tacit.experiments import build
from tacit.experiments.spec import Spec
from tacit.types import Federation

FEMNIST = "femnist"
HOW_TO_GET = (
    "FEMNIST is not shipped: give --femnist DIR, LEAF's directory with train/ and test/ "
    "(in LEAF's data/femnist: preprocess.sh -s niid --sf 0.05 -k 0 -t sample)"
)


@dataclass(frozen=True)
class Sources:
    """Loads what a spec names; `femnist` is LEAF's directory, if there is one."""

    femnist: Path | None = None

    def __post_init__(self) -> None:
        if self.femnist is not None and not data.is_leaf(str(self.femnist)):
            raise DataError(f"{self.femnist} is no LEAF directory: it needs JSON files in train/ and in test/.")

    def has(self, spec: Spec) -> bool:
        """Whether the data of the spec are here."""
        return spec.data.source != FEMNIST or self.femnist is not None

    def __call__(self, spec: Spec) -> Federation:
        if spec.data.source != FEMNIST:
            return build.federation(spec)
        if self.femnist is None:
            raise DataError(f"{HOW_TO_GET}.")
        there = build.federation(spec.with_values({"data.source": str(self.femnist)}))
        return replace(there, name=FEMNIST)
