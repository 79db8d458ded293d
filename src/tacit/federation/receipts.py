"""The last receipt of each agent (tacit.privacy.witness), kept in the coordinator's folder from one run to the next."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from tacit import jsontext
from tacit.errors import RunDirectoryError
from tacit.federation.messages import Receipt
from tacit.machine import write_whole
from tacit.types import Array

FILE = "receipts.json"
DIGITS = 64  # of a hash or a tag
_TEXT = 3 * DIGITS + 16  # a message has numbers of at most 16 digits


def read(folder: Path) -> dict[str, Receipt]:
    """Return the receipts in a folder by agent; none before the first run."""
    path = folder / FILE
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(rows, list):
            raise ValueError("it is not a list")
        found = [_receipt(row) for row in rows]
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError) as error:
        raise RunDirectoryError(
            f"{path} is damaged ({error}): put it back, or delete it. Without it, sites are not shown what they had "
            "answered, so that a ledger that was put back may go unnoticed."
        ) from None
    return {one.agent: one for one in found}


def write(folder: Path, receipts: Mapping[str, Receipt]) -> None:
    """Replace the file in a folder."""
    text = jsontext.dumps([dataclasses.asdict(receipts[name]) for name in sorted(receipts)], indent=1) + "\n"
    write_whole(folder / FILE, lambda file: file.write(text.encode()))


def saved(receipts: Mapping[str, Receipt], names: Sequence[str]) -> Array:
    """Return the receipts of these agents for a checkpoint, whose arrays keep their form: a text for each agent."""
    found = [receipts.get(name) for name in names]
    texts = ["" if one is None else f"{one.first}{one.head}{one.tag}{one.entries}" for one in found]
    return np.array(texts, dtype=f"U{_TEXT}")


def loaded(texts: Array, names: Sequence[str]) -> dict[str, Receipt]:
    """Return what `saved` was given."""
    found = {}
    for name, text in zip(names, map(str, texts), strict=True):
        if text:
            first, head, tag = (text[n * DIGITS : (n + 1) * DIGITS] for n in range(3))
            found[name] = Receipt(name, first, int(text[3 * DIGITS :]), head, tag)
    return found


def later(some: Mapping[str, Receipt], known: Mapping[str, Receipt]) -> dict[str, Receipt]:
    """Return the receipts that are of another ledger than the known ones, or later in the same ledger."""
    return {
        name: one
        for name, one in some.items()
        if name not in known or one.first != known[name].first or one.entries > known[name].entries
    }


def _receipt(found: object) -> Receipt:
    kinds = {"agent": str, "first": str, "entries": int, "head": str, "tag": str}
    if not isinstance(found, dict) or {key: type(value) for key, value in found.items()} != kinds:
        raise ValueError(f"a receipt has {', '.join(kinds)}")
    return Receipt(**found)
