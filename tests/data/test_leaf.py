"""LEAF directories: a hand-written one, and FEMNIST where it is at hand."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.data import leaf, load
from tacit.data.spec import DataSpec
from tacit.errors import DataError, IncompatibleError, OwnerWarning
from tacit.run import build
from tacit.run.spec import Spec
from tacit.types import Federation

FEMNIST = Path(__file__).parents[3] / "shared" / "data" / "femnist"

Users = dict[str, tuple[list[Any], list[Any]]]


def write(path: Path, users: Users, changes: dict[str, Any] | None = None) -> None:
    content = {
        "users": list(users),
        "num_samples": [len(y) for _, y in users.values()],
        "user_data": {user: {"x": x, "y": y} for user, (x, y) in users.items()},
        **(changes or {}),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(content).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)


def read(directory: Path, **keys: Any) -> Federation:
    """The federation of a LEAF directory, whether or not `load` takes it for one."""
    return leaf.load(DataSpec(str(directory), **keys))


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Users c (shard 2) and a, b (shard 10); a's first record is there twice, b's second is in test too."""
    root = tmp_path / "leaf"
    twice = [[0.25, 1.0], [0.25, 1.0], [0.25, 1.0]]
    write(root / "train/all_10_train.json", {"b": ([[0, 1], [1, 0]], [0, 1]), "a": (twice, [1, 1, 0])})
    write(root / "train/all_2_train.json.gz", {"c": ([[0.5, 0.5]], [2]), "empty": ([], [])})
    write(root / "test/all_2_test.json", {"c": ([[1, 1]], [0]), "stranger": ([[0, 0]], [1])})
    write(root / "test/all_10_test.json", {"b": ([[1, 0]], [1])})
    return root


def test_one_agent_a_user_by_shard_number_then_file_order(directory: Path) -> None:
    federation = read(directory)
    assert federation.agents == ("c", "b", "a")
    assert [len(shard) for shard in federation.shards] == [1, 2, 3]
    assert federation.n_classes == 3
    assert federation.bounds == (0.0, 1.0)
    assert federation.name == "leaf"


def test_the_test_set_pools_users_without_training_records_too(directory: Path) -> None:
    federation = read(directory, invert=False)
    assert federation.test.x.tolist() == [[1, 1], [0, 0], [1, 0]]
    assert federation.test.y.tolist() == [0, 1, 1]


def test_strangers_can_be_left_out_of_the_test_set(directory: Path) -> None:
    whole, own = (load(str(directory), invert=False, strangers=strangers) for strangers in (True, False))
    assert own.agents == whole.agents
    assert own.test.x.tolist() == [[1, 1], [1, 0]]  # c's and b's
    for path in (directory / "test").iterdir():
        path.unlink()
    write(directory / "test/all.json", {"stranger": ([[0, 0]], [1])})
    with pytest.raises(DataError, match="no user of test/ trains"):
        load(str(directory), strangers=False)


def test_invert_takes_x_to_one_minus_x(directory: Path) -> None:
    plain, inverted = read(directory, invert=False), read(directory)
    for a, b in zip(plain.shards, inverted.shards, strict=True):
        assert np.array_equal(1 - a.x, b.x)


def test_dedup_drops_repeats_and_what_the_user_has_in_test(directory: Path) -> None:
    federation = read(directory, dedup=True, invert=False)
    assert federation.agents == ("c", "b", "a")
    assert federation.shards[1].x.tolist() == [[0, 1]]  # (1, 0) is in b's test records
    assert federation.shards[2].y.tolist() == [1, 0]  # same x, other label: another record
    assert len(federation.test) == 3


def test_dedup_drops_an_agent_that_keeps_nothing(directory: Path) -> None:
    write(directory / "test/all_3_test.json", {"c": ([[0.5, 0.5]], [2])})
    assert read(directory, dedup=True).agents == ("b", "a")


def test_n_classes_may_be_more_than_the_labels_seen_and_with_fewer_the_rest_is_absent(directory: Path) -> None:
    assert read(directory, class_count=62).n_classes == 62
    with pytest.warns(OwnerWarning, match="1 record of agent 'c'"):
        assert read(directory, class_count=2).shards[0].x.tolist() == [[0, 0]]


def test_a_user_in_two_files_is_one_agent(directory: Path) -> None:
    write(directory / "train/all_11_train.json", {"c": ([[0, 0]], [0])})
    federation = read(directory)
    assert federation.agents == ("c", "b", "a")
    assert federation.shards[0].y.tolist() == [2, 0]


def test_bounds_follow_from_inverting_or_are_declared_and_never_read_from_the_data(directory: Path) -> None:
    assert read(directory).bounds == (0.0, 1.0)
    assert read(directory, invert=False).bounds is None  # though every feature happens to lie in [0, 1]
    assert load(str(directory), invert=False, bounds=(-1.0, 2.0)).bounds == (-1.0, 2.0)
    with pytest.raises(DataError, match="outside the declared bounds"):
        read(directory, invert=False, low=0.0, high=0.5)
    with pytest.raises(IncompatibleError, match="inverted features"):
        read(directory, low=0.0, high=1.0)


def test_features_outside_the_unit_box_cannot_be_inverted(directory: Path) -> None:
    write(directory / "test/all_3_test.json", {"d": ([[-3, 7]], [0])})
    with pytest.raises(DataError, match="set invert to false"):
        read(directory)


