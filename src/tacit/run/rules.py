"""What the sound preset takes from public numbers alone: clip, noise in a score, momentum, largest step and rounds.

The rules for tables were chosen on public tables and on synthetic ones, none of which a test uses, and those for images
on training records of MNIST and FEMNIST: docs/features.md says how, and how far that can be trusted.
"""

from __future__ import annotations

import math

from tacit.features.registry import name_of
from tacit.problem.objective import Problem
from tacit.schedule import LARGEST_STEP
from tacit.types import Federation, Norm

LEAST_CLIP, MOST_CLIP = 0.7, math.sqrt(2)  # the gradient of no record of norm one is longer than sqrt 2
LOUD = 1e-3  # from so much noise on, LEAST_CLIP is best
IMAGE_CLIP = 0.3  # of images and of pixels
NUMBER_CLIP, NUMBER_NOISE = 0.2, 0.15  # of a number to predict: its score is the number itself, in [-1, 1]
SPREAD = ("orientations",)
STABLE = 0.84  # of the largest step that heavy-ball descent can take
MOMENTUM, LEAST_MOMENTUM, MEMORY = 0.9, 0.5, 0.2  # moves are repeated over a fifth of the rounds, at most
USUAL_ROUNDS, LONGER = 100, 4.0  # fewer rounds than usual take longer steps, up to so many times
FEWEST_ROUNDS = 25  # where a round takes seconds: docs/rounds.md
FEWEST_FOR_NUMBERS = 50  # the same; fewer were not tried on a number to predict


def clip(noise: float, federation: Federation) -> float:
    """Return the clipping norm: the less noise there is, the less is gained by cutting gradients short.

    A small clip takes noise off and bends the objective. Noise falls with the number of records, and the bend does not.
    `noise` is that of a mean gradient, for a clip of one and all the budget in one release.
    """
    if federation.target is not None:
        return NUMBER_CLIP
    if spread(federation):
        return IMAGE_CLIP
    return min(MOST_CLIP, max(LEAST_CLIP, LEAST_CLIP * (LOUD / noise) ** 0.25)) if noise else MOST_CLIP


def score_noise(federation: Federation) -> float:
    """Return the noise that the scores of a record may gather: more where more classes compete."""
    return max(1.0, 0.5 * math.log(federation.n_classes)) if federation.target is None else NUMBER_NOISE


def federated_rounds(noise: float, federation: Federation) -> int:
    """Return the rounds of a run where a round takes seconds, as between institutions: more where there is less noise.

    The budget is the same for any number of rounds. More rounds come closer to the optimum, and noise decides how close
    is worth while: under loud noise FEWEST_ROUNDS do as well as USUAL_ROUNDS. `noise` is that of `clip`.
    """
    least = FEWEST_ROUNDS if federation.target is None else FEWEST_FOR_NUMBERS
    wanted = FEWEST_ROUNDS * math.sqrt(LOUD / noise) if noise else USUAL_ROUNDS
    return max(least, math.ceil(min(USUAL_ROUNDS, wanted)))


def momentum(federation: Federation, rounds: int) -> float:
    """Return the share of its last move that w repeats: much where one direction holds much of every record.

    Moves add up to 1 / (1 - momentum) of one, over as many rounds: in a short run there is no time for that.
    """
    if spread(federation):
        return 0.0
    if federation.target is not None:
        return MOMENTUM
    return min(MOMENTUM, max(LEAST_MOMENTUM, 1 - 1 / (MEMORY * rounds)))


def longest_step(federation: Federation, problem: Problem, row_bound: float, momentum: float, rounds: int) -> float:
    """Return the largest first step that is stable whatever the records: |x_i| <= row_bound, a loss of curvature c.

    Descent with momentum m is stable below 2 (1 + m) / (c row_bound^2) (Polyak 1964), and moves that are repeated add
    up to 1 / (1 - m) of one. Features of images lie along many axes, so that longer steps are stable there too.

    In fewer rounds than usual longer steps go as far. They may overshoot where the loss curves most, and the steps fall
    to zero after that; but a loss that curves as much everywhere, as that of a number does, has no such place.
    """
    if spread(federation):
        return LARGEST_STEP
    longer = 1.0 if problem.loss.for_numbers else min(LONGER, max(1.0, USUAL_ROUNDS / rounds))
    return longer * STABLE * 2 * (1 + momentum) / (1 - momentum) / (turn(problem) * row_bound**2)


def plain_step(federation: Federation, problem: Problem, row_bound: float) -> float:
    """Return the largest first step of methods without momentum, the fastest that ended well on most tables.

    The squared loss curves as much everywhere, and a step beyond 2 / c overshoots for ever; softmax flattens.
    """
    if spread(federation):
        return LARGEST_STEP
    return (2.0 if problem.loss.for_numbers else 16.0) / (turn(problem) * row_bound**2)


def turn(problem: Problem) -> float:
    """Return the curvature of the loss; of a loss with kinks, that of the loss rounded off over scores of one.

    Over such a distance a subgradient turns by its bound G, and the curvature along it is G^2. No first step makes
    subgradient descent diverge, because the steps fall to zero: this says how long the first is, and no more.
    """
    curvature = problem.loss.curvature
    return curvature if math.isfinite(curvature) else problem.loss.residual_bound(Norm.L2) ** 2


def spread(federation: Federation) -> bool:
    """Whether features lie along many axes, none of which holds much of a record: those of images, and pixels."""
    return name_of(federation.recipe) in SPREAD if federation.recipe else federation.image is not None
