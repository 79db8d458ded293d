"""Errors as scikit-learn's users expect them, without contents of records."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tacit.errors import InputError, Interrupted, MissingDependency, Rejected, printable


@contextmanager
def as_value_error() -> Iterator[None]:
    """Raise bad input as a ValueError too, and a stop by the user as KeyboardInterrupt: so does scikit-learn."""
    try:
        yield
    except (Rejected, MissingDependency):
        raise
    except InputError as error:
        raise Rejected(str(error)) from error
    except Interrupted as stop:
        raise KeyboardInterrupt(str(stop)) from stop


@contextmanager
def without_contents(y: Any, sample_weight: Any) -> Iterator[None]:
    """Refuse labels that cannot be compared by their type: the metrics of scikit-learn would print them."""
    try:
        yield
    except (TypeError, ValueError):
        given = printable(y) if sample_weight is None else f"{printable(y)} and weights, {printable(sample_weight)}"
        raise Rejected(
            f"score takes one label per record, of the type that predict returns, and weights as many: got {given}."
        ) from None
