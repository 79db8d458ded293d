"""Federations, runs and models with a feature map: what is public stays public, and what was trained is predicted."""

from __future__ import annotations

import json
import warnings
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

import tacit
from tacit.cli import main
from tacit.data import synthetic
from tacit.errors import IncompatibleError, OwnerWarning, RunDirectoryError
from tacit.features.map import FeatureSpec, PublicFacts
from tacit.features.registry import chosen, name_of
from tacit.run import build, rules
from tacit.run.presets import preset
from tacit.types import Federation, Shard

SCHEMA = """
[columns.age]
kind = "numeric"
lo = 0
hi = 100
missing = "level"
[columns.smoker]
kind = "categorical"
values = ["no", "yes"]
[columns.hospital]
kind = "agent"
[columns.outcome]
kind = "label"
classes = ["well", "ill"]
"""


@pytest.fixture
def patients(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    lines = ["age,smoker,hospital,outcome"]
    for i in range(240):
        age = int(rng.integers(0, 100))
        ill = "ill" if abs(age - 50) > 25 else "well"
        lines.append(f"{age if i % 9 else ''},{['no', 'yes'][i % 2]},{'ab'[i % 2]},{'odd' if i == 7 else ill}")
    (tmp_path / "patients.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "schema.toml").write_text(SCHEMA)
    return tmp_path


def federation(patients: Path, **values: object) -> Federation:
    spec = preset("sound", "objt", str(patients / "patients.csv"))
    spec = spec.with_values({"data.schema": str(patients / "schema.toml"), "data.test_fraction": 0.0, **values})
    with pytest.warns(OwnerWarning):
        return build.federation(spec)


def test_an_absent_record_has_no_features_after_the_map(patients: Path) -> None:
    over = federation(patients)
    there = [shard.present for shard in over.shards if shard.present is not None]
    assert sum(int((~mask).sum()) for mask in there) == 1
    for shard in over.shards:
        size = np.linalg.norm(shard.x.astype(np.float64), axis=1)
        present = np.ones(len(shard), bool) if shard.present is None else shard.present
        np.testing.assert_allclose(size[present], 1, atol=1e-5)  # every column has norm one, the missing level too
        assert not shard.x[~present].any()


def test_records_pass_a_map_once(patients: Path) -> None:
    over = federation(patients)
    spec = preset("sound", "objt", "patients.csv")
    assert build.transformed(spec, over).checksum == over.checksum
    assert name_of(over.recipe) == "columns"
    with pytest.raises(IncompatibleError, match="columns already"):
        build.transformed(spec.with_values({"features.map": "fourier"}), over)
    assert over.inputs == ("age", "age=missing", "smoker=no", "smoker=yes")


def test_one_record_decides_nothing_about_another(patients: Path) -> None:
    """The map's constants follow from public numbers: a changed cell changes its own record, bit for bit."""
    first = federation(patients)
    text = (patients / "patients.csv").read_text().splitlines()
    text[5] = "1e300,nonsense,a,well"
    (patients / "patients.csv").write_text("\n".join(text) + "\n")
    second = federation(patients)
    assert first.recipe == second.recipe
    rows = [(p, i) for p, pair in enumerate(zip(first.shards, second.shards, strict=True))
            for i in range(len(pair[0])) if not np.array_equal(pair[0].x[i], pair[1].x[i])]  # fmt: skip
    assert len(rows) == 1


def test_predictions_are_those_that_were_measured(
    patients: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(patients)
    words = ["train", "--data", "patients.csv", "--schema", "schema.toml", "--test", "patients.csv", "--out", "run"]
    for map_of in ("auto", "none", "fourier", "unit"):
        out = f"run-{map_of}"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OwnerWarning)
            assert main([*words[:-1], out, "--features", map_of, "--epsilon", "8", "--seed", "0", "-q"]) == 0
        told = json.loads(Path(out, "result.json").read_text())
        capsys.readouterr()
        model = tacit.Model.read(out)
        guesses = model.predict("patients.csv")
        labels = [line.rpartition(",")[2] for line in Path("patients.csv").read_text().splitlines()[1:]]
        wrong = [guess != label for guess, label in zip(guesses, labels, strict=True) if label != "odd"]
        assert np.mean(wrong) == pytest.approx(told["test_error"], abs=1e-9)
    assert json.loads(Path("run-auto", "result.json").read_text())["test_error"] < 0.2  # a line cannot do that
    assert json.loads(Path("run-none", "result.json").read_text())["test_error"] > 0.3


def test_images_are_known_by_their_source_and_get_orientations() -> None:
    spec = preset("sound", "objt", "mnist")
    digits = tacit.load("mnist", agents=10)
    shards = tuple(shard.rows(slice(50)) for shard in digits.shards)
    small = replace(digits, shards=shards, test=digits.test.rows(slice(9)))
    mapped = build.transformed(spec, small)
    assert name_of(mapped.recipe) == "orientations"
    assert rules.spread(mapped)
    assert rules.spread(small)
    assert not rules.spread(federation_of_numbers())
    assert mapped.longest is not None
    assert mapped.longest[1] == 1.0


def federation_of_numbers() -> Federation:
    return synthetic.make(2, 50, 3, 2)


def test_a_model_with_a_function_of_ones_own_is_read_only_by_who_names_it(tmp_path: Path) -> None:
    spec = preset("sound", "objt").with_values({"features.map": "tests.features.mine:squares", "run.rounds": 2})
    result = tacit.train(spec, federation_of_numbers(), out=tmp_path / "run")
    assert "probed, not proved" in result.guarantee
    assert "probed, not proved" in result.summary["features"]
    with pytest.raises(RunDirectoryError, match="name it with --features"):
        tacit.Model.read(tmp_path / "run")
    model = tacit.Model.read(tmp_path / "run", features="tests.features.mine:squares")
    assert len(model.predict(np.zeros((4, 3), np.float32))) == 4


def test_the_rules_follow_public_numbers_alone() -> None:
    over = federation_of_numbers()
    spec = preset("sound", "objt", "x.csv")
    mapped = build.transformed(spec, over)
    other = replace(mapped, shards=tuple(Shard(shard.x[::-1] * 0, shard.y * 0) for shard in mapped.shards))
    ours, theirs = (build.setup(spec, one) for one in (mapped, other))
    assert ours.agents[0].variant == theirs.agents[0].variant  # type: ignore[union-attr]
    assert ours.rho == theirs.rho  # type: ignore[union-attr]
    assert ours.server.momentum == 0.9  # type: ignore[union-attr]


def test_the_clip_rises_as_noise_falls_and_steps_stay_stable() -> None:
    table = federation_of_numbers()
    clips = [rules.clip(noise, table) for noise in (1.0, 1e-3, 1e-4, 1e-5, 0.0)]
    assert clips == sorted(clips)
    assert (clips[0], clips[-1]) == (0.7, np.sqrt(2))
    problem = build.objective(preset("sound", "objt", "x.csv"), table)
    for momentum in (0.0, 0.5, 0.9, 0.99):
        step = rules.longest_step(table, problem, 1.0, momentum, rules.USUAL_ROUNDS) * (1 - momentum)
        assert step < 2 * (1 + momentum) / problem.loss.curvature


def test_the_number_of_waves_follows_from_records_and_columns() -> None:
    def waves(records: int, columns: int) -> int:
        found = chosen(FeatureSpec(map="columns"), PublicFacts(columns, records, bounds=(0.0, 1.0)))
        assert found is not None
        return int(json.loads(found[1])["waves"])

    assert [waves(n, 10) for n in (100, 2500, 10**4, 10**6)] == [4, 10, 20, 26]
    assert waves(10**5, 200) == 4
    assert waves(10**7, 30) == 1  # 2.4 GB, and not twenty


def test_no_record_ends_a_run_when_rows_are_scaled_to_the_same_norm(tmp_path: Path) -> None:
    """A spline has norm one at its knots and less between: scaled to norm one, its l1 norm grows beyond one."""
    (tmp_path / "schema.toml").write_text(
        '[columns.v]\nkind = "numeric"\nlo = 0\nhi = 1\nspline = 3\n[columns.y]\nkind = "label"\nclasses = ["0", "1"]\n'
    )
    for cell in ("0", "0.25", "0.2499"):
        lines = [f"{v},{i % 2}" for i, v in enumerate([cell, "1", "0.5"] * 4)]
        (tmp_path / "t.csv").write_text("\n".join(["v,y", *lines]))
        spec = preset("sound", "objt", str(tmp_path / "t.csv")).with_values({
            "data.schema": str(tmp_path / "schema.toml"), "data.agents": 2, "features.map": "none",
            "data.row_mode": "unit", "data.row_bound": 2.0,
        })  # fmt: skip
        assert build.federation(spec).longest is not None


def test_what_a_method_knows_is_what_its_task_says() -> None:
    spec = preset("sound", "fedgd", "x.csv")
    setup = build.setup(spec, build.transformed(spec, federation_of_numbers()))
    task = setup.hosted.task  # type: ignore[union-attr]
    known = {field.name: getattr(task, field.name) for field in fields(task.facts)}  # type: ignore[union-attr]
    assert {name: getattr(task.facts, name) for name in known} == known  # type: ignore[union-attr]
    assert task.facts.largest_step == 32.0
    assert setup.hosted.method.step <= 32.0  # type: ignore[union-attr]


def test_a_number_to_predict_has_rules_of_its_own() -> None:
    x = np.random.default_rng(0).random((60, 2)).astype(np.float32)
    shard = Shard(x, (2 * x[:, 0] - 1).astype(np.float64))
    over = Federation((shard, shard), shard, 1, "numbers", bounds=(0.0, 1.0), target=tacit.Target(0.0, 1.0))
    spec = preset("sound", "objt", "x.csv").with_values({"problem.loss": "squared"})
    setup = build.setup(spec, build.transformed(spec, over))
    assert setup.agents[0].variant.bound.value == rules.NUMBER_CLIP  # type: ignore[union-attr]
    assert rules.score_noise(over) == rules.NUMBER_NOISE
