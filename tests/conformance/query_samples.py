"""Samples of every query: random ones, neighbours that come near the bound, and parameters that are wrong."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tacit.problem.loss import Huber, Softmax, Squared
from tacit.problem.sensitivity import Adjacency, Clipped, Declared, Observed, from_row_norm
from tacit.query.counts import Counts
from tacit.query.gradient import Gradient, evaluator
from tacit.query.moments import Moments
from tacit.query.query import AgentQuery, Evaluator, Query
from tacit.query.records import InMemory, View
from tacit.run import deploy
from tacit.types import Array, Norm

ABSENT, REPLACED = Adjacency.ZERO_OUT, Adjacency.REPLACE_ONE
HUGE = 1e30


@dataclass(frozen=True, eq=False)
class Table:
    """Records: x (n, J), y (n,), cells by name, and which of them are present."""

    x: Array
    y: Array
    cells: dict[str, Array]
    present: Array

    @property
    def records(self) -> InMemory:
        return InMemory(self.y, {View.ROWS: self.x, View.COLUMNS: self.x}, self.present, self.cells)

    def rows(self, kept: Any) -> Table:
        cells = {name: column[kept] for name, column in self.cells.items()}
        return Table(self.x[kept], self.y[kept], cells, self.present[kept])

    def put(self, i: int, x: Any = None, y: Any = None, cell: float | None = None, present: bool = True) -> Table:
        """The records with another one, or none, in place i."""
        own = Table(self.x.copy(), self.y.copy(), {n: c.copy() for n, c in self.cells.items()}, self.present.copy())
        own.present[i] = present
        if x is not None:
            own.x[i] = x
        if y is not None:
            own.y[i] = y
        if cell is not None:
            for column in own.cells.values():
                column[i] = cell
        return own


def table(rng: np.random.Generator, n: int, features: int, scores: int, columns: int = 0) -> Table:
    """Records of very different lengths: some longer than any bound, zeros among them; cells that are no numbers."""
    x = rng.normal(size=(n, features)) * (rng.random((n, features)) < 0.6) * 10.0 ** rng.uniform(-3, 2, size=(n, 1))
    y = rng.uniform(-1, 1, size=n) if scores == 1 else rng.integers(scores, size=n)
    cells = {f"c{k}": np.where(rng.random(n) < 0.1, np.nan, 5 * rng.normal(size=n)) for k in range(columns)}
    return Table(x.astype(rng.choice([np.float32, np.float64])), y, cells, np.ones(n, bool))


@dataclass(frozen=True, eq=False)
class Case:
    """A query, a question's parameters, and a source of tables that fit."""

    query: Query
    body: dict[str, Any]
    table: Callable[[np.random.Generator, int], Table]
    others: tuple[Evaluator[Any], ...] = ()  # beside the query's own

    @property
    def evaluators(self) -> tuple[Evaluator[Any], ...]:
        return (self.query.evaluator, *self.others)

    def of(self, rows: Table, evaluator: Evaluator[Any] | None = None) -> AgentQuery[Any]:
        return AgentQuery(self.query, rows.records, evaluator or self.query.evaluator)

    def value(self, rows: Table, evaluator: Evaluator[Any] | None = None) -> Array:
        return self.of(rows, evaluator).answer(self.body).ravel()


@dataclass(frozen=True, eq=False)
class Worst:
    """Neighbours, and the share of the bound that they reach at least."""

    name: str
    case: Case
    norm: Norm
    adjacency: Adjacency
    pair: tuple[Table, Table]
    least: float


@dataclass(frozen=True)
class Sample:
    draw: Callable[[np.random.Generator, int], Case]  # for so many features
    worst: Callable[[], list[Worst]]
    different: tuple[Query, ...]  # no two of them are the same
    wrong: dict[str, Callable[[], object]]  # descriptions that are refused
    unfit: tuple[dict[str, Any], ...] = field(default=())  # parameters of a question to the first of `different`


