"""Who holds which record: one group label a row."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.data.cells import Coded
from tacit.data.partition import by_column, distinct
from tacit.errors import DataError
from tacit.types import Array

ALONE = "all"  # the one agent, where nobody says who holds what


def dealt(agents: Any, n_records: int) -> tuple[list[Array], tuple[str, ...]]:
    """Return (the rows of each agent, their names). Without labels one agent holds all records.

    Who holds what is public, so that a label that is missing may be refused.
    """
    if agents is None:
        return [np.arange(n_records)], (ALONE,)
    labels = np.asarray(agents)
    if labels.ndim != 1 or len(labels) != n_records:
        raise DataError(
            f"agents takes one label a row, {n_records} in all: got shape {labels.shape}. For a column of a frame give "
            "the column itself, agents=X['hospital']."
        )
    found = Coded.of(labels)
    if "" in found.names:
        missing = found.count([not name for name in found.names])
        raise DataError(f"{missing} of {n_records} rows name no agent: fill in their labels, or drop the rows.")
    names = distinct(found.names)
    parts = dict(zip(names, by_column(found), strict=True))
    return [parts[name] for name in names], tuple(names)
