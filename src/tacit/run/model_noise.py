"""How much of a model can be noise: the std of what the noise of all rounds adds to an entry of w."""

from __future__ import annotations

import math
from itertools import accumulate

from tacit.admm.messages import Order
from tacit.admm.rule import Exact, Point, Prox
from tacit.run.build import Setup
from tacit.run.compose import AdmmSetup, total_noise

SMALL = 1e-3  # share of rho below which a proximal term is left out


def gathered_noise(setup: Setup) -> tuple[float, float]:
    """Return the std of the noise in an entry of w and of the average of w, from public numbers alone; else NaN.

    Where z moves first and f_p is linearised at w, w moves by -step_t sum_p (f'_p + xi_p) with step_t = 1 / (P rho_t),
    and by momentum m times its last move. The noise of round t is in w_t, ..., w_T, and in w_s as often as moves were
    repeated by then, 1 + m + ... + m^(s-t). So were there no gradients,

        std(w)^2 = sum_t (s_t n_T-t)^2,    n_k = 1 + m + ... + m^k,    s_t = step_t std(sum_p xi_p),

    and in the average of w_1, ..., w_T the mean of n_0, ..., n_T-t, and T - t + 1 of T, stand in the place of n_T-t.
    Steps along convex f_p pull the noise of earlier rounds back: where steps are stable, w holds no more than this.
    """
    if not isinstance(setup, AdmmSetup) or not _descends(setup):
        return math.nan, math.nan
    std = total_noise(setup.agents, setup.in_sum)
    rounds = setup.server.rounds
    steps = [std / (len(setup.agents) * setup.rho(t)) for t in range(1, rounds + 1)]
    times = list(accumulate(setup.server.momentum**k for k in range(rounds)))  # n_0, n_1, ...
    sums = list(accumulate(times))
    last = [step * times[rounds - 1 - n] for n, step in enumerate(steps)]
    mean = [step * sums[rounds - 1 - n] / rounds for n, step in enumerate(steps)]
    return math.hypot(*last), math.hypot(*mean)


def _descends(setup: AdmmSetup) -> bool:
    """Whether every round is a step of gradient descent with noise of a public scale."""
    own, least = setup.agents[0].variant, min(setup.rho(t) for t in (1, setup.server.rounds))
    if isinstance(own.rule, Exact) or own.rule.at is not Point.GLOBAL or own.order is not Order.ZWD:
        return False
    if isinstance(own.rule, Prox) and 1 / own.rule.eta(1) > SMALL * least:
        return False
    return own.bound.public and own.perturbation.scale(1.0, 2.0) == 1.0