# --- gradient --------------------------------------------------------------------------------------------------------


def draw_gradient(rng: np.random.Generator, features: int) -> Case:
    scores = int(rng.choice([1, 2, 3, 10]))
    norm, clips = rng.choice([Norm.L1, Norm.L2]), rng.random() < 0.6
    losses = [Huber(0.3), Squared()] if scores == 1 else [Softmax(), Squared()]
    loss = losses[0] if not clips else rng.choice(losses)
    bound = Clipped(norm, 0.3) if clips else from_row_norm(norm, float(rng.choice([0.1, 1.0, 30.0])), loss)
    query = Gradient((features, scores), loss, bound, 1 / int(rng.integers(100, 1000)))
    return gradient_case(query, rng.choice([0.0, 0.1, 3.0, HUGE]) * rng.normal(size=query.shape))


def gradient_case(query: Gradient, point: Array) -> Case:
    made = lambda rng, n: table(rng, n, *query.shape)  # noqa: E731
    return Case(query, {"point": point}, made, (evaluator(deploy.compiled_sums),))


def worst_gradients() -> list[Worst]:
    j, found = 24, []

    def add(name: str, query: Gradient, point: Array, norm: Norm, adjacency: Adjacency, own: Any, other: Any) -> None:
        case = gradient_case(query, point)
        base = case.table(np.random.default_rng(0), 301)
        base = replace(base, x=base.x.astype(np.float64)).put(300, *own)
        gone = base.put(300, *other) if other is not None else base.put(300, present=False)
        found.append(Worst(name, case, norm, adjacency, (base, gone), 0.999))

    # the score of a record is decided by its second feature, which is small: the first one is the gradient
    sure, near, far = np.zeros((j, 2)), np.zeros(j), np.zeros(j)
    sure[1], near[:2], far[:2] = (-1e9, 1e9), (1.0, 1e-5), (1.0, -1e-5)
    for norm in (Norm.L1, Norm.L2):
        for bound in (Clipped(norm, 0.3), from_row_norm(norm, 1.0, Softmax())):
            query, kind = Gradient((j, 2), Softmax(), bound, 1 / 300), type(bound).__name__
            unit = near / norm.of_rows(near[None])[0], 0
            opposite = far / norm.of_rows(far[None])[0], 1
            add(f"{kind} {norm.value}, present", query, sure, norm, ABSENT, unit, None)
            add(f"{kind} {norm.value}, replaced", query, sure, norm, REPLACED, unit, opposite)
    # all numbers of a gradient of one size: clipped in l2, and as long as there may be in l1
    flat = Gradient((j, 3), Squared(), Clipped(Norm.L2, 0.3), 0.01)
    add("l1 of a clip in l2", flat, np.full((j, 3), 1e6), Norm.L1, ABSENT, (np.ones(j), 0), None)
    one = Gradient((j, 3), Squared(), Clipped(Norm.L1, 0.3), 0.01)
    point = np.zeros((j, 3))
    point[0, 0] = 1e9
    add("l2 of a clip in l1", one, point, Norm.L2, ABSENT, (np.eye(j)[0], 0), None)
    return found


CLIP = Clipped(Norm.L2, 1.0)
GRADIENT = Gradient((4, 3), Softmax(), CLIP, 0.01)


@dataclass(frozen=True)
class Peeking:
    """A bound that says it is public, and is read from the records."""

    norm: Norm = Norm.L2
    public: bool = True
    value: float = 1.0

    def shrink(self, residual, x_norm):  # noqa: ARG002
        return residual

    def bound(self, residual, x_norm):
        return float((x_norm * self.norm.of_rows(residual)).max())

    def hold(self, x):
        return x


