"""How much of a model can be noise: the std of what the noise of all rounds adds to an entry of w."""

from __future__ import annotations

import math

from tacit.admm.messages import Order
from tacit.admm.rule import Exact, Point, Prox
from tacit.privacy.mechanism import Laplace
from tacit.run.build import Setup
from tacit.run.compose import AdmmSetup

SMALL = 1e-3  # share of rho below which a proximal term is left out


def gathered_noise(setup: Setup) -> tuple[float, float]:
    """Return the std of the noise in an entry of w and of the average of w, from public numbers alone; else NaN.

    Where z moves first and f_p is linearised at w, w moves by -step_t sum_p (f'_p + xi_p) with step_t = 1 / (P rho_t).
    The noise of round t is in w_t, ..., w_T: T - t + 1 of the T models that are averaged. So were there no gradients,

        std(w)^2 = sum_t s_t^2,    std(average)^2 = sum_t (s_t (T - t + 1) / T)^2,    s_t = step_t std(sum_p xi_p).

    Steps along convex f_p pull the noise of earlier rounds back: where steps are stable, w holds no more than this.
    """
    if not isinstance(setup, AdmmSetup) or not _descends(setup):
        return math.nan, math.nan
    law = math.sqrt(2) if isinstance(setup.agents[0].variant.mechanism, Laplace) else 1.0  # std over scale
    std = law * math.sqrt(sum((agent.calibration * agent.constant_bound) ** 2 for agent in setup.agents))
    rounds = setup.server.rounds
    steps = [std / (len(setup.agents) * setup.rho(t)) for t in range(1, rounds + 1)]
    late = [step * (rounds - n) / rounds for n, step in enumerate(steps)]
    return math.hypot(*steps), math.hypot(*late)


def _descends(setup: AdmmSetup) -> bool:
    """Whether every round is a step of gradient descent with noise of a public scale."""
    own, least = setup.agents[0].variant, min(setup.rho(t) for t in (1, setup.server.rounds))
    if isinstance(own.rule, Exact) or own.rule.at is not Point.GLOBAL or own.order is not Order.ZWD:
        return False
    if isinstance(own.rule, Prox) and 1 / own.rule.eta(1) > SMALL * least:
        return False
    return own.bound.public and own.perturbation.scale(1.0, 2.0) == 1.0
