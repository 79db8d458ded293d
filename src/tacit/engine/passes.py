"""One pass over the records: sum_i x_i a_i^T of each agent, for several runs at once; a_i is a residual, shrunk.

A Pass is compiled (over whole rows, groups of features or tiles of non-zeros), or NumPy's (Blas). A call gives the sums
of agent p at a packed point, (J, width), and the largest |x_i a_i^T| of each run, (R,). A thread must use the sums up
before its next call. The fast engine asks `choose` once for a Pass, and so does engine.sums.
"""

from __future__ import annotations

import enum
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from time import perf_counter
from types import ModuleType
from typing import Any, TypeAlias, TypeGuard

import numpy as np

from tacit.engine.kernels import (
    GROUP,
    HALF,
    SUPPORTED_LOSSES,
    aligned,
    compiled,
    filled,
    filled_counts,
    grouped,
    of_run,
    patches,
    some_rows,
    tiled,
    width,
)
from tacit.problem.loss import Loss, Squared
from tacit.problem.sensitivity import Clipped, Declared, RecordBound, measured_norms
from tacit.types import Array, Norm, Shard

BLOCK = 1000  # records at a time through BLAS: residuals of all runs stay small

# beyond these shares the lists of `tiled` (of non-zeros) and the copies of `grouped` (of groups) take more room than
# the records themselves
TILED_BELOW, GROUPED_BELOW = 0.33, 0.8

FEW = 4  # agents a thread: fewer are summed in pieces, so that threads end together
PARTS = 256 << 20  # bytes that the sums of all pieces may take

RowNorms = dict[Norm, Array]  # |x_i| of one agent's records


@dataclass(frozen=True, eq=False)
class LossesAndBounds:
    """What the runs of one pass ask of an agent's records: the loss of each run, and the bound of its gradients."""

    losses: Sequence[Loss]
    bounds: Sequence[RecordBound]

    @cached_property
    def clip(self) -> Array:
        """What the compiled pass clips each run to; inf where a run does not clip."""
        return np.array([bound.target if isinstance(bound, Clipped) else np.inf for bound in self.bounds], np.float32)

    @property
    def squared(self) -> bool:
        """Whether the compiled pass, which knows one loss at a time, is to take the squared loss."""
        return isinstance(self.losses[0], Squared)

    @property
    def order(self) -> int:
        """1 or 2: the norm of the compiled pass, as its loops name it."""
        return 1 if self.norm is Norm.L1 else 2

    @cached_property
    def norm(self) -> Norm:
        """The norm of the compiled pass: where a run clips, that of its bound, which is the only one."""
        clipped = {bound.norm for bound in self.bounds if isinstance(bound, Clipped)}
        return next(iter(clipped or measured_norms(self.bounds) or {self.bounds[0].norm}))


class Form(enum.Enum):
    """How the compiled passes keep records: rows as they are, groups of features, or tiles of non-zeros."""

    WHOLE = "whole rows"
    GROUPED = "groups"
    TILED = "tiles"


@dataclass(frozen=True, eq=False)
class Layout:
    """A form, and for groups the order of the features."""

    form: Form
    order: Array | None = None


class Compiled:
    """One pass over the records: scores, residuals, bound, clipping and sums."""

    def __init__(
        self, layout: Layout, shards: Sequence[Shard], x_norm: Sequence[RowNorms], n_classes: int, n_runs: int,
        kernels: ModuleType,
    ) -> None:  # fmt: skip
        self.form, self.kernels = layout.form, kernels
        self.name = f"{layout.form.value} ({kernels.use()})"
        wide = width(n_runs, n_classes)
        self.records = tuple(
            tiled(shard, sizes, n_classes, wide)
            if layout.form is Form.TILED
            else grouped(shard, sizes, n_classes, whole=layout.form is Form.WHOLE, order=layout.order)
            for shard, sizes in zip(shards, x_norm, strict=True)
        )
        self.scratch: dict[object, Array] = {}  # room for one sum a thread

    def __call__(self, p: int, point: Array, asked: LossesAndBounds) -> tuple[Array, Array]:
        place = (threading.get_ident(), point.shape)
        if place not in self.scratch:
            self.scratch[place] = aligned(*point.shape)
        return self.scratch[place], self.sum(p, -1, point, asked, self.scratch[place])

    @property
    def work(self) -> tuple[int, int]:
        """(numbers that a pass multiplies, bytes of records that it reads), over all agents."""
        numbers, read = zip(*map(self.kernels.work, self.records), strict=True)
        return sum(numbers), sum(read)

    def pieces(self, p: int) -> int:
        """In how many pieces the records of agent p are summed; the sums of all pieces, added in order, are the sum."""
        return int(self.kernels.pieces(self.records[p]))

    def sum(self, p: int, piece: int, point: Array, asked: LossesAndBounds, out: Array) -> Array:
        """Writes the sum over one piece of agent p, -1 for all, into `out`; returns the largest of each run."""
        largest = np.zeros(len(asked.bounds), np.float32)
        self.kernels.gradient(
            self.records[p], piece, point, len(asked.bounds), asked.squared, asked.order, asked.clip, out, largest
        )
        return largest


