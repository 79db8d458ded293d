"""The yardsticks of benchmarks/ measure what they say."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from benchmarks import deployed, growth, report
from benchmarks.contenders import Rounds, compare, contenders
from benchmarks.instances import FEMNIST_SPEC, SPEC, pixels
from benchmarks.interleave import interleaved, summary
from benchmarks.naive import Naive
from benchmarks.roofline import work

from tacit.engine.sums import Sparse
from tacit.run.build import setup
from tests.conftest import federation


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
    assert played == ["a", "b"] * 4  # a warm-up and three repetitions
    assert {len(own) for own in turns.values()} == {3}
    pairs = {"slow": [(8.0, 4.0), (80.0, 4.0), (4.0, 4.0)], "fast": [(2.0, 1.0), (20.0, 1.0), (0.5, 1.0)]}
    assert summary(pairs, {"slow": 1, "fast": 10}, "slow")["fast"]["ratio"] == 40


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


def test_the_roofline_counts_two_passes_over_the_non_zeros() -> None:
    over = pixels(3, 60, 20, 4, density=0.2)
    engine = contenders(SPEC, over, ["fast"])["fast"].engine  # type: ignore[union-attr]
    nonzero = sum(np.count_nonzero(shard.x) for shard in over.shards)
    entries = nonzero if isinstance(engine.gradients, Sparse) else 60 * 20
    assert work(engine)["flops"] == 2 * 2 * entries * 16
    assert work(engine)["draws"] == 3 * 20 * 4


def test_the_slope_of_a_power_law_is_its_exponent() -> None:
    assert growth.slope([1, 10, 100], [3, 3 * 10**0.9, 3 * 100**0.9]) == pytest.approx(0.9)


def test_the_crossover_lies_where_both_take_equal_time() -> None:
    assert growth.crossing([0.1, 0.2, 0.4], [4.0, 2.0, 0.5]) == pytest.approx(0.3)
    assert growth.crossing([0.1, 0.2], [4.0, 2.0]) is None


def test_tables_replace_what_is_between_the_markers_and_nothing_else() -> None:
    over = pixels(2, 20, 20, 4, density=0.2)
    facts = dict.fromkeys(("cpu", "cores", "load_at_start", "system", "python", "numpy", "blas", "kernels"), "x")
    results = {
        "mnist_single": 21.0,
        "machine": facts,
        "instances": {"mnist": compare(contenders(SPEC, over, ("naive", "fast")), over, seconds=0)},
        "startup": {"python": 0.1, "import_tacit": 0.2, "tacit_help": 0.3},
    }
    document = "before\n<!-- measured -->\nold\n<!-- /measured -->\nafter\n"
    written = report.insert(document, results)
    assert written.startswith("before\n<!-- measured -->\n")
    assert written.endswith("<!-- /measured -->\nafter\n")
    assert "old" not in written
    assert "21.0x" in written
    assert report.insert(written, results) == written


def test_deployment_is_measured_against_the_same_run_simulated(capsys: pytest.CaptureFixture[str]) -> None:
    deployed.main(["--data", "synthetic", "--rounds", "2", "--repeat", "2", "--json"])
    found = json.loads(capsys.readouterr().out)
    ratios = [pair["deployed"] / pair["simulated"] for pair in found["pairs"]]
    assert len(ratios) == 2
    assert found["ratio"] == pytest.approx(sum(ratios) / 2)
    assert all(pair["ledgers_mb"] > 0.1 for pair in found["pairs"])  # ten agents, two entries each and more
