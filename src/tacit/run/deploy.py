"""Deploy agents: each draws exact noise, and writes every release into its own ledger.

The spec names the directory of the ledgers, which then know all runs; else a run keeps ledgers in its own directory.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from tacit.agent.agent import DeployedAgent, Store
from tacit.agent.agreement import DELTA_FOR_THE_GRID, Agreement
from tacit.agent.cover import Alone, Cover, Masked, Simulated
from tacit.engine.passes import exact_sums
from tacit.errors import DataError, IncompatibleError, Refused
from tacit.privacy.budget import upward
from tacit.privacy.history import Limit
from tacit.privacy.ledger import Ledger
from tacit.privacy.release import Release
from tacit.privacy.terms import Memory, Terms
from tacit.query import gradient
from tacit.query.gradient import Gradient, Sums, numpy_sums
from tacit.query.query import AgentQuery
from tacit.query.records import Block, InMemory
from tacit.run.asking import Lane
from tacit.run.deployment import Deployment, allow_ledger_files, cap_of, ledger_file_name, price, run_name
from tacit.run.setup import Setup
from tacit.run.spec import Spec
from tacit.types import Federation, Shard

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


def compiled_sums(query: Gradient, rows: Block) -> Sums:
    """Return the sums over the records of an agent, compiled if there is a loop for them, else NumPy's."""
    shard = Shard(rows.x, rows.y, rows.x.dtype.type)
    return exact_sums(shard, query.loss, query.record_bound, query.shape[1]) or numpy_sums(query, rows)


def queries_of(agreement: Agreement, shard: Shard) -> tuple[AgentQuery[Any], ...]:
    """Return the queries of an agreement over the records of a shard, each with its fastest evaluator."""
    records, compiled = InMemory.of(shard), gradient.evaluator(compiled_sums)
    asked = [one.query for one in agreement.queries]
    return tuple(
        AgentQuery(query, records, compiled if isinstance(query, Gradient) else query.evaluator) for query in asked
    )


def check(spec: Spec, setup: Setup) -> None:
    """Refuse a run whose agents cannot be deployed, before anything is written."""
    if wanted(spec):
        p = spec.privacy
        if p.limit and not p.ledger:
            raise IncompatibleError("privacy.limit is kept in a ledger: set privacy.ledger to a directory.")
        deployment = setup.deployment
        n_agents = len(deployment.records)
        for own, records in zip(deployment.agreements, deployment.records, strict=True):
            cap = cap_of(tuple(own.events), p.dp_delta)
            if p.limit and cap > p.limit:
                raise IncompatibleError(
                    f"the run costs up to epsilon = {upward(cap)} and every ledger would allow {p.limit:g}, so that it "
                    "could not end: lower --epsilon, or raise --limit."
                )
            _check_gap(own, records, n_agents, max(cap, p.limit or 0.0), own.releases, p.dp_delta)
        if p.ledger:
            allow_ledger_files(n_agents)


def deployed(
    spec: Spec, setup: Setup, federation: Federation, ledgers: Path | None, started: bool, open_files: ExitStack
) -> list[DeployedAgent]:
    """Return every agent with exact noise and its store: the file AGENT.ledger (mode 0600) in `ledgers`, or a memory.

    All ledgers that exist are asked before any agent joins: if one ledger cannot pay the run to its end, the run is
    refused while nothing is spent. A run that was `started` before must find its ledgers, because a new ledger would
    know nothing of what was released. The ledgers are closed with `open_files`.
    """
    deployment = setup.deployment
    hash_of_run = deployment.agreed(spec)
    agreed = [deployment.terms(spec, p, hash_of_run) for p in range(federation.n_agents)]
    data_ids = [f"{spec.privacy.data_id or federation.name}: {name}" for name in federation.agents]
    try:
        stores = _stores(spec, ledgers, federation.agents, data_ids, deployment, agreed, started, open_files)
        covers = _covers(deployment, federation.agents, data_ids, stores, run_name(spec), ledgers)
        return [
            DeployedAgent(name, data_id, queries_of(own, shard), own, terms, cover, store)
            for name, data_id, own, shard, terms, cover, store in zip(
                federation.agents, data_ids, deployment.agreements, federation.shards, agreed, covers, stores,
                strict=True,
            )
        ]  # fmt: skip
    except Refused as error:
        if started:
            raise
        raise IncompatibleError(f"the run does not begin: {error}") from None  # its owner is told why


def _covers(
    deployment: Deployment, names: Sequence[str], data_ids: Sequence[str], stores: Sequence[Store], run: str,
    keys: Path | None,
) -> list[Cover]:  # fmt: skip
    """Return how the answers of each agent leave: alone, or in a sum of all, masked with run keys in `keys`."""
    in_sum = deployment.in_sum
    if in_sum is None:
        return [Alone(own, n) for own, n in zip(deployment.agreements, deployment.records, strict=True)]
    from tacit.agent.masks.masker import maskers  # needs the extra `secure`

    budgets = {
        name: store.budget(data_id) if isinstance(store, Ledger) else ""
        for name, data_id, store in zip(names, data_ids, stores, strict=True)
    }
    met = maskers(run, budgets, in_sum.colluding, keys)
    return [Masked(own, met[name]) for name, own in zip(names, deployment.agreements, strict=True)]


