"""The classifier: multinomial logistic regression over agents that keep their records to themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import assert_all_finite

from tacit.data.cells import Coded, plain
from tacit.data.classes import check_class_names
from tacit.data.column_kinds import LabelColumn
from tacit.data.outcome import LabelReader
from tacit.errors import DataError, IncompatibleError, SpecError, printable
from tacit.estimator.base import PrivateFederated
from tacit.estimator.declared import Declared, Outcome
from tacit.estimator.refusals import as_value_error, without_contents
from tacit.problem.loss import check_probabilities, probabilities
from tacit.types import Array

_TYPED: dict[str, Callable[[str], Any]] = {
    "i": int, "u": int, "f": float, "b": {"True": True, "False": False, "1": True, "0": False}.__getitem__,
}  # fmt: skip


class PrivateFederatedClassifier(ClassifierMixin, PrivateFederated):  # type: ignore[misc]
    """A linear classifier over public features of records, (epsilon, dp_delta)-differentially private for each record.

    Parameters
    ----------
    epsilon
        the budget of the whole fit. `inf` adds no noise, and is not private.
    dp_delta
        delta of that budget.
    trust
        "nobody": each agent adds the whole noise. "sum": agents share it behind a secure sum (docs/secure-sum.md).
    colluding
        with trust="sum", how many agents may tell the server all they know; 1 unless you say more.
    adjacency
        "zero_out" (a record is absent in its place) or "replace_one"; None: what the algorithm is private for.
    rounds
        how many rounds; None: as many as the algorithm takes, 100 for "objt".
    algorithm
        any method of `tacit compare --list`. Those that cannot be deployed are simulated.
    features
        the public map of each record: "auto", "none" (linear, with coef_), "columns", "unit", "fourier",
        "orientations", or "module:function".
    schema
        what is public of each column: a path, the text of a schema.toml, or a dictionary (docs/schema.md). A
        dictionary may be short: {"age": (0, 120), "smoker": ["never", "former", "current"]}. A tuple of dates is a
        date column; a range, a set or a CategoricalDtype lists categories. Arrays, Series and Index are refused:
        values that were read from records are not public.
    feature_bounds
        (lo, hi), each a number or one for each feature; or {name: (lo, hi)} of every feature, with the positions 0,
        1, ... as names if X has none. Numbers outside are moved to the end.
    classes
        all classes that there can be. None: they are read from y, and the fit is not private.
    image_shape
        (height, width) or (height, width, channels), where a record is an image.
    fit_intercept
        whether to add an intercept where features="none"; the maps bring their own.
    random_state
        None: exact noise of the operating system. A seed: a simulation, which is not for release.
    ledger
        the directory of the agents' ledgers, which add up all fits.
    limit
        how much epsilon each ledger allows.
    data_id
        the name of the data in the ledgers.
    out
        a new directory that keeps the run, for `tacit report`; it holds measurements of private records too.
    options
        any other key of a spec by its dotted name (`tacit train --keys`).

    Attributes
    ----------
    classes_, n_features_in_, feature_names_in_, n_iter_
        as in scikit-learn.
    coef_, intercept_
        where features="none" and every column of X is one number: weights in the units of X, of the score before a
        record is divided by its norm, so that signs hold and log-odds need not. Else an AttributeError says what to
        look at.
    model_
        the `tacit.Model`, which can be saved and takes records without scikit-learn.
    privacy_spent_
        total, per_round, per_agent, best_guess; `after(t)`; `lifetime` with a ledger.
    guarantee_
        the guarantee, or why there is none; then what it never covers, earlier pipeline steps and a search.
    history_
        the recorded rounds. With exact noise they hold nothing that is not released.
    notes_
        what would make the model better, what the noise outweighs by public numbers, what keeps the model from
        release, and whether its protection is weak.
    agents_
        the names of the agents.
    """

    def __init__(
        self, epsilon: float = 1.0, dp_delta: float = 1e-6, *, trust: Literal["nobody", "sum"] = "nobody",
        colluding: int | None = None, adjacency: Literal["zero_out", "replace_one"] | None = None,
        rounds: int | None = None, algorithm: str = "objt", features: str = "auto",
        schema: str | Path | Mapping[str, Any] | None = None,
        feature_bounds: tuple[Any, Any] | Mapping[Any, Any] | None = None,
        classes: Sequence[Any] | None = None, image_shape: Sequence[int] | str | None = None,
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
        self.classes = classes
        self.image_shape = image_shape
        self.fit_intercept = fit_intercept
        self.random_state = random_state
        self.ledger = ledger
        self.limit = limit
        self.data_id = data_id
        self.out = out
        self.options = options

    def fit(self, X: Any, y: Any, agents: Any = None) -> PrivateFederatedClassifier:
        """Train on records X (n, J) with classes y (n,); agents (n,) names who holds each row, None: one agent."""
        with as_value_error():
            self._fit(X, y, agents)
        return self

    def decision_function(self, X: Any) -> Array:
        """Return the log-odds of the second of two classes (n,), or the scores of all classes (n, K)."""
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class (n, K), in the order of classes_."""
        scores = self._scores(X)
        with as_value_error():
            check_probabilities(self.model_.target, self.model_.loss)
        return probabilities(scores)

    def predict(self, X: Any) -> Array:
        """Return the most likely class of each record (n,)."""
        scores = self._scores(X)
        return np.asarray(self.classes_[scores.argmax(axis=1)])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy of the predictions for X, given the labels y (n,)."""
        predicted = self.predict(X)
        with without_contents(y, sample_weight):
            return float(accuracy_score(y, predicted, sample_weight=sample_weight))

    @property
    def coef_(self) -> Array:
        """Weights of the columns of X in its units, (1, J) for two classes, else (K, J).

        X @ coef_.T + intercept_ has the signs (of more classes: the largest score) of decision_function within the
        bounds of X. It has its values, log-odds, only where records are not divided by their norm.
        """
        w = self._weights()[0].T
        return w[1:] - w[:1] if len(w) == 2 else w

    @property
    def intercept_(self) -> Array:
        """What a record of zeros scores before it is divided by its norm, (1,) for two classes, else (K,)."""
        b = self._weights()[1]
        return b[1:] - b[:1] if len(b) == 2 else b

    def _outcome(self) -> Outcome | None:
        return None if self.classes is None else {"kind": "label", "classes": list(_named(self._declared_classes()))}

    def _read_outcome(self, y: Array) -> Outcome:
        return {"kind": "label", "classes": list(_named(_found(y)))}

    def _declared_classes(self) -> Array:
        """Return the declared classes in the order of scikit-learn."""
        found = np.asarray(self.classes)
        if found.ndim != 1:
            raise SpecError(f"classes takes a list of all classes, got {printable(self.classes)}.")
        return np.unique(found)

    def _reader(self, declared: Declared, y: Array) -> LabelReader:
        if declared.says:
            assert declared.schema is not None, "a schema said so"
            if not isinstance(declared.schema.outcome, LabelColumn):
                raise IncompatibleError(
                    f"{declared.schema.source} declares a number to predict: use PrivateFederatedRegressor."
                )
            self.classes_ = _typed(declared.schema.classes, y.dtype)
        else:
            self.classes_ = _found(y) if self.classes is None else self._declared_classes()
        return LabelReader(_named(self.classes_), declared=declared.says or self.classes is not None)

    def _labels(self, reader: LabelReader, declared: Declared, y: Array) -> tuple[Array, Array]:
        labels = Coded.of(y)
        if declared.says and declared.schema is not None and isinstance(declared.schema.outcome, LabelColumn):
            labels = declared.schema.outcome.read(labels)  # groups of labels that mean one class
        return reader.read(labels)


def _found(y: Array) -> Array:
    """Return the classes that labels show."""
    assert_all_finite(y, input_name="y")
    check_classification_targets(y)
    found = np.unique(y)
    if len(found) < 2:
        raise DataError("every record is of one class: a classifier needs two classes.")
    return np.asarray(found)


def _named(classes: Array) -> tuple[str, ...]:
    return check_class_names([plain(name) for name in classes.tolist()])


def _typed(names: Sequence[str], like: np.dtype[Any]) -> Array:
    """Return the classes of a schema with the type of y, sorted; as text where they are no such values."""
    try:
        return np.unique(np.array([_TYPED[like.kind](name) for name in names], dtype=like))
    except (KeyError, ValueError):
        return np.unique(np.array(names, dtype=object if like.kind == "O" else np.str_))
