"""Several fits on the same records: in a search, in cross-validation, in a row."""

import re
import warnings

import numpy as np
import pytest

pytest.importorskip("sklearn")
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV, cross_val_score
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


def test_a_search_warns_of_its_cost_so_far_and_that_choosing_is_not_private(records):
    x, y, agents = records
    search = GridSearchCV(MODEL, {"rounds": [1, 2, 3]}, cv=4)
    heard = told(lambda: search.fit(x, y, agents=agents))  # of four folds, a record is in three
    assert len(heard) == 3
    for one, fits in zip(heard, (2, 4, 8), strict=True):
        assert f"were in {fits - 1} other" in one
        assert f"cost {Cost(1.0, 1e-6, True).composed(fits)} together" in one
        assert NOT_PRIVATE in one
    assert search.best_estimator_.agents_.tolist() == list("abcd")


def test_a_search_over_budgets_adds_up_what_each_costs(records):
    x, y, _ = records
    *_, last = told(lambda: GridSearchCV(MODEL, {"epsilon": [1.0, 8.0]}, cv=2).fit(x, y))
    (epsilon,) = re.findall(r"they cost \(([0-9.]+),", last)
    assert 8.0 < float(epsilon) < 1.0 + 8.0


def test_deltas_of_several_fits_add_up():
    rows = Cost(1.0, 1e-5, gaussian=False).row + Cost(2.0, 1e-3, gaussian=False).row
    assert Cost(1.0, 1e-6, gaussian=False).said(rows) == "(3, 0.00101)-DP"
    both = rows + Cost(1.0, 1e-6, gaussian=True).row
    assert Cost(1.0, 1e-6, gaussian=True).said(both).endswith(", 0.001011)-DP")


def test_fits_of_a_pipeline_in_a_random_search_count(records):
    x, y, _ = records
    model = make_pipeline(FunctionTransformer(), MODEL)
    search = RandomizedSearchCV(model, {"privatefederatedclassifier__rounds": [1, 2, 3]}, n_iter=2, cv=2, refit=False)
    assert "in 1 other of" in told(lambda: search.fit(x, y))[0]


def test_fits_in_threads_count(records):
    x, y, _ = records
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from joblib import parallel_config
    with parallel_config("threading"):
        told(lambda: GridSearchCV(MODEL, {"rounds": [1, 2]}, cv=2, n_jobs=2).fit(x, y))
    (heard,) = told(lambda: MODEL.fit(x, y))
    assert "in 3 others of" in heard  # one for each candidate, and the last fit of the search


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
