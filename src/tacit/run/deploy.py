"""Deploy agents: each draws exact noise, and writes every release into its own ledger.

The spec names the directory of the ledgers, which then know all runs; else a run keeps ledgers in its own directory.
"""

from __future__ import annotations

import hashlib
import math
import secrets
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from tacit.engine.passes import exact_sums
from tacit.errors import DataError, IncompatibleError, Refused
from tacit.guarded import mean
from tacit.guarded.agent import DELTA_FOR_THE_GRID, Addressed, Guarded, Store, scale_of
from tacit.guarded.half import AdmmHalf
from tacit.guarded.masks.graph import ALL_PAIRS, FAILURE
from tacit.guarded.mean import Adds
from tacit.privacy import lattice
from tacit.privacy.budget import total, upward
from tacit.privacy.exact import Law
from tacit.privacy.history import Limit
from tacit.privacy.ledger import Ledger
from tacit.privacy.release import Events, Release
from tacit.privacy.summed import Summed, releases
from tacit.privacy.terms import Memory, Terms
from tacit.query.gradient import Gradient
from tacit.query.records import Block
from tacit.query.sums import Sums, numpy_sums
from tacit.run.build import Setup
from tacit.run.compose import AdmmSetup
from tacit.run.ledgers import allow_files, file_of
from tacit.run.spec import Spec
from tacit.run.summed import Lane
from tacit.schedule import Schedule
from tacit.types import Federation, Shard

if TYPE_CHECKING:
    from tacit.guarded.summand import Summand

Deployed: TypeAlias = "Guarded | Summand"
SETTLED_EVERY = 10  # rounds: every one costs a run 4 to 32 %, every tenth at most 4 % (benchmarks/settling.py)


def wanted(spec: Spec) -> bool:
    """Tell whether the agents draw exact noise; refuse a ledger or a limit for agents that do not."""
    if spec.privacy.noise == "exact":
        return True
    if spec.privacy.ledger or spec.privacy.limit:
        raise IncompatibleError(
            "a ledger records releases with real noise, and simulated noise can be drawn again from its seed: "
            "set privacy.noise = exact and no seed, or drop the ledger and the limit."
        )
    return False


def named(spec: Spec) -> Spec:
    """Return the spec with a new name for the run. Ledgers know rounds by the run's name, so a resumed run keeps it."""
    if not spec.privacy.ledger:
        return spec
    where = str(Path(spec.privacy.ledger).absolute())  # a resumed run may start elsewhere
    return spec.with_values({"run.name": spec.run.name or secrets.token_hex(8), "privacy.ledger": where})


def price(events: Events, dp_delta: float) -> float:
    """Return the epsilon of all releases of an agent; exact noise keeps back its share of delta, as in every run."""
    return total(events, dp_delta * (1 - DELTA_FOR_THE_GRID)).epsilon


def halves(spec: Spec, setup: AdmmSetup) -> Iterator[AdmmHalf]:
    """Return every agent's half of the method; refuse a method that cannot be guarded."""
    return (AdmmHalf(agent, setup.shape, setup.rho, spec.run.rounds, compiled_sums) for agent in setup.agents)


def compiled_sums(query: Gradient, rows: Block) -> Sums:
    """Return the sums over the records of an agent, compiled if there is a loop for them, else NumPy's."""
    shard = Shard(rows.x, rows.y, rows.x.dtype.type)
    return exact_sums(shard, query.loss, query.record_bound, query.shape[1]) or numpy_sums(query, rows)


def terms(spec: Spec, half: AdmmHalf) -> Terms:
    """Return what an agent agrees to when it joins a run: the hash of the spec, and the most that the run can cost."""
    rounds, dp_delta = spec.run.rounds, spec.privacy.dp_delta
    agreed, cap = _digest(spec, half.shape, half.rho, half.agent.constant_bound), _cap(half.release, rounds, dp_delta)
    return Terms(run_name(spec), agreed, rounds, half.release, half.adjacency, scale_of(half), dp_delta, cap)


