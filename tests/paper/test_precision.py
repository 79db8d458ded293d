"""What float32 changes under the `paper` preset: OutP's allowance for it, and why ObjT's engines part."""

from __future__ import annotations

import math
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from benchmarks import rounding

from tacit.admm.rule import Prox
from tacit.cli import main
from tacit.engine.fast import FastEngine
from tacit.engine.plain import PlainEngine
from tacit.run import build
from tacit.run.presets import REMARKS, preset
from tacit.run.setup import Setup
from tests.conftest import federation

PAGE = (Path(__file__).parents[2] / "docs" / "reproduction.md").read_text(encoding="utf-8")
EARLY, LATE = 20, 150

pytestmark = pytest.mark.filterwarnings("ignore::tacit.errors.TacitWarning")


@lru_cache
def setup(name: str) -> Setup:
    over = federation(4, 12, 3, seed=1, sizes=(60,) * 4)
    return build.admm_setup(preset(name, "objt").with_values({"run.seed": 0}), over)


@lru_cache
def apart(name: str) -> dict[str, tuple[float, float]]:
    """Return how far from the plain engine the runs of benchmarks.rounding are, early and late."""
    exact, found = rounding.objt(setup(name), (EARLY, LATE))
    return {
        run: (rounding.distance(own[EARLY], exact[EARLY]), rounding.distance(own[LATE], exact[LATE]))
        for run, own in found.items()
    }


def changed(name: str) -> tuple[float, float]:
    (found,) = (distances for run, distances in apart(name).items() if run.startswith("no float32"))
    return found


def test_the_radius_of_the_text_amplifies_a_change_in_float64_and_a_constant_radius_damps_it() -> None:
    early, late = changed("paper")
    assert late > 100 * early
    early, late = changed("released")
    assert late < early


def test_fast_and_plain_agree_until_the_radius_binds_and_always_under_a_constant_radius() -> None:
    early, late = apart("paper")["the fast engine"]
    assert early < 2e-6
    assert late > 1e-4  # what the page states: who changes that changes the page
    assert apart("released")["the fast engine"][1] < 1e-5


def test_duals_in_float64_alone_would_not_bring_the_engines_together() -> None:
    for run in ("float32 duals", "float32 z"):
        assert apart("paper")[run][1] > 1e-4
    assert apart("released")["float32 z"][1] < 1e-8


def test_nearly_every_entry_moves_by_the_radius_and_what_is_left_of_the_radii_bounds_all_moves() -> None:
    own, z = setup("paper"), {}

    def keep(engine: PlainEngine, t: int) -> None:
        z[t] = np.stack([local.z for local in engine.locals[0]])

    found = rounding.seen(PlainEngine([own.agents], own.shape), own, (LATE,), keep)
    assert found[LATE].binding > 0.95
    assert np.mean(np.isclose(np.abs(z[LATE] - z[LATE - 1]), LATE**-2.0, rtol=1e-9)) > 0.95
    assert np.abs(z[LATE] - z[EARLY]).max() < 1 / EARLY  # the sum of 1/t^2 over all later rounds


@pytest.mark.parametrize("sizes", [(60,) * 4, (5, 40, 100, 7)], ids=["equal", "ragged"])
def test_outp_of_the_paper_preset_has_the_noise_the_bound_and_the_step_that_its_remark_states(sizes) -> None:
    over = federation(4, 12, 3, seed=1, sizes=sizes)
    own = build.admm_setup(preset("paper", "outp").with_values({"run.seed": 0}), over)
    c1 = math.sqrt(2) * math.sqrt(over.n_features)  # features in [0, 1]
    for agent, n in zip(own.agents, sizes, strict=True):
        mechanism, rule = agent.variant.mechanism, agent.variant.rule
        sigma = mechanism.multiplier * 2 * c1 / over.n_records
        assert agent.constant_bound == pytest.approx(c1 / (1 - 1e-5), rel=1e-12)
        assert agent.calibration * agent.constant_bound == pytest.approx(sigma * (1 + 1e-6 * n) / (1 - 1e-5), rel=1e-12)
        assert isinstance(rule, Prox)
        assert rule.eta.schedule.noise == pytest.approx(sigma / (1 - 1e-5), rel=1e-12)
        literal = rounding.without_allowance(agent)
        assert literal.calibration * literal.constant_bound == pytest.approx(sigma, rel=1e-12)
        assert literal.variant.rule.eta.schedule.noise == pytest.approx(sigma, rel=1e-12)


def test_the_page_and_the_keys_of_the_preset_state_the_allowance(capsys) -> None:
    remark = REMARKS["paper", "outp"]
    assert "(1 + 1e-06 I_p)" in remark
    assert "(1 - 1e-05)" in remark
    assert "eta" in remark
    assert remark in " ".join(PAGE.split())
    assert main(["train", "--preset", "paper", "--algorithm", "outp", "--keys"]) == 0
    assert f"# {remark}\n" in capsys.readouterr().out
    assert main(["train", "--preset", "paper", "--algorithm", "objp", "--keys"]) == 0
    assert remark not in capsys.readouterr().out


def test_the_benchmark_prints_a_line_for_each_run(capsys) -> None:
    assert rounding.main(["--records", "2", "--rounds", "2"]) == 0
    assert [line[:34].strip() for line in capsys.readouterr().out.splitlines()][1:6] == list(apart("paper"))
    assert rounding.main(["--allowance", "--records", "2", "--rounds", "2", "3"]) == 0
    assert "with the allowance" in capsys.readouterr().out
    for wrong in (["--rounds", "1"], ["--records", "0"]):
        with pytest.raises(SystemExit, match="2"):
            rounding.main(wrong)
    assert FastEngine([setup("paper").agents], setup("paper").shape).z.dtype == np.float32