def test_the_number_of_classes_can_be_declared(directory: Path) -> None:
    assert load(str(directory), class_count=62).n_classes == 62
    spec = Spec().with_values({"data.source": str(directory), "data.class_count": 62})
    assert build.federation(spec).n_classes == 62
    with pytest.raises(IncompatibleError, match="class_count is for LEAF"):
        load("mnist", class_count=10)


def test_a_label_that_would_mean_more_classes_than_records_is_refused(directory: Path) -> None:
    write(directory / "train/all_3_train.json", {"d": ([[0, 0]], [10**7])})
    with pytest.raises(DataError, match="more classes than the 10 records"):
        read(directory)


@pytest.mark.parametrize(
    ("users", "message"),
    [
        ({"d": ([[0.1, 0.2], [0.1]], [0, 1])}, "'d'"),
        ({"d": ([[float("nan"), 0.2]], [0])}, "NaN or inf"),
        ({"d": ([[1e39, 0.2]], [0])}, "NaN or inf"),
        ({"d": ([["a", "b"]], [0])}, "'d'"),
        ({"d": (["a line of Hamlet"], ["t"])}, "'d'"),
        ({"d": ([[0.1, 0.2]], [0.5])}, "labels must be integers"),
        ({"d": ([[0.1, 0.2, 0.3]], [0])}, "3 features where 'c' has 2"),
        ({"d": ([[0.1, 0.2]], [-1])}, "a negative label: labels must be >= 0"),
        ({"d": ([[0.1, 0.2], [0.3, 0.4]], [1])}, "num_samples says 1"),
    ],
)
def test_records_that_cannot_be_used_are_named(directory: Path, users: Users, message: str) -> None:
    write(directory / "train/all_9_train.json", users)
    with pytest.raises(DataError, match=message) as error:
        read(directory)
    assert ".." not in str(error.value).replace("0..", "")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"users": ["d", "e"], "num_samples": [1, 1]}, "'e' is missing"),
        ({"num_samples": [1, 1]}, "differ in length"),
        ({"num_samples": [2]}, "num_samples says 2"),
        ({"user_data": []}, "not a LEAF file"),
        ({"user_data": {"d": {"x": [[0, 0]]}}}, "'y' is missing"),
    ],
)
def test_files_that_contradict_themselves_are_named(
    directory: Path, changes: dict[str, Any], message: str
) -> None:
    write(directory / "train/all_9_train.json", {"d": ([[0, 0]], [0])}, changes)
    with pytest.raises(DataError, match=message) as error:
        read(directory)
    assert "all_9_train.json" in str(error.value)


@pytest.mark.parametrize("name", ["all_9_train.json", "all_9_train.json.gz"])
@pytest.mark.parametrize(
    "content", [b'{"users": ["d"', b"", b"\xff\xfe", gzip.compress(b"{}" * 99)[:-9], b"[" * 200_000], ids=range(5)
)
def test_corrupt_files_are_refused(directory: Path, name: str, content: bytes) -> None:
    deep = content.startswith(b"[[") and name.endswith(".gz")
    (directory / "train" / name).write_bytes(gzip.compress(content) if deep else content)
    with pytest.raises(DataError, match="not readable JSON"):
        read(directory)


def test_a_directory_without_training_records_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no \*\.json"):
        read(tmp_path)
    write(tmp_path / "train/all_0.json", {"a": ([], [])})
    write(tmp_path / "test/all_0.json", {"a": ([[0]], [0])})
    with pytest.raises(DataError, match="no user with records"):
        read(tmp_path)


def test_load_finds_the_directory_and_refuses_what_it_brings_itself(directory: Path) -> None:
    assert load(str(directory), dedup=True).n_records == 4
    with pytest.raises(DataError, match="already names its agents"):
        load(str(directory), agents=2)
    with pytest.raises(IncompatibleError, match="test is for tables"):
        load(str(directory), test="other.csv")


def test_load_refuses_a_single_label(tmp_path: Path) -> None:
    write(tmp_path / "train/all_0.json", {"a": ([[0]], [1])})
    write(tmp_path / "test/all_0.json", {"a": ([[0]], [0])})
    with pytest.raises(DataError, match="two classes"):
        load(str(tmp_path))


@pytest.mark.skipif(not FEMNIST.is_dir(), reason="the FEMNIST sample is not here")
def test_femnist_has_the_counted_records() -> None:
    federation = read(FEMNIST)
    assert (federation.n_agents, federation.n_records, len(federation.test)) == (114, 15440, 4167)
    assert len(read(FEMNIST, strangers=False).test) == 1765
    assert (federation.n_features, federation.n_classes, federation.bounds) == (784, 62, (0.0, 1.0))


@pytest.mark.skipif(not FEMNIST.is_dir(), reason="the FEMNIST sample is not here")
def test_femnist_stores_one_image_a_writer_twice_and_dedup_once(tmp_path: Path) -> None:
    for part in ("train", "test"):  # two shards do, and load in a moment
        (tmp_path / part).mkdir()
        for path in FEMNIST.glob(f"{part}/all_data_[01]_*"):
            (tmp_path / part / path.name).symlink_to(path)
    twice, once = read(tmp_path), read(tmp_path, dedup=True)
    assert once.agents == twice.agents
    for before, after in zip(twice.shards, once.shards, strict=True):
        assert len({(x.tobytes(), int(y)) for x, y in zip(after.x, after.y, strict=True)}) == len(after)
        assert len(before) - len(after) in (0, 1)  # 0 where both copies are in test
    assert 0 < twice.n_records - once.n_records <= twice.n_agents
