"""The Flower ServerApp: the loop of a federation, and its messages over Flower's grid.

The SuperLink starts it in a process of its own, on the coordinator's machine, in an environment that has tacit. Its
folder is named by the environment variable TACIT_FEDERATION of the SuperLink, so that no path of the coordinator
travels to a node.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.errors import InputError, RunDirectoryError, SpecError, TacitError, missing_extra
from tacit.federation import control, wire
from tacit.federation.commands import FOLDER
from tacit.federation.coordinator import RUNS, close_all, train, unfinished
from tacit.federation.log import Log, to
from tacit.federation.plan import read_plan
from tacit.jsontext import Values
from tacit.measures import MEASURES, measured
from tacit.run.directory import RunDirectory

try:
    from flwr.app import Message
    from flwr.serverapp import ServerApp
    from flwr.supercore.run import RunNotRunningException

    from tacit.federation import courier
except ImportError:
    raise missing_extra("a coordinator needs flwr", "flower") from None

PAUSE = 0.2  # seconds between two looks for answers; each is a request to the SuperLink
LIVES = 3  # deadlines that a message lives: the coordinator takes a late answer for as long
CRASHED = 70.0  # seconds after which Flower has noticed that a courier or a node was killed: it takes 60
PREDECESSOR = 30.0  # seconds that an earlier process of the folder has to end
_SEEN = 5.0  # seconds for which the list of nodes that are there is believed
_NO_SERVICE = (
    "its node is connected, and the agent service behind it gives no answer: tacit agent serve; whether the node may "
    "open the socket says tacit federate node --check"
)


@dataclass(frozen=True)
class Sent:
    """A message on its way: to which node, its hash, and when it was sent."""

    node: int
    digest: bytes
    at: float

    def is_same(self, node: int | None, digest: bytes, now: float) -> bool:
        """Whether the node was sent this message a short while ago."""
        return (self.node, self.digest) == (node, digest) and now - self.at < CRASHED


class GridTransport:
    """Messages to sites by their node ids. What comes from a node is of its site; what is no message is dropped."""

    def __init__(self, grid: Any, nodes: Mapping[str, int], seconds: float) -> None:
        self.grid = grid
        self.nodes = dict(nodes)
        self.sites = {node: site for site, node in nodes.items()}
        if len(self.sites) != len(self.nodes):
            raise SpecError("two sites have the same node id: give each site a node key of its own.")
        self.seconds = seconds  # that a message lives: a question of a round long gone shall reach nobody
        self.waiting: dict[str, Sent] = {}  # by the id of the message
        self.here: tuple[float, frozenset[int]] = (-_SEEN, frozenset())
        self.met: dict[int, float] = {}  # when a node was last connected
        self.failed: dict[str, str] = {}  # by site: what its node said in place of an answer
        self.dropped = 0

    def send(self, site: str, header: wire.Header, body: bytes) -> None:
        """Send a message; drop it where the node is away, or has the same one and can be expected to answer.

        A node takes one message at a time, in a new process: copies would only queue up before the next question.
        """
        node, present = self.nodes.get(site), self._present()
        self.waiting = {name: sent for name, sent in self.waiting.items() if sent.node in present}
        digest, now = hashlib.sha256(repr(header).encode() + body).digest(), time.monotonic()
        if node not in present or any(sent.is_same(node, digest, now) for sent in self.waiting.values()):
            return
        message = Message(courier.records(header, body), node, courier.KIND, ttl=self.seconds)
        for name in self.grid.push_messages([message]):
            if name:
                self.waiting[name] = Sent(node, digest, now)

    def received(self, seconds: float) -> list[tuple[str, wire.Header, bytes]]:
        """Answers that came; waits for so many seconds, and no longer than until the first."""
        end = time.monotonic() + seconds
        while True:
            found = self._pulled() if self.waiting else []
            left = end - time.monotonic()
            if found or left <= 0:
                return found
            time.sleep(min(PAUSE, left))

    def absence(self, site: str) -> str:
        """Say what Flower knows of a site that has not answered."""
        node, present, now = self.nodes.get(site), self._present(), time.monotonic()
        if node is None:
            return "no key of its node is registered: tacit federate register"
        if node not in present:
            since = f"for {now - self.met[node]:.0f} s" if node in self.met else "since the coordinator's process began"
            return f"its node is not connected {since}: tacit federate node"
        asked = [now - sent.at for sent in self.waiting.values() if sent.node == node]
        return self.failed.get(site) or (f"asked {max(asked):.0f} s ago, no answer yet" if asked else "no answer yet")

    def _pulled(self) -> list[tuple[str, wire.Header, bytes]]:
        found = []
        for message in self.grid.pull_messages(list(self.waiting)):
            answer = self._read(message)
            if answer is None:
                self.dropped += 1
            else:
                found.append(answer)
        now = time.monotonic()
        self.waiting = {name: sent for name, sent in self.waiting.items() if now - sent.at < self.seconds}
        return found

    def _read(self, message: Any) -> tuple[str, wire.Header, bytes] | None:
        """The answer of the site that was asked, or None: an error of Flower's, another node, or no message of ours."""
        sent = self.waiting.pop(message.metadata.reply_to_message_id, None)
        if sent is None or message.metadata.src_node_id != sent.node:
            return None
        site = self.sites[sent.node]
        if not message.has_content():
            self.failed[site] = f"its node could not run the courier, error {message.error.code} of Flower: see its log"
            return None
        try:
            header, body = courier.frame(message.content)
        except wire.Malformed:
            return None
        if header.get("kind") == courier.ABSENT:
            self.failed[site] = _NO_SERVICE
            return None
        self.failed.pop(site, None)
        return site, header, body

    def _present(self) -> frozenset[int]:
        at, nodes = self.here
        if time.monotonic() - at >= _SEEN:
            nodes = frozenset(self.grid.get_node_ids())
            self.here = (time.monotonic(), nodes)
            self.met |= dict.fromkeys(nodes, time.monotonic())
        return nodes