ODD_NUMBERS: tuple[Any, ...] = (0.0, -1.0, math.nan, math.inf, 1e60, 1e-60, 10**400, "1", None, True, 1j)
ODD_SHAPES: tuple[Any, ...] = (
    (4,), (4, 0), (-4, 3), (4, 3, 1), (4.0, 3), [4, 3], "ab", None, 4, (2**20, 2**20), (True, 3),
)  # fmt: skip
ODD_MODELS: tuple[Any, ...] = (
    None, 1.0, [[0.0] * 3] * 4, np.zeros((3, 4)), np.zeros(12), np.zeros((4, 3), np.float32), np.zeros((4, 3), int),
    np.full((4, 3), np.nan), np.full((4, 3), np.inf), np.full((4, 3), 1e51), np.zeros((4, 3), object),
)  # fmt: skip


def gradient_wrong() -> dict[str, Callable[[], object]]:
    made: dict[str, Callable[[], object]] = {
        "observed": lambda: replace(GRADIENT, record_bound=Observed(Norm.L2)),
        "not public": lambda: replace(GRADIENT, record_bound=Declared(Norm.L2, 5.0, public=False)),
        "peeking": lambda: replace(GRADIENT, record_bound=Peeking()),  # type: ignore[arg-type]
        "declared, and bounds nothing": lambda: replace(GRADIENT, record_bound=Declared(Norm.L2, 5.0)),
        "inf norm": lambda: replace(GRADIENT, record_bound=Clipped(Norm.INF, 5.0)),
        "huge bound": lambda: replace(GRADIENT, record_bound=Clipped(Norm.L2, 1e60)),
        "shared": lambda: replace(GRADIENT, shared=1),  # type: ignore[arg-type]
    }
    made |= {f"weight {n}": lambda odd=n: replace(GRADIENT, weight=odd) for n in ODD_NUMBERS}  # type: ignore[misc]
    return made | {f"shape {n}": lambda odd=n: replace(GRADIENT, shape=odd) for n in ODD_SHAPES}  # type: ignore[misc]


# --- moments ---------------------------------------------------------------------------------------------------------


def draw_moments(rng: np.random.Generator, features: int) -> Case:
    weights = np.where(rng.random(3) < 0.7, 10.0 ** rng.uniform(-2, 2, 3), 0)
    weights[rng.integers(3)] = 1.0
    gram, cross, square = (float(weight) or None for weight in weights)
    shape, unit = (features, int(rng.choice([1, 2, 3, 10]))), float(rng.choice([1e-20, 0.3, 1.0, 1e20]))
    view = View.ROWS if rng.random() < 0.5 else View.COLUMNS
    return moments_case(Moments(shape, unit, gram, cross, square, view))


def moments_case(query: Moments) -> Case:
    return Case(query, {}, lambda rng, n: table(rng, n, *query.shape))


def worst_moments() -> list[Worst]:
    j, found, unit = 64, [], 0.7
    flat = np.full(j, unit / math.sqrt(j))
    half = np.where(np.arange(j) % 2, flat, -flat)

    def turned(share: float) -> Array:
        """A row as long as the first axis, at an angle to it whose cosine is -share."""
        return unit * (math.sqrt(1 - share**2) * np.eye(j)[1] - share * np.eye(j)[0])

    def add(name: str, query: Moments, norm: Norm, adjacency: Adjacency, own: Any, other: Any, least: float) -> None:
        case = moments_case(query)
        base = case.table(np.random.default_rng(0), 301)
        base = replace(base, x=base.x.astype(np.float64)).put(300, *own)
        gone = base.put(300, *other) if other is not None else base.put(300, present=False)
        found.append(Worst(f"{name}, {query.shape[1]} scores", case, norm, adjacency, (base, gone), least))

    for k in (1, 3):
        label, e = (1.0, 1.0) if k == 1 else (2, 2 / 3)
        one = Moments((j, k), unit, gram=1.0, cross=1.5, square=0.5)
        blocks = {"gram": replace(one, cross=None, square=None), "cross": replace(one, gram=None, square=None),
                  "gram and cross": replace(one, square=None), "all": one}  # fmt: skip
        for name, query in blocks.items():
            for norm in (Norm.L1, Norm.L2):
                add(f"{name} present", query, norm, ABSENT, (flat, label), None, 0.999999)
            g, c = query.gram or 0.0, query.cross or 0.0
            share = min(c**2 * e / (2 * g**2), 1.0) if g else 1.0
            own = unit * np.eye(j)[0], label
            least = 0.999999 if query.square is None else 0.98
            add(f"{name} replaced", query, Norm.L2, REPLACED, own, (turned(share), label), least)
        add("square present", replace(one, gram=None, cross=None), Norm.L2, ABSENT, (flat, label), None, 0.999999)
        add("gram replaced", blocks["gram"], Norm.L1, REPLACED, (flat, label), (half, label), 0.70)
        add("cross replaced", blocks["cross"], Norm.L1, REPLACED, (flat, label), (-flat, label), 0.999999)
        add("all replaced", one, Norm.L1, REPLACED, (flat, label), (half, 0), 0.64)
    add("square replaced", replace(one, shape=(j, 1), gram=None, cross=None), Norm.L1, REPLACED,
        (flat, 1.0), (flat, 0.0), 0.999999)  # fmt: skip
    return found


