"""What a run tells its owner before the first round: that it is not private and why, or that delta is large."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.cli import main
from tacit.errors import LargeDeltaWarning, NotPrivateWarning, TacitWarning
from tacit.methods.registry import METHODS
from tacit.privacy import risk
from tacit.run.presets import PRESETS, preset
from tacit.run.spec import Spec
from tacit.run.train import train
from tacit.types import Federation
from tests.conftest import federation

FAMILY = [name for name, entry in METHODS.items() if entry.is_admm]


def told_before_the_first_round(spec: Spec, over: Federation) -> tuple[list[warnings.WarningMessage], Any]:
    """(the warnings given before a round was run, the result)."""
    early: list[warnings.WarningMessage] = []
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")

        def hear(done: int, _row: object) -> None:
            if done == 1:
                early.extend(told)

        result = train(spec, over, listener=hear)
    assert len(told) == len(early)
    return early, result


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("algorithm", FAMILY)
@pytest.mark.parametrize("public", [True, False])
def test_not_private_is_said_once_with_every_reason_before_the_first_round(
    name: str, algorithm: str, public: bool
) -> None:
    over = replace(federation(), public_classes=public)
    early, result = told_before_the_first_round(preset(name, algorithm).with_values({"run.rounds": 2}), over)
    said = [str(one.message) for one in early if one.category is NotPrivateWarning]
    assert len(said) == result.guarantee.startswith("not private")
    private = not np.isinf(preset(name, algorithm).privacy.epsilon)
    assert ("list of classes" in "".join(said)) == ("list of classes" in result.guarantee) == (private and not public)
    for reason in ("no noise is added", "read from the private data", "number of records stands in", "sigma^2"):
        assert (reason in "".join(said)) == (reason in result.guarantee)
        if reason in result.guarantee:
            assert "--preset sound" in said[0]


def table(path: Path) -> Path:
    rng = np.random.default_rng(0)
    lines = [f"{'ab'[n % 2]},{rng.uniform():.3f},{'yn'[n % 3 == 0]}" for n in range(60)]
    path.write_text("\n".join(["agent,u,label", *lines]) + "\n")
    return path


def leaf(path: Path) -> Path:
    for part in ("train", "test"):
        (path / part).mkdir(parents=True)
        users = {name: {"x": [[0.1], [0.7]], "y": [0, 1]} for name in "ab"}
        content = {"users": ["a", "b"], "num_samples": [2, 2], "user_data": users}
        (path / part / "all.json").write_text(json.dumps(content))
    return path


SCHEMA = '[columns.u]\nkind = "numeric"\nlo = 0\nhi = 1\n[columns.label]\nkind = "label"\nclasses = ["y", "n"]\n'


@pytest.mark.parametrize(("make", "name", "told", "advice"), [
    (table, "t.csv", "--classes or --schema", ["--classes", "y,n"]),
    (table, "t.csv", "--classes or --schema", ["--schema", "schema.toml"]),
    (leaf, "leaf", "--set data.class_count=K", ["--set", "data.class_count=2"]),
])  # fmt: skip
def test_the_advice_for_classes_read_from_labels_fits_the_source_and_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    make: Any, name: str, told: str, advice: list[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    source = make(tmp_path / name)
    (tmp_path / "schema.toml").write_text(SCHEMA + '[columns.agent]\nkind = "agent"\n')
    run = ["train", "--data", str(source), "--rounds", "2"]
    assert main([*run, "--out", "without"]) == 0
    out, err = capsys.readouterr()
    assert f"read from the private labels (declare it: {told})" in out
    assert err.count("not private: the list of classes was read from the private labels") == 1
    assert err.index("not private") < err.index("round 2/2")
    assert main([*run, *advice, "--out", "with", "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["guarantee"].startswith("(1, 1e-06)-DP")
    assert "not private" not in err


def test_the_advice_for_data_given_in_python_names_what_python_has() -> None:
    over = replace(federation(), public_classes=False)
    with pytest.warns(NotPrivateWarning, match="public_classes"):
        train(preset("sound", "objt").with_values({"run.rounds": 2}), over)


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("algorithm", FAMILY)
def test_the_advice_for_every_other_reason_works(name: str, algorithm: str) -> None:
    early, _ = told_before_the_first_round(preset(name, algorithm).with_values({"run.rounds": 2}), federation())
    if any("--preset sound --algorithm objt" in str(one.message) for one in early):
        result = train(preset("sound", "objt").with_values({"run.rounds": 2}), federation())
        assert result.guarantee.startswith("(1, 1e-06)-DP")


@pytest.mark.parametrize("delta", [0.05, 1 / 24])
def test_a_delta_not_below_one_in_the_number_of_records_warns_before_the_first_round(delta: float) -> None:
    over = federation()  # 24 records
    assert over.n_records == 24
    spec = preset("sound", "objt").with_values({"run.rounds": 2})
    early, _ = told_before_the_first_round(spec.with_values({"privacy.dp_delta": delta}), over)
    assert [one.category for one in early] == [LargeDeltaWarning]
    assert "1/I = 0.0417" in str(early[0].message)
    assert "--dp-delta" in str(early[0].message)
    assert risk.weakness(1.0, delta, 24)
    for values in ({"privacy.dp_delta": 0.04}, {"privacy.dp_delta": delta, "privacy.epsilon": np.inf}):
        early, _ = told_before_the_first_round(spec.with_values(values), over)
        assert not any(issubclass(one.category, LargeDeltaWarning) for one in early)
    assert issubclass(LargeDeltaWarning, TacitWarning)
