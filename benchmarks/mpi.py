"""python -m benchmarks.mpi: what a round costs over the ranks of MPI, beside the same round in one process.

Two ranks of one thread each, started by mpiexec, take turns: one process alone with one thread, one rank by way of MPI,
and both ranks. Ratios are of turns that follow one another, and their median counts. The terms of a cost model are
measured in the same job; `model` is what they say of 10^4 and 10^6 agents, and it is a model.

    overhead      a round of one rank by way of MPI, over a round in process
    efficiency    a round in one process, over twice a round on two ranks: 1 would be perfect
    by CPU time   the same where other programs take the cores: what the busier rank computes, in CPU time, and the
                  least time that its messages took
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks import instances, machine
from tacit.admm.messages import Broadcast
from tacit.engine.blocks import block_size, parts, shares
from tacit.engine.fast import FastEngine
from tacit.run.build import admm_setup
from tacit.run.spec import Spec
from tacit.types import Federation, Shard

HERE = Path(__file__).parent
RESULTS = HERE / "mpi.jsonl"
DOCUMENT = HERE.parent / "docs" / "mpi.md"
BEGIN, END = "<!-- python -m benchmarks.mpi --write -->", "<!-- end -->"
INSTANCES: dict[str, Callable[[], tuple[Spec, Federation]]] = {
    "FEMNIST-shaped, 195 agents": lambda: instances.femnist("femnist195"),
    "10^6 records x 30, 10 agents": lambda: instances.dense("table30"),
    "MNIST-shaped, 10 agents": lambda: (
        instances.SPEC, instances.pixels(10, 60_000, 784, 10, density=0.19)
    ),
}  # fmt: skip
SHAPE = (784, 10)  # of the model's instances
RECORDS = 60  # of an agent there


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mpi", description="A round over the ranks of MPI.")
    parser.add_argument("--seconds", type=float, default=30.0, help="for the turns of each instance (default 30)")
    parser.add_argument("--rank", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--write", action="store_true", help="measure nothing: put the last results into docs/mpi.md")
    options = parser.parse_args(argv)
    if options.rank:
        return _rank(options.seconds)
    if options.write:
        last = json.loads(RESULTS.read_text().splitlines()[-1])
        before, _, rest = DOCUMENT.read_text().partition(BEGIN)
        DOCUMENT.write_text(f"{before}{BEGIN}\n{markdown(last)}\n{END}{rest.partition(END)[2]}")
        return 0
    beside = Path(sys.executable).parent / "mpiexec"
    mpiexec = str(beside) if beside.exists() else shutil.which("mpiexec")
    if mpiexec is None:
        parser.error("there is no mpiexec: pip install --editable '.[mpi]'")
    as_root = {f"{what}_ALLOW_RUN_AS_ROOT{sure}": "1" for what in ("OMPI", "PRTE") for sure in ("", "_CONFIRM")}
    threads = {"TACIT_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [mpiexec, "-n", "2", "--map-by", ":OVERSUBSCRIBE", "--bind-to", "none", sys.executable, "-m",
               "benchmarks.mpi", "--rank", "--seconds", str(options.seconds)]  # fmt: skip
    done = subprocess.run(
        command, env=os.environ | as_root | threads, stdout=subprocess.PIPE, text=True, cwd=HERE.parent, check=True
    )
    results = json.loads(done.stdout.splitlines()[-1])
    with RESULTS.open("a") as file:
        file.write(json.dumps(results) + "\n")
    print(markdown(results))
    return 0


# --- on a rank


def _rank(seconds: float) -> int:
    from tacit.engine import mpi

    team, start = mpi.team(), machine.facts()
    found: dict[str, Any] = {"machine": start, "instances": {}}
    for name, load in INSTANCES.items():
        spec, federation = load()
        told = turns(team, spec, federation, seconds)
        found["instances"][name] = told
        if team.leads:
            print(name, told, file=sys.stderr, flush=True)
    found["terms"] = messages(team) | (agents() if team.leads else {})
    if team.leads:
        found["model"] = model(found["terms"])
        found["load_at_end"] = round(os.getloadavg()[0], 2)
        print(json.dumps(found))
    else:
        wait(team)  # while rank 0 measures agents
    if team.leads:
        signal(team)
    return 0


def wait(team: Any) -> int:
    """The next word of rank 0; this rank sleeps meanwhile, and takes no core from what is measured there."""
    while not team.comm.Iprobe(0):
        time.sleep(0.0005)
    word = np.empty(1)
    team.comm.Recv(word, 0)
    return int(word[0])


def signal(team: Any, word: int = 0) -> None:
    team.comm.Send(np.array([float(word)]), 1)


def turns(team: Any, spec: Spec, federation: Federation, seconds: float) -> dict[str, Any]:
    """Rounds in one process, of one rank by way of MPI, and of both ranks, in turns."""
    from mpi4py import MPI

    from tacit.engine import mpi
    from tacit.engine.passes import counted
    from tacit.engine.spread import Part, SpreadEngine

    counts = counted(federation.shards)
    own = shares([len(shard) for shard in federation.shards], team.size)
    here = hollow(federation, own[team.rank])
    made = admm_setup(spec, here)
    part = Part([made.agents], made.shape, counts)
    team.expect(part.numbers)
    answered: list[float] = []
    part.answer = clocked(part.answer, answered)  # type: ignore[method-assign]
    if not team.leads:
        while rounds := wait(team):
            for _ in range(rounds):
                team.hear()
                team.gather(part.answer(int(team.frame[1]), team.frame[mpi.HEAD :].copy()), ())
        team.comm.Send(np.array([median(answered)]), 0)
        exchange(team, part.numbers, [part.length(one) for one in own])
        return {}
    whole = admm_setup(spec, federation)
    alone = mpi.Team(MPI.COMM_SELF)
    players = {
        "process": FastEngine([whole.agents], whole.shape, 1),
        "one_rank": SpreadEngine(whole_part(whole, counts), alone, [range(federation.n_agents)], ""),
        "two_ranks": SpreadEngine(part, team, own, ""),
    }
    w = np.zeros(made.shape)
    taken: dict[str, list[float]] = {name: [] for name in players}
    in_process: list[float] = []  # CPU time of a round
    n, end, turn = 1, time.perf_counter() + seconds, 0
    while time.perf_counter() < end or turn < 4:
        for name, engine in players.items():
            if name == "two_ranks":
                signal(team, n)
            start, cpu = time.perf_counter(), time.process_time()
            for t in range(n):
                engine.exchange_all([Broadcast(turn * n + t + 1, w, 1.0)])
            if name == "process":
                in_process.append((time.process_time() - cpu) / n)
            taken[name].append((time.perf_counter() - start) / n)
        n = max(n, min(50, int(0.3 / taken["process"][0])))  # from the second turn on, turns of a third of a second
        turn += 1
    signal(team)
    other = np.empty(1)
    team.comm.Recv(other, 1)
    talk = exchange(team, part.numbers, players["two_ranks"].lengths)
    computes = max(median(answered), float(other[0]))
    first = {name: own[1:] for name, own in taken.items()}  # the first warms up
    ratios = {
        "overhead": [b / a for a, b in zip(first["process"], first["one_rank"], strict=True)],
        "efficiency": [a / (2 * b) for a, b in zip(first["process"], first["two_ranks"], strict=True)],
    }
    return {
        "turns": turn - 1,
        **{f"ms_{name}": round(1e3 * median(own), 3) for name, own in first.items()},
        **{name: round(median(own), 3) for name, own in ratios.items()},
        "ms_messages": round(1e3 * talk, 3),
        "efficiency_by_cpu_time": round(median(in_process) / (2 * (computes + talk)), 3),
        "efficiency_20_80": np.round(np.percentile(ratios["efficiency"], [20, 80]), 3).tolist(),
    }


def clocked(work: Callable[..., Any], seconds: list[float]) -> Callable[..., Any]:
    """The same function, with the CPU time of each call noted."""

    def noted(*arguments: Any) -> Any:
        start = time.process_time()
        found = work(*arguments)
        seconds.append(time.process_time() - start)
        return found

    return noted


def exchange(team: Any, down: int, up: Sequence[int]) -> float:
    """The least seconds of one broadcast and one gather of so many numbers."""
    sent, own, room, best = np.zeros(down), np.zeros(up[team.rank]), np.zeros(sum(up)), math.inf
    for _ in range(30 if sum(up) > 1 << 17 else 500):  # of short ones many: on a busy machine few find both ranks awake
        team.comm.Barrier()
        start = time.perf_counter()
        team.comm.Bcast(sent)
        team.comm.Gatherv(own, [room, list(up)] if team.leads else None)
        best = min(best, time.perf_counter() - start)
    return best


def hollow(federation: Federation, own: range) -> Federation:
    """The federation as a rank with these agents holds it."""
    shards = (
        shard if p in own else Shard.elsewhere(len(shard), federation.n_features)
        for p, shard in enumerate(federation.shards)
    )
    return replace(federation, shards=tuple(shards))


def whole_part(setup: Any, counts: Any) -> Any:
    from tacit.engine.spread import Part

    return Part([setup.agents], setup.shape, counts)


# --- the terms of the model


def messages(team: Any) -> dict[str, float]:
    """Seconds of one broadcast and one gather between two ranks: latency + bytes / bandwidth, least squares."""
    points = []
    for size in (1, 8, 64, 512, 4096, 32_768, 262_144, 1_048_576):
        points.append((16 * size, exchange(team, size, [size, size])))
    bytes_, seconds = np.array(points).T
    design = np.stack([np.ones_like(bytes_), bytes_]).T / seconds[:, None]  # relative errors count
    latency, per_byte = np.linalg.lstsq(design, np.ones_like(seconds), rcond=None)[0].tolist()
    return {"latency": latency, "per_byte": per_byte}


def agents() -> dict[str, float]:
    """Seconds of an agent and of a record in a round, for a model of SHAPE on one thread; and of one addition."""
    points = []
    for n_agents, records in ((100, 6_000), (400, 6_000), (100, 24_000), (400, 24_000)):
        over = instances.pixels(n_agents, records, *SHAPE, density=0.19)
        setup = admm_setup(instances.SPEC, over)
        engine = FastEngine([setup.agents], setup.shape, 1)
        w, best = np.zeros(SHAPE), math.inf
        for t in range(8):
            start = time.perf_counter()
            engine.exchange_all([Broadcast(t + 1, w, 1.0)])
            best = min(best, time.perf_counter() - start)
        points.append((n_agents, records, best))
    n, i, seconds = np.array(points).T
    per_agent, per_record = np.linalg.lstsq(np.stack([n, i]).T, seconds, rcond=None)[0].tolist()
    a, b = np.zeros(SHAPE), np.zeros(SHAPE)
    start = time.perf_counter()
    for _ in range(300):
        a = a + b
    return {"agent": per_agent, "record": per_record, "fold": (time.perf_counter() - start) / 300}


def predicted(terms: dict[str, float], n_agents: int, ranks: int) -> dict[str, float]:
    """Seconds of a round by the model: messages pass along a tree down and arrive one after another at rank 0."""
    own = -(-n_agents // ranks)
    compute = own * (terms["agent"] + RECORDS * terms["record"])
    block, wide = block_size(n_agents), 8 * SHAPE[0] * SHAPE[1]
    dealt = shares([1] * n_agents, ranks)
    sums = sum(len(parts(one.start, one.stop, block)) for one in dealt)
    depth = math.ceil(math.log2(ranks)) if ranks > 1 else 0
    up = (sums - len(parts(dealt[0].start, dealt[0].stop, block))) * wide + 32 * (n_agents - len(dealt[0]))
    talk = depth * (terms["latency"] + wide * terms["per_byte"]) + up * terms["per_byte"]
    return {"compute": compute, "talk": talk, "fold": sums * terms["fold"]}


def model(terms: dict[str, float]) -> list[dict[str, Any]]:
    """What the terms say of rounds that were not measured."""
    rows = []
    for n_agents in (10**4, 10**6):
        alone = sum(predicted(terms, n_agents, 1).values())
        for ranks in (1, 4, 16, 64, 256):
            own = predicted(terms, n_agents, ranks)
            seconds = sum(own.values())
            rows.append({
                "agents": n_agents, "ranks": ranks, "seconds": seconds, **own,
                "efficiency": alone / (ranks * seconds),
            })  # fmt: skip
    return rows


def markdown(results: dict[str, Any]) -> str:
    """The tables of docs/mpi.md."""
    about = results["machine"]
    lines = [
        f"{about['cpu']}, {about['cores']} threads a rank, kernels {about['kernels']}; load {about['load_at_start']} "
        f"at the start and {results['load_at_end']} at the end.",
        "",
        "| instance | ms a round, in process | one rank by MPI | two ranks | messages | overhead | efficiency at 2 | "
        "20-80 % | by CPU time |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, own in results["instances"].items():
        low, high = own["efficiency_20_80"]
        lines.append(
            f"| {name} | {own['ms_process']:.2f} | {own['ms_one_rank']:.2f} | {own['ms_two_ranks']:.2f} | "
            f"{own['ms_messages']:.2f} | {own['overhead']:.2f} | {own['efficiency']:.0%} | {low:.0%}-{high:.0%} | "
            f"{own['efficiency_by_cpu_time']:.0%} |"
        )
    terms = results["terms"]
    lines += [
        "",
        f"Measured terms: {1e6 * terms['latency']:.0f} us for a broadcast and a gather, {1e-9 / terms['per_byte']:.1f} "
        f"GB/s, {1e6 * terms['agent']:.0f} us an agent, {1e9 * terms['record']:.0f} ns a record, "
        f"{1e6 * terms['fold']:.0f} us to add one block.",
        "",
        "| agents | ranks | seconds a round | computing | talking | adding | efficiency |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in results["model"]:
        parts_of = " | ".join(f"{row[name]:.3g}" for name in ("seconds", "compute", "talk", "fold"))
        lines.append(f"| {row['agents']:,} | {row['ranks']} | {parts_of} | {row['efficiency']:.0%} |")
    return "\n".join(lines)


if __name__ == "__main__":
    raise SystemExit(main())