MOMENTS = Moments((4, 3), 1.0, gram=1.0, cross=1.0, square=1.0)


def moments_wrong() -> dict[str, Callable[[], object]]:
    made: dict[str, Callable[[], object]] = {
        "nothing is asked for": lambda: Moments((4, 3), 1.0),
        "raw cells": lambda: replace(MOMENTS, view=View.CELLS),
        "a view by name": lambda: replace(MOMENTS, view="mapped rows"),  # type: ignore[arg-type]
        "too many pairs": lambda: Moments((2**15, 2), 1.0, gram=1.0),
    }
    for key in ("row_norm", "gram", "cross", "square"):
        for n in ODD_NUMBERS:
            if n is not None or key == "row_norm":
                made[f"{key} {n}"] = lambda key=key, odd=n: replace(MOMENTS, **{key: odd})  # type: ignore[misc]
    return made | {f"shape {n}": lambda odd=n: replace(MOMENTS, shape=odd) for n in ODD_SHAPES}  # type: ignore[misc]


# --- counts ----------------------------------------------------------------------------------------------------------


def draw_counts(rng: np.random.Generator, features: int) -> Case:
    m = int(rng.choice([1, 3, 7]))
    edges = tuple(tuple(np.unique(rng.normal(size=int(rng.integers(1, 30)))).tolist()) for _ in range(m))
    if rng.random() < 0.5:
        return cells_case(Counts(edges, columns=tuple(f"c{k}" for k in range(m))))
    model = rng.normal(size=(features, m))
    if features > 1 and rng.random() < 0.5:  # terms that cancel: another order of a sum would be another bin
        model[rng.permutation(features)[:2]] = np.array([1e16, -1e16])[:, None]
    return Case(Counts(edges, features=features), {"model": model}, lambda rng, n: table(rng, n, features, 3))


def cells_case(query: Counts) -> Case:
    return Case(query, {}, lambda rng, n: table(rng, n, 2, 3, len(query.columns)))


def worst_counts() -> list[Worst]:
    found = []
    for columns in (("c0",), ("c0", "c1", "c2", "c3", "c4")):
        case = cells_case(Counts(((0.0, 1.0),) * len(columns), columns=columns))
        base = case.table(np.random.default_rng(0), 301).put(300, cell=0.0)
        pairs = {ABSENT: base.put(300, present=False), REPLACED: base.put(300, cell=1.0)}
        for adjacency, other in pairs.items():
            for norm in (Norm.L1, Norm.L2):
                name = f"{len(columns)} histograms, {norm.value}, {adjacency.name.lower()}"
                found.append(Worst(name, case, norm, adjacency, (base, other), 0.999999))
    return found


