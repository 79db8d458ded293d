"""The regressor: least squares over agents that keep their records to themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import assert_all_finite

from tacit.data.column_kinds import as_numbers
from tacit.data.encoded_table import pointed
from tacit.data.outcome import LabelReader
from tacit.errors import DataError, IncompatibleError, SpecError, printable
from tacit.estimator.base import PrivateFederated
from tacit.estimator.declared import Declared, Outcome
from tacit.estimator.refusals import as_value_error, without_contents
from tacit.problem.loss import LOSSES, Linked
from tacit.types import Array, Target


class PrivateFederatedRegressor(RegressorMixin, PrivateFederated):  # type: ignore[misc]
    """Least squares over public features of records, (epsilon, dp_delta)-differentially private for each record.

    All other parameters, and the attributes but for `classes_`, are those of `PrivateFederatedClassifier`. X @ coef_ +
    intercept_ lies on the side of the middle of the target's bounds on which the prediction lies, and is the prediction
    where no record was divided by its own norm (model_.rescaled is false) and the sum lies within the bounds.

    Parameters
    ----------
    target_bounds
        (lo, hi), the public range of y; numbers outside are moved to its end, and predictions lie within. None: it is
        read from y, and the fit is not private.
    """

    def __init__(
        self, epsilon: float = 1.0, dp_delta: float = 1e-6, *, trust: Literal["nobody", "sum"] = "nobody",
        colluding: int | None = None, adjacency: Literal["zero_out", "replace_one"] | None = None,
        rounds: int | None = None, algorithm: str = "objt", features: str = "auto",
        schema: str | Path | Mapping[str, Any] | None = None,
        feature_bounds: tuple[Any, Any] | Mapping[Any, Any] | None = None,
        target_bounds: tuple[float, float] | None = None, image_shape: Sequence[int] | str | None = None,
        fit_intercept: bool = True, random_state: Any = None, ledger: str | Path | None = None,
        limit: float | None = None, data_id: str | None = None, out: str | Path | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self.epsilon = epsilon
        self.dp_delta = dp_delta
        self.trust = trust
        self.colluding = colluding
        self.adjacency = adjacency
        self.rounds = rounds
        self.algorithm = algorithm
        self.features = features
        self.schema = schema
        self.feature_bounds = feature_bounds
        self.target_bounds = target_bounds
        self.image_shape = image_shape
        self.fit_intercept = fit_intercept
        self.random_state = random_state
        self.ledger = ledger
        self.limit = limit
        self.data_id = data_id
        self.out = out
        self.options = options

    def fit(self, X: Any, y: Any, agents: Any = None) -> PrivateFederatedRegressor:
        """Train on records X (n, J) with numbers y (n,); agents (n,) names who holds each row, None: one agent."""
        with as_value_error():
            self._fit(X, y, agents)
        return self

    def predict(self, X: Any) -> Array:
        """Return the number of each record (n,), within the bounds of the target."""
        scores = self._scores(X)  # which tells first whether the estimator is fitted
        return self._target.in_units(self.model_.numbers(scores))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the R2 of the predictions for X, given the labels y (n,)."""
        predicted = self.predict(X)
        with without_contents(y, sample_weight):
            return float(r2_score(y, predicted, sample_weight=sample_weight))

    @property
    def coef_(self) -> Array:
        """Weights of the columns of X, units of y by units of X, (J,); of the sum before a record is divided."""
        return np.asarray(self._linear()[0])

    @property
    def intercept_(self) -> float:
        """The number of a record of zeros, before it is divided by its norm."""
        return float(self._linear()[1])

    def _linear(self) -> tuple[Array, float]:
        if isinstance(LOSSES[self.model_.loss](), Linked):
            raise AttributeError(f"scores of the loss {self.model_.loss} are not in units of y: read model_.w.")
        weights, intercept = self._weights()
        target = self._target
        return target.half * weights[:, 0], target.lo + target.half * (1 + float(intercept[0]))

    @property
    def _target(self) -> Target:
        assert self.model_.target is not None, "the model predicts a number"
        return self.model_.target

    def _outcome(self) -> Outcome | None:
        return None if self.target_bounds is None else _column(self._declared_target())

    def _read_outcome(self, y: Array) -> Outcome:
        return _column(_found(y))

    def _declared_target(self) -> Target:
        try:
            low, high = map(float, self.target_bounds or ())
        except (TypeError, ValueError):
            got = printable(self.target_bounds)
            raise SpecError(f"target_bounds takes (lo, hi), two numbers: got {got}.") from None
        return Target(low, high)

    def _reader(self, declared: Declared, y: Array) -> LabelReader:
        marks = declared.schema.marks if declared.schema else ()
        if declared.says:
            assert declared.schema is not None, "a schema said so"
            if declared.schema.target is None:
                raise IncompatibleError(f"{declared.schema.source} declares classes: use PrivateFederatedClassifier.")
            return LabelReader(target=declared.schema.target, marks=marks)
        if self.target_bounds is None:
            return LabelReader(target=_found(y), declared=False)
        return LabelReader(target=self._declared_target(), marks=marks)

    def _labels(self, reader: LabelReader, declared: Declared, y: Array) -> tuple[Array, Array]:
        assert reader.target is not None, "a number is to be predicted"
        if declared.schema is not None and declared.schema.file.decimal != ".":
            y = pointed(y)
        scaled = reader.target.scaled(as_numbers(y, reader.marks)[0])
        known = ~np.isnan(scaled)
        return np.where(known, scaled, 0.0), known


def _found(y: Array) -> Target:
    """Return the range that labels show, one wide where they are all alike."""
    assert_all_finite(y, input_name="y")
    try:
        values = y.astype(np.float64)
    except ValueError:  # which would print the label
        why = "y holds labels that are no numbers"
        raise DataError(f"{why}: give numbers, or use PrivateFederatedClassifier.") from None
    low, high = float(values.min()), float(values.max())
    return Target(low, high if low < high else low + 1)


def _column(target: Target) -> Outcome:
    return {"kind": "target", "lo": target.lo, "hi": target.hi}
