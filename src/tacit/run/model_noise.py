"""Noise in a model, estimated only from public numbers, and the runs and agents that the noise outweighs."""

from __future__ import annotations

import math
from itertools import accumulate

from tacit.admm.messages import Order
from tacit.admm.rule import Exact, Point, Prox
from tacit.data.table import counted, some
from tacit.errors import SpecError
from tacit.methods.promise import Promise, Trusted, Unit
from tacit.privacy.budget import multiplier_of, upward
from tacit.run.compose import total_noise
from tacit.run.setup import Setup
from tacit.run.spec import Spec
from tacit.types import Federation

SMALL = 1e-3  # share of rho below which a proximal term is left out

# Noise over records, both as records. Gradients mostly cancel, so the noise wins long before 1. On six tables of 12 to
# 4000 records, with 1 and 5 agents and epsilon 0.3, 1 and 3, the median AUC was 0.52 from this share on, and models
# kept 9 % of the non-private AUC above 0.5 on average; below it, 0.72 and 58 % (python -m benchmarks.few_records)
TOO_NOISY = 1 / 6
LARGE = 100.0  # epsilon from which the noise weighs less than a tenth of a record, and says nothing


def gathered_noise(setup: Setup) -> tuple[float, float]:
    """Return the std of the noise in an entry of w and of the average of w, from public numbers alone; else NaN.

    Where z moves first and f_p is linearised at w, w moves by -step_t sum_p (f'_p + xi_p) with step_t = 1 / (P rho_t),
    and by momentum m times its last move. The noise of round t is in w_t, ..., w_T, and in w_s as often as moves were
    repeated by then, 1 + m + ... + m^(s-t). So were there no gradients,

        std(w)^2 = sum_t (s_t n_T-t)^2,    n_k = 1 + m + ... + m^k,    s_t = step_t std(sum_p xi_p),

    and in the average of w_1, ..., w_T the mean of n_0, ..., n_T-t, and T - t + 1 of T, stand in the place of n_T-t.
    Steps along convex f_p pull the noise of earlier rounds back: where steps are stable, w holds no more than this.
    """
    if not setup.agents or not _descends(setup):
        return math.nan, math.nan
    std = total_noise(setup.agents, setup.in_sum)
    rounds, momentum = setup.server.rounds, setup.consensus.momentum
    steps = [std / (len(setup.agents) * setup.rho(t)) for t in range(1, rounds + 1)]
    times = list(accumulate(momentum**k for k in range(rounds)))  # n_0, n_1, ...
    sums = list(accumulate(times))
    last = [step * times[rounds - 1 - n] for n, step in enumerate(steps)]
    mean = [step * sums[rounds - 1 - n] / rounds for n, step in enumerate(steps)]
    return math.hypot(*last), math.hypot(*mean)


def _descends(setup: Setup) -> bool:
    """Whether every round is a step of gradient descent with noise of a public scale."""
    own, least = setup.agents[0].variant, min(setup.rho(t) for t in (1, setup.server.rounds))
    if isinstance(own.rule, Exact) or own.rule.at is not Point.GLOBAL or own.order is not Order.ZWD:
        return False
    if isinstance(own.rule, Prox) and 1 / own.rule.eta(1) > SMALL * least:
        return False
    return own.bound.public and own.perturbation.scale(1.0, 2.0) == 1.0


def prospects(spec: Spec, federation: Federation, promise: Promise) -> tuple[str, ...]:
    """Return a sentence or two for each reason why the run cannot give a useful model; () if there is none.

    Let mu be the Gaussian privacy (GDP) parameter of the budget. Over the whole run, the noise of one agent in any
    direction has the standard deviation of s / mu gradients of the largest norm that a record may have: s is 1 if a
    neighbour lacks a record, 2 if a record is replaced. So the noise of one agent weighs as much as s / mu records that
    all pull the same way, and the independent noise of P agents as much as sqrt(P) s / mu records.
    """
    private = spec.privacy.epsilon < LARGE and spec.privacy.covers == "run"
    if not private or promise.caveats or promise.unit is Unit.CLIENT:
        return ()
    try:
        alone = multiplier_of(spec.privacy.epsilon, spec.privacy.dp_delta)
    except SpecError:  # no Gaussian noise is enough for so small a budget; the run itself may have other noise
        alone = math.inf
    alone *= 2 if promise.unit is Unit.REPLACED else 1
    each = promise.trusted is Trusted.NOBODY and federation.n_agents > 1  # else the noise is added once
    whole = alone * (math.sqrt(federation.n_agents) if each else 1)
    found = []
    if whole >= TOO_NOISY * federation.n_records:
        found.append(
            f"{counted(federation.n_records)}{f' of {federation.n_agents} agents' if each else ''} at epsilon "
            f"{upward(spec.privacy.epsilon)} are too few: the noise weighs as much as {whole:.2g} records that all "
            "pull the same way. Unless the signal is very strong, expect a model close to chance: use more records, or "
            "a larger epsilon."
        )
    small = {name: len(shard) for name, shard in zip(federation.agents, federation.shards, strict=True)}
    small = {name: n for name, n in small.items() if n <= alone} if each else {}
    if small:
        has = "has" if len(small) == 1 else "have"
        most = counted(max(small.values())) + ("" if len(small) == 1 else " or fewer")
        found.append(
            f"{len(small)} of {federation.n_agents} agents ({some([*small])}) {has} {most}, and every agent adds the "
            f"same noise, which weighs as much as {alone:.2g} records: pool such agents, leave them out, or, with "
            "three agents or more, share the noise behind a secure sum (docs/secure-sum.md)."
        )
    return tuple(found)
