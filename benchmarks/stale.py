"""What becomes of a model when agents miss rounds, by five rules of what stands in for a missing agent; all are free.

    gradient   its last noisy gradient, z_p = w + (lambda_p - slope_p) / rho    (tacit.federation.account)
    fading     the same, halved with every round that the agent misses
    mean       a mean of its noisy gradients, in which each counts 0.8 of the next
    z          its last z_p and lambda_p, as they were
    zero       a gradient of zero

    python -m benchmarks.stale                     writes benchmarks/stale.jsonl and prints a table of means over seeds
    python -m benchmarks.stale --data heart --rounds 20 --seeds 1 --out /dev/null

The sound preset on the bundled data, all in one process, simulated noise: the same for all rules, and so are absences.
Steps are those of the preset, or four times as long.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from tacit.admm.agent import Agent
from tacit.admm.messages import Broadcast, Local, Replies
from tacit.engine.evaluate import measures
from tacit.federation.account import Account, Taken
from tacit.rounds import Trace
from tacit.run import build
from tacit.run.compose import AdmmSetup
from tacit.run.presets import preset
from tacit.run.run import objective
from tacit.types import Array, Federation

OUT = Path(__file__).with_name("stale.jsonl")
RULES = ("gradient", "fading", "mean", "z", "zero")
KEPT = 0.8  # of a mean, in the next
ABSENCES = ("nobody", "10 %", "30 %", "a third of the run")
STEPS = (1, 4)
TRACE = Trace(0.0, 0.0, 0.0, 0.0, {})


def absent(kind: str, rounds: int, agents: int, seed: int) -> Array:
    """Return who misses which round, (T + 1, P); the first agent has the long absence."""
    found = np.zeros((rounds + 1, agents), bool)
    if kind == "a third of the run":
        found[rounds // 3 : 2 * rounds // 3, 0] = True
    elif kind != "nobody":
        share = float(kind.removesuffix("%")) / 100
        found = np.random.default_rng((seed, agents)).random(found.shape) < share
    return found


def answer(agent: Agent, account: Account, p: int, msg: Broadcast) -> Taken:
    """Return what agent p releases, from the state that both sides have of it."""
    own = agent.caught_up(Local(account.z[p], account.dual[p], float(account.rho[p])), msg)
    w = msg.w.astype(np.float32)  # as the records are: one pass over them in float32
    slope, bound = agent.gradient(w, w)
    after, _ = agent.move(own, msg, slope.astype(np.float64), bound)
    return Taken(p, msg.t, msg.w, msg.rho, after.z)


def replies(rule: str, account: Account, before: Account, msg: Broadcast, mean: Array) -> Replies:
    """Return what the server concludes the round with, by a rule for the agents that did not answer."""
    fresh = account.accepted == msg.t
    share = {"fading": 0.5 ** (msg.t - account.accepted), "zero": fresh}.get(rule, np.ones(len(fresh)))
    slope = mean if rule == "mean" else share[:, None, None] * account.slope
    account = account.load({**account.save(), "slope": slope})
    if rule == "z" and not fresh.all():
        return Replies(account.z.mean(0), lambda _: 0.0, TRACE, dual_mean=account.dual.mean(0))
    return account.replies(msg.t, msg.w, msg.rho, TRACE, before)


def trained(setup: AdmmSetup, rule: str, away: Array) -> Array:
    """Return the last model of a run in which agents are away."""
    server = setup.server
    state, account = server.start(), Account.zero(len(setup.agents), setup.shape, server.order)
    mean = account.slope
    while state.t < server.rounds:
        msg = server.ask(state)
        there = [p for p in range(len(setup.agents)) if not away[msg.t, p]]
        after = account.after([answer(setup.agents[p], account, p, msg) for p in there])
        fresh, first = (which[:, None, None] for which in (after.accepted == msg.t, account.accepted == 0))
        mean = np.where(fresh, np.where(first, after.slope, KEPT * mean + (1 - KEPT) * after.slope), mean)
        state, _ = server.conclude(state, msg, replies(rule, after, account, msg, mean))
        account = after
    return np.asarray(setup.problem.domain.project(state.w))


def rows(data: str, rounds: int, seeds: int) -> Iterator[dict[str, Any]]:
    """Yield the outcome of every run on one data set."""
    usual = preset("sound", "objt", data).with_values({"run.rounds": rounds})
    federation = build.federation(usual)
    for steps in STEPS:
        for seed in range(seeds):
            spec = usual.with_values({"run.seed": seed, "schedule.rho_factor": 1 / steps})
            setup = build.admm_setup(spec, federation)
            for kind in ABSENCES:
                away = absent(kind, rounds, federation.n_agents, seed)
                for rule in RULES if kind != "nobody" else ("gradient",):
                    told = {"data": data, "rounds": rounds, "steps": steps, "absence": kind, "rule": rule, "seed": seed}
                    yield told | judged(trained(setup, rule, away), setup, federation)


def judged(w: Array, setup: AdmmSetup, federation: Federation) -> dict[str, Any]:
    """Return the test error of a model, and its objective over all records."""
    with np.errstate(all="ignore"):
        value = objective(w, setup, federation)
        error = measures(w, federation.test, federation.target)["test_error"]
    return {"test_error": None if error is None else round(error, 5), "objective": value and round(value, 5)}


def table(found: Sequence[dict[str, Any]]) -> list[str]:
    """Return the means over seeds as a table in Markdown."""
    lines = ["| data | steps | missing | rule | test error | objective |", "|---|---|---|---|---|---|"]

    def case(row: dict[str, Any]) -> tuple[Any, ...]:
        return row["data"], row["steps"], ABSENCES.index(row["absence"]), RULES.index(row["rule"])

    for key, group in groupby(sorted(found, key=case), case):
        some = list(group)
        error, value = (statistics.mean(row[name] for row in some) for name in ("test_error", "objective"))
        data, steps, kind, rule = key
        who = RULES[rule] if kind else "-"
        lines.append(f"| {data} | {steps} x | {ABSENCES[kind]} | {who} | {100 * error:.2f} % | {value:.4f} |")
    return lines


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", nargs="+", default=["mnist", "heart"])
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args(arguments)
    found = []
    for data in options.data:
        for row in rows(data, options.rounds, options.seeds):
            print(json.dumps(row), flush=True)
            found.append(row)
    options.out.write_text("".join(json.dumps(row) + "\n" for row in found))
    print("\n".join(table(found)))


if __name__ == "__main__":
    main()
