"""Frames of pandas and of polars, and what a schema says of their columns."""

import warnings
from datetime import date

import numpy as np
import pytest

pytest.importorskip("sklearn")
pytest.importorskip("pandas")
pytest.importorskip("polars")
import pandas
import polars

from tacit import PrivateFederatedClassifier, PrivateFederatedRegressor
from tacit.errors import RepeatedFitWarning, UnboundedWarning

SCHEMA = """
missing_marks = ["?"]

[columns.age]
kind = "numeric"
lo = 0
hi = 100

[columns.smoker]
kind = "categorical"
values = ["never", "former", "current"]

[columns.seen]
kind = "date"
lo = 2020-01-01
hi = 2024-01-01

[columns.outcome]
kind = "label"
groups = { ill = [1, 2], well = [0] }

[columns.hospital]
kind = "agent"
"""
FRAMES = [pandas.DataFrame, polars.DataFrame]


def table(n=240):
    rng = np.random.default_rng(0)
    age = rng.integers(0, 100, n)
    columns = {
        "age": [None if i == 5 else int(a) for i, a in enumerate(age)],
        "smoker": [None if i == 6 else ["never", "former", "current", "pipe"][int(k)] for i, k in
                   enumerate(rng.integers(0, 4, n))],
        "seen": [date(2019 + int(k), 5, 1) for k in rng.integers(0, 7, n)],
        "hospital": [f"h{i % 3}" for i in range(n)],
        "remark": ["not of the schema"] * n,
    }  # fmt: skip
    return columns, np.where(age > 50, rng.integers(1, 3, n), 0)


@pytest.mark.parametrize("frame", FRAMES)
def test_a_schema_says_all_that_is_public_of_a_frame(frame, tmp_path):
    columns, y = table()
    known = {"epsilon": 20.0, "rounds": 10, "random_state": 0}
    model = PrivateFederatedClassifier(schema=SCHEMA, **known).fit(frame(columns), y)
    assert model.agents_.tolist() == ["h0", "h1", "h2"]
    assert model.feature_names_in_.tolist() == ["age", "smoker", "seen"]
    assert model.n_features_in_ == 3
    assert model.classes_.tolist() == ["ill", "well"]
    assert model.guarantee_.startswith("(20, 1e-06)-DP")
    assert np.mean(model.predict(frame(columns)) == np.where(y > 0, "ill", "well")) > 0.8
    assert model.model_.predict({name: np.array(columns[name], dtype=object) for name in columns}) == [
        *model.predict(frame(columns))
    ]
    path = tmp_path / "schema.toml"
    path.write_text(SCHEMA)
    for source in (path, str(path)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RepeatedFitWarning)
            again = PrivateFederatedClassifier(schema=source, **known).fit(frame(columns), y)
        assert np.array_equal(again.model_.w, model.model_.w)


def test_frames_of_both_libraries_give_one_model(forget):
    columns, y = table()
    models = []
    for frame in FRAMES:
        forget()
        found = PrivateFederatedClassifier(schema=SCHEMA, rounds=3, random_state=0).fit(frame(columns), y)
        models.append(found.model_.w)
    assert np.array_equal(*models)


@pytest.mark.parametrize("frame", FRAMES)
def test_a_dictionary_is_a_short_schema(frame):
    columns, y = table()
    schema = {
        "age": (0, 100), "smoker": ["never", "former", "current"],
        "seen": {"kind": "date", "lo": date(2020, 1, 1), "hi": "2024-01-01"},
    }  # fmt: skip
    model = PrivateFederatedClassifier(schema=schema, classes=[0, 1, 2], rounds=3, random_state=0)
    model.fit(frame(columns), y, agents=columns["hospital"])
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.agents_.tolist() == ["h0", "h1", "h2"]
    assert "age" in model.model_.schema
    assert {shape.column for shape in model.model_.shapes().columns} >= {"age", "smoker"}


def test_a_schema_may_declare_the_number_to_predict():
    columns, _ = table()
    age = np.array([0 if a is None else a for a in columns["age"]], dtype=float)
    schema = {"smoker": ["never", "former", "current"], "age": (0, 100), "days": {"kind": "target", "lo": 0, "hi": 50}}
    model = PrivateFederatedRegressor(epsilon=20.0, schema=schema, random_state=0).fit(
        pandas.DataFrame(columns), age / 2
    )
    assert model.score(pandas.DataFrame(columns), age / 2) > 0.7
    with pytest.raises(ValueError, match="use PrivateFederatedRegressor"):
        PrivateFederatedClassifier(schema=schema).fit(pandas.DataFrame(columns), age)
    with pytest.raises(ValueError, match="drop classes and target_bounds"):
        PrivateFederatedRegressor(schema=schema, target_bounds=(0, 1)).fit(pandas.DataFrame(columns), age)


