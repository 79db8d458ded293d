"""Warnings to the owner of the records about what does not fit the declarations.

They describe private records. The process that reads the records shows them, and stores them nowhere. They count cells
and repeat what is declared, and never what a cell holds.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import suppress

from tacit.data.columns.encoding import Counts
from tacit.data.schema import Schema
from tacit.data.table import counted, some
from tacit.errors import OwnerWarning
from tacit.types import Array, Federation

UNFIT_SHARE = 0.95  # of the cells of a column that are changed: from here on the declaration is probably wrong
MOST_NAMED = 8  # columns or agents

_HOW = {
    "clipped": "outside the bounds", "unknown": "with another value", "unreadable": "unreadable", "missing": "missing",
}  # fmt: skip


def tell_owner(*messages: str) -> None:
    """Give the messages that are not empty in one warning; the run continues, even if warnings are errors."""
    said = " Also, ".join(message for message in messages if message)
    if said:
        with suppress(OwnerWarning):
            warnings.warn(f"for the owner's eyes alone: {said}", OwnerWarning, stacklevel=3)


def unfit_columns(counts: Counts, schema: Schema) -> str:
    """Say which columns have nearly no cell that fits their declaration; "" if all columns have some."""
    found = []
    for name, tally in counts.columns.items():
        changed = {how: getattr(tally, key) for key, how in _HOW.items() if getattr(tally, key)}
        if changed and sum(changed.values()) >= UNFIT_SHARE * counts.records:
            told = ", ".join(f"{n} {how}" for how, n in changed.items())
            found.append(f"{name!r} (declared as {schema.encoded[name].declared}): {told}, of {counts.records} cells")
    if not found:
        return ""
    more = f"; and {len(found) - MOST_NAMED} more columns" if len(found) > MOST_NAMED else ""
    return (
        f"columns whose cells hardly ever fit their declaration: {'; '.join(found[:MOST_NAMED])}{more}. The model "
        "learns next to nothing from them: check the unit, the spelling and the column."
    )


def unknown_labels(federation: Federation, known: Sequence[Array], in_test: Array, why: str) -> str:
    """Say how many labels are not `known`, one mask per agent; "" if all are. `why` says what is wrong with them."""
    agents = zip(federation.agents, known, federation.shards, strict=True)
    here = {agent: mask for agent, mask, shard in agents if shard.here}  # other processes report on their own agents
    counts = {agent: int((~mask).sum()) for agent, mask in here.items()}
    told = [f"{counted(n)} of agent {agent!r}" for agent, n in counts.items() if n]
    if len(told) > MOST_NAMED:
        told = [*told[:MOST_NAMED], f"those of {len(told) - MOST_NAMED} more agents"]
    if not in_test.all():
        told.append(counted(int((~in_test).sum()), "test record"))
    if not told:
        return ""
    unread, total = sum(counts.values()), sum(map(len, here.values()))
    every = "ALL " if unread == total else ""
    target, classes = federation.target, some(federation.classes)
    declared = classes if target is None else f"a number from {target.lo:g} to {target.hi:g}"
    return (
        f"{why}: {', '.join(told)}; {every}{unread} of {total} training labels. Declared: {declared}. Such records "
        "count as absent in training and are left out of the test. Mend or drop them (with a schema, tacit data check "
        "counts them)."
    )
