"""LEAF's JSON directories (FEMNIST and its like): one agent for each user with training records.

    directory/train/*.json[.gz]    {"users": [u, ...], "num_samples": [n, ...],
    directory/test/*.json[.gz]      "user_data": {u: {"x": [[float, ...], ...], "y": [int, ...]}}}

The test set pools every user of test/, strangers without training records too unless they are left out.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tacit.data import leaf_heads
from tacit.data.classes import without_unknown
from tacit.data.outcome import LabelReader
from tacit.data.owner import tell_owner, unknown_labels
from tacit.data.share import ALONE, Share
from tacit.data.spec import DataSpec
from tacit.errors import DataError, IncompatibleError
from tacit.types import Federation, Shard

SMALLEST = 8  # pixels of a side: fewer are hardly an image


def load(spec: DataSpec, share: Share = ALONE) -> Federation:
    """Load the federation of a LEAF directory, or the share of this process.

    `invert` takes x to 1 - x: LEAF keeps white as 1, so ink becomes the non-zero part. It is for grey levels:
    a feature outside [0, 1] is refused, so [0, 1] is a public bound of every feature.
    `dedup` gives each record once: LEAF's preprocessing stores one image of almost every writer twice, and
    sometimes one copy in train and one in test. Repeats within a user's training records are dropped, and so
    are training records that the same user has in test.
    `strangers` are users of test/ without training records: false tests on the others alone.
    `class_count` is public where it is given (62 for FEMNIST): a record of any other label then counts as absent. Else
    the number of classes is 1 + the largest label.
    `bounds` declares the range of features that are not inverted; nothing is read from the data in its place.
    """
    if spec.agents is not None or spec.partition is not None:
        raise DataError(f"{spec.source} already names its agents, one a user: drop agents and partition.")
    if spec.invert and spec.bounds is not None:
        todo = "drop the bounds (data.low, data.high), or data.invert = false."
        raise IncompatibleError(f"inverted features lie in [0, 1]: {todo}")
    root = Path(spec.source)
    wanted = None if share.alone else leaf_heads.users_of(root / "train", share)
    train = _read(root / "train", spec, wanted)
    others = wanted if spec.dedup else set()
    test = _read(root / "test", spec, None if share.leads else others)
    if spec.dedup:
        train = {user: _once(shard, test.get(user)) for user, shard in train.items()}
        train = {user: shard for user, shard in train.items() if len(shard)}
    trains = _facts_of_all(train, share)
    if not trains:
        raise DataError(f"{root / 'train'} has no user with records: check the directory.")
    if not share.leads:
        test = {}
    elif not spec.strangers:
        test = {user: shard for user, shard in test.items() if user in trains}
        if not test:
            raise DataError(f"{root}: no user of test/ trains, so without strangers there is no test: drop strangers.")
    members = [*trains.items(), *_facts_of_all(test, share).items()]
    n_features = _count_features(root, members)
    n_classes = _count_classes(root, members) if spec.class_count is None else spec.class_count
    shards = [train.get(user) or Shard.elsewhere(known.n_records, n_features) for user, known in trains.items()]
    number = {user: p for p, user in enumerate(trains)}  # strangers have none
    owners = [np.full(len(shard), number.get(user, -1)) for user, shard in test.items()]
    pooled = replace(_pool(test.values(), n_features), owners=np.concatenate([np.empty(0, np.int64), *owners]))
    *known, in_test = (shard.y >= 0 for shard in (*shards, pooled))
    *shards, pooled = (replace(shard, y=shard.y.clip(0)) if shard.here else shard for shard in (*shards, pooled))
    federation = Federation(
        tuple(shards), pooled, n_classes, root.resolve().name, agents=tuple(trains),
        bounds=(0.0, 1.0) if spec.invert else spec.bounds, image=_image(n_features) if spec.invert else None,
        public_classes=spec.class_count is not None,
    )  # fmt: skip
    if not federation.public_classes:
        return federation
    tell_owner(unknown_labels(federation, known, in_test, LabelReader(federation.classes).unknown))
    return without_unknown(federation, known, in_test)


@dataclass(frozen=True)
class _Facts:
    """What all processes know of a user whose records one of them holds."""

    n_records: int
    n_features: int
    smallest: int  # label
    largest: int


def _facts_of_all(users: Mapping[str, Shard], share: Share) -> dict[str, _Facts]:
    """Return the facts of the users of all processes, in their order."""
    own = {user: (*map(int, shard.x.shape), int(shard.y.min()), int(shard.y.max())) for user, shard in users.items()}
    return {user: _Facts(*told) for each in share.together(own) for user, told in each.items()}


def _count_features(root: Path, members: Sequence[tuple[str, _Facts]]) -> int:
    """Return the number of features, which must be the same for all users."""
    first, n_features = members[0][0], members[0][1].n_features
    for user, known in members:
        if known.n_features != n_features:
            found = f"user {user!r} has {known.n_features} features where {first!r} has {n_features}"
            raise DataError(f"{root}: {found}: every record needs the same.")
    return n_features


def _count_classes(root: Path, members: Sequence[tuple[str, _Facts]]) -> int:
    """Return 1 + the largest label, which must not be a label that no count of classes explains."""
    for user, known in members:
        if known.smallest < 0:
            raise DataError(f"{root}, user {user!r} has a negative label: labels must be >= 0. Check the file.")
    largest, n_records = max(known.largest for _, known in members), sum(known.n_records for _, known in members)
    if largest >= n_records:
        raise DataError(
            f"{root}: the largest label would mean more classes than the {n_records} records: encode labels as 0..K-1, "
            "or say how many classes there are (data.class_count)."
        )
    return 1 + largest


def _image(n_features: int) -> tuple[int, int, int] | None:
    """Return the shape of a square of grey levels with this many pixels, None where there is none."""
    side = math.isqrt(n_features)
    return (side, side, 1) if side >= SMALLEST and side * side == n_features else None


def _read(folder: Path, spec: DataSpec, wanted: Collection[str] | None = None) -> dict[str, Shard]:
    """Read user -> records, users in the order of the files; a user with records in two files gets both.

    Of some users that are wanted, only their files are parsed.
    """
    users: dict[str, Shard] = {}
    for path in leaf_heads.files(folder):
        if wanted is not None and not {*leaf_heads.counts(path)} & {*wanted}:
            continue
        content = leaf_heads.parse(path)
        for user, count in zip(content["users"], content["num_samples"], strict=True):
            if wanted is not None and user not in wanted:
                continue
            try:
                shard = _shard(content["user_data"][user], count, spec)
                if shard is not None:
                    users[user] = _pool([users[user], shard], shard.x.shape[1]) if user in users else shard
            except (KeyError, TypeError, ValueError, DataError) as error:
                reason = f"{error} is missing" if isinstance(error, KeyError) else str(error).rstrip(".")
                raise DataError(f"{path}, user {user!r}: {reason}. Check the file.") from error
    return users


def _shard(records: Any, count: int, spec: DataSpec) -> Shard | None:
    """Return the records of one user, None where there are none."""
    if not len(records["x"]) == len(records["y"]) == count:
        raise ValueError(f"{len(records['x'])} x and {len(records['y'])} y where num_samples says {count}")
    if not count:
        return None
    classes = spec.class_count
    labels = records["y"] if classes is None else [_class_number(label, classes) for label in records["y"]]
    with np.errstate(over="ignore"):  # beyond float32 becomes inf, which Shard refuses
        shard = Shard(records["x"], np.array(labels))
    if not spec.invert:
        return shard
    if shard.x.size and (shard.x.min() < 0 or shard.x.max() > 1):
        raise ValueError("features outside [0, 1] cannot be inverted to 1 - x; set invert to false (data.invert)")
    return Shard(1 - shard.x, shard.y)


def _class_number(label: Any, class_count: int) -> int:
    """Return the class that a label of any kind names, -1 where the label is no whole number from 0 to K-1."""
    return int(label) if type(label) in (int, float) and 0 <= label < class_count and label % 1 == 0 else -1


def _once(train: Shard, test: Shard | None) -> Shard:
    """Return the training records without repeats, and without those of the same user's test records."""
    first: dict[tuple[bytes, int], int] = {}
    for i, key in enumerate(_keys(train)):
        first.setdefault(key, i)
    tested = set() if test is None else set(_keys(test))
    return train.rows([i for key, i in first.items() if key not in tested])


def _keys(shard: Shard) -> list[tuple[bytes, int]]:
    """Return for each record what tells it from another."""
    return [(x.tobytes(), int(y)) for x, y in zip(shard.x, shard.y, strict=True)]


def _pool(shards: Iterable[Shard], n_features: int) -> Shard:
    """Put the records of some shards, perhaps none, under one another."""
    all_of = [Shard(np.empty((0, n_features)), np.empty(0, np.int64)), *shards]
    return Shard(np.concatenate([shard.x for shard in all_of]), np.concatenate([shard.y for shard in all_of]))
