"""Mistakes of a first hour: what is not covered is said, and no wrong model is trained without a word."""

import numpy as np
import pytest

pytest.importorskip("sklearn")
pytest.importorskip("pandas")
import pandas
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tacit import PrivateFederatedClassifier, PrivateFederatedRegressor
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
