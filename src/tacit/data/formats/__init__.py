"""Files of records in, raw tables out: one format a file of this package.

A new format is one file, with a function from a path to `RawTable`s, and one line here. A file may come as several
raw tables: runs of its records, so that a long file need not be held as text, or one table for each agent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from tacit.data.table import RawTable
from tacit.errors import DataError
from tacit.registry import Registry

# how a file name ends -> its reader, imported on first use
FORMATS: Registry[Callable[[Path], Iterator[RawTable]]] = Registry("table format", {
    ".csv": "tacit.data.formats.csv:read",
    ".parquet": "tacit.data.formats.parquet:read",
    ".npz": "tacit.data.formats.npz:read",
})  # fmt: skip


def read_raw(path: str | Path) -> Iterator[RawTable]:
    """Read the columns of a file, or of every file of a directory, as they are."""
    for file in table_files(Path(path)):
        yield from FORMATS[_suffix(file)](file)


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
