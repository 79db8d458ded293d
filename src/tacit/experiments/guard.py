"""Agents behind their own ledgers, for a run whose spec asks for it."""

from __future__ import annotations

import hashlib
import math
import secrets
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import quote

from tacit.admm.price import release
from tacit.engine.guarded import DELTA_FOR_THE_GRID, Guarded
from tacit.errors import DataError, IncompatibleError, Refused
from tacit.experiments.build import Setup
from tacit.experiments.spec import Spec
from tacit.privacy import lattice
from tacit.privacy.book import Book, Limit
from tacit.privacy.budget import total
from tacit.privacy.exact import Law
from tacit.privacy.ledger import Ledger, check_adjacency
from tacit.privacy.release import Events
from tacit.types import Federation

FILES_PER_LEDGER = 3  # the database, its log and the log's index
OTHER_FILES = 100


def wanted(spec: Spec) -> bool:
    """Whether agents draw exact noise; a ledger is for that alone."""
    if spec.privacy.noise == "exact":
        return True
    if spec.privacy.ledger or spec.privacy.limit:
        raise IncompatibleError(
            "a ledger records releases with real noise, and simulated noise can be drawn again from its seed: "
            "set privacy.noise = exact, or drop the ledger and the limit."
        )
    return False


def named(spec: Spec) -> Spec:
    """The spec with a name for the run: the ledgers know a round by it, so it must be new, and kept on resume."""
    if not spec.privacy.ledger:
        return spec
    where = str(Path(spec.privacy.ledger).absolute())  # a resumed run may start elsewhere
    return spec.with_values({"run.name": spec.run.name or secrets.token_hex(8), "privacy.ledger": where})


def price(events: Events, dp_delta: float) -> float:
    """The epsilon of everything an agent has released; exact noise keeps back its share of delta, as its runs do."""
    return total(events, dp_delta * (1 - DELTA_FOR_THE_GRID)).epsilon


def check(spec: Spec, setup: Setup) -> None:
    """Refuse what cannot be guarded, before anything is written."""
    if wanted(spec):
        if spec.privacy.limit and not spec.privacy.ledger:
            raise IncompatibleError("privacy.limit is kept in a ledger: set privacy.ledger to a directory.")
        first = Guarded(setup.agents[0], "", math.prod(setup.shape))
        one = release(first.agent.method)
        assert one is not None  # Guarded refuses what has none
        epsilon = total([(one, spec.run.rounds)], spec.privacy.dp_delta, pld=False).epsilon
        _check_gap(first, max(epsilon, spec.privacy.limit or 0.0), spec.run.rounds, spec.privacy.dp_delta)
        if spec.privacy.ledger:
            _allow_files(FILES_PER_LEDGER * len(setup.agents) + OTHER_FILES)


def guarded(
    spec: Spec, setup: Setup, over: Federation, started: bool, open_files: ExitStack
) -> list[Guarded]:
    """Every agent with exact noise and, if asked for, its ledger: DIR/AGENT.ledger, 0600, its owner's alone.

    A run that was `started` before must find its ledgers: a new one would know nothing of what was released. They are
    closed with `open_files`.
    """
    p, dimension = spec.privacy, math.prod(setup.shape)
    agents = []
    for agent, name in zip(setup.agents, over.agents, strict=True):
        ledger = None
        if p.ledger:
            Path(p.ledger).mkdir(parents=True, exist_ok=True)
            limit = Limit(p.limit, p.dp_delta) if p.limit and not started else None  # its owner may have changed it
            file = Path(p.ledger) / file_of(name)
            if started and not file.exists():
                raise DataError(
                    f"the ledger of agent {name} is not at {file}, where this run keeps it: put it back, or start anew."
                )
            ledger = open_files.enter_context(Ledger.open(file, price, limit, create=not started))
        one = Guarded(agent, name, dimension, ledger, f"{p.data_id or over.name}: {name}", spec.run.name or "")
        if ledger is not None:
            _check_ledger(one, ledger.book(), spec, started)
        agents.append(one)
    return agents


def _check_ledger(one: Guarded, book: Book, spec: Spec, started: bool) -> None:
    """Refuse what the ledger would refuse when other agents have paid, and names that mean another thing there."""
    if not started and any((key.data_id, key.run) == (one.data_id, one.run) for key in book.answers):
        raise IncompatibleError(
            f"the ledger of agent {one.name} has answered a run {one.run!r}, and would answer the same again: resume "
            "that run, or leave run.name out of the config of a new one."
        )
    names = sorted(data_id.removesuffix(f": {one.name}") for data_id in book.spent)
    if names and one.data_id not in book.spent and not spec.privacy.data_id:
        raise IncompatibleError(
            f"the ledger of agent {one.name} has answered for {', '.join(map(repr, names))}, and the source of this "
            "run is another: name its data with --set privacy.data_id=NAME, as before if they are the same, or anew if "
            "they share no record."
        )
    try:
        check_adjacency(book, one.data_id, spec.privacy.adjacency)
    except Refused as error:
        raise IncompatibleError(f"agent {one.name}: {error}") from None
    if book.limit is not None:
        releases = sum(book.spent.get(one.data_id, Counter()).values()) + spec.run.rounds
        _check_gap(one, book.limit.epsilon, releases, book.limit.dp_delta)


def file_of(agent: str) -> str:
    """A file name for an agent, another for each: quoted, and a digest where that is long."""
    quoted = quote(agent, safe="")
    return f"{quoted if len(quoted) <= 100 else hashlib.sha256(agent.encode()).hexdigest()}.ledger"


def _allow_files(count: int) -> None:
    """Ledgers stay open for the run: as many files as the system lets this process have, and an error if too few."""
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


def _check_gap(one: Guarded, epsilon: float, releases: int, dp_delta: float) -> None:
    """Discrete noise is within `gap` of continuous noise a release; what was kept back of delta must cover it."""
    cost = (1 + math.exp(min(epsilon, 700))) * releases * lattice.gap(Law.LAPLACE, one.scale, one.dimension)
    if cost > DELTA_FOR_THE_GRID * dp_delta:
        raise IncompatibleError(
            f"exact noise costs {cost:.2g} of delta at epsilon {epsilon:g} (of the run, or the limit of its ledgers), "
            f"more than is kept back of {dp_delta:g}: use a larger dp_delta, or a smaller epsilon or limit."
        )
