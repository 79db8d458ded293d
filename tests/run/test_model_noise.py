"""The noise that a model is said to hold is the noise that seeds alone put into it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tacit.run import build
from tacit.run.model_noise import gathered_noise
from tacit.run.presets import preset
from tacit.run.spec import Spec
from tacit.run.train import train

pytestmark = pytest.mark.filterwarnings("ignore::tacit.errors.TacitWarning")
FEW = {"data.agents": 3, "data.records": 12, "data.features": 30, "run.rounds": 20}  # records: they hardly pull w back


def spec_of(algorithm: str, values: dict[str, Any], source: str = "sound") -> Spec:
    return preset(source, algorithm, "synthetic").with_values({**FEW, **values})


@pytest.mark.parametrize(("algorithm", "values"), [
    ("objt", {}), ("objp", {"schedule.step": 3.0}), ("objt", {"privacy.mechanism": "laplace"}),
    ("objt", {"privacy.trust": "sum"}),
])  # fmt: skip
def test_noise_of_the_stated_std_is_in_w_and_in_its_average(algorithm: str, values: dict[str, Any]) -> None:
    spec = spec_of(algorithm, values)
    federation = build.federation(spec)
    stated = gathered_noise(build.setup(spec, federation))
    results = [train(spec.with_values({"run.seed": seed})) for seed in range(8)]
    for said, found in zip(stated, ([r.w for r in results], [r.w_average for r in results]), strict=True):
        seen = math.sqrt(np.var(found, axis=0, ddof=1).mean())  # of 90 weights and eight seeds
        assert 0.85 * said < seen < 1.15 * said


def test_records_pull_the_noise_back() -> None:
    spec = spec_of("objt", {"data.records": 3000, "privacy.epsilon": 8.0})
    stated = gathered_noise(build.setup(spec, build.federation(spec)))
    found = [train(spec.with_values({"run.seed": seed})).w for seed in range(8)]
    assert math.sqrt(np.var(found, axis=0, ddof=1).mean()) < 1.05 * stated[0]


@pytest.mark.parametrize(("algorithm", "values", "source"), [
    ("objt", {}, "paper"), ("outp", {}, "released"), ("fedavg", {}, "sound"),
    ("objp", {"schedule.eta_a": 1.0}, "sound"),
])  # fmt: skip
def test_where_rounds_are_no_plain_steps_nothing_is_said(algorithm: str, values: dict[str, Any], source: str) -> None:
    spec = spec_of(algorithm, values, source)
    assert all(map(math.isnan, gathered_noise(build.setup(spec, build.federation(spec)))))


def test_without_noise_there_is_none() -> None:
    spec = spec_of("iadmm-trust", {})
    assert gathered_noise(build.setup(spec, build.federation(spec))) == (0, 0)
