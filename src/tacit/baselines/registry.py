"""Every method beside the ADMM of tacit.admm, one line each."""

from __future__ import annotations

from tacit.baselines import fedgd
from tacit.baselines.method import Entry

METHODS: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        fedgd.ENTRY,
    )
}  # fmt: skip
