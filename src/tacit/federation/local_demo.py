"""`tacit federate try`: a whole federation on one machine, in real processes over TLS on loopback.

Every process is the one that would run at its party, started by the same command. All of them end with this one.

Without a folder of one's own the sites are the hospitals of heart, three of them. Behind a secure sum there are four:
two agents of one site would be two that may collude, and a sum that counts on two needs all four hospitals in every
round.
"""

from __future__ import annotations

import csv
import os
import re
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import resources
from pathlib import Path
from types import FrameType, TracebackType

from tacit.errors import TacitError
from tacit.federation import asked, commands, control, folders, ledger_files, nodes, sum_files
from tacit.federation.commands import LOOPBACK, Command
from tacit.federation.folders import COORDINATOR, FolderLayout, records_name
from tacit.federation.plan import read_plan
from tacit.federation.site import read
from tacit.jsontext import Values
from tacit.methods.registry import METHODS

READY = 60.0  # seconds that a process has to answer
LOGS = "logs"
END = 10.0  # seconds that processes have to end by themselves
SITES = {"ohio": ("cleveland",), "hungary": ("hungarian",), "abroad": ("switzerland", "va")}
SUM_SITES = {"ohio": ("cleveland",), "hungary": ("hungarian",), "zurich": ("switzerland",), "pacific": ("va",)}
ROUNDS = 10  # of some seven seconds each
HELD_OUT = 5  # every so many-th patient of a hospital is a test record of the coordinator's, and no site's
_AGENT = re.compile(r"(?:^#.*\n)*^\[columns\.hospital\]\n(?:.+\n)*", re.MULTILINE)


def sites_of(trust: str | None) -> Mapping[str, tuple[str, ...]]:
    """The sites of a demonstration, with their agents."""
    return SUM_SITES if trust == "sum" else SITES


def make(folder: Path, rounds: int | None = None, trust: str | None = None, algorithm: str = "objt") -> None:
    """Write the folders, the records of each hospital at its site, and test records at the coordinator.

    Without `rounds`, a method of one round runs one, and every other ROUNDS.
    If the run trusts a secure sum, the signing keys of all agents are drawn here: one machine plays all parties.
    """
    sites = sites_of(trust)
    heart = resources.files("tacit.data").joinpath("_heart")
    header, *rows = csv.reader(heart.joinpath("heart.csv").read_text().splitlines())
    at = header.index("hospital")
    without = [name for name in header if name != "hospital"]
    tables: dict[str, list[list[str]]] = {agent: [] for agents in sites.values() for agent in agents}
    for row in rows:
        tables[row[at]].append(row[:at] + row[at + 1 :])
    with tempfile.TemporaryDirectory() as draft:
        schema = Path(draft) / "schema.toml"  # who holds a patient is no column here: each hospital has its own file
        schema.write_text(_AGENT.sub("", heart.joinpath("schema.toml").read_text()))
        test = [row for table in tables.values() for row in table[HELD_OUT - 1 :: HELD_OUT]]
        _write(Path(draft) / "test.csv", without, test)
        usual = ROUNDS if "rounds" in METHODS[algorithm].grid[0] else 1
        values: Values = {"data.schema": "schema.toml", "data.test": "test.csv", "run.rounds": rounds or usual}
        values |= {"algorithm.name": algorithm} | ({"privacy.trust": trust} if trust else {})
        folders.make(folder, FolderLayout("hearts", sites, values=values, base=Path(draft), one_account=True))
    for site, agents in sites.items():
        for agent in agents:
            kept = [row for n, row in enumerate(tables[agent], start=1) if n % HELD_OUT]
            _write(folder / site / "agent" / "records" / f"{records_name(agent)}.csv", without, kept)
    if trust == "sum":
        sum_files.draw(folder, sites)


def is_one(folder: Path) -> bool:
    """Whether a folder holds a federation."""
    return (folder / COORDINATOR).is_dir()


def trust_of(folder: Path) -> str:
    """Whom the run of a federation trusts."""
    return str(asked.read_run(folder / COORDINATOR).get("privacy.trust", "nobody"))


def algorithm_of(folder: Path) -> str:
    """Return the method of the run in a folder."""
    return str(asked.read_run(folder / COORDINATOR).get("algorithm.name", "objt"))


def _write(path: Path, header: list[str], rows: list[list[str]]) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])


class LocalFederation:
    """Context manager: run the processes of all parties on this machine; at its end all of them have ended."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.coordinator = folder / folders.COORDINATOR
        self.sites = [site.name for site in read_plan(self.coordinator).sites]
        self.control, self.port, *self.runtime = free_ports(2 + len(self.sites))
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        (folder / LOGS).mkdir(exist_ok=True)

    def __enter__(self) -> LocalFederation:
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
