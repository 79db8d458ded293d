"""A trained model: one .npz file without pickles holds all that `tacit predict` needs."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from tacit.arguments import path_text
from tacit.data.cells import Coded
from tacit.data.encoded_table import encode_columns, read_encoded
from tacit.data.feature_table import FeatureTable, read_numbers
from tacit.data.outcome import LabelReader
from tacit.data.schema import Schema, parse
from tacit.data.table import some
from tacit.data.transform import RowScale
from tacit.engine.evaluate import PLAIN, rmse_and_r2
from tacit.errors import DataError, IncompatibleError, RunDirectoryError, SpecError
from tacit.features import registry as maps
from tacit.features.map import FeatureMap, apply
from tacit.features.registry import name_of
from tacit.problem.loss import LOG_ODDS, LOSSES, Linked, check_probabilities, predicted, probabilities
from tacit.run.directory import RunDirectory, fitting, load_npz
from tacit.run.shapes import Shapes, shapes_of
from tacit.types import Array, Target


@runtime_checkable
class Columns(Protocol):
    """Columns by name, such as a dictionary or a DataFrame of pandas."""

    def keys(self) -> Iterable[Any]: ...

    def __getitem__(self, name: Any, /) -> Any: ...


@dataclass(frozen=True, eq=False)
class Model:
    """A trained model: w (J, K), the average of w over the rounds, names of classes and inputs, their schema and map.

    A model with a target has one column and no classes: it predicts a number within the bounds of the target.

    predict          takes records as their owner has them, and encodes them by the schema if there is one
    predict_proba    takes the same, and gives the probability of each class
    scores           takes inputs, encoded already, and passes them through the feature map if there is one
    """

    w: Array
    w_average: Array
    classes: tuple[str, ...]
    features: tuple[str, ...]
    intercept: bool = False
    schema: str = ""  # TOML; empty where records came as numbers
    target: Target | None = None
    rows: RowScale | None = None  # what was done to the norm of every record, after the intercept
    recipe: str = ""  # of the feature map; empty where there is none
    trusted: str | None = None  # the function of the user's own that may be called, where the map is one
    rescaled: bool = True  # whether training may have divided a record by its own norm
    noise: tuple[float, float] = (math.nan, math.nan)  # std in an entry of w and of w_average (tacit.run.model_noise)
    loss: str = LOG_ODDS  # as the run says; a model.npz of 0.2.0 or before does not: that of the presets

    def __repr__(self) -> str:
        predicts = reprlib.repr(self.classes) if self.target is None else f"a number from {self.target}"
        made = f", by the map {name_of(self.recipe)}" if self.recipe else ""
        rows, columns = self.w.shape
        return f"Model(predicts {predicts}\n      from {rows} features{made}; w ({rows}, {columns}), loss {self.loss})"

    def arrays(self) -> dict[str, Array]:
        return {
            "w": self.w,
            "w_average": self.w_average,
            "classes": np.array(self.classes, dtype=np.str_),
            "features": np.array(self.features, dtype=np.str_),
            "intercept": np.array(self.intercept),
            "schema": np.array(self.schema, dtype=np.str_),
            "target": np.array([] if self.target is None else [self.target.lo, self.target.hi], dtype=np.float64),
            "rows": np.array(
                [] if self.rows is None else [self.rows.norm, repr(self.rows.bound), self.rows.mode], dtype=np.str_
            ),
            "recipe": np.array(self.recipe, dtype=np.str_),
            "rescaled": np.array(self.rescaled),
            "noise": np.array(self.noise, dtype=np.float64),
            "loss": np.array(self.loss, dtype=np.str_),
        }

    @classmethod
    def read(cls, path: str | Path, features: str | None = None) -> Model:
        """Read the model of a finished run from its directory, which must be whole, or from a model.npz as it is.

        `features` names a feature map of the user's own, "module:function", if the model was trained on one.
        """
        path, loss = Path(path_text("path", path, "the directory of a run, or a model.npz")), ""
        if path.is_dir():
            directory = RunDirectory(path)
            if not directory.finished:
                raise RunDirectoryError(
                    f"{path} is not a finished run (no result.json): continue it with tacit train --resume {path}."
                )
            directory.result()  # refuses a run that was edited
            path, loss = path / "model.npz", directory.loss
        # models of version 0.1.0 have no schema, those of early 0.2.0 no target, map or scale of rows
        earlier = {
            "schema": np.array(""), "recipe": np.array(""), "target": np.zeros(0), "rows": np.array([], dtype=np.str_),
            "rescaled": np.array(True), "noise": np.full(2, math.nan), "loss": np.array(""),
        }  # fmt: skip
        arrays = earlier | load_npz(path)
        fitting(path, arrays, {
            "w": ("f", (None, None)), "classes": ("U", (None,)), "features": ("U", (None,)), "target": ("f", (None,)),
            "rows": ("U", (None,)),
        })  # fmt: skip
        w, named = arrays["w"], len(arrays["features"])
        numeric, scaled = (len(arrays[name]) > 0 for name in ("target", "rows"))
        fitting(path, arrays, {
            "w": ("f", (len(w), 1 if numeric else w.shape[1])), "target": ("f", (2 if numeric else 0,)),
            "w_average": ("f", w.shape), "classes": ("U", (0,) if numeric else w.shape[1:]), "intercept": ("b", ()),
            "schema": ("U", ()), "recipe": ("U", ()), "rescaled": ("b", ()), "noise": ("f", (2,)), "loss": ("U", ()),
            "rows": ("U", (3 if scaled else 0,)),
        })  # fmt: skip
        model = cls(
            w,
            arrays["w_average"],
            tuple(map(str, arrays["classes"])),
            tuple(map(str, arrays["features"])),
            bool(arrays["intercept"]),
            str(arrays["schema"]),
            *_scales(path, arrays["target"], arrays["rows"]),
            str(arrays["recipe"]),
            features,
            bool(arrays["rescaled"]),
            (float(arrays["noise"][0]), float(arrays["noise"][1])),
            loss or str(arrays["loss"]) or LOG_ODDS,
        )
        outputs = model.n_inputs if model.map is None else model.map.n_outputs
        if outputs + model.intercept != len(w) or named not in (0, model.n_inputs, model.n_inputs + model.intercept):
            raise RunDirectoryError(f"{path} is damaged (its features do not fit its weights): train again.")
        if not (np.isfinite(w).all() and np.isfinite(arrays["w_average"]).all()):
            raise RunDirectoryError(f"{path} is damaged (its weights are not finite): train again.")
        _check_loss(path, model)
        return model

    @cached_property
    def map(self) -> FeatureMap | None:
        """Return the feature map, or None if the model has no map."""
        return maps.read(self.recipe, "the model", self.trusted) if self.recipe else None

    @property
    def n_inputs(self) -> int:
        """Return how many numbers a record must have; the model adds the intercept and what the map makes itself."""
        return int(self.w.shape[0]) - self.intercept if self.map is None else self.map.n_inputs

    @cached_property
    def known(self) -> Schema | None:
        """Return the schema, or None if the model has no schema."""
        return parse(self.schema, "the model's schema") if self.schema else None

    def predict(self, data: str | Path | Columns | Any, averaged: bool = False) -> list[str] | list[float]:
        """Return the most likely class, or the number, of each record; `inputs` says what `data` may be."""
        return self.read_off(self.scores(self.inputs(data), averaged))

    def predict_proba(self, data: str | Path | Columns | Any, averaged: bool = False) -> Array:
        """Return the probability of each class (n, K), in the order of `classes`; scores must be log-odds."""
        check_probabilities(self.target, self.loss)
        return probabilities(self.scores(self.inputs(data), averaged))

    def inputs(self, data: str | Path | Columns | Any) -> Array:
        """Return the features (n, n_inputs) of new records, encoded by the model's schema if there is one.

        a path             a table: .csv, .parquet or .npz, or a directory of them
        columns by name    a dictionary or a DataFrame; columns that the model does not use are not looked at
        an array           (n, columns): the columns of the schema's features as they are in a file, in the order of
                           the schema; the features themselves where the model has no schema
        """
        if isinstance(data, str | Path):
            return self.table(data).x
        if isinstance(data, Columns):
            return self._of_columns({name: data[name] for name in data.keys()})  # noqa: SIM118
        array = np.asarray(data)
        if self.known is None:
            return _numbers("the array", array)
        raw = tuple(self.known.encoded)
        if array.ndim != 2 or array.shape[1] != len(raw):
            raise DataError(f"an array for this model has {len(raw)} columns: {some(raw)}; got shape {array.shape}.")
        return self._of_columns(dict(zip(raw, array.T, strict=True)))

    def table(self, path: str | Path, label_column: str | None = None, agent_column: str | None = None) -> FeatureTable:
        """Read the records of a table as features of the model, with their labels if there are any."""
        path = path_text("data", path, "a path, columns by name or an array")
        if self.known is None:
            label, agent = label_column or "label", agent_column or "agent"
            found = read_numbers(path, label_column=label, agent_column=agent, blank_labels=True)
            wanted = self._wanted(found.source, found.features) or found.features
            position = [found.features.index(name) for name in wanted]
            return replace(found, features=wanted, runs=[run[:, position] for run in found.runs])
        for given, declared in ((label_column, self.known.label), (agent_column, self.known.agent)):
            if given not in (None, declared):
                raise IncompatibleError(f"the model's schema names {declared!r}, not {given!r}: drop the option.")
        return read_encoded(path, self.known)

    def _of_columns(self, columns: Mapping[Any, Any]) -> Array:
        wanted = self._wanted("the data", columns) if self.known is None else tuple(self.known.encoded)
        if not wanted:
            raise DataError("this model names no features: give an array of them.")
        own = {name: np.asarray(columns[name]) for name in wanted if name in columns}
        if any(column.ndim != 1 for column in own.values()) or len({len(column) for column in own.values()}) > 1:
            raise DataError("the columns differ in length or are no lists: give one value a record in each.")
        if self.known is not None:
            return encode_columns("the data", own, self.known).x
        return np.column_stack([_numbers(f"column {name!r}", column) for name, column in own.items()])

    def _wanted(self, source: str, names: Collection[Any]) -> tuple[str, ...]:
        """Return the features of the model in order, () if it names none; refuse `names` that lack a feature."""
        wanted = self.features[: self.n_inputs]
        lacks = [name for name in wanted if name not in names]
        if lacks:
            raise DataError(f"{source} lacks {some(lacks)} of the model's features: add them.")
        return wanted

    def scores(self, x: Array, averaged: bool = False) -> Array:
        """Return phi(x)^T w, (n, K), for inputs x (n, n_inputs): map, intercept and norm are seen to here."""
        if x.ndim != 2 or x.shape[1] != self.n_inputs:
            raise DataError(f"records have shape {x.shape} and the model was trained on {self.n_inputs} features.")
        if not np.isfinite(x).all():
            raise DataError("the records hold NaN or inf: drop or impute them.")
        phi = x if self.map is None else apply(self.map, x)
        w = self.w_average if averaged else self.w
        whole = np.column_stack([phi, np.ones(len(phi), phi.dtype)]) if self.intercept else phi
        return np.asarray((whole if self.rows is None else self.rows.apply(whole)) @ w)

    def shapes(self, averaged: bool = False) -> Shapes:
        """Return what each column adds to the score, value by value; refuse a model whose score is no such sum."""
        return shapes_of(self, averaged)

    def read_off(self, scores: Array) -> list[str] | list[float]:
        """Return the class with the highest score of each record, or the number in the user's units."""
        if self.target is not None:
            return [float(value) for value in self.target.in_units(self.numbers(scores))]
        return [self.classes[k] for k in scores.argmax(axis=1)]

    def numbers(self, scores: Array) -> Array:
        """Return the numbers, scaled to [-1, 1], that scores (n, 1) stand for."""
        known = LOSSES[self.loss]() if self.loss != LOG_ODDS else PLAIN  # the loss of a model that does not say
        return predicted(known, scores[:, 0])

    def error(self, scores: Array, labels: Coded) -> float | None:
        """Return the share of wrong classes, or the RMSE in the user's units; None where no label tells."""
        if self.target is None:
            names = labels.tolist()
            wrong = [label != guess for label, guess in zip(names, self.read_off(scores), strict=True) if label]
            return sum(wrong) / len(wrong) if wrong else None
        y, known = LabelReader(target=self.target, marks=self.known.marks if self.known else ()).read(labels)
        return rmse_and_r2(self.numbers(scores[known].astype(np.float64)), y[known], self.target)[0]


