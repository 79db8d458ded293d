"""Every set W that tacit knows, for models of shape (3, 2), with all that a spec or Python may give it."""

import numpy as np

from tacit.problem.ball_around import BallAround
from tacit.problem.bounds import Bounds
from tacit.problem.domain import Ball, Box, Everywhere
from tacit.problem.halfspaces import Halfspaces
from tacit.problem.simplex import Simplex

SHAPE = (3, 2)


def rising() -> Halfspaces:
    """Both scores rise with the first feature; the weights of the second feature add up to 0.2 at most."""
    normals, offsets = np.zeros((3, *SHAPE)), np.array([0.0, 0.0, 0.2])
    normals[0, 0, 0], normals[1, 0, 1], normals[2, 1, :] = -2.0, -1.0, 1.0
    return Halfspaces(normals, offsets)


def skew() -> Halfspaces:
    """Halfspaces in general position around a point that is not zero."""
    rng = np.random.default_rng(5)
    normals = rng.normal(size=(5, *SHAPE))
    inside = rng.normal(size=SHAPE)
    return Halfspaces(normals, np.tensordot(normals, inside, 2) + 0.1)


SETS = {
    "everywhere": Everywhere(),
    "box": Box(0.7),
    "box from zero": Bounds(low=0.0),
    "box that leaves out zero": Bounds(0.25, 0.75),
    "box of arrays": Bounds(
        np.array([[0.0, 0.0], [-1.0, -1.0], [-np.inf, -np.inf]]), np.array([[0.5, np.inf], [1.0, 1.0], [0.25, 0.25]])
    ),
    "ball": Ball(0.7),
    "ball around a number": BallAround(0.5, 0.7),
    "ball around a model": BallAround(np.arange(6.0).reshape(SHAPE) / 4, 0.7),
    "simplex": Simplex(1.0),
    "large simplex": Simplex(2.5),
    "rising": rising(),
    "skew": skew(),
}
