"""A coordinator and its sites in one process: messages cross an unreliable room, whose clock is not ours."""

from __future__ import annotations

import hashlib
import heapq
import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tacit.federation.coordinator import train
from tacit.federation.log import silent
from tacit.federation.service import Service
from tests.federation import sites as small

SITES = {"alone": ("north",), "pair": ("south", "east")}
RUN = "[run]\nrounds = {rounds}\n"
PLAN = '[federation]\nname = "trial"\n[faults]\n{faults}\n{sites}'
QUICK = 0.1  # seconds that a message takes


def fate(_way: str, _site: str, _header: dict) -> list[float]:
    """Every message arrives once, soon."""
    return [QUICK]


class Room:
    """A Transport. `fate` gives the delays with which a message arrives ("to" a site or "from" it); none: it is lost.

    `change` may replace what a site answers, as a hostile site would.
    """

    def __init__(self, services: dict[str, Service | None], fate=fate, change=None) -> None:
        self.services, self.fate, self.change = services, fate, change
        self.now, self.events, self.count = 0.0, [], itertools.count()
        self.asked: list[tuple[str, int]] = []
        self.attempts: list[tuple[str, int, int, tuple[str, ...]]] = []
        self.paid: dict[str, list[int]] = {}
        self.priced: dict[str, float] = {}

    def clock(self) -> float:
        return self.now

    def send(self, site, header, body) -> None:
        assert body == bytes(body)
        self._post("to", site, header, body)

    def _post(self, way, site, header, body) -> None:
        for delay in self.fate(way, site, header):
            heapq.heappush(self.events, (self.now + delay, next(self.count), way, site, header, body))

    def received(self, seconds):
        until, found = self.now + seconds, []
        while self.events and self.events[0][0] <= until and not found:
            self.now, _, way, site, header, body = heapq.heappop(self.events)
            if way == "from":
                found.append((site, header, body))
            elif (service := self.services[site]) is not None:
                if header["kind"] == "ask" and not header["peers"]:
                    self.asked.append((site, header["t"]))
                elif header["kind"] == "ask":
                    self.attempts.append((site, header["t"], header["attempt"], tuple(header["peers"])))
                for reply in self._replies(site, header, service.answer(header, body)):
                    self._post("from", site, *reply)
        self.now = self.now if found else until
        return found

    def absence(self, site) -> str:
        return "the room knows that it is empty" if self.services[site] is None else ""

    def _replies(self, site, header, reply) -> Iterator[tuple[dict, bytes]]:
        if self.change is None:
            yield reply
        else:
            yield from self.change(site, header, reply)


def folder(path: Path, rounds: int = 5, faults: str = "", run: str = "", sites=SITES) -> Path:
    """The folder of a coordinator."""
    path.mkdir(parents=True, exist_ok=True)
    told = "".join(f'[[site]]\nname = "{name}"\nagents = {json.dumps(agents)}\n' for name, agents in sites.items())
    (path / "federation.toml").write_text(PLAN.format(faults=faults, sites=told))
    (path / "run.toml").write_text(RUN.format(rounds=rounds) + run)
    return path


def services(path: Path, sites=SITES, **options) -> dict[str, Service]:
    """The service of every site, each with ledgers of its own."""
    return {name: small.service(path / name, agents, name=name, **options) for name, agents in sites.items()}


def go(where: Path, room: Room, log=silent):
    """Train, or resume, over a room."""
    return train(where, room, log=log, clock=room.clock)


def close(room: Room) -> None:
    """End the services, and keep what their ledgers hold."""
    for service in room.services.values():
        if service is not None:
            room.paid |= spent(service)
            for name, ledger in service._ledgers.items():
                room.priced[name] = sum(one.epsilon for one in ledger.show())
            service.close()


def seeded(value, scale, _law, _bits=None):
    """Noise that the value itself decides: whoever computes the same value releases the same."""
    digest = hashlib.sha256(np.ascontiguousarray(value).tobytes()).digest()
    return value + 0.01 * scale * np.random.default_rng(list(digest)).normal(size=value.shape)


def spent(service: Service) -> dict[str, list[int]]:
    """The rounds that the ledger of each agent of a site holds, in order."""
    return {
        name: [key.round for key in ledger.history().answers] for name, ledger in service._ledgers.items()
    }
