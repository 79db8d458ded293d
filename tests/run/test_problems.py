"""Every set, loss and regulariser from the command line to the model: trained, kept, predicted, and refused."""

import json

import numpy as np
import pytest

import tacit
from tacit.cli import main
from tacit.run.model import Model
from tacit.run.spec import Spec
from tests.conftest import numbers
from tests.problem.test_halfspaces import damaged

SETS = {
    "no negative weight": (("problem.domain=box", "problem.domain_low=0"), lambda w: w.min() >= 0),
    "a box without zero": (
        ("problem.domain=box", "problem.domain_low=0.01", "problem.domain_high=0.5"),
        lambda w: w.min() >= 0.01 and w.max() <= 0.5,
    ),
    "a ball around": (
        ("problem.domain=ball", "problem.domain_center=0.2", "problem.domain_radius=0.5"),
        lambda w: np.linalg.norm(w - 0.2) <= 0.5 + 1e-9,
    ),
    "a simplex": (("problem.domain=simplex",), lambda w: w.min() >= 0 and np.allclose(w.sum(0), 1)),
}
SMALL = ("--data", "heart", "--rounds", "3", "--features", "none")


def train(out, *values, options=()):
    return main(["train", *SMALL, *options, *(part for one in values for part in ("--set", one)), "--out", str(out)])


@pytest.mark.parametrize(("values", "claim"), SETS.values(), ids=SETS)
@pytest.mark.parametrize(
    "options", [(), ("--seed", "0"), ("--seed", "0", "--trust", "sum")], ids=["exact", "seed", "sum"]
)
def test_a_model_lies_in_its_set_whoever_draws_the_noise(tmp_path, values, claim, options, capsys):
    if "sum" in options:
        pytest.importorskip("cryptography")
    assert train(tmp_path / "run", *values, options=options) == 0
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["guarantee"].startswith("(1, 1e-06)-DP for the whole run of 3 rounds")
    assert ("exact noise" in result["guarantee"]) == (not options)
    model = Model.read(tmp_path / "run")
    assert claim(model.w)
    assert claim(model.w_average)
    capsys.readouterr()


def test_halfspaces_hold_from_a_file_whether_noise_is_exact_or_simulated(tmp_path):
    """The server projects noisy values: no agent depends on whether, or when, a projection ends."""
    assert train(tmp_path / "free") == 0
    shape = Model.read(tmp_path / "free").w.shape
    normals = np.zeros((2, *shape))
    normals[0, 0], normals[1, 1, 0], normals[1, 2, 0] = [1, -1], 1, -1  # the first feature speaks for class 1
    np.savez(tmp_path / "halves.npz", normals=normals, offsets=np.array([-0.1, 0.0]))
    chosen = ("problem.domain=halfspaces", f"problem.domain_file={tmp_path / 'halves.npz'}")
    for noise in ("exact", "simulated"):
        assert train(tmp_path / noise, *chosen, f"privacy.noise={noise}") == 0
        w = Model.read(tmp_path / noise).w
        assert w[0, 1] - w[0, 0] >= 0.1 - 1e-9
        assert w[1, 0] <= w[2, 0] + 1e-9
        assert f"{noise} noise" in json.loads((tmp_path / noise / "result.json").read_text())["guarantee"]


@pytest.mark.parametrize("values", [("problem.loss=hinge",), ("problem.regularizer=l1", "problem.beta=0.01")])
def test_hinge_and_l1_train_with_exact_noise(tmp_path, values):
    assert train(tmp_path / "run", *values) == 0
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert "exact noise from the operating system" in result["guarantee"]


def test_hinge_learns_what_softmax_learns():
    """Without noise, on the whole of heart: the step rule of a loss with kinks goes somewhere."""
    errors = {}
    for loss in ("softmax", "hinge"):
        values = (f"problem.loss={loss}", "privacy.epsilon=inf", "run.rounds=100", "run.seed=0")
        with pytest.warns(tacit.errors.NotPrivateWarning):
            result = tacit.train(tacit.preset("sound", "objt", "heart").with_values(dict(v.split("=") for v in values)))
        errors[loss] = result.summary["test_error"]
    assert errors["hinge"] <= errors["softmax"] + 0.03


BAD = {
    ("problem.domain=box", "problem.domain_low=1", "problem.domain_high=0"): "the lower first",
    ("problem.domain_low=0",): "the set everywhere has no low",
    ("problem.domain=halfspaces", "problem.domain_file=none.npz"): "there is no file none.npz",
    ("problem.domain=halfspaces", "problem.domain_file=flipped.npz"): "is no .npz file with the arrays",
    ("problem.domain=halfspaces", "problem.domain_file=huge.npz"): "is no .npz file with the arrays",
    ("problem.domain=halfspaces", "problem.domain_file=encrypted.npz"): "is no .npz file with the arrays",
    ("problem.domain=halfspaces", "problem.domain_file=pickled.npz"): "is no .npz file with the arrays",
    ("problem.domain=halfspaces", "problem.domain_file=missing.npz"): "is no .npz file with the arrays",
    ("problem.domain=halfspaces", "problem.domain_file=good.npz"): "halfspaces are of models of shape (3, 2)",
    ("problem.loss=poisson",): "problem.loss to softmax, squared or hinge",
}


@pytest.mark.parametrize(("values", "why"), BAD.items())
def test_what_makes_no_problem_ends_with_code_2_and_one_line(tmp_path, values, why, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = values[-1].partition("domain_file=")[2].removesuffix(".npz")
    if file not in ("", "none"):
        damaged(tmp_path, file).replace(f"{file}.npz")
    assert train(tmp_path / "run", *values) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "Traceback" not in said
    assert why.replace("softmax, squared or hinge", "softmax or squared or hinge") in said
    assert not (tmp_path / "run").exists()


def test_poisson_predicts_means_within_the_range_and_its_model_says_its_loss(tmp_path):
    """From the score to the number: RMSE of the run, of a look at the model, and of the file alone are one."""
    over = numbers(3, 5, sizes=(40, 50, 60))
    values = {"problem.loss": "poisson", "run.rounds": 60, "run.seed": 0, "features.map": "none"}
    spec = tacit.preset("sound", "objt").with_values(values | {"data.intercept": True, "privacy.epsilon": 1e3})
    result = tacit.train(spec, over, out=tmp_path / "run")
    for model in (result.model, Model.read(tmp_path / "run"), Model.read(tmp_path / "run" / "model.npz")):
        assert model.loss == "poisson"
        scores = model.scores(over.test.x)
        means = np.array(model.read_off(scores))
        np.testing.assert_allclose(means, 10 * np.exp(np.minimum(scores[:, 0], 0)))
        rmse = np.sqrt(np.square(means - over.target.in_units(over.test.y)).mean())
        assert rmse == pytest.approx(result.summary["test_rmse"], rel=1e-5)
    with pytest.raises(tacit.errors.IncompatibleError, match="columns multiply the prediction"):
        result.model.shapes()
    spread = np.std(over.target.in_units(over.test.y))
    assert result.summary["test_rmse"] < spread


def test_keys_that_are_unset_are_in_no_spec():
    assert not any(name in Spec().toml() for name in ("domain_low", "domain_high", "domain_center", "domain_file"))