def test_a_schema_without_a_class_takes_classes_from_the_labels_and_says_so():
    columns, y = table()
    with pytest.warns(UserWarning, match="list of classes was read"):
        model = PrivateFederatedClassifier(schema={"age": (0, 100)}, rounds=2).fit(pandas.DataFrame(columns), y)
    assert model.classes_.tolist() == [0, 1, 2]


@pytest.mark.parametrize("frame", FRAMES)
def test_a_frame_lacks_no_column_of_the_schema(frame):
    columns, y = table()
    model = PrivateFederatedClassifier(schema=SCHEMA, rounds=2).fit(frame(columns), y)
    del columns["age"]
    with pytest.raises(ValueError, match="lacks 'age'"):
        model.predict(frame(columns))


def test_an_array_has_the_columns_in_the_order_of_the_schema():
    columns, y = table()
    x = np.array([columns[name] for name in ("age", "smoker", "seen")], dtype=object).T
    model = PrivateFederatedClassifier(schema=SCHEMA, rounds=2).fit(x, y, agents=columns["hospital"])
    assert model.predict(x).tolist() == model.predict(pandas.DataFrame(columns)).tolist()
    with pytest.raises(ValueError, match="makes features of 'age'"):
        model.predict(x[:, :2])


@pytest.mark.parametrize("frame", FRAMES)
def test_a_frame_of_numbers_needs_no_schema(frame):
    x = np.random.default_rng(0).uniform(size=(100, 2))
    y = (x[:, 0] > 0.5).astype(int)
    model = PrivateFederatedClassifier(classes=[0, 1], feature_bounds={"a": (0, 1), "b": (0, 2)}, rounds=2)
    model.fit(frame({"a": x[:, 0], "b": x[:, 1]}), y)
    assert model.feature_names_in_.tolist() == ["a", "b"]
    assert model.model_.known.columns["b"].hi == 2
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame({"a": x[:, 0], "c": x[:, 1]}))


@pytest.mark.parametrize("frame", FRAMES)
def test_a_frame_of_texts_asks_for_a_schema_and_shows_no_cell(frame):
    columns, y = table()
    with pytest.raises(ValueError, match="no numbers, 'smoker', 'hospital', 'remark': declare") as caught:
        PrivateFederatedClassifier(classes=[0, 1, 2]).fit(frame({**columns, "seen": [0] * len(y)}), y)
    assert "never" not in str(caught.value)
    assert "former" not in str(caught.value)


def test_long_vectors_without_bounds_need_none():
    x = np.random.default_rng(0).normal(size=(60, 300))
    y = (x[:, 0] > 0).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnboundedWarning)
        model = PrivateFederatedClassifier(classes=[0, 1], rounds=2).fit(x, y)
    assert model.notes_ == []


COMMAS = {
    "file": {"separator": ";", "decimal": ","},
    "columns": {
        "height": {"kind": "numeric", "lo": 100, "hi": 200}, "dose": {"kind": "categorical", "values": ["1,5", "2"]},
        "weight": {"kind": "target", "lo": 0, "hi": 100},
    },
}  # fmt: skip


@pytest.mark.parametrize("frame", FRAMES)
def test_texts_of_a_frame_have_the_decimal_sign_of_the_schema(frame, tmp_path, forget):
    height = np.random.default_rng(0).uniform(110, 190, 60).round(1)
    weight = (height / 2).round(2)
    texts = {"height": [str(one).replace(".", ",") for one in height], "dose": ["1,5", "2"] * 30}
    known = {"schema": COMMAS, "epsilon": 20.0, "rounds": 3, "random_state": 0}
    model = PrivateFederatedRegressor(**known).fit(frame(texts), [str(one).replace(".", ",") for one in weight])
    forget()
    numbers = {"height": height, "dose": ["1,5", "2"] * 30}
    assert np.array_equal(model.model_.w, PrivateFederatedRegressor(**known).fit(frame(numbers), weight).model_.w)
    assert len(np.unique(model.predict(frame(texts)))) > 30
    assert model.predict(frame(texts)).tolist() == model.predict(frame(numbers)).tolist()
    path = tmp_path / "new.csv"
    path.write_text("height;dose\n" + "".join(f"{a};{b}\n" for a, b in zip(*texts.values(), strict=True)))
    assert model.model_.predict(texts) == model.model_.predict(path)
    gap = {"height": [None, "x", "158.9"], "dose": ["2", 2, "2"]}  # 158.9 may be meant as 1589, as in a file
    rows = pandas.DataFrame(gap)
    assert len({*model.predict(rows)}) == 1
