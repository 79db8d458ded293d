"""The fast engine of another checkout, such as an older commit, as a contender in the same run.

    git worktree add ../before COMMIT
    cd ../before && python setup.py build_ext --inplace && cd -
    python -m benchmarks --before ../before

Its rounds run in a process of their own, over the same records, and only while it has its turn. So do the rounds of
this checkout that they are compared with.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from benchmarks.interleave import OwnClock, Turn
from tacit.run.spec import Spec
from tacit.types import Federation

HERE = Path(__file__).resolve().parent.parent
WORKER = Path(__file__).with_name("worker.py")


class NotACheckout(Exception):
    """The directory holds no checkout whose rounds can be timed."""


def checkout(directory: str) -> Path:
    """The checkout at a path; refuse one that has no tacit, no benchmarks, or no compiled loops."""
    root = Path(directory).resolve()
    for needed in ("src/tacit/__init__.py", "benchmarks/contenders.py"):
        if not (root / needed).is_file():
            raise NotACheckout(f"{directory} has no {needed}: give the directory of a checkout of tacit.")
    if not any((root / "src/tacit/engine").glob("_kernels.*.*")):
        raise NotACheckout(
            f"the compiled loops of {directory} are not built: python setup.py build_ext --inplace there."
        )
    return root


def commit(root: Path) -> str:
    """Its commit, for the record; unknown where it is no repository."""
    asked = subprocess.run(["git", "-C", str(root), "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return asked.stdout.strip() or "unknown"


@contextmanager
def workers(root: Path | None, spec: Spec, over: Federation) -> Iterator[dict[str, Worker]]:
    """A process for the other checkout and one for this, over the same records; none without another checkout."""
    with ExitStack() as stack:
        roots = {} if root is None else {"before": root, "now": HERE}
        yield {name: stack.enter_context(Worker(own, spec, over)) for name, own in roots.items()}


class Worker:
    """A process with the tacit of another checkout, over the records of one instance."""

    def __init__(self, root: Path, spec: Spec, over: Federation) -> None:
        path = os.pathsep.join((str(root / "src"), str(root)))
        # a file is never full, as a pipe that nobody reads would be
        self.said = tempfile.TemporaryFile("w+")  # noqa: SIM115  closed by close
        self.process = subprocess.Popen(
            [sys.executable, str(WORKER)], cwd=root, env=os.environ | {"PYTHONPATH": path}, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.said,
        )  # fmt: skip
        try:
            with tempfile.TemporaryDirectory() as folder:
                hello = self.ask({
                    "records": self._write(Path(folder, "records.npz"), over), "classes": over.n_classes,
                    "bounds": over.bounds, "values": {k: v for k, v in spec.values().items() if v is not None},
                })  # fmt: skip
            if not Path(hello["tacit"]).is_relative_to(root):
                raise NotACheckout(f"the tacit of {root} was not imported, but {hello['tacit']}.")
        except BaseException:
            self.close()
            raise

    @staticmethod
    def _write(path: Path, over: Federation) -> str:
        """The records in a file that the worker reads once: arrays in its memory are like those of this process."""
        x, y = (np.concatenate([getattr(shard, name) for shard in over.shards]) for name in ("x", "y"))
        np.savez(path, x=x, y=y, sizes=[len(shard) for shard in over.shards])
        return str(path)

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        """One line there, one line back."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps(question) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            self.process.communicate()
            self.said.seek(0)
            said = self.said.read().strip().splitlines()
            raise NotACheckout(f"the other checkout cannot play: {said[-1] if said else 'it said nothing'}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """End the process: it ends by itself when nobody can ask it any more."""
        if self.process.poll() is None:
            self.process.communicate()
        self.said.close()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class Before(OwnClock):
    """Rounds of as many seeds in that process."""

    def __init__(self, worker: Worker, runs: int) -> None:
        self.worker, self.runs, self.path = worker, runs, "not played yet"

    def turn(self, seconds: float) -> Turn:
        answer = self.worker.ask({"runs": self.runs, "seconds": seconds})
        self.path = str(answer["path"])
        return float(answer["wall"]), float(answer["cpu"])
