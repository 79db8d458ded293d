"""All agents and many runs at once, in float32: one pass over the records (engine.sums) serves every run of a batch.

Threads share out agents, and sums over agents keep their order, so their number never changes a result.
Where the loops are compiled, noise and update are fused into one pass; elsewhere, and for the sets and
norms the loops do not know, each agent moves by the same code as in the plain engine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from tacit.admm.agent import Agent
from tacit.admm.messages import Broadcast, Local, Order, Replies
from tacit.admm.rule import Output, Point, Trust
from tacit.engine import forms
from tacit.engine.kernels import aligned, compiled, cores, of_run, spread, width
from tacit.engine.registry import Agents, Builder
from tacit.engine.sums import LossesAndBounds, choose, constant, measured_norms, row_norms
from tacit.privacy.mechanism import Gaussian
from tacit.problem.domain import Box, Everywhere
from tacit.rounds import Trace, mean_trace
from tacit.types import Array, Norm

# columns of a run's parameters, as the compiled update reads them
WEIGHT, REG_Z, REG_W, RHO, INV_ETA, RADIUS, LOW, HIGH, SLOPE_NOISE, STEP_NOISE, DUAL_BEFORE, DUAL_AFTER = range(12)


class FastEngine:
    """R runs over the same P shards, in lockstep."""

    def __init__(self, runs: Sequence[Agents], shape: tuple[int, int], threads: int | None = None) -> None:
        self.runs = tuple(tuple(run) for run in runs)
        self.agents = tuple(zip(*self.runs, strict=True))  # [p][r]
        self.features, self.classes = shape
        packed = (self.features, width(len(runs), self.classes))
        self.z, self.dual = aligned(len(self.agents), *packed), aligned(len(self.agents), *packed)
        self.w = aligned(*packed)
        self.rho = np.zeros(len(runs))  # of the last round
        self.kernels = compiled()
        self.threads = threads or cores()
        self.pool = ThreadPoolExecutor(self.threads)
        first, shards = self.agents[0], [agent.shard for agent in self.runs[0]]
        self.asked = [
            LossesAndBounds([a.problem.loss for a in own], [a.variant.bound for a in own]) for own in self.agents
        ]
        losses, bounds = self.asked[0].losses, self.asked[0].bounds
        x_norm = row_norms(shards, {bound.norm for bound in bounds})
        one_pass = len(set(map(type, losses))) == 1 and len(measured_norms(bounds)) <= 1
        has_form = one_pass and all(forms.all_known(forms.of_gradient(agent)) for agent in first)
        self.gradients = choose(shards, x_norm, self.classes, len(runs), has_form)
        kept = zip(self.asked, x_norm, strict=True)
        self.constant = np.array([[constant(bound, size) for bound in asked.bounds] for asked, size in kept])
        self.fused = self.kernels is not None and all(map(fusable, first))
        self.steady = self._steady_params()
        self.kinds = np.array([isinstance(agent.variant.mechanism, Gaussian) for agent in first], np.int32)
        self.keys = np.array([[agent.key for agent in across] for across in self.agents], np.uint64)

    @property
    def path(self) -> str:
        return f"{self.gradients.name} gradient, {'fused' if self.fused else 'agent'} update, {self.threads} threads"

    def exchange_all(self, msgs: Sequence[Broadcast]) -> list[Replies]:
        spread([msg.w for msg in msgs], self.w)
        move = partial(self._fused, self._params(msgs)) if self.fused else self._one_by_one
        traces = self._over_agents(lambda p: move(p, msgs))
        mean = self._mean()
        self.rho = np.array([msg.rho for msg in msgs])
        return [
            Replies(of_run(mean, r, self.classes).copy(), partial(self._violation, r), mean_trace(own), np.float32)
            for r, own in enumerate(zip(*traces, strict=True))
        ]

    def _violation(self, r: int, w: Array) -> float:
        """sum_p |w - z_p|_1, agent after agent so that nothing of the size of all is made."""
        return sum(float(np.abs(of_run(z, r, self.classes) - w).sum(dtype=np.float64)) for z in self.z)

    def save(self, r: int = 0) -> dict[str, Array]:
        z, dual = (of_run(packed, r, self.classes).copy() for packed in (self.z, self.dual))
        return {"z": z, "dual": dual, "rho": self.rho[r : r + 1].copy()}

    def load(self, r: int, saved: dict[str, Array]) -> None:
        for packed, name in ((self.z, "z"), (self.dual, "dual")):
            of_run(packed, r, self.classes)[...] = saved[name]
        self.rho[r] = saved["rho"].item()

    def _gradient(self, p: int) -> tuple[Array, Array]:
        """Agent p's sums at each run's point of linearisation, and the bound of each run."""
        local = [agent.variant.rule.at is Point.LOCAL for agent in self.agents[p]]
        point = self.z[p] if local[0] else self.w
        if len(set(local)) > 1:
            point = self.w.copy()
            for r in (r for r, is_local in enumerate(local) if is_local):
                of_run(point, r, self.classes)[...] = of_run(self.z[p], r, self.classes)
        grad, largest = self.gradients(p, point, self.asked[p])
        return grad, np.where(self.constant[p], self.constant[p], largest)

    def _fused(self, all_params: Array, p: int, msgs: Sequence[Broadcast]) -> list[Trace]:
        """Noise, step, projection and dual in one compiled pass over agent p's arrays."""
        assert self.kernels is not None
        start = perf_counter()
        grad, bound = self._gradient(p)
        asked = perf_counter()
        params, facts = all_params[p], []
        for r, agent in enumerate(self.agents[p]):
            mu = float(params[r, RHO] + params[r, INV_ETA])
            scale = agent.variant.perturbation.scale(agent.calibration * float(bound[r]), mu)
            params[r, STEP_NOISE if isinstance(agent.variant.perturbation, Output) else SLOPE_NOISE] = scale
            facts.append((mu, scale, agent.problem.weight * agent.variant.adjacency.value * float(bound[r])))
        noise, drawing = np.zeros(len(self.runs)), np.zeros(1)  # sum |xi|, and the seconds it took
        self.kernels.update(
            grad, self.z[p], self.dual[p], self.w, params, self.keys[p], self.kinds, msgs[0].t, 0, self.classes, noise,
            drawing,
        )  # fmt: skip
        spent = perf_counter() - asked
        clock = {"gradient": asked - start, "noise": float(drawing[0]), "update": spent - float(drawing[0])}
        share = {part: spent / len(self.runs) for part, spent in clock.items()}
        numbers = zip(noise / (self.features * self.classes), facts, strict=True)
        return [Trace(xi, xi / mu, scale, sensitivity, share) for xi, (mu, scale, sensitivity) in numbers]

    def _one_by_one(self, p: int, msgs: Sequence[Broadcast]) -> list[Trace]:
        """The agents' own code, in float32, from a gradient computed for all runs."""
        start = perf_counter()
        grad, bound = self._gradient(p)
        share = (perf_counter() - start) / len(self.runs)
        traces = []
        for r, (agent, msg) in enumerate(zip(self.agents[p], msgs, strict=True)):
            z, dual = of_run(self.z[p], r, self.classes), of_run(self.dual[p], r, self.classes)
            narrow = replace(msg, w=of_run(self.w, r, self.classes))
            own = agent.caught_up(Local(z, dual, float(self.rho[r])), narrow)
            regular = agent.regular_slope(agent.variant.rule.at.of(own, narrow), narrow.w)
            slope = agent.problem.weight * of_run(grad, r, self.classes) + regular
            after, trace = agent.move(own, narrow, slope, float(bound[r]))
            z[...], dual[...] = after.z, after.dual
            traces.append(replace(trace, seconds={"gradient": share} | trace.seconds))
        return traces

    def _over_agents(self, work: Callable[[int], Any]) -> list[Any]:
        """work(p) for every agent, in a few chunks a thread, so that no thread waits long for another."""
        agents = range(len(self.agents))
        if self.threads == 1:
            return [work(p) for p in agents]
        size = max(1, len(agents) // (8 * self.threads))
        chunks = [agents[i : i + size] for i in range(0, len(agents), size)]
        done = self.pool.map(lambda chunk: [work(p) for p in chunk], chunks)
        return [trace for chunk in done for trace in chunk]

    def _mean(self) -> Array:
        """1/P sum_p z_p in float64, agents in order."""
        if self.kernels is None:
            return np.asarray(self.z.mean(0, dtype=np.float64))
        out = np.empty(self.z.shape[1:])
        cuts = np.linspace(0, out.size, self.threads + 1).astype(int)
        list(self.pool.map(partial(self.kernels.reduce, self.z, out), cuts[:-1].tolist(), cuts[1:].tolist()))
        return out

    def _steady_params(self) -> Array:
        """(P, R, 12): what does not change from round to round."""
        params = np.zeros((len(self.agents), len(self.runs), 12))
        params[:, :, RADIUS], params[:, :, LOW], params[:, :, HIGH] = np.inf, -np.inf, np.inf
        for p, r in np.ndindex(params.shape[:2]):
            own, problem, variant = params[p, r], self.runs[r][p].problem, self.runs[r][p].variant
            own[WEIGHT] = problem.weight
            total = problem.beta if variant.regularize_global else problem.regularization
            at_w = variant.regularize_global or variant.rule.at is Point.GLOBAL
            own[REG_W if at_w else REG_Z] = total * problem.regularizer.curvature
            if isinstance(problem.domain, Box):
                own[LOW], own[HIGH] = -problem.domain.radius, problem.domain.radius
        return params

    def _params(self, msgs: Sequence[Broadcast]) -> Array:
        """(P, R, 12): the numbers of one round, as the compiled update reads them."""
        params = self.steady.copy()
        for r, (run, msg) in enumerate(zip(self.runs, msgs, strict=True)):
            rule = run[0].variant.rule
            params[:, r, RHO] = msg.rho
            if isinstance(rule, Trust):
                params[:, r, RADIUS] = rule.radius(msg.t)
            else:
                params[:, r, INV_ETA] = [agent.variant.rule.stiffness(msg.rho, msg.t) - msg.rho for agent in run]
            first = run[0].variant.order is Order.WZD
            params[:, r, DUAL_AFTER if first else DUAL_BEFORE] = msg.rho if first else self.rho[r]
        return params


def fusable(agent: Agent) -> bool:
    """Whether the compiled update knows this combination: boxes only, for W and for the trust region."""
    rule = agent.variant.rule
    boxes = type(agent.problem.domain) in (Everywhere, Box) and (not isinstance(rule, Trust) or rule.norm is Norm.INF)
    return boxes and forms.all_known(forms.of_step(agent))


BUILDER = Builder(lambda runs, shape, _device: FastEngine(runs, shape))
