"""A feature map of the user's own, [features] map = "module:function": a function of a batch of records.

tacit cannot prove that such a function looks at one record at a time. It probes the function on synthetic rows, never
on the owner's, so that a refusal tells nothing about a record. The recipe keeps the name of the function, the version
of its package and a hash of its source; results say "probed, not proved". A function that keeps state between calls can
pass the probe and break the guarantee.

What the function does with the owner's records decides nothing but those records: a row for which it fails, or gives a
number that is not finite, becomes zeros.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import inspect
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np

from tacit.errors import IncompatibleError, SpecError, is_document, printable
from tacit.features.map import BLOCK, FeatureSpec, PublicFacts
from tacit.types import Array, ColumnFeatures

_SEED = 2021  # of the synthetic rows: public


@dataclass(frozen=True)
class OwnMap:
    """The function `where` of the rows (n, n_inputs), which gives (n, n_outputs) numbers."""

    n_inputs: int
    n_outputs: int
    where: str
    version: str
    sha256: str
    bound: ClassVar[float] = math.inf

    def __post_init__(self) -> None:
        if _source(self.function) != self.sha256:
            raise SpecError(f"{self.where} is not the function that it was: its source has another hash.")

    @classmethod
    def made_for(cls, facts: PublicFacts, asked: FeatureSpec) -> OwnMap:
        function = find(asked.map)
        n_outputs = _probe(asked.map, function, facts)
        return cls(facts.n_inputs, n_outputs, asked.map, _version(asked.map), _source(function))

    @cached_property
    def function(self) -> Callable[[Array], Array]:
        return find(self.where)

    def names(self, inputs: tuple[str, ...]) -> tuple[str, ...]:  # noqa: ARG002
        return ()

    def columns(self) -> tuple[ColumnFeatures, ...]:
        return ()

    def block(self, x: Array) -> Array:
        found = _called(self.function, x, self.n_outputs)
        if found is None:  # which row it was shows when each is asked alone, in the same place of the same block
            found = np.zeros((len(x), self.n_outputs), np.float32)
            for i in range(len(x)):
                alone = np.zeros_like(x)
                alone[i] = x[i]
                own = _called(self.function, alone, self.n_outputs)
                found[i] = 0 if own is None else own[i]
        found[~np.isfinite(found).all(axis=1)] = 0
        return found


def find(where: str) -> Callable[[Array], Array]:
    """Import the function "module:function"; modules of the current directory are found, as in `python -m`."""
    if is_document(where):
        raise SpecError(f"features.map takes module:function, got {printable(where)}.")
    module, _, name = where.partition(":")
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        function = getattr(importlib.import_module(module), name)
    except Exception as error:
        raise SpecError(f"features.map = {where} cannot be imported ({error}): give module:function.") from None
    finally:
        sys.path.remove(here)
    if not callable(function):
        raise SpecError(f"features.map = {where} is no function: give module:function.")
    return function  # type: ignore[no-any-return]


def _called(function: Callable[[Array], Array], x: Array, n_outputs: int) -> Array | None:
    """Return what the function gives for a block, None where it fails."""
    try:
        with np.errstate(all="ignore"):
            found = np.array(function(x.copy()), np.float32)  # a copy: it may not change the records
    except (Exception, SystemExit):
        return None
    return found if found.shape == (len(x), n_outputs) else None


def _probe(where: str, function: Callable[[Array], Array], facts: PublicFacts) -> int:
    """Return how many features the function gives; refuse a function of more than one record at a time."""
    low, high = facts.bounds or (-1.0, 1.0)
    rng = np.random.default_rng(_SEED)
    x = (low + (high - low) * rng.random((BLOCK, facts.n_inputs))).astype(np.float32)
    try:
        shape = np.shape(function(x.copy()))
    except Exception as error:
        raise IncompatibleError(f"{where} fails on {BLOCK} synthetic rows ({type(error).__name__}: {error}).") from None
    if len(shape) != 2 or shape[0] != BLOCK or shape[1] < 1:
        raise IncompatibleError(f"{where} gives shape {shape} for {BLOCK} rows: give one row of numbers a record.")
    whole = _called(function, x, shape[1])
    if whole is None or not np.isfinite(whole).all():
        raise IncompatibleError(f"{where} gives no finite numbers on synthetic rows: mend it.")
    order = rng.permutation(BLOCK)
    others = np.where(np.arange(BLOCK)[:, None] % 2, x, x[::-1] * np.float32(0.5))
    zeros = np.where(np.arange(BLOCK)[:, None] % 2, x, np.float32(0))
    odd = np.arange(BLOCK) % 2 == 1
    for changed, expected, rows in (
        (x, whole, slice(None)), (x[order], whole[order], slice(None)), (others, whole, odd), (zeros, whole, odd),
    ):  # fmt: skip
        again = _called(function, changed, shape[1])
        if again is None or not np.array_equal(again[rows], expected[rows]):
            raise IncompatibleError(
                f"{where} is no function of one record at a time: the same row gave other numbers among other rows, or "
                "when it was asked again. What it makes of a record must depend on that record alone."
            )
    return int(shape[1])


def _source(function: Callable[[Array], Array]) -> str:
    """Return a hash of the file that the function stands in; an object that has none is refused."""
    try:
        text = Path(inspect.getsourcefile(inspect.unwrap(function)) or "").read_bytes()
    except (OSError, TypeError):
        raise SpecError("a feature map of your own must be a function in a Python file, whose hash is kept.") from None
    return hashlib.sha256(text).hexdigest()


def _version(where: str) -> str:
    """Return the version of the package that the function is in, "" where it is in none."""
    top = where.partition(":")[0].partition(".")[0]
    try:
        return importlib.metadata.version(top)
    except importlib.metadata.PackageNotFoundError:
        return ""