def summed(spec: Spec, setup: AdmmSetup) -> Summed:
    """Return the public numbers of a secure sum over all agents of a run, here or elsewhere."""
    return _summed(spec, setup, list(halves(spec, setup)))


def _summed(spec: Spec, setup: AdmmSetup, own: Sequence[AdmmHalf]) -> Summed:
    assert setup.in_sum is not None, "the run trusts a secure sum"
    return mean.public(own, releases(spec.run.rounds, setup.in_sum.repetitions))


def sum_terms(spec: Spec, half: AdmmHalf, numbers: Summed) -> Terms:
    """Return what an agent of a secure sum agrees to: the noise of the sum, and repetitions, which are paid for too."""
    ours = terms(spec, half)
    again = numbers.releases - ours.rounds
    cap = _cap(half.release, numbers.releases, ours.dp_delta)
    return replace(ours, scale=numbers.scale, epsilon=cap, repetitions=again)


def run_name(spec: Spec) -> str:
    """Return the name of the run. Ledgers that a run has for itself, and memories, know no other run."""
    return spec.run.name or "one process"


def _digest(spec: Spec, shape: tuple[int, int], rho: Schedule, bound: float) -> str:
    """Return the hash of what all agents agree on: the spec, the model's shape, two penalties, a gradient's bound."""
    numbers = [number.hex() for number in (rho(1), rho(spec.run.rounds), bound)]
    return hashlib.sha256(f"{spec.toml()}\n{shape} {numbers}".encode()).hexdigest()


@lru_cache(maxsize=256)
def _cap(release: Release, rounds: int, dp_delta: float) -> float:
    return price([(release, rounds)], dp_delta)


def check(spec: Spec, setup: Setup) -> None:
    """Refuse a run whose agents cannot be deployed, before anything is written."""
    if wanted(spec):
        assert isinstance(setup, AdmmSetup)  # tacit.run.build refuses exact noise for other methods
        p, rounds = spec.privacy, spec.run.rounds
        if p.limit and not p.ledger:
            raise IncompatibleError("privacy.limit is kept in a ledger: set privacy.ledger to a directory.")
        own, again, numbers = list(halves(spec, setup)), 0, None
        if setup.in_sum is not None:
            again, numbers = setup.in_sum.repetitions, _summed(spec, setup, own)
        for half in own:
            cap = _cap(half.release, rounds + again, p.dp_delta)
            if p.limit and cap > p.limit:
                raise IncompatibleError(
                    f"the run costs up to epsilon = {upward(cap)} and every ledger would allow {p.limit:g}, so that it "
                    "could not end: lower --epsilon, or raise --limit."
                )
            _check_gap(half, max(cap, p.limit or 0.0), rounds + again, p.dp_delta, numbers)
        if p.ledger:
            allow_files(len(setup.agents))


def guarded(
    spec: Spec, setup: AdmmSetup, federation: Federation, ledgers: Path | None, started: bool, open_files: ExitStack
) -> list[Guarded] | list[Summand]:
    """Return every agent with exact noise and its store: the file AGENT.ledger (mode 0600) in `ledgers`, or a memory.

    All ledgers that exist are asked before any agent joins: if one ledger cannot pay the run to its end, the run is
    refused while nothing is spent. A run that was `started` before must find its ledgers, because a new ledger would
    know nothing of what was released. The ledgers are closed with `open_files`.
    """
    own = list(halves(spec, setup))
    numbers = None if setup.in_sum is None else _summed(spec, setup, own)
    agreed = [(half, terms(spec, half) if numbers is None else sum_terms(spec, half, numbers)) for half in own]
    data_ids = [f"{spec.privacy.data_id or federation.name}: {name}" for name in federation.agents]
    try:
        stores = _stores(spec, ledgers, federation.agents, data_ids, agreed, started, open_files)
        rows = [
            (name, half, ours, data_id, store)
            for name, (half, ours), data_id, store in zip(federation.agents, agreed, data_ids, stores, strict=True)
        ]
        if numbers is None or setup.in_sum is None:
            return [Guarded(*row) for row in rows]
        from tacit.run.meeting import summands  # needs the extra `secure`

        return summands(rows, numbers, setup.in_sum.colluding, ledgers)
    except Refused as error:
        if started:
            raise
        raise IncompatibleError(f"the run does not begin: {error}") from None  # its owner is told why


