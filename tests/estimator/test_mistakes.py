"""Mistakes of a first hour: what is not covered is said, and no wrong model is trained without a word."""

import ast
import re
import warnings
from datetime import date, datetime

import numpy as np
import pytest

pytest.importorskip("sklearn")
pytest.importorskip("pandas")
pytest.importorskip("polars")
import pandas
import polars
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tacit import PrivateFederatedClassifier, PrivateFederatedRegressor
from tacit.errors import OwnerWarning
from tacit.estimator.declared import by_schema
from tacit.estimator.notes import OWN_FIT

QUICK = {"classes": [0, 1], "feature_bounds": (0, 1), "random_state": 0, "rounds": 2}


# --- the guarantee and what it does not cover


@pytest.mark.filterwarnings("ignore::tacit.errors.RepeatedFitWarning")
def test_every_guarantee_says_that_it_covers_neither_earlier_steps_nor_a_search(records):
    x, y, _ = records
    alone = PrivateFederatedClassifier(**QUICK).fit(x, y)
    scaled = make_pipeline(StandardScaler(), PrivateFederatedClassifier(**QUICK)).fit(x, y)[-1]
    best = GridSearchCV(PrivateFederatedClassifier(**QUICK), {"rounds": [1, 2]}, cv=2).fit(x, y).best_estimator_
    number = PrivateFederatedRegressor(target_bounds=(0, 1), feature_bounds=(0, 1), rounds=2).fit(x, x[:, 0])
    for model in (alone, scaled, best, number):
        assert model.guarantee_.endswith(f". {OWN_FIT}")
        assert model.guarantee_.startswith("(1, 1e-06)-DP")
        assert OWN_FIT not in model.privacy_spent_.reason
    assert "pipeline" in OWN_FIT
    assert "search" in OWN_FIT


@pytest.mark.filterwarnings("ignore::tacit.errors.NotPrivateWarning")
def test_a_fit_without_a_guarantee_ends_with_the_same_sentence(records, tmp_path):
    x, y, _ = records
    model = PrivateFederatedClassifier(**QUICK | {"classes": None, "out": tmp_path / "run"}).fit(x, y)
    assert model.guarantee_.startswith("not private")
    assert model.guarantee_.endswith(f". {OWN_FIT}")
    assert ".." not in model.guarantee_
    assert OWN_FIT not in (tmp_path / "run" / "result.json").read_text()


@pytest.mark.filterwarnings("ignore::tacit.errors.UnboundedWarning", "ignore::tacit.errors.RepeatedFitWarning")
@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("kind", [np.asarray, pandas.DataFrame])
def test_missing_numbers_ask_for_bounds_or_a_schema_and_never_for_an_imputer(records, bad, kind):
    x, y, _ = records
    gap = x.copy()
    gap[3, 1] = bad
    unbounded = {"classes": [0, 1], "rounds": 2}
    fitted = PrivateFederatedClassifier(**unbounded).fit(kind(x), y)
    for use in (lambda: PrivateFederatedClassifier(**unbounded).fit(kind(gap), y), lambda: fitted.predict(kind(gap))):
        with pytest.raises(ValueError, match=r"NaN or infinity.*feature_bounds.*schema") as caught:
            use()
        assert "transformer" not in str(caught.value)
        assert "sklearn" not in str(caught.value)
    advised = PrivateFederatedClassifier(**unbounded, feature_bounds=(0, 1)).fit(kind(gap), y)
    assert advised.predict(kind(gap)).shape == y.shape


# --- a schema as a dictionary


def spellings(message):
    """Return the dictionaries that an error offers."""
    return [ast.literal_eval(found) for found in re.findall(r"write (\{.*?\})\.(?: |$)", message)]


