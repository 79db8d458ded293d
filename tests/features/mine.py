"""Functions that a user might give as a feature map: one that is a map, and many that are not."""

from __future__ import annotations

import numpy as np

from tacit.types import Array

CONSTANT = 3
_RNG = np.random.default_rng(0)


def squares(x: Array) -> Array:
    return np.concatenate([x, x * x], axis=1)


def centred(x: Array) -> Array:
    return x - x.mean(axis=0)


def ranks(x: Array) -> Array:
    return x.argsort(axis=0).argsort(axis=0)


def random(x: Array) -> Array:
    return x + _RNG.random(x.shape)


def first_row(x: Array) -> Array:
    return x + x[0]


def flat(x: Array) -> Array:
    return x.ravel()


def nothing(x: Array) -> Array:
    return x[:, :0]


def infinite(x: Array) -> Array:
    return x * np.inf


def fails(_: Array) -> Array:
    raise RuntimeError("it always does")


def leaves(x: Array) -> Array:
    if (x == 777).any():
        raise SystemExit(3)
    return x


def touchy(x: Array) -> Array:
    if (x == 777).any():
        raise ValueError("a record that I do not like")
    return np.where(x == 888, np.inf, x)
