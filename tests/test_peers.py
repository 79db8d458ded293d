"""benchmarks/peers compares like with like, resumes, and says what is missing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks import report
from benchmarks.peers import __main__ as peers
from benchmarks.peers import flower_, naive_, peer, table, tacit_
from benchmarks.peers.task import DELTA, EPSILON, SCHEMA, NoData, Task, find_adult, load

from tacit.data import schema
from tacit.problem.loss import Softmax
from tests.conftest import federation

ROW = {
    "test_error": 0.25, "seconds": 1.5, "start_seconds": 0.0, "epsilon": 1.0, "delta": 1e-6, "steps": "3 rounds",
    "load_seconds": 0.1,
}  # fmt: skip


@pytest.fixture
def task() -> Task:
    return Task("small", federation(sizes=(12, 18, 24)))


def small_adult(directory: Path, rows: int = 60) -> Path:
    """Tables with Adult's columns, every class and missing cells."""
    columns = schema.read(SCHEMA).columns
    names = list(columns)

    def cell(name: str, i: int) -> str:
        if name == "income":
            return ["<=50K", ">50K"][i % 2]
        values = getattr(columns[name], "values", None)
        absent = i % 7 == 0 and getattr(columns[name], "missing", None) == "level"
        return str(i % 17) if values is None else "" if absent else f'"{values[i % len(values)]}"'

    for part in ("train", "test"):
        lines = [",".join(names), *(",".join(cell(name, i) for name in names) for i in range(rows))]
        Path(directory, f"{part}.csv").write_text("\n".join(lines) + "\n")
    return directory


def test_every_peer_says_whom_it_trusts_and_what_it_protects_without_being_installed() -> None:
    for name in peer.PEERS:
        own = peer.find(name)
        assert all((own.title, own.trusts, own.unit, own.accountant))
        assert set(own.constants) == set(peers.DATA)
        assert all(set(constants) == set(own.grid) for constants in own.constants.values())
    assert "CLIENT" in peer.find("flower").unit
    assert flower_.QUIET["FLWR_TELEMETRY_ENABLED"] == flower_.QUIET["RAY_USAGE_STATS_ENABLED"] == "0"


def test_the_schema_of_adult_is_declared_and_scales_records_to_norm_one(tmp_path: Path) -> None:
    schema.read(SCHEMA).check_public()
    own = load("adult", str(small_adult(tmp_path)))
    assert own.over.public_classes
    assert own.over.n_agents == 10
    sizes = np.linalg.norm(own.over.shards[0].x, axis=1)
    np.testing.assert_allclose(sizes, 1, atol=1e-5)


def test_a_directory_without_adult_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "train.csv").touch()
    with pytest.raises(NoData, match=r"test\.csv"):
        find_adult(str(tmp_path))
    with pytest.raises(SystemExit, match="2"):
        peers.main(["--data", "adult"])
    assert "--adult DIR" in capsys.readouterr().err


