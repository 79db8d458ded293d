"""The equations of admm.updates on a torch device: all agents stacked, many runs at once, in float32.

    z, dual, gradient, noise   (P, J, R, K)     agents, features, runs, classes
    w                          (J, R, K)
    a number a run             (R, 1)           rho
    a number an agent and run  (P, 1, R, 1)     weights, scales, radii

Runs that take the same branches form a team, which is one stretch of the axis R: a round is one pass over
the records for all of them, and then one stacked update a team.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from time import perf_counter
from typing import Any

import numpy as np

from tacit.admm.messages import Broadcast, Order, Replies
from tacit.admm.rule import Point, Prox, Trust
from tacit.admm.updates import ascent, prox_center, trust_center
from tacit.engine.passes import RowNorms, constant, row_norms
from tacit.engine.registry import Agents, Builder
from tacit.engine.stacking import Block, alike, blocks, project_each
from tacit.errors import SpecError, missing_extra
from tacit.privacy import noise, philox
from tacit.privacy.mechanism import Gaussian, Silence
from tacit.problem.bounds import interval
from tacit.problem.domain import Ball, Everywhere
from tacit.problem.loss import Softmax
from tacit.problem.sensitivity import ROOM, Clipped, Declared
from tacit.rounds import Trace
from tacit.types import Array, Norm

try:
    import torch
    from torch import Tensor
except ImportError as error:
    raise missing_extra("the torch engine needs torch", "torch") from error

SCORES = 2**24  # of a block at most, over all runs: 64 MB
DRAWS = 2**22  # of noise at a time, eight bytes each
ORDER = {Norm.L1: 1, Norm.L2: 2, Norm.INF: torch.inf}


def find_device(name: str) -> torch.device:
    """The device of this name, or an error if torch cannot see it."""
    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if not there.get(name, False):
        raise SpecError(f"torch {torch.__version__} sees no device {name!r} here: use cpu, or a torch built for it.")
    return torch.device(name)


class TorchEngine:
    """R runs over the same P shards, in lockstep."""

    def __init__(self, runs: Sequence[Agents], shape: tuple[int, int], device: str = "cpu") -> None:
        self.device = find_device(device)
        self.path = f"torch {torch.__version__} on {self.device.type}"
        teams = alike(runs)
        self.place = {r: i for i, r in enumerate(chain(*teams))}  # of run r on the axis R
        x_norm = row_norms([agent.shard for agent in runs[0]], {run[0].variant.bound.norm for run in runs})
        self.teams = [
            Team([runs[r] for r in team], slice(self.place[team[0]], self.place[team[-1]] + 1), x_norm, self.device)
            for team in teams
        ]
        most = max(1, SCORES // (len(runs) * shape[1]))
        self.records = list(blocks(runs[0], x_norm, most, lambda array: torch.from_numpy(array).to(self.device)))
        self.z = self._tensor(np.zeros((len(runs[0]), shape[0], len(runs), shape[1])))
        for r, i in self.place.items():
            self.z[:, :, i] = self._tensor(runs[r][0].start(shape).z)
        self.dual = torch.zeros_like(self.z)
        self.rho = self._tensor(np.zeros((len(runs), 1)))  # of the last round

    def exchange_all(self, msgs: Sequence[Broadcast]) -> list[Replies]:
        placed = [msgs[r] for r in self.place]
        w = self._tensor(np.stack([msg.w for msg in placed], axis=1))
        rho = self._tensor([[msg.rho] for msg in placed])
        start = self._now()
        gradient, bound = self._gradient(w)
        asked = self._now()
        moved = [self._move(team, placed[0].t, w, rho, gradient, bound) for team in self.teams]
        self.rho = rho
        clock = {"gradient": asked - start, "noise": 0.0, "update": self._now() - asked}  # the update draws the noise
        share = {part: spent / len(msgs) for part, spent in clock.items()}
        traces = [Trace.of(numbers, share) for numbers in torch.cat(moved).tolist()]
        z_mean, places = self._mean(), [self.place[r] for r in range(len(msgs))]
        return [Replies(z_mean[:, i], partial(self._violation, i), traces[i], np.float32) for i in places]

    def save(self, r: int = 0) -> dict[str, Array]:
        i = self.place[r]
        kept = {"z": self.z[:, :, i], "dual": self.dual[:, :, i], "rho": self.rho[i]}
        return {name: part.cpu().numpy().copy() for name, part in kept.items()}

    def load(self, r: int, saved: dict[str, Array]) -> None:
        i = self.place[r]
        self.z[:, :, i], self.dual[:, :, i] = self._tensor(saved["z"]), self._tensor(saved["dual"])
        self.rho[i] = self._tensor(saved["rho"])

    def _gradient(self, w: Tensor) -> tuple[Tensor, Tensor]:
        """sum_i x_i a_i^T at each run's point of linearisation, and the bound of a record."""
        point = torch.cat([team.point(self.z, w) for team in self.teams], 2)
        bound = torch.cat([team.constant for team in self.teams], 2)
        gradient = torch.zeros_like(point)
        for own in self.records:
            score = own.x @ point[own.agents].flatten(2)
            residual = score.unflatten(2, point.shape[2:])  # a view: what is written there enters the product below
            largest = torch.cat([team.answer(residual[:, :, team.stretch], own) for team in self.teams], 2)
            bound[own.agents] = torch.maximum(bound[own.agents], largest)
            gradient[own.agents] += (own.x.mT @ score).unflatten(2, point.shape[2:])
        return gradient, bound

    def _move(self, team: Team, t: int, w: Tensor, rho: Tensor, gradient: Tensor, bound: Tensor) -> Tensor:
        """The step of one team, as Agent.move takes it; the numbers of a Trace for each run, (R, 5)."""
        m, point = team.variant, team.point(self.z, w)
        z, dual, gradient, bound = (each[:, :, team.stretch] for each in (self.z, self.dual, gradient, bound))
        w, rho, last_rho = w[:, team.stretch], rho[team.stretch], self.rho[team.stretch]
        eta = team.each(lambda _, agent: agent.variant.rule.eta(t)) if isinstance(m.rule, Prox) else None
        mu = rho if eta is None else rho + 1 / eta
        scale = m.perturbation.scale(team.calibration * bound, mu)
        xi = scale * team.noise(t, gradient)
        if m.order is Order.ZWD:  # the w that closes the previous round has only now arrived
            dual[:] = ascent(dual, w, z, last_rho)
        regular = team.pull * (w if m.regularize_global else point)
        slope = m.perturbation.slope(team.weight * gradient + regular, xi)
        center = trust_center(w, dual, slope, rho) if eta is None else prox_center(w, z, dual, slope, rho, eta)
        nearest = team.project(center, z, t)
        binding = (nearest != center).float().mean((1, 3), keepdim=True)
        z[:] = m.perturbation.release(nearest, xi, mu)
        if m.order is Order.WZD:
            dual[:] = ascent(dual, w, z, rho)
        size = xi.abs().mean((1, 3), keepdim=True)
        return torch.cat([size, size / mu, scale, team.reach * bound, binding], 3).mean((0, 1))

    def _mean(self) -> Array:
        """1/P sum_p z_p in float64, where a device may have none: a mean, and the mean of what it leaves."""
        rough = self.z.mean(0)
        left = (self.z - rough).mean(0)
        return np.asarray(rough.cpu().numpy().astype(np.float64) + left.cpu().numpy())

    def _violation(self, i: int, w: Array) -> float:
        """sum_p |w - z_p|_1."""
        return float((self.z[:, :, i] - self._tensor(w)).abs().sum())

    def _tensor(self, values: object) -> Tensor:
        return torch.tensor(values, dtype=torch.float32, device=self.device)

    def _now(self) -> float:
        getattr(torch, self.device.type).synchronize()  # else it is the time when work was queued, not done
        return perf_counter()


