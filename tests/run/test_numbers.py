"""A number to predict, from the table to the page: what a run measures, keeps, predicts and refuses."""

from __future__ import annotations

import json
import math
import warnings
from pathlib import Path

import numpy as np
import pytest

import tacit
from tacit.audit.reconstruction import reconstruct
from tacit.audit.training import audit as audit_training
from tacit.cli import main
from tacit.errors import IncompatibleError, RunDirectoryError, TacitWarning
from tacit.methods.registry import METHODS
from tacit.run import build, sweep
from tacit.run.presets import fitted, preset
from tacit.types import Federation
from tests.conftest import federation, numbers

ROUNDS = {"run.rounds": 3, "privacy.epsilon": 5.0}
# proved for softmax alone
EXACT_MINIMISERS = ("amp", "chaudhuri", "chaudhuri-output", "dvp", "kifer", "outp-huang", "outp-plus", "pvp")
SCHEMA = """
[columns.age]
kind = "numeric"
lo = 18
hi = 90
[columns.ward]
kind = "categorical"
values = ["a", "b"]
[columns.site]
kind = "agent"
[columns.days]
kind = "target"
lo = 0
hi = 40
"""


def quiet(spec: tacit.Spec, over: Federation | None = None, out: Path | None = None) -> tacit.Result:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TacitWarning)
        return tacit.train(spec, over, out)


@pytest.fixture
def stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table, its schema, and the same numbers as plain features."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    n = 240
    age, ward, site = rng.integers(18, 91, n), rng.choice(["a", "b"], n), rng.choice(["north", "south"], n)
    days = (2 + 0.3 * (age - 18) + 4 * (ward == "b") + rng.normal(size=n)).round(2)
    rows = [f"{a},{w},{s},{d}" for a, w, s, d in zip(age, ward, site, days, strict=True)]
    (tmp_path / "stays.csv").write_text("\n".join(["age,ward,site,days", *rows]) + "\n")
    (tmp_path / "schema.toml").write_text(SCHEMA)
    plain = [f"{(a - 18) / 72:.4f},{int(w == 'b')},{d}" for a, w, d in zip(age, ward, days, strict=True)]
    (tmp_path / "plain.csv").write_text("\n".join(["age,ward,days", *plain]) + "\n")
    return tmp_path


def command(*words: object) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TacitWarning)
        return main([str(word) for word in words])


@pytest.mark.parametrize("engine", ["fast", "plain"])
@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_a_linear_truth_is_recovered_without_noise(engine: str, loss: str) -> None:
    over = numbers(3, 3, sizes=(40, 50, 60), noise=0.0)
    least = np.linalg.lstsq(*(np.concatenate([getattr(s, part) for s in over.shards]) for part in "xy"))[0]
    spec = preset("paper", "iadmm-prox").with_values({
        "problem.loss": loss, "problem.threshold": 3.0 if loss == "huber" else None, "problem.beta": 0.0,
        "schedule.rho": "static", "schedule.rho_static": 1.0, "schedule.eta": "constant", "schedule.eta_a": 1.0,
        "run.rounds": 1000, "run.record_every": 1000, "run.engine": engine,
    })  # fmt: skip
    result = quiet(spec, over)
    np.testing.assert_allclose(result.w[:, 0], least, atol=2e-3)
    assert result.summary["test_rmse"] < 0.02
    assert result.summary["test_r2"] > 0.999


def test_the_result_of_a_number_has_its_measures_in_the_place_of_an_error(tmp_path: Path) -> None:
    over = numbers()
    result = quiet(preset("sound", "objt").with_values(ROUNDS), over, tmp_path / "run")
    measured = {"test_rmse", "test_rmse_averaged", "test_r2", "test_r2_averaged"}
    assert {key for key in result.summary if key.startswith("test_")} == measured
    assert all({key for key in row if key.startswith("test_")} == measured for row in result.rounds)
    assert result.test_error is None
    assert result.judged == result.summary["test_rmse"]
    assert tacit.resume(tmp_path / "run", over).summary == result.summary


