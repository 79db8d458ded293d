"""Every method beside the ADMM of tacit.admm, one line each."""

from __future__ import annotations

from tacit.baselines import (
    dp_fedavg,
    dpsgd,
    dpsgd_local,
    fedavg,
    fedgd,
    fedprox,
    iceadmm,
    iiadmm,
    multilocal,
    nbafl,
    outp,
    secure_sum,
)
from tacit.baselines.method import Entry

METHODS: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        dp_fedavg.ENTRY,
        dpsgd.ENTRY,
        dpsgd_local.ENTRY,
        fedavg.ENTRY,
        fedgd.ENTRY,
        fedprox.ENTRY,
        iceadmm.ENTRY,
        iiadmm.ENTRY,
        multilocal.OBJP,
        multilocal.OBJT,
        nbafl.ENTRY,
        outp.HUANG,
        outp.PLUS,
        outp.RELEASED,
        secure_sum.ENTRY,
    )
}
