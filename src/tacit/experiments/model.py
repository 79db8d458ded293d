"""A trained model: what `tacit predict` needs, in one .npz without pickles."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tacit.errors import DataError, RunDirectoryError
from tacit.experiments.store import fitting, load_npz
from tacit.types import Array


@dataclass(frozen=True, eq=False)
class Model:
    """w (J, K), its average over the rounds, the names of classes and features, and the schema that made them."""

    w: Array
    w_average: Array
    classes: tuple[str, ...]
    features: tuple[str, ...]
    intercept: bool = False
    schema: str = ""  # TOML; empty where records came as numbers

    def arrays(self) -> dict[str, Array]:
        return {
            "w": self.w,
            "w_average": self.w_average,
            "classes": np.array(self.classes, dtype=np.str_),
            "features": np.array(self.features, dtype=np.str_),
            "intercept": np.array(self.intercept),
            "schema": np.array(self.schema, dtype=np.str_),
        }

    @classmethod
    def read(cls, directory: Path) -> Model:
        """The model of a finished run: its directory, or the model.npz in it."""
        path = directory if directory.is_file() else directory / "model.npz"
        arrays = {"schema": np.array("")} | load_npz(path)  # models of version 0.1.0 have no schema
        fitting(path, arrays, {"w": ("f", (None, None)), "classes": ("U", (None,)), "features": ("U", (None,))})
        w, named = arrays["w"], len(arrays["features"]) > 0
        fitting(path, arrays, {
            "w_average": ("f", w.shape), "classes": ("U", w.shape[1:]), "intercept": ("b", ()), "schema": ("U", ()),
            "features": ("U", w.shape[:1] if named else (0,)),
        })  # fmt: skip
        if not (np.isfinite(w).all() and np.isfinite(arrays["w_average"]).all()):
            raise RunDirectoryError(f"{path} is damaged (its weights are not finite): train again.")
        return cls(
            w,
            arrays["w_average"],
            tuple(map(str, arrays["classes"])),
            tuple(map(str, arrays["features"])),
            bool(arrays["intercept"]),
            str(arrays["schema"]),
        )

    @property
    def n_inputs(self) -> int:
        """Features a record must have: the intercept is added here."""
        return int(self.w.shape[0]) - self.intercept

    def in_order(self, x: Array, names: tuple[str, ...]) -> Array:
        """The columns of x, named by `names`, in the order the model was trained on."""
        wanted = self.features[: self.n_inputs]
        if not wanted or not names or tuple(names) == wanted:
            return x
        missing = sorted(set(wanted) - set(names))
        if missing:
            raise DataError(f"the data lack {len(missing)} of the model's features, first {missing[0]!r}: add them.")
        return np.asarray(x[:, [names.index(name) for name in wanted]])

    def scores(self, x: Array, averaged: bool = False) -> Array:
        """x^T w, (n, K)."""
        if x.ndim != 2 or x.shape[1] != self.n_inputs:
            raise DataError(f"records have shape {x.shape} and the model was trained on {self.n_inputs} features.")
        if not np.isfinite(x).all():
            raise DataError("the records hold NaN or inf: drop or impute them.")
        w = self.w_average if averaged else self.w
        return np.asarray(x @ w[: self.n_inputs] + (w[-1] if self.intercept else 0.0))

    def predict(self, x: Array, averaged: bool = False) -> list[str]:
        """The most likely class of each record."""
        return [self.classes[k] for k in self.scores(x, averaged).argmax(axis=1)]
