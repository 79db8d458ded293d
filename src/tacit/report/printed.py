"""The paper's number beside ours: the difference, and whether a claim about it holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tacit.report.artefact_file import ArtefactFile, Printed, alike, chosen
from tacit.report.chart import factor
from tacit.report.runs import Group, Recorded, Spread


@dataclass(frozen=True)
class Comparison:
    """A printed number, ours over the seeds, both in the unit shown (test errors in per cent), and the verdict."""

    label: str
    paper: float
    ours: Spread | None
    verdict: str
    note: str
    factor: float  # from the unit of the records to the unit shown

    @property
    def difference(self) -> float | None:
        return None if self.ours is None else self.ours.mean - self.paper

    def shown(self, value: float) -> str:
        """Write a value: errors with two decimals, what has another unit in four digits."""
        return f"{value:.2f}" if self.factor == 100 else f"{value:.4g}"

    @property
    def missed(self) -> bool:
        return self.verdict.startswith("misses")


def compare(artefact: ArtefactFile, runs: Sequence[Recorded]) -> list[Comparison]:
    """Compare every printed number of the artefact."""
    return [_compare(printed, runs) for printed in artefact.printed]


def _compare(printed: Printed, runs: Sequence[Recorded]) -> Comparison:
    own = Group(printed.label, tuple(alike(chosen(runs, printed.where), f"the number {printed.label!r}")))
    unit = factor(printed.y)
    found = own.final(printed.y)
    ours = found and Spread(unit * found.mean, unit * found.low, unit * found.high, found.count)
    lost = len(own.runs) - len(own.finished)
    note = "; ".join(filter(None, [printed.note, f"{lost} of {len(own.runs)} runs diverged" if lost else ""]))
    return Comparison(printed.label, unit * printed.paper, ours, _verdict(printed, found), note, unit)


def _verdict(printed: Printed, found: Spread | None) -> str:
    if found is None:
        return "not run"
    if printed.tolerance is None:
        return "shown, not claimed"
    beyond = abs(found.mean - printed.paper) - printed.tolerance
    # 1e-12: a difference that equals the tolerance in decimals may pass it by a rounding
    if beyond <= 1e-12:
        return f"within {_shown(printed.tolerance, printed.y, 1)}"
    return f"misses by {_shown(beyond, printed.y, 2)}"


def _shown(value: float, quantity: str, decimals: int) -> str:
    """Write errors in points, with so many decimals; what has another unit in three digits."""
    return f"{100 * value:.{decimals}f}" if factor(quantity) == 100 else f"{value:.3g}"