class Team:
    """Runs that differ in numbers alone, and these numbers; `stretch` is the part of the axis R that the runs have."""

    def __init__(self, runs: Sequence[Agents], stretch: slice, x_norm: list[RowNorms], device: torch.device) -> None:
        self.runs, self.stretch, self.device = runs, stretch, device
        self.variant: Any = runs[0][0].variant
        self.problem = runs[0][0].problem
        self.boxes = all(interval(run[0].problem.domain) is not None for run in runs)
        self.weight = self.each(lambda _, agent: agent.problem.weight)
        self.pull = self.each(lambda _, agent: agent.regular_slope(np.ones(1), np.ones(1)).item())  # r'(u) = c u
        self.calibration = self.each(lambda _, agent: agent.calibration)
        self.reach = self.each(lambda _, agent: agent.problem.weight * agent.variant.adjacency.value)
        self.low, self.high = (
            self.each(lambda _, agent, end=end: (interval(agent.problem.domain) or (-np.inf, np.inf))[end])  # type: ignore[misc]
            for end in (0, 1)
        )
        around_zero = type(self.problem.domain) is Ball
        self.side = self.each(lambda _, agent: agent.problem.domain.radius if around_zero else np.inf)
        self.constant = self.each(lambda p, agent: constant(agent.variant.bound, x_norm[p]))
        self.keys = torch.tensor([[agent.stream for agent in across] for across in zip(*runs, strict=True)]).to(device)

    def each(self, number: Callable[[int, Any], float]) -> Tensor:
        """number(p, agent) for every agent and run, (P, 1, R, 1)."""
        rows = [[number(p, agent) for agent in across] for p, across in enumerate(zip(*self.runs, strict=True))]
        return torch.tensor(rows, dtype=torch.float32, device=self.device)[:, None, :, None]

    def point(self, z: Tensor, w: Tensor) -> Tensor:
        """Where these runs linearise."""
        own, rule = z[:, :, self.stretch], self.variant.rule
        return own if rule.at is Point.LOCAL else w[:, self.stretch].expand_as(own)

    def answer(self, score: Tensor, own: Block) -> Tensor:
        """Turns scores (G, n, R, K) into residuals, shrunk to their bound, in place; gives the bound of each agent."""
        bound, limit = self.variant.bound, self.constant[own.agents]
        if isinstance(self.problem.loss, Softmax):
            score.copy_(score.softmax(3))
        if own.y.is_floating_point():  # numbers to predict: one column
            score -= own.y
        else:
            label = own.y.expand(-1, -1, score.shape[2], -1)
            score.scatter_add_(3, label, -torch.ones_like(label, dtype=score.dtype))
        if isinstance(bound, Declared):
            return limit
        size = own.x_norm[bound.norm] * torch.linalg.vector_norm(score, ORDER[bound.norm], 3, keepdim=True)
        if isinstance(bound, Clipped):
            target = limit * ROOM
            score *= target / torch.maximum(size, target)
            return limit
        return size.amax(1, keepdim=True)

    def noise(self, t: int, gradient: Tensor) -> Tensor:
        """Noise of scale one, that of privacy.noise, a few runs at a time: their integers are wide."""
        P, J, _, K = gradient.shape
        if isinstance(self.variant.mechanism, Silence):
            return torch.zeros_like(gradient)
        draw = _gaussian if isinstance(self.variant.mechanism, Gaussian) else _laplace
        some = self.keys.split(max(1, DRAWS // (P * J * K)), dim=1)
        return torch.cat([draw(keys, t, J * K).unflatten(2, (J, K)).transpose(1, 2) for keys in some], 2)

    def project(self, c: Tensor, z: Tensor, t: int) -> Tensor:
        """argmin |u - c| over W and, with the trust rule, the region around z."""
        rule, W = self.variant.rule, type(self.problem.domain)
        if isinstance(rule, Trust):
            radius = self.each(lambda _, agent: agent.variant.rule.radius(t))
            if self.boxes and rule.norm is Norm.INF:
                return c.clamp(torch.maximum(z - radius, self.low), torch.minimum(z + radius, self.high))
            if W is Everywhere and rule.norm is Norm.L2:
                return _shrink(c, z, radius)
        elif self.boxes:
            return c.clamp(self.low, self.high)
        elif W is Ball:
            return _shrink(c, torch.zeros_like(c), self.side)
        return torch.from_numpy(project_each(self.runs, c.cpu().numpy(), z.cpu().numpy(), t)).to(c.device)


def _integers(keys: Tensor, t: int, n: int) -> Tensor:
    """noise.integers of every key (P, R, 2), as int64 (P, R, n)."""
    if keys.device.type != "cpu":
        return _on_device(keys, t, n)
    rows = [noise.integers((seed, p), t, 0, n) for seed, p in keys.flatten(0, 1).tolist()]  # compiled: faster here
    return torch.from_numpy(np.stack(rows).astype(np.int64)).unflatten(0, keys.shape[:2])


def _on_device(keys: Tensor, t: int, n: int) -> Tensor:
    eights = philox.integers(torch.arange(-(-n // 8), device=keys.device), (keys[..., :1], keys[..., 1:]), t)
    return torch.stack(eights, -1).flatten(2)[..., :n]


def _laplace(keys: Tensor, t: int, n: int) -> Tensor:
    bits = _integers(keys, t, n)
    size = -_unit(bits & 0x7FFFFFFF, 31).log()
    return torch.where(bits > 0x7FFFFFFF, -size, size)


def _gaussian(keys: Tensor, t: int, n: int) -> Tensor:
    u, v = _unit(_integers(keys, t, 2 * n), 32).unflatten(2, (n, 2)).unbind(3)
    return (-2 * u.log()).sqrt() * (2 * torch.pi * v).cos()


def _unit(bits: Tensor, width: int) -> Tensor:
    """(bits + 1/2) / 2^width, rounded once, as in noise.unit."""
    return (2 * bits + 1).to(torch.float32) * 2.0 ** -(width + 1)


def _shrink(c: Tensor, center: Tensor, radius: Tensor) -> Tensor:
    """center + (c - center) min(1, radius / |c - center|)."""
    size = torch.linalg.vector_norm(c - center, dim=(1, 3), keepdim=True)
    return torch.where(size <= radius, c, center + (c - center) * (radius / torch.maximum(size, radius)))


BUILDER = Builder(TorchEngine, find_device)