class Blas:
    """NumPy in float32, a block of records at a time; any loss and any bound."""

    name = "dense (BLAS)"

    def __init__(self, shards: Sequence[Shard], x_norm: Sequence[RowNorms], n_classes: int) -> None:
        self.shards, self.x_norm, self.classes = shards, x_norm, n_classes

    @property
    def work(self) -> tuple[int, int]:
        """As for Compiled: BLAS reads x for the scores, and once more for the sums."""
        numbers = sum(shard.x.size for shard in self.shards)
        return numbers, 2 * 4 * numbers

    def __call__(self, p: int, point: Array, asked: LossesAndBounds) -> tuple[Array, Array]:
        shard, n_runs = self.shards[p], len(asked.bounds)
        out, largest = np.zeros_like(point), np.zeros(n_runs)
        for start in range(0, len(shard), BLOCK):
            rows = slice(start, start + BLOCK)
            score = shard.x[rows] @ point
            for r, (loss, bound) in enumerate(zip(asked.losses, asked.bounds, strict=True)):
                own, size = of_run(score, r, self.classes), self.x_norm[p][bound.norm][rows]
                residual = loss.residual(own, shard.y[rows])
                largest[r] = max(largest[r], bound.bound(residual, size))
                own[...] = bound.shrink(residual, size)
            score[:, n_runs * self.classes :] = 0
            out += shard.x[rows].T @ score
        return out, largest


@dataclass(frozen=True, eq=False)
class Summed:
    """The sums of one agent, the largest of each run, and the seconds it took."""

    sums: Array
    largest: Array
    seconds: float


ShareOut: TypeAlias = Callable[[Callable[[int], Any], Sequence[int]], list[Any]]  # a map over threads


def cut(sums: Pass, n_agents: int, threads: int, point: Array) -> TypeGuard[Compiled]:
    """Whether to sum in pieces: where agents are few, and the sums of all pieces find room. No bit depends on it."""
    if not isinstance(sums, Compiled) or n_agents >= FEW * threads:
        return False
    return sum(map(sums.pieces, range(n_agents))) * point.nbytes <= PARTS


def in_pieces(
    sums: Compiled, points: Sequence[Array], asked: Sequence[LossesAndBounds], share_out: ShareOut
) -> list[Summed]:
    """The sums of few agents, each at its point: threads share out the pieces of all agents, and not the agents."""
    pieces = [(p, piece) for p in range(len(points)) for piece in range(sums.pieces(p))]
    parts = aligned(len(pieces), *points[0].shape)

    def take(i: int) -> tuple[Array, float]:
        start, (p, piece) = perf_counter(), pieces[i]
        return sums.sum(p, piece, points[p], asked[p], parts[i]), perf_counter() - start

    taken = share_out(take, range(len(pieces)))

    def add(p: int) -> Summed:
        first, *rest = own = [i for i, (q, _) in enumerate(pieces) if q == p]
        for i in rest:
            parts[first] += parts[i]
        return Summed(parts[first], np.max([taken[i][0] for i in own], axis=0), sum(taken[i][1] for i in own))

    return share_out(add, range(len(points)))


Pass: TypeAlias = Compiled | Blas


