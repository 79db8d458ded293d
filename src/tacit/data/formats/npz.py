"""NPZ archives of plain arrays; nothing is unpickled.

    x (I, J), y (I,), agent (I,)      all records in one; y and agent may be absent
    x_0, y_0, x_1, y_1, ...           one agent after another, named 0, 1, ...; all or no y
    features (J,)                     names for the columns of x, else x0, x1, ...

The column of labels is called y and the column of agents is called agent.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from tacit.data.table import RawTable, check_column_names
from tacit.errors import DataError
from tacit.types import Array


def read(path: Path) -> Iterator[RawTable]:
    """Read an NPZ archive: one table, or one for each numbered agent."""
    try:
        arrays = read_arrays(path)
    except (OSError, ValueError) as error:
        raise DataError(f"{path} is not a readable NPZ file ({error}): write it with numpy.savez.") from error
    named = arrays.pop("features", None)
    for suffix in _suffixes(path, arrays):
        x = arrays["x" + suffix]
        if x.ndim != 2 or x.dtype.kind not in "biuf":
            found = f"x{suffix} is {x.dtype} of shape {x.shape}"
            raise DataError(f"{path}: {found}: store a real matrix of records by features.")
        features = [f"x{j}" for j in range(x.shape[1])] if named is None else list(map(str, named.ravel()))
        if len(features) != x.shape[1]:
            raise DataError(f"{path}: {len(features)} names for {x.shape[1]} features: give one each.")
        roles = {name: arrays[key] for name, key in (("y", "y" + suffix), ("agent", "agent")) if key in arrays}
        for name, column in roles.items():
            if column.shape != (len(x),):
                raise DataError(f"{path}: {name}{suffix} has shape {column.shape}: give one a row, {len(x)} in all.")
        if suffix:
            roles["agent"] = np.full(len(x), suffix[1:])
        check_column_names(str(path), [*features, *roles])  # a feature called y or agent would hide behind it
        columns = dict(zip(features, x.T, strict=True)) | roles
        source = f"{path} (x{suffix})" if suffix else str(path)
        yield RawTable(source, columns, roles=("y", "agent"), matrix=partial(_all, x))


def _all(x: Array, _features: Sequence[str]) -> Array:
    """Return the features: the roles of an archive are its own, so that all its other columns are asked for."""
    return x


def _suffixes(path: Path, arrays: dict[str, Array]) -> list[str]:
    """List the suffix of each agent's arrays, [""] for one table, after a check that no array is missing or odd."""
    suffixes = sorted((key[1:] for key in arrays if re.fullmatch(r"x_[0-9]+", key)), key=lambda s: int(s[1:])) or [""]
    labelled = any(key == "y" or key.startswith("y_") for key in arrays)
    expected = {"x" + suffix for suffix in suffixes} | {"y" + suffix for suffix in suffixes if labelled}
    expected |= {"agent"} & {*arrays} if suffixes == [""] else set()
    if expected != set(arrays):
        odd = ", ".join(sorted(expected ^ set(arrays)))
        raise DataError(f"{path}: missing or unknown: {odd}. Store x, y, agent or x_0, y_0, x_1, y_1, ...")
    return suffixes


def read_arrays(path: Path) -> dict[str, Array]:
    """Read every array of an NPZ archive; OSError where it cannot be opened, ValueError where it cannot be read."""
    # opened here: np.load leaves a file that it opened and could not read unclosed
    with path.open("rb") as file:
        try:
            archive = np.load(file, allow_pickle=False)
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise ValueError("it holds a single array")
            return dict(archive.items())
        except MemoryError as error:  # a damaged header asks for any number of bytes
            raise ValueError(f"{error or 'it does not fit into memory'}") from error
        except (EOFError, KeyError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:  # RuntimeError: encrypted
            raise ValueError(f"{error}") from error
