"""Deploy agents: each draws exact noise, and writes every release into its own ledger if the spec names ledgers."""

from __future__ import annotations

import hashlib
import math
import secrets
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import lru_cache, partial
from pathlib import Path
from urllib.parse import quote

from tacit.admm.agent import Agent
from tacit.engine.passes import exact_sums
from tacit.errors import DataError, IncompatibleError, Refused
from tacit.guarded.agent import DELTA_FOR_THE_GRID, Addressed, Guarded, Store, scale_of
from tacit.guarded.half import AdmmHalf
from tacit.guarded.sums import Sums, numpy_sums
from tacit.privacy import lattice
from tacit.privacy.budget import total, upward
from tacit.privacy.exact import Law
from tacit.privacy.history import Limit
from tacit.privacy.ledger import Ledger
from tacit.privacy.release import Events, Release
from tacit.privacy.terms import Memory, Terms
from tacit.run.build import Setup
from tacit.run.compose import AdmmSetup
from tacit.run.spec import Spec
from tacit.schedule import Schedule
from tacit.types import Federation

FILES_PER_LEDGER = 3  # the database, its log and the log's index
OTHER_FILES = 100


def wanted(spec: Spec) -> bool:
    """Tell whether the agents draw exact noise; refuse a ledger or a limit for agents that do not."""
    if spec.privacy.noise == "exact":
        return True
    if spec.privacy.ledger or spec.privacy.limit:
        raise IncompatibleError(
            "a ledger records releases with real noise, and simulated noise can be drawn again from its seed: "
            "set privacy.noise = exact, or drop the ledger and the limit."
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
    summing = partial(compiled_sums, setup.shape[1])
    return (AdmmHalf(agent, setup.shape, setup.rho, spec.run.rounds, summing) for agent in setup.agents)


def compiled_sums(n_classes: int, agent: Agent) -> Sums:
    """Return the sums over the records of an agent, compiled where there is a loop for them, else NumPy's."""
    return exact_sums(agent.shard, agent.problem.loss, agent.variant.bound, n_classes) or numpy_sums(agent)


def terms(spec: Spec, half: AdmmHalf) -> Terms:
    """Return what an agent agrees to when it joins a run: the hash of the spec, and the most that the run can cost."""
    rounds, dp_delta = spec.run.rounds, spec.privacy.dp_delta
    agreed, cap = _digest(spec, half.shape, half.rho, half.agent.constant_bound), _cap(half.release, rounds, dp_delta)
    return Terms(_run_name(spec), agreed, rounds, half.release, half.adjacency, scale_of(half), dp_delta, cap)


def _run_name(spec: Spec) -> str:
    """Return the name of the run. A run without a ledger ends with its process, so any name will do."""
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
        for half in halves(spec, setup):
            cap = terms(spec, half).epsilon
            if p.limit and cap > p.limit:
                raise IncompatibleError(
                    f"the run costs up to epsilon = {upward(cap)} and every ledger would allow {p.limit:g}, so that it "
                    "could not end: lower --epsilon, or raise --limit."
                )
            _check_gap(half, max(cap, p.limit or 0.0), rounds, p.dp_delta)
        if p.ledger:
            allow_files(len(setup.agents))


def guarded(
    spec: Spec, setup: AdmmSetup, federation: Federation, started: bool, open_files: ExitStack
) -> list[Guarded]:
    """Return every agent with exact noise and its store: the ledger DIR/AGENT.ledger (mode 0600), or a memory.

    All ledgers that exist are asked before any agent joins: if one ledger cannot pay the run to its end, the run is
    refused while nothing is spent. A run that was `started` before must find its ledgers, because a new ledger would
    know nothing of what was released. The ledgers are closed with `open_files`.
    """
    agreed = [(half, terms(spec, half)) for half in halves(spec, setup)]
    data_ids = [f"{spec.privacy.data_id or federation.name}: {name}" for name in federation.agents]
    try:
        stores = _stores(spec, federation.agents, data_ids, agreed, started, open_files)
        return [
            Guarded(name, half, ours, data_id, store)
            for name, (half, ours), data_id, store in zip(federation.agents, agreed, data_ids, stores, strict=True)
        ]
    except Refused as error:
        if started:
            raise
        raise IncompatibleError(f"the run does not begin: {error}") from None  # its owner is told why


def _stores(
    spec: Spec,
    names: Sequence[str],
    data_ids: Sequence[str],
    agreed: Sequence[tuple[AdmmHalf, Terms]],
    started: bool,
    open_files: ExitStack,
) -> Sequence[Store]:
    """Open a ledger for each agent, after a check of all ledgers that exist; without privacy.ledger, make memories."""
    p = spec.privacy
    if not p.ledger:
        return [Memory() for _ in names]
    # the owner of a ledger may have changed its limit since the run was started
    limit = Limit(p.limit, p.dp_delta) if p.limit and not started else None
    files = [Path(p.ledger) / file_of(name) for name in names]
    held: dict[Path, Ledger] = {}
    for name, file, data_id, (half, ours) in zip(names, files, data_ids, agreed, strict=True):
        if file.exists():
            held[file] = open_files.enter_context(Ledger.open(file, price, limit, create=False))
            check_ledger(name, held[file], data_id, half, ours, spec, started)
        elif started:
            raise DataError(
                f"the ledger of agent {name} is not at {file}, where this run keeps it: put it back, or start anew."
            )
    Path(p.ledger).mkdir(parents=True, exist_ok=True)
    return [held.get(file) or open_files.enter_context(Ledger.open(file, price, limit)) for file in files]


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
        releases = sum(book.spent.get(data_id, {}).values()) + ours.rounds - released
        _check_gap(half, book.limit.epsilon, releases, book.limit.dp_delta)


def addressed(spec: Spec, setup: AdmmSetup, agents: Sequence[Guarded]) -> list[Addressed]:
    """Return the agents with the name and the hash of this run, which the server sends with every question."""
    agreed = _digest(spec, setup.shape, setup.rho, setup.agents[0].constant_bound)
    return [Addressed(agent, _run_name(spec), agreed) for agent in agents]


def forget(spec: Spec, agents: Sequence[Guarded], done: int, last: bool = False) -> None:
    """Let ledgers drop the answers of rounds up to `done`; call it when a checkpoint of that round is on disk.

    The run is resumed there, if it is, and asks for later rounds only. Ledgers drop them with their next release, or
    at once when the round was the `last`. What a round has cost stays on record.
    """
    for agent in agents if spec.privacy.ledger else ():
        assert isinstance(agent.store, Ledger)
        (agent.store.forget if last else agent.store.forget_later)(_run_name(spec), done + 1)


def heads(spec: Spec, agents: Sequence[Guarded]) -> dict[str, str] | None:
    """Return the head of every agent's ledger. The coordinator keeps the heads: a rewritten ledger has another head."""
    return {agent.name: agent.store.head for agent in agents} if spec.privacy.ledger else None


def file_of(agent: str) -> str:
    """Return a file name that no other agent has: the quoted name of the agent, or its digest where that is long."""
    quoted = quote(agent, safe="")
    return f"{quoted if len(quoted) <= 100 else hashlib.sha256(agent.encode()).hexdigest()}.ledger"


def allow_files(ledgers: int) -> None:
    """Allow as many open files as the ledgers of a run need, all at once; refuse the run if the system does not."""
    count = FILES_PER_LEDGER * ledgers + OTHER_FILES
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= count:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))
    except (ValueError, OSError) as error:
        raise IncompatibleError(
            f"the ledgers of this run need {count} open files, and the system allows {hard}: raise the hard limit "
            "(ulimit -Hn), or train fewer agents in one process."
        ) from error


def _check_gap(half: AdmmHalf, epsilon: float, releases: int, dp_delta: float) -> None:
    """Refuse a run whose kept-back delta does not cover the `gap` of its releases to continuous noise."""
    gap = lattice.gap(Law.LAPLACE, scale_of(half), half.dimension)  # Laplace noise has the larger gap of both laws
    cost = (1 + math.exp(min(epsilon, 700))) * releases * gap
    if cost > DELTA_FOR_THE_GRID * dp_delta:
        raise IncompatibleError(
            f"exact noise costs {cost:.2g} of delta at epsilon {epsilon:g} (of the run, or the limit of its ledgers), "
            f"more than is kept back of {dp_delta:g}: use a larger dp_delta, or a smaller epsilon or limit."
        )