def main(grid: Any, context: Any) -> None:
    """Run the loop of the federation, and say how it ended.

    The run config names the run, so that a process that Flower starts once more than it should begins no second run.
    """
    named = os.environ.get(FOLDER)
    if not named:
        raise SpecError(f"set {FOLDER} to the coordinator's folder where flower-superlink is started.")
    folder, flower = Path(named), str(context.run_id)
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    with control.working(folder, PREDECESSOR) as ours, (folder / control.LOG).open("a", encoding="utf-8") as file:
        if not ours:
            raise RunDirectoryError(f"{folder} is in use: another process runs there.")
        log = to(file, as_json=True)
        control.ServerAppState(flower, control.RUNNING, pid=os.getpid()).write(folder)
        try:
            name = str(context.run_config.get("run") or control.next_name(folder))
            if RunDirectory(folder / RUNS / name).finished:
                close_all(folder, _transport(folder, grid), log)
            else:
                _train(folder, grid, name, log)
            ended = control.ServerAppState(flower, control.FINISHED)
        except TacitError as error:
            log(f"stopped: {error}")
            ended = control.ServerAppState(flower, control.STOPPED, str(error), isinstance(error, InputError))
        except RunNotRunningException:
            why = "the run was stopped with flwr stop; run it again to go on"
            ended = control.ServerAppState(flower, control.STOPPED, why)
        ended.write(folder)


def _end_with(parent: int) -> None:
    """End this process with the one that started it, which ends with the SuperLink.

    Without a SuperLink, Flower's grid tries again for ever. What was done is on disk; the next process goes on from it.
    """
    while os.getppid() == parent:
        time.sleep(PAUSE)
    os._exit(1)


def _train(folder: Path, grid: Any, name: str, log: Log) -> None:
    going = unfinished(folder)
    if (going.path.name if going else control.next_name(folder)) != name:
        raise RunDirectoryError(f"run {name} was asked for, and another is next in {folder / RUNS}.")
    transport = _transport(folder, grid)

    def told(done: int, row: Values | None) -> None:
        log(f"round {done}{_measured(row)}", round=done, **(measured(row) if row else {}))

    train(folder, transport, told, log)


def _transport(folder: Path, grid: Any) -> GridTransport:
    plan = read_plan(folder)
    nodes = {site.name: site.node for site in plan.sites if site.node is not None}
    for site in plan.sites:
        if site.node is None:
            raise SpecError(f"site {site.name} has no node: tacit federate register {folder}.")
    return GridTransport(grid, nodes, LIVES * plan.faults.deadline)


def _measured(row: Values | None) -> str:
    found = measured(row) if row else {}
    said = [f"{one.name} {one.shown(found[one.key])}" for one in MEASURES if found.get(one.key) is not None]
    return f": {', '.join(said)}" if said else ""


app = ServerApp()
app.main()(main)
