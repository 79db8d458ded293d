"""The federation of a table: who holds which record, which records are held out, which classes there are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tacit.data.cells import Coded
from tacit.data.classes import class_numbers, found_classes, tell_owner, without_unknown
from tacit.data.feature_table import FeatureTable, align, read_encoded, read_numbers
from tacit.data.partition import by_column, by_name, distinct
from tacit.data.schema import Schema
from tacit.data.schema import read as read_schema
from tacit.data.spec import DataSpec
from tacit.data.table import missing_column
from tacit.errors import DataError, IncompatibleError, SpecError
from tacit.types import Array, Federation, Shard


def load(spec: DataSpec) -> Federation:
    """Load the federation of a table, or of a directory of tables.

    Agents are those of the agent column, else the records are cut into agents. Without a test table, a fraction of
    each agent's records is held out. Classes that are not declared are the labels found, sorted: what is found is not
    public, and the federation says so.
    """
    schema = None if spec.schema is None else _schema(spec, spec.schema)
    classes = spec.declared_classes if schema is None else schema.classes
    bounds = spec.bounds if schema is None else (0.0, 1.0)

    def read(path: str, training: bool) -> FeatureTable:
        if schema is not None:
            return read_encoded(path, schema, training=training)
        blank = classes is not None
        return read_numbers(path, spec.label_column, spec.agent_column, need_labels=True, blank_labels=blank)

    table = read(spec.source, training=True)
    parts, agents = _agents(table, spec, schema)
    tested = table if spec.test is None else align(read(spec.test, training=False), table.features, table.source)
    labels, test_labels = _labels(table), _labels(tested)
    known = found_classes(table.source, {*labels.names, *test_labels.names}) if classes is None else classes
    y = class_numbers(labels, known)
    if tested is table:
        parts, rows = hold_out(parts, spec.test_fraction, spec.seed)
        _move_within(table, bounds)
        *x, x_test = deal(table.runs, [*parts, rows])
        y_test = y[rows]
    else:
        _move_within(table, bounds)
        _move_within(tested, bounds)
        x, x_test = deal(table.runs, parts), tested.x
        y_test = class_numbers(test_labels, known)
    shards = tuple(Shard(own, y[part].clip(0)) for own, part in zip(x, parts, strict=True))
    federation = Federation(
        shards, Shard(x_test, y_test.clip(0)), len(known), Path(spec.source).resolve().stem, tuple(agents), known,
        table.features, bounds, public_classes=classes is not None, longest=schema.longest if schema else None,
        schema=schema.text if schema else "", columns=schema.made if schema else (),
    )  # fmt: skip
    return without_unknown(federation, [y[part] >= 0 for part in parts], y_test >= 0) if classes else federation


def _agents(table: FeatureTable, spec: DataSpec, schema: Schema | None) -> tuple[list[Array], list[str]]:
    """Return (the records of each agent, the names of the agents if there are any)."""
    if table.agents is not None:
        if spec.agents is not None or spec.partition is not None:
            raise DataError(f"{spec.source} already names its agents: drop agents and partition.")
        return by_column(table.agents), distinct(table.agents.names)
    if spec.agents is None and schema is not None:
        raise DataError(f'{schema.source} names no agents: give a column kind = "agent", or say into how many to cut.')
    if spec.agents is None or spec.agent_column != "agent":
        todo = "Name the agent column, or say into how many agents to cut the records."
        raise missing_column(spec.source, spec.agent_column, table.features, todo)
    # the order of the labels is all a partition needs of them
    labels = _labels(table)
    order = {name: k for k, name in enumerate(sorted(labels.names))}
    y = labels.each([order[name] for name in labels.names])
    parts = by_name(spec.partition or "shuffled", y, spec.agents, spec.seed, spec.alpha)
    if spec.partition == "dirichlet" and spec.test is None:
        # the labels decide how large the agents are, and must not decide whether a fraction is refused
        _check_fraction(spec.test_fraction, largest=-(-len(table) // spec.agents))
    return parts, []


def _move_within(table: FeatureTable, bounds: tuple[float, float] | None) -> None:
    """Move the features into their declared range: numbers outside to its end, and the owner is told."""
    if bounds is None:
        return
    outside = 0
    for run in table.runs:
        if run.min() < bounds[0] or run.max() > bounds[1]:
            outside += int(np.count_nonzero(run < bounds[0])) + int(np.count_nonzero(run > bounds[1]))
            run.clip(*bounds, out=run)
    if outside:
        tell_owner(
            f"{outside} numbers of {table.source} lie outside the declared range {bounds} and are moved to its end. "
            "Widen data.low and data.high if they are right."
        )


def deal(runs: list[Array], parts: Sequence[Array]) -> list[Array]:
    """Return the records of each part, a record in one part at most: views of one matrix.

    `runs` is emptied on the way. Each run is given back when it is dealt: the records are never all there twice.
    """
    order, n = np.concatenate(parts), sum(map(len, runs))
    place = np.full(n, -1)
    place[order] = np.arange(len(order))
    if not np.array_equal(place[order], np.arange(len(order))):
        raise DataError("the partition gives one record to two agents: give each record once.")
    x = np.empty((len(order), runs[0].shape[1]), np.float32)
    end = n
    while runs:
        run = runs.pop()
        to = place[end - len(run) : end]
        end -= len(run)
        if to.min() < 0:  # records that nobody holds
            run, to = run[to >= 0], to[to >= 0]
        x[to] = run
    return np.split(x, np.cumsum([len(part) for part in parts])[:-1])


def hold_out(parts: Sequence[Array], fraction: float, seed: int) -> tuple[list[Array], Array]:
    """Return (what each agent keeps, what is held out): round(fraction I_p) of each agent p at random, never all."""
    _check_fraction(fraction, largest=max(map(len, parts)))
    kept, held = [], []
    for p, part in enumerate(parts):
        order = np.random.default_rng([seed, p]).permutation(part)
        n_test = _held_out(fraction, len(part))
        held.append(np.sort(order[:n_test]))
        kept.append(np.sort(order[n_test:]))
    return kept, np.concatenate(held)


def _held_out(fraction: float, n_records: int) -> int:
    """Return how many records of an agent are held out."""
    return min(round(fraction * n_records), n_records - 1)


def _check_fraction(fraction: float, largest: int) -> None:
    """Refuse a number that is no fraction, and a fraction of which even the largest agent has no record."""
    if not 0 <= fraction < 1:
        raise SpecError(f"test_fraction must be in [0, 1), got {fraction}: 0.2 holds out one in five.")
    if fraction and not _held_out(fraction, largest):
        raise DataError(
            f"no agent has enough records to hold out a fraction of {fraction}: "
            "give a test file, raise the fraction, or set it to 0 for no test set."
        )


def _schema(spec: DataSpec, path: str) -> Schema:
    """Read a schema whose numbers are all public; options that say what the schema says already are refused."""
    schema = read_schema(path)
    schema.check_public()
    roles = (("label", spec.label_column, schema.label), ("agent", spec.agent_column, schema.agent))
    for role, given, declared in roles:
        if given not in (role, declared):
            says = f"{declared!r}" if declared else "not declared"
            raise IncompatibleError(f"the {role} column is {says} in {schema.source}, and {given!r} here: drop one.")
    if spec.class_names is not None or spec.bounds is not None:
        says = "declares the classes and scales features to [0, 1]"
        raise IncompatibleError(f"{schema.source} {says}: drop yours (--classes, data.low, data.high).")
    return schema


def _labels(table: FeatureTable) -> Coded:
    """Return the labels of a table, which must be there."""
    if table.labels is None:
        raise DataError(f"{table.source} has no labels: name its label column.")
    return table.labels
