"""What a fitted estimator knows, and what it does with arrays, sparse arrays and group labels."""

import pickle

import numpy as np
import pytest

pytest.importorskip("sklearn")
import sklearn
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import tacit
from tacit import PrivateFederatedClassifier, PrivateFederatedRegressor
from tacit.errors import InputError, NotPrivateWarning, UnboundedWarning
from tacit.estimator.notes import simulated_because
from tacit.run.build import deployable_methods
from tacit.run.presets import preset

QUICK = {"epsilon": 5.0, "classes": [0, 1], "feature_bounds": (0, 1), "random_state": 0, "rounds": 5}
OTHERS = f"cannot be deployed, and those of {', '.join(deployable_methods())} can."


def test_five_lines_give_a_private_model(records):
    x, y, agents = records
    model = PrivateFederatedClassifier(epsilon=3.0, dp_delta=1e-6, feature_bounds=(0, 1), classes=[0, 1])
    model.fit(x, y, agents=agents)
    assert model.score(x, y) > 0.9
    assert model.guarantee_.startswith("(3, 1e-06)-DP for the whole run of 100 rounds")
    assert "exact noise from the operating system" in model.guarantee_
    assert model.notes_ == []


def test_a_budget_is_told_in_all_by_round_and_by_agent(records):
    x, y, agents = records
    spent = PrivateFederatedClassifier(**QUICK).fit(x, y, agents=agents).privacy_spent_
    assert spent.total <= 5.0 < spent.total * 1.01
    assert 0 < spent.per_round < spent.total < 5 * spent.per_round
    assert spent.per_agent == dict.fromkeys("abcd", spent.total)
    assert spent.after(1) == pytest.approx(spent.per_round)
    assert spent.after(2) < spent.after(4) < spent.after(5) == spent.total
    assert "over 5 rounds" in str(spent)


def test_a_fit_is_a_run_of_the_plain_interface(records):
    x, y, agents = records
    model = PrivateFederatedClassifier(**QUICK).fit(x, y, agents=agents)
    shards = tuple(tacit.Shard(x[agents == name], y[agents == name]) for name in "abcd")
    none = tacit.Shard(np.empty((0, 3)), np.empty(0, int))
    federation = tacit.Federation(shards, none, 2, agents=tuple("abcd"), bounds=(0, 1))
    result = tacit.train(data=federation, epsilon=5.0, rounds=5, seed=0)
    assert np.array_equal(model.model_.w, result.w)
    assert model.predict(x).tolist() == list(map(int, result.predict(x)))


def test_scores_probabilities_and_classes_agree(records):
    x, _, _ = records
    y = np.array(["low", "mid", "top"])[(3 * x[:, 0]).astype(int)]
    model = PrivateFederatedClassifier(**QUICK | {"classes": ["top", "mid", "low"]}).fit(x, y)
    assert model.classes_.tolist() == ["low", "mid", "top"]
    p = model.predict_proba(x)
    assert p.sum(axis=1) == pytest.approx(np.ones(len(x)))
    assert np.array_equal(model.classes_[p.argmax(axis=1)], model.predict(x))
    assert np.array_equal(model.decision_function(x).argmax(axis=1), p.argmax(axis=1))
    assert model.predict(x).tolist() == model.model_.predict(x)


def test_weights_exist_where_the_model_is_linear_in_its_inputs(records, forget):
    x, y, _ = records
    model = PrivateFederatedClassifier(**QUICK | {"features": "none"}).fit(x, y)
    linear = x @ model.coef_[0] + model.intercept_[0]
    assert model.coef_.shape == (1, 3)
    assert np.array_equal(linear > 0, model.decision_function(x) > 0)
    forget()
    with pytest.raises(AttributeError, match="features='none'"):
        PrivateFederatedClassifier(**QUICK).fit(x, y).coef_  # noqa: B018


def test_scores_that_are_no_log_odds_have_no_probabilities(records):
    x, y, _ = records
    model = PrivateFederatedClassifier(**QUICK, options={"problem.loss": "squared"}).fit(x, y)
    with pytest.raises(ValueError, match="are no log-odds"):
        model.predict_proba(x)
    assert len(model.predict(x)) == len(x)