@pytest.mark.parametrize(("pair", "wrong"), [
    ([15, 60], "numbers"), ([60, 15], "numbers"), ([0.5, 1e3], "numbers"), ([np.int64(15), np.float32(60)], "numbers"),
    (["1940-01-01", "1975-01-01"], "dates"), ([date(1940, 1, 1), pandas.Timestamp("1975-01-01 12:30")], "dates"),
])  # fmt: skip
def test_a_list_of_two_ends_is_refused_and_both_spellings_that_are_offered_run(pair, wrong):
    frame, y = pandas.DataFrame({"it's age": [16, 20, 59, 60] * 5}), [0, 1] * 10
    with pytest.raises(ValueError, match=f"a list of two {wrong}, which may be a range or two categories") as caught:
        PrivateFederatedClassifier(schema={"it's age": pair}, classes=[0, 1]).fit(frame, y)
    short, long = spellings(str(caught.value))
    kinds = []
    for schema in (short, long):
        declared = by_schema(schema, {"kind": "label", "classes": ["0", "1"]}, dict).schema
        kinds.append(declared.columns["it's age"].kind)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            PrivateFederatedClassifier(schema=schema, classes=[0, 1], rounds=1).fit(frame, y)
    assert kinds == ["numeric" if wrong == "numbers" else "date", "categorical"]


def column(value):
    return by_schema({"a": value}, {"kind": "label", "classes": ["0", "1"]}, dict).schema.columns["a"]


@pytest.mark.parametrize(("value", "values"), [
    (range(1, 5), "1234"), ({"b", "a", "c"}, "abc"), (frozenset({10, 9, "x"}), ("9", "10", "x")),
    (pandas.CategoricalDtype(["b", "a"]), "ba"), (pandas.CategoricalDtype([3, 1]), "31"),
    (polars.Enum(["b", "a"]), "ba"), ([True, False], ("True", "False")), ({15, 60}, ("15", "60")),
    ([np.int64(1), np.str_("b")], "1b"), ({"kind": "categorical", "values": range(3)}, "012"),
    (["1940", "1975"], ("1940", "1975")),
])  # fmt: skip
def test_a_range_a_set_and_a_dtype_list_categories(value, values):
    assert column(value).values == tuple(values)


@pytest.mark.parametrize(("value", "ends"), [
    ((date(1940, 1, 1), date(1975, 1, 1)), ("1940-01-01", "1975-01-01")),
    ((datetime(1940, 1, 1), datetime(1975, 1, 1, 8, 30)), ("1940-01-01", "1975-01-01T08:30")),
    (("1940-01-01", "1975-01-01"), ("1940-01-01", "1975-01-01")), (("1940", "1975"), ("1940", "1975")),
    ((pandas.Timestamp("1940-01-01"), pandas.Timestamp("1975-01-01")), ("1940-01-01", "1975-01-01")),
    ((np.datetime64("1940-01-01"), np.datetime64("1975-01-01", "ns")), ("1940-01-01", "1975-01-01")),
    ((pandas.Timestamp("1940-01-01", tz="UTC"), "1975-01-01"), ("1940-01-01", "1975-01-01")),
])  # fmt: skip
def test_a_tuple_of_dates_is_a_date(value, ends):
    found = column(value)
    assert (found.kind, found.lo, found.hi) == ("date", *ends)
    assert ("hour" in found.made_of) == ("T" in "".join(ends))


FRAME = pandas.DataFrame({"job": pandas.Categorical(["SECRETa", "SECRETb"] * 5), "n": range(10)})


@pytest.mark.parametrize("value", [
    FRAME.job.unique(), FRAME.job.cat.categories, FRAME.job, FRAME.job.to_numpy(), FRAME.n.to_numpy(), FRAME,
    polars.Series(["SECRETa", "SECRETb"]), np.array(["SECRETa", "SECRETb"]), FRAME.job.array,
    {"kind": "categorical", "values": np.array(["SECRETa", "SECRETb"])}, ["x", FRAME.n.to_numpy()],
    {"kind": "label", "classes": FRAME.job.cat.categories}, (FRAME.n.to_numpy(), 3),
    {"kind": "numeric", "lo": 0, "hi": 1, "edges": FRAME.n.to_numpy()},
])  # fmt: skip
def test_what_was_computed_from_records_is_no_declaration(value):
    with pytest.raises(ValueError, match=r"read from records are not public.* as a list") as caught:
        PrivateFederatedClassifier(schema={"job": value}, classes=[0, 1]).fit(FRAME, [0, 1] * 5)
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize("value", [
    bool, 3, "numeric", None, (1, 2, 3), (1, "a"), ("SECRETa", "SECRETb"), lambda: 0, [object()], [None, "a"],
    {"kind": "numeric", "lo": object(), "hi": 1}, range(10**12), pandas.CategoricalDtype(), ["\ud800"], (True, False),
    iter("ab"), {"a": 1}.keys(), pandas.IntervalDtype(), [pandas.NaT, "a"], (pandas.NaT, "2020-01-01"), [], set(),
])  # fmt: skip
def test_what_a_schema_cannot_take_is_refused_in_words_of_python(value):
    with pytest.raises(ValueError, match="schema") as caught:
        PrivateFederatedClassifier(schema={"n": value}, classes=[0, 1]).fit(FRAME, [0, 1] * 5)
    for word in ("TOML", "toml", "line 1", "[columns", "SECRET", "object at"):
        assert word not in str(caught.value)


