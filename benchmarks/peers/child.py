"""One tool in a process of its own: python -m benchmarks.peers.child ASKED, a line of JSON for every run of it."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from benchmarks.peers import peer, task

FOUND = "found: "  # before every answer: tools print what they like


def main(text: str) -> None:
    """Load the task once, and train with each of the constants that are asked for."""
    asked = json.loads(text)
    start = time.perf_counter()
    own = task.load(asked["data"], asked["adult"])
    if asked["validate"]:
        own = own.validating()
    tool, loaded = peer.find(asked["peer"]), time.perf_counter() - start
    for constants in asked["constants"]:
        row = run(tool, own, asked["seed"], constants) | {"load_seconds": round(loaded, 3)}
        print(FOUND + json.dumps(row), flush=True)


def run(tool: peer.Peer, own: task.Task, seed: int, constants: dict[str, Any]) -> dict[str, Any]:
    """One model: what it cost, what it promises, and how often it errs on the test set."""
    trained = tool.train(own, seed, constants)
    return {
        "constants": constants, "test_error": round(own.test_error(trained.score), 5),
        "seconds": round(trained.seconds, 3), "start_seconds": round(trained.start_seconds, 3),
        "epsilon": trained.epsilon, "delta": trained.delta, "steps": trained.steps,
    }  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1])
