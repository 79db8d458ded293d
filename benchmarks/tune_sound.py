"""How the constants of the sound preset were chosen: on a split of MNIST's training set, never on its test set.

    python -m benchmarks.tune_sound          writes records/tune-sound.jsonl

The last 10,000 training records validate; ten agents share the other 50,000. Clip and score_noise vary; rounds too.
"""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path

from tacit.data import mnist
from tacit.data.transform import rescale_rows
from tacit.run import build
from tacit.run.presets import preset
from tacit.run.run import Run
from tacit.run.train import together
from tacit.types import Federation, Shard

CLIPS, SCORE_NOISES, EPSILONS, ROUNDS = (0.2, 0.35, 0.6, 1.0), (0.75, 1.5, 3.0), (0.5, 1.0, 3.0, 8.0), (100, 300)
OUT = Path(__file__).parent.parent / "records" / "tune-sound.jsonl"


def split() -> Federation:
    """Ten agents of 5,000 and a validation set in the place of the test set, rows of norm one."""
    train, _ = mnist.read()
    shards = tuple(Shard(train.x[i : i + 5000], train.y[i : i + 5000]) for i in range(0, 50_000, 5000))
    whole = Federation(shards, Shard(train.x[50_000:], train.y[50_000:]), 10, "mnist train split", bounds=(0.0, 1.0))
    return rescale_rows(whole, "l2", 1.0, "unit")


def main() -> None:
    """Every combination, one batch for each budget and number of rounds."""
    over = split()
    with OUT.open("w", encoding="utf-8") as file:
        for epsilon, rounds in itertools.product(EPSILONS, ROUNDS):
            points = list(itertools.product(CLIPS, SCORE_NOISES))
            runs = []
            for clip, score_noise in points:
                values = {"privacy.clip": clip, "schedule.score_noise": score_noise, "run.record_every": rounds}
                values |= {"privacy.epsilon": epsilon, "run.rounds": rounds}
                spec = preset("sound", "objt").with_values(values)
                runs.append(Run(spec, over, build.setup(spec, over)))
            for (clip, score_noise), result in zip(points, together(runs), strict=True):
                row = {"epsilon": epsilon, "rounds": rounds, "clip": clip, "score_noise": score_noise}
                file.write(json.dumps(row | {"validation_error": result.test_error}) + "\n")
            print(f"epsilon {epsilon}, {rounds} rounds: done", file=sys.stderr)


if __name__ == "__main__":
    main()
