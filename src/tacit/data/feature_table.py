"""A `RawTable` in, a `FeatureTable` out: the columns as the numbers they hold (`encoded_table`: by a schema)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tacit.data.cells import Coded, number
from tacit.data.columns.encoding import Counts
from tacit.data.file_layout import FileLayout
from tacit.data.formats import read_raw, stem_of, table_files
from tacit.data.rows import Rows
from tacit.data.table import RawTable, missing_column, some
from tacit.data.threads import in_order, pool
from tacit.errors import DataError, SpecError
from tacit.types import Array

# bytes of a run of a large table, at least: arrays of this size have pages of their own (glibc, NumPy's huge pages),
# which go back to the system with the array
RUN = 1 << 25

NOT_NUMBERS = (
    "declare the columns in a schema (tacit data schema init), encode this one as numbers, or drop it; if it holds "
    "the labels or the agents, name it as the label or agent column."
)


@dataclass(frozen=True, eq=False)
class FeatureTable:
    """Records of one source: their features, in runs of records, labels (I,) and agents (I,), or None where absent.

    Runs, because a matrix that grows is there twice whenever it moves.
    """

    source: str
    features: tuple[str, ...]
    runs: list[Array]  # (n, J) float32
    labels: Coded | None = None
    agents: Coded | None = None
    lengths: tuple[int, ...] = ()  # the number of records in each file
    counts: Counts = Counts(0, {})  # cells that a schema changed; for the owner

    def __post_init__(self) -> None:
        if not self.features:
            raise DataError(f"{self.source} holds no features: check the file.")

    def __len__(self) -> int:
        return sum(map(len, self.runs))

    @property
    def x(self) -> Array:
        """The features of all records (I, J)."""
        return _one(self.runs)


def align(table: FeatureTable, features: Sequence[str], reference: str) -> FeatureTable:
    """Put the columns of a table in the order of `features`; a table with other columns is refused."""
    if tuple(features) == table.features:
        return table
    lacks = [name for name in features if name not in set(table.features)]
    adds = [name for name in table.features if name not in set(features)]
    if lacks or adds:
        found = "; ".join(f"{verb} {some(few)}" for verb, few in (("lacks", lacks), ("adds", adds)) if few)
        raise DataError(f"{table.source} {found}, unlike {reference}: give both the same feature columns.")
    position = {name: j for j, name in enumerate(table.features)}
    order = [position[name] for name in features]
    runs = [run[:, order] if run.shape[1] else run for run in table.runs]  # no column where no features were wanted
    return replace(table, features=tuple(features), runs=runs)


def _stack(source: str, tables: Iterable[FeatureTable]) -> FeatureTable:
    """Put the records of all tables under one another; labels or agents only where every table has them."""
    first: FeatureTable | None = None
    runs: list[Array] = []
    labels, agents, small, size, counts = [], [], [], 0, Counts(0, {})
    for table in tables:
        first = table if first is None else first
        aligned = align(table, first.features, first.source)
        labels.append(aligned.labels)
        agents.append(aligned.agents)
        counts += table.counts
        for run in aligned.runs:
            small.append(run)
            size += run.nbytes
            if size >= RUN:
                runs.append(_one(small))
                small, size = [], 0
    assert first is not None, "a source gives one table at least"
    runs += [_one(small)] if small else []
    return FeatureTable(source, first.features, runs, _joined(labels), _joined(agents), counts=counts)


def _one(runs: list[Array]) -> Array:
    return runs[0] if len(runs) == 1 else np.concatenate(runs)


def _joined(columns: list[Coded | None]) -> Coded | None:
    there = [column for column in columns if column is not None]
    return Coded.stacked(there) if len(there) == len(columns) else None


def read_files(
    path: str | Path, features: Callable[[RawTable], FeatureTable], roles: Callable[[RawTable], FeatureTable],
    layout: FileLayout | None = None, rows: Rows | None = None,
) -> FeatureTable:  # fmt: skip
    """Read a file or directory as one table, each raw table through `features`, or through `roles` for its labels.

    The files of a directory all have an agent column, or each file is the records of one agent. Where all records of a
    file that name an agent name the same one, those that name none are that agent's too: the file is.
    """
    path = Path(path)
    tables: dict[str, FeatureTable] = {}

    def convert(item: tuple[RawTable, Array | None]) -> FeatureTable:
        raw, kept = item
        if rows is None:
            return features(raw)
        if kept is None or not kept.any():  # the features of records that nobody wants are not looked at
            found = roles(raw)
            shape = (len(raw), 0) if kept is None else (0, len(found.features))
            return replace(found, runs=[np.empty(shape, np.float32)])
        found = features(raw)
        return replace(found, runs=[found.runs[0][kept]])

    def chosen(file: Path, own: Rows | None) -> Iterator[tuple[RawTable, Array | None]]:
        first = 0
        for raw in read_raw(file, layout):
            yield raw, None if own is None else own.of_table(first, len(raw))
            first += len(raw)

    with pool() as threads:
        for i, file in enumerate(table_files(path)):
            own = None if rows is None else rows.of_file(i)
            if own is not None and own.kept is not None and not own.kept.any() and tables:
                continue
            table = _stack(str(file), in_order(threads, convert, chosen(file, own)))
            tables[stem_of(file)] = table if own is not None and own.kept is not None else _of_one_agent(table)
    if rows is not None and rows.kept is not None:
        return _stack(str(path), list(tables.values()))
    lengths = tuple(map(len, tables.values()))
    unnamed = [table for table in tables.values() if table.agents is None]
    if path.is_dir() and unnamed:
        if len(unnamed) < len(tables):
            raise DataError(f"{unnamed[0].source} has no agent column, other files do: give it to all or none.")
        for stem, table in tables.items():
            tables[stem] = replace(table, agents=Coded(np.zeros(len(table), np.int32), (stem,)))
    return replace(_stack(str(path), list(tables.values())), lengths=lengths)


def _of_one_agent(table: FeatureTable) -> FeatureTable:
    """Give the records that name no agent to the only agent that the others name; leave them where there are more."""
    if table.agents is None or "" not in table.agents.names or len(table.agents.names) != 2:
        return table
    (name,) = {*table.agents.names} - {""}
    return replace(table, agents=Coded(np.zeros(len(table), np.int32), (name,)))


def read_numbers(
    path: str | Path, label_column: str = "label", agent_column: str = "agent", *, need_labels: bool = False,
    blank_labels: bool = False, rows: Rows | None = None,
) -> FeatureTable:  # fmt: skip
    """Read the table in a file or directory whose features are numbers; of some `rows` alone where they are given.

    Without a label column its labels are None, unless needed. An empty label is refused, unless `blank_labels`.
    """
    if label_column == agent_column:
        raise SpecError(f"the label and the agent column are both {label_column!r}: name two columns.")

    def roles(raw: RawTable) -> FeatureTable:
        label, agent = raw.roles or (label_column, agent_column)
        if need_labels and label not in raw.columns:
            if raw.roles:
                raise DataError(f"{raw.source} has no labels: store them as {label}, one a record.")
            todo = "Name the label column; the first row is the header."
            raise missing_column(raw.source, label, list(raw.columns), todo)
        features = tuple(name for name in raw.columns if name not in (label, agent))
        labels, agents = raw.texts(label, blank_labels), raw.texts(agent)
        return FeatureTable(raw.source, features, [], labels, agents)

    def convert(raw: RawTable) -> FeatureTable:
        found = roles(raw)
        return replace(found, runs=[_matrix(raw, found.features)])

    return read_files(path, convert, roles, rows=rows)


def _matrix(raw: RawTable, features: tuple[str, ...]) -> Array:
    """Return the features as one matrix (n, J) of float32; a cell that is no finite number is refused."""
    with np.errstate(over="ignore"):  # beyond float32 becomes inf, refused with its cell
        found = raw.matrix(features) if raw.matrix else None
        if found is not None:
            x = found.astype(np.float32, copy=False)
        else:
            x = np.empty((len(raw), len(features)), np.float32)
            for j, name in enumerate(features):
                x[:, j] = _numbers(raw, name)
        if x.size and not np.isfinite([x.min(), x.max()]).all():  # no temporary of the size of x
            raise _bad_cell(raw, features[int(np.argwhere(~np.isfinite(x))[0][1])])
    return x


def _numbers(raw: RawTable, column: str) -> Array:
    """Return a column as numbers; NaN where a cell is None."""
    if column in raw.not_numbers:
        kind = raw.not_numbers[column]
        raise DataError(f"{raw.source}: column {column!r} holds {kind}, not numbers: {NOT_NUMBERS}")
    cells = raw.columns[column]
    if not isinstance(cells, np.ndarray):
        cells = np.fromiter(cells.tolist(), dtype=object, count=len(cells))  # np.array would unpack lists
    if cells.dtype != object:
        return cells
    try:
        # one look at a column of text for what `number` refuses: a call for every cell would double the time
        if "_" not in "".join(cells.tolist()):
            return cells.astype(np.float32)
    except (TypeError, ValueError):
        pass
    raise _bad_cell(raw, column)


def _bad_cell(raw: RawTable, column: str) -> DataError:
    """Return the error for the first cell of a column that is no finite number."""
    for i, cell in enumerate(raw.columns[column].tolist()):
        where = raw.where(i, column)
        if cell is None or not str(cell).strip():
            return DataError(f"{where} is empty: impute it or drop the record.")
        try:
            value = np.float32(number(cell) if isinstance(cell, str) else cell)
        except ValueError:
            return DataError(f"{where} is not a number: {NOT_NUMBERS}")
        if not np.isfinite(value):
            return DataError(f"{where} is not a finite float32: impute it or drop the record.")
    raise AssertionError("every cell of the column is a finite number")
