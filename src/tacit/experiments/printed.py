"""The paper's numbers beside ours."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from tacit.experiments import paper

Values = dict[str, Any]


@dataclass(frozen=True)
class Number:
    """One printed number: errors between 0 and 1; `tacit` is the mean over seeds, None where nothing was run."""

    artefact: str
    label: str
    paper: float
    tacit: float | None
    seeds: int
    tolerance: float | None
    note: str = ""

    @property
    def difference(self) -> float | None:
        """tacit - paper, free of the dust of floating point."""
        return None if self.tacit is None else round(self.tacit - self.paper, 12)

    @property
    def verdict(self) -> str:
        """within 1.0, misses by x (beyond the tolerance), shown, not claimed, or not run; in points."""
        if self.difference is None:
            return "not run"
        if self.tolerance is None:
            return "shown, not claimed"
        over = round(abs(self.difference) - self.tolerance, 12)
        return f"within {100 * self.tolerance:.1f}" if over <= 0 else f"misses by {100 * over:.2f}"

    def as_dict(self) -> Values:
        """For JSON."""
        return asdict(self) | {"difference": self.difference, "verdict": self.verdict}


def compare(artefact: paper.Artefact, records: Iterable[Values]) -> list[Number]:
    """Every printed number of an artefact beside the mean of the records it is about."""
    kept = list(records)
    numbers = []
    for one in artefact.printed:
        same = paper.select(kept, one["where"])
        mean = paper.mean(same, one["y"])
        note, tolerance = one.get("note", ""), one.get("tolerance")
        numbers.append(Number(artefact.name, one["label"], one["paper"], mean, len(same), tolerance, note))
    return numbers
