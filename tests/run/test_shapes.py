"""The shapes of a model add up to its scores, and are refused where its score is no sum over columns."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit import jsontext
from tacit.data import schema as schemas
from tacit.data.column_kinds import CategoricalColumn
from tacit.data.schema import Schema
from tacit.errors import IncompatibleError, RunDirectoryError
from tacit.features import registry
from tacit.features.columns import ColumnsMap
from tacit.features.map import FeatureSpec, PublicFacts, apply
from tacit.run.model import Model
from tacit.run.shapes import Shapes

SCHEMA = """
missing_marks = ["30"]
[columns.age]
kind = "numeric"
lo = 20
hi = 90
missing = 40
[columns.smoker]
kind = "categorical"
values = ["never", "former", "current"]
drop = "never"
[columns.intercept]
kind = "categorical"
values = ["yes", "no"]
[columns.outcome]
kind = "label"
classes = ["well", "ill"]
"""
CLASSES = ("well", "ill", "gone", "unknown")


@lru_cache
def known() -> Schema:
    return schemas.parse(SCHEMA)


def model(name: str = "columns", n_classes: int = 2, intercept: bool = False, seed: int = 0, **more: Any) -> Model:
    """A model of random weights over SCHEMA, with or without a feature map."""
    facts = PublicFacts(len(known().features), 1000, bounds=(0.0, 1.0), columns=known().made)
    found = registry.chosen(FeatureSpec(map=name), facts)
    size = (facts.n_inputs if found is None else found[0].n_outputs) + intercept
    w, average = np.random.default_rng(seed).normal(size=(2, size, n_classes))
    recipe = "" if found is None else found[1]
    made = Model(w, average, CLASSES[:n_classes], known().features, intercept, SCHEMA, recipe=recipe, rescaled=False)
    return replace(made, **more)


def shape(found: Shapes, column: str) -> Any:
    return next(one for one in found.columns if one.column == column)


@settings(max_examples=60, deadline=None)
@given(name=st.sampled_from(["none", "columns"]), n_classes=st.integers(2, 4), intercept=st.booleans(),
       averaged=st.booleans(), seed=st.integers(0, 10**6))  # fmt: skip
def test_shapes_and_the_intercept_add_up_to_the_scores(
    name: str, n_classes: int, intercept: bool, averaged: bool, seed: int
) -> None:
    made = model(name, n_classes, intercept, seed)
    found = made.shapes(averaged)
    assert found.undrawn == []
    rng, n = np.random.default_rng(seed), 20
    cells: dict[str, list[Any]] = {}
    total = np.tile(found.intercept, (n, 1))
    for one in found.columns:
        at = rng.integers(len(one.values) + 1, size=n)  # the last is a missing cell
        cells[one.column] = [None if i == len(one.values) else one.values[i] for i in at]
        effects = np.vstack([np.array(one.effects).T, one.missing])
        total += effects[at]
    scores = made.scores(made.inputs(cells), averaged)
    wanted = scores[:, 1:] - scores[:, :1] if n_classes == 2 else scores - scores.mean(axis=1, keepdims=True)
    assert found.outputs == (["ill"] if n_classes == 2 else list(CLASSES[:n_classes]))
    np.testing.assert_allclose(total, wanted, atol=2e-5)


def test_a_known_weight_gives_the_known_effect() -> None:
    w = np.zeros((6, 2))
    w[0] = [1.0, 3.0]  # age, of which 0 is 20 and 1 is 90
    w[1] = [-0.5, 0.5]  # smoker=former
    w[-1] = [0.0, 0.25]  # the intercept that was appended
    found = model("none", w=w, w_average=w, intercept=True, noise=(0.1, math.nan)).shapes()
    assert [one.column for one in found.columns] == ["age", "smoker", "intercept"]
    age, smoker = shape(found, "age"), shape(found, "smoker")
    assert (age.values[0], age.values[-1], age.number) == (20, 90, True)
    np.testing.assert_allclose(age.effects[0], 2 * (np.array(age.values) - 55) / 70, atol=1e-6)
    np.testing.assert_allclose(age.missing, [2 * (40 - 55) / 70], atol=1e-6)
    assert (smoker.values, smoker.number) == (["never", "former", "current"], False)
    np.testing.assert_allclose(smoker.effects[0], [-1 / 3, 2 / 3, -1 / 3], atol=1e-6)
    np.testing.assert_allclose(smoker.missing, [-1 / 3], atol=1e-6)  # no feature, as the value that was dropped
    np.testing.assert_allclose(found.intercept, [0.25 + 2 * 0.5 + 1 / 3], atol=1e-6)
    # noise of std 0.1 in each weight: sqrt(2) of it in a difference of two, times the distance from the mean
    np.testing.assert_allclose(age.noise, 0.1 * math.sqrt(2) * abs(np.array(age.values) - 55) / 70, atol=1e-6)
    np.testing.assert_allclose(smoker.noise[0], 0.1 * math.sqrt(2) * math.sqrt(2) / 3, atol=1e-6)
    assert model("none", noise=(0.1, math.nan)).shapes(averaged=True).columns[0].noise == []


def test_a_wave_of_the_columns_map_is_drawn_as_a_wave() -> None:
    made = model("columns")
    assert isinstance(made.map, ColumnsMap)
    w = np.zeros_like(made.w)
    w[0, 1] = 5.0  # the first wave of age, for the second class
    age = shape(replace(made, w=w).shapes(), "age")
    x = np.zeros((len(age.values), made.n_inputs), np.float32)
    x[:, 0] = np.linspace(0, 1, len(x))
    wave = apply(made.map, x)[:, 0]
    assert 5 * np.ptp(wave) > 1
    np.testing.assert_allclose(np.diff(age.effects[0]), 5 * np.diff(wave), atol=1e-5)
    np.testing.assert_allclose(age.effects[0], -np.array(age.effects[0][::-1]), atol=1e-5)  # odd, as sines are


def test_shapes_are_plain_and_the_largest_comes_first() -> None:
    found = model(n_classes=3, noise=(1.0, 1.0)).shapes()
    sizes = [one.size for one in found.columns]
    assert sizes == sorted(sizes, reverse=True)
    assert "null" not in jsontext.dumps(asdict(found))


def test_a_kind_without_a_domain_is_named_and_not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = model().shapes()
    monkeypatch.setattr(CategoricalColumn, "domain", lambda _: None)
    found = model().shapes()
    assert found.undrawn == ["smoker", "intercept"]
    assert found.columns == [shape(whole, "age")]


def test_columns_without_a_schema_have_the_declared_range() -> None:
    map_of = registry.chosen(FeatureSpec(map="columns"), PublicFacts(2, bounds=(-3.0, 7.0)))
    assert map_of is not None
    w = np.random.default_rng(0).normal(size=(map_of[0].n_outputs, 2))
    made = Model(w, w, ("a", "b"), ("height", "weight"), recipe=map_of[1], rescaled=False)
    found = made.shapes()
    height, weight = shape(found, "height"), shape(found, "weight")
    assert (height.values[0], weight.values[-1], height.missing) == (-3, 7, [])
    x = np.array([[height.values[5], weight.values[77]]], dtype=np.float32)
    score = made.scores(x)
    total = found.intercept[0] + height.effects[0][5] + weight.effects[0][77]
    np.testing.assert_allclose(total, score[0, 1] - score[0, 0], atol=2e-5)


@pytest.mark.parametrize(("made", "says"), [
    (model(rescaled=True), "divided by its own norm"),
    (model("none", rescaled=True), "divided by its own norm"),
    (model("unit"), "mixes the columns"),
    (model("fourier"), "mixes the columns"),
    (model("none", schema=""), "no schema"),
])  # fmt: skip
def test_a_model_that_is_no_sum_over_columns_has_no_shapes(made: Model, says: str) -> None:
    with pytest.raises(IncompatibleError, match=says):
        made.shapes()


def test_a_map_of_other_columns_and_effects_that_are_not_finite_are_refused() -> None:
    other = ColumnsMap(len(known().features), tuple(replace(one, column="other") for one in known().made))
    facts = PublicFacts(len(known().features), bounds=(0.0, 1.0), columns=other.inputs)
    recipe = registry.chosen(FeatureSpec(map="columns"), facts)
    assert recipe is not None
    with pytest.raises(RunDirectoryError, match="not that of its schema"):
        model(recipe=recipe[1]).shapes()
    flat = registry.chosen(FeatureSpec(map="columns"), PublicFacts(2, bounds=(0.0, 1.0)))
    assert flat is not None
    w = np.full((flat[0].n_outputs, 2), 1e308)
    w[:, 0] = -1e308
    made = Model(w, w, ("a", "b"), (), recipe=flat[1], rescaled=False)
    with np.errstate(all="ignore"), pytest.raises(RunDirectoryError, match="no finite effect"):
        made.shapes()


def test_a_model_keeps_what_its_shapes_need_and_an_old_model_has_none(tmp_path: Path) -> None:
    made = model(noise=(0.5, 0.25))
    np.savez(tmp_path / "model.npz", **made.arrays())  # type: ignore[arg-type]
    again = Model.read(tmp_path / "model.npz")
    assert again.shapes() == made.shapes()
    old = {name: array for name, array in made.arrays().items() if name not in ("rescaled", "noise")}
    np.savez(tmp_path / "old.npz", **old)  # type: ignore[arg-type]
    found = Model.read(tmp_path / "old.npz")
    cells = {"age": [30.5], "smoker": ["former"], "intercept": ["no"]}
    assert found.predict(cells) == made.predict(cells)
    with pytest.raises(IncompatibleError, match="too old to say"):
        found.shapes()
