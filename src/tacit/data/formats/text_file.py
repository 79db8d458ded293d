"""Text files of records: opened, unpacked where the name ends in .gz, and what is told where one cannot be read."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from tacit.errors import DataError


def opened(path: Path) -> BinaryIO:
    """Open a file for its bytes."""
    if path.suffix.lower() == ".gz":
        return cast(BinaryIO, gzip.open(path, "rb"))  # it reads and seeks as any file
    return path.open("rb")


def separator_of(path: Path) -> str:
    """Return the separator that the name of a file promises."""
    return "\t" if ".tsv" in (suffix.lower() for suffix in path.suffixes[-2:]) else ","


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Tell one error, whatever it is that cannot be read."""
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:  # OSError: also what is called .gz and is not
        raise DataError(f"{path} is not a readable CSV file ({error}): check or write it again.") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path} is not a readable CSV file ({error}): save it as UTF-8 text.") from error