def _stores(
    spec: Spec,
    ledgers: Path | None,
    names: Sequence[str],
    data_ids: Sequence[str],
    agreed: Sequence[tuple[AdmmHalf, Terms]],
    started: bool,
    open_files: ExitStack,
) -> Sequence[Store]:
    """Open a ledger for each agent, after a check of all ledgers that exist; without a place for one, make memories."""
    p = spec.privacy
    if ledgers is None:
        return [Memory() for _ in names]
    allow_files(len(names))
    # the owner of a ledger may have changed its limit since the run was started
    limit = Limit(p.limit, p.dp_delta) if p.limit and not started else None
    files = [ledgers / file_of(name) for name in names]
    held: dict[Path, Ledger] = {}
    opened = partial(Ledger.open, price=price, settled_every=SETTLED_EVERY)
    for name, file, data_id, (half, ours) in zip(names, files, data_ids, agreed, strict=True):
        if file.exists():
            held[file] = open_files.enter_context(opened(file, limit=limit, create=False))
            check_ledger(name, held[file], data_id, half, ours, spec, started)
        elif started:
            raise DataError(
                f"the ledger of agent {name} is not at {file}, where this run keeps it: put it back, or start anew."
            )
    ledgers.mkdir(parents=True, exist_ok=True)
    return [held.get(file) or open_files.enter_context(opened(file, limit=limit)) for file in files]


def check_ledger(
    name: str, ledger: Ledger, data_id: str, half: AdmmHalf, ours: Terms, spec: Spec, started: bool
) -> None:
    """Refuse a run that this ledger would refuse later, and a name that the ledger has for other data or runs."""
    book = ledger.history()
    released = book.place(data_id, ours.run).releases
    if released and not started:
        raise IncompatibleError(
            f"the ledger of agent {name} has answered a run {ours.run!r}, and would answer the same again: resume "
            "that run, or leave run.name out of the config of a new one."
        )
    names = sorted(known.removesuffix(f": {name}") for known in book.spent)
    if names and data_id not in book.spent and not spec.privacy.data_id:
        raise IncompatibleError(
            f"the ledger of agent {name} has answered for {', '.join(map(repr, names))}, and the source of this "
            "run is another: name its data with --set privacy.data_id=NAME, as before if they are the same, or anew if "
            "they share no record."
        )
    try:
        ledger.check_terms(data_id, ours)
    except Refused as error:
        raise Refused(f"agent {name}: {error}") from None
    if book.limit is not None:
        releases = sum(book.spent.get(data_id, {}).values()) + ours.releases - released
        releases += ledger.reserved(data_id, ours.run).total()
        _check_gap(half, book.limit.epsilon, releases, book.limit.dp_delta)


def addressed(spec: Spec, setup: AdmmSetup, agents: Sequence[Deployed]) -> list[Addressed]:
    """Return the agents with the name and the hash of this run, which the server sends with every question."""
    agreed = _digest(spec, setup.shape, setup.rho, setup.agents[0].constant_bound)
    return [Addressed(agent, run_name(spec), agreed) for agent in agents if isinstance(agent, Guarded)]


def lane(spec: Spec, setup: AdmmSetup, federation: Federation, agents: Sequence[Deployed]) -> Lane:
    """Return a run behind a secure sum: its deployed agents, or simulated ones where there are none."""
    assert setup.in_sum is not None, "the run trusts a secure sum"
    own = list(halves(spec, setup))
    numbers = _summed(spec, setup, own)
    sizes = {name: len(shard) for name, shard in zip(federation.agents, federation.shards, strict=True)}
    adding: Sequence[Adds] = [agent for agent in agents if not isinstance(agent, Guarded)] or [
        mean.Simulated(name, half, numbers, setup.in_sum.colluding)
        for name, half in zip(federation.agents, own, strict=True)
    ]
    agreed = _digest(spec, setup.shape, setup.rho, setup.agents[0].constant_bound)
    return Lane(run_name(spec), agreed, adding, mean.Mean.zero(own[0], numbers, sizes), setup.in_sum.colluding)


