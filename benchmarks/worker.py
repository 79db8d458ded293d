"""Rounds of the fast engine of another checkout: a turn for every line that comes in (benchmarks/before.py starts it).

    PYTHONPATH=DIR/src:DIR python worker.py

This file and interleave.py are of this checkout. tacit is DIR's, and so is benchmarks.contenders, which knows how the
rounds of that tacit are made. The first line says where the records are; every other line asks for a turn.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

# Python put the folder of this file first: DIR's package comes first instead, and interleave is still found
sys.path.append(sys.path.pop(0))

from interleave import settle, take_turn

import tacit
from benchmarks.contenders import Rounds, fast
from tacit.run.spec import Spec
from tacit.types import Federation, Shard


def main() -> None:
    """Read questions, print answers, one line each, until the other side closes the pipe."""
    asked = json.loads(sys.stdin.readline())
    over, spec = federation(asked), Spec().with_values(asked["values"])
    players: dict[int, Rounds] = {}
    answer({"tacit": str(Path(tacit.__file__).resolve())})
    for line in sys.stdin:
        turn = json.loads(line)
        runs = int(turn["runs"])
        if runs not in players:
            players[runs] = fast(spec, over, runs)
        wall, cpu = take_turn(players[runs], turn["seconds"])
        settle()  # the next turn is of another process, and must not meet threads of this one
        answer({"wall": wall, "cpu": cpu, "path": players[runs].path})


def federation(asked: dict[str, Any]) -> Federation:
    """The records of the other side."""
    with np.load(asked["records"]) as kept:
        x, y, cuts = kept["x"], kept["y"], np.cumsum(kept["sizes"])[:-1]
    shards = tuple(Shard(own, labels) for own, labels in zip(np.split(x, cuts), np.split(y, cuts), strict=True))
    nobody = Shard(np.empty((0, x.shape[1])), np.empty(0, np.int64))
    bounds = asked["bounds"]
    return Federation(shards, nobody, asked["classes"], "records", bounds=bounds and (bounds[0], bounds[1]))


def answer(what: dict[str, Any]) -> None:
    print(json.dumps(what), flush=True)


if __name__ == "__main__":
    main()
