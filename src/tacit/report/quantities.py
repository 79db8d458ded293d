"""What is measured, by the name it has in records: its title, its label with unit, and the factor to that unit."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Quantity:
    """A measured quantity."""

    title: str
    label: str
    log: bool = False
    factor: float = 1.0


KNOWN = {
    "test_error": Quantity("Test error", "test error (%)", factor=100.0),
    "test_error_averaged": Quantity("Test error, averaged iterate", "test error (%)", factor=100.0),
    "objective": Quantity("Training objective", "objective (mean loss and penalty)"),
    "noise_gradient_units": Quantity("Noise in gradient units", "mean |noise| (gradient units)", log=True),
    "noise_parameter_units": Quantity("Noise in parameter units", "mean |noise| (parameter units)", log=True),
    "consensus_violation": Quantity("Consensus violation", "sum of |w - z| (parameter units)", log=True),
}
AVERAGED = {"test_error": "test_error_averaged"}  # what the averaged iterate is measured by


def factor(quantity: str) -> float:
    """From the unit of the records to the unit shown: errors are shown in per cent."""
    return KNOWN[quantity].factor if quantity in KNOWN else 1.0


def with_unit(label: str, quantity: str) -> str:
    """The label of an axis, with the unit that is shown."""
    return f"{label} (%)" if factor(quantity) == 100 and "%" not in label else label