def test_two_classes_have_their_auc_in_rows_and_result() -> None:
    result = quiet(preset("sound", "objt").with_values(ROUNDS), federation(3, 4, 2))
    assert 0 <= result.summary["test_auc"] <= 1
    assert [row["test_auc"] for row in result.rounds][-1] == result.summary["test_auc"]
    many = quiet(preset("sound", "objt").with_values(ROUNDS), federation())
    assert not {"test_auc", "test_rmse"} & set(many.summary)


def test_the_preset_takes_a_loss_for_numbers_by_itself_and_does_not_call_that_a_change() -> None:
    result = quiet(preset("sound", "objt").with_values(ROUNDS), numbers())
    assert result.summary["changed"] == {}
    chosen = preset("sound", "objt").with_values(ROUNDS | {"privacy.clip": 0.5})
    assert quiet(chosen, numbers()).summary["changed"] == {"privacy.clip": 0.5}
    own = preset("sound", "objt").with_values(ROUNDS | {"problem.loss": "huber"})
    assert set(quiet(own, numbers()).summary["changed"]) == {"problem.loss"}


@pytest.mark.parametrize(
    ("over", "values", "message"),
    [
        (numbers(), {"problem.loss": "softmax"}, "of small is a number: set problem.loss to squared or huber"),
        (federation(), {"problem.loss": "huber"}, "of small is a class: set problem.loss to softmax or squared"),
        (numbers(), {"problem.loss": "squared", "problem.threshold": 0.2}, "squared has no threshold"),
        (numbers(), {"problem.loss": "squared", "privacy.sensitivity": "feature_bounds"}, "this loss has none"),
    ],
)
def test_a_loss_that_does_not_fit_the_label_is_refused(over: Federation, values: dict, message: str) -> None:
    with pytest.raises(IncompatibleError, match=message):
        build.setup(preset("sound", "objt").with_values(values), over)


def test_huber_needs_no_clip() -> None:
    values = {"problem.loss": "huber", "privacy.sensitivity": "row_norm"}
    result = quiet(preset("sound", "objt").with_values(ROUNDS | values), numbers())
    assert result.guarantee.startswith("(5, 1e-06)-DP")


@pytest.mark.parametrize("name", METHODS)
def test_every_method_predicts_a_number_or_says_why_not(name: str) -> None:
    over = numbers(4, 3, sizes=(20, 20, 20, 20))
    values = {"problem.loss": "squared", "run.record_every": 1, "features.map": "none"}
    values |= {} if METHODS[name].values.get("privacy.epsilon") == math.inf else {"privacy.epsilon": 5.0}
    usual = preset("sound", name)
    values |= {"run.rounds": min(3, usual.run.rounds)}
    if name in EXACT_MINIMISERS:
        with pytest.raises(IncompatibleError, match="proved for bounded gradients of the softmax loss"):
            quiet(usual.with_values(values), over)
    else:
        result = quiet(usual.with_values(values), over)
        assert result.summary["test_rmse"] is not None
        assert result.w.shape == (3, 1)


def test_deployed_agents_predict_numbers(tmp_path: Path) -> None:
    values = ROUNDS | {"privacy.noise": "exact", "privacy.ledger": str(tmp_path / "ledgers")}
    result = quiet(preset("sound", "objt").with_values(values), numbers())
    assert result.guarantee.startswith("(5, 1e-06)-DP")
    assert result.summary["test_rmse"] is not None


@pytest.mark.parametrize("adjacency", ["zero_out", "replace_one"])
def test_an_audit_of_a_run_plants_its_canaries_at_the_ends_of_the_target(adjacency: str) -> None:
    values = {"problem.loss": "squared", "privacy.adjacency": adjacency, "run.rounds": 3, "privacy.epsilon": 2.0}
    finding = audit_training(preset("sound", "objt").with_values(values), numbers(), canaries=40)
    assert not finding.violated


