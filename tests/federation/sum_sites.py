"""Small sites that take part in secure sums, and an honest coordinator of theirs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tacit.agent.masks import files
from tacit.federation.messages import Ask, Close, Join, Meet, Signed
from tacit.federation.service import Service
from tacit.federation.site import read as read_site
from tests.federation import sites as small
from tests.federation.sites import told

SITES = {"alone": ("north",), "pair": ("south", "east")}
ONE = {"alone": ("north",)}
FOUR = {**SITES, "more": ("west",)}
PEERS = ("east", "north", "south")
TRUST = '"privacy.trust" = "sum"\n'


def sum_section(peers: dict[str, str], threshold: int = 3, colluding: int = 1) -> str:
    lines = [f'[sum]\nkeys = "keys"\nthreshold = {threshold}\ncolluding = {colluding}\n[sum.peers]']
    return "\n".join([*lines, *(f'"{name}" = "{key}"' for name, key in peers.items())])


def key_of(folder: Path, agent: str) -> str:
    """The public half of an agent's signing key, which is drawn where it is missing."""
    path = folder / "keys" / f"{agent}.key"
    return (files.signing_key(path) if path.exists() else files.new_signing_key(path)).public.hex()


def make(
    folder: Path, sites=SITES, agree: str = TRUST, pin=None, change=None, limit=3.0, ledgers=True, **section
) -> dict[str, Path]:
    """The site files, each with the keys of all others; `pin` edits what a site pins."""
    keys = {who: key_of(folder / site, who) for site, agents in sites.items() for who in agents}
    found = {}
    for site, agents in sites.items():
        peers = {who: key for who, key in keys.items() if who not in agents}
        peers = peers if pin is None else pin(site, peers)
        text = agree + sum_section(peers, **section)
        found[site] = small.make(folder / site, agents, change, name=site, ledgers=ledgers, agree=text, limit=limit)
    return found


def services(folder: Path, log=None, **options) -> dict[str, Service]:
    return {
        site: Service(read_site(path), *([log] if log else [])) for site, path in make(folder, **options).items()
    }


def spec(run: str = "r1", **values):
    usual = {"privacy.trust": "sum", "privacy.colluding": 1, "privacy.repetitions": 1}
    return small.spec(run, **usual | values)


@dataclass
class Party:
    """Services that have joined a run, what each signed, and the Join."""

    services: dict[str, Service]
    join: Join
    signed: tuple[Signed, ...]

    def meet(self, **changed) -> Meet:
        return replace(Meet(self.join.run, self.join.agreed, self.signed), **changed)

    def ask(self, t: int = 1, attempt: int = 0, peers=PEERS, w=None, site: str = "alone", **changed) -> Ask:
        """The question of an honest coordinator to the agents of a site that are peers, but for what is changed."""
        w = np.full(small.shape_of(self[site], self.join.run), 0.01 * t) if w is None else w
        asked = tuple(name for name in self[site].own.agents if name in peers)
        return replace(Ask(self.join.run, self.join.agreed, t, attempt, asked, peers, small.at(w)), **changed)

    def close(self) -> Close:
        return Close(self.join.run, self.join.agreed)

    def __getitem__(self, site: str) -> Service:
        return self.services[site]

    def __enter__(self) -> Party:
        return self

    def __exit__(self, *_: object) -> None:
        for one in self.services.values():
            one.close()

    def met(self) -> Party:
        for one in self.services.values():
            assert told(one, self.meet()).kind == "met"
        return self

    def reopened(self, site: str) -> Service:
        """The service of a site after its process has ended and another was started."""
        self[site].close()
        self.services[site] = Service(read_site(self[site].site.ledger.parent / "site.toml"))
        return self[site]


def joined(folder: Path, chosen=None, **options) -> Party:
    """Services that have joined a run, and have not met."""
    found = services(folder, **options)
    chosen = chosen or spec()
    counts = tuple((who, (small.SIZES | small.MORE)[who]) for one in found.values() for who in one.own.agents)
    first = small.join(found["alone"], chosen.run.name, chosen=chosen, agents=counts)
    replies = [told(one, first) for one in found.values()]
    assert {one.kind for one in replies} == {"joined"}
    return Party(found, first, tuple(signed for one in replies for signed in one.signed))


def begun(folder: Path, **options) -> Party:
    return joined(folder, **options).met()
