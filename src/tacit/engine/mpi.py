"""Ranks of MPI: one leads and the others follow. The only module that imports mpi4py.

Rank 0 runs the program. The other ranks wait for its commands (tacit.run.ranks), and answer them together. Nothing is
pickled: commands and what ranks tell one another are JSON, and records and models are plain arrays.

    doing(name, ...)       rank 0 tells all others what to do, does its part, and ends when all have ended
    obey(work)             another rank does its part
    together(value)        every rank learns what every rank has to say; an error of one is raised on all
    spread(array)          every rank gets an array of rank 0
    collect, collect_all   rank 0 gets the rows of every rank
    deal(n, arrays)        every rank gets its rows of the arrays of rank 0
    ask_round, gather      one broadcast and one gather, of fixed sizes
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from tacit import errors
from tacit.engine.blocks import shares
from tacit.engine.fast import FastEngine
from tacit.engine.registry import Builder
from tacit.errors import TacitError, missing_extra
from tacit.machine import allowed_cores
from tacit.types import Array

try:
    from mpi4py import MPI
except (ImportError, RuntimeError) as error:  # RuntimeError: mpi4py is there, and no library of MPI
    raise missing_extra(f"the mpi engine needs mpi4py and MPI ({error})", "mpi") from error

COMMAND, ROUND = 0.0, 1.0  # what a frame says first
HEAD = 3  # numbers before those of a round: the kind, the round, and the length of a command
AT_ONCE = 1 << 29  # bytes of one message: MPI counts in 32 bits

BUILDER = Builder(lambda runs, shape, _device: FastEngine(runs, shape))  # of agents that are all on this rank


class Told(Exception):
    """An error that every rank has heard of."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(str(error))
        self.error = error


class Team:
    """The ranks of one program. What rank 0 sends is a frame: its head, and then the numbers of a round."""

    def __init__(self, comm: Any) -> None:
        self.comm, self.rank, self.size = comm, comm.Get_rank(), comm.Get_size()
        self.frame = np.zeros(HEAD)
        self.done = 0  # messages that have come through

    @property
    def alone(self) -> bool:
        """Whether there is no other rank."""
        return bool(self.size == 1)

    @property
    def leads(self) -> bool:
        """Whether this is rank 0."""
        return bool(self.rank == 0)

    def mine(self, counts: Sequence[int]) -> range:
        """Which agents are this rank's, given how many records each has."""
        own: range = shares(counts, self.size)[self.rank]
        return own

    # --- rare messages: JSON, and arrays of any size

    @contextmanager
    def doing(self, name: str, **arguments: Any) -> Iterator[None]:
        """On rank 0: tell all ranks what to do, and do it here. It ends when all have ended, or one has failed."""
        self.command(name, **arguments)
        try:
            try:
                yield
                self.together()
            except BaseException as error:
                self.fail(error)
        except Told as told:
            raise told.error from None

    def obey(self, work: Callable[[], None]) -> bool:
        """On another rank: do what rank 0 asks for. Tell whether all ranks have done it; an error is raised there."""
        try:
            try:
                work()
                self.together()
            except BaseException as error:
                self.fail(error)
        except Told:
            return False
        return True

    def command(self, name: str, **arguments: Any) -> None:
        """Tell all other ranks what to do next."""
        text = np.frombuffer(json.dumps([name, arguments]).encode(), np.uint8)
        self.frame[:HEAD] = COMMAND, 0, len(text)
        self.comm.Bcast(self.frame)
        self.comm.Bcast(text.copy())

    def hear(self) -> tuple[str, dict[str, Any]] | None:
        """The next command of rank 0; None for a round, whose numbers are then in the frame."""
        self.comm.Bcast(self.frame)
        if self.frame[0] == ROUND:
            return None
        text = np.empty(int(self.frame[2]), np.uint8)
        self.comm.Bcast(text)
        name, arguments = json.loads(text.tobytes())
        return name, arguments

    def together(self, value: Any = None) -> list[Any]:
        """What every rank has to say, in their order."""
        return self._exchange({"value": value})

    def fail(self, error: BaseException) -> None:
        """Raise an error on all ranks, each of which is in `together` or on its way there."""
        if isinstance(error, Told):
            raise error
        self._exchange({"kind": type(error).__name__, "error": str(error)}, error)

    def _exchange(self, own: dict[str, Any], error: BaseException | None = None) -> list[Any]:
        text = np.frombuffer(json.dumps(own).encode(), np.uint8)
        lengths = np.empty(self.size, np.int64)
        self.comm.Allgather(np.array([len(text)]), lengths)
        every = np.empty(int(lengths.sum()), np.uint8)
        self.comm.Allgatherv(text.copy(), [every, lengths.tolist()])
        self.done += 1
        told = [json.loads(part.tobytes()) for part in np.split(every, np.cumsum(lengths)[:-1])]
        for rank, one in enumerate(told):
            if "error" in one:
                raise Told(error if rank == self.rank and error else _rebuilt(one["kind"], one["error"], rank))
        return [one["value"] for one in told]

    def spread(self, own: Array | None = None) -> Array:
        """Return an array of rank 0 on every rank."""
        kind, shape = self.together(None if own is None else [own.dtype.str, list(own.shape)])[0]
        array = np.empty(shape, kind) if own is None else np.ascontiguousarray(own)
        for part in _slices(array):
            self.comm.Bcast(part)
        return array

    def collect(self, own: Array) -> Array:
        """Return the rows of all ranks at rank 0, in the order of the ranks; no rows elsewhere."""
        own = np.ascontiguousarray(own)
        kinds = self.together([own.dtype.str, list(own.shape)])
        if not self.leads:
            self.send(own, 0)
            return own[:0]
        every = (self.receive(kind, shape, rank) for rank, (kind, shape) in enumerate(kinds[1:], 1))
        return np.concatenate([own, *every])

    def collect_all(self, own: Mapping[str, Array]) -> dict[str, Array]:
        """Return what `collect` returns of each array, by name; a rank without agents need not have the arrays."""
        told = self.together(_kinds(own))
        kinds: dict[str, Any] = next((kinds for kinds in told if kinds), {})
        return {
            name: self.collect(own[name] if name in own else np.empty((0, *shape), kind))
            for name, (kind, shape) in kinds.items()
        }

    def deal(self, n: int, every: Mapping[str, Array] | None = None) -> dict[str, Array]:
        """Return the next n rows of each array of rank 0, by name: each rank says how many rows it takes."""
        told = self.together([n, _kinds(every or {})])
        if every is None:
            return {name: self.receive(kind, (n, *shape), 0) for name, (kind, shape) in told[0][1].items()}
        stops = np.cumsum([taken for taken, _ in told]).tolist()
        for rank, (start, stop) in enumerate(pairwise(stops), 1):
            for array in every.values():
                self.send(array[start:stop], rank)
        return {name: array[:n] for name, array in every.items()}

    def send(self, array: Array, to: int) -> None:
        """Send an array, which the other rank receives."""
        for part in _slices(np.ascontiguousarray(array)):
            self.comm.Send(part, to)

    def receive(self, kind: str, shape: Sequence[int], sender: int) -> Array:
        """Receive an array that another rank sends."""
        array = np.empty(shape, kind)
        for part in _slices(array):
            self.comm.Recv(part, sender)
        return array

    # --- a round: one broadcast and one gather

    def expect(self, numbers: int) -> None:
        """Agree that a round sends so many numbers."""
        self.frame = np.zeros(HEAD + numbers)

    def ask_round(self, t: int, numbers: Array) -> None:
        """Ask every rank for a round."""
        self.frame[0], self.frame[1] = ROUND, t
        self.frame[HEAD:] = numbers
        self.comm.Bcast(self.frame)

    def gather(self, own: Array, lengths: Sequence[int]) -> list[Array]:
        """The numbers of all ranks at rank 0, of lengths that are known; nothing elsewhere."""
        if not self.leads:
            self.comm.Gatherv(own, None)
            return []
        every = np.empty(sum(lengths))
        self.comm.Gatherv(own, [every, list(lengths)])
        self.done += 1
        return np.split(every, np.cumsum(lengths)[:-1])


