"""A federation of real processes on loopback, each of which can be killed and started again."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from tacit.errors import Interrupted
from tacit.federation import commands, control
from tacit.federation.local_demo import LocalFederation
from tacit.privacy.ledger import Ledger
from tacit.run.deployment import ledger_file_name, price
from tacit.run.directory import RunDirectory

ROOT = Path(__file__).parents[2]


class Federation(LocalFederation):
    """The processes of all parties: superlink, door, SITE-agent, SITE-node; and those that Flower starts."""

    def __init__(self, folder: Path, seeded: bool = False) -> None:
        super().__init__(folder)
        self.seeded = seeded
        self.wrapped: dict = {}  # what makes another command of a process's own
        self.lines: list[str] = []
        self.watching = threading.Event()

    def commands(self):
        found = super().commands()
        if self.seeded:
            script = str(Path(__file__).with_name("seeded_agent.py"))
            for site in self.sites:
                words = [sys.executable, script, str(self.folder / site / "agent" / "site.toml")]
                found[f"{site}-agent"] = commands.Command(words)
        for name, wrap in self.wrapped.items():
            found[name] = commands.Command(wrap(found[name].words), found[name].environment)
        return found

    def show(self, line) -> None:
        self.lines.append(line.get("text", ""))

    def result(self) -> RunDirectory:
        """Run to the end, by the same command again where the run was suspended."""
        while True:
            try:
                return RunDirectory.open(self.train(self.show))
            except Interrupted as stop:
                self.lines.append(str(stop))

    def kill(self, name: str) -> bool:
        """kill -9; whether there was anybody to kill."""
        if name == "app":
            state = control.state_of(self.coordinator) if control.is_working(self.coordinator) else None
            return state is not None and state.pid is not None and _kill(state.pid)
        if name.endswith("-courier"):
            return sum(map(_kill, self.couriers(name.removesuffix("-courier")))) > 0
        return _kill(self.running[name].pid)

    def couriers(self, site: str) -> list[int]:
        """The processes in which Flower runs the courier of a site."""
        home = str(self.folder / site / "node" / "flower")
        return [pid for pid, words, home_of in _processes() if "flwr-clientapp" in words and home_of == home]

    def supervise(self, pause: float = 1.0) -> None:
        """Start again what has ended, as systemd would, until the end of the block."""

        def watch() -> None:
            while not self.watching.wait(pause):
                for name, process in list(self.running.items()):
                    if process.poll() is not None:
                        self.start(name)

        self.watcher = threading.Thread(target=watch, daemon=True)
        self.watcher.start()

    def __exit__(self, *error) -> None:
        self.watching.set()
        if hasattr(self, "watcher"):
            self.watcher.join()
        super().__exit__(*error)

    def ledgers(self) -> dict[str, Ledger]:
        """The ledger of each agent, opened; for a federation that has ended."""
        found = {}
        for folder in (self.folder / site / "agent" for site in self.sites):
            for path in sorted((folder / "ledger").iterdir()):
                if path.suffix == ".ledger":
                    found[path.name] = Ledger.open(path, price, create=False)
        return found

    def ledger(self, agent: str) -> Ledger:
        return self.ledgers()[ledger_file_name(agent)]


def at_home(folder: Path) -> list[int]:
    """The processes whose Flower has its files under a folder."""
    return [pid for pid, _, home in _processes() if home.startswith(str(folder))]


def _kill(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def _processes():
    for path in Path("/proc").glob("[0-9]*"):
        try:
            words = path.joinpath("cmdline").read_bytes().decode(errors="replace")
            environment = path.joinpath("environ").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        home = next((one.partition("=")[2] for one in environment if one.startswith("FLWR_HOME=")), "")
        yield int(path.name), words, home


@pytest.fixture(scope="session", autouse=True)
def surroundings():
    """One thread a process: many processes share few cores. Children find the sources of this checkout."""
    before = dict(os.environ)
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")])
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture
def short():
    """A folder whose path is short enough for a socket in it."""
    folder = Path(tempfile.mkdtemp(prefix="tacit-", dir="/tmp"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def until(what, seconds: float = 60.0, pause: float = 0.1):
    """Wait until something is so, and return it."""
    end = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < end, f"not so after {seconds} s"
        time.sleep(pause)
    return found