def _stores(
    spec: Spec,
    ledgers: Path | None,
    names: Sequence[str],
    data_ids: Sequence[str],
    deployment: Deployment,
    agreed: Sequence[Terms],
    started: bool,
    open_files: ExitStack,
) -> Sequence[Store]:
    """Open a ledger for each agent, after a check of all ledgers that exist; without a place for one, make memories."""
    privacy = spec.privacy
    if ledgers is None:
        return [Memory() for _ in names]
    allow_ledger_files(len(names))
    # the owner of a ledger may have changed its limit since the run was started
    limit = Limit(privacy.limit, privacy.dp_delta) if privacy.limit and not started else None
    files = [ledgers / ledger_file_name(name) for name in names]
    held: dict[Path, Ledger] = {}
    opened = partial(Ledger.open, price=price, settled_every=SETTLED_EVERY)
    for p, (name, file, data_id, ours) in enumerate(zip(names, files, data_ids, agreed, strict=True)):
        if file.exists():
            held[file] = open_files.enter_context(opened(file, limit=limit, create=False))
            check_ledger(name, held[file], data_id, deployment, p, ours, spec, started)
        elif started:
            raise DataError(
                f"the ledger of agent {name} is not at {file}, where this run keeps it: put it back, or start anew."
            )
    try:
        ledgers.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{ledgers} cannot be a folder of ledgers ({error.strerror}): name another one.") from None
    return [held.get(file) or open_files.enter_context(opened(file, limit=limit)) for file in files]


def check_ledger(
    name: str, ledger: Ledger, data_id: str, deployment: Deployment, p: int, ours: Terms, spec: Spec, started: bool
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
        own, records, n_agents = deployment.agreements[p], deployment.records[p], len(deployment.records)
        _check_gap(own, records, n_agents, book.limit.epsilon, releases, book.limit.dp_delta)


def lane(spec: Spec, setup: Setup, federation: Federation, agents: Sequence[DeployedAgent]) -> Lane:
    """Return a run with its deployed agents; behind a secure sum, with simulated agents if there are none."""
    deployment = setup.deployment
    agreed = deployment.agreed(spec)
    return Lane(
        run_name(spec), agreed, agents or _simulated(spec, setup, federation, agreed), deployment,
        deployment.program(False),
    )  # fmt: skip


def _simulated(spec: Spec, setup: Setup, federation: Federation, agreed: str) -> list[DeployedAgent]:
    """Return agents that answer into a secure sum with noise of a seed, without masks and ledgers."""
    assert spec.run.seed is not None, "noise that is simulated has a seed"
    deployment, found = setup.deployment, []
    for p, (name, shard) in enumerate(zip(federation.agents, federation.shards, strict=True)):
        own, cover = deployment.agreements[p], Simulated(deployment.agreements[p], (spec.run.seed, p))
        terms = deployment.terms(spec, p, agreed)
        found.append(DeployedAgent(name, name, queries_of(own, shard), own, terms, cover, Memory()))
    return found


def forget(spec: Spec, agents: Sequence[DeployedAgent], done: int, last: bool = False) -> None:
    """Let ledgers drop the answers of rounds up to `done`; call it when a checkpoint of that round is on disk.

    The run is resumed there, if it is, and asks for later rounds only. Ledgers drop them with their next release, or
    at once when the round was the `last`. What a round has cost stays on record.
    """
    for ledger in (agent.store for agent in agents):
        if isinstance(ledger, Ledger):
            (ledger.forget if last else ledger.forget_later)(run_name(spec), done + 1)


def end(spec: Spec, agents: Sequence[DeployedAgent], why: str) -> None:
    """End the run in every ledger, so that it holds no budget that it will not use."""
    for agent in agents:
        if isinstance(agent.store, Ledger):
            with suppress(Refused):  # a ledger that is busy holds the budget for a while
                agent.store.end(agent.data_id, run_name(spec), why)


def forget_keys(spec: Spec, ledgers: Path | None) -> None:
    """Delete the keys of a secure sum that has ended, where there are any."""
    if ledgers is not None and spec.in_sum is not None and any(ledgers.glob("*.runkey")):
        from tacit.agent.masks import files  # needs the extra `secure`, which drew them

        files.forget_run(ledgers, run_name(spec))


def heads(agents: Sequence[DeployedAgent]) -> dict[str, str] | None:
    """Return the head of every agent's ledger. The coordinator keeps the heads: a rewritten ledger has another head."""
    return {agent.name: agent.store.head for agent in agents if isinstance(agent.store, Ledger)} or None


def ledger_totals(spec: Spec, agents: Sequence[DeployedAgent]) -> dict[str, dict[str, float | None]] | None:
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


def _check_gap(
    own: Agreement, records: int, n_agents: int, epsilon: float, releases: int, dp_delta: float
) -> None:
    """Refuse a run whose kept-back delta does not cover what its whole-number noise costs."""
    cost = own.cost_of_integers(records, n_agents, epsilon, releases)
    if cost > DELTA_FOR_THE_GRID * dp_delta:
        raise IncompatibleError(
            f"exact noise costs {cost:.2g} of delta at epsilon {epsilon:g} (of the run, or the limit of its ledgers), "
            f"more than is kept back of {dp_delta:g}: use a larger dp_delta, a smaller epsilon or limit, or simulate "
            "the noise with a seed (--seed 0, random_state=0)."
        )
