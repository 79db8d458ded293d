"""Gradients with Gaussian noise, which most methods ask of agents, and the penalty that suits the noise."""

from __future__ import annotations

import math

from tacit.methods.task import Facts, Task
from tacit.problem.sensitivity import Clipped
from tacit.schedule import Cooling, cooled_step
from tacit.types import Array, Norm


def noise_std(facts: Facts, multiplier: float, clip: float) -> float:
    """The std of the noise on one agent's gradient, which one record moves by at most clip / I."""
    return multiplier * facts.problem.weight * clip * facts.rounding


def noisy_gradients(agents: Task, points: Array, clip: float, std: float, t: int, step: int = 0) -> Array:
    """f'_p + xi_p at points[p], or at one point for all; |x_i a_i^T| <= clip and xi_p ~ N(0, std^2): (P, J, K)."""
    slope = agents.gradients(points, Clipped(Norm.L2, clip))
    if std:
        xi = agents.agents_gaussian(t, step)
        xi *= std
        slope += xi
    return slope


def cooled_penalty(facts: Facts, score_noise: float, std: float, rounds: int) -> Cooling:
    """rho^t = 1 / (P step^t): the mean of the z_p then does gradient descent on sum_p f_p.

    step^t falls in a straight line to zero. With its first value a score of w gathers noise of std score_noise over
    the run, where `std` is that of the noise on one agent's f'_p in one round.
    """
    step = cooled_step(score_noise, math.sqrt(facts.n_agents) * std * facts.row_norm, rounds)
    return Cooling(1 / (facts.n_agents * step), rounds)
