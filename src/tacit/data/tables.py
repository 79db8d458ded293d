"""The federation of a table: who holds which record, which records are held out, which classes there are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tacit.data.cells import Coded
from tacit.data.classes import found_classes, without_unknown
from tacit.data.encoded_table import read_encoded
from tacit.data.feature_table import FeatureTable, align, read_numbers
from tacit.data.formats import stem_of
from tacit.data.outcome import LabelReader
from tacit.data.owner import tell_owner, unfit_columns, unknown_labels
from tacit.data.partition import by_column, by_name, distinct
from tacit.data.rows import Rows
from tacit.data.schema import Schema
from tacit.data.schema import read as read_schema
from tacit.data.share import ALONE, Share
from tacit.data.spec import DataSpec
from tacit.data.table import missing_column
from tacit.errors import DataError, IncompatibleError, SpecError, printable
from tacit.types import Array, Federation, Shard


def load(spec: DataSpec, share: Share = ALONE) -> Federation:
    """Load the federation of a table, or of a directory of tables; or the share of this process.

    Agents are those of the agent column, else the records are cut into agents. Without a test table, a fraction of
    each agent's records is held out. Classes that are not declared are the labels found, sorted: what is found is not
    public, and the federation says so.
    """
    schema = None if spec.schema is None else _schema(spec, spec.schema)
    declared = _declared(spec, schema)
    bounds = spec.bounds if schema is None else schema.bounds

    def read(path: str, training: bool, rows: Rows | None = None) -> FeatureTable:
        if schema is not None:
            return read_encoded(path, schema, training=training, rows=rows)
        blank = declared is not None
        return read_numbers(
            path, spec.label_column, spec.agent_column, need_labels=True, blank_labels=blank, rows=rows
        )

    table = read(spec.source, training=True, rows=None if share.alone else Rows())
    parts, agents = _agents(table, spec, schema, declared)
    tested = table
    if spec.test is not None:
        tested = read(spec.test, training=False, rows=None if share.leads else Rows())
        tested = align(tested, table.features, table.source)
    labels, test_labels = _labels(table), _labels(tested)
    names = {*labels.names, *test_labels.names} if declared is None else set()
    outcome = declared or LabelReader(found_classes(table.source, names), declared=False)
    y, known = outcome.read(labels)
    held, owners = np.empty(0, np.int64), None
    if tested is table:
        before = parts
        parts, held = hold_out(parts, spec.test_fraction, spec.seed)
        owners = np.repeat(np.arange(len(parts)), [len(a) - len(b) for a, b in zip(before, parts, strict=True)])
    elif agents and tested.agents is not None:
        number = {name: p for p, name in enumerate(agents)}
        owners = tested.agents.each(np.array([number.get(name, -1) for name in tested.agents.names], np.int64))
    mine = share.mine([len(part) for part in parts])
    own, runs, counts = [parts[p] for p in mine], table.runs, table.counts
    if not share.alone:  # the labels are there: now the features of the records that stay in this process
        kept = np.zeros(len(y), np.bool_)
        kept[np.concatenate([*own, held if share.leads else held[:0]])] = True
        mine_only = read(spec.source, training=True, rows=Rows(kept, table.lengths))
        runs, counts = mine_only.runs, mine_only.counts
        place = np.cumsum(kept) - 1
        own = [place[part] for part in own]
    _move_within(table.source, runs, bounds)
    if tested is table:
        rows = held if share.leads else held[:0]
        *x, x_test = deal(runs, [*own, rows if share.alone else place[rows]])
        y_test, in_test = y[rows], known[rows]
    else:
        x = deal(runs, own) if own else []
        x_test = tested.x if share.leads else np.empty((0, len(table.features)), np.float32)
        y_test, in_test = (found[: len(x_test)] for found in outcome.read(test_labels))
        _move_within(tested.source, [x_test], bounds)
    dealt = iter(x)
    shards = tuple(
        Shard(next(dealt), y[part]) if p in mine else Shard.elsewhere(len(part), len(table.features))
        for p, part in enumerate(parts)
    )
    owners = None if owners is None else owners[: len(y_test)]
    federation = Federation(
        shards, Shard(x_test, y_test, owners=owners), outcome.columns, stem_of(Path(spec.source).resolve()),
        tuple(agents), outcome.classes, table.features, bounds, public_classes=outcome.declared,
        longest=schema.longest if schema else None, schema=schema.text if schema else "",
        columns=schema.made if schema else (), target=outcome.target,
    )  # fmt: skip
    read_well = [known[part] for part in parts]
    tell_owner(
        unfit_columns(counts, schema) if schema else "",
        unknown_labels(federation, read_well, in_test, outcome.unknown) if outcome.declared else "",
    )
    return without_unknown(federation, read_well, in_test) if outcome.declared else federation


def declares_a_number(spec: DataSpec) -> bool:
    """Tell whether the label column holds a number to predict, from what is declared and without a look at a table."""
    declared = _declared(spec, None if spec.schema is None else read_schema(spec.schema))
    return declared is not None and declared.target is not None


def _declared(spec: DataSpec, schema: Schema | None) -> LabelReader | None:
    """Return what is declared of the label column; None where nothing is."""
    if schema is not None:
        return LabelReader(schema.classes, schema.target, marks=schema.marks)
    if spec.target is not None and spec.class_names is not None:
        raise IncompatibleError(
            "the label is one of --classes, or a number between --target-low and --target-high, not both: drop one."
        )
    if spec.target is not None:
        return LabelReader(target=spec.target)
    return None if spec.declared_classes is None else LabelReader(spec.declared_classes)


def _agents(
    table: FeatureTable, spec: DataSpec, schema: Schema | None, declared: LabelReader | None
) -> tuple[list[Array], list[str]]:
    """Return (the records of each agent, the names of the agents if there are any)."""
    if table.agents is not None:
        if spec.agents is not None or spec.partition is not None:
            raise DataError(f"{spec.source} already names its agents: drop agents and partition.")
        return _named(table, table.agents)
    if spec.agents is None and schema is not None:
        raise DataError(f'{schema.source} names no agents: give a column kind = "agent", or say into how many to cut.')
    if spec.agents is None or spec.agent_column != "agent":
        todo = "Name the agent column, or say into how many agents to cut the records."
        raise missing_column(spec.source, spec.agent_column, table.features, todo)
    if spec.partition == "dirichlet" and declared is not None and declared.target is not None:
        raise IncompatibleError("dirichlet deals records by class, and the label is a number: use shuffled or unequal.")
    # the order of the labels is all a partition needs of them
    labels = _labels(table)
    order = {name: k for k, name in enumerate(sorted(labels.names))}
    y = labels.each([order[name] for name in labels.names])
    parts = by_name(spec.partition or "shuffled", y, spec.agents, spec.seed, spec.alpha)
    if spec.partition == "dirichlet" and spec.test is None:
        # the labels decide how large the agents are, and must not decide whether a fraction is refused
        _check_fraction(spec.test_fraction, largest=-(-len(table) // spec.agents))
    return parts, []


def _named(table: FeatureTable, agents: Coded) -> tuple[list[Array], list[str]]:
    """Return (the records of each agent, their names).

    A file with several agents is a simulation of several holders. A record there whose agent cannot be read belongs to
    none of them: nobody trains on it and nobody tests on it, and its owner is told. It is not given to any agent,
    because it would change the number of that agent's records, which is public. So who holds a record is not protected
    in a simulation; the own file of one agent has no such record (`encoded_table.read_encoded`), and keeps its size.
    """
    names = distinct({*agents.names} - {""})  # their order must not depend on whether there is such a record
    if not names:
        raise DataError(f"{table.source}: no record names an agent: fill in the agent column, or drop it.")
    parts = dict(zip(distinct(agents.names), by_column(agents), strict=True))
    if "" in parts:
        tell_owner(
            f"{len(parts[''])} of {len(table)} records of {table.source} name no agent: nobody holds them, so they are "
            "left out. Fill in their agent (with a schema, tacit data check counts them)."
        )
    return [parts[name] for name in names], names


def _move_within(source: str, runs: Sequence[Array], bounds: tuple[float, float] | None) -> None:
    """Move the features into their declared range: numbers outside to its end, and the owner is told."""
    if bounds is None:
        return
    outside = 0
    for run in runs:
        if run.size and (run.min() < bounds[0] or run.max() > bounds[1]):
            outside += int(np.count_nonzero(run < bounds[0])) + int(np.count_nonzero(run > bounds[1]))
            run.clip(*bounds, out=run)
    if outside:
        tell_owner(
            f"{outside} numbers of {source} lie outside the declared range {bounds} and are moved to its end. "
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
        if len(to) and to.min() < 0:  # records that nobody holds
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
            here = printable(given)
            raise IncompatibleError(f"the {role} column is {says} in {schema.source}, and {here} here: drop one.")
    if spec.class_names is not None or spec.bounds is not None or spec.target is not None:
        says = "declares the classes or the target, and the range of the features"
        yours = "--classes, --target-low, --target-high, data.low, data.high"
        raise IncompatibleError(f"{schema.source} {says}: drop yours ({yours}).")
    return schema


def _labels(table: FeatureTable) -> Coded:
    """Return the labels of a table, which must be there."""
    if table.labels is None:
        raise DataError(f"{table.source} has no labels: name its label column.")
    return table.labels