def _kinds(own: Mapping[str, Array]) -> dict[str, Any]:
    """Return the type and the shape of a row of each array."""
    return {name: [array.dtype.str, list(array.shape[1:])] for name, array in own.items()}


def _slices(array: Array) -> list[Array]:
    """The bytes of an array, so many at a time."""
    flat = array.reshape(-1).view(np.uint8)
    return [flat[i : i + AT_ONCE] for i in range(0, len(flat), AT_ONCE)]


def _rebuilt(kind: str, message: str, rank: int) -> TacitError:
    """The error of another rank: of its own kind where the kind is ours."""
    found = getattr(errors, kind, None)
    if isinstance(found, type) and issubclass(found, TacitError):
        return found(message)
    return TacitError(f"rank {rank}: {kind}: {message}")


@lru_cache(maxsize=1)
def team() -> Team:
    """The ranks that mpiexec started; this process alone where it did not. Ranks on one machine share its cores."""
    world = Team(MPI.COMM_WORLD)
    if world.size > 1 and "TACIT_THREADS" not in os.environ:
        beside = MPI.COMM_WORLD.Split_type(MPI.COMM_TYPE_SHARED)
        own = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(allowed_cores()))
        masks = np.zeros(max(own) + 1 if own else 1, np.int32)
        longest = np.array([len(masks)])
        beside.Allreduce(MPI.IN_PLACE, longest, MPI.MAX)
        users = np.zeros(int(longest[0]), np.int32)
        users[sorted(own)] = 1
        beside.Allreduce(MPI.IN_PLACE, users)
        share = sum(1 / users[core] for core in own)  # a core that three ranks may use is a third of a core to each
        os.environ["TACIT_THREADS"] = str(max(1, round(share)))
    return world
