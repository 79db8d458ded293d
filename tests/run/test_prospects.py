"""What public numbers say against a run, in Python and in the terminal alike."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tacit
from tacit import cli
from tacit.methods.promise import gaussian_releases
from tacit.privacy.budget import multiplier_of
from tacit.run.model_noise import TOO_NOISY, prospects
from tacit.types import Federation, Shard

EPSILON, DELTA = 1.0, 1e-6


def federation(*sizes: int, value: float = 0.1) -> Federation:
    """Agents with so many records each, all of one value."""
    shards = tuple(Shard(np.full((n, 2), value), np.arange(n) % 2) for n in sizes)
    return Federation(shards, Shard(np.zeros((0, 2)), np.zeros(0, int)), 2, "given", bounds=(0.0, 1.0))


def notes(*sizes: int, value: float = 0.1, **options: Any) -> tuple[str, ...]:
    chosen = {"epsilon": EPSILON, "dp_delta": DELTA, "rounds": 2, "seed": 0} | options
    return tacit.train(data=federation(*sizes, value=value), **chosen).notes


def test_the_noise_weighs_as_much_as_the_multiplier_of_the_budget_times_the_root_of_the_agents() -> None:
    least = multiplier_of(EPSILON, DELTA) / TOO_NOISY
    (said,) = notes(int(least))
    assert said.startswith(f"{int(least)} records at epsilon 1 are too few")
    assert notes(int(least) + 1) == ()
    most = int(least * 5**0.5 / 5)
    assert notes(*[most] * 5)[0].startswith(f"{5 * most} records of 5 agents at epsilon 1 are too few")
    assert notes(*[most + 1] * 5) == ()
    assert notes(int(least) + 1, adjacency="replace_one") != ()  # twice the noise


@pytest.mark.parametrize(("sizes", "fires"), [
    ([12], True), ([10] * 5, True), ([200] * 5, False), ([955] * 5, False), ([400], False), ([184, 235, 98], False),
])  # fmt: skip
def test_few_records_are_told_of_and_ordinary_runs_are_not(sizes: list[int], fires: bool) -> None:
    """50 records of five hospitals had an AUC of 0.54, 1000 of 0.70 and 4774 of 0.73; 12 records of one are chance."""
    assert [("too few" in note) for note in notes(*sizes)] == [True] * fires


@pytest.mark.filterwarnings("ignore::tacit.errors.NotPrivateWarning")
def test_an_agent_that_adds_more_noise_than_records_is_named() -> None:
    (said,) = notes(500, 500, 1)
    assert said.startswith("1 of 3 agents ('2') has 1 record, and every agent adds the same noise")
    assert f"weighs as much as {multiplier_of(EPSILON, DELTA):.2g} records" in said
    (said,) = notes(*[500] * 10, 4, 1, 2)
    assert said.startswith("3 of 13 agents ('10', '11', '12') have 4 records or fewer")
    assert notes(500, 500, 5) == ()
    assert notes(500, 500, 1, epsilon=20.0) == ()  # where one record outweighs the noise
    assert notes(500, 500, 1, trust="sum", values={"privacy.repetitions": 0}) == ()  # where agents share the noise
    assert notes(500, 500, 1, epsilon=float("inf")) == ()


def test_a_budget_that_no_gaussian_noise_keeps_ends_no_run() -> None:
    spec = tacit.preset("sound", "objt").with_values({"privacy.epsilon": 1e-13, "privacy.dp_delta": 1e-12})
    assert "weighs as much as inf records" in prospects(spec, federation(500), gaussian_releases(1.0))[0]


def test_notes_depend_on_public_numbers_alone() -> None:
    assert notes(10, 1) == notes(10, 1, value=0.9) != ()


def test_bundled_data_with_the_defaults_have_no_notes() -> None:
    heart = tacit.load("heart")
    test = Shard(np.zeros((0, 2)), np.zeros(0, int))
    mnist = Federation((Shard.elsewhere(6000, 2),) * 10, test, 2)  # the sizes are all that counts
    for over, source in ((heart, "heart"), (mnist, "mnist")):
        assert prospects(tacit.preset("sound", "objt", source), over, gaussian_releases(42.25)) == ()


def test_the_terminal_and_the_estimator_say_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("sklearn")
    x = np.random.default_rng(0).uniform(size=(12, 2)).round(3)
    agents = [f"h{i < 11:d}" for i in range(12)]
    rows = "".join(f"{a},{b},{i % 2},{agents[i]}\n" for i, (a, b) in enumerate(x))
    (tmp_path / "t.csv").write_text("u,v,label,agent\n" + rows)
    options = ["--data", str(tmp_path / "t.csv"), "--classes", "2", "--set", "data.test_fraction=0", "--rounds", "2"]
    assert cli.main(["train", *options, "--json", "--out", str(tmp_path / "a")]) == 0
    told = json.loads(capsys.readouterr().out)["notes"]
    assert [note.split(" at ")[0].split(" (")[0] for note in told] == ["12 records of 2 agents", "1 of 2 agents"]
    model = tacit.PrivateFederatedClassifier(classes=[0, 1], feature_bounds=(0, 1), rounds=2)
    model.fit(x, np.arange(12) % 2, agents=agents)
    assert model.notes_ == told
    assert cli.main(["train", *options, "--out", str(tmp_path / "b")]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert all(f"note {note}" in shown for note in told)