BOUNDS = [(-2, 6), ([-2] * 3, [6] * 3), (-2, [6] * 3), ([-2, -3, -4], [6, 7, 8])]


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("intercept", [True, False])
def test_weights_are_in_the_units_of_the_records(records, bounds, intercept):
    x, y, _ = records
    x = 8 * x - 2
    known = QUICK | {"features": "none", "feature_bounds": bounds, "fit_intercept": intercept, "rounds": 20}
    model = PrivateFederatedClassifier(**known).fit(x, y)
    linear, scores = x @ model.coef_[0] + model.intercept_[0], model.decision_function(x)
    assert 50 < (scores > 0).sum() < 350
    assert np.array_equal(linear > 0, scores > 0)
    low, length = np.broadcast_to(bounds[0], 3), np.subtract(*bounds[::-1])
    norm = np.linalg.norm(np.column_stack([(x - low) / length, np.full(len(x), float(intercept))]), axis=1)
    assert model.model_.rescaled
    assert linear / np.maximum(norm, 1) == pytest.approx(scores, abs=1e-3 * np.abs(scores).max())


@pytest.mark.parametrize("features", ["none", "auto", "columns"])
def test_one_bound_for_all_is_the_same_bound_for_each(records, forget, features):
    x, y, _ = records
    models = []
    for bounds in BOUNDS[:3]:
        forget()
        known = QUICK | {"features": features, "feature_bounds": bounds}
        models.append(PrivateFederatedClassifier(**known).fit(8 * x - 2, y))
    assert all(np.array_equal(models[0].model_.w, one.model_.w) for one in models)
    new = np.append(8 * x, [[np.nan, 99, -99]], axis=0)  # the middle, and both ends
    assert all(np.array_equal(models[0].predict_proba(new), one.predict_proba(new)) for one in models)


def test_classes_by_weights_are_those_that_are_predicted(records):
    x, _, _ = records
    y = np.array(["low", "mid", "top"])[(3 * x[:, 0]).astype(int)]
    known = QUICK | {"classes": ["top", "mid", "low"], "features": "none", "feature_bounds": (-2, 6), "rounds": 20}
    model = PrivateFederatedClassifier(**known).fit(8 * x - 2, y)
    linear = (8 * x - 2) @ model.coef_.T + model.intercept_
    assert np.array_equal(model.classes_[linear.argmax(axis=1)], model.predict(8 * x - 2))


@pytest.mark.parametrize("column", [
    {"kind": "numeric", "lo": 0, "hi": 1, "bins": 3}, {"kind": "numeric", "lo": 0, "hi": 1, "scale": "log"},
    {"kind": "numeric", "lo": 0, "hi": 1, "missing": "level"}, {"kind": "categorical", "values": [0, 1]},
])  # fmt: skip
def test_columns_that_become_something_else_have_no_weights(records, column):
    x, y, _ = records
    known = {key: value for key, value in QUICK.items() if key != "feature_bounds"} | {"features": "none"}
    model = PrivateFederatedClassifier(**known, schema={"a": (0, 1), "b": column}).fit(x[:, :2], y)
    with pytest.raises(AttributeError, match="look at model_"):
        model.coef_  # noqa: B018
    assert not hasattr(model, "intercept_")


@pytest.mark.parametrize("bounds", [(1, 0), (0, 0), (0, np.inf), (np.nan, 1), ([0, 1, 0], 1)])
def test_bounds_that_bound_nothing_are_refused(records, bounds):
    x, y, _ = records
    with pytest.raises(ValueError, match="lower bound first"):
        PrivateFederatedClassifier(**QUICK | {"feature_bounds": bounds}).fit(x, y)


def test_weights_of_a_regressor_exist_where_those_of_a_classifier_do():
    x = np.random.default_rng(1).uniform(-0.5, 0.5, size=(300, 2))
    y = 10 + 5 * x[:, 0]
    known = {"epsilon": 50.0, "target_bounds": (0, 20), "features": "none", "random_state": 0, "rounds": 20}
    small = PrivateFederatedRegressor(fit_intercept=False, feature_bounds=(-0.5, 0.5), **known).fit(x, y)
    assert small.model_.rescaled
    assert np.array_equal(x @ small.coef_ + small.intercept_ > 10, small.predict(x) > 10)
    free = PrivateFederatedRegressor(**known, fit_intercept=False, schema={"a": (-1, 1)}).fit(x[:, :1], y)
    assert not free.model_.rescaled
    assert x[:, :1] @ free.coef_ + free.intercept_ == pytest.approx(free.predict(x[:, :1]), rel=1e-4)


def test_a_regressor_predicts_within_its_declared_range(records):
    x, _, agents = records
    y = 100 * x[:, 0]
    model = PrivateFederatedRegressor(epsilon=3.0, feature_bounds=(0, 1), target_bounds=(0, 100)).fit(x, y, agents)
    assert model.score(x, y) > 0.5
    assert 0 <= model.predict(10 * x - 5).min() <= model.predict(10 * x - 5).max() <= 100
    assert model.guarantee_.startswith("(3, 1e-06)-DP")