SCORES = Counts(((0.0, 1.0), (0.0,), (-1.0, 2.0)), features=4)
CELLS = Counts(((0.0, 1.0), (0.0,)), columns=("c0", "c1"))
ODD_EDGES: tuple[Any, ...] = (
    (), [0.0, 1.0], (0.0, 0.0), (1.0, 0.0), (0.0, math.nan), (math.nan,), (0.0, math.inf), (-math.inf, 0.0), (1e60,),
    (0, 1), ("0",), None, 0.0, (None,), (True,), tuple(np.zeros(1)[:, None]),
)  # fmt: skip


def counts_wrong() -> dict[str, Callable[[], object]]:
    made: dict[str, Callable[[], object]] = {
        "no histogram": lambda: Counts((), columns=()),
        "a list of histograms": lambda: Counts([(0.0,)], features=4),  # type: ignore[arg-type]
        "of nothing": lambda: Counts(((0.0,),)),
        "of cells and scores": lambda: Counts(((0.0,),), columns=("c0",), features=4),
        "a column twice": lambda: Counts(((0.0,), (0.0,)), columns=("c0", "c0")),
        "one column of two": lambda: Counts(((0.0,), (0.0,)), columns=("c0",)),
        "a column without a name": lambda: Counts(((0.0,),), columns=("",)),
        "a column by number": lambda: Counts(((0.0,),), columns=(0,)),  # type: ignore[arg-type]
        "columns in one text": lambda: Counts(((0.0,), (0.0,)), columns="ab"),  # type: ignore[arg-type]
        "too many bins": lambda: Counts((tuple(np.arange(2.0**16).tolist()),) * 300, features=4),
    }
    made |= {f"edges {n}": lambda odd=n: replace(CELLS, edges=(odd, (0.0,))) for n in ODD_EDGES}  # type: ignore[misc]
    odd: tuple[Any, ...] = (-1, 1.0, "4", math.nan, 2**40, (4,))
    return made | {f"features {n}": lambda odd=n: replace(SCORES, features=odd) for n in odd}  # type: ignore[misc]


SAMPLES: dict[str, Sample] = {
    "gradient": Sample(
        draw_gradient, worst_gradients,
        (GRADIENT, replace(GRADIENT, shape=(3, 4)), replace(GRADIENT, loss=Squared()), replace(GRADIENT, weight=0.02),
         replace(GRADIENT, shared=False), replace(GRADIENT, record_bound=Clipped(Norm.L1, 1.0)),
         replace(GRADIENT, record_bound=Clipped(Norm.L2, math.nextafter(1.0, 2))),
         replace(GRADIENT, record_bound=from_row_norm(Norm.L2, 1.0, Softmax())),
         replace(GRADIENT, shape=(4, 1), loss=Huber(0.3)), replace(GRADIENT, shape=(4, 1), loss=Huber(0.4))),
        gradient_wrong(), ({}, *({"point": odd} for odd in ODD_MODELS), {"point": np.zeros((4, 3)), "more": 1}),
    ),
    "moments": Sample(
        draw_moments, worst_moments,
        (MOMENTS, replace(MOMENTS, shape=(3, 4)), replace(MOMENTS, row_norm=2.0), replace(MOMENTS, gram=None),
         replace(MOMENTS, cross=None), replace(MOMENTS, square=None), replace(MOMENTS, gram=2.0),
         replace(MOMENTS, cross=2.0), replace(MOMENTS, square=2.0), replace(MOMENTS, view=View.COLUMNS)),
        moments_wrong(), ({"point": np.zeros((4, 3))},),
    ),
    "counts": Sample(
        draw_counts, worst_counts,
        (SCORES, CELLS, replace(SCORES, features=3), replace(SCORES, edges=SCORES.edges[:2]),
         replace(CELLS, columns=("c1", "c0")), replace(CELLS, edges=((0.0, 1.5), (0.0,)))),
        counts_wrong(), ({}, *({"model": odd} for odd in ODD_MODELS)),
    ),
}  # fmt: skip
