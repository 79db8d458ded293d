"""What an attacker, or a careless owner, would try on an estimator."""

import pickle
import traceback
import warnings

import numpy as np
import pytest

pytest.importorskip("sklearn")
from scipy.sparse import csr_array

from tacit import PrivateFederatedClassifier, PrivateFederatedRegressor
from tacit.errors import InputError, OwnerWarning, RepeatedFitWarning
from tacit.estimator.agents import dealt
from tacit.estimator.declared import by_schema

DECLARED = {"classes": [0, 1], "feature_bounds": (0.0, 1.0), "rounds": 3}


def walked(thing, seen):
    """Yield every array that can be reached from an object."""
    if id(thing) in seen:
        return
    seen[id(thing)] = thing
    if isinstance(thing, np.ndarray):
        yield thing
    inner = list(thing.values()) if isinstance(thing, dict) else list(thing) if isinstance(thing, list | tuple) else []
    inner += list(vars(thing).values()) if hasattr(thing, "__dict__") and not isinstance(thing, type) else []
    for one in inner:
        yield from walked(one, seen)


def test_a_fitted_estimator_that_is_sent_away_holds_no_record_and_no_measurement_of_one(records):
    x, y, agents = records
    model = PrivateFederatedClassifier(**DECLARED).fit(x, y, agents=agents)
    assert all(len(found) != len(x) and len(found) != len(x) // 4 for found in walked(model, {}) if found.ndim)
    assert all(set(row) == {"t", "step", "rho", "epsilon"} for row in model.history_)
    sent = pickle.dumps(model)
    assert not any(row.tobytes() in sent for kind in (np.float64, np.float32) for row in x.astype(kind))


def test_a_simulation_keeps_its_measurements(records):
    x, y, _ = records
    model = PrivateFederatedClassifier(**DECLARED, random_state=0).fit(x, y)
    assert model.history_[-1]["objective"] is not None


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("cell", [np.nan, np.inf, -np.inf, 1e300, -1e300])
def test_no_number_decides_whether_a_fit_ends_where_bounds_are_declared(records, cell):
    x, y, agents = records
    x = x.copy()
    x[7] = cell
    for bounds in ((0.0, 1.0), ([0.0] * 3, [1.0] * 3)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RepeatedFitWarning)
            model = PrivateFederatedClassifier(**DECLARED | {"feature_bounds": bounds}).fit(x, y, agents)
        assert np.isfinite(model.predict_proba(x)).all()


@pytest.mark.parametrize("label", [7, -1, 1e9])
def test_no_label_decides_whether_a_fit_ends_where_classes_are_declared(records, label):
    x, y, _ = records
    y = y.astype(float)
    y[3] = label
    with pytest.warns(OwnerWarning, match="1 record of agent 'all'"):
        model = PrivateFederatedClassifier(**DECLARED).fit(x, y)
    assert model.classes_.tolist() == [0, 1]


@pytest.mark.parametrize("label", [np.nan, None, "", "x", [], {}])
def test_a_label_that_is_no_class_counts_as_absent(records, label):
    x, y, _ = records
    y = y.astype(object)
    y[3] = label
    with pytest.warns(OwnerWarning):
        PrivateFederatedClassifier(**DECLARED).fit(x, y)


@pytest.mark.parametrize("label", [np.inf, -np.inf, 1e300])
def test_a_number_outside_the_declared_target_is_moved_to_its_end(records, label):
    x, _, _ = records
    y = x[:, 0].copy()
    y[3] = label
    PrivateFederatedRegressor(feature_bounds=(0, 1), target_bounds=(0, 1), rounds=3).fit(x, y)


def test_a_missing_number_to_predict_counts_as_absent(records):
    x, _, _ = records
    y = x[:, 0].copy()
    y[3] = np.nan
    with pytest.warns(OwnerWarning, match="hold no number"):
        PrivateFederatedRegressor(feature_bounds=(0, 1), target_bounds=(0, 1), rounds=3).fit(x, y)


@pytest.mark.parametrize("bounds", [None, (0.0, 1.0), ([0.0, 0.0, 0.0], [1.0, 1.0, 1.0])])
def test_what_a_record_becomes_depends_on_that_record_alone(records, forget, bounds):
    x, y, _ = records
    other = x * 1000
    other[0] = x[0]
    found = []
    for one in (x, other):
        forget()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = PrivateFederatedClassifier(**DECLARED | {"feature_bounds": bounds}, random_state=0).fit(one, y)
        encoded = model._declared.numbers(one)[0][:1]
        found.append((encoded, model.privacy_spent_.releases, model.model_.recipe))
    assert np.array_equal(found[0][0], found[1][0])
    assert found[0][1:] == found[1][1:]


def test_the_noise_does_not_depend_on_the_records(records, forget):
    x, y, _ = records
    before = PrivateFederatedClassifier(**DECLARED).fit(x, y).privacy_spent_
    forget()
    with pytest.warns(OwnerWarning):
        after = PrivateFederatedClassifier(**DECLARED).fit(np.zeros_like(x), np.full(len(y), 9)).privacy_spent_
    assert before == after


def test_a_budget_is_not_spent_before_its_warning_is_heard(records, tmp_path):
    x, y, _ = records
    known = DECLARED | {"ledger": tmp_path, "limit": 3.0}
    first = PrivateFederatedClassifier(**known).fit(x, y).privacy_spent_
    with pytest.raises(RepeatedFitWarning):  # warnings are errors here
        PrivateFederatedClassifier(**known).fit(x, y)
    with pytest.warns(RepeatedFitWarning):
        third = PrivateFederatedClassifier(**known).fit(x, y).privacy_spent_
    assert first.lifetime == {"all": pytest.approx(first.total, rel=1e-3)}
    assert first.total < third.lifetime["all"] < 2 * first.total  # two fits, and not three


def test_a_limit_ends_a_search_however_it_is_made(records, tmp_path, forget):
    x, y, _ = records
    known = DECLARED | {"ledger": tmp_path, "limit": 1.2}
    PrivateFederatedClassifier(**known).fit(x, y)
    forget()
    with pytest.raises(ValueError, match="does not begin"):
        PrivateFederatedClassifier(**known).fit(x, y)


def test_ledgers_need_exact_noise(records, tmp_path):
    x, y, _ = records
    with pytest.raises(InputError, match="ledger"):
        PrivateFederatedClassifier(**DECLARED, ledger=tmp_path, random_state=0).fit(x, y)


@pytest.mark.parametrize("agents", [["a", None], ["a", ""], [1.0, np.nan], ["a"], [["a"], ["b"]], "ab"])
def test_agents_that_are_no_labels_are_refused(agents):
    with pytest.raises(InputError, match="agent"):
        dealt(agents, 2)


def test_a_schema_that_holds_what_was_read_from_the_data_is_refused():
    text = '[columns.a]\nkind = "numeric"\nlo = 0\nhi = 1\nread_from_data = true\n'
    with pytest.raises(InputError, match="read from the data"):
        by_schema(text, {"kind": "label", "classes": ["0", "1"]}, dict)


@pytest.mark.parametrize("name", ['a"b', "a\nb", "a]b", "a.b", "label", "é\u2028", "__proto__", ""])
def test_a_name_of_a_column_stays_a_name(records, name):
    x, _, _ = records
    found = by_schema({name: (0, 1), "other": ["x", "y"]}, {"kind": "label", "classes": ["0", "1"]}, dict)
    assert [*found.schema.encoded] == [name, "other"]
    assert found.encoded({name: x[:, 0], "other": np.array(["x"] * len(x))})[0].shape == (len(x), 3)


def test_nothing_is_known_of_records_from_the_hashes_without_the_key(records, monkeypatch):
    from tacit.estimator import repeated

    x, _, _ = records
    before = repeated.hashed(x)
    assert len(before) == len(x)
    assert np.array_equal(before, repeated.hashed(x[::-1]))
    monkeypatch.setattr(repeated, "_KEY", repeated._KEY + 1)
    assert not np.isin(repeated.hashed(x), before).any()


SECRET = "John Smith 555-1234"
GOOD = [[0.25, 0.5], [0.75, 0.125]]


@pytest.mark.parametrize("bad", [
    np.array([[SECRET, 0.5], [0.25, 0.5]], object), [[SECRET, 0.5], [0.25, 0.5]], np.array([[SECRET, "1"], ["0", "1"]]),
    [[b"John Smith 555-1234", 0.5], [0.25, 0.5]], [[5551234.0 + 1j, 0.5], [0.25, 0.5]], [5551234.0, 0.5],
    csr_array([[5551234.0 + 1j, 0.5], [0.25, 0.5]]), np.array([SECRET, "x"], object), [[SECRET, 0.5], [0.25]],
    np.array([[5551234.0 + 1j, SECRET]], object),
])  # fmt: skip
@pytest.mark.parametrize("bounds", [None, (0.0, 1.0)])
def test_no_cell_is_printed_where_a_record_is_no_numbers(bad, bounds):
    known = {"classes": [0, 1], "feature_bounds": bounds, "rounds": 2, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = PrivateFederatedClassifier(**known).fit(GOOD, [0, 1])
    for work in (lambda: PrivateFederatedClassifier(**known).fit(bad, [0, 1]), lambda: fitted.predict(bad)):
        with pytest.raises((ValueError, TypeError)) as caught:
            work()
        shown = "".join(traceback.format_exception_only(caught.value)) + str(caught.value.__cause__)
        assert not any(part in shown for part in ("John", "555"))


def test_no_number_to_predict_is_printed():
    with pytest.raises(ValueError, match="y holds labels that are no numbers") as caught:
        PrivateFederatedRegressor(feature_bounds=(0, 1), rounds=2).fit(GOOD, [SECRET, "1"])
    assert "555" not in str(caught.value)
