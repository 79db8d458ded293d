"""Files of records in, raw tables out: one format a file of this package.

A new format is one file, with a function from a path to `RawTable`s, and one line here. A file may come as several
raw tables: runs of its records, so that a long file need not be held as text, or one table for each agent.

A text file is read by the layout that a schema declares, and no record changes how another is read. Without a schema it
is read strictly, and a bad row is refused with its line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from tacit.data.file_layout import FileLayout
from tacit.data.table import RawTable
from tacit.errors import DataError
from tacit.registry import Registry

# how a file name ends -> its reader, imported on first use
FORMATS: Registry[Callable[..., Iterator[RawTable]]] = Registry("table format", {
    ".csv": "tacit.data.formats.csv:read",
    ".tsv": "tacit.data.formats.csv:read",
    ".csv.gz": "tacit.data.formats.csv:read",
    ".tsv.gz": "tacit.data.formats.csv:read",
    ".parquet": "tacit.data.formats.parquet:read",
    ".npz": "tacit.data.formats.npz:read",
})  # fmt: skip
TEXT = (".csv", ".tsv", ".csv.gz", ".tsv.gz")  # the formats whose reader takes a layout too


def read_raw(path: str | Path, layout: FileLayout | None = None) -> Iterator[RawTable]:
    """Read the columns of a file, or of every file of a directory, as they are: text by a layout if there is one."""
    for file in table_files(Path(path)):
        suffix = suffix_of(file)
        yield from FORMATS[suffix](file, layout) if suffix in TEXT else FORMATS[suffix](file)


def table_files(path: Path) -> list[Path]:
    """List the file itself, or the table files directly in a directory by name; two files of one name are refused."""
    if not path.is_dir():
        if suffix_of(path) not in FORMATS:
            raise DataError(f"{path} is no table tacit reads: convert it to one of {', '.join(FORMATS)}.")
        if not path.is_file():
            raise DataError(f"{path} does not exist: check the path.")
        return [path]
    files = sorted(file for file in path.iterdir() if suffix_of(file) in FORMATS and file.is_file())
    if not files:
        raise DataError(f"{path} holds no table: put a file for each agent in it.")
    stem, times = Counter(map(stem_of, files)).most_common(1)[0]
    if times > 1:
        raise DataError(f"{path} has {times} files for {stem!r}: keep one, records would count twice.")
    return files


def suffix_of(path: Path) -> str:
    """Return the format that a file name promises: .CSV is .csv, and t.csv.gz is .csv.gz."""
    last = path.suffix.lower()
    return Path(path.stem).suffix.lower() + last if last == ".gz" else last


def stem_of(path: Path) -> str:
    """Return the name of a file without its format."""
    return path.name[: len(path.name) - len(suffix_of(path))]