def test_a_reconstruction_of_numbers_is_refused() -> None:
    with pytest.raises(IncompatibleError, match="the label of small is a number"):
        reconstruct(preset("sound", "objt").with_values({"problem.loss": "squared"}), numbers())


def test_a_schema_or_bounds_are_enough_and_predictions_are_those_that_were_measured(
    stays: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Records are rescaled in training, so predicting must rescale them too: a number is not only an order."""
    by_schema = ("--data", "stays.csv", "--schema", "schema.toml", "--test", "stays.csv")
    plain = ("--data", "plain.csv", "--agents", 2, "--label-column", "days", "--target-low", 0, "--target-high", 40,
             "--test", "plain.csv")  # fmt: skip
    for name, words in (("a", by_schema), ("b", plain)):
        assert command("train", *words, "--rounds", 40, "--set", "data.intercept=true", "--out", name, "-q") == 0
        assert "test RMSE" in capsys.readouterr().out
        result = json.loads((stays / name / "result.json").read_text())
        label = words[4:6] if name == "b" else ()
        assert command("predict", "--model", name, "--data", words[1], "--json", *label) == 0
        told = json.loads(capsys.readouterr().out)
        assert told["rmse"] == pytest.approx(result["test_rmse"], rel=1e-5)
        assert all(0 <= value <= 40 for value in told["predictions"])
        page = (stays / name / "report.html").read_text()
        assert "test RMSE" in page
        assert "test error" not in page.replace("(test error, also by class and by agent)", "")


def test_predict_prints_numbers_and_their_rmse(stays: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--data", "stays.csv", "--schema", "schema.toml", "--rounds", 3, "--out", "run", "-q")
    assert command("train", *words) == 0
    capsys.readouterr()
    assert command("predict", "--model", "run", "--data", "stays.csv") == 0
    told = capsys.readouterr()
    assert len([float(line) for line in told.out.splitlines()]) == 240
    assert told.err.startswith("RMSE ")
    assert told.err.endswith("against column 'days'\n")
    model = tacit.Model.read(stays / "run")
    assert model.target == tacit.Target(0.0, 40.0)
    assert all(isinstance(one, float) for one in model.predict(stays / "stays.csv"))


def test_one_strange_target_changes_that_record_alone_in_a_run(stays: Path) -> None:
    """1e300 is the upper bound, and NaN an absent record: neither warns the public nor moves another record."""
    lines = (stays / "stays.csv").read_text().splitlines()
    ended = []
    for cell in ("1e300", "40", "nan", ""):
        (stays / "stays.csv").write_text("\n".join([lines[0], lines[1].rpartition(",")[0] + f",{cell}", *lines[2:]]))
        spec = preset("sound", "objt", "stays.csv").with_values(
            ROUNDS | {"data.schema": "schema.toml", "data.test_fraction": 0.0, "run.seed": 0}
        )
        ended.append(quiet(spec).w)
    np.testing.assert_array_equal(ended[0], ended[1])
    np.testing.assert_array_equal(ended[2], ended[3])
    assert not np.array_equal(ended[0], ended[2])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--target-low", 5, "--target-high", 5), "two finite numbers, the lower first"),
        (("--target-low", 5), "data.target_low and data.target_high go together"),
        (("--target-low", 0, "--target-high", 9, "--classes", "a,b"), "not both: drop one"),
        (("--target-low", 0, "--target-high", "inf"), "two finite numbers"),
        (("--target-low", 0, "--target-high", 40, "--set", "problem.loss=softmax"), "softmax does not fit"),
        (("--target-low", 0, "--target-high", 40, "--set", "problem.loss=huber", "--set", "problem.threshold=0"),
         "problem.threshold must be positive"),
        ((), "declare its public bounds"),
    ],
)  # fmt: skip
def test_bad_input_ends_with_two_and_one_sentence(
    stays: Path, capsys: pytest.CaptureFixture[str], words: tuple, message: str
) -> None:
    data = ("--data", "plain.csv", "--agents", 2, "--label-column", "days")
    assert command("train", *data, *words, "--out", "run") == 2
    assert message in capsys.readouterr().err
    assert not (stays / "run").exists()


def test_a_sweep_and_a_comparison_judge_numbers_by_rmse(stays: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (stays / "s.toml").write_text(
        'run.seed = [0, 1]\nrun.rounds = 2\ndata.source = "stays.csv"\ndata.schema = "schema.toml"\n'
    )
    assert {member.spec.problem.loss for member in sweep.read(stays / "s.toml")} == {"squared"}
    assert command("sweep", "--config", "s.toml", "--out", "swept", "-q") == 0
    assert "test RMSE" in capsys.readouterr().out
    assert command("report", "swept", "run", "--out", "page.html") == 2  # there is no such run
    assert command("report", "swept", "--out", "page.html") == 0
    assert "test RMSE" in (stays / "page.html").read_text()
    capsys.readouterr()
    data = ("--data", "stays.csv", "--schema", "schema.toml")
    assert command("compare", *data, "--methods", "objt,kifer", "--seeds", 1, "--rounds", 2, "--json", "-q") == 0
    best, refused = json.loads(capsys.readouterr().out)["rows"]
    assert (best["measure"], best["method"]) == ("test_rmse", "objt")
    assert best["error_mean"] > 0
    assert "softmax" in refused["failed"]


def test_an_explicit_loss_is_left_alone(stays: Path) -> None:
    spec = preset("sound", "objt", "stays.csv").with_values({"data.schema": str(stays / "schema.toml")})
    assert fitted(spec).problem.loss == "squared"
    assert fitted(spec.with_values({"problem.loss": "huber"}), ["problem.loss"]).problem.loss == "huber"
    with pytest.raises(IncompatibleError, match="softmax does not fit"):
        fitted(spec, chosen=["problem.loss"])
    assert fitted(preset("sound", "objt")).problem.loss == "softmax"


def test_a_model_without_target_and_rows_is_one_of_an_earlier_version(tmp_path: Path) -> None:
    quiet(preset("sound", "objt").with_values(ROUNDS), federation(), tmp_path / "run")
    with np.load(tmp_path / "run" / "model.npz") as held:
        arrays = {name: held[name] for name in held.files if name not in ("target", "rows")}
    np.savez(tmp_path / "old.npz", **arrays)
    old, new = tacit.Model.read(tmp_path / "old.npz"), tacit.Model.read(tmp_path / "run")
    assert (old.target, old.rows) == (None, None)
    x = federation().test.x
    assert old.predict(x) == new.predict(x)


@pytest.mark.parametrize(
    "changes",
    [
        {"target": np.array([1.0, 0.0])},
        {"target": np.array([1.0])},
        {"target": np.zeros(0)},
        {"rows": np.array(["l2", "one", "unit"])},
        {"rows": np.array(["l7", "1.0", "unit"])},
        {"w": np.zeros((4, 2))},
    ],
    ids=lambda changes: repr(changes),
)
def test_a_damaged_model_of_a_number_is_refused(tmp_path: Path, changes: dict) -> None:
    quiet(preset("sound", "objt").with_values(ROUNDS), numbers(), tmp_path / "run")
    with np.load(tmp_path / "run" / "model.npz") as held:
        arrays = {name: held[name] for name in held.files} | changes
    np.savez(tmp_path / "bad.npz", **arrays)
    with pytest.raises(RunDirectoryError, match="damaged"):
        tacit.Model.read(tmp_path / "bad.npz")


def test_the_step_on_numbers_is_bounded_by_their_curvature() -> None:
    """A step that follows the noise alone grows with the budget, and overshoots for ever."""
    over, values = numbers(2, 4, sizes=(400, 400)), {"run.rounds": 100, "run.seed": 0}
    errors = [
        quiet(preset("sound", "objt").with_values(values | {"privacy.epsilon": epsilon}), over).judged
        for epsilon in (100.0, 1e4, math.inf)
    ]
    assert max(errors) < 1.5 * min(errors)
