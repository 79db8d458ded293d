"""Say from public numbers alone what cannot work: too few records, or agents too small, for the noise.

Let mu be the Gaussian privacy (GDP) parameter of the budget. Over the whole run, the noise of one agent in any
direction has the standard deviation of s / mu gradients of the largest norm that a record may have: s is 1 if a
neighbour lacks a record, 2 if a record is replaced. So the noise of one agent weighs as much as s / mu records that
all pull the same way, and the independent noise of P agents as much as sqrt(P) s / mu records.
"""

from __future__ import annotations

import math

from tacit.data.table import some
from tacit.methods.promise import Promise, Trusted, Unit
from tacit.privacy.budget import multiplier_of, upward
from tacit.run.spec import Spec
from tacit.types import Federation

# Noise over records, both as records. Gradients mostly cancel, so the noise wins long before 1. On six tables (three
# synthetic, breast cancer, digits, heart; 12 to 4000 records, 1 and 5 agents, epsilon 0.3, 1 and 3) the median AUC of
# the 60 runs above this share was 0.52. Those below kept 58 % of the non-private AUC above 0.5 on average
TOO_NOISY = 1 / 6
LARGE = 100.0  # epsilon from which the noise weighs less than a tenth of a record, and says nothing


def prospects(spec: Spec, federation: Federation, promise: Promise) -> tuple[str, ...]:
    """Return a sentence or two for each reason why the run cannot give a useful model; () if there is none."""
    private = spec.privacy.epsilon < LARGE and spec.privacy.covers == "run"
    if not private or promise.caveats or promise.unit is Unit.CLIENT:
        return ()
    alone = multiplier_of(spec.privacy.epsilon, spec.privacy.dp_delta) * (2 if promise.unit is Unit.REPLACED else 1)
    each = promise.trusted is Trusted.NOBODY and federation.n_agents > 1  # else the noise is added once
    whole = alone * (math.sqrt(federation.n_agents) if each else 1)
    found = []
    if whole >= TOO_NOISY * federation.n_records:
        found.append(
            f"{_counted(federation.n_records)}{f' of {federation.n_agents} agents' if each else ''} at epsilon "
            f"{upward(spec.privacy.epsilon)} are too few: the noise weighs as much as {whole:.2g} records that all "
            "pull the same way. Unless the signal is very strong, expect a model close to chance: use more records, or "
            "a larger epsilon."
        )
    small = {name: len(shard) for name, shard in zip(federation.agents, federation.shards, strict=True)}
    small = {name: n for name, n in small.items() if n <= alone} if each else {}
    if small:
        has = "has" if len(small) == 1 else "have"
        most = _counted(max(small.values())) + ("" if len(small) == 1 else " or fewer")
        found.append(
            f"{len(small)} of {federation.n_agents} agents ({some([*small])}) {has} {most}, and every agent adds the "
            f"same noise, which weighs as much as {alone:.2g} records: pool such agents, leave them out, or share the "
            "noise behind a secure sum (docs/secure-sum.md)."
        )
    return tuple(found)


def _counted(n: int) -> str:
    return f"{n} record{'' if n == 1 else 's'}"