def choose(
    shards: Sequence[Shard], x_norm: Sequence[RowNorms], n_classes: int, n_runs: int, has_form: bool,
    counts: Array | None = None,
) -> Pass:  # fmt: skip
    """The compiled pass that costs least, where there is one for what is asked of float32 records; else NumPy's.

    `counts` (counted) is of the records of all agents, where some are in other processes.
    """
    for shard in shards:
        shard.at_hand()
    kernels = compiled() if has_form and shards[0].x.dtype == np.float32 else None
    if kernels is None:
        return Blas(shards, x_norm, n_classes)
    layout = layouts_that_fit(shards, n_classes * n_runs, counts)[0]
    return Compiled(layout, shards, x_norm, n_classes, n_runs, kernels)


def counted(shards: Sequence[Shard]) -> Array:
    """How full a sample of all agents' records is, of those that are here; processes add up what they count."""
    return filled_counts(some_rows(shards), patches(shards[0].x.shape[1]))


def layouts_that_fit(shards: Sequence[Shard], columns: int, counts: Array | None = None) -> list[Layout]:
    """The forms whose copies take no more room than the records, the one with the least cost first.

    Costs are nanoseconds of a record, both ways, as one core of a server of 2023 takes them (docs/performance.md);
    their ratios decide. A group costs one multiply-add a column; an entry loads a row of the model, by half registers.
    """
    features = shards[0].x.shape[1]
    order = patches(features)
    entries, groups = filled(counted(shards) if counts is None else counts)
    in_groups, loaded = -(-features // GROUP), -(-columns // HALF) * HALF
    cost = {
        Form.WHOLE: in_groups * (0.2 + 0.39 * columns),
        Form.GROUPED: groups * in_groups * (0.4 + 0.46 * columns),
        Form.TILED: entries * features * (1.1 + 0.055 * loaded),
    }
    fits = {
        Form.WHOLE: True,
        Form.GROUPED: groups <= GROUPED_BELOW,
        Form.TILED: entries <= TILED_BELOW,
    }
    best = sorted((form for form in Form if fits[form]), key=lambda form: cost[form])
    return [Layout(form, order if form is Form.GROUPED else None) for form in best]


def exact_sums(shard: Shard, loss: Loss, bound: RecordBound, n_classes: int) -> Callable[[Array], Array] | None:
    """sum_i x_i a_i^T at a point (J, K), compiled, all in float64; None where there is no such loop.

    Every record is shrunk to its bound. Values of the records may be float32, which float64 holds exactly. The form of
    the records is a function of J, which is public: were it chosen by what the records hold, one record could change
    how the scores of all others are rounded. Groups that are left out are zeros, which change no sum.
    """
    kernels = compiled()
    known = type(loss) in SUPPORTED_LOSSES and type(bound) in (Declared, Clipped) and bound.norm is not Norm.INF
    if kernels is None or not known:
        return None
    asked, features = LossesAndBounds([loss], [bound]), shard.x.shape[1]
    order = patches(features)
    rows = (shard.x[i : i + BLOCK].astype(np.float64, copy=False) for i in range(0, len(shard), BLOCK))
    x_norm = np.concatenate([np.zeros(0), *map(bound.norm.of_rows, rows)])
    records = grouped(shard, {bound.norm: x_norm}, n_classes, order is None, np.float64, order)
    clip = np.array([bound.target if isinstance(bound, Clipped) else np.inf])

    def sums(point: Array) -> Array:
        packed = np.zeros((features, width(1, n_classes)))
        packed[:, :n_classes] = point
        out = np.empty_like(packed)
        kernels.gradient(records, -1, packed, 1, asked.squared, asked.order, clip, out, np.empty(1))
        return of_run(out, 0, n_classes)

    return sums


def row_norms(shards: Sequence[Shard], norms: Iterable[Norm]) -> list[RowNorms]:
    """|x_i| of every agent's records, in each of the norms."""
    return [{norm: norm.of_rows(shard.x) for norm in norms} for shard in shards]


def constant(bound: RecordBound, x_norm: RowNorms) -> float:
    """A bound that is a constant, after one check that the records keep it; zero for a bound of another kind."""
    if type(bound) not in (Declared, Clipped):
        return 0.0
    size = x_norm[bound.norm]
    nothing = np.zeros((len(size), 1))
    bound.shrink(nothing, size)
    return bound.bound(nothing, size)
