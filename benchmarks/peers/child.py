"""One tool in a process of its own: python -m benchmarks.peers.child ASKED, a line of JSON for every run of it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from benchmarks.peers import peer, task

FOUND = "found: "  # before every answer: tools print what they like


def ask(name: str, data: str, adult: str | None, jobs: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """What a process of its own finds, job by job; what else the tool prints is not shown unless it fails.

    A job has `seed` and `constants`, and perhaps `epsilon` (None: no privacy), `split` and `validate`.
    """
    asked = {"peer": name, "data": data, "adult": adult, "jobs": jobs}
    command = [sys.executable, "-m", "benchmarks.peers.child", json.dumps(asked)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        said: list[str] = []
        for line in process.stdout:
            if line.startswith(FOUND):
                yield json.loads(line.removeprefix(FOUND))
            else:
                said.append(line)
    if process.returncode:
        print(f"{name} failed on {data}:\n{''.join(said[-20:])}", file=sys.stderr, flush=True)


def main(text: str) -> None:
    """Load a task when its split changes, and train once for every job."""
    asked = json.loads(text)
    tool, own, before, loaded = peer.find(asked["peer"]), None, None, 0.0
    for job in asked["jobs"]:
        if (which := (job.get("split", 0), job.get("validate", False))) != before:
            start, before = time.perf_counter(), which
            own = task.load(asked["data"], asked["adult"], which[0])
            own = own.validating() if which[1] else own
            loaded = time.perf_counter() - start
        assert own is not None
        budget = job.get("epsilon", task.EPSILON)
        within = replace(own, epsilon=float("inf") if budget is None else budget)
        row = run(tool, within, job["seed"], job["constants"]) | {"load_seconds": round(loaded, 3)}
        print(FOUND + json.dumps(row), flush=True)


def run(tool: peer.Peer, own: task.Task, seed: int, constants: dict[str, Any]) -> dict[str, Any]:
    """One model: what it cost, what it promises, and how often it errs on the test set."""
    trained = tool.train(own, seed, constants)
    auc = own.auc(trained.score)
    return {
        "constants": constants, "test_error": round(own.test_error(trained.score), 5),
        "auc": None if auc is None else round(auc, 5),
        "seconds": round(trained.seconds, 3), "start_seconds": round(trained.start_seconds, 3),
        "epsilon": trained.epsilon if tool.private else None, "delta": trained.delta, "steps": trained.steps,
    }  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1])
