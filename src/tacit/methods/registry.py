"""Every method beside the ADMM of tacit.admm, one line each."""

from __future__ import annotations

from tacit.methods import (
    amp,
    chaudhuri,
    dp_fedavg,
    dpsgd,
    dpsgd_local,
    dvp,
    fedavg,
    fedgd,
    fedprox,
    iceadmm,
    iiadmm,
    kifer,
    multilocal,
    nbafl,
    outp,
    pvp,
    secure_sum,
)
from tacit.methods.method import Entry

METHODS: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        amp.ENTRY,
        chaudhuri.ENTRY,
        dp_fedavg.ENTRY,
        dpsgd.ENTRY,
        dpsgd_local.ENTRY,
        dvp.ENTRY,
        fedavg.ENTRY,
        fedgd.ENTRY,
        fedprox.ENTRY,
        iceadmm.ENTRY,
        iiadmm.ENTRY,
        kifer.ENTRY,
        multilocal.OBJP,
        multilocal.OBJT,
        nbafl.ENTRY,
        outp.HUANG,
        outp.PLUS,
        outp.RELEASED,
        pvp.ENTRY,
        secure_sum.ENTRY,
    )
}