def _check_loss(path: Path, model: Model) -> None:
    """Refuse a model of a number whose loss does not say what number a score stands for."""
    if model.target is None or model.loss == LOG_ODDS:  # files of earlier versions do not name their loss
        return
    if model.loss not in LOSSES:
        raise RunDirectoryError(f"{path} is of the loss {model.loss!r}, which nobody has registered here: register it.")
    loss = LOSSES[model.loss]()
    if not loss.for_numbers:
        raise RunDirectoryError(f"{path} is damaged (a number is not predicted by the loss {model.loss}): train again.")
    if isinstance(loss, Linked):
        loss.check_target(model.target)


def _scales(path: Path, target: Array, rows: Array) -> tuple[Target | None, RowScale | None]:
    """Return the target and the scale of rows that arrays hold, each None where its array is empty."""
    try:
        scale = RowScale(str(rows[0]), float(rows[1]), str(rows[2])) if len(rows) else None
        return Target(*target.tolist()) if len(target) else None, scale
    except (SpecError, ValueError) as error:
        raise RunDirectoryError(f"{path} is damaged ({error}): train again.") from None


def _numbers(what: str, values: Array) -> Array:
    """Return the values in float32, as tables are read: an array and a table give the same prediction."""
    try:
        with np.errstate(over="ignore"):  # a number beyond float32 becomes inf, which `scores` refuses
            return values.astype(np.float32)
    except (TypeError, ValueError):
        raise DataError(f"{what} holds no numbers: encode them, or train with a schema.") from None
