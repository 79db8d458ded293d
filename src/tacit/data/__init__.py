"""Data in, a `Federation` out: `load` takes a name or a path.

    "mnist"                  the digits shipped with tacit
    "heart"                  patients of four hospitals, shipped with tacit
    "synthetic"              drawn from a softmax model
    a LEAF directory         train/ and test/ folders of JSON, one agent a user
    a table                  one .csv, .tsv (or .gz of these), .parquet or .npz, with an agent column or cut into agents
    a directory of tables    one file an agent, or files with an agent column

The way of a table: `formats` reads a file as a `RawTable`; `feature_table` makes a `FeatureTable` of it, and
`encoded_table` by a schema; `tables` deals its records to agents. Importing this package imports none of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tacit.arguments import check_bounds, path_text, two_numbers
from tacit.types import Federation

__all__ = ["is_leaf", "load"]


def load(
    source: str, *, agents: int | None = None, partition: str | None = None, alpha: float = 0.5, seed: int = 0,
    test: str | None = None, test_fraction: float = 0.2, label_column: str = "label", agent_column: str = "agent",
    class_names: Sequence[str] | None = None, target: tuple[float, float] | None = None,
    bounds: tuple[float, float] | None = None,
    schema: str | Path | None = None, invert: bool = True, dedup: bool = False, strangers: bool = True,
    class_count: int | None = None, records: int = 2000, features: int = 20, classes: int = 3,
) -> Federation:  # fmt: skip
    """Load the federation called `source`.

    agents, partition, alpha    how to cut records that name no agents: "contiguous", "shuffled", "dirichlet"
                                (label skew alpha) or "unequal", drawn from `seed`
    test, test_fraction         tables: a separate test table, or the share of each agent's records held out
    label_column, agent_column  tables: the two columns that are no features
    class_names                 tables: the classes in order, else the labels found, sorted. A record of another label
                                then counts as absent in its place: its features are zero
    target                      tables: the label is a number to predict, in this public range; numbers outside are
                                moved to its end, and a record whose label is no number counts as absent in its place
    bounds                      tables, LEAF without invert: the public range of every feature, never read from the
                                data; numbers of a table that lie outside are moved to its end
    schema                      tables: a schema.toml (`tacit.data.schema`) in place of the five above: text and
                                categories are encoded, numbers scaled to [0, 1] and clipped
    invert, dedup, strangers    LEAF: x -> 1 - x, each record once, and test on users that do not train too
    class_count                 LEAF: the public number of classes, else 1 + the largest label
    records, features, classes  synthetic: its sizes
    """
    from tacit.data import sources
    from tacit.data.classes import check_class_names
    from tacit.data.spec import DataSpec

    check_bounds(bounds)
    low, high = bounds or (None, None)
    target_low, target_high = (None, None) if target is None else two_numbers("target", target)
    named = path_text("source", source, "a name or a path")
    tested, declared = (
        None if path is None else path_text(name, path) for name, path in (("test", test), ("schema", schema))
    )
    names = None if class_names is None else check_class_names(class_names)
    return sources.load(DataSpec(
        named, agents=agents, partition=partition, alpha=alpha, seed=seed, test=tested,
        test_fraction=test_fraction, label_column=label_column, agent_column=agent_column, class_names=names,
        target_low=target_low, target_high=target_high, schema=declared, low=low, high=high, invert=invert, dedup=dedup,
        strangers=strangers, class_count=class_count,
        records=records, features=features, classes=classes,
    ))  # fmt: skip


def is_leaf(source: str) -> bool:
    """Tell whether `source` names a LEAF directory: a folder, and no name of ours, with JSON in train/ and test/."""
    from tacit.data import sources

    return sources.is_leaf(source)
