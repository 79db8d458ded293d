"""How the constants of the feature map `orientations` were chosen: on a split of MNIST's training set alone.

    python -m benchmarks.tune_images          writes records/tune-images.jsonl, in a few minutes

The last sixth of each of ten agents' records validates. The number of axes varies with the number of records, and the
orientations and the whitening at all records; clip and score_noise then vary for features of norm one.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tacit.data import mnist
from tacit.features.map import apply
from tacit.features.orientations import OrientationsMap
from tacit.run import build
from tacit.run.presets import preset
from tacit.run.run import Run
from tacit.run.train import together
from tacit.types import Federation, Shard

AGENTS, ROUNDS, SEEDS, EPSILONS = 10, 100, (0, 1), (0.5, 1.0, 3.0, 8.0)
USUAL: Mapping[str, Any] = {"privacy.clip": 0.25, "schedule.score_noise": 1.0}
OUT = Path(__file__).parent.parent / "records" / "tune-images.jsonl"


def split(images: Shard, found: OrientationsMap, records: int) -> Federation:
    """Ten agents with this many records in all, and the last sixth of each agent's block in place of the test set."""
    mapped = Shard(apply(found, images.x), images.y)
    block = len(images) // AGENTS
    kept = block * 5 // 6
    shards = tuple(mapped.rows(slice(p * block, p * block + min(kept, records // AGENTS))) for p in range(AGENTS))
    held = [row for p in range(AGENTS) for row in range(p * block + kept, (p + 1) * block)]
    return Federation(shards, mapped.rows(held), 10, "mnist train split")


def tried(over: Federation, values: Mapping[str, Any]) -> dict[str, float]:
    """Return the mean validation error at each epsilon."""
    runs = []
    for epsilon, seed in itertools.product(EPSILONS, SEEDS):
        own = {"privacy.epsilon": epsilon, "run.seed": seed, "run.rounds": ROUNDS, "run.record_every": ROUNDS}
        spec = preset("sound", "objt").with_values({**values, **own})
        runs.append(Run(spec, over, build.setup(spec, over)))
    errors = [result.test_error for result in together(runs)]
    n = len(SEEDS)
    return {str(epsilon): sum(errors[i * n : (i + 1) * n]) / n for i, epsilon in enumerate(EPSILONS)}


def main() -> None:
    """One line a choice."""
    train, _ = mnist.read()
    maps: list[tuple[dict[str, Any], int]] = [({"axes": k}, n) for n in (1000, 10_000, 50_000) for k in (60, 100, 200)]
    maps += [({"axes": 200, "turns": turns}, 50_000) for turns in (8, 16)]
    maps += [({"axes": 200, "whitening": a}, 50_000) for a in (0.0, 0.5)]
    with OUT.open("w", encoding="utf-8") as file:

        def write(row: Mapping[str, Any]) -> None:
            file.write(json.dumps(row) + "\n")
            file.flush()

        for choice, records in maps:
            over = split(train, OrientationsMap(28, 28, **choice), records)
            write({"records": records, **choice, **USUAL, "validation_error": tried(over, USUAL)})
        over = split(train, OrientationsMap(28, 28, axes=200), 50_000)
        for clip, score_noise in itertools.product((0.2, 0.35, 0.6), (0.75, 1.5)):
            values = {"privacy.clip": clip, "schedule.score_noise": score_noise}
            write({"records": 50_000, "axes": 200, **values, "validation_error": tried(over, values)})


if __name__ == "__main__":
    main()
