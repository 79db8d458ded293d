"""The card of a run whose records were given in Python shows a call that repeats it, or says why none is shown."""

import os
import re

import numpy as np
import pytest

import tacit
from tacit.card.content import write
from tacit.cli import main
from tacit.errors import NotPrivateWarning

pytest.importorskip("sklearn")

RNG = np.random.default_rng(0)
X = RNG.uniform(0, 8, (120, 2))
Y = (X[:, 0] > X[:, 1]).astype(int)
AGENTS = np.array(["north", "south", "east"])[np.arange(120) % 3]
FRAME_SCHEMA = {"age": (0, 8), "dose": (0, 8)}


def shown(out):
    """The reproduce section of a card, and its Python code; None where there is none."""
    section = write(out)["markdown"].read_text(encoding="utf-8").partition("## Appendix: how to reproduce")[2]
    found = re.findall(r"```text\n(import tacit\n.*?)```", section, re.DOTALL)
    return section, found[0] if found else None


def run(code, folder, **given):
    """Run the code of a card in the folder of its run, and return what it leaves."""
    before = os.getcwd()
    os.chdir(folder)
    try:
        exec(compile(code, "card", "exec"), given)
    finally:
        os.chdir(before)
    return given


ESTIMATORS = {
    "bounds": (tacit.PrivateFederatedClassifier, {"feature_bounds": (0, 8), "classes": [0, 1]}, Y),
    "schema": (tacit.PrivateFederatedClassifier, {"schema": FRAME_SCHEMA, "classes": ["0", "1"], "epsilon": 2.0}, Y),
    "nothing declared": (tacit.PrivateFederatedClassifier, {"classes": [0, 1], "features": "unit", "rounds": 3}, Y),
    "linear": (tacit.PrivateFederatedClassifier, {
        "feature_bounds": (0, 8), "classes": [0, 1], "features": "none", "fit_intercept": False,
        "options": {"schedule.score_noise": 0.7},
    }, Y),
    "another method": (tacit.PrivateFederatedClassifier, {
        "feature_bounds": (0, 8), "classes": [0, 1], "algorithm": "dpsgd", "options": {"method.rate": 0.5},
    }, Y),
    "a number": (tacit.PrivateFederatedRegressor, {"feature_bounds": (0, 8), "target_bounds": (0, 8)}, X[:, 0]),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::tacit.errors.TacitWarning")
@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_call_on_the_card_of_an_estimator_repeats_its_run(name, tmp_path):
    kind, settings, y = ESTIMATORS[name]
    first = kind(random_state=3, out=tmp_path / "run", **settings).fit(X, y, agents=AGENTS)
    section, code = shown(tmp_path / "run")
    assert "tacit train --config" not in section
    again = run(code, tmp_path / "run", X=X, y=y, agents=AGENTS)["model"]
    assert np.array_equal(again.model_.w, first.model_.w)
    assert again.guarantee_ == first.guarantee_


def test_the_call_on_the_card_of_a_federation_repeats_its_run(tmp_path):
    federation = tacit.load("synthetic")
    first = tacit.train(data=federation, seed=1, rounds=2, epsilon=2.0, values={"schedule.score_noise": 0.5},
                        out=tmp_path / "run")  # fmt: skip
    _, code = shown(tmp_path / "run")
    again = run(code, tmp_path, federation=federation)["result"]
    assert np.array_equal(again.w, first.w)
    assert again.summary["guarantee"] == first.summary["guarantee"]


@pytest.mark.filterwarnings("ignore::tacit.errors.TacitWarning")
def test_a_card_says_why_it_shows_no_call(tmp_path):
    with pytest.warns(NotPrivateWarning):
        tacit.PrivateFederatedClassifier(out=tmp_path / "run").fit(X, Y)
    section, code = shown(tmp_path / "run")
    assert code is None
    assert "No call is shown that repeats the run: without a guarantee" in section
    assert "tacit train --config" not in section


def test_the_card_of_heart_holds_no_key_that_the_run_does_not_read_and_its_text_repeats_the_run(tmp_path):
    first = tacit.train(data="heart", seed=0, rounds=3, out=tmp_path / "run")
    section, _ = shown(tmp_path / "run")
    *_, spec = re.findall(r"```text\n(.*?)```", section, re.DOTALL)
    for key in ("records", "features", "classes", "label_column", "invert", "alpha", "rho_static", "eta", "device"):
        assert f"\n{key} = " not in spec
    (tmp_path / "spec.toml").write_text(spec)
    assert main(["train", "--config", str(tmp_path / "spec.toml"), "--out", str(tmp_path / "again"), "-qq"]) == 0
    assert np.array_equal(tacit.Model.read(tmp_path / "again").w, first.w)
