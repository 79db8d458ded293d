"""What the inexact ADMM methods share: the noisy answer of the data, and the penalty."""

from __future__ import annotations

from tacit.methods.task import Task
from tacit.problem.sensitivity import Clipped
from tacit.schedule import Cooling, cooled_step
from tacit.types import Array, Norm


def noisy_gradients(task: Task, points: Array, clip: float, std: float, t: int, step: int = 0) -> Array:
    """f'_p + xi_p at points[p], or at one point for all; |x_i a_i^T| <= clip and xi_p ~ N(0, std^2): (P, J, K)."""
    slope = task.gradients(points, Clipped(Norm.L2, clip))
    if std:
        xi = task.agents_gaussian(t, step)
        xi *= std
        slope += xi
    return slope


def cooled_penalty(task: Task, score_noise: float, std: float, rounds: int) -> Cooling:
    """rho^t = 1 / (P step^t): the mean of the z_p then does gradient descent on sum_p f_p.

    step^t falls in a straight line to zero. Its first value is the one with which a score of w gathers noise of std
    score_noise over the run, `std` that of the noise on sum_p f'_p in one round.
    """
    step = cooled_step(score_noise, std * task.row_norm, rounds)
    return Cooling(1 / (task.n_agents * step), rounds)