def test_sparse_records_are_the_same_records(records, forget):
    x, y, _ = records
    x = np.where(x > 0.6, x, 0)
    dense, sparse = (PrivateFederatedClassifier(**QUICK | {"rounds": 2}) for _ in range(2))
    dense.fit(x[:200], y[:200])
    forget()
    sparse.fit(csr_array(x[:200]), y[:200])
    assert np.array_equal(dense.model_.w, sparse.model_.w)
    assert np.array_equal(dense.predict(x), sparse.predict(csr_array(x)))


def test_without_labels_one_agent_holds_all(records):
    x, y, _ = records
    assert PrivateFederatedClassifier(**QUICK).fit(x, y).agents_.tolist() == ["all"]


def test_without_bounds_a_warning_says_what_bounds_would_gain(records):
    x, y, _ = records
    model = PrivateFederatedClassifier(classes=[0, 1], rounds=2)
    with pytest.warns(UnboundedWarning, match="feature_bounds"):
        model.fit(x, y)
    assert model.guarantee_.startswith("(1, 1e-06)-DP")
    assert any("none were read" in note for note in model.notes_)


def test_classes_and_ranges_that_are_read_from_labels_are_not_private(records):
    x, y, _ = records
    with pytest.warns(NotPrivateWarning, match="list of classes"):
        model = PrivateFederatedClassifier(feature_bounds=(0, 1), rounds=2).fit(x, y)
    assert model.guarantee_.startswith("not private")
    assert "(declare it: classes of the estimator)" in model.guarantee_
    assert model.privacy_spent_.total == np.inf
    assert "classes" in model.privacy_spent_.reason
    with pytest.warns(NotPrivateWarning, match="range of the target"):
        number = PrivateFederatedRegressor(feature_bounds=(0, 1), rounds=2).fit(x[:100] ** 2, y[:100])
    assert "target_bounds" in number.guarantee_


def test_a_seed_makes_a_simulation_and_the_guarantee_says_so(records, forget):
    x, y, _ = records
    models = [PrivateFederatedClassifier(**QUICK | {"random_state": seed}) for seed in (1, np.random.RandomState(1))]
    for model in models:
        forget()
        model.fit(x, y)
        assert "simulated noise, from the seed: not for release" in model.guarantee_
        assert "random_state" in model.notes_[0]
    assert not np.array_equal(models[0].model_.w, models[1].model_.w)


def test_a_method_without_deployed_agents_says_that_it_is_simulated(records):
    x, y, _ = records
    model = PrivateFederatedClassifier(algorithm="dpsgd-local", classes=[0, 1], feature_bounds=(0, 1)).fit(x, y)
    assert "simulated noise" in model.guarantee_
    assert "deployed" in model.notes_[0]


def test_agents_share_the_noise_behind_a_sum(records, forget):
    pytest.importorskip("cryptography")
    x, y, agents = records
    model = PrivateFederatedClassifier(
        trust="sum", colluding=2, classes=[0, 1], feature_bounds=(0, 1), rounds=5
    ).fit(x, y, agents=agents)
    assert "any 2 of the 4 agents" in model.guarantee_
    assert "exact noise" in model.guarantee_
    assert all(set(row) == {"t", "step", "rho", "epsilon"} for row in model.history_)
    forget()
    with pytest.raises(ValueError, match="needs 3 agents"):
        PrivateFederatedClassifier(trust="sum", classes=[0, 1], feature_bounds=(0, 1)).fit(x, y)


def test_group_labels_are_routed(records):
    x, y, agents = records
    with sklearn.config_context(enable_metadata_routing=True):
        model = make_pipeline(FunctionTransformer(), PrivateFederatedClassifier(**QUICK).set_fit_request(agents=True))
        assert model.fit(x, y, agents=agents)[-1].agents_.tolist() == list("abcd")


def test_a_pipeline_takes_group_labels_by_name(records):
    x, y, agents = records
    model = make_pipeline(FunctionTransformer(), PrivateFederatedClassifier(**QUICK))
    model.fit(x, y, privatefederatedclassifier__agents=agents)
    assert model[-1].agents_.tolist() == list("abcd")
    assert model.score(x, y) > 0.8


def test_a_copy_of_a_fitted_estimator_predicts_the_same(records):
    x, y, _ = records
    model = PrivateFederatedClassifier(**QUICK).fit(x, y)
    other = pickle.loads(pickle.dumps(model))
    assert np.array_equal(other.predict_proba(x), model.predict_proba(x))
    assert other.privacy_spent_ == model.privacy_spent_
    with pytest.raises(NotFittedError):
        clone(model).predict(x)


