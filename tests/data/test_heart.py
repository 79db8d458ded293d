"""Heart: four hospitals, read by a schema of public numbers, shipped with its credit."""

from __future__ import annotations

from importlib import resources

import numpy as np
import pytest

from tacit.data import heart, load, schema
from tacit.data.encoded_table import count
from tacit.data.formats import read_raw
from tacit.errors import DataError, IncompatibleError
from tacit.run import build
from tacit.run.presets import preset

FOLDER = resources.files("tacit.data").joinpath("_heart")


def test_the_agents_are_the_four_hospitals_and_a_part_of_each_is_held_out() -> None:
    federation = load("heart")
    assert federation.name == "heart"
    assert dict(zip(federation.agents, map(len, federation.shards), strict=True)) == {
        "cleveland": 242, "hungarian": 235, "switzerland": 98, "va": 160,
    }  # fmt: skip
    assert len(federation.test) == 920 - federation.n_records
    assert federation.classes == ("healthy", "diseased")
    assert federation.public_classes
    assert federation.bounds == (0, 1)
    assert all(shard.present is None for shard in federation.shards)
    y = np.concatenate([*(shard.y for shard in federation.shards), federation.test.y])
    assert np.bincount(y).tolist() == [411, 509]


def test_the_split_follows_the_seed() -> None:
    one, same, other = (load("heart", seed=seed).test.x for seed in (0, 0, 1))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


def test_every_column_is_declared_with_a_reason_and_nothing_is_unknown() -> None:
    text = FOLDER.joinpath("schema.toml").read_text(encoding="utf-8")
    known = schema.parse(text)
    known.check_public()
    for name in known.columns:
        above = text.split(f"[columns.{name}]")[0].rstrip("\n").splitlines()[-1]
        assert above.startswith("# "), name
    with resources.as_file(FOLDER) as folder:
        counts = count(read_raw(folder / "heart.csv"), known)
    assert counts.records == 920
    assert all(tally.unknown == tally.unreadable == 0 for tally in counts.columns.values())
    assert counts.columns["chol"].missing == 202  # 172 of them are written as 0
    assert counts.columns["thal"].missing == 486
    assert sum(tally.clipped for tally in counts.columns.values()) < 0.01 * 920 * len(known.encoded)


def test_what_heart_says_itself_is_not_said_again() -> None:
    for options in ({"agents": 3}, {"partition": "shuffled"}, {"schema": "s.toml"}, {"class_names": ["a", "b"]}):
        with pytest.raises(IncompatibleError):
            load("heart", **options)  # type: ignore[arg-type]


def test_other_bytes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heart, "SHA256", "0" * 64)
    with pytest.raises(DataError, match="reinstall tacit"):
        load("heart")


def test_the_credit_is_beside_the_loader() -> None:
    assert "CC BY 4.0" in (heart.__doc__ or "")
    assert "10.24432/C52P4X" in (heart.__doc__ or "")


def test_its_columns_pass_the_feature_map_of_columns() -> None:
    spec = preset("sound", "objt", "heart").with_values({"features.map": "columns", "data.row_mode": "clip"})
    federation = build.federation(spec)
    columns = [one.column for one in federation.columns]
    assert columns == [*schema.parse(FOLDER.joinpath("schema.toml").read_text()).encoded, "intercept"]
    assert np.linalg.norm(federation.test.x, axis=1).max() <= 1
