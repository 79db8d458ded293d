"""`tacit federate try`: the whole federation on one machine, in real processes over TLS on loopback.

Every process is the one that would run at its party, started by the same command. All of them end with this one.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType, TracebackType

from tacit.errors import TacitError
from tacit.federation import commands, control, folders, ledger_files, nodes
from tacit.federation.commands import LOOPBACK, Command
from tacit.federation.plan import read_plan
from tacit.federation.site import read

READY = 60.0  # seconds that a process has to answer
LOGS = "logs"
END = 10.0  # seconds that processes have to end by themselves


class Rehearsal:
    """The processes of all parties. Used in a `with` block: at its end all of them have ended."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.coordinator = folder / folders.COORDINATOR
        self.sites = [site.name for site in read_plan(self.coordinator).sites]
        self.control, self.port, *self.runtime = free_ports(2 + len(self.sites))
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        (folder / LOGS).mkdir(exist_ok=True)

    def __enter__(self) -> Rehearsal:
        self.usual = signal.signal(signal.SIGTERM, _stopped)  # whoever ends this process ends the others too
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        signal.signal(signal.SIGTERM, self.usual)
        for name in reversed(list(self.running)):
            self.signal(name, signal.SIGTERM)
        end = time.monotonic() + END
        for process in self.running.values():
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, end - time.monotonic()))
        for name, process in self.running.items():
            self.signal(name, signal.SIGKILL)
            process.wait()
        self.running.clear()

    def commands(self) -> dict[str, Command]:
        """The command of each process, by the name of its log."""
        found = {"superlink": commands.superlink(self.coordinator, self.control)}
        found["door"] = commands.door(self.coordinator, LOOPBACK, self.port, self.control)
        for site, port in zip(self.sites, self.runtime, strict=True):
            folder = self.folder / site
            found[f"{site}-agent"] = commands.service(folder / "agent")
            found[f"{site}-node"] = commands.supernode(folder / "node", f"{LOOPBACK}:{self.port}", port)
        return found

    def start(self, name: str) -> None:
        """Start a process in a group of its own; its words go to a log."""
        command = self.commands()[name]
        with (self.folder / LOGS / f"{name}.log").open("ab") as log:
            try:
                self.running[name] = subprocess.Popen(
                    command.words, env=command.surroundings(), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                    start_new_session=True,
                )  # fmt: skip
            except FileNotFoundError:
                raise commands.missing(command.words[0]) from None

    def signal(self, name: str, number: int) -> None:
        """Send a signal to a process and its children."""
        with suppress(ProcessLookupError):
            os.killpg(self.running[name].pid, number)

    def begin(self, show: control.Show) -> None:
        """Start everything, the coordinator first: nodes are let in once their keys are registered."""
        for site in self.sites:
            ledger_files.init(read(self.folder / site / "agent" / "site.toml", with_data=False))
        for name in ("superlink", "door"):
            self.start(name)
        for site in self.sites:
            self.start(f"{site}-agent")
        self._await("superlink", lambda: nodes.listens(self.control))
        self._await("door", lambda: nodes.listens(self.port))
        show({"text": f"SuperLink and door are up (https://{LOOPBACK}:{self.port}); registering nodes"})
        nodes.register(self.coordinator, control=self.control)
        for site in self.sites:
            self._await(f"{site}-agent", (self.folder / site / "socket" / "agent.sock").exists)
            self.start(f"{site}-node")
        show({"text": f"agent services and SuperNodes of {', '.join(self.sites)} are up; training"})

    def train(self, show: control.Show) -> Path:
        """Run one run to its end, and return its directory."""
        return control.run(self.coordinator, show, self.control)

    def _await(self, name: str, ready: Callable[[], bool]) -> None:
        end = time.monotonic() + READY
        while not ready():
            if self.running[name].poll() is not None or time.monotonic() > end:
                log = self.folder / LOGS / f"{name}.log"
                raise TacitError(f"{name} did not start: {self._last_words(name)} (see {log})")
            time.sleep(0.1)

    def _last_words(self, name: str) -> str:
        lines = (self.folder / LOGS / f"{name}.log").read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "it said nothing"


def _stopped(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def free_ports(n: int) -> list[int]:
    """So many ports of loopback that nobody listens on."""
    opened = [socket.create_server((LOOPBACK, 0)) for _ in range(n)]
    found: list[int] = [one.getsockname()[1] for one in opened]
    for one in opened:
        one.close()
    return found

