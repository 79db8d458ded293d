"""Every method beside the ADMM of tacit.admm, one line each."""

from __future__ import annotations

from tacit.baselines import fedgd, iceadmm, iiadmm, multilocal, outp, secure_sum
from tacit.baselines.method import Entry

METHODS: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        fedgd.ENTRY,
        iceadmm.ENTRY,
        iiadmm.ENTRY,
        multilocal.OBJP,
        multilocal.OBJT,
        outp.HUANG,
        outp.PLUS,
        outp.RELEASED,
        secure_sum.ENTRY,
    )
}  # fmt: skip
