"""NPZ archives of plain arrays; nothing is unpickled.

    x (I, J), y (I,), agent (I,)      all records in one; y and agent may be absent
    x_0, y_0, x_1, y_1, ...           one agent after another, named 0, 1, ...; all or no y
    features (J,)                     names for the columns of x, else x0, x1, ...
"""

from __future__ import annotations

import re
import zipfile
import zlib
from pathlib import Path

import numpy as np

from tacit.data.columns import Table, feature_names, names, stack
from tacit.errors import DataError
from tacit.types import Array


def read_npz(path: Path, need_labels: bool) -> Table:
    """The table in an NPZ archive."""
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
    tables = [_table(path, arrays, suffix, given) for suffix in suffixes]
    return stack(str(path), tables) if numbers else tables[0]


def _arrays(path: Path) -> dict[str, Array]:
    try:
        # opened here: np.load leaves a file that it opened and could not read unclosed
        with path.open("rb") as file:
            archive = np.load(file, allow_pickle=False)
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise ValueError("it holds a single array")
            return dict(archive.items())
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"{path} is not a readable NPZ file ({error}): write it with numpy.savez.") from error


def _table(path: Path, arrays: dict[str, Array], suffix: str, given: Array | None) -> Table:
    x = arrays["x" + suffix]
    if x.ndim != 2 or x.dtype.kind not in "biuf":
        raise DataError(
            f"{path}: x{suffix} is {x.dtype} of shape {x.shape}: store a real matrix of records by features."
        )
    features = [f"x{j}" for j in range(x.shape[1])] if given is None else list(map(str, given.ravel()))
    if len(features) != x.shape[1]:
        raise DataError(f"{path}: {len(features)} names for {x.shape[1]} features: give one each.")
    labels, agents = (_column(path, arrays, key, len(x)) for key in ("y" + suffix, "agent"))
    return Table(
        f"{path} (x{suffix})" if suffix else str(path),
        feature_names(str(path), features, ()),
        x,
        labels,
        np.full(len(x), suffix[1:]) if suffix else agents,
    )


def _column(path: Path, arrays: dict[str, Array], key: str, n_records: int) -> Array | None:
    if key not in arrays:
        return None
    if arrays[key].shape != (n_records,):
        raise DataError(f"{path}: {key} has shape {arrays[key].shape}: give one a row, {n_records} in all.")
    return names(str(path), key, arrays[key].tolist())
