"""What becomes of a model when agents miss rounds, by four rules of what stands in for a missing agent; all are free.

    fading     its last noisy gradient, halved with every round that the agent misses (tacit.admm.local_models)
    gradient   the same, not halved
    z          its last z_p and lambda_p, as they were
    zero       a gradient of zero

    python -m benchmarks.stale                     a table of means over seeds
    python -m benchmarks.stale --data heart --epsilon 1 10 --out rows.jsonl
    python -m benchmarks.stale --data "mnist, skewed" --epsilon 1 10 --steps 1 --seeds 1

The sound preset on the bundled data, all in one process, simulated noise: the same for all rules, and so are absences.
Steps are those of the preset, or four times as long.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Iterator, Sequence
from itertools import groupby, product
from pathlib import Path
from typing import Any

import numpy as np

from tacit.admm.agent import Agent
from tacit.admm.local_models import LocalModels
from tacit.admm.messages import Broadcast, Replies
from tacit.engine.evaluate import measures
from tacit.query.query import Value
from tacit.rounds import FADING, Spread, Trace
from tacit.run import build, deploy
from tacit.run.presets import preset
from tacit.run.run import objective
from tacit.run.setup import Setup
from tacit.types import Array, Federation

RULES = ("fading", "gradient", "z", "zero")
ABSENCES = ("nobody", "10 %", "30 %", "a third of the run")
DATA: dict[str, dict[str, Any]] = {
    "mnist": {"data.source": "mnist"},
    "mnist, skewed": {"data.source": "mnist", "data.partition": "dirichlet", "data.alpha": 0.1},
    "heart": {"data.source": "heart"},
}
STEPS = (1, 4)
TRACE = Trace(0.0, 0.0, 0.0, 0.0, None, {})


def absent(kind: str, rounds: int, agents: int, seed: int) -> Array:
    """Return who misses which round, (T + 1, P); the first agent has the long absence."""
    found = np.zeros((rounds + 1, agents), bool)
    if kind == "a third of the run":
        found[rounds // 3 : 2 * rounds // 3, 0] = True
    elif kind != "nobody":
        share = float(kind.removesuffix("%")) / 100
        found = np.random.default_rng((seed, agents)).random(found.shape) < share
    return found


def answer(agent: Agent, value: Value, msg: Broadcast) -> Array:
    """Return what an agent answers: its gradient at w, with simulated noise."""
    slope = value({"point": msg.w})
    noise = agent.variant.mechanism.sample(agent.stream, msg.t, 0, slope.shape).astype(slope.dtype)
    return np.asarray(slope + agent.calibration * agent.constant_bound * noise)


def replies(rule: str, local: LocalModels, msg: Broadcast, spreads: Sequence[Spread], in_step: bool) -> Replies:
    """Return what the server concludes the round with, by a rule for the agents that did not answer."""
    fresh, kept = local.accepted == msg.t, local.slope
    if rule == "z" and not fresh.all():
        return Replies(local.z.mean(0), lambda _: 0.0, TRACE, dual_mean=local.dual.mean(0))
    unfaded = FADING ** (local.accepted - msg.t)  # takes back what the local models will do
    share = {"gradient": unfaded, "zero": fresh}.get(rule, np.ones(len(fresh)))
    assert kept is not None, "agents may be missing"
    local.slope = share[:, None, None] * kept
    found = local.replies(msg, spreads, {}, in_step)
    local.slope = kept
    return found


def trained(setup: Setup, values: Sequence[Value], rule: str, away: Array) -> Array:
    """Return the last model of a run in which agents are away."""
    server, deployment, agents = setup.consensus, setup.deployment, setup.agents
    state, local, all_there = server.start(), LocalModels(agents, setup.shape, len(agents), fades=True), True
    while state.t < server.rounds:
        msg, before = server.ask(state), all_there
        for p in np.flatnonzero(~away[msg.t]).tolist():
            local.move(p, msg, answer(agents[p], values[p], msg))
        all_there = not away[msg.t].any()
        state, _ = server.conclude(
            state, msg, replies(rule, local, msg, deployment.spreads(msg.t), before and all_there)
        )
    return np.asarray(setup.problem.domain.project(state.w))


def rows(data: str, epsilon: float, rounds: int, seeds: int, all_steps: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Yield the outcome of every run on one data set."""
    chosen = DATA[data] | {"run.rounds": rounds, "privacy.epsilon": epsilon}
    usual = preset("sound", "objt", str(chosen["data.source"])).with_values(chosen)
    federation = build.federation(usual)
    values: list[Value] = []
    for steps in all_steps:
        for seed in range(seeds):
            spec = usual.with_values({"run.seed": seed, "schedule.rho_factor": 1 / steps})
            setup = build.admm_setup(spec, federation)
            values = values or gradients(setup)  # the same for all
            for kind in ABSENCES:
                away = absent(kind, rounds, federation.n_agents, seed)
                for rule in RULES if kind != "nobody" else RULES[:1]:
                    told = {"data": data, "epsilon": epsilon, "rounds": rounds, "steps": steps, "absence": kind}
                    w = trained(setup, values, rule, away)
                    yield told | {"rule": rule, "seed": seed} | judged(w, setup, federation)


def gradients(setup: Setup) -> list[Value]:
    """Return what the records of each agent add to the slope at a model, as deployed agents compute it."""
    agreements = setup.deployment.agreements
    return [
        deploy.queries_of(own, agent.shard)[0].value for own, agent in zip(agreements, setup.agents, strict=True)
    ]


def judged(w: Array, setup: Setup, federation: Federation) -> dict[str, Any]:
    """Return the test error of a model, and its objective over all records."""
    with np.errstate(all="ignore"):
        value = objective(w, setup, federation)
        error = measures(w, federation.test, federation.target)["test_error"]
    return {"test_error": None if error is None else round(error, 5), "objective": value and round(value, 5)}


def table(found: Sequence[dict[str, Any]]) -> list[str]:
    """Return the means over seeds as a table in Markdown."""
    lines = ["| data | epsilon | steps | missing | rule | test error | objective |", "|---|---|---|---|---|---|---|"]

    def case(row: dict[str, Any]) -> tuple[Any, ...]:
        return row["data"], row["epsilon"], row["steps"], ABSENCES.index(row["absence"]), RULES.index(row["rule"])

    for key, group in groupby(sorted(found, key=case), case):
        some = list(group)
        error, value = (statistics.mean(row[name] for row in some) for name in ("test_error", "objective"))
        data, epsilon, steps, kind, rule = key
        who = RULES[rule] if kind else "-"
        case_of = f"{data} | {epsilon:g} | {steps} x | {ABSENCES[kind]} | {who}"
        lines.append(f"| {case_of} | {100 * error:.2f} % | {value:.4f} |")
    return lines


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", nargs="+", default=["mnist", "heart"], choices=DATA)
    parser.add_argument("--epsilon", nargs="+", type=float, default=[1.0])
    parser.add_argument("--steps", nargs="+", type=int, default=STEPS)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, help="a file for the rows, as JSON lines")
    options = parser.parse_args(arguments)
    found = []
    for data, epsilon in product(options.data, options.epsilon):
        for row in rows(data, epsilon, options.rounds, options.seeds, options.steps):
            print(json.dumps(row), flush=True)
            found.append(row)
    if options.out:
        options.out.write_text("".join(json.dumps(row) + "\n" for row in found))
    print("\n".join(table(found)))


if __name__ == "__main__":
    main()
