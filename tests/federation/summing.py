"""Five agents at three sites that trust a secure sum, and noise that the test injects."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

from tacit.agent.masks import files
from tacit.federation import ledger_files
from tacit.federation.service import Service
from tacit.federation.site import read as read_site
from tacit.privacy.summed import Attempt
from tests.federation import room as rooms
from tests.federation import sites as small

SITES = {"alone": ("north",), "pair": ("south", "east"), "two": ("west", "mid")}
SIZES = {"north": 24, "south": 17, "east": 30, "west": 21, "mid": 26}
AGREE = '"privacy.trust" = "sum"\n"privacy.repetitions" = 100\n[sum]\nthreshold = 3\ncolluding = 1\n[sum.peers]\n'
TRUST = '[privacy]\ntrust = "sum"\ncolluding = 1\n'  # on purpose fewer than a site has: sets may be smaller


def records(who: str):
    rng = np.random.default_rng(sum(who.encode()))
    x = rng.random((SIZES[who], 3)).round(6)
    return x, (x @ [1.0, -1.0, 0.5] > 0.2).astype(int)


def make(path: Path, sites=SITES, agree: str = AGREE) -> dict[str, Path]:
    """Site files with keys that are drawn here, as one machine may."""
    public = {}
    for site, agents in sites.items():
        for who in agents:
            key = path / site / "keys" / f"{who}.key"
            known = files.signing_key(key) if key.exists() else files.new_signing_key(key)
            public[who] = known.public.hex()
    found = {}
    for site, agents in sites.items():
        for who in agents:
            small.write_table(path / site / f"{who}.csv", *records(who))
        peers = "".join(f'{who} = "{key}"\n' for who, key in public.items() if who not in agents)
        found[site] = path / site / "site.toml"
        found[site].write_text(small.site_text(site, agents, agree=agree + peers))
        ledger_files.init(read_site(found[site]))
    return found


def services(path: Path, sites=SITES, **options) -> dict[str, Service]:
    return {site: Service(read_site(file)) for site, file in make(path, sites, **options).items()}


def folder(path: Path, rounds: int = 6, faults: str = "", repetitions: int | None = None, run: str = "") -> Path:
    """The folder of a coordinator whose runs trust a secure sum."""
    again = "" if repetitions is None else f"repetitions = {repetitions}\n"
    return rooms.folder(path, rounds, faults, TRUST + again + run, SITES)


def paid(room: rooms.Room) -> dict[str, list[tuple[int, int]]]:
    """Round and attempt of every release that the ledger of an agent holds, in order."""
    return {
        name: [(key.round, key.step) for key in ledger.history().answers]
        for service in room.services.values() if service is not None
        for name, ledger in service._ledgers.items()
    }  # fmt: skip


_share = Attempt.share


def seeded(attempt: Attempt, value, _bits=None):
    """A share whose noise the value itself and the attempt's numbers decide."""
    told = np.ascontiguousarray(value).tobytes() + str(attempt.share_steps).encode()
    source = np.random.default_rng(list(hashlib.sha256(told).digest()))
    return _share(attempt, value, source.bytes)
