"""How far rounding moves runs of the `paper` preset on the bundled MNIST (docs/reproduction.md, *Precision*).

    python -m benchmarks.rounding                      ObjT: relative distances of w from the plain engine's
    python -m benchmarks.rounding --preset released    the same with the constant radius of the released code
    python -m benchmarks.rounding --allowance          OutP: what its allowance for float32 changes
    python -m benchmarks.rounding --records 200 --rounds 20 80 --epsilon 1

The reference is the plain engine, which computes in float64; for OutP with Huang's formulas as they are. Every other
run but that of the fast engine is in float64 too, and rounds what its line names to float32 in every round.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from tacit.admm.agent import ROUNDING, Agent
from tacit.admm.rule import Prox
from tacit.engine.fast import FastEngine
from tacit.engine.plain import PlainEngine
from tacit.problem.sensitivity import ROOM, Declared
from tacit.rounds import rounds as loop
from tacit.run import build, evaluation
from tacit.run.presets import preset
from tacit.run.setup import Setup
from tacit.schedule import HuangStep, Scaled
from tacit.types import Array, Federation, Shard

CHANGE = 1e-10  # relative, of z after the first round
After = Callable[[PlainEngine, int], None]


class Seen(NamedTuple):
    """What a round leaves: w, and the share of the entries of z that the trust region stops."""

    w: Array
    binding: float


Rounds = dict[int, Seen]


@dataclass(frozen=True, eq=False)
class Float32Gradients(Agent):
    """An agent in float64 whose gradients are rounded to float32."""

    def gradient(self, u: Array, w: Array) -> tuple[Array, float]:
        gradient, bound = super().gradient(u, w)
        return _narrow(gradient), bound


def seen(engine: PlainEngine | FastEngine, setup: Setup, at: Sequence[int], after: After | None = None) -> Rounds:
    """Return what the rounds `at` leave; `after` may change what the agents carry, after every round."""
    server, found = replace(setup.consensus, rounds=max(at)), {}
    for ((state, info),) in loop([server], [server.start()], engine.exchange_all):
        if after is not None:
            assert isinstance(engine, PlainEngine)
            after(engine, state.t)
        if state.t in at:
            found[state.t] = Seen(state.w, info.trace.binding if info.trace else 0.0)
    return found


def rounded(*names: str) -> After:
    """Return what rounds z, dual or both of every agent to float32."""

    def after(engine: PlainEngine, _t: int) -> None:
        engine.locals[0] = [
            replace(own, **{name: _narrow(getattr(own, name)) for name in names}) for own in engine.locals[0]
        ]

    return after


def disturbed(engine: PlainEngine, t: int) -> None:
    """Change z of every agent by CHANGE times a standard normal number, after the first round."""
    if t == 1:
        draw = np.random.default_rng(0).standard_normal
        engine.locals[0] = [replace(own, z=own.z * (1 + CHANGE * draw(own.z.shape))) for own in engine.locals[0]]


def objt(setup: Setup, at: Sequence[int]) -> tuple[Rounds, dict[str, Rounds]]:
    """Return a run of the plain engine, and runs that round, by name."""

    def plain(after: After | None = None, agents: Sequence[Agent] = setup.agents) -> Rounds:
        return seen(PlainEngine([agents], setup.shape), setup, at, after)

    narrow = [Float32Gradients(one.shard, one.problem, one.variant, one.key) for one in setup.agents]
    return plain(), {
        "the fast engine": seen(FastEngine([setup.agents], setup.shape), setup, at),
        "float32 duals": plain(rounded("dual")),
        "float32 z": plain(rounded("z")),
        "float32 gradients": plain(agents=narrow),
        f"no float32, z_1 (1 + {CHANGE:g} xi)": plain(disturbed),
    }


def without_allowance(agent: Agent) -> Agent:
    """Return an agent of `paper` OutP with the noise, the bound and eta that Huang's formulas give."""
    own = agent.variant
    assert isinstance(own.bound, Declared)
    assert isinstance(own.rule, Prox)
    assert isinstance(own.rule.eta, Scaled)
    assert isinstance(own.rule.eta.schedule, HuangStep)
    step = replace(own.rule.eta.schedule, noise=own.rule.eta.schedule.noise * ROOM)
    quiet = replace(own.mechanism, multiplier=own.mechanism.multiplier / (1 + ROUNDING * len(agent.shard)))
    rule = replace(own.rule, eta=replace(own.rule.eta, schedule=step))
    return replace(agent, variant=replace(
        own, rule=rule, mechanism=quiet, bound=replace(own.bound, value=own.bound.value * ROOM)
    ))  # fmt: skip


def distance(one: Seen, other: Seen) -> float:
    """Return how far w of one is from that of the other, relative to the latter."""
    return float(np.linalg.norm(one.w - other.w) / np.linalg.norm(other.w))


def _narrow(values: Array) -> Array:
    return values.astype(np.float32).astype(np.float64)


def _error(one: Seen, setup: Setup, federation: Federation) -> float:
    return evaluation.measures(one.w, federation, setup.problem.loss)["test_error"] or 0.0


def main(argv: Sequence[str] | None = None) -> int:
    """Print a line for each run, with a column for each round."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.rounding", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--preset", default="paper", choices=("paper", "released"), help="of ObjT (default paper)")
    parser.add_argument("--allowance", action="store_true", help="OutP with and without its allowance for float32")
    parser.add_argument("--records", type=int, default=1000, metavar="N", help="records per agent (default 1000)")
    parser.add_argument("--rounds", type=int, nargs="+", default=[20, 40, 80, 150], metavar="T")
    parser.add_argument("--epsilon", type=float, default=0.05, help="per round (default 0.05)")
    options = parser.parse_args(argv)
    if options.records < 1 or min(options.rounds) < 2:
        parser.error("take one record or more, and two rounds or more: ObjT's w is zero in the first.")
    spec = preset("paper", "outp") if options.allowance else preset(options.preset, "objt")
    spec = spec.with_values({"privacy.epsilon": options.epsilon, "run.seed": 0})
    n = options.records
    whole = build.federation(spec)
    federation = replace(whole, shards=tuple(Shard(shard.x[:n], shard.y[:n]) for shard in whole.shards))
    setup, at = build.admm_setup(spec, federation), sorted(options.rounds)
    if options.allowance:
        literal = [without_allowance(agent) for agent in setup.agents]
        exact = seen(PlainEngine([literal], setup.shape), setup, at)
        found = {"with the allowance": seen(PlainEngine([setup.agents], setup.shape), setup, at)}
    else:
        exact, found = objt(setup, at)
    print(f"{'rounds':<34}", *(f"{t:>9}" for t in at))
    for name, own in found.items():
        print(f"{name:<34}", *(f"{distance(own[t], exact[t]):9.1e}" for t in at))
    print(f"{'entries stopped, reference':<34}", *(f"{exact[t].binding:9.1%}" for t in at))
    print(f"{'test error, reference':<34}", *(f"{_error(exact[t], setup, federation):9.2%}" for t in at))
    name, own = next(iter(found.items()))
    print(f"{'test error, ' + name:<34}", *(f"{_error(own[t], setup, federation):9.2%}" for t in at))
    return 0


if __name__ == "__main__":
    sys.exit(main())
