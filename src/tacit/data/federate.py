"""From a `Table` to a `Federation`: who holds which record, which are held out, which classes there are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tacit.data import classes as which
from tacit.data import encode, tables
from tacit.data.columns import Table, align, missing_column
from tacit.data.partition import by_column, by_name, distinct
from tacit.data.schema import Schema
from tacit.errors import DataError, IncompatibleError, SpecError
from tacit.types import Array, Federation, Shard, check_bounds


def load(
    path: Path,
    *,
    agents: int | None = None,
    partition: str | None = None,
    alpha: float = 0.5,
    seed: int = 0,
    test: str | Path | None = None,
    test_fraction: float = 0.2,
    label_column: str = "label",
    agent_column: str = "agent",
    classes: Sequence[str] | None = None,
    bounds: tuple[float, float] | None = None,
    schema: Schema | None = None,
) -> Federation:
    """The federation of a table, or of a directory of tables; see `tacit.data.load`."""

    if schema is not None:
        _check_schema(schema, label_column, agent_column, classes, bounds)
        classes, bounds = schema.classes, (0.0, 1.0)
    if classes is not None:
        classes = which.declared(classes)

    def read(source: str | Path, training: bool) -> Table:
        if schema is not None:
            return encode.read(source, schema, training=training)[0]  # the counts are the owner's: not kept
        named = {"label_column": label_column, "agent_column": agent_column}
        return tables.read(source, need_labels=True, blank_labels=classes is not None, **named)

    table = read(path, training=True)
    if table.agents is not None:
        if agents is not None or partition is not None:
            raise DataError(f"{path} already names its agents: drop agents and partition.")
        parts, agent_names = by_column(table.agents), distinct(table.agents)
    else:
        if agents is None and schema is not None:
            raise DataError(
                f'{schema.source} names no agents: give a column kind = "agent", or say into how many to cut.'
            )
        if agents is None or agent_column != "agent":
            todo = "Name the agent column, or say into how many agents to cut the records."
            raise missing_column(str(path), agent_column, table.features, todo)
        # the order of the labels is all a partition needs of them
        y = np.unique(_labels(table), return_inverse=True)[1]
        parts, agent_names = by_name(partition or "shuffled", y, agents, seed, alpha), []
        if partition == "dirichlet" and test is None:  # the labels decide how large the agents are, and no refusal
            _check_fraction(test_fraction, largest=-(-len(table) // agents))
    return federate(
        table,
        parts,
        test=None if test is None else read(test, training=False),
        test_fraction=test_fraction,
        classes=classes,
        agents=agent_names,
        bounds=bounds,
        name=path.resolve().stem,
        seed=seed,
        schema=schema,
    )


def federate(
    table: Table,
    parts: Sequence[Array],
    *,
    test: Table | None = None,
    test_fraction: float = 0.2,
    classes: Sequence[str] | None = None,
    agents: Sequence[str] = (),
    bounds: tuple[float, float] | None = None,
    name: str = "unnamed",
    seed: int = 0,
    schema: Schema | None = None,
) -> Federation:
    """Agent p gets the records parts[p]; without a test table, a fraction of each agent's is held out.

    Classes are the labels found, sorted, unless given: what is found is not public, and the federation says so.
    """
    held_out = table if test is None else align(test, table.features, table.source)
    train_labels, test_labels = _labels(table), _labels(held_out)
    known = (
        which.found(table.source, {*train_labels.tolist(), *test_labels.tolist()})
        if classes is None else which.declared(classes)
    )  # fmt: skip
    if test is None:
        parts, rows = hold_out(parts, test_fraction, seed)
    else:
        rows = np.arange(len(test))
    x = within(table.x, bounds, table.source)
    x_test = x if test is None else within(held_out.x, bounds, held_out.source)
    y, y_test = which.numbers(train_labels, known), which.numbers(test_labels, known)[rows]
    over = Federation(
        shards=tuple(Shard(x[part], y[part].clip(0)) for part in parts),
        test=Shard(x_test[rows], y_test.clip(0)),
        n_classes=len(known),
        name=name,
        agents=tuple(agents),
        classes=known,
        features=table.features,
        bounds=bounds,
        active=None if schema is None else schema.active,
        schema="" if schema is None else schema.text,
        public_classes=classes is not None,
    )
    return which.without_unknown(over, [y[part] >= 0 for part in parts], y_test >= 0) if over.public_classes else over


def within(x: Array, bounds: tuple[float, float] | None, source: str) -> Array:
    """Features in their declared range: those outside are moved to its end, and the owner is told how many."""
    check_bounds(bounds)
    outside = 0 if bounds is None else int(((x < bounds[0]) | (x > bounds[1])).sum())
    if bounds is None or not outside:
        return x
    which.tell(
        f"{outside} numbers of {source} lie outside the declared range {bounds} and are moved to its end. Widen "
        "data.low and data.high if they are right."
    )
    return np.clip(x, *bounds)


def hold_out(parts: Sequence[Array], fraction: float, seed: int) -> tuple[list[Array], Array]:
    """(what each agent keeps, what is held out): round(fraction I_p) of each agent p at random, never all."""
    _check_fraction(fraction, largest=max(map(len, parts)))
    kept, held = [], []
    for p, part in enumerate(parts):
        order = np.random.default_rng([seed, p]).permutation(part)
        n_test = _held_out(fraction, len(part))
        held.append(np.sort(order[:n_test]))
        kept.append(np.sort(order[n_test:]))
    return kept, np.concatenate(held)


def _held_out(fraction: float, n_records: int) -> int:
    return min(round(fraction * n_records), n_records - 1)


def _check_fraction(fraction: float, largest: int) -> None:
    """Refuse a fraction that is none, and one of which even the largest agent has no record."""
    if not 0 <= fraction < 1:
        raise SpecError(f"test_fraction must be in [0, 1), got {fraction}: 0.2 holds out one in five.")
    if fraction and not _held_out(fraction, largest):
        raise DataError(
            f"no agent has enough records to hold out a fraction of {fraction}: "
            "give a test file, raise the fraction, or set it to 0 for no test set."
        )


def _check_schema(
    schema: Schema,
    label_column: str,
    agent_column: str,
    classes: Sequence[str] | None,
    bounds: tuple[float, float] | None,
) -> None:
    """Refuse what the schema says already, and numbers in it that were read from the data."""
    schema.check_public()
    for role, given, declared in (("label", label_column, schema.label), ("agent", agent_column, schema.agent)):
        if given not in (role, declared):
            says = f"{declared!r}" if declared else "not declared"
            raise IncompatibleError(f"the {role} column is {says} in {schema.source}, and {given!r} here: drop one.")
    if classes is not None or bounds is not None:
        raise IncompatibleError(
            f"{schema.source} declares the classes and scales features to [0, 1]: drop yours (--classes, data.low, "
            "data.high)."
        )


def _labels(table: Table) -> Array:
    if table.labels is None:
        raise DataError(f"{table.source} has no labels: name its label column.")
    return table.labels
