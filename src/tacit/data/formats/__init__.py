"""Files of records in, tables out: one format a file of this package.

A new format is one file, with a function from a path to `RawTable`s, and one line here. A file may come as several
raw tables: runs of its records, so that a long file need not be held as text, or one table for each agent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from pkgutil import resolve_name

import numpy as np

from tacit.data.table import FeatureTable, RawTable, stack
from tacit.errors import DataError

# how a file name ends -> its reader, imported on first use
FORMATS = {
    ".csv": "tacit.data.formats.csv:read",
    ".parquet": "tacit.data.formats.parquet:read",
    ".npz": "tacit.data.formats.npz:read",
}


def read_raw(path: str | Path) -> Iterator[RawTable]:
    """Read the columns of a file, or of every file of a directory, as they are."""
    for file in table_files(Path(path)):
        yield from resolve_name(FORMATS[_suffix(file)])(file)


def read_features(path: str | Path, convert: Callable[[RawTable], FeatureTable]) -> FeatureTable:
    """Read a file or directory, each raw table through `convert`, as one table.

    The files of a directory all have an agent column, or each file is the records of one agent.
    """
    path = Path(path)
    files = table_files(path)
    tables = [stack(str(file), list(map(convert, read_raw(file)))) for file in files]
    unnamed = [table for table in tables if table.agents is None]
    if path.is_dir() and unnamed:
        if len(unnamed) < len(tables):
            raise DataError(f"{unnamed[0].source} has no agent column, other files do: give it to all or none.")
        pairs = zip(tables, files, strict=True)
        tables = [replace(table, agents=np.full(len(table), file.stem)) for table, file in pairs]
    return stack(str(path), tables)


def table_files(path: Path) -> list[Path]:
    """List the file itself, or the table files directly in a directory by name; two files of one name are refused."""
    if not path.is_dir():
        if _suffix(path) not in FORMATS:
            raise DataError(f"{path} is no table tacit reads: convert it to one of {', '.join(FORMATS)}.")
        if not path.is_file():
            raise DataError(f"{path} does not exist: check the path.")
        return [path]
    files = sorted(file for file in path.iterdir() if _suffix(file) in FORMATS and file.is_file())
    if not files:
        raise DataError(f"{path} holds no table: put a file for each agent in it.")
    stem, times = Counter(file.stem for file in files).most_common(1)[0]
    if times > 1:
        raise DataError(f"{path} has {times} files for {stem!r}: keep one, records would count twice.")
    return files


def _suffix(path: Path) -> str:
    """Return the format that a file name promises: .CSV is .csv."""
    return path.suffix.lower()
