"""The shapes of an additive model: what each column adds to the score, value by value.

A score is a sum of one function a column if no step looks at the whole record: each feature came of one column, and no
record was divided by its own norm. Then

    score(record) = intercept + sum_c effect_c(cell of column c)

and `shapes_of` returns every effect_c, less its mean over the declared values, which goes into the intercept. It
encodes values that the schema declares and asks the model about them: no record is looked at, and all that it returns
is post-processing of w.
"""

from __future__ import annotations

import math
import reprlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tacit.data.columns.encoding import FeatureColumn, Values
from tacit.data.columns.numeric import DRAWN
from tacit.errors import IncompatibleError, RunDirectoryError
from tacit.features.columns import ColumnsMap
from tacit.features.map import apply
from tacit.problem.loss import LOSSES, Linked
from tacit.types import Array, ColumnFeatures

if TYPE_CHECKING:
    from tacit.run.model import Model

SHOWN = 8  # shapes that a repr lists
DIGITS = 7  # of a number that is given out, more than a screen can show


@dataclass(frozen=True)
class Shape:
    """What one column adds to the score: `effects` holds a list for each output, an effect for each of `values`."""

    column: str
    values: list[float] | list[str]
    effects: list[list[float]]
    noise: list[float]  # std of the privacy noise in each effect; empty where it is not known
    missing: list[float]  # effect of a cell that is missing, one an output; empty where no cell can be
    missing_noise: float | None
    number: bool
    log: bool = False

    @property
    def size(self) -> float:
        """The largest difference that the column makes, of all outputs."""
        return max(max(own) - min(own) for own in self.effects)

    def __repr__(self) -> str:
        return f"Shape({reprlib.repr(self.column)}: {len(self.values)} values, largest difference {self.size:.3g})"


@dataclass(frozen=True)
class Shapes:
    """All shapes of a model, the largest first, in plain lists.

    outputs     of two classes the second: effects are on its score less that of the first, its log-odds. Of more
                classes each: effects are on its score less the mean of all classes'. Of a number that number, in its
                unit
    undrawn     columns that have a part in the score and no shape
    """

    outputs: list[str]
    intercept: list[float]
    columns: list[Shape]
    undrawn: list[str]

    def __repr__(self) -> str:
        shown = [f"  {shape!r}" for shape in self.columns[:SHOWN]]
        more = [f"  and {len(self.columns) - SHOWN} more columns"] if len(self.columns) > SHOWN else []
        return "\n".join([f"Shapes of {len(self.columns)} columns, the largest first:", *shown, *more])


@dataclass(frozen=True)
class Term:
    """One column of a model: which inputs and which features it is; its kind, or its range where it has no schema."""

    column: str
    inputs: slice
    features: slice
    kind: object

    def encoded(self) -> tuple[Values, Array] | None:
        """Return the values to draw, and their inputs; a last row is a missing cell, where a cell can be missing."""
        if isinstance(self.kind, tuple):
            low, high = self.kind
            x = np.linspace(low, high, DRAWN)
            return Values(x, number=True), x[:, None]
        known = self.kind.domain() if isinstance(self.kind, FeatureColumn) else None
        if known is None or not isinstance(self.kind, FeatureColumn):
            return None
        cells = np.array([*known.cells.tolist(), None], dtype=object)
        return known, self.kind.encode(cells, ())[0]  # without marks: a number that marks missing cells is a number


def shapes_of(model: Model, averaged: bool = False) -> Shapes:
    """Return the shapes of a model, of w or of its average; refuse a model whose score is no sum over columns."""
    turn, outputs = _outputs(model)
    terms = terms_of(model)
    w = (model.w_average if averaged else model.w).astype(np.float64) @ turn
    std = model.noise[averaged] * float(np.linalg.norm(turn[:, 0]))
    drawn = {n: found for n, term in enumerate(terms) if (found := term.encoded()) is not None}
    # a feature depends on its own column alone, so one batch of rows asks every column at once
    x = np.zeros((max((len(own) for _, own in drawn.values()), default=1), model.n_inputs), np.float32)
    for n, (_, own) in drawn.items():
        x[: len(own), terms[n].inputs] = own
    phi = (x if model.map is None else apply(model.map, x)).astype(np.float64)
    constant = np.ones(phi.shape[1], dtype=bool)
    for term in terms:
        constant[term.features] = False
    intercept = phi[0, constant] @ w[: phi.shape[1]][constant] + (w[-1] if model.intercept else 0.0)
    columns = []
    for n, (known, own) in drawn.items():
        at = terms[n].features
        part, count = phi[: len(own), at], len(known.cells)
        middle = _weights(known) @ part[:count]
        intercept = intercept + middle @ w[at]
        columns.append(_shape(terms[n].column, known, part - middle, w[at], std))
    if model.target is not None:
        intercept = intercept + (model.target.lo + model.target.hi) / 2  # of which scores are the distance
    undrawn = [term.column for n, term in enumerate(terms) if n not in drawn]
    return Shapes(outputs, _plain(intercept), sorted(columns, key=lambda one: -one.size), undrawn)


