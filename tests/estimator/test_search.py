"""Several fits on the same records: in a search, in cross-validation, in a row."""

import re
import warnings

import numpy as np
import pytest

pytest.importorskip("sklearn")
from sklearn.base import clone
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import GridSearchCV, HalvingGridSearchCV, RandomizedSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from tacit import PrivateFederatedClassifier
from tacit.errors import RepeatedFitWarning
from tacit.estimator.repeated import ODOMETER, Cost, Odometer
from tacit.privacy.budget import total
from tacit.privacy.release import GaussianRelease

MODEL = PrivateFederatedClassifier(classes=[0, 1], feature_bounds=(0, 1), rounds=2, random_state=0)
NOT_PRIVATE = "not private, whatever the fits cost"


def told(work):
    """Return the warnings about repeated fits that some work gives."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        work()
    return [str(one.message) for one in heard if one.category is RepeatedFitWarning]


def test_a_search_says_what_its_trials_cost_in_all_and_that_choosing_is_not_private(records):
    x, y, agents = records
    search = GridSearchCV(MODEL, {"rounds": [1, 2, 3]}, cv=4)
    first, last = told(lambda: search.fit(x, y, agents=agents))
    assert "makes 12 fits and a last one" in first
    assert f"up to {Cost(1.0, 1e-6, True).composed(13)} together" in first
    assert "were in 9 others of this process" in last  # of four folds, a record is in three
    assert f"cost {Cost(1.0, 1e-6, True).composed(10)} together" in last
    assert NOT_PRIVATE in first
    assert NOT_PRIVATE in last
    assert search.best_estimator_.agents_.tolist() == list("abcd")


def test_a_search_over_budgets_adds_up_what_each_costs(records):
    x, y, _ = records
    *_, last = told(lambda: GridSearchCV(MODEL, {"epsilon": [1.0, 8.0]}, cv=2).fit(x, y))
    (epsilon,) = re.findall(r"they cost \(([0-9.]+),", last)
    assert 8.0 < float(epsilon) < 1.0 + 8.0 + 8.0


def planned(*epsilons, splits=2):
    """Return what a search over these budgets costs at most: each in every split, and the largest once more."""
    rows = np.array([Cost(epsilon, 1e-6, True).row for epsilon in epsilons])
    return Cost(1.0, 1e-6, True).said(splits * rows.sum(axis=0) + rows.max(axis=0))


@pytest.mark.parametrize("grid", [
    {"epsilon": [1.0, 8.0]}, {"epsilon": [8.0, 1.0]}, [{"rounds": [2]}, {"epsilon": [8.0]}],
    {"options": [{}, {"privacy.epsilon": 8.0}]}, {"options": [{"privacy.epsilon": 8.0}, None]},
])  # fmt: skip
def test_the_first_warning_of_a_search_adds_up_the_budgets_of_all_candidates(records, grid):
    x, y, _ = records
    first, *_ = told(lambda: GridSearchCV(MODEL, grid, cv=2).fit(x, y))
    assert "makes 4 fits and a last one on all records. With budgets that differ" in first
    assert f"up to {planned(1.0, 8.0)} together" in first  # whichever comes first


def test_the_first_warning_of_a_search_over_a_pipeline_adds_up_too(records):
    x, y, _ = records
    model = make_pipeline(FunctionTransformer(), MODEL)
    grid = {"privatefederatedclassifier__epsilon": [1.0, 8.0]}
    assert f"up to {planned(1.0, 8.0)} together" in told(lambda: GridSearchCV(model, grid, cv=2).fit(x, y))[0]
    grid = {"privatefederatedclassifier": [MODEL, clone(MODEL).set_params(epsilon=8.0)]}
    assert f"up to {planned(1.0, 8.0)} together" in told(lambda: GridSearchCV(model, grid, cv=2).fit(x, y))[0]


@pytest.mark.parametrize("search", [
    lambda: HalvingGridSearchCV(MODEL, {"epsilon": [1.0, 2.0, 8.0]}, cv=2, min_resources=100),  # more trials follow
    lambda: GridSearchCV(MODEL, {"epsilon": [1.0, -8.0]}, cv=2),  # one of which is refused
])  # fmt: skip
def test_what_is_not_known_of_a_search_is_said_to_be_so(records, search):
    x, y, _ = records
    first, *_ = told(lambda: search().fit(x, y))
    assert "not known here, and may be larger" in first
    assert "up to" not in first


def test_a_trial_elsewhere_promises_no_total_and_the_last_fit_tells_it(records):
    x, y, _ = records
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from joblib import parallel_config
    with parallel_config("threading"):
        first, *_, last = told(lambda: GridSearchCV(MODEL, {"epsilon": [1.0, 8.0]}, cv=2, n_jobs=2).fit(x, y))
    assert "not known here" in first
    assert "up to" not in first
    rows = np.array([Cost(epsilon, 1e-6, True).row for epsilon in (1.0, 8.0)])
    assert f"up to {Cost(8.0, 1e-6, True).said(2 * rows.sum(axis=0) + rows.max(axis=0))} together" in last


def test_deltas_of_several_fits_add_up():
    rows = Cost(1.0, 1e-5, gaussian=False).row + Cost(2.0, 1e-3, gaussian=False).row
    assert Cost(1.0, 1e-6, gaussian=False).said(rows) == "(3, 0.00101)-DP"
    both = rows + Cost(1.0, 1e-6, gaussian=True).row
    assert Cost(1.0, 1e-6, gaussian=True).said(both).endswith(", 0.001011)-DP")


def test_other_searches_are_known_too(records):
    x, y, _ = records
    model = make_pipeline(FunctionTransformer(), MODEL)
    search = RandomizedSearchCV(model, {"privatefederatedclassifier__rounds": [1, 2, 3]}, n_iter=2, cv=2, refit=False)
    assert "makes 4 fits" in told(lambda: search.fit(x, y))[0]


def test_searches_are_told_of_each(records, forget):
    x, y, _ = records
    for _ in range(2):
        forget()
        assert "makes 2 fits" in told(lambda: GridSearchCV(MODEL, {"rounds": [1]}, cv=2).fit(x, y))[0]
    assert "makes 2 fits" in told(lambda: GridSearchCV(MODEL, {"rounds": [1]}, cv=2).fit(x, y))[0]


def test_trials_in_other_processes_are_told_of_at_the_last_fit(records):
    x, y, _ = records
    search = GridSearchCV(MODEL, {"rounds": [1, 2]}, cv=2, n_jobs=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from joblib import parallel_config
    with parallel_config("threading"):
        heard = told(lambda: search.fit(x, y))
    assert any("makes 4 fits" in one for one in heard)


def test_cross_validation_counts(records):
    x, y, _ = records
    heard = told(lambda: cross_val_score(MODEL, x, y, cv=5))
    assert "in 1 other of" in heard[0]
    assert any(Cost(1.0, 1e-6, True).composed(4) in one for one in heard)


def test_fits_on_other_records_do_not_add_up(records):
    x, y, _ = records
    assert told(lambda: MODEL.fit(x[:200], y[:200])) == []
    assert told(lambda: MODEL.fit(x[200:], y[200:])) == []
    (heard,) = told(lambda: MODEL.fit(x[199:], y[199:]))  # one record in common
    assert "in 1 other of" in heard


def test_gaussian_fits_compose_as_one_release_and_others_by_their_sum():
    one = Cost(1.0, 1e-6, gaussian=True)
    mu = float(np.sqrt(one.row[1]))
    assert total([(GaussianRelease(1 / mu), 1)], 1e-6).epsilon == pytest.approx(1.0, rel=2e-3)
    assert Cost(1.0, 1e-6, gaussian=False).composed(3) == "(3, 3e-06)-DP"
    assert Cost(np.inf, 1e-6, gaussian=True).composed(2) == "without any bound"


def test_the_most_used_record_counts():
    rows = np.arange(12, dtype=np.uint64)
    cost = Cost(1.0, 1e-6, gaussian=False)
    ODOMETER.add(rows[:4], cost)
    ODOMETER.add(rows[2:8], cost)
    assert ODOMETER.with_one_more(rows[:2], cost)[0] == 2
    assert ODOMETER.with_one_more(rows, cost) == (3, "(3, 3e-06)-DP")
    assert ODOMETER.with_one_more(rows[8:], cost)[0] == 1


def test_deltas_of_fits_that_are_not_gaussian_add_up(records):
    x, y, _ = records

    def fits():
        for dp_delta in (1e-3, 1e-6):
            clone(MODEL).set_params(algorithm="dpsgd", dp_delta=dp_delta).fit(x, y)

    (said,) = told(fits)
    assert "they cost (2, 0.001001)-DP together" in said


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_mix_of_fits_keeps_every_delta_in_any_order(order):
    one = np.array([7], np.uint64)
    costs = [Cost(1.0, 1e-6, gaussian=True), Cost(1.0, 1e-3, gaussian=False)]
    odometer = Odometer()
    odometer.add(one, costs[order[0]])
    assert odometer.with_one_more(one, costs[order[1]]) == (2, "(2, 0.001001)-DP")


def test_a_pure_fit_after_a_gaussian_one_leaves_it_its_delta_and_no_delta_is_above_one():
    one, odometer = np.array([7], np.uint64), Odometer()
    odometer.add(one, Cost(1.0, 1e-6, gaussian=True))
    assert odometer.with_one_more(one, Cost(2.0, 0.0, gaussian=False)) == (2, "(3, 1e-06)-DP")
    assert Cost(1.0, 0.4, gaussian=False).composed(3) == "(3, 1)-DP"