def test_a_run_is_kept_where_that_is_asked(records, tmp_path):
    x, y, agents = records
    model = PrivateFederatedClassifier(**QUICK, out=tmp_path / "run").fit(x, y, agents=agents)
    assert np.array_equal(tacit.Model.read(tmp_path / "run").w, model.model_.w)


def test_no_noise_is_not_private(records):
    x, y, _ = records
    with pytest.warns(NotPrivateWarning, match="no noise"):
        model = PrivateFederatedClassifier(**QUICK | {"epsilon": np.inf, "random_state": None}).fit(x, y)
    assert model.privacy_spent_.total == np.inf
    assert "no guarantee" in str(model.privacy_spent_)
    assert model.history_[-1]["epsilon"] == np.inf


def test_a_linear_model_without_bounds_says_that_large_columns_outweigh_the_others(records):
    x, y, _ = records
    with pytest.warns(UnboundedWarning, match="outweigh"):
        PrivateFederatedClassifier(classes=[0, 1], features="none", rounds=2).fit(x, y)


def test_an_image_takes_the_map_of_images():
    data = tacit.load("mnist", agents=10).shards[0]
    x, y = data.x[:200], data.y[:200]
    model = PrivateFederatedClassifier(
        epsilon=20.0, classes=range(10), feature_bounds=(0, 1), image_shape=(28, 28), random_state=0, rounds=5
    ).fit(x, y)
    assert "orientations" in model.model_.recipe
    assert model.score(x, y) > 0.5


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"epsilon": -1.0}, "must be positive"),
        ({"trust": "everybody"}, "trust takes"),
        ({"algorithm": "objx"}, "did you mean"),
        ({"features": "colums"}, "did you mean"),
        ({"feature_bounds": (1, 0)}, "lower"),
        ({"feature_bounds": 1}, "feature_bounds takes"),
        ({"feature_bounds": ([0, 0], [1, 1])}, "3 features"),
        ({"feature_bounds": ([0, 0, 0], [1, 1, 0])}, "lower bound first"),
        ({"schema": {"a": (0, 1)}}, "drop feature_bounds"),
        ({"schema": 3, "feature_bounds": None}, "path, a text or a dictionary"),
        ({"classes": [0]}, "two or more"),
        ({"classes": 2}, "list of all classes"),
        ({"colluding": 1}, "secure sum"),
        ({"options": {"privacy.clips": 1}}, "did you mean"),
        ({"options": "privacy.clip"}, "dictionary"),
        ({"options": {"data.source": "mnist"}}, "would change nothing"),
    ],
)
def test_bad_parameters_are_told_of_when_the_model_is_fitted(records, wrong, says):
    x, y, _ = records
    with pytest.raises(ValueError, match=says) as caught:
        PrivateFederatedClassifier(**QUICK | wrong).fit(x, y)
    assert isinstance(caught.value, InputError)


@pytest.mark.parametrize("bounds", [5, ("a", "b"), (1, 1)])
def test_a_bad_range_of_the_target_is_told_of(records, bounds):
    x, _, _ = records
    with pytest.raises(ValueError, match="bounds"):
        PrivateFederatedRegressor(target_bounds=bounds, feature_bounds=(0, 1)).fit(x, x[:, 0])


@pytest.mark.parametrize(("given", "says"), [
    ({"options": {"privacy.noise": "simulated"}}, "Drop privacy.noise of options."),
    ({"options": {"run.seed": 0}}, "Drop run.seed of options."),
    ({"random_state": 0}, "Drop random_state."),
    ({"random_state": 0, "options": {"run.seed": 1}}, "Drop random_state and run.seed of options."),
    ({"random_state": 0, "algorithm": "outp"}, "Drop random_state."),
    pytest.param(
        {"random_state": 0, "algorithm": "dpsgd-local"}, f"Agents of dpsgd-local {OTHERS}", id="a method of local steps"
    ),
])  # fmt: skip
def test_the_note_of_simulated_noise_names_what_made_it_so(records, given, says):
    x, y, _ = records
    model = PrivateFederatedClassifier(**QUICK | {"random_state": None, "rounds": 2} | given).fit(x, y)
    (note,) = (one for one in model.notes_ if "not for release. " in one)
    assert note.endswith(f" {says}")


def test_the_note_of_options_that_cannot_be_deployed_names_no_other_cause():
    options = {"privacy.sensitivity": "observed"}
    said = simulated_because(preset("sound", "objt").with_values(options), options, 0)
    assert said.endswith("leave options away.")
    assert "random_state" not in said
