"""What it costs to complete the ledger's file after each round, every tenth round, or only at the end of a run.

python -m benchmarks.settling: the three take turns on the same run, and the least of several times is compared.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from pathlib import Path

from tacit.run import deploy
from tacit.run.presets import preset
from tacit.run.train import train

EVERY = (1, 10, 10**9)
TIMES, ROUNDS = 4, 100


def seconds(every: int, source: str) -> float:
    """Return the seconds of one run that completes its ledgers after every so many rounds."""
    deploy.SETTLED_EVERY = every
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:  # on the disk of the user, not in memory
        values = {"data.source": source, "privacy.noise": "exact", "privacy.ledger": f"{folder}/ledgers"}
        spec = preset("sound", "objt", source).with_values(values | {"run.rounds": ROUNDS})
        start = time.perf_counter()
        train(spec, out=Path(folder) / "run")
        return time.perf_counter() - start


def main() -> None:
    """Print the time of each choice, as a ratio to completing the file at the end only."""
    warnings.simplefilter("ignore")
    for source in ("mnist", "heart"):
        seconds(EVERY[-1], source)
        found: dict[int, list[float]] = {every: [] for every in EVERY}
        for _ in range(TIMES):
            for every in EVERY:
                found[every].append(seconds(every, source))
        at_the_end = min(found[EVERY[-1]])
        told = ", ".join(f"every {n} rounds {min(times) / at_the_end:.3f}" for n, times in found.items() if n < ROUNDS)
        print(f"{source}, {ROUNDS} rounds, {at_the_end:.2f} s with the file completed at the end: {told}", flush=True)


if __name__ == "__main__":
    main()
