"""Data in, a `Federation` out: `load` takes a name or a path.

    "mnist"                  the digits shipped with tacit
    "synthetic"              drawn from a softmax model
    a LEAF directory         train/ and test/ folders of JSON, one agent a user
    a table                  one .csv, .parquet or .npz, with an agent column or cut into agents
    a directory of tables    one file an agent, or files with an agent column
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tacit.errors import DataError, IncompatibleError, InputError, unknown
from tacit.types import Array, Federation, is_unicode

__all__ = ["is_leaf", "load"]

_BOUNDS = "bounds (data.low, data.high)"
_CLASSES = "class_names (--classes)"
_ONLY_FOR = {
    "test": ("tables",),
    _CLASSES: ("tables",),
    "schema": ("tables",),
    _BOUNDS: ("tables", "LEAF"),
    "class_count": ("LEAF",),
}
_INSTEAD = {
    (_CLASSES, "LEAF"): ": say how many classes there are (data.class_count)",
    ("class_count", "tables"): ": name the classes (--classes or --schema)",
}


def load(
    source: str,
    *,
    agents: int | None = None,
    partition: str | None = None,
    alpha: float = 0.5,
    seed: int = 0,
    test: str | None = None,
    test_fraction: float = 0.2,
    label_column: str = "label",
    agent_column: str = "agent",
    class_names: Sequence[str] | None = None,
    bounds: tuple[float, float] | None = None,
    schema: str | Path | None = None,
    invert: bool = True,
    dedup: bool = False,
    strangers: bool = True,
    class_count: int | None = None,
    records: int = 2000,
    features: int = 20,
    classes: int = 3,
) -> Federation:
    """The federation called `source`.

    agents, partition, alpha    how to cut records that name no agents: "contiguous", "shuffled", "dirichlet"
                                (label skew alpha) or "unequal", drawn from `seed`
    test, test_fraction         tables: a separate test table, or the share of each agent's records held out
    label_column, agent_column  tables: the two columns that are no features
    class_names                 tables: the classes in order, else the labels found, sorted. A record of another label
                                then counts as absent in its place: its features are zero
    bounds                      tables, LEAF without invert: the public range of every feature, never read from the
                                data; numbers of a table that lie outside are moved to its end
    schema                      tables: a schema.toml (`tacit.data.schema`) in place of the four above: text and
                                categories are encoded, numbers scaled to [0, 1] and clipped
    invert, dedup, strangers    LEAF: x -> 1 - x, each record once, and test on users that do not train too
    class_count                 LEAF: the public number of classes, else 1 + the largest label
    records, features, classes  synthetic: its sizes
    """
    for given in (source, test, schema):
        _check_path(given)
    path = Path(source)
    options = {"test": test, _CLASSES: class_names, "schema": schema, _BOUNDS: bounds, "class_count": class_count}
    n_agents = 10 if agents is None else agents  # mnist and synthetic; the paper has ten for MNIST
    if source == "synthetic":
        _refuse(options, "synthetic data")
        federation = _synthetic(n_agents, partition, alpha, seed, (records, features, classes))
    elif source == "mnist":
        _refuse(options, "MNIST")
        federation = _mnist(n_agents, partition or "contiguous", alpha, seed)
    elif not path.exists():
        raise _absent(source)
    elif is_leaf(source):
        _refuse(options, "LEAF")
        if agents is not None or partition is not None:
            raise DataError(f"{source} already names its agents, one a user: drop agents and partition.")
        from tacit.data import leaf

        federation = leaf.load(
            path, invert=invert, dedup=dedup, strangers=strangers, n_classes=class_count, bounds=bounds
        )
    else:
        _refuse(options, "tables")
        from tacit.data import federate
        from tacit.data.schema import read as read_schema

        federation = federate.load(
            path,
            agents=agents,
            partition=partition,
            alpha=alpha,
            seed=seed,
            test=test,
            test_fraction=test_fraction,
            label_column=label_column,
            agent_column=agent_column,
            classes=class_names,
            bounds=bounds,
            schema=None if schema is None else read_schema(schema),
        )
    if not federation.public_classes and len({k for shard in federation.shards for k in shard.y.tolist()}) < 2:
        raise DataError(f"every training record of {source} has one label: a classifier needs two classes.")
    return federation


def _mnist(n_agents: int, partition: str, alpha: float, seed: int) -> Federation:
    from tacit.data import mnist
    from tacit.data.partition import by_name

    train, test = mnist.load()
    parts = by_name(partition, train.y, n_agents, seed, alpha)
    return _deal(Federation((train,), test, 10, name="mnist", bounds=(0.0, 1.0)), parts)


def _synthetic(
    n_agents: int, partition: str | None, alpha: float, seed: int, sizes: tuple[int, int, int]
) -> Federation:
    from tacit.data import synthetic
    from tacit.data.partition import by_name

    if partition is None:
        return synthetic.make(n_agents, *sizes, seed=seed)
    pooled = synthetic.make(1, *sizes, seed=seed)
    return _deal(pooled, by_name(partition, pooled.shards[0].y, n_agents, seed, alpha))


def _deal(pooled: Federation, parts: Sequence[Array]) -> Federation:
    """The records of a federation of one, dealt out."""
    (everything,) = pooled.shards
    # parts are sorted: a run of neighbours can be a view, which spares a copy of all of MNIST
    rows = [slice(part[0], part[-1] + 1) if part[-1] - part[0] < len(part) else part for part in parts]
    return replace(pooled, shards=tuple(map(everything.rows, rows)), agents=())


def is_leaf(source: str) -> bool:
    """Whether `source` names a LEAF directory: a folder, and no name of ours, with JSON in train/ and test/."""
    path = Path(source)
    ours = source in ("mnist", "synthetic")
    return not ours and path.is_dir() and all(any((path / part).glob("*.json*")) for part in ("train", "test"))


def _absent(source: str) -> InputError:
    path = Path(source)
    if path.name == source and not path.suffix:
        return unknown("data source", source, ["mnist", "synthetic", "a file or directory that exists"])
    return DataError(f"{source} does not exist: check the path, it is taken from the current directory.")


def _check_path(path: str | Path | None) -> None:
    """Refuse a name that no UTF-8 file, the spec and the report of a run among them, can hold."""
    if path is not None and not is_unicode(str(path)):
        raise DataError(f"the name {str(path)!r} is not UTF-8: rename the file or folder.")


def _refuse(options: dict[str, Any], source: str) -> None:
    """Refuse an option that was given and is for other sources."""
    for name, value in options.items():
        if value is not None and source not in _ONLY_FOR[name]:
            kinds, advice = " and ".join(_ONLY_FOR[name]), _INSTEAD.get((name, source), ", which says its own: drop it")
            raise IncompatibleError(f"{name} is for {kinds}, and this is {source}{advice}.")