def terms_of(model: Model) -> list[Term]:
    """Return the columns that the score is a sum over; refuse a model whose score is none."""
    found, known = model.map, model.known
    if known is None and not isinstance(found, ColumnsMap):
        raise IncompatibleError("the model has no schema, so that nothing is known of its columns.")
    if found is not None and not found.columns():
        raise IncompatibleError(
            "the feature map mixes the columns, so that no column has an effect of its own; --features columns keeps "
            "them apart."
        )
    if model.rescaled:
        raise IncompatibleError(
            "each record was divided by its own norm (or the model is too old to say), so that the effect of a column "
            "depends on all others; --features columns --set data.row_mode=clip keeps them apart."
        )
    if known is None:
        assert isinstance(found, ColumnsMap)
        if found.low is None or found.high is None:
            raise IncompatibleError("the columns have no public bounds, and nobody knows between which values to draw.")
        ends, names = (found.low, found.high), model.features
        raw = tuple(ColumnFeatures(names[j] if names else str(j), j, j + 1) for j in range(model.n_inputs))
        return [_term(own, to, ends) for own, to in zip(raw, found.columns(), strict=False)]
    raw, made = known.made, known.made if found is None else found.columns()
    if [one.column for one in made[: len(raw)]] != [one.column for one in raw]:
        raise RunDirectoryError("the model is damaged (its feature map is not that of its schema): train again.")
    kinds = (known.encoded.get(one.column) for one in raw)
    return [_term(*one) for one in zip(raw, made, kinds, strict=False)]


def _term(own: ColumnFeatures, to: ColumnFeatures, kind: object) -> Term:
    return Term(own.column, slice(own.start, own.stop), slice(to.start, to.stop), kind)


def _shape(column: str, known: Values, part: Array, w: Array, std: float) -> Shape:
    """Return the shape of one column from its features, centred, of which the last row may be a missing cell."""
    count = len(known.cells)
    effects, noise = part @ w, std * np.linalg.norm(part, axis=1)
    if not np.isfinite(effects).all():
        raise RunDirectoryError(f"the model is damaged (column {column!r} has no finite effect): train again.")
    said = math.isfinite(std)
    return Shape(
        column, known.cells.tolist(), [_plain(own) for own in effects[:count].T],
        _plain(noise[:count]) if said else [], _plain(effects[count]) if len(part) > count else [],
        _plain(noise[count:])[0] if said and len(part) > count else None, known.number, known.log,
    )  # fmt: skip


def _outputs(model: Model) -> tuple[Array, list[str]]:
    """Return what turns scores into the outputs that are drawn, (K, outputs), and their names."""
    if model.target is not None and model.loss in LOSSES and isinstance(LOSSES[model.loss](), Linked):
        raise IncompatibleError(
            f"under the loss {model.loss} columns multiply the prediction, and do not add to it: no effects are drawn."
        )
    if model.target is not None:
        return np.array([[model.target.half]]), [model.known.label if model.known else "prediction"]
    k = len(model.classes)
    if k == 2:
        return np.array([[-1.0], [1.0]]), [model.classes[1]]
    return np.eye(k) - 1 / k, list(model.classes)


def _weights(known: Values) -> Array:
    """Return weights of a mean over the declared values: the area under a curve, or all levels alike."""
    weight = np.ones(len(known.cells))
    if known.number:
        weight[[0, -1]] = 0.5
    return np.asarray(weight / weight.sum())


def _plain(values: Array) -> list[float]:
    return [float(f"{value:.{DIGITS}g}") for value in values.tolist()]
