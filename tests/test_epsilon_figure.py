"""The README's figure shows what the records hold, and follows the page's colours."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from benchmarks import epsilon_figure
from benchmarks.epsilon_figure import Curve, curves, main, read, table
from benchmarks.peers import budgets, naive_, peer
from benchmarks.peers.task import Task

from tests.conftest import federation

ROOT = Path(__file__).parent.parent


def row(role: str, error: float, c: float, **changed: Any) -> str:
    whole = {"role": role, "peer": "diffprivlib-budgets", "data": "mnist", "asked_epsilon": 1.0, "seed": 0, "auc": None}
    return json.dumps(whole | {"test_error": error, "constants": {"C": c, "max_iter": 100}} | changed) + "\n"


def test_runs_have_the_constants_that_trials_on_the_grid_of_today_choose(tmp_path: Path) -> None:
    """A run of an earlier grid stays in the file, first or last, and is not shown."""
    out = tmp_path / "rows.jsonl"
    trials = [row("trial", 0.1, 7.0), row("trial", 0.3, 0.001), row("trial", 0.4, 0.01)]  # 7 is not on the grid
    runs = [row("run", 0.25, 0.001), row("run", 0.75, 0.001, seed=1), row("run", 0.9, 0.01), row("run", 0.9, 7.0)]
    out.write_text("".join(trials + runs))
    assert curves(out)["diffprivlib"].errors == {1.0: [25.0, 75.0]}
    assert curves(out)["diffprivlib"].means == {1.0: 50.0}
    assert curves(out)["paper"].errors == {}


def test_every_line_has_all_budgets_and_seeds() -> None:
    for curve in curves(epsilon_figure.RESULTS).values():
        assert sorted(curve.errors) == list(epsilon_figure.EPSILONS)
        assert {len(errors) for errors in curve.errors.values()} <= {3, 5}


def test_no_run_is_tuned_on_what_it_is_reported_on() -> None:
    rows = read(epsilon_figure.RESULTS)
    seeds = {role: {one["seed"] for one in rows if one["role"] == role} for role in ("trial", "run")}
    assert not seeds["trial"] & seeds["run"]
    for one in rows:  # a budget holds whatever was chosen
        assert one["epsilon"] <= one["asked_epsilon"] * (1 + 1e-9)


def test_the_page_and_the_readme_say_what_the_records_say() -> None:
    found = curves(epsilon_figure.RESULTS)
    assert table(found) in epsilon_figure.PAGE.read_text(encoding="utf-8")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for name in ("alone", "sum", "curator", "diffprivlib", "paper"):
        assert f"{found[name].means[1.0]:.1f} %" in readme


def test_the_paper_s_run_spends_the_budget_that_is_asked_for() -> None:
    own = Task("small", federation(sizes=(12, 18, 24)), epsilon=3.0)
    spent = naive_.train(own, 0, {"rounds": 3, "rho_factor": 0.01})
    assert 0.99 * 3 < spent.epsilon <= 3


def test_a_tool_that_is_not_installed_is_named_and_a_run_that_is_there_is_not_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = []
    monkeypatch.setattr(peer.Peer, "missing", lambda own: ["no-such-tool"] if "diffprivlib" in own.title else [])
    monkeypatch.setattr(epsilon_figure.task, "load", lambda *_: Task("small", federation()))
    monkeypatch.setattr(budgets, "measure_one", lambda kept, *_: made.append((kept.name, kept.data)))
    out = tmp_path / "rows.jsonl"
    out.touch()
    assert main(["--no-draw", "--out", str(out)]) == 0
    assert "no-such-tool not installed" in capsys.readouterr().err
    assert made == [("naive-budgets", "mnist-pixels"), ("naive-budgets", "mnist")]
    assert main(["--draw", "--no-draw", "--out", str(out)]) == 0
    assert len(made) == 2


def test_the_figure_follows_dark_and_light_and_equal_curves_give_equal_bytes(tmp_path: Path) -> None:
    drawing = pytest.importorskip("benchmarks.epsilon_drawing")
    some = {epsilon: [4.0 / epsilon, 5.0 / epsilon] for epsilon in epsilon_figure.EPSILONS}
    found = {name: Curve(name, "nobody", some) for name in drawing.LOOKS}
    for name in ("a.svg", "b.svg"):
        drawing.draw(found, tmp_path / name)
    svg = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert svg == (tmp_path / "b.svg").read_text(encoding="utf-8")
    assert "prefers-color-scheme: dark" in svg
    for written, *shades in drawing.COLOURS.values():
        assert written not in svg
        assert all(shade in svg for shade in shades)
    assert re.search(r"<script|href=\"http|url\(http", svg) is None