# --- bounds


@pytest.mark.parametrize("bounds", [
    [(0, 8), (15, 60)], ((0, 8), (15, 60)), np.array([[0, 8], [15, 60]]), ([0, 0], [1, 2]), [(0, 0), (0, 0)],
])  # fmt: skip
@pytest.mark.parametrize("kind", [np.asarray, lambda x: pandas.DataFrame(x, columns=["children", "age"])])
@pytest.mark.filterwarnings("ignore::tacit.errors.OwnerWarning", "ignore::tacit.errors.RepeatedFitWarning")
def test_two_pairs_of_two_features_are_refused_and_what_is_offered_runs(bounds, kind):
    x, y = np.random.default_rng(0).uniform(size=(40, 2)), [0, 1] * 20
    with pytest.raises(ValueError, match="two ways: name the features") as caught:
        PrivateFederatedClassifier(feature_bounds=bounds, classes=[0, 1]).fit(kind(x), y)
    offered = [ast.literal_eval(found) for found in re.findall(r"feature_bounds=(\{.*?\})", str(caught.value))]
    assert len(offered) == sum((ends[:, 0] < ends[:, 1]).all() for ends in (np.array(bounds), np.array(bounds).T))
    for one in offered:
        PrivateFederatedClassifier(feature_bounds=one, classes=[0, 1], rounds=1).fit(kind(x), y)


def test_bounds_by_name_are_those_of_their_columns():
    x, y = np.random.default_rng(0).uniform(size=(40, 3)), [0, 1] * 20
    frame = pandas.DataFrame(x, columns=["children", "age", "income"])
    bounds = {"age": (15, 60), "children": [0, 8], "income": (np.float64(0), 1e6)}
    with pytest.warns(OwnerWarning):
        model = PrivateFederatedClassifier(feature_bounds=bounds, classes=[0, 1], rounds=1).fit(frame, y)
    found = model.model_.known.encoded
    assert {name: (one.lo, one.hi) for name, one in found.items()} == {k: tuple(v) for k, v in bounds.items()}
    assert list(found) == list(frame.columns)
    for wrong, says in (
        ({**bounds, "Age": (0, 1)}, "did you mean 'age'"), ({"age": (0, 1)}, "lacks 'children', 'income'"),
        ({**bounds, "age": 3}, r"feature_bounds\['age'\] takes \(lo, hi\)"), ({**bounds, "age": (60, 15)}, "lower"),
        ({**bounds, "age": frame}, "got a DataFrame"), ({}, "lacks"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=says):
            PrivateFederatedClassifier(feature_bounds=wrong, classes=[0, 1], rounds=1).fit(frame, y)


@pytest.mark.parametrize("name", ["epsilon", "dp_delta"])
def test_a_budget_that_is_none_is_no_budget(records, name):
    x, y, _ = records
    with pytest.raises(ValueError, match=f"{name} takes a number, got None"):
        PrivateFederatedClassifier(**QUICK | {name: None}).fit(x, y)


def test_a_column_of_another_case_is_named():
    with pytest.raises(ValueError, match=r"X lacks 'Job' of schema \(did you mean 'job' by 'Job'\?\)"):
        PrivateFederatedClassifier(schema={"Job": ["a", "b"]}, classes=[0, 1]).fit(FRAME, [0, 1] * 5)


def test_dates_are_no_numbers_without_a_schema():
    frame = pandas.DataFrame({"day": pandas.date_range("2020-01-01", periods=10), "n": np.linspace(0, 1, 10)})
    with pytest.raises(ValueError, match="no numbers, 'day': declare") as caught:
        PrivateFederatedClassifier(feature_bounds=(0, 1), classes=[0, 1]).fit(frame, [0, 1] * 5)
    assert "2020" not in str(caught.value)
