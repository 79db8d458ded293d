"""tacit predict --proba: the probability of each class, where scores are log-odds."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tacit.cli import main
from tacit.problem.loss import probabilities

TRAIN = ["train", "--data", "t.csv", "--agents", "2", "--seed", "0", "--rounds", "5", "--out", "run", "-qq"]
PREDICT = ["predict", "--model", "run", "--data", "t.csv"]


@pytest.fixture(autouse=True)
def _table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """t.csv in the current folder: two features, and a class whose name holds a comma."""
    monkeypatch.chdir(tmp_path)
    numbers = np.random.default_rng(0).uniform(size=(60, 2)).round(4)
    rows = [f"{a},{b}," + ("well" if a > b else '"ill, bad"') for a, b in numbers]
    Path("t.csv").write_text("\n".join(["a,b,label", *rows]) + "\n")


def test_they_are_a_csv_with_the_names_of_the_classes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(TRAIN) == 0
    capsys.readouterr()
    assert main([*PREDICT, "--proba", "-q"]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head == '"ill, bad",well'
    given = np.array([row.split(",") for row in rows], dtype=float)
    assert given.shape == (60, 2)
    np.testing.assert_allclose(given.sum(axis=1), 1, atol=1e-5)
    assert main([*PREDICT, "--proba", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    np.testing.assert_allclose(found["probabilities"], given, rtol=1e-5)
    assert [found["classes"][k] for k in given.argmax(axis=1)] == found["predictions"]
    assert main([*PREDICT, "--json"]) == 0
    assert "probabilities" not in json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(("arguments", "says"), [
    (["--set", "problem.loss=squared"], "the scores of the loss squared are no log-odds: train with problem.loss"),
    (["--label-column", "b", "--target-low", "0", "--target-high", "1"], "this model predicts a number"),
])  # fmt: skip
def test_scores_that_are_no_log_odds_are_refused(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if "--label-column" in arguments:
        lines = Path("t.csv").read_text().splitlines()
        Path("t.csv").write_text("\n".join(",".join(line.split(",")[:2]) for line in lines))
    assert main([*TRAIN, *arguments]) == 0
    capsys.readouterr()
    assert main([*PREDICT, "--proba"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert says in err
    assert err.count("\n") == 1


def test_huge_scores_give_finite_probabilities() -> None:
    found = probabilities(np.array([[1e30, -1e30, 0.0], [1.0, 1.0, 1.0]], dtype=np.float32))
    np.testing.assert_allclose(found, [[1, 0, 0], [1 / 3] * 3])
