"""The yardsticks of benchmarks/ measure what they say."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks import deployed, growth, imports, instances, masks, mpi, report, tables
from benchmarks.__main__ import main
from benchmarks.before import HERE, Before, NotACheckout, Worker, checkout, workers
from benchmarks.contenders import Rounds, compare, contenders
from benchmarks.instances import FEMNIST_SPEC, SPEC, pixels
from benchmarks.interleave import OwnClock, interleaved, ratio, summary
from benchmarks.machine import Read
from benchmarks.naive import Naive
from benchmarks.roofline import work

from tacit.data import load
from tacit.engine.kernels import compiled
from tacit.engine.passes import Blas, Compiled, Form, Layout, row_norms
from tacit.run.build import setup
from tacit.types import Norm
from tests.conftest import federation

FACTS = dict.fromkeys(("cpu", "cores", "load_at_start", "system", "python", "numpy", "blas", "kernels"), "x")
STARTUP = {"python": 0.1, "import_tacit": 0.2, "tacit_help": 0.3}

needs_kernels = pytest.mark.skipif(compiled() is None, reason="the compiled loops are not built")


@pytest.mark.parametrize("spec", [SPEC, FEMNIST_SPEC])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_naive_rounds_without_noise_are_those_of_the_plain_engine(spec: Any, dtype: Any) -> None:
    own = setup(spec.with_values({"privacy.epsilon": float("inf"), "schedule.radius_a": 0.05}), federation())
    naive, plain = Naive(own, dtype), Rounds("plain", [own])
    for _ in range(5):
        naive()
        plain()
        np.testing.assert_allclose(naive.w, plain.states[0].w, rtol=0, atol=1e-6)
    saved = plain.engine.save(0)
    assert np.abs(saved["z"]).max() > 0.01
    np.testing.assert_allclose(naive.z, saved["z"], rtol=0, atol=1e-6)
    np.testing.assert_allclose(naive.dual, saved["dual"], rtol=0, atol=1e-6)


def test_the_naive_noise_has_the_scale_of_the_plain_engine() -> None:
    own = setup(SPEC, pixels(2, 20, 100, 10, density=0.3))
    naive = Naive(own)
    silent = Naive(setup(SPEC.with_values({"privacy.epsilon": float("inf")}), pixels(2, 20, 100, 10, density=0.3)))
    noise = naive.noisy_gradient(0) - silent.noisy_gradient(0)
    _, bound = own.agents[0].gradient(np.zeros(own.shape), np.zeros(own.shape))
    assert np.abs(noise).mean() == pytest.approx(own.agents[0].calibration * bound, rel=0.2)


def test_contenders_take_turns_and_ratios_pair_them() -> None:
    played: list[str] = []
    turns = interleaved({"a": lambda: played.append("a"), "b": lambda: played.append("b")}, 0, 3, turn=0)
    assert "".join(played) == "ababbaab"  # a warm-up and three repetitions
    assert {len(own) for own in turns.values()} == {3}
    pairs = {"slow": [(8.0, 4.0), (80.0, 4.0), (4.0, 4.0)], "fast": [(2.0, 1.0), (20.0, 1.0), (0.5, 1.0)]}
    assert summary(pairs, {"slow": 1, "fast": 10}, "slow")["fast"]["ratio"] == 40


def test_a_contender_with_a_clock_of_its_own_is_not_timed_from_here() -> None:
    class Elsewhere(OwnClock):
        def turn(self, seconds: float) -> tuple[float, float]:
            return 5.0 + seconds, 7.0

    turns = interleaved({"here": lambda: None, "there": Elsewhere()}, 0, 3, turn=0.001)
    assert turns["there"] == [(5.001, 7.0)] * 3
    assert ratio(turns, {"here": 1, "there": 10}, "there", "there") == {"ratio": 1.0, "quartiles": [1.0, 1.0]}
    assert all(wall < 1 for wall, _ in turns["here"])


@needs_kernels
def test_another_checkout_plays_with_its_own_tacit_over_the_same_records(tmp_path: Path) -> None:
    (tmp_path / "benchmarks").mkdir()
    shutil.copytree(HERE / "src" / "tacit", tmp_path / "src" / "tacit", ignore=shutil.ignore_patterns("_mnist"))
    # this older benchmarks plays one thing: it says how many records it got, and whose tacit it runs
    (tmp_path / "benchmarks" / "__init__.py").write_text("")
    (tmp_path / "benchmarks" / "contenders.py").write_text(
        "import tacit\n"
        "class Rounds:\n"
        "    def __init__(self, path): self.path = path\n"
        "    def __call__(self): pass\n"
        "def fast(spec, over, runs):\n"
        "    total = sum(float(shard.x.sum()) for shard in over.shards)\n"
        "    return Rounds(f'{over.n_agents} {total:.3f} {spec.privacy.epsilon} {runs} {tacit.__file__}')\n"
    )
    over = pixels(3, 60, 20, 4, density=0.2)
    with Worker(checkout(str(tmp_path)), SPEC, over) as worker:
        player = Before(worker, 10)
        wall, cpu = player.turn(0)
        assert wall >= 0
        assert cpu >= 0
    total = sum(float(shard.x.sum()) for shard in over.shards)
    path = tmp_path.resolve() / "src" / "tacit" / "__init__.py"
    assert player.path == f"3 {total:.3f} {SPEC.privacy.epsilon} 10 {path}"
    assert worker.process.returncode == 0  # it ended by itself


@needs_kernels
def test_before_is_compared_with_this_checkout_in_a_process_of_its_own() -> None:
    over = pixels(3, 60, 20, 4, density=0.2)
    with workers(HERE, SPEC, over) as apart:
        players = contenders(SPEC, over, ("naive", "fast", "fast10"), apart)
        found = compare(players, over, seconds=0)
    assert set(found["before"]) == {"fast", "fast10"}
    assert all(0.05 < own["ratio"] < 20 for own in found["before"].values())
    assert found["path"]["before10"] == found["path"]["now10"] == found["path"]["fast10"]
    results = {"before": "abc", "instances": {"mnist": found}, "machine": FACTS, "startup": STARTUP}
    assert "Against commit abc" in report.markdown(results)
    assert "| before / this |" in report.markdown(results)


def test_a_directory_without_a_built_checkout_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(NotACheckout, match="src/tacit"):
        checkout(str(tmp_path))
    (tmp_path / "src" / "tacit" / "engine").mkdir(parents=True)
    (tmp_path / "benchmarks").mkdir()
    for name in ("src/tacit/__init__.py", "benchmarks/contenders.py"):
        (tmp_path / name).touch()
    with pytest.raises(NotACheckout, match="build_ext"):
        checkout(str(tmp_path))
    with pytest.raises(SystemExit, match="2"):
        main(["--quick", "--before", str(tmp_path)])
    assert "build_ext" in capsys.readouterr().err


def test_a_checkout_that_cannot_play_says_why_and_leaves_no_process(tmp_path: Path) -> None:
    (tmp_path / "src" / "tacit").mkdir(parents=True)
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "src" / "tacit" / "__init__.py").touch()
    (tmp_path / "benchmarks" / "__init__.py").touch()
    (tmp_path / "benchmarks" / "contenders.py").write_text("raise RuntimeError('too old')\n")
    with pytest.raises(NotACheckout, match="too old"):
        Worker(tmp_path, SPEC, pixels(2, 20, 5, 4, density=0.5))


def test_a_dense_instance_is_held_against_one_reading_of_its_records() -> None:
    over = pixels(2, 40, 20, 4, density=1.0)
    assert all((shard.x > 0).all() for shard in over.shards)
    found = compare(contenders(SPEC, over, ("naive", "fast", "read")), over, seconds=0)
    best = found["contenders"]["fast"]["best_ms"] / found["contenders"]["read"]["best_ms"]
    assert found["over_read"]["best"] == pytest.approx(best, rel=0.02)
    results = {"instances": {"dense392": found}, "machine": FACTS, "startup": STARTUP}
    assert "one reading of its records" in report.markdown(results)


def test_reading_touches_every_number_once_whatever_the_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.machine.PART", 7)
    arrays = [np.ones((3, 5), np.float32), np.ones((1, 2), np.float32)]
    read = Read(arrays, seconds=0.01)
    assert sum(part.size for part in read.parts) == 17
    assert max(part.size for part in read.parts) <= 7
    assert sum(sum(own) for own in read._spread(np.sum)) == 17  # type: ignore[misc]


def test_dense_instances_have_the_sizes_they_say(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[object, ...]] = []
    monkeypatch.setattr(instances, "pixels", lambda *size, density: made.append((*size, density)))
    for name in instances.DENSE:
        instances.dense(name)
    assert made[0] == (10, 60_000, 392, 10, 1.0)
    assert [(records, columns) for _, records, columns, *_ in made[1:]] == [
        (1_000_000, 30), (300_000, 100), (150_000, 200),
    ]  # fmt: skip
    assert set(instances.DENSE) <= set(report.TITLES)


def test_every_axis_of_growth_changes_one_quantity() -> None:
    for quantity, sizes in growth.AXES.values():
        at = [getattr(size, quantity) for size in sizes]
        assert at == sorted(set(at))
        changed = {name for size in sizes for name, value in vars(size).items() if value != vars(sizes[0])[name]}
        assert changed - {quantity} <= ({"records"} if quantity == "agents" else set())  # ten records an agent
    assert growth.AXES["agents"][1][-1].agents == 10**5


def test_pixels_have_the_size_and_the_density_asked_for() -> None:
    over = pixels(7, 500, 60, 4, density=0.25, ragged=True)
    assert (over.n_agents, over.n_records, over.n_features, over.n_classes) == (7, 500, 60, 4)
    assert np.mean([(shard.x > 0).mean() for shard in over.shards]) == pytest.approx(0.25, abs=0.03)
    assert len({len(shard) for shard in over.shards}) > 1


def test_every_contender_plays_and_names_its_path() -> None:
    over = pixels(3, 60, 20, 4, density=0.2)
    result = compare(contenders(SPEC, over, ("naive", "naive64", "plain", "fast", "fast10")), over, seconds=0)
    assert result["contenders"]["naive"]["ratio"] == 1
    assert all(own["wall_ms"] > 0 for own in result["contenders"].values())
    assert "gradient" in result["path"]["fast10"]


@needs_kernels
def test_the_roofline_counts_what_a_pass_multiplies() -> None:
    over = pixels(3, 60, 20, 4, density=0.2)
    engine = contenders(SPEC, over, ["fast"])["fast"].engine  # type: ignore[union-attr]
    x_norm = row_norms(over.shards, [Norm.L1])
    nonzero = sum(np.count_nonzero(shard.x) for shard in over.shards)
    for form, numbers in ((Form.TILED, nonzero), (Form.WHOLE, 60 * 20)):
        engine.gradients = Compiled(Layout(form), over.shards, x_norm, 4, 1, compiled())  # type: ignore[arg-type]
        assert work(engine)["flops"] == 2 * 2 * numbers * 4
        assert work(engine)["draws"] == 3 * 20 * 4
    assert work(engine)["data_bytes"] == 4 * 60 * 20  # whole rows are read once
    engine.gradients = Blas(over.shards, x_norm, 4)
    assert work(engine)["data_bytes"] == 2 * 4 * 60 * 20


def test_the_time_of_an_import_is_that_of_the_module_and_all_that_it_imports() -> None:
    told = "import time: self [us] | cumulative | imported package\nimport time:  215 |  1215 |   tacit.a\n"
    assert imports.cumulative(told + "import time:  500 |  24992 | tacit\n", "tacit") == pytest.approx(24.992)
    with pytest.raises(ValueError, match="does not name numpy"):
        imports.cumulative(told, "numpy")
    assert set(imports.measure(1)) == set(imports.STATEMENTS)


def test_the_slope_of_a_power_law_is_its_exponent() -> None:
    assert growth.slope([1, 10, 100], [3, 3 * 10**0.9, 3 * 100**0.9]) == pytest.approx(0.9)


def test_tables_replace_what_is_between_the_markers_and_nothing_else() -> None:
    over = pixels(2, 20, 20, 4, density=0.2)
    results = {
        "mnist_single": 21.0,
        "machine": FACTS,
        "instances": {"mnist": compare(contenders(SPEC, over, ("naive", "fast")), over, seconds=0)},
        "startup": STARTUP,
    }
    document = "before\n<!-- measured -->\nold\n<!-- /measured -->\nafter\n"
    written = report.insert(document, results)
    assert written.startswith("before\n<!-- measured -->\n")
    assert written.endswith("<!-- /measured -->\nafter\n")
    assert "old" not in written
    assert "21.0x" in written
    assert report.insert(written, results) == written


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_the_tables_that_are_read_have_the_size_asked_for(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"t.{kind}"
    {"csv": tables.write_csv, "parquet": tables.write_parquet}[kind](path, tables.TEXT_RECORDS + 5, 3)
    federation = load(str(path))
    assert federation.n_records + len(federation.test) == tables.TEXT_RECORDS + 5
    assert (federation.n_features, federation.n_agents, federation.n_classes) == (3, tables.AGENTS, tables.CLASSES)


def test_reading_is_timed_and_its_memory_seen(tmp_path: Path) -> None:
    tables.write_csv(tmp_path / "t.csv", 500, 3)
    own = tables.shards(str(tmp_path / "t.csv"))
    assert min(own[key] for key in ("seconds", "cpu_seconds", "round_ms")) > 0
    held, spent = tables.timed(lambda: np.ones(10_000_000))  # 80 MB
    assert spent["peak"] > 0.9 * held.nbytes


def test_what_was_measured_of_tables_is_written_as_a_table() -> None:
    who = {"seconds": 2.0, "cpu_seconds": 1.5, "mb_s": 150.0}
    ours = who | {"over_pyarrow": 0.7}
    csv = {"shards": ours, "pyarrow": who, "file_mb": 300.0, "peak_over_data": 1.6, "round_ms": 9.0}
    text = tables.markdown({"records": 10, "features": 3, "data_mb": 1.2, "times": 3, "csv": csv})
    assert "| csv, 300 MB | tacit, file to shards | 2.0 | 150.0 | 0.7 | 1.6 |" in text


def test_deployment_is_measured_against_the_same_run_simulated(capsys: pytest.CaptureFixture[str]) -> None:
    deployed.main(["--data", "synthetic", "--rounds", "2", "--repeat", "2", "--json"])
    found = json.loads(capsys.readouterr().out)
    ratios = [pair["deployed"] / pair["simulated"] for pair in found["pairs"]]
    assert len(ratios) == 2
    assert found["ratio"] == pytest.approx(sum(ratios) / 2)
    assert all(pair["ledgers_mb"] > 0.1 for pair in found["pairs"])  # ten agents, two entries each and more


def test_the_cost_model_of_ranks_adds_what_it_is_made_of() -> None:
    terms = {"latency": 1e-5, "per_byte": 1e-10, "agent": 1e-4, "record": 1e-6, "fold": 1e-5}
    rows = {(row["agents"], row["ranks"]): row for row in mpi.model(terms)}
    for row in rows.values():
        assert row["seconds"] == pytest.approx(row["compute"] + row["talk"] + row["fold"])
        assert 0 < row["efficiency"] <= 1
    alone = rows[10**4, 1]
    assert alone["compute"] == pytest.approx(10**4 * (1e-4 + mpi.RECORDS * 1e-6))
    assert alone["talk"] == 0
    assert rows[10**4, 64]["compute"] == pytest.approx(alone["compute"] / 64, rel=0.01)
    assert rows[10**6, 64]["talk"] < 100 * rows[10**4, 64]["talk"]  # blocks, not agents, are sent


def test_masks_are_timed_with_the_graph_and_with_all_pairs(capsys: pytest.CaptureFixture[str]) -> None:
    masks.main(["--agents", "3", "110", "--length", "4", "--colluding", "0.1", "--turns", "1"])
    rows = [line.split(" | ")[:3] for line in capsys.readouterr().out.splitlines()[2:]]
    assert rows == [["| 3", "0", "2"], ["| 110", "11", "38"], ["| 110", "11", "109"]]
