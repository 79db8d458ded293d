"""What a federation holds, in the numbers of the paper's Table 1 and a few more."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.types import Federation


def describe(federation: Federation, *, labels: bool = False) -> dict[str, Any]:
    """Describe a federation in plain numbers, fit for JSON.

    `sd` is the sample standard deviation (divisor P - 1), 0 for one agent. The density is the share of
    non-zero features in the training records. With `labels`, also how many records of each class each agent has.
    """
    sizes = np.array([len(shard) for shard in federation.shards])
    nonzero = sum(int(np.count_nonzero(shard.x)) for shard in federation.shards)
    I, J, K, P = federation.n_records, federation.n_features, federation.n_classes, federation.n_agents  # noqa: E741
    facts: dict[str, Any] = {
        "name": federation.name, "I": I, "J": J, "K": K, "P": P,
        "mean": float(sizes.mean()), "sd": float(sizes.std(ddof=1)) if P > 1 else 0.0,
        "min": int(sizes.min()), "max": int(sizes.max()),
        "test_records": len(federation.test), "density": nonzero / (I * J),
        "bounds": None if federation.bounds is None else list(federation.bounds),
        "target": None if federation.target is None else [federation.target.lo, federation.target.hi],
    }  # fmt: skip
    if labels and federation.target is None:
        counts = [np.bincount(shard.y, minlength=K).tolist() for shard in federation.shards]
        facts["label_counts"] = dict(zip(federation.agents, counts, strict=True))
    return facts


def table(*federations: Federation) -> str:
    """Write the paper's Table 1 for these federations, as aligned text."""
    rows = [
        ["", "# of data", "# of features", "# of classes", "# of agents", "# of data per agent", ""],
        ["", "(I)", "(J)", "(K)", "(P)", "mean", "stdev"],
    ]
    for facts in map(describe, federations):
        sizes = [f"{facts[key]:.2f}".removesuffix(".00") for key in ("mean", "sd")]
        rows.append([facts["name"], *(str(facts[key]) for key in "IJKP"), *sizes])
    first, *wide = (max(map(len, column)) for column in zip(*rows, strict=True))
    lines = ["  ".join([row[0].ljust(first), *map(str.rjust, row[1:], wide)]).rstrip() for row in rows]
    return "\n".join([*lines[:2], "-" * max(map(len, lines)), *lines[2:]])
