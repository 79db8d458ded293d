"""Every registered feature map: one record in, one record out, from public facts alone, bit for bit."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import IncompatibleError, RunDirectoryError, SpecError
from tacit.features import registry
from tacit.features.map import BLOCK, FeatureMap, FeatureSpec, PublicFacts, apply, rows_of_a_block
from tacit.features.registry import FEATURES
from tacit.features.unit import UnitMap
from tacit.types import Array, ColumnFeatures

SIDE = 12
COLUMNS = (
    ColumnFeatures("age", 0, 1, number=True),
    ColumnFeatures("job", 1, 4, shares=True),
    ColumnFeatures("dose", 4, 6, number=True),  # a number, and a level for cells that are missing
)
FACTS = {
    "columns": PublicFacts(6, 1000, bounds=(0.0, 1.0), columns=COLUMNS),
    "unit": PublicFacts(7, 1000),
    "fourier": PublicFacts(60, 1000, bounds=(-2.0, 3.0)),
    "orientations": PublicFacts(SIDE * SIDE, 1000, bounds=(0.0, 1.0), image=(SIDE, SIDE, 1)),
    "own": PublicFacts(5, 1000),
}


def made(name: str) -> tuple[FeatureMap, str]:
    asked = FeatureSpec(map="tests.features.mine:squares" if name == "own" else name)
    found = registry.chosen(asked, FACTS[name])
    assert found is not None
    return found


def rows(name: str, n: int, seed: int = 0) -> Array:
    facts, rng = FACTS[name], np.random.default_rng(seed)
    low, high = facts.bounds or (-9.0, 9.0)
    x = (low + (high - low) * rng.random((n, facts.n_inputs))).astype(np.float32)
    if name == "columns":
        x[:, 1:4] = np.eye(4, 3, dtype=np.float32)[rng.integers(4, size=n)]
        x[:, 5] = rng.integers(2, size=n)
        x[:, 4] *= 1 - x[:, 5]
    return x


@pytest.fixture(params=[*FEATURES])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_every_map_is_tried_here() -> None:
    assert set(FACTS) >= set(FEATURES)


def test_a_record_becomes_the_same_bits_whatever_records_are_around_it(name: str) -> None:
    found, _ = made(name)
    x = rows(name, 2 * BLOCK + 37)
    whole, order = apply(found, x), np.random.default_rng(1).permutation(len(x))
    assert whole.dtype == np.float32
    assert whole.shape == (len(x), found.n_outputs)
    np.testing.assert_array_equal(apply(found, x[order]), whole[order])  # permuted
    np.testing.assert_array_equal(apply(found, x[5:]), whole[5:])  # dropped, so that all move to other places
    np.testing.assert_array_equal(apply(found, x[7:8]), whole[7:8])  # alone
    changed = rows(name, len(x), seed=2)
    changed[::3] = x[::3]
    np.testing.assert_array_equal(apply(found, changed)[::3], whole[::3])  # among others


def test_a_product_in_float32_has_the_same_bits_in_one_place_of_a_block_whatever_records_are_around_it() -> None:
    """The place counts: OpenBLAS rounds a row of float32 by its place modulo 12 (kernel for Haswell)."""

    class Product(UnitMap):
        def block(self, x: Array) -> Array:
            return np.asarray(x @ matrix)

    matrix = np.random.default_rng(0).standard_normal((301, 302), dtype=np.float32)
    x = np.random.default_rng(1).standard_normal((700, 301), dtype=np.float32)
    whole = apply(Product(301), x)
    for some in (slice(0, 1), slice(0, 40), slice(BLOCK, 700), slice(2 * BLOCK, 2 * BLOCK + 3)):
        np.testing.assert_array_equal(apply(Product(301), x[some]), whole[some])
    changed = np.where(np.arange(len(x))[:, None] % 3, np.float32(0), x)
    np.testing.assert_array_equal(apply(Product(301), changed)[::3], whole[::3])


def test_long_rows_come_in_blocks_that_fit_into_memory() -> None:
    assert rows_of_a_block(784) == BLOCK
    assert 8 <= rows_of_a_block(300 * 300 * 3) < 20
    assert rows_of_a_block(10**9) == 8


def test_no_record_is_longer_than_the_bound(name: str) -> None:
    found, _ = made(name)
    x = np.concatenate([rows(name, 300), np.zeros((1, FACTS[name].n_inputs), np.float32)])
    assert np.isfinite(apply(found, x)).all()
    assert np.linalg.norm(apply(found, x).astype(np.float64), axis=1).max() <= found.bound


def test_records_are_not_changed_in_place(name: str) -> None:
    found, _ = made(name)
    x = rows(name, 300)
    before = x.copy()
    apply(found, x)
    np.testing.assert_array_equal(x, before)


def test_a_recipe_makes_the_map_again(name: str) -> None:
    found, recipe = made(name)
    again = registry.read(recipe, trusted=registry.name_of(recipe) if name == "own" else None)
    x = rows(name, 50)
    np.testing.assert_array_equal(apply(again, x), apply(found, x))
    assert json.loads(recipe)["map"] == name
    assert again == found


def test_names_are_given_for_every_feature_or_for_none(name: str) -> None:
    found, _ = made(name)
    inputs = tuple(f"in{j}" for j in range(found.n_inputs))
    assert len(found.names(inputs)) in (0, found.n_outputs)
    assert len(set(found.names(inputs))) == len(found.names(inputs))
    assert found.names(()) == ()


def test_columns_that_a_map_keeps_apart_are_functions_of_one_column_each(name: str) -> None:
    found, _ = made(name)
    if not found.columns():
        return
    x = rows(name, 40)
    for one, to in zip(FACTS[name].columns, found.columns(), strict=False):
        other = rows(name, 40, seed=9)
        other[:, one.start : one.stop] = x[:, one.start : one.stop]
        own = slice(to.start, to.stop)
        np.testing.assert_array_equal(apply(found, other)[:, own], apply(found, x)[:, own])
        assert np.linalg.norm(apply(found, x)[:, own].astype(np.float64), axis=1).max() <= to.bound
    assert [to.start for to in found.columns()] == [0, *(to.stop for to in found.columns()[:-1])]
    assert found.columns()[-1].stop == found.n_outputs


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.floats(-(2.0**99), 2.0**99, width=32), min_size=7, max_size=7), min_size=1, max_size=5))
def test_numbers_without_bounds_become_a_direction_of_bounded_norm(values: list[list[float]]) -> None:
    found, _ = made("unit")
    size = np.linalg.norm(apply(found, np.array(values, np.float32)).astype(np.float64), axis=1)
    assert ((np.sqrt(0.5) * (1 - 1e-5) <= size) & (size <= 1)).all()


def test_a_shape_says_what_an_image_is() -> None:
    assert registry.image_of("28x28", 784) == (28, 28, 1)
    assert registry.image_of("4 x 5 x 3", 60) == (4, 5, 3)
    for wrong in ("28", "28x", "x28", "0x10", "28x28x1x1", "2x3", "-2x3", "9" * 30 + "x1"):
        with pytest.raises(SpecError, match=r"features\.shape"):
            registry.image_of(wrong, 784)


def test_numbers_without_bounds_are_squashed_and_bent() -> None:
    found = registry.chosen(FeatureSpec(map="auto"), PublicFacts(3, 1000))
    assert found is not None
    assert json.loads(found[1])["map"] == "columns"
    x = np.array([[0, 0, 0], [3.4e38, -3.4e38, 1e-40], [1e3, -2.0, 0.5]], np.float32)
    size = np.linalg.norm(apply(found[0], x).astype(np.float64), axis=1)
    np.testing.assert_allclose(size, 1, atol=1e-5)
    long = registry.chosen(FeatureSpec(map="auto"), PublicFacts(1000, 1000))
    assert long is not None
    assert json.loads(long[1])["map"] == "unit"


# --- a function of the user's own


@pytest.mark.parametrize(
    ("where", "why"),
    [
        ("tests.features.mine:centred", "no function of one record"),
        ("tests.features.mine:ranks", "no function of one record"),
        ("tests.features.mine:random", "no function of one record"),
        ("tests.features.mine:first_row", "no function of one record"),
        ("tests.features.mine:flat", "one row of numbers a record"),
        ("tests.features.mine:nothing", "one row of numbers a record"),
        ("tests.features.mine:infinite", "no finite numbers"),
        ("tests.features.mine:fails", "fails on 256 synthetic rows"),
        ("tests.features.mine:CONSTANT", "is no function"),
        ("tests.features.mine:absent", "cannot be imported"),
        ("no.such.module:f", "cannot be imported"),
    ],
)
def test_a_function_that_is_no_map_of_one_record_is_refused(where: str, why: str) -> None:
    with pytest.raises((IncompatibleError, SpecError), match=why):
        registry.chosen(FeatureSpec(map=where), FACTS["own"])


def test_what_ones_own_function_does_with_a_record_decides_nothing_for_others() -> None:
    found = registry.chosen(FeatureSpec(map="tests.features.mine:touchy"), FACTS["own"])
    assert found is not None
    x = rows("own", 20)
    whole = apply(found[0], x)
    for evil in (777.0, 888.0):  # it raises an error for the one, and gives infinity for the other
        changed = x.copy()
        changed[4, 0] = evil
        np.testing.assert_array_equal(np.delete(apply(found[0], changed), 4, 0), np.delete(whole, 4, 0))
        assert not apply(found[0], changed)[4].any()


def test_a_function_that_exits_on_a_record_ends_no_run() -> None:
    found = registry.chosen(FeatureSpec(map="tests.features.mine:leaves"), FACTS["own"])
    assert found is not None
    x = rows("own", 3)
    x[1, 0] = 777
    assert not apply(found[0], x)[1].any()
    np.testing.assert_array_equal(apply(found[0], x)[[0, 2]], x[[0, 2]])


def test_a_recipe_runs_no_code_that_its_reader_did_not_name() -> None:
    _, recipe = made("own")
    with pytest.raises(RunDirectoryError, match="name it with --features"):
        registry.read(recipe)
    with pytest.raises(RunDirectoryError, match="name it with --features"):
        registry.read(recipe, trusted="tests.features.mine:touchy")


def test_a_function_whose_source_has_changed_is_refused() -> None:
    found, recipe = made("own")
    assert dataclasses.asdict(found)["sha256"] in recipe  # type: ignore[call-overload]
    other = recipe.replace(dataclasses.asdict(found)["sha256"], "0" * 64)  # type: ignore[call-overload]
    with pytest.raises(RunDirectoryError, match="another hash"):
        registry.read(other, trusted="tests.features.mine:squares")


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"map": "nothing"}', '{"map": "unit"}', '{"map": 3}', "null"])
def test_a_damaged_recipe_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(RunDirectoryError, match="feature map"):
        registry.read(text)


HOSTILE = [
    ("fourier", {"seed": -1}), ("fourier", {"seed": "x"}), ("fourier", {"size": 8.0}), ("fourier", {"n_inputs": 3.0}),
    ("fourier", {"low": "a"}), ("fourier", {"low": float("nan")}), ("fourier", {"scale": 1e-320}),
    ("columns", {"waves": 4.0}), ("columns", {"low": "0"}), ("columns", {"n_inputs": 10**12}),
    ("columns", {"inputs": 3}),
    ("columns", {"inputs": [{"column": "a", "start": 0, "stop": 9}]}),
    ("columns", {"inputs": [{"column": "a", "start": 0, "stop": -6}]}),
    ("columns", {"inputs": [{"column": "a", "start": "a", "stop": 6}]}),
    ("columns", {"inputs": [{"column": "a", "start": 0, "stop": 6, "bound": 1e200}]}),
    ("columns", {"inputs": [{"column": "a", "start": 0, "stop": 6, "bound": "x"}]}),
    ("columns", {"bound": 0.1}), ("unit", {"n_inputs": 8.0}), ("unit", {"n_inputs": "8"}), ("unit", {"bound": 2.0}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "changed"), HOSTILE)
def test_a_recipe_of_a_strangers_making_is_refused_in_one_sentence(name: str, changed: dict[str, object]) -> None:
    _, recipe = made(name)
    with pytest.raises(RunDirectoryError, match="feature map"):
        registry.read(json.dumps(json.loads(recipe) | changed))
    with pytest.raises(RunDirectoryError, match="feature map"):
        registry.read('{"map": ' + "[" * 100_000)


def test_a_module_of_the_current_directory_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "house_of_mine.py").write_text("def twice(x):\n    return 2 * x\n")
    monkeypatch.chdir(tmp_path)
    found = registry.chosen(FeatureSpec(map="house_of_mine:twice"), FACTS["own"])
    assert found is not None
    assert apply(found[0], np.ones((2, 5), np.float32)).tolist() == [[2.0] * 5] * 2
