"""NPZ archives: what makes one unreadable is a ValueError, whatever is damaged; nothing is unpickled."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from tacit.types import Array


def read_arrays(path: Path) -> dict[str, Array]:
    """Read every array of an NPZ archive; OSError where it cannot be opened, ValueError where it cannot be read."""
    with opened(path) as archive:
        return dict(archive.items())


@contextmanager
def opened(path: Path) -> Iterator[np.lib.npyio.NpzFile]:
    """Open an NPZ archive; OSError where it cannot be opened, ValueError where an array cannot be read."""
    # opened here: np.load leaves a file that it opened and could not read unclosed
    with path.open("rb") as file:
        try:
            archive = np.load(file, allow_pickle=False)
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise ValueError("it holds a single array")
            yield archive
        except MemoryError as error:  # a damaged header asks for any number of bytes
            raise ValueError(f"{error or 'it does not fit into memory'}") from error
        except (EOFError, KeyError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:  # RuntimeError: encrypted
            raise ValueError(f"{error}") from error
