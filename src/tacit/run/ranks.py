"""Runs whose agents are spread over the ranks of MPI, as rank 0 sees them (tacit.run.serve: as the others do).

Rank 0 runs the program: it reads the spec, writes files and prints. Each rank loads the records of its own agents
alone, and answers for them. What is computed does not depend on the number of ranks (tacit.engine.spread).
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from tacit.data import hold_out, sources
from tacit.engine.passes import counted
from tacit.errors import IncompatibleError, OwnerWarning
from tacit.run import build
from tacit.run.setup import Setup
from tacit.run.spec import Spec
from tacit.run.watch import watched
from tacit.types import Array, Federation, Shard

if TYPE_CHECKING:
    from tacit.engine.mpi import Team
    from tacit.engine.spread import Part
    from tacit.run.hosted import HostedPart


@dataclass(eq=False)
class Lead:
    """What rank 0 knows of the other ranks: the federations that they hold parts of, by number, and the last setups."""

    team: Team
    numbers: WeakKeyDictionary[Federation, int] = field(default_factory=WeakKeyDictionary)
    dealt: WeakKeyDictionary[Federation, int] = field(default_factory=WeakKeyDictionary)  # test records of rank 0
    setups: Sequence[Setup] = ()
    made: int = 0
    advice: str = "give the same command again to go on"  # where a rank has died

    def number(self, federation: Federation) -> int:
        """Give a federation the number by which the other ranks know it; they forget those that nobody uses here."""
        self.made += 1
        self.numbers[federation] = self.made
        return self.made

    def doing(self, name: str, **arguments: Any) -> AbstractContextManager[None]:
        """Tell the other ranks what to do, and which federations are still in use."""
        return self.team.doing(name, used=[*self.numbers.values()], **arguments)

    def over(self, federation: Federation, name: str, **arguments: Any) -> AbstractContextManager[None]:
        """Tell the other ranks what to do with their parts of a federation."""
        return self.doing(name, number=self.numbers[federation], **arguments)


def __getattr__(name: str) -> Any:
    if name == "led":
        warnings.warn("tacit.run.ranks.led is now tacit.run.serve.led", DeprecationWarning, stacklevel=2)
        return importlib.import_module("tacit.run.serve").led
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_leads: list[Lead] = []  # one while a program leads other ranks, else none


def lead() -> Lead:
    """Return what leads the other ranks."""
    return _leads[0]


@contextmanager
def leading(team: Team) -> Iterator[None]:
    """Lead the other ranks, which serve; they end with this."""
    if team.alone:
        yield
        return
    lead = Lead(team)
    _leads.append(lead)
    try:
        with watched(lambda: team.done, lambda: f"a rank has died, or the job was ended: {lead.advice}"):
            yield
    finally:
        _leads.pop()
        team.command("stop")


def advise(directory: Path) -> None:
    """Note how a run goes on when a rank has died."""
    for lead in _leads:
        lead.advice = f"continue with: mpiexec -n {lead.team.size} tacit train --resume {directory}"


def federation(spec: Spec) -> Federation:
    """Load and transform the records that a spec names: those of this rank where agents are spread over ranks."""
    if spec.run.engine == "mpi":
        _check_noise(spec)
    if not _leads or spec.run.engine != "mpi":
        return build.federation(spec)
    check(spec)
    own = _leads[0]
    with own.doing("load", number=own.made + 1, spec=spec.toml()):
        found = load_part(spec, own.team)
    own.number(found)
    return found


def check(spec: Spec) -> None:
    """Refuse what cannot be computed by ranks that each hold some agents."""
    _check_noise(spec)
    if spec.algorithm.rule == "exact":
        raise IncompatibleError(f"{spec.algorithm.name} solves exactly, on one rank alone: drop --engine mpi.")


def _check_noise(spec: Spec) -> None:
    """Refuse exact noise, on one rank too: else a run that one rank began could not go on with two."""
    if spec.privacy.noise == "exact":
        raise IncompatibleError("the mpi engine simulates noise from a seed: drop --engine mpi, or --noise exact.")


def load_part(spec: Spec, team: Team) -> Federation:
    """Load the records of this rank, and learn the checksums of all others."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", OwnerWarning)
        found = build.transformed(spec, sources.load(spec.data.checked(), team))
    heard = team.together([str(one.message) for one in caught if issubclass(one.category, OwnerWarning)])
    for message in dict.fromkeys(chain(*heard)) if team.leads else ():  # the owner of all ranks' records sees rank 0
        with suppress(OwnerWarning):
            warnings.warn(message, OwnerWarning, stacklevel=2)
    told = chain(*team.together([shard.checksum for shard in found.shards if shard.here]))
    shards = (
        shard if shard.here else Shard.elsewhere(len(shard), found.n_features, crc)
        for shard, crc in zip(found.shards, told, strict=True)
    )
    return replace(found, shards=tuple(shards))


def is_spread(federation: Federation) -> bool:
    """Tell whether other ranks hold agents of a federation."""
    return bool(_leads) and federation in _leads[0].numbers


def engine(specs: Sequence[Spec], setups: Sequence[Setup], federation: Federation) -> Any:
    """Return the engine of runs over a federation that is spread."""
    from tacit.engine.spread import SpreadEngine

    for spec in specs:
        check(spec)
    part, agents, path = opened(specs, setups, federation, part_of)
    return SpreadEngine(part, _leads[0].team, agents, path)


def opened(
    specs: Sequence[Spec], setups: Sequence[Setup], federation: Federation, make: Callable[..., Any]
) -> tuple[Any, list[range], str]:
    """Have every rank make its part of runs; return this rank's, the agents of each rank, and what moves them."""
    own = _leads[0]
    with own.over(federation, "open", specs=[spec.toml() for spec in specs]):
        part = make(setups, federation, own.team)
        told = placed(part, own.team)
    own.setups = setups
    path = next(path for *_, path in told if path)
    return part, [range(*agents) for *agents, _ in told], f"{path} on each of {len(told)} ranks"


def placed(part: Part | HostedPart, team: Team) -> list[Any]:
    """Return of every rank which agents it has, and which code moves them."""
    return team.together([part.agents.start, part.agents.stop, part.path])


def part_of(setups: Sequence[Setup], federation: Federation, team: Team) -> Part:
    """Return the engine of this rank's agents."""
    from tacit.engine.spread import Part

    return Part([setup.agents for setup in setups], setups[0].shape, counted_together(federation, team))


def counted_together(federation: Federation, team: Team) -> Array:
    """Return what decides the form in which records are kept, counted over all ranks: each then takes the same."""
    return np.asarray(np.sum(team.together(counted(federation.shards).tolist()), axis=0))


# --- tuning


def held_out(whole: Federation, seed: int, one_in: int) -> Federation:
    """Return a federation in which one record in so many of each agent, at random, is the test set."""
    if not is_spread(whole):
        return hold_out.part(whole, seed, one_in)
    own = _leads[0]
    with own.over(whole, "hold_out", as_number=own.made + 1, seed=seed, one_in=one_in):
        found = hold_out_together(whole, seed, one_in, own.team)
    own.number(found)
    return found


def hold_out_together(whole: Federation, seed: int, one_in: int, team: Team) -> Federation:
    """Hold out records of the agents here; those of all ranks test at rank 0."""
    found = hold_out.part(whole, seed, one_in)
    x, y = (team.collect(part) for part in (found.test.x, found.test.y))
    test = Shard(x, y) if team.leads else found.test.rows(slice(0, 0))
    return replace(found, test=test)
