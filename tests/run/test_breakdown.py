"""Test records by class and by agent: what result.json says adds up to the test error."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tacit
import tacit.data
from tacit.data import partition, synthetic
from tacit.errors import DataError
from tacit.run import evaluation as module
from tacit.run.evaluation import breakdown
from tacit.types import Federation, Shard, Target
from tests.run.test_numbers import command

EYE = np.eye(3)


def federation(**more: object) -> Federation:
    """Three classes that the identity tells apart; agent a has two test records, b has one, a stranger has one."""
    x, shard = EYE[[0, 1, 2, 2]], Shard(EYE, np.arange(3))
    test = Shard(x, np.array([0, 2, 2, 0]), owners=np.array([0, 0, 1, -1]))
    return Federation((shard, shard), test, 3, agents=("a", "b"), **more)  # type: ignore[arg-type]


def test_counts_are_by_true_class_and_predicted_class() -> None:
    told = breakdown(EYE, federation())
    assert told["agent_records"] == [["a", 3], ["b", 3]]
    assert told["test"]["confusion"] == {"classes": ["0", "1", "2"], "counts": [[1, 0, 1], [0, 0, 0], [0, 1, 1]]}
    assert told["test"]["agents"] == [
        {"agent": "a", "records": 2, "test_error": 0.5}, {"agent": "b", "records": 1, "test_error": 0.0},
    ]  # fmt: skip


def test_a_number_is_counted_by_parts_of_its_declared_range() -> None:
    shard = Shard(np.array([[-1.0], [1.0]]), np.array([-1.0, 0.99]), owners=np.array([0, 0]))
    found = Federation((shard,), shard, 1, target=Target(0, 50))
    told = breakdown(np.array([[5.0]]), found)["test"]  # predictions are moved into the range
    assert told["confusion"]["classes"][0] == "0 to 5"
    assert told["confusion"]["counts"][0][0] == told["confusion"]["counts"][-1][-1] == 1
    assert told["agents"] == [{"agent": "0", "records": 2, "test_rmse": pytest.approx(25 * 0.01 / 2**0.5)}]


def test_what_is_not_known_or_too_long_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    known = federation()
    nobody = replace(known, test=replace(known.test, owners=None))
    assert breakdown(EYE, nobody)["test"]["agents"] is None
    none = replace(known, test=known.test.rows(slice(0, 0)))
    assert "test" not in breakdown(EYE, none)
    assert breakdown(np.full((3, 3), np.nan), known)["test"] == {"records": 4, "confusion": None, "agents": None}
    monkeypatch.setattr(module, "CLASSES", 2)
    monkeypatch.setattr(module, "AGENTS", 1)
    told = breakdown(EYE, known)
    assert (told["agent_records"], told["test"]["confusion"], told["test"]["agents"]) == (None, None, None)


def test_owners_are_of_the_agents_that_there_are() -> None:
    with pytest.raises(DataError, match="beyond the 2"):
        replace(federation(), test=Shard(EYE, np.arange(3), owners=np.array([0, 1, 2])))
    with pytest.raises(DataError, match="each of 3 records"):
        Shard(EYE, np.arange(3), owners=np.array([0]))


def test_readers_know_whose_test_records_are(tmp_path: Path) -> None:
    heart = tacit.data.load("heart")
    assert heart.test.owners is not None
    assert np.bincount(heart.test.owners).tolist() == [61, 59, 25, 40]
    drawn = synthetic.make(5, 100, 4, 3)
    assert drawn.test.owners is not None
    assert set(drawn.test.owners.tolist()) <= set(range(5))
    pooled = synthetic.make(1, 100, 4, 3)
    assert partition.deal(pooled, "shuffled", 5, 0, 0.5).test.owners is None
    for folder, users in (("train", "ab"), ("test", "bc")):
        (tmp_path / "leaf" / folder).mkdir(parents=True)
        own = {user: {"x": [[0.0, 1.0], [1.0, 0.0]], "y": [0, 1]} for user in users}
        told = {"users": list(own), "num_samples": [2] * len(own), "user_data": own}
        (tmp_path / "leaf" / folder / "all.json").write_text(json.dumps(told))
    leaf = tacit.data.load(str(tmp_path / "leaf"), class_count=2)
    assert leaf.test.owners is not None
    assert leaf.test.owners.tolist() == [1, 1, -1, -1]  # b, and a stranger
    head = "x,label,agent\n"
    (tmp_path / "train.csv").write_text(head + "".join(f"{n % 2},{n % 2},{who}\n" for who in "ab" for n in range(6)))
    (tmp_path / "test.csv").write_text(head + "0,0,b\n1,1,stranger\n1,1,a\n")
    found = tacit.data.load(str(tmp_path / "train.csv"), test=str(tmp_path / "test.csv"), class_names=("0", "1"))
    assert found.test.owners is not None
    assert found.test.owners.tolist() == [1, -1, 0]


def test_a_run_writes_counts_that_add_up_to_its_error(tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert command("train", "--data", "heart", "--rounds", 2, "--seed", 0, "--out", out, "-qq") == 0
    text = (out / "result.json").read_text()
    told = json.loads(text)
    counts = np.array(told["test"]["confusion"]["counts"])
    assert counts.sum() == told["test"]["records"] == 185
    assert 1 - np.trace(counts) / 185 == pytest.approx(told["test_error"])
    wrong = sum(one["records"] * one["test_error"] for one in told["test"]["agents"])
    assert wrong / 185 == pytest.approx(told["test_error"])
    assert sum(n for _, n in told["agent_records"]) == told["records"]
    assert f"[{counts[0, 0]}, {counts[0, 1]}]" in text  # in one line


def test_the_records_of_a_sweep_leave_it_out(tmp_path: Path) -> None:
    (tmp_path / "grid.toml").write_text(
        '[data]\nsource = "synthetic"\nagents = 3\nrecords = 60\n[run]\nrounds = 2\nseed = [0, 1]\n'
    )
    out = tmp_path / "sweep"
    assert command("sweep", "--config", tmp_path / "grid.toml", "--out", out, "-qq") == 0
    assert len([*out.glob("*/result.json")]) == 2
    for line in (out / "records.jsonl").read_text().splitlines():
        assert not {"test", "agent_records"} & set(json.loads(line))
    for path in out.glob("*/result.json"):
        assert json.loads(path.read_text())["test"]["records"] == 12


def test_effects_on_a_number_add_up_to_what_is_predicted_in_its_unit(tmp_path: Path) -> None:
    (tmp_path / "schema.toml").write_text(
        "[columns.age]\nkind = 'numeric'\nlo = 0\nhi = 100\n"
        "[columns.ill]\nkind = 'categorical'\nvalues = ['yes', 'no']\n"
        "[columns.who]\nkind = 'agent'\n[columns.days]\nkind = 'target'\nlo = 10\nhi = 50\n"
    )
    rows = [f"{n},{'yes' if n % 3 else 'no'},{'ab'[n % 2]},{20 + n / 10}" for n in range(100)]
    (tmp_path / "t.csv").write_text("age,ill,who,days\n" + "\n".join(rows) + "\n")
    words = ("--data", tmp_path / "t.csv", "--schema", tmp_path / "schema.toml", "--rounds", 20, "--seed", 0)
    assert command("train", *words, "--epsilon", "inf", "--out", tmp_path / "run", "-qq") == 0
    model = tacit.Model.read(tmp_path / "run")
    found = model.shapes()
    assert found.outputs == ["days"]
    age, ill = sorted(found.columns, key=lambda one: one.column)
    total = found.intercept[0] + age.effects[0][-1] + ill.effects[0][ill.values.index("yes")]
    (predicted,) = model.predict({"age": [age.values[-1]], "ill": ["yes"]})
    assert total == pytest.approx(predicted, rel=1e-4)
    page = (tmp_path / "run" / "report.html").read_text()
    assert "effect on days" in page
    assert "Nothing is recorded for" not in page
