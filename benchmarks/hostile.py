"""How far one hostile agent of ten moves a model, with the server's check (tacit.run.plausible) and without it.

    python -m benchmarks.hostile                        MNIST, epsilon 1: a table of test errors, means of three runs
    python -m benchmarks.hostile --algorithm objt-laplace --runs 1
    python -m benchmarks.hostile --data synthetic --epsilon 10 --rounds 20

    honest      every agent is honest
    garbage     numbers of size 1e30, of random signs
    far         a thousand times the threshold of the check, against the sum of what all others send
    near        just below the threshold, in the same direction
    one class   just below the threshold, in every round towards the first class
    claims      the same, from an agent that declares five times the records that it has
    labels      an honest agent whose records have the label of the next class

The agents are deployed, with noise of the operating system. The server treats an answer that it refuses as a federation
does: as missing. "near" needs to know what the others send, which an agent does not: no agent can do as much.
"""

from __future__ import annotations

import argparse
import statistics
import warnings
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from tacit.admm.messages import Broadcast
from tacit.run import build, deploy
from tacit.run.asking import Lane, ReceivedAnswer, apply_answers
from tacit.run.plausible import threshold, why_implausible
from tacit.run.presets import fitted_to, preset
from tacit.run.run import Run
from tacit.run.train import together
from tacit.types import Array, Federation

HOSTILE = 0  # the agent
CLAIMED = 5  # times its records, in "claims"
Attack = Callable[[Array, Array, float], Array]  # (its honest answer, the sum of the others', the threshold) -> sent


def against(share: float, own: Array, others: Array, most: float) -> Array:
    """Return an answer of a share of the threshold, in the direction that undoes the others' answers."""
    return (-share * most / max(float(np.linalg.norm(others)), 1e-300) * others).reshape(own.shape)


def one_class(own: Array, _others: Array, most: float) -> Array:
    """Return the gradient that raises the scores of the first class at all records."""
    gradient = np.zeros_like(own)
    gradient[..., 0] = -1.0
    return 0.999 * most / float(np.linalg.norm(gradient)) * gradient


ATTACKS: dict[str, Attack] = {
    "honest": lambda own, _others, _most: own,
    "garbage": lambda own, _others, _most: 1e30 * np.random.default_rng().choice([-1.0, 1.0], own.shape),
    "far": partial(against, 1000.0),
    "near": partial(against, 0.999),
    "one class": one_class,
    "claims": one_class,
    "labels": lambda own, _others, _most: own,
}


@dataclass(eq=False)
class Server:
    """The engine of one run: it asks all agents, and an answer that it refuses is missing."""

    lane: Lane
    attack: Attack
    checks: bool
    path: str = "hostile"

    def __post_init__(self) -> None:
        self.accepted = np.zeros(len(self.lane.agents), np.int64)

    def exchange_all(self, msgs: Sequence[Broadcast]) -> list[Any]:
        """Compute one round."""
        ((msg,), lane, of) = (msgs, self.lane, self.lane.deployment)
        asked = zip(lane.agents, lane.questions(msg), strict=True)
        values = [agent.answer(question).value for agent, question in asked]
        own = of.agreements[HOSTILE]
        most = threshold(own.at(msg.t), own.adjacency, of.records[HOSTILE], len(of.records) * own.rounds)
        values[HOSTILE] = self.attack(values[HOSTILE], np.sum(values[1:], axis=0), most)
        taken = [
            ReceivedAnswer(p, msg, value) for p, value in enumerate(values)
            if not (self.checks and why_implausible(of, p, msg.t, value))
        ]  # fmt: skip
        before, self.accepted[[one.p for one in taken]] = self.accepted.copy(), msg.t
        in_step = bool((self.accepted == msg.t).all() and (before == msg.t - 1).all())
        return [apply_answers(lane.program, of, msg, taken, {}, in_step=in_step)]

    def save(self, _r: int) -> dict[str, Array]:
        """Return what `load` needs."""
        return self.lane.program.save()

    def load(self, _r: int, saved: dict[str, Array]) -> None:
        """Continue from what `save` returned."""
        self.lane.program.load(saved)


def deceived(over: Federation, kind: str) -> Federation:
    """Return the federation with the records that its hostile agent declares."""
    own = over.shards[HOSTILE]
    if kind == "labels":
        own = replace(own, y=(own.y + 1) % over.n_classes)
    if kind == "claims":
        x, y = (np.concatenate([part, np.zeros_like(np.repeat(part, CLAIMED - 1, axis=0))]) for part in (own.x, own.y))
        own = replace(own, x=x, y=y, present=np.arange(len(x)) < len(own.x))
    return replace(over, shards=(own, *over.shards[1:]))


def error(values: dict[str, Any], over: Federation, kind: str, checks: bool) -> float:
    """Return the test error of one run in which an agent is hostile."""
    over = deceived(over, kind)
    spec = fitted_to(over, preset("sound", values["algorithm.name"], values["data.source"]).with_values(values))
    run = Run(spec, over, build.setup(spec, over))

    def host(_runs: Sequence[Run], files: ExitStack) -> Server:
        agents = deploy.deployed(spec, run.setup, over, None, False, files)
        lane = deploy.lane(spec, run.setup, over, agents)
        return Server(replace(lane, program=run.setup.deployment.program(True)), ATTACKS[kind], checks)

    return float(together([run], host=host)[0].summary["test_error"])


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the mean test error of each attack, without and with the check."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.hostile")
    options.add_argument("--data", default="mnist")
    options.add_argument("--algorithm", default="objt")
    options.add_argument("--epsilon", type=float, default=1.0)
    options.add_argument("--rounds", type=int)
    options.add_argument("--runs", type=int, default=3)
    given = options.parse_args(arguments)
    values = {"data.source": given.data, "data.agents": 10, "algorithm.name": given.algorithm}
    values |= {"privacy.epsilon": given.epsilon, "privacy.noise": "exact"}
    values |= {} if given.rounds is None else {"run.rounds": given.rounds}
    warnings.simplefilter("ignore")
    over = build.federation(preset("sound", given.algorithm, given.data).with_values(values))
    print(f"{given.data}, {given.algorithm}, epsilon {given.epsilon:g}, test error, mean of {given.runs}")
    print(f"{'one agent of ten':18}{'without the check':>18}{'with it':>10}")
    for kind in ATTACKS:
        means = [statistics.mean(error(values, over, kind, on) for _ in range(given.runs)) for on in (False, True)]
        print(f"{kind:18}{means[0]:18.2%}{means[1]:10.2%}", flush=True)


if __name__ == "__main__":
    main()
