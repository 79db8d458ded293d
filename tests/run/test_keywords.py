"""`tacit.train` by keyword arguments, and what a result can do by itself."""

import inspect
import re
import subprocess
import sys

import numpy as np
import pytest

import tacit
from tacit.errors import IncompatibleError, InputError, MissingDependency, SpecError, install_extra
from tacit.run import train as trainer
from tacit.run.directory import RunDirectory
from tacit.run.keywords import KEYS
from tacit.run.spec import keys

QUICK = {"data": "heart", "rounds": 3, "seed": 0}


def test_keywords_say_what_dotted_keys_say():
    spec = tacit.preset("sound", "objt", "heart").with_values(
        {"run.rounds": 3, "run.seed": 0, "privacy.epsilon": 2.0, "privacy.adjacency": "replace_one"}
    )
    one = tacit.train(**QUICK, epsilon=2.0, adjacency="replace_one")
    other = tacit.train(spec)
    assert np.array_equal(one.w, other.w)
    assert one.guarantee == other.guarantee
    assert np.array_equal(one.w, tacit.train(**QUICK, values={
        "privacy.epsilon": 2.0, "privacy.adjacency": "replace_one"}).w)  # fmt: skip
    assert np.array_equal(one.w, tacit.train(spec, rounds=3).w)


def test_keywords_change_a_spec_that_is_given():
    spec = tacit.preset("sound", "objp").with_values({"run.rounds": 50})
    result = tacit.train(spec, tacit.load("heart"), rounds=2, seed=1, epsilon=4)
    assert (result.summary["algorithm"], result.summary["rounds"], result.summary["seed"]) == ("objp", 2, 1)
    with pytest.raises(SpecError, match="drop these two"):
        tacit.train(spec, algorithm="objt")


@pytest.mark.parametrize(
    ("argument", "key", "value"),
    [
        ({"epsilon": 1.0}, "privacy.epsilon", 2.0),
        ({"epsilon": 1.0}, "privacy.epsilon", 1.0),
        ({"algorithm": "objt"}, "algorithm.name", "objp"),
        ({"classes": ["no", "yes"]}, "data.class_names", "a,b"),
        ({}, "data.source", "mnist"),
        ({}, "run.rounds", 4),
    ],
)
def test_a_key_that_is_given_twice_is_refused(argument, key, value):
    with pytest.raises(SpecError, match=f"both set {re.escape(key)}: give it once"):
        tacit.train(**QUICK, **argument, values={key: value})


def test_a_federation_is_data():
    records = tacit.load("heart")
    assert tacit.train(data=records, rounds=2, seed=0).summary["dataset"] == records.name
    with pytest.raises(SpecError, match="given twice"):
        tacit.train(data=records, federation=records)
    with pytest.raises(SpecError, match=r"data\.agents would change nothing"):
        tacit.train(data=records, agents=3)


def test_a_table_with_its_classes(tmp_path):
    path = tmp_path / "people.csv"
    numbers = enumerate(np.random.default_rng(0).random(90))
    rows = [f"{a:.3f},{'yes' if a > 0.5 else 'no'},s{i % 3}" for i, a in numbers]
    path.write_text("a,smokes,site\n" + "\n".join(rows))
    known = {"data": path, "agent_column": "site", "rounds": 2, "seed": 0, "values": {"data.low": 0, "data.high": 1}}
    out = tmp_path / "run"
    result = tacit.train(**known, label_column="smokes", classes=["no", "yes"], out=out)
    assert result.model.classes == ("no", "yes")
    assert result.guarantee.startswith("(1, 1e-06)-DP")
    assert RunDirectory.open(out).spec().data.declared_classes == ("no", "yes")
    with pytest.raises(SpecError, match="comma"):
        tacit.train(**known, label_column="smokes", classes=["no", "yes, often"])


def test_every_keyword_is_a_key_and_is_described():
    named = inspect.signature(tacit.train).parameters
    assert set(KEYS) <= set(named)
    assert set(KEYS.values()) <= set(keys())
    for name in named:
        assert re.search(rf"\b{name}\b", tacit.train.__doc__)


def test_a_wrong_keyword_says_what_was_meant():
    with pytest.raises(SpecError, match="did you mean 'objt'"):
        tacit.train(data="heart", algorithm="obj")
    with pytest.raises(SpecError, match="did you mean"):
        tacit.train(**QUICK, values={"privacy.epsiln": 1})
    with pytest.raises(TypeError, match="epsilom"):
        tacit.train(epsilom=1)


