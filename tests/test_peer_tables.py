"""benchmarks/peers --tables: exact AUC, nothing read from records, tuning on training records alone, runs resume."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.peers import __main__ as peers
from benchmarks.peers import budget_table, budgets, child, peer
from benchmarks.peers.auc import auc
from benchmarks.peers.dp_ebm_ import MISSING, Declared
from benchmarks.peers.task import AGENTS, DELTA, NoData, Task, find_heart, load

from tacit.data import sources
from tacit.types import ColumnFeatures, Federation, Shard
from tests.test_peers import small_adult

Row = dict[str, Any]


@pytest.fixture
def adult(tmp_path: Path) -> Task:
    return load("adult", str(small_adult(tmp_path, 120)))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, adult: Task) -> list[tuple[str, str, Row]]:
    """Every job that would have trained; the one with the largest first constant is the best."""
    made: list[tuple[str, str, Row]] = []

    def fake(name: str, data: str, _adult: str | None, jobs: list[Row]) -> Iterator[Row]:
        for job in jobs:
            made.append((name, data, job))
            size = next(iter(job["constants"].values()), 0)
            yield {"constants": job["constants"], "test_error": 0.2, "auc": 0.5 + size / 1e4, "seconds": 1.0,
                   "epsilon": job["epsilon"], "delta": DELTA, "steps": "some"}  # fmt: skip

    monkeypatch.setattr(child, "ask", fake)
    monkeypatch.setattr(peer.Peer, "versions", lambda _: {})
    monkeypatch.setattr(budgets.task, "load", lambda *_: adult)
    return made


def test_auc_counts_every_pair_and_halves_equal_scores() -> None:
    rng = np.random.default_rng(0)
    score, positive = rng.integers(0, 6, 60).astype(float), rng.random(60) < 0.4
    pairs = score[positive][:, None] - score[~positive]
    assert auc(score, positive) == pytest.approx(((pairs > 0) + (pairs == 0) / 2).mean(), abs=1e-12)
    assert auc(np.array([0.1, 0.2, 0.3]), np.array([False, False, True])) == 1
    assert auc(np.zeros(5), np.array([True, False, False, True, False])) == 0.5
    assert auc(score, np.ones(60, bool)) is None


def test_a_task_of_two_classes_has_an_auc_and_others_have_none(adult: Task) -> None:
    right = np.eye(2)[adult.over.test.y]
    assert (adult.auc(right), adult.auc(-right)) == (1, 0)
    assert replace(adult, over=replace(adult.over, n_classes=3, classes=())).auc(right) is None


def test_columns_and_features_are_of_the_same_records_in_tuning_too(adult: Task) -> None:
    for own in (adult, adult.validating()):
        assert own.plain is not None
        for mapped, plain in zip((*own.over.shards, own.over.test), (*own.plain.shards, own.plain.test), strict=True):
            np.testing.assert_array_equal(mapped.y, plain.y)
        columns = own.columns
        np.testing.assert_array_equal(columns.pooled.x[:, :-1], np.concatenate([s.x for s in own.plain.shards]))
        assert (columns.pooled.x[:, -1] == 1).all()
        assert np.linalg.norm(columns.pooled.x, axis=1).max() <= columns.longest * (1 + 1e-6)


def test_a_file_that_is_sorted_by_class_is_tuned_on_both_classes() -> None:
    y = np.repeat([0, 1], 60)
    own = Task("sorted", Federation((Shard(np.zeros((120, 1)), y),), Shard(np.zeros((1, 1)), y[:1]), 2)).validating()
    assert len(own.over.test) == 20
    assert 0 < own.over.test.y.mean() < 1


def test_dp_ebm_is_told_what_the_schema_says_whatever_the_records_hold(adult: Task) -> None:
    assert adult.plain is not None
    told = Declared.of(adult.plain)
    emptied = adult.plain.map(lambda shard: replace(shard, x=np.zeros_like(shard.x)))
    again = Declared.of(emptied)
    assert (told.types, told.bounds) == (again.types, again.bounds)
    assert len(told.types) == len(adult.plain.columns)
    assert set(told.bounds) == {j for j, one in enumerate(adult.plain.columns) if one.number}


def test_dp_ebm_gets_each_cell_back_and_no_missing_ones() -> None:
    number, category = ColumnFeatures("age", 0, 2, number=True), ColumnFeatures("kind", 2, 5, shares=True)
    columns = (number, category, ColumnFeatures("rest", 5, 7))
    x = np.array([[0.25, 0, 0, 1, 0, 0.5, 0], [0, 1, 0, 0, 0, 0, 1]], np.float32)
    both = Shard(x, np.array([0, 1]))
    told = Declared.of(Federation((both,), both, 2, bounds=(0.0, 1.0), columns=columns))
    assert told.cells(x).tolist() == [[0.25, "1", 0.5, 0.0], [MISSING, "3", 0.0, 1.0]]
    assert told.types == ["continuous", ["0", "1", "2", "3"], "continuous", "continuous"]
    assert told.bounds == {0: (MISSING, 1.0), 2: (0.0, 1.0), 3: (0.0, 1.0)}


def test_every_tool_on_tables_says_whom_it_trusts_without_being_installed() -> None:
    for name in peer.ON_TABLES:
        own = peer.find(name)
        assert all((own.title, own.trusts, own.unit, own.accountant))
        assert budgets.points(own)
    titles = {peer.find(name).title for name in peer.ON_TABLES}
    assert len(titles) == len(peer.ON_TABLES)
    assert not any(peer.find(name).grid for name in peer.ON_TABLES if name.startswith("tacit"))


def test_tools_keep_to_the_budget_that_the_task_has(adult: Task) -> None:
    small = {"tacit": {"run.rounds": 3}, "tacit-secure-sum": {"run.rounds": 3}, "tacit-curator": {"run.rounds": 3}}
    for name in small:
        trained = peer.find(name).train(replace(adult, epsilon=3.0), 0, small[name])
        assert 2.99 < trained.epsilon <= 3.0


@pytest.mark.filterwarnings("ignore")  # of the tools
def test_others_keep_to_the_budget_where_they_are_installed(adult: Task) -> None:
    for package in ("interpret", "diffprivlib", "sklearn"):
        pytest.importorskip(package)
    for name in [name for name in peer.ON_TABLES if not name.startswith("tacit")]:
        own = peer.find(name)
        trained = own.train(replace(adult, epsilon=3.0), 0, budgets.points(own)[0])
        assert trained.score.shape == (len(adult.over.test), 2)
        assert np.isfinite(trained.score).all()
        assert trained.epsilon == (3.0 if own.private else np.inf)


def test_a_run_that_is_there_is_not_made_again_and_another_setting_makes_it_new(
    tmp_path: Path, asked: list[tuple[str, str, Row]], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "rows.jsonl"
    budgets.measure(["tacit"], ["adult"], [1.0, 3.0], 2, None, out)
    assert [(job["seed"], job["epsilon"]) for *_, job in asked] == [(0, 1.0), (0, 3.0), (1, 1.0), (1, 3.0)]
    budgets.measure(["tacit"], ["adult"], [1.0, 3.0], 3, None, out)
    assert len(asked) == 6
    assert len(budgets.current(budgets.read(out))) == 6
    known = peer.find("tacit")
    monkeypatch.setattr(budgets, "find", lambda _: replace(known, settings=lambda: {"privacy.clip": 1}))
    budgets.measure(["tacit"], ["adult"], [1.0], 1, None, out)
    assert len(asked) == 7
    assert len(budgets.current(budgets.read(out))) == 1


def test_tuning_is_done_at_every_budget_with_seeds_of_no_run(tmp_path: Path, asked: list[tuple[str, str, Row]]) -> None:
    budgets.measure(["diffprivlib-features"], ["adult"], [1.0, 3.0], 5, None, tmp_path / "rows.jsonl")
    trials = [job for *_, job in asked if job["role"] == "trial"]
    runs = [job for *_, job in asked if job["role"] == "run"]
    grid = budgets.points(peer.find("diffprivlib-features"))
    assert len(trials) == 2 * len(grid) * len(budgets.TRIAL_SEEDS)
    assert all(job["validate"] for job in trials)
    assert not any(job["validate"] for job in runs)
    assert not {job["seed"] for job in trials} & {job["seed"] for job in runs}
    assert {json.dumps(job["constants"]) for job in runs} == {json.dumps(grid[-1])}


def test_heart_is_split_and_tuned_anew_for_every_seed(tmp_path: Path, asked: list[tuple[str, str, Row]]) -> None:
    budgets.measure(["logistic-columns"], ["heart", "adult"], [1.0], 3, None, tmp_path / "rows.jsonl")
    split = {data: [(job["split"], job["seed"]) for _, own, job in asked if own == data and job["role"] == "run"]
             for data in ("heart", "adult")}  # fmt: skip
    assert split == {"heart": [(0, 0), (1, 1), (2, 2)], "adult": [(0, 0)]}
    assert {job["split"] for _, own, job in asked if own == "heart" and job["role"] == "trial"} == {0, 1, 2}
    assert all(job["epsilon"] is None for *_, job in asked)


def test_constants_are_chosen_by_error_and_auc_together() -> None:
    def tried(c: float, error: float, area: float) -> Row:
        return {"constants": {"C": c}, "test_error": error, "auc": area}

    rows = [tried(1, 0.2, 0.9), tried(2, 0.19, 0.8), tried(3, 0.25, 0.92), tried(1, 0.2, 0.9)]
    assert budgets.choose(rows) == {"C": 1}
    assert budgets.choose([]) is None


def test_a_child_trains_at_the_budget_that_a_job_asks_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parent.parent)  # python -m finds benchmarks in the current directory
    jobs = [{"seed": 0, "constants": {"run.rounds": 2}, "epsilon": epsilon} for epsilon in (0.5, 8.0)]
    rows = list(child.ask("tacit", "adult", str(small_adult(tmp_path, 12 * AGENTS)), jobs))
    assert [round(row["epsilon"], 3) for row in rows] == [0.5, 8.0]
    assert all(0 <= row["auc"] <= 1 for row in rows)


def test_the_table_has_budgets_across_and_means_with_their_spread() -> None:
    def row(name: str, epsilon: float | None, seed: int) -> Row:
        return {"peer": name, "data": "adult", "asked_epsilon": epsilon, "seed": seed, "test_error": 0.1 + 0.02 * seed,
                "auc": 0.9 - 0.01 * seed, "seconds": 1.0}  # fmt: skip

    rows = [row("tacit", 1.0, 0), row("tacit", 1.0, 1), row("tacit", 0.5, 0), row("logistic-columns", None, 0)]
    lines = budget_table.markdown(rows).splitlines()
    assert lines[2] == "| tool | trusts | epsilon 0.5 | epsilon 1 | no privacy | training, s | seeds |"
    assert "| 10.0, .900 | 11.0 ± 1.4, .895 ± .007 |  | 1.00 | 1 to 2 |" in lines[4]
    assert lines[5].endswith("|  |  | 10.0, .900 | 1.00 | 1 |")
    assert budget_table.markdown([]) == budget_table.NOTHING


def test_a_version_without_heart_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sources, "NAMED", {})
    with pytest.raises(NoData, match="not shipped"):
        find_heart()
    with pytest.raises(SystemExit, match="2"):
        peers.main(["--tables", "--data", "heart"])
    assert "leave it out: --data adult" in capsys.readouterr().err


@pytest.mark.skipif("heart" not in sources.NAMED, reason="this version ships no heart data")
def test_heart_has_four_hospitals_and_other_test_patients_in_every_split() -> None:
    first, second = (load("heart", None, split) for split in (0, 1))
    assert first.over.n_agents == 4
    assert first.over.n_classes == 2
    assert len(first.over.test) == pytest.approx((first.over.n_records + len(first.over.test)) / 3, abs=2)
    assert not np.array_equal(first.over.test.x, second.over.test.x)


def test_the_page_shows_the_tables_that_are_stored() -> None:
    found = budget_table.MEASURED.search(peers.DOCUMENT.read_text(encoding="utf-8"))
    assert found is not None
    assert budget_table.markdown(budgets.current(budgets.read(budgets.RESULTS))) in found[0]
