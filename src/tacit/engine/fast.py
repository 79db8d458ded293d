"""All agents and many runs at once, in float32: one pass over the records (engine.passes) serves every run of a batch.

Threads share out agents, or pieces of few agents. Sums over pieces and over agents keep their order, so the number of
threads never changes a result. Where the loops are compiled, an agent's sums, noise and update are one call; elsewhere,
and for the sets and norms the loops do not know, each agent moves by the same code as in the plain engine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import lru_cache, partial
from time import perf_counter
from typing import TypeVar

import numpy as np

from tacit.admm.agent import Agent
from tacit.admm.messages import Broadcast, Local, Order, Replies
from tacit.admm.rule import Output, Point, Trust
from tacit.engine.blocks import Moved, block_size
from tacit.engine.kernels import aligned, all_supported, compiled, gradient_choices, of_run, spread, step_choices, width
from tacit.engine.passes import Compiled, LossesAndBounds, Summed, choose, constant, cut, in_pieces, row_norms
from tacit.engine.registry import Agents, Builder
from tacit.machine import cores
from tacit.privacy.mechanism import Gaussian
from tacit.problem.bounds import interval
from tacit.problem.loss import Loss
from tacit.problem.sensitivity import RecordBound, measured_norms
from tacit.rounds import NUMBERS, Trace
from tacit.types import Array, Norm

S = TypeVar("S")
T = TypeVar("T")

# columns of a run's parameters, as the compiled update reads them
N_PARAMS = 13
(WEIGHT, REG_Z, REG_W, RHO, INV_ETA, RADIUS, LOW, HIGH, SLOPE_NOISE, STEP_NOISE, DUAL_BEFORE, DUAL_AFTER,
 POWER) = range(N_PARAMS)  # fmt: skip


class FastEngine:
    """R runs over the same P shards, in lockstep.

    Of agents that are spread over processes an engine has those that are here; `counts` then tells how full the records
    of all are (passes.counted), so that every process keeps records in the same form.
    """

    def __init__(
        self, runs: Sequence[Agents], shape: tuple[int, int], threads: int | None = None, counts: Array | None = None
    ) -> None:
        self.runs = tuple(tuple(run) for run in runs)
        self.agents = tuple(zip(*self.runs, strict=True))  # [p][r]
        self.features, self.classes = shape
        packed = (self.features, width(len(runs), self.classes))
        self.z, self.dual = aligned(len(self.agents), *packed), aligned(len(self.agents), *packed)
        self.w = aligned(*packed)
        for r, run in enumerate(self.runs):
            start = run[0].start(shape).z
            if start.any():  # zeros that nobody has touched take no memory
                of_run(self.z, r, self.classes)[...] = start
        self.rho = np.zeros(len(runs))  # of the last round
        self.kernels = compiled()
        self.threads = threads or cores()
        self.pool = ThreadPoolExecutor(self.threads)
        first, shards = self.agents[0], [agent.shard for agent in self.runs[0]]
        self.asked = [_asked(tuple((a.problem.loss, a.variant.bound) for a in own)) for own in self.agents]
        losses, bounds = self.asked[0].losses, self.asked[0].bounds
        x_norm = row_norms(shards, {bound.norm for bound in bounds})
        one_pass = len(set(map(type, losses))) == 1 and len(measured_norms(bounds)) <= 1
        has_form = one_pass and all(all_supported(gradient_choices(agent)) for agent in first)
        self.gradients = choose(shards, x_norm, self.classes, len(runs), has_form, counts)
        kept = zip(self.asked, x_norm, strict=True)
        self.constant = np.array([[constant(bound, size) for bound in asked.bounds] for asked, size in kept])
        self.fused = self.kernels is not None and all(map(fusable, first))
        self.local = np.array([agent.variant.rule.at is Point.LOCAL for agent in first], np.int32)
        self.kinds = np.array([isinstance(agent.variant.mechanism, Gaussian) for agent in first], np.int32)
        self.keys = np.array([[agent.stream for agent in across] for across in self.agents], np.uint64)
        self.clip = np.array([asked.clip for asked in self.asked])
        self.steady = self._steady_params()
        self.calibration = np.array([[agent.calibration for agent in across] for across in self.agents])
        self.unit_sensitivity = np.array(
            [[a.problem.weight * a.variant.adjacency.value for a in across] for across in self.agents]
        )

    @property
    def path(self) -> str:
        return f"{self.gradients.name} gradient, {'fused' if self.fused else 'agent'} update, {self.threads} threads"

    def exchange_all(self, msgs: Sequence[Broadcast]) -> list[Replies]:
        traces = self.move(msgs).traces()
        n_agents = len(self.agents)
        mean = self.total(range(n_agents), block_size(n_agents)) / n_agents
        return [
            Replies(of_run(mean, r, self.classes).copy(), partial(self._violation, r), trace, np.float32)
            for r, trace in enumerate(traces)
        ]

    def move(self, msgs: Sequence[Broadcast]) -> Moved:
        """One round of the agents here."""
        spread([msg.w for msg in msgs], self.w)
        moved = self._move_fused(msgs) if self.fused else self._move_one_by_one(msgs)
        self.rho = np.array([msg.rho for msg in msgs])
        return moved

    def total(self, agents: range, block: int, room: Array | None = None) -> Array:
        """The sum of z_p over a run of agents in float64, packed, by blocks; in `room` where there is some."""
        z, out = self.z[agents.start : agents.stop], np.empty(self.z.shape[1:]) if room is None else room
        if self.kernels is None:
            out[...] = 0
            for first in range(0, len(z), block):
                own = np.zeros_like(out)
                for each in z[first : first + block]:
                    own += each
                out += own
            return out
        total, cuts = self.kernels.total, np.linspace(0, out.size, self.threads + 1).astype(int).tolist()
        self._in_threads(lambda i: total(z, out, cuts[i], cuts[i + 1], block), range(self.threads))
        return out

    def violations(self, r: int, w: Array) -> list[float]:
        """|w - z_p|_1 of each agent here, one after another so that nothing of the size of all is made."""
        return [float(np.abs(of_run(z, r, self.classes) - w).sum(dtype=np.float64)) for z in self.z]

    def _violation(self, r: int, w: Array) -> float:
        """sum_p |w - z_p|_1."""
        return sum(self.violations(r, w))

    def save(self, r: int = 0) -> dict[str, Array]:
        z, dual = (of_run(packed, r, self.classes).copy() for packed in (self.z, self.dual))
        return {"z": z, "dual": dual, "rho": self.rho[r : r + 1].copy()}

    def load(self, r: int, saved: dict[str, Array]) -> None:
        for packed, name in ((self.z, "z"), (self.dual, "dual")):
            of_run(packed, r, self.classes)[...] = saved[name]
        self.rho[r] = saved["rho"].item()

    def _point(self, p: int) -> Array:
        """Where the gradients of agent p are asked for, each run at its own point of linearisation."""
        if self.local.all():
            return np.asarray(self.z[p])
        if not self.local.any():
            return self.w
        point = self.w.copy()
        for r in np.flatnonzero(self.local).tolist():
            of_run(point, r, self.classes)[...] = of_run(self.z[p], r, self.classes)
        return point

    def _move_fused(self, msgs: Sequence[Broadcast]) -> Moved:
        """Sums, noise, step, projection and dual, compiled."""
        kernels, gradients, asked = self.kernels, self.gradients, self.asked[0]
        assert kernels is not None
        shape = len(self.agents), len(self.runs)
        params, clock = self._params(msgs), np.zeros((shape[0], 3))
        largest = np.zeros(shape, np.float32)  # what was seen
        noise, binding = np.zeros(shape), np.zeros(shape)  # sum |xi|; how many entries a constraint stops

        def move(first: int, stop: int, sums: Array | None = None) -> None:
            kernels.move(
                gradients.records if sums is None and isinstance(gradients, Compiled) else (), shape[0], first, stop,
                msgs[0].t, self.classes, asked.squared, asked.order, self.local, self.kinds, self.w, self.z, self.dual,
                params, self.constant, self.keys, self.clip, sums, largest, noise, binding, clock,
            )  # fmt: skip

        def move_from(p: int, own: Summed) -> None:
            largest[p], clock[p, 0] = own.largest, own.seconds
            move(p, p + 1, own.sums[None])

        if cut(gradients, shape[0], self.threads, self.w):
            points = [self._point(p) for p in range(shape[0])]
            summed = in_pieces(gradients, points, self.asked, self._in_threads)
            self._over_agents(lambda p: move_from(p, summed[p]))
        elif isinstance(gradients, Compiled):
            size = max(1, shape[0] // (8 * self.threads))  # a few ranges a thread, so that none waits long for another
            self._in_threads(lambda first: move(first, min(first + size, shape[0])), range(0, shape[0], size))
        else:
            self._over_agents(lambda p: move_from(p, self._summed(p)))
        mu = params[:, :, RHO] + params[:, :, INV_ETA]
        bound = np.where(self.constant, self.constant, largest)
        noise_scale = (params[:, :, SLOPE_NOISE] + params[:, :, STEP_NOISE]) * bound ** params[:, :, POWER]
        entries = self.features * self.classes
        noise /= entries
        columns = np.stack([noise, noise / mu, noise_scale, self.unit_sensitivity * bound, binding / entries])
        seconds = dict(zip(("gradient", "noise", "update"), (clock.sum(0) / shape[1]).tolist(), strict=True))
        return Moved(columns, seconds, fused=True)

    def _move_one_by_one(self, msgs: Sequence[Broadcast]) -> Moved:
        """The agents' own code, in float32, from a gradient computed for all runs."""
        traces = self._over_agents(lambda p: self._own_code(p, msgs))  # [p][r]
        numbers = [[[getattr(trace, name) for name in NUMBERS] for trace in own] for own in traces]
        parts = {
            part: sum(trace.seconds[part] for own in traces for trace in own) / len(msgs)
            for part in traces[0][0].seconds
        }
        return Moved(np.array(numbers, np.float64).transpose(2, 0, 1).copy(), parts, fused=False)

    def _summed(self, p: int) -> Summed:
        start = perf_counter()
        sums, largest = self.gradients(p, self._point(p), self.asked[p])
        return Summed(sums, largest, perf_counter() - start)

    def _own_code(self, p: int, msgs: Sequence[Broadcast]) -> list[Trace]:
        summed, traces = self._summed(p), []
        bound = np.where(self.constant[p], self.constant[p], summed.largest)
        for r, (agent, msg) in enumerate(zip(self.agents[p], msgs, strict=True)):
            z, dual = of_run(self.z[p], r, self.classes), of_run(self.dual[p], r, self.classes)
            narrow = replace(msg, w=of_run(self.w, r, self.classes))
            own = agent.caught_up(Local(z, dual, float(self.rho[r])), narrow)
            regular = agent.regular_slope(agent.variant.rule.at.of(own, narrow), narrow.w)
            slope = agent.problem.weight * of_run(summed.sums, r, self.classes) + regular
            after, trace = agent.move(own, narrow, slope, float(bound[r]))
            z[...], dual[...] = after.z, after.dual
            traces.append(replace(trace, seconds={"gradient": summed.seconds / len(self.runs)} | trace.seconds))
        return traces

    def _over_agents(self, work: Callable[[int], T]) -> list[T]:
        """work(p) for every agent, in a few chunks a thread, so that no thread waits long for another."""
        agents = range(len(self.agents))
        size = max(1, len(agents) // (8 * self.threads))
        chunks = [agents[i : i + size] for i in agents[::size]]
        return [done for chunk in self._in_threads(lambda chunk: [work(p) for p in chunk], chunks) for done in chunk]

    def _in_threads(self, work: Callable[[S], T], tasks: Sequence[S]) -> list[T]:
        """work(task) for all tasks, in order."""
        return [work(task) for task in tasks] if self.threads == 1 else list(self.pool.map(work, tasks))

    def _steady_params(self) -> Array:
        """(P, R, 13): what does not change from round to round."""
        params = np.zeros((len(self.agents), len(self.runs), N_PARAMS))
        params[:, :, RADIUS], params[:, :, LOW], params[:, :, HIGH] = np.inf, -np.inf, np.inf
        for p, r in np.ndindex(params.shape[:2]):
            own, problem, variant = params[p, r], self.runs[r][p].problem, self.runs[r][p].variant
            own[WEIGHT] = problem.weight
            total = problem.beta if variant.regularize_global else problem.regularization
            at_w = variant.regularize_global or variant.rule.at is Point.GLOBAL
            own[REG_W if at_w else REG_Z] = total * problem.regularizer.curvature
            own[POWER] = 2 if isinstance(variant.perturbation, Output) and variant.perturbation.squared else 1
            own[LOW], own[HIGH] = interval(problem.domain) or (-np.inf, np.inf)
        return params

    def _params(self, msgs: Sequence[Broadcast]) -> Array:
        """(P, R, 13): the numbers of one round, as the compiled update reads them; noise is for a bound of one."""
        params = self.steady.copy()
        for r, (run, msg) in enumerate(zip(self.runs, msgs, strict=True)):
            own, rule = params[:, r], run[0].variant.rule
            own[:, RHO] = msg.rho
            if isinstance(rule, Trust):
                own[:, RADIUS] = rule.radius(msg.t)
            elif all(agent.variant.rule is rule for agent in run):
                own[:, INV_ETA] = rule.stiffness(msg.rho, msg.t) - msg.rho
            else:
                own[:, INV_ETA] = [agent.variant.rule.stiffness(msg.rho, msg.t) - msg.rho for agent in run]
            mu, power = own[:, RHO] + own[:, INV_ETA], own[:, POWER]
            kind = STEP_NOISE if isinstance(run[0].variant.perturbation, Output) else SLOPE_NOISE
            own[:, kind] = self.calibration[:, r] ** power / mu ** (power - 1)  # admm.rule: s, or s^2 / mu
            first = run[0].variant.order is Order.WZD
            own[:, DUAL_AFTER if first else DUAL_BEFORE] = msg.rho if first else self.rho[r]
        return params


@lru_cache(maxsize=64)
def _asked(of_runs: tuple[tuple[Loss, RecordBound], ...]) -> LossesAndBounds:
    """What an agent is asked; agents that are asked the same share it."""
    return LossesAndBounds([loss for loss, _ in of_runs], [bound for _, bound in of_runs])


def fusable(agent: Agent) -> bool:
    """Whether the compiled update knows this combination: boxes only, for W and for the trust region."""
    rule = agent.variant.rule
    boxes = interval(agent.problem.domain) is not None and (not isinstance(rule, Trust) or rule.norm is Norm.INF)
    return boxes and all_supported(step_choices(agent))


BUILDER = Builder(lambda runs, shape, _device: FastEngine(runs, shape))