def test_a_result_predicts_as_its_saved_model_does(tmp_path):
    result = tacit.train(**QUICK, out=tmp_path / "run")
    records = tacit.load("heart").test
    known = tacit.Model.read(tmp_path / "run")
    assert isinstance(result.model, tacit.Model)
    assert result.model.read_off(result.model.scores(records.x)) == known.read_off(known.scores(records.x))
    again = trainer.resume(tmp_path / "run")
    assert np.array_equal(again.model.w, result.w)


def test_a_result_predicts_arrays():
    result = tacit.train(data="synthetic", rounds=3, seed=0, features="none")
    x = np.random.default_rng(0).random((5, result.model.n_inputs))
    assert result.predict(x) == result.model.predict(x)
    assert len(result.predict(x, averaged=True)) == 5


def test_a_result_is_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    result = tacit.train(**QUICK)
    figure = result.plot(tmp_path / "curves.png")
    titles = [axes.get_title() for axes in figure.axes]
    assert titles[:2] == ["Test error", "Test AUC"]
    assert "Budget spent" in titles
    assert (tmp_path / "curves.png").stat().st_size > 1000


@pytest.mark.parametrize(("name", "says"), [("c.xyz", r"written as \.xyz: choose from .*png"), ("no/c.png", "folder")])
def test_a_figure_that_cannot_be_written_says_what_to_do(tmp_path, name, says):
    pytest.importorskip("matplotlib")
    with pytest.raises(InputError, match=says):
        tacit.train(**QUICK).plot(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_probabilities_are_those_of_the_saved_model(tmp_path):
    quick = {"data": "synthetic", "rounds": 3, "seed": 0, "features": "none"}
    result = tacit.train(**quick, out=tmp_path / "run")
    x = np.random.default_rng(0).random((5, result.model.n_inputs))
    p = result.predict_proba(x)
    assert p.shape == (5, len(result.model.classes))
    assert p.sum(axis=1) == pytest.approx(np.ones(5))
    assert [result.model.classes[k] for k in p.argmax(axis=1)] == result.predict(x)
    assert np.array_equal(p, tacit.Model.read(tmp_path / "run").predict_proba(x))
    assert not np.array_equal(p, result.predict_proba(x, averaged=True))


def test_scores_that_are_no_log_odds_have_no_probabilities(tmp_path):
    quick = {"data": "synthetic", "rounds": 2, "seed": 0, "features": "none", "values": {"problem.loss": "squared"}}
    result = tacit.train(**quick, out=tmp_path / "run")
    x = np.zeros((2, result.model.n_inputs))
    for model in (result, tacit.Model.read(tmp_path / "run")):
        with pytest.raises(IncompatibleError, match="are no log-odds"):
            model.predict_proba(x)


HEAVY = """
import sys
import tacit
assert tacit.errors.InputError
heavy = [name for name in ("numpy", "scipy", "sklearn", "pandas", "matplotlib", "dp_accounting") if name in sys.modules]
assert not heavy, heavy
assert "PrivateFederatedClassifier" in dir(tacit)
sys.modules["sklearn"] = None  # as where it is not installed
try:
    tacit.PrivateFederatedClassifier
except tacit.errors.MissingDependency as error:
    print(error)
"""


def test_importing_tacit_loads_nothing_heavy_and_says_which_extra_is_missing():
    done = subprocess.run([sys.executable, "-c", HEAVY], capture_output=True, text=True, check=True)
    assert done.stdout == f"the estimators need scikit-learn: {install_extra('sklearn')}.\n"
    assert issubclass(MissingDependency, tacit.errors.InputError)


BLOCKED = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "sklearn":
            raise ModuleNotFoundError(name)

{block}
import tacit
from tacit import *
import pydoc

assert {{"train", "Model"}} <= {{*dir(tacit)}} & {{*tacit.__all__}} & {{*globals()}}
assert not any(name.startswith("PrivateFederated") for name in [*dir(tacit), *tacit.__all__])
assert "tacit.train" in pydoc.render_doc(tacit)
for statement in ("from tacit import PrivateFederatedClassifier", "tacit.PrivateFederatedRegressor"):
    try:
        exec(statement)
    except ImportError as error:
        assert isinstance(error, tacit.errors.MissingDependency)
        assert "the extra 'sklearn'" in str(error)
    else:
        raise AssertionError(statement)
"""


@pytest.mark.parametrize("block", ["sys.modules['sklearn'] = None", "sys.meta_path.insert(0, Blocker())"])
def test_without_scikit_learn_all_other_names_are_there(block):
    done = subprocess.run([sys.executable, "-c", BLOCKED.format(block=block)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