def test_tuning_never_sees_a_test_record_and_never_validates_on_what_it_trains_on(task: Task) -> None:
    own = task.validating()
    trained, validated, tested = own.pooled.x, own.over.test.x, task.over.test.x
    assert len(trained) + len(validated) == task.over.n_records
    assert len(validated) == sum(len(shard) // 6 for shard in task.over.shards)

    def rows(x: Any) -> set[bytes]:
        return {row.tobytes() for row in x}

    assert not rows(validated) & (rows(trained) | rows(tested))
    assert rows(validated) | rows(trained) == rows(task.pooled.x)


def test_the_error_counts_records_whose_largest_score_is_of_another_class(task: Task) -> None:
    right = np.eye(task.over.n_classes)[task.over.test.y]
    assert task.test_error(right) == 0
    right[:5] = -right[:5]
    assert task.test_error(right) == 5 / len(task.over.test)


@pytest.mark.parametrize("own", [tacit_.AGENTS_ALONE, tacit_.SECURE_SUM, tacit_.CURATOR])
def test_tacit_keeps_to_the_budget(task: Task, own: peer.Peer) -> None:
    trained = own.train(task, 0, {"run.rounds": 3})
    assert 0.99 * EPSILON < trained.epsilon <= EPSILON
    assert trained.delta == DELTA
    assert trained.score.shape == (len(task.over.test), task.over.n_classes)


def test_the_naive_style_spends_the_budget_over_all_rounds(task: Task) -> None:
    few, many = (naive_.train(task, 0, {"rounds": rounds, "rho_factor": 1.0}) for rounds in (1, 20))
    for trained in (few, many):
        assert 0.99 * EPSILON < trained.epsilon <= EPSILON
        assert trained.score.shape == (len(task.over.test), task.over.n_classes)
    again, other = (naive_.train(task, seed, {"rounds": 1, "rho_factor": 1.0}) for seed in (0, 1))
    np.testing.assert_array_equal(again.score, few.score)
    assert not np.array_equal(other.score, few.score)


def test_the_clients_of_flower_descend_the_mean_cross_entropy(task: Task) -> None:
    x, y = task.pooled.x, task.pooled.y
    w = np.random.default_rng(0).normal(size=(x.shape[1], task.over.n_classes)).astype(np.float32)
    expected = x.T @ Softmax().residual(x @ w, y) / len(y)
    np.testing.assert_allclose(flower_.gradient(w, x, y), expected, atol=1e-6)


def test_opacus_and_diffprivlib_keep_to_the_budget_where_they_are_installed(task: Task) -> None:
    pytest.importorskip("opacus")
    pytest.importorskip("diffprivlib")
    constants = {"rate": 0.5, "epochs": 2, "lr": 1.0, "clip": 0.5, "decay": True}
    assert peer.find("opacus").train(task, 0, constants).epsilon <= EPSILON * 1.01
    trained = peer.find("diffprivlib").train(task, 0, {"C": 1.0, "max_iter": 10})
    assert (trained.epsilon, trained.delta) == (EPSILON, 0)


def test_a_tool_that_is_not_installed_is_skipped_with_what_to_install(capsys: pytest.CaptureFixture[str]) -> None:
    class Missing:
        def missing(self) -> list[str]:
            return ["no-such-tool"]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(peers, "find", lambda _: Missing())
        assert peers._installed(["opacus"]) == []
    assert "no-such-tool not installed. pip install" in capsys.readouterr().err


def test_a_run_that_is_there_is_not_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def fake(name: str, data: str, seed: int, constants: Any, *_: Any, **__: Any) -> Iterator[dict[str, Any]]:
        made.append((name, data, seed))
        yield {"constants": constants[0], **ROW}

    monkeypatch.setattr(peers, "child", fake)
    monkeypatch.setattr(peers, "_installed", list)
    monkeypatch.setattr(peer.Peer, "versions", lambda _: {})
    out = tmp_path / "rows.jsonl"
    command = ["--data", "mnist", "--only", "tacit", "--out", str(out)]
    peers.main([*command, "--seeds", "2"])
    peers.main([*command, "--seeds", "3"])
    assert made == [("tacit", "mnist", seed) for seed in range(3)]
    peers.main([*command, "--seeds", "1", "--fresh"])
    assert len(made) == 4
    changed = [row | {"constants": {"rounds": 7}} for row in peers.read(out)]
    out.write_text("".join(json.dumps(row) + "\n" for row in changed))
    assert table.current(peers.read(out)) == []
    peers.main([*command, "--seeds", "1"])
    assert len(made) == 5


def test_a_child_answers_behind_what_its_tool_prints_and_a_failure_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(Path(__file__).parent.parent)  # python -m finds benchmarks in the current directory
    adult = str(small_adult(tmp_path, 200))
    (row,) = peers.child("tacit", "adult", 0, [{"run.rounds": 2}], adult, validate=True)
    assert row["steps"] == "2 rounds"
    assert 0 <= row["test_error"] <= 1
    assert list(peers.child("tacit", "adult", 0, [{"no.key": 2}], adult, validate=True)) == []
    assert "tacit failed on adult" in capsys.readouterr().err


def test_the_table_has_a_line_for_each_tool_and_the_mean_over_seeds() -> None:
    rows = [
        ROW | {"peer": name, "data": "adult", "seed": seed, "process_seconds": 4.0, "test_error": 0.1 + 0.1 * seed,
               "load_at_start": 0.5 + seed}
        for name in ("tacit", "flower") for seed in (0, 1)
    ]  # fmt: skip
    lines = table.markdown(rows).splitlines()
    assert lines[0] == "**UCI Adult**; load average when a run began: 0.5 to 1.5"
    assert len(lines) == 2 + 2 + 2
    assert lines[-1].startswith("| tacit, ObjT")
    assert "| 1.50 | 2.5 | 15.0 (10.0 - 20.0) | 2 |" in lines[-1]



def test_the_page_shows_the_rows_that_are_stored() -> None:
    stored = table.markdown(table.current(peers.read(peers.RESULTS)))
    found = report.MEASURED.search(peers.DOCUMENT.read_text(encoding="utf-8"))
    assert found is not None
    assert stored
    assert stored in found[0]


def test_each_comparison_has_its_own_tools_and_data(capsys: pytest.CaptureFixture[str]) -> None:
    for argv in ("--data heart", "--only dp-ebm", "--tables --data mnist", "--tables --only flower"):
        with pytest.raises(SystemExit, match="2"):
            peers.main([*argv.split(), "--table"])
        assert "is for the other comparison" in capsys.readouterr().err
