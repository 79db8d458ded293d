"""NPZ archives of plain arrays; nothing is unpickled.

    x (I, J), y (I,), agent (I,)      all records in one; y and agent may be absent
    x_0, y_0, x_1, y_1, ...           one agent after another, named 0, 1, ...; all or no y
    features (J,)                     names for the columns of x, else x0, x1, ...

The column of labels is called y and the column of agents is called agent.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tacit.data.table import RawTable, check_column_names
from tacit.errors import DataError
from tacit.npz import opened
from tacit.types import Array

RUN = 1 << 25  # bytes of features that are read at a time


def read(path: Path) -> Iterator[RawTable]:
    """Read an NPZ archive: runs of its records, of each numbered agent on its own where there are any.

    The features are never all there at once: a reader may want those of some records alone.
    """
    try:
        with opened(path) as archive:
            yield from _read(path, archive)
    except (OSError, ValueError) as error:
        raise DataError(f"{path} is not a readable NPZ file ({error}): write it with numpy.savez.") from error


def _read(path: Path, archive: np.lib.npyio.NpzFile) -> Iterator[RawTable]:
    named = archive["features"] if "features" in archive.files else None
    for suffix in _suffixes(path, [key for key in archive.files if key != "features"]):
        n, x_runs = _runs(archive, "x" + suffix)
        keys = (("y", "y" + suffix), ("agent", "agent"))
        roles = {name: archive[key] for name, key in keys if key in archive.files}
        first = 0
        for x in x_runs:
            if x.ndim != 2 or x.dtype.kind not in "biuf":
                found = f"x{suffix} is {x.dtype} of shape {(n, *x.shape[1:])}"
                raise DataError(f"{path}: {found}: store a real matrix of records by features.")
            features = [f"x{j}" for j in range(x.shape[1])] if named is None else list(map(str, named.ravel()))
            if len(features) != x.shape[1]:
                raise DataError(f"{path}: {len(features)} names for {x.shape[1]} features: give one each.")
            for name, column in roles.items():
                if column.shape != (n,):
                    raise DataError(f"{path}: {name}{suffix} has shape {column.shape}: give one a row, {n} in all.")
            own = {name: column[first : first + len(x)] for name, column in roles.items()}
            if suffix:
                own["agent"] = np.full(len(x), suffix[1:])
            check_column_names(str(path), [*features, *own])  # a feature called y or agent would hide behind it
            columns = dict(zip(features, x.T, strict=True)) | own
            source = f"{path} (x{suffix})" if suffix else str(path)
            yield RawTable(source, columns, roles=("y", "agent"), matrix=partial(_all, x), first=first)
            first += len(x)


def _runs(archive: np.lib.npyio.NpzFile, key: str) -> tuple[int, Iterator[Array]]:
    """Return (how many rows an array has, the array as runs of its rows): as one run where rows are not in order."""
    assert archive.zip is not None, "the archive is open"
    with archive.zip.open(f"{key}.npy") as file:
        readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        version = np.lib.format.read_magic(file)
        shape, by_column, dtype = readers[version](file) if version in readers else ((), True, np.dtype(object))
    row = math.prod(shape[1:]) * dtype.itemsize
    if len(shape) != 2 or by_column or dtype.hasobject or not row or shape[0] * row <= RUN:
        whole = archive[key]
        return len(whole) if whole.ndim else 0, iter([whole])
    return shape[0], _rows(archive, key, shape, dtype, max(1, RUN // row))


def _rows(
    archive: np.lib.npyio.NpzFile, key: str, shape: tuple[int, ...], dtype: np.dtype[Any], at_once: int
) -> Iterator[Array]:
    """Give the rows of an array, so many at a time."""
    assert archive.zip is not None, "the archive is open"
    with archive.zip.open(f"{key}.npy") as file:
        version = np.lib.format.read_magic(file)
        (np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0)(file)
        for first in range(0, shape[0], at_once):
            n = min(at_once, shape[0] - first)
            data = file.read(n * shape[1] * dtype.itemsize)
            if len(data) < n * shape[1] * dtype.itemsize:
                raise ValueError(f"{key} ends after {first} rows")
            yield np.frombuffer(data, dtype).reshape(n, shape[1])


def _all(x: Array, _features: Sequence[str]) -> Array:
    """Return the features: the roles of an archive are its own, so that all its other columns are asked for."""
    return x


def _suffixes(path: Path, arrays: Sequence[str]) -> list[str]:
    """List the suffix of each agent's arrays, [""] for one table, after a check that no array is missing or odd."""
    suffixes = sorted((key[1:] for key in arrays if re.fullmatch(r"x_[0-9]+", key)), key=lambda s: int(s[1:])) or [""]
    labelled = any(key == "y" or key.startswith("y_") for key in arrays)
    expected = {"x" + suffix for suffix in suffixes} | {"y" + suffix for suffix in suffixes if labelled}
    expected |= {"agent"} & {*arrays} if suffixes == [""] else set()
    if expected != set(arrays):
        odd = ", ".join(sorted(expected ^ set(arrays)))
        raise DataError(f"{path}: missing or unknown: {odd}. Store x, y, agent or x_0, y_0, x_1, y_1, ...")
    return suffixes
