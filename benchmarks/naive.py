"""The yardstick: ObjT as research code tends to be written, straight from the equations.

Records are float32 and models float64, so NumPy makes a float64 copy of X in each of the two products;
agents come one after another; one-hot labels are built anew each round; noise comes from
`np.random.laplace` with arrays for location and scale. The softmax is not shifted, and |x_i|_1 is computed
once: both make this code faster than it might be, so the ratios are not flattered.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.admm.rule import Trust
from tacit.run.build import Setup
from tacit.types import Array


class Naive:
    """Rounds of ObjT in the order w, z, dual; dtype is that of the records, and models are always float64."""

    path = "naive"

    def __init__(self, setup: Setup, dtype: type[np.floating[Any]] = np.float32) -> None:
        first = setup.agents[0]
        assert isinstance(first.variant.rule, Trust)
        self.records = [(agent.shard.x.astype(dtype, copy=False), agent.shard.y) for agent in setup.agents]
        self.x_norm = [np.abs(x).sum(axis=1) for x, _ in self.records]
        self.weight, self.beta = first.problem.weight, first.problem.beta
        self.multiplier = first.variant.mechanism.multiplier
        self.rho, self.radius = setup.rho, first.variant.rule.radius
        self.w = np.zeros(setup.shape)
        self.z = [np.zeros(setup.shape) for _ in self.records]
        self.dual = [np.zeros(setup.shape) for _ in self.records]
        self.t = 0

    def __call__(self) -> None:
        """One round."""
        self.t += 1
        rho, radius = self.rho(self.t), self.radius(self.t)
        total = np.zeros_like(self.w)
        for z, dual in zip(self.z, self.dual, strict=True):
            total = total + z - dual / rho
        self.w = total / len(self.records)
        for p in range(len(self.records)):
            slope = self.noisy_gradient(p)
            center = self.w + (self.dual[p] - slope) / rho
            self.z[p] = np.minimum(np.maximum(center, self.z[p] - radius), self.z[p] + radius)
            self.dual[p] = self.dual[p] + rho * (self.w - self.z[p])

    def noisy_gradient(self, p: int) -> Array:
        """f'_p(z_p) with beta r'(w), plus Laplace noise scaled to the largest record seen."""
        x, y = self.records[p]
        h = np.exp(np.matmul(x, self.z[p]))
        h = h / h.sum(axis=1, keepdims=True)
        one_hot = np.zeros(h.shape)
        one_hot[np.arange(len(y)), y] = 1
        residual = h - one_hot
        gradient = self.weight * np.matmul(x.T, residual) + 2 * self.beta * self.w
        sensitivity = self.weight * (self.x_norm[p] * np.abs(residual).sum(axis=1)).max()
        scale = self.multiplier * sensitivity * np.ones(gradient.shape)
        noise = np.random.laplace(np.zeros(gradient.shape), scale)  # noqa: NPY002  that is the style
        return np.asarray(gradient + noise)