def forget(spec: Spec, agents: Sequence[Deployed], done: int, last: bool = False) -> None:
    """Let ledgers drop the answers of rounds up to `done`; call it when a checkpoint of that round is on disk.

    The run is resumed there, if it is, and asks for later rounds only. Ledgers drop them with their next release, or
    at once when the round was the `last`. What a round has cost stays on record.
    """
    for ledger in (agent.store for agent in agents):
        if isinstance(ledger, Ledger):
            (ledger.forget if last else ledger.forget_later)(run_name(spec), done + 1)


def end(spec: Spec, agents: Sequence[Deployed], why: str) -> None:
    """End the run in every ledger, so that it holds no budget that it will not use."""
    for agent in agents:
        if isinstance(agent.store, Ledger):
            with suppress(Refused):  # a ledger that is busy holds the budget for a while
                agent.store.end(agent.data_id, run_name(spec), why)


def forget_keys(spec: Spec, ledgers: Path | None) -> None:
    """Delete the keys of a secure sum that has ended, where there are any."""
    if ledgers is not None and spec.in_sum is not None and any(ledgers.glob("*.runkey")):
        from tacit.guarded.masks import files  # needs the extra `secure`, which drew them

        files.forget_run(ledgers, run_name(spec))


def heads(agents: Sequence[Deployed]) -> dict[str, str] | None:
    """Return the head of every agent's ledger. The coordinator keeps the heads: a rewritten ledger has another head."""
    return {agent.name: agent.store.head for agent in agents if isinstance(agent.store, Ledger)} or None


def ledger_totals(spec: Spec, agents: Sequence[Deployed]) -> dict[str, dict[str, float | None]] | None:
    """Return what each agent's ledger has spent on its data over all runs, at the delta of its limit or of this run.

    `new` tells that this run made a ledger that was to count all runs: no earlier run is counted in it.
    """
    found: dict[str, dict[str, float | None]] = {}
    for agent in agents:
        if isinstance(agent.store, Ledger):
            book = agent.store.history()
            limit, delta = (None, spec.privacy.dp_delta) if book.limit is None else (
                book.limit.epsilon, book.limit.dp_delta
            )
            spent = frozenset(book.spent.get(agent.data_id, {}).items())
            first_run = next(iter(book.places))
            new = spec.privacy.ledger is not None and first_run == (agent.data_id, agent.terms.run)
            found[agent.name] = {"epsilon": _total(spent, delta), "dp_delta": delta, "limit": limit, "new": new}
    return found or None


@lru_cache(maxsize=256)
def _total(spent: frozenset[tuple[Release, int]], dp_delta: float) -> float:
    return price(tuple(spent), dp_delta)


def _check_gap(half: AdmmHalf, epsilon: float, releases: int, dp_delta: float, numbers: Summed | None = None) -> None:
    """Refuse a run whose kept-back delta does not cover the `gap` of its releases to continuous noise.

    Laplace noise has the larger gap of both laws, and larger than that of a sum of shares (tacit.privacy.summed). A sum
    over many agents has masks by a graph, which fail with a probability that is counted too.
    """
    scale = scale_of(half) if numbers is None else numbers.scale
    gap = lattice.gap(Law.LAPLACE, scale, half.dimension)
    cost = (1 + math.exp(min(epsilon, 700))) * releases * gap
    if numbers is not None and half.agent.problem.n_agents > ALL_PAIRS:
        cost += 2.0**-FAILURE
    if cost > DELTA_FOR_THE_GRID * dp_delta:
        raise IncompatibleError(
            f"exact noise costs {cost:.2g} of delta at epsilon {epsilon:g} (of the run, or the limit of its ledgers), "
            f"more than is kept back of {dp_delta:g}: use a larger dp_delta, a smaller epsilon or limit, or simulate "
            "the noise with a seed (--seed 0, random_state=0)."
        )
