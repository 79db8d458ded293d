"""The Flower ServerApp: the loop of a federation, and its messages over Flower's grid.

The SuperLink starts it in a process of its own, on the coordinator's machine, in an environment that has tacit. Its
folder is named by the environment variable TACIT_FEDERATION of the SuperLink, so that no path of the coordinator travels
to a node.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tacit.errors import MissingDependency, SpecError
from tacit.federation import wire

try:
    from flwr.app import Message
    from flwr.serverapp import ServerApp

    from tacit.federation import courier
except ImportError:
    raise MissingDependency("a coordinator needs flwr: pip install 'tacit[flower]'.") from None

FOLDER = "TACIT_FEDERATION"
PAUSE = 0.2  # seconds between two looks for answers; each is a request to the SuperLink
_SEEN = 5.0  # seconds for which the list of nodes that are there is believed


class GridCarrier:
    """Messages to sites by their node ids. What comes from a node is of its site; what is no message is dropped."""

    def __init__(self, grid: Any, nodes: Mapping[str, int], seconds: float) -> None:
        self.grid = grid
        self.nodes = dict(nodes)
        self.sites = {node: site for site, node in nodes.items()}
        if len(self.sites) != len(self.nodes):
            raise SpecError("two sites have the same node id: give each site a node key of its own.")
        self.seconds = seconds  # that a message lives: a question of a round long gone shall reach nobody
        self.waiting: dict[str, tuple[int, float]] = {}  # node and end of life of each message, by its id
        self.here: tuple[float, frozenset[int]] = (-_SEEN, frozenset())
        self.dropped = 0

    def send(self, site: str, header: wire.Header, body: bytes) -> None:
        """Send a message; it is dropped where the node is away, so that no pile awaits its return."""
        node = self.nodes.get(site)
        if node is None or node not in self._present():
            return
        message = Message(courier.records(header, body), node, courier.KIND, ttl=self.seconds)
        for name in self.grid.push_messages([message]):
            if name:
                self.waiting[name] = (node, time.monotonic() + self.seconds)

    def received(self, seconds: float) -> list[tuple[str, wire.Header, bytes]]:
        """Answers that came; waits for so many seconds, and no longer than until the first."""
        end = time.monotonic() + seconds
        while True:
            found = self._pulled() if self.waiting else []
            left = end - time.monotonic()
            if found or left <= 0:
                return found
            time.sleep(min(PAUSE, left))

    def _pulled(self) -> list[tuple[str, wire.Header, bytes]]:
        found = []
        for message in self.grid.pull_messages(list(self.waiting)):
            answer = self._read(message)
            if answer is None:
                self.dropped += 1
            else:
                found.append(answer)
        now = time.monotonic()
        self.waiting = {name: (node, until) for name, (node, until) in self.waiting.items() if until > now}
        return found

    def _read(self, message: Any) -> tuple[str, wire.Header, bytes] | None:
        """The answer of the site that was asked, or None: an error of Flower's, another node, or no message of ours."""
        node, _ = self.waiting.pop(message.metadata.reply_to_message_id, (None, 0.0))
        if node is None or not message.has_content() or message.metadata.src_node_id != node:
            return None
        try:
            header, body = courier.frame(message.content)
        except wire.Malformed:
            return None
        return None if header.get("kind") == courier.ABSENT else (self.sites[node], header, body)

    def _present(self) -> frozenset[int]:
        at, nodes = self.here
        if time.monotonic() - at >= _SEEN:
            nodes = frozenset(self.grid.get_node_ids())
            self.here = (time.monotonic(), nodes)
        return nodes


def folder() -> Path:
    """The coordinator's folder, as the SuperLink was told."""
    name = os.environ.get(FOLDER)
    if not name:
        raise SpecError(f"set {FOLDER} to the coordinator's folder where flower-superlink is started.")
    return Path(name)


def main(grid: Any, _context: Any) -> None:
    """Run the loop of the federation."""
    from tacit.federation import coordinator

    place = folder()
    coordinator.train(place, GridCarrier(grid, {}, 60.0))


app = ServerApp()
app.main()(main)
