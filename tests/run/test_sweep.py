"""A sweep gives what its runs give one by one, and goes on where it stopped."""

import json
import shutil

import numpy as np
import pytest

from tacit.cli import main
from tacit.errors import Interrupted, RunDirectoryError, SpecError
from tacit.run import build, sweep

GRID = """
[data]
source = "synthetic"
agents = 4
records = 200
[algorithm]
name = ["objt", "objp", "outp"]
[privacy]
epsilon = [0.5, 2]
[run]
preset = "released"
rounds = 9
seed = [0, 1]
"""


@pytest.fixture
def grid(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "grid.toml"
    path.write_text(GRID)
    return path


pytestmark = pytest.mark.filterwarnings("ignore::tacit.errors.TacitWarning")


def test_every_combination_is_one_run(grid):
    names = [member.name for member in sweep.read(grid)]
    assert len(names) == 12
    assert names[0] == "objt-epsilon0.5-seed0"


def test_a_sweep_gives_what_train_gives(grid, tmp_path):
    assert main(["sweep", "--config", str(grid), "-qq"]) == 0
    records = [json.loads(line) for line in (tmp_path / "runs/grid/records.jsonl").read_text().splitlines()]
    assert [record["name"] for record in records] == [member.name for member in sweep.read(grid)]
    for name in ("objt-epsilon0.5-seed1", "outp-epsilon2-seed0"):
        main(["train", "--config", f"runs/grid/{name}/spec.toml", "--out", name, "-qq"])
        one, many = (np.load(path / "model.npz")["w"] for path in (tmp_path / name, tmp_path / "runs/grid" / name))
        np.testing.assert_allclose(one, many, atol=1e-5)


def test_each_run_of_a_sweep_has_the_features_of_its_own_map(tmp_path):
    members = sweep.expand(
        {"data.source": "synthetic", "data.agents": 3, "run.rounds": 2, "features.map": ["none", "columns"]}, "here"
    )
    none, columns = sweep.run(members, tmp_path)
    assert none["features"] is None
    assert columns["features"].startswith("columns")


@pytest.mark.parametrize(("models", "size"), [(2, 2), (0.5, 1), (100, 12)])
def test_the_models_of_a_batch_fit_the_cache(grid, monkeypatch, models, size):
    members = sweep.read(grid)
    over = build.federation(members[0].spec)
    monkeypatch.setattr(sweep, "MODEL_BYTES", models * 4 * over.n_features * over.n_classes)
    batches = list(sweep.batches(members, lambda _: over, sweep.fresh))
    assert max(len(batch) for batch in batches) == size
    assert sum(len(batch) for batch in batches) == len(members)


def test_a_stopped_sweep_goes_on_and_ends_the_same(grid, tmp_path, monkeypatch):
    monkeypatch.setattr(sweep, "LANES", 8)
    members = sweep.read(grid)
    whole = sweep.run(members, tmp_path / "whole")
    calls = []

    def stop_in_the_second_batch(done, _row):
        calls.append(done)
        if len(calls) == 12:
            raise KeyboardInterrupt

    with pytest.raises(
        Interrupted, match=r"^stopped after [0-9] of 9 rounds of a batch of 4; run the same command again to go on$"
    ):
        sweep.run(members, tmp_path / "cut", stop_in_the_second_batch)
    assert not (tmp_path / "cut" / "records.jsonl").exists()
    resumed = sweep.run(members, tmp_path / "cut")
    for ours, theirs in zip(whole, resumed, strict=True):
        assert ours["objective"] == theirs["objective"]
    written = (tmp_path / "cut" / "records.jsonl").read_bytes()
    again = sweep.run(members, tmp_path / "cut")
    assert again == resumed
    assert (tmp_path / "cut" / "records.jsonl").read_bytes() == written


def test_a_seed_beside_exact_noise_is_refused():
    values = {"data.source": "synthetic", "privacy.noise": ["simulated", "exact"]}
    with pytest.raises(SpecError, match=r"follows no seed, and run\.seed = 1"):
        sweep.expand(values | {"run.seed": 1}, "grid.toml")
    assert [member.spec.run.seed for member in sweep.expand(values, "grid.toml")] == [0, None]


def test_runs_that_one_ledger_cannot_take_are_refused_before_any_pays(tmp_path):
    values = {"data.source": "synthetic", "privacy.noise": "exact", "privacy.ledger": str(tmp_path / "l")}
    with pytest.raises(SpecError, match="one adjacency and one limit"):
        sweep.expand(values | {"privacy.adjacency": ["zero_out", "replace_one"]}, "grid.toml")
    deltas = {"privacy.dp_delta": [1e-6, 1e-5]}
    assert len(sweep.expand(values | deltas, "grid.toml")) == 2
    with pytest.raises(SpecError, match="one adjacency and one limit"):
        sweep.expand(values | deltas | {"privacy.limit": 3.0}, "grid.toml")


def test_a_signal_in_the_last_round_of_a_batch_lets_no_other_begin(grid, tmp_path, monkeypatch):
    monkeypatch.setattr(sweep, "LANES", 8)
    members = sweep.read(grid)

    def stop(done, _row):
        if done == 9 * 8:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted, match="run the same command again to go on"):
        sweep.run(members, tmp_path / "cut", stop)
    assert len(list((tmp_path / "cut").glob("*/result.json"))) == 8
    assert len(sweep.run(members, tmp_path / "cut")) == len(members)


