"""NPZ archives of plain arrays; nothing is unpickled.

    x (I, J), y (I,), agent (I,)      all records in one; y and agent may be absent
    x_0, y_0, x_1, y_1, ...           one agent after another, named 0, 1, ...; all or no y
    features (J,)                     names for the columns of x, else x0, x1, ...

A schema calls the labels y and the agents agent.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from pathlib import Path

import numpy as np

from tacit.data.columns import Cells, Table, feature_names, names, plain, stack
from tacit.errors import DataError
from tacit.types import Array


def read_npz(path: Path, need_labels: bool, blank_labels: bool) -> Table:
    """The table in an NPZ archive."""
    arrays, suffixes, given = _layout(path, need_labels)
    tables = [_table(path, arrays, suffix, given, blank_labels) for suffix in suffixes]
    return stack(str(path), tables) if suffixes != [""] else tables[0]


def npz_cells(path: Path) -> list[Cells]:
    """The columns of x, with y and agent, as they are; one for each numbered agent."""
    arrays, suffixes, given = _layout(path, need_labels=False)
    found = []
    for suffix in suffixes:
        x, features = _features(path, arrays, suffix, given)
        columns = dict(zip(features, x.T, strict=True))
        for name, key in (("y", "y" + suffix), ("agent", "agent")):
            column = _checked(path, arrays, key, len(x))
            if column is not None:
                columns[name] = np.array([plain(cell) for cell in column.tolist()], dtype=object)
        if suffix:
            columns["agent"] = np.full(len(x), suffix[1:], dtype=object)
        named = [*features, *(name for name in ("y", "agent") if name in columns)]
        feature_names(str(path), named, ())  # a feature called y or agent would hide behind it
        found.append(Cells(_source(path, suffix), columns))
    return found


def _layout(path: Path, need_labels: bool) -> tuple[dict[str, Array], list[str], Array | None]:
    """(arrays, the suffix of each agent's, names of the features if given), after a check that none is odd."""
    arrays = _arrays(path)
    given = arrays.pop("features", None)
    numbers = sorted((key[2:] for key in arrays if re.fullmatch(r"x_[0-9]+", key)), key=int)
    labelled = any(key == "y" or key.startswith("y_") for key in arrays)
    suffixes = [f"_{number}" for number in numbers] or [""]
    expected = {"x" + suffix for suffix in suffixes} | {"y" + suffix for suffix in suffixes if labelled}
    if not numbers and "agent" in arrays:
        expected.add("agent")
    if expected != set(arrays):
        odd = ", ".join(sorted(expected ^ set(arrays)))
        raise DataError(f"{path}: missing or unknown: {odd}. Store x, y, agent or x_0, y_0, x_1, y_1, ...")
    if need_labels and not labelled:
        raise DataError(f"{path} has no labels: store them as y (or y_0, y_1, ...), one a record.")
    return arrays, suffixes, given


def read_arrays(path: Path) -> dict[str, Array]:
    """Every array of an NPZ archive; OSError where it cannot be opened, ValueError where it cannot be read."""
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


def _arrays(path: Path) -> dict[str, Array]:
    try:
        return read_arrays(path)
    except (OSError, ValueError) as error:
        raise DataError(f"{path} is not a readable NPZ file ({error}): write it with numpy.savez.") from error


def _table(path: Path, arrays: dict[str, Array], suffix: str, given: Array | None, blank_labels: bool) -> Table:
    x, features = _features(path, arrays, suffix, given)
    labels, agents = (
        None if (column := _checked(path, arrays, key, len(x))) is None
        else names(str(path), key, column.tolist(), blank)
        for key, blank in (("y" + suffix, blank_labels), ("agent", False))
    )  # fmt: skip
    return Table(_source(path, suffix), features, x, labels, np.full(len(x), suffix[1:]) if suffix else agents)


def _features(path: Path, arrays: dict[str, Array], suffix: str, given: Array | None) -> tuple[Array, tuple[str, ...]]:
    """x of one agent, and the names of its columns."""
    x = arrays["x" + suffix]
    if x.ndim != 2 or x.dtype.kind not in "biuf":
        raise DataError(
            f"{path}: x{suffix} is {x.dtype} of shape {x.shape}: store a real matrix of records by features."
        )
    features = [f"x{j}" for j in range(x.shape[1])] if given is None else list(map(str, given.ravel()))
    if len(features) != x.shape[1]:
        raise DataError(f"{path}: {len(features)} names for {x.shape[1]} features: give one each.")
    return x, feature_names(str(path), features, ())


def _checked(path: Path, arrays: dict[str, Array], key: str, n_records: int) -> Array | None:
    if key in arrays and arrays[key].shape != (n_records,):
        raise DataError(f"{path}: {key} has shape {arrays[key].shape}: give one a row, {n_records} in all.")
    return arrays.get(key)


def _source(path: Path, suffix: str) -> str:
    return f"{path} (x{suffix})" if suffix else str(path)
