"""What both estimators share: from parameters and records to a spec and a federation, and from a run to attributes."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from numbers import Integral
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d, validate_data

from tacit.arguments import path_text
from tacit.data.classes import without_unknown
from tacit.data.columns.encoding import Counts
from tacit.data.outcome import LabelReader
from tacit.data.owner import tell_owner, unfit_columns, unknown_labels
from tacit.data.schema import Schema
from tacit.data.spec import ESTIMATOR
from tacit.data.table import some
from tacit.errors import DataError, SpecError, UnboundedWarning, printable
from tacit.estimator.agents import dealt
from tacit.estimator.declared import Declared, Frame, Outcome, by_bounds, by_schema, columns_of, no_numbers
from tacit.estimator.notes import GAINS, OWN_FIT, simulated_because, weak_because
from tacit.estimator.refusals import as_value_error
from tacit.estimator.repeated import Cost, counted, hashed, tell
from tacit.estimator.spent import history, spent_by
from tacit.features.registry import LONG
from tacit.methods.registry import METHODS
from tacit.privacy.ledger import Ledger
from tacit.run import train as trainer
from tacit.run.deployment import ledger_file_name, price
from tacit.run.keywords import refuse_unread
from tacit.run.presets import preset
from tacit.run.spec import Spec
from tacit.types import Array, Federation, Shard


class PrivateFederated(BaseEstimator):  # type: ignore[misc]
    """The estimators without what they predict: `_outcome`, `_read_outcome`, `_reader` and `_labels` are theirs."""

    def _outcome(self) -> Outcome | None:
        """Return what the parameters declare of y, as a column of a schema."""
        raise NotImplementedError

    def _read_outcome(self, y: Array) -> Outcome:
        """Return the same as the labels show it, which is not private."""
        raise NotImplementedError

    def _reader(self, declared: Declared, y: Array) -> LabelReader:
        """Return what y is, and whether that is public; set what the estimator knows of it."""
        raise NotImplementedError

    def _labels(self, reader: LabelReader, declared: Declared, y: Array) -> tuple[Array, Array]:
        """Return (y as shards hold it, whether each could be read)."""
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.schema is None
        tags.input_tags.allow_nan = self.schema is not None or self.feature_bounds is not None
        tags.non_deterministic = self.random_state is None
        return tags

    def _fit(self, X: Any, y: Any, agents: Any) -> None:
        if y is None:
            raise ValueError(f"This {type(self).__name__} estimator requires y to be passed, but the target y is None.")
        y = column_or_1d(y, warn=True)
        declared, raw, x, counts = self._declare(X, y)
        check_consistent_length(x, y)
        schema, own = declared.schema, None
        if schema is not None and schema.agent is not None and isinstance(X, Frame) and schema.agent in X.columns:
            own = X[schema.agent]
        parts, names = dealt(own if agents is None else agents, len(x))
        reader = self._reader(declared, y)
        labels, known = self._labels(reader, declared, y)
        features = schema.features if schema else tuple(map(str, getattr(self, "feature_names_in_", ())))
        federation = Federation(
            tuple(Shard(x[part], labels[part]) for part in parts), Shard(x[:0], labels[:0]), reader.columns, ESTIMATOR,
            names, reader.classes, features, schema.bounds if schema else None,
            public_classes=reader.declared, longest=schema.longest if schema else None,
            schema=schema.text if schema else "", columns=schema.made if schema else (), target=reader.target,
        )  # fmt: skip
        read_well, in_test = [known[part] for part in parts], np.ones(0, np.bool_)
        tell_owner(
            unfit_columns(counts, schema) if schema else "",
            unknown_labels(federation, read_well, in_test, reader.unknown) if reader.declared else "",
        )
        if reader.declared:
            federation = without_unknown(federation, read_well, in_test)
        self._train(federation, declared, raw)

    def _declare(self, X: Any, y: Array) -> tuple[Declared, Array, Array, Counts]:
        """Return (what is public of the features, the records as they came, as features, what was changed of them).

        With a schema the records as they came may be texts: then these are the features too.
        """
        if self.schema is not None:
            if self.feature_bounds is not None:
                raise SpecError("a schema declares the bounds of its columns: drop feature_bounds.")
            self._declared = by_schema(self.schema, self._outcome(), lambda: self._read_outcome(y))
            x, counts = self._by_schema(X)
            self.feature_names_in_ = np.array([*_schema(self._declared).encoded], dtype=np.object_)
            self.n_features_in_ = len(self.feature_names_in_)
            return self._declared, x, x, counts
        found = self._numbers(X, reset=True)
        self._declared = Declared()
        if self.feature_bounds is not None:
            names = [str(name) for name in getattr(self, "feature_names_in_", ())] or [*range(found.shape[1])]
            self._declared = by_bounds(self.feature_bounds, names, self._outcome() or self._read_outcome(y))
        return self._declared, found, *self._declared.numbers(found)

    def _numbers(self, X: Any, reset: bool) -> Array:
        """Return records as scikit-learn takes them, dense; NaN and inf are refused unless bounds say what they are.

        The check is not left to scikit-learn, whose error recommends an imputer: a step that learns from the records.
        """
        asked = {"accept_sparse": "csr", "ensure_all_finite": False}
        try:
            found = validate_data(self, X, reset=reset, dtype=(np.float64, np.float32), **asked)
        except (ValueError, TypeError) as error:
            dense = isinstance(error, ValueError) and not issparse(X)
            if (why := no_numbers(X, dense)) is not None:  # and the error would print cells
                raise why from None
            raise
        found = np.asarray(found.toarray() if issparse(found) else found)
        if self.feature_bounds is None and not np.isfinite(found).all():
            raise DataError(
                "X contains NaN or infinity: declare feature_bounds, or a schema. Each such cell is then read by what "
                "is declared, without a step that learns from the records."
            )
        return found

    def _by_schema(self, X: Any) -> tuple[Array, Counts]:
        """Return the features of a frame, or of an array whose columns are in the order of the schema."""
        schema = _schema(self._declared)
        if isinstance(X, Frame):
            return self._declared.encoded(columns_of(X, schema))
        if issparse(X):
            raise DataError("a schema is for tables with named columns, and X is sparse: give feature_bounds, or none.")
        found = np.asarray(X)
        if found.ndim != 2 or found.shape[1] != len(schema.encoded):
            columns = some([*schema.encoded])
            raise DataError(f"X has shape {found.shape}, and the schema makes features of {columns}: give these.")
        return self._declared.numbers(found)

    def _scores(self, X: Any) -> Array:
        """Return the scores (n, K) of new records."""
        check_is_fitted(self)
        with as_value_error():
            known = self.schema is not None
            x, _ = self._by_schema(X) if known else self._declared.numbers(self._numbers(X, reset=False))
            return np.asarray(self.model_.scores(x), np.float64)

    def _spec(self) -> Spec:
        """Return the spec that the parameters ask for."""
        if not isinstance(self.trust, str) or self.trust not in ("nobody", "sum"):
            raise SpecError(f"trust takes 'nobody' or 'sum', got {printable(self.trust)}.")
        for name in ("epsilon", "dp_delta"):  # None is no budget, and must not become that of the preset
            if getattr(self, name) is None:
                raise SpecError(f"{name} takes a number, got None.")
        asked = {
            "privacy.epsilon": self.epsilon, "privacy.dp_delta": self.dp_delta, "privacy.adjacency": self.adjacency,
            "privacy.trust": "sum" if self.trust == "sum" else None, "privacy.colluding": self.colluding,
            "privacy.ledger": None if self.ledger is None else path_text("ledger", self.ledger, "a directory"),
            "privacy.limit": self.limit, "privacy.data_id": self.data_id, "run.rounds": self.rounds,
            "run.seed": self._seed(), "features.map": self.features, "features.shape": self._shape(),
        }  # fmt: skip
        values = {key: _plain(value) for key, value in asked.items() if value is not None}
        values["data.intercept"] = bool(self.fit_intercept) and self.features == "none"  # maps bring their own
        if not isinstance(self.options, Mapping | None):
            raise SpecError("options takes a dictionary of dotted keys, such as {'privacy.clip': 0.5}.")
        options = dict(self.options or {})
        refuse_unread(options, ESTIMATOR)
        return preset("sound", self.algorithm).with_values(values | options).checked()

    def _seed(self) -> int | None:
        """Return the seed of simulated noise; None for exact noise."""
        seed = self.random_state
        if not isinstance(seed, int | np.integer | np.random.RandomState | ModuleType | None):
            raise SpecError(f"random_state takes None, a whole number or a RandomState, got {printable(seed)}.")
        if seed is None or isinstance(seed, int | np.integer):
            return None if seed is None else int(seed)
        return int(check_random_state(seed).randint(np.iinfo(np.int32).max))

    def _shape(self) -> str | None:
        """Return the shape of an image as a spec writes it, such as 8x8."""
        shape = self.image_shape
        if shape is None or isinstance(shape, str):
            return shape
        if not (isinstance(shape, tuple | list) and len(shape) <= 3 and all(isinstance(n, Integral) for n in shape)):
            raise SpecError(f"image_shape takes (height, width) or (height, width, channels), got {printable(shape)}.")
        return "x".join(map(str, shape))

    def _train(self, federation: Federation, declared: Declared, raw: Array) -> None:
        """Train, and keep what may be kept. What must be known before the budget is spent is told before."""
        spec, out = self._spec(), None if self.out is None else path_text("out", self.out, "a directory")
        self.notes_: list[str] = []
        if not declared.anything and raw.shape[1] <= LONG and spec.features.map in GAINS:
            self.notes_.append(GAINS[spec.features.map])
            warnings.warn(self.notes_[-1], UnboundedWarning, stacklevel=4)
        records, cost = hashed(raw), _cost(spec)
        tell(records, cost)
        with counted(records, cost):
            result = trainer.train(spec, federation, out)
        self.notes_ += result.notes
        simulated = bool(result.summary["simulated_noise"])
        if simulated:
            self.notes_.append(simulated_because(spec, self.options or {}, self.random_state))
        self.notes_ += filter(None, [weak_because(result.summary)])
        self.model_, self.n_iter_ = result.model, spec.run.rounds
        self.guarantee_ = f"{result.guarantee.rstrip('.')}. {OWN_FIT}"
        self.agents_ = np.array(federation.agents, dtype=object)
        self.privacy_spent_ = spent_by(result.summary, federation.agents, self._lifetime(spec, federation))
        self.history_ = history(result.rounds, self.privacy_spent_, simulated)

    def _lifetime(self, spec: Spec, federation: Federation) -> dict[str, float] | None:
        """Return what the ledger of each agent has paid over all fits; None without ledgers."""
        if spec.privacy.ledger is None:
            return None
        found = {}
        for agent in federation.agents:
            with Ledger.open(Path(spec.privacy.ledger) / ledger_file_name(agent), price, create=False) as ledger:
                accounts = ledger.show(spec.privacy.dp_delta)
            data_id = f"{spec.privacy.data_id or ESTIMATOR}: {agent}"
            found[agent] = next(one.epsilon for one in accounts if one.data_id == data_id)
        return found

    def _weights(self) -> tuple[Array, Array]:
        """Return the weights of the columns of X (J, K) and of the intercept (K,), in the units of X.

        Those of the score before a record is divided by its norm. A number outside its bounds counts as their end.
        """
        if self.model_.map is not None:
            raise AttributeError(
                "coef_ and intercept_ are of a model that is linear in its inputs, and the feature map bends them: use "
                "features='none', or look at model_.shapes(), which says what each column adds to the score."
            )
        units = self._declared.units
        if units is None:
            raise AttributeError(
                "coef_ and intercept_ are of a model that is linear in the columns of X, and the schema makes "
                "categories, bins or the like of some: look at model_.w, whose rows model_.features names."
            )
        w = np.asarray(self.model_.w, np.float64)
        w, b = (w[:-1], w[-1]) if self.model_.intercept else (w, np.zeros(w.shape[1]))
        low, length = np.broadcast_arrays(*units, w[:, 0])[:2]
        w = w / length[:, None]
        return w, b - low @ w


def _cost(spec: Spec) -> Cost:
    """Return what a fit by a spec costs."""
    gaussian = METHODS[spec.algorithm.name].is_admm and spec.privacy.mechanism == "gaussian"
    times = spec.run.rounds if spec.privacy.covers == "round" else 1
    return Cost(times * spec.privacy.epsilon, times * spec.privacy.dp_delta, gaussian and times == 1)


def _schema(declared: Declared) -> Schema:
    assert declared.schema is not None, "the parameter `schema` was given"
    return declared.schema


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