@pytest.mark.parametrize("file", ["result.json", "rounds.jsonl"])
def test_an_edited_run_gets_no_seal_and_its_directory_is_the_way_out(grid, tmp_path, file):
    members = sweep.read(grid)
    whole = sweep.run(members, tmp_path / "out")
    lost = tmp_path / "out" / members[3].name
    if file == "result.json":
        (lost / file).write_text(json.dumps(json.loads((lost / file).read_text()) | {"test_error": 0.001}))
    else:
        (lost / file).write_text("".join((lost / file).read_text().splitlines(keepends=True)[:-1]))
    with pytest.raises(RunDirectoryError, match=f"run {lost.name} again: tacit train --resume {lost}"):
        sweep.run(members, tmp_path / "out")
    shutil.rmtree(lost)
    assert sweep.run(members, tmp_path / "out")[3]["objective"] == pytest.approx(whole[3]["objective"], rel=1e-5)


def test_a_run_that_diverges_is_recorded_and_the_others_go_on(grid, tmp_path, capsys):
    text = grid.read_text().replace("epsilon = [0.5, 2]", "epsilon = 2").replace('["objt", "objp", "outp"]', '"objt"')
    grid.write_text(text + '[schedule]\nrho = "static"\nrho_static = [1.0, 1e-300]\nradius_a = 1e300\n')
    assert main(["sweep", "--config", str(grid), "-qq"]) == 0
    assert capsys.readouterr().out.count("diverged in round") == 2
    records = [json.loads(line) for line in (tmp_path / "runs/grid/records.jsonl").read_text().splitlines()]
    assert [("diverged" in record, record["schedule.rho_static"]) for record in records] == [
        (False, 1.0), (True, 1e-300), (False, 1.0), (True, 1e-300),
    ]  # fmt: skip


def test_a_directory_of_another_grid_is_refused(grid, tmp_path):
    sweep.run(sweep.read(grid), tmp_path / "out")
    grid.write_text(grid.read_text().replace("rounds = 9", "rounds = 8"))
    with pytest.raises(RunDirectoryError, match="another specification"):
        sweep.run(sweep.read(grid), tmp_path / "out")


@pytest.mark.parametrize(("old", "new", "says"), [
    ("[0, 1]", "[]", "empty list"),
    ("[0, 1]", "[1, 1]", "same value twice"),
    ("epsilon", "epsilonn", "did you mean"),
    ('"objp"', '"objx"', "unknown method"),
])  # fmt: skip
def test_a_bad_grid_is_refused_before_anything_runs(grid, tmp_path, old, new, says):
    grid.write_text(grid.read_text().replace(old, new))
    with pytest.raises(SpecError, match=says):
        sweep.read(grid)
    assert main(["sweep", "--config", str(grid)]) == 2
    assert not (tmp_path / "runs").exists()


def test_plan_lists_and_info_says(grid, capsys):
    assert main(["sweep", "--config", str(grid), "--plan"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 12
    assert main(["info", "--json"]) == 0
    assert json.loads(capsys.readouterr().out).keys() >= {"tacit", "numpy", "blas", "kernels", "threads"}
