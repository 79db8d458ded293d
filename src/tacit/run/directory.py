"""A run on disk: spec.toml, rounds.jsonl, result.json, model.npz, and checkpoint.npz until the run ends.

Every file but rounds.jsonl appears whole or not at all. rounds.jsonl grows by whole lines; on resume, lines
beyond the last checkpoint are dropped and computed again.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Collection, Iterator, Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np

from tacit import jsontext, record, toml
from tacit.errors import RunDirectoryError, SpecError
from tacit.lock import locked
from tacit.machine import write_whole
from tacit.measures import ERROR, judge
from tacit.npz import read_arrays
from tacit.run.spec import Spec
from tacit.types import Array

ArrayLayout = tuple[str, tuple[int | None, ...]]  # the kinds of a dtype, such as "iu", and a shape; None is any length

# a list of numbers over many lines, which a person reads better in one; no string of JSON holds the end of a line
_LISTS = re.compile(r"\[\n([-+.\deE,\s]+)\]")

# the keys of result.json that `tacit train --resume`, sweeps and reports read later
RESULT_KEYS = (
    "algorithm", "preset", "dataset", "agents", "records", "rounds", "objective", "guarantee", "seconds",
)  # fmt: skip


def check_writable(directory: Path, advice: str) -> None:
    """Refuse a directory that cannot be made or written into, before any run is computed."""
    place = next(folder for folder in (directory, *directory.parents) if folder.exists())
    if not place.is_dir() or not os.access(place, os.W_OK):
        raise RunDirectoryError(f"cannot write into {place}: {advice}.")


class RunDirectory:
    """The directory of one run on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, path: Path, spec: Spec) -> RunDirectory:
        """Make a new directory that holds spec.toml; a directory that exists must be empty."""
        try:
            _check_free(path)
            with _drafted(path.parent) as draft:
                write_whole(draft / "spec.toml", lambda file: file.write(spec.toml().encode()))
                draft.rename(path)  # replaces an empty directory
        except (OSError, ValueError) as error:  # ValueError: a name with a null byte
            reason = error.strerror if isinstance(error, OSError) else error
            raise RunDirectoryError(f"cannot write {path}: {reason}. Choose another --out.") from None
        return cls(path)

    @classmethod
    def open(cls, path: Path) -> RunDirectory:
        """Open a directory that `create` made."""
        if not _is_file(path / "spec.toml"):
            raise RunDirectoryError(f"{path} holds no run (no spec.toml): give the --out of a run started before.")
        return cls(path)

    def spec(self) -> Spec:
        try:
            return Spec().with_values(toml.read(self.path / "spec.toml")).checked()
        except SpecError as error:
            raise SpecError(f"{self.path / 'spec.toml'}: {error}") from None

    @property
    def loss(self) -> str:
        """Return the loss of the run, also of one whose method is not known here."""
        return str(toml.read(self.path / "spec.toml").get("problem.loss", Spec().problem.loss))

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Lock the directory while the block lasts; refuse a directory that another process writes."""
        try:
            with locked(self.path, wait=False) as ours:
                if not ours:
                    raise RunDirectoryError(
                        f"{self.path} is in use: another process writes this run. Wait until it ends, or stop it."
                    )
                RunDirectory.open(self.path)  # the directory may be gone by now
                yield
        except FileNotFoundError:
            RunDirectory.open(self.path)
            raise

    def discard(self) -> None:
        """Remove the directory if no round was done, unless another process has taken up the run."""
        with contextlib.suppress(RunDirectoryError), self.alone():
            if not (self.finished or (self.path / "checkpoint.npz").exists() or self.rows()):
                shutil.rmtree(self.path)

    @property
    def finished(self) -> bool:
        return (self.path / "result.json").is_file()

    def append(self, row: dict[str, Any]) -> None:
        with (self.path / "rounds.jsonl").open("a", encoding="utf-8") as file:
            file.write(jsontext.dumps(row) + "\n")

    def rows(self) -> list[dict[str, Any]]:
        """Return the recorded rounds; a last line that a crash cut short is left out."""
        path = self.path / "rounds.jsonl"
        if not path.exists():  # no round was run yet; of a finished run, `result` has checked the file
            return []
        try:
            *whole, _cut = path.read_text(encoding="utf-8").split("\n")
            rows = [json.loads(line) for line in whole]
        except (OSError, ValueError, RecursionError) as error:
            raise _damaged(path, error) from None
        for n, row in enumerate(rows, start=1):
            if not isinstance(row, dict) or type(row.get("t")) is not int:
                raise _damaged(path, f"line {n} is no record of a round")
        return rows

    def checkpoint(self, arrays: dict[str, Array]) -> None:
        """Save all that the next round needs, after the rows so far are on disk."""
        self._sync_rounds()
        write_whole(self.path / "checkpoint.npz", lambda file: np.savez(file, **arrays))  # type: ignore[arg-type]

    def _sync_rounds(self) -> None:
        rounds = self.path / "rounds.jsonl"
        if rounds.exists():
            with rounds.open("rb+") as file:
                os.fsync(file.fileno())

    def saved(self, layout: Mapping[str, ArrayLayout] | None = None) -> dict[str, Array] | None:
        """Return the last checkpoint, or None; refuse arrays that are not as `layout` says."""
        path = self.path / "checkpoint.npz"
        return fitting(path, load_npz(path), {"t": ("iu", ())} | dict(layout or {})) if path.exists() else None

    def restore(
        self, layout: Mapping[str, ArrayLayout] | None = None, hidden: Collection[str] = ()
    ) -> dict[str, Array] | None:
        """Return the last checkpoint and cut rounds.jsonl back to it; if there is no checkpoint, None and no rows.

        What an earlier version recorded under a `hidden` name becomes null.
        """
        saved = self.saved(layout)
        last = int(saved["t"]) if saved else 0
        kept = [{name: None if name in hidden else value for name, value in row.items()}
                for row in self.rows() if row["t"] <= last]  # fmt: skip
        if last and not kept:  # the first round is always recorded
            raise _damaged(self.path / "rounds.jsonl", f"it lacks the rounds up to the checkpoint at {last}")
        text = "".join(jsontext.dumps(row) + "\n" for row in kept)
        write_whole(self.path / "rounds.jsonl", lambda file: file.write(text.encode()))
        return saved

    def finish(self, model: dict[str, Array], result: dict[str, Any]) -> dict[str, Any]:
        """Write the model, then the result, which marks the run complete; return the sealed result."""
        write_whole(self.path / "model.npz", lambda file: np.savez(file, **model))  # type: ignore[arg-type]
        self._sync_rounds()
        sealed = record.result_of(self.path, result)
        text = _LISTS.sub(lambda found: f"[{' '.join(found[1].split())}]", jsontext.dumps(sealed, indent=2)) + "\n"
        write_whole(self.path / "result.json", lambda file: file.write(text.encode()))
        (self.path / "checkpoint.npz").unlink(missing_ok=True)
        return sealed

    def result(self) -> dict[str, Any]:
        path = self.path / "result.json"
        try:
            found = record.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise _damaged(path, error) from None
        missing = [key for key in RESULT_KEYS if not isinstance(found, dict) or key not in found]
        measure = None if missing else judge(found)
        judged = (ERROR.key,) if measure is None else (measure.key, measure.averaged)
        missing += [key for key in judged if not missing and key not in found]
        if missing:
            raise _damaged(path, f"it has no {missing[0]}")
        record.check_result(self.path, found)
        return dict(found)


def load_npz(path: Path) -> dict[str, Array]:
    """Return the arrays of an .npz file; an error names the file."""
    try:
        return read_arrays(path)
    except FileNotFoundError:
        raise RunDirectoryError(f"{path} does not exist: give the directory of a finished run.") from None
    except (OSError, ValueError) as error:
        raise _damaged(path, error) from None


def fitting(path: Path, arrays: dict[str, Array], layout: Mapping[str, ArrayLayout]) -> dict[str, Array]:
    """Return `arrays`, after a check that every array of `layout` is there with its kind and shape."""
    for name, (kinds, shape) in layout.items():
        if name not in arrays:
            raise _damaged(path, f"it has no {name}")
        found = arrays[name]
        alike = len(found.shape) == len(shape) and all(
            n in (None, m) for n, m in zip(shape, found.shape, strict=True)
        )
        if found.dtype.kind not in kinds or not alike:
            raise _damaged(path, f"its {name} is {found.dtype} of shape {found.shape}")
    return arrays


def _damaged(path: Path, reason: object) -> RunDirectoryError:
    return RunDirectoryError(f"{path} is damaged ({reason}): restore it, or start the run again.")


def _check_free(path: Path) -> None:
    """Refuse a path that cannot become a new directory."""
    if path.name in ("", ".."):
        raise RunDirectoryError(f"{str(path)!r} is no name for a run: give --out a new directory, such as runs/first.")
    if path.is_symlink():
        raise RunDirectoryError(f"{path} is a link: give --out the directory itself, or a new one.")
    if path.exists() and not path.is_dir():
        raise RunDirectoryError(f"{path} is a file: give --out a new directory.")
    if path.exists() and any(path.iterdir()):
        raise RunDirectoryError(f"{path} is not empty: name another --out, or continue that run with --resume {path}.")


@contextlib.contextmanager
def _drafted(parent: Path) -> Iterator[Path]:
    """Make `parent` and a new directory in it; if the block fails, remove both."""
    made = list(takewhile(lambda folder: not folder.exists(), (parent, *parent.parents)))
    draft = None
    try:
        parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=".tacit-", dir=parent))
        draft.chmod(0o777 & ~_umask())
        yield draft
    except BaseException:
        if draft is not None:
            shutil.rmtree(draft, ignore_errors=True)
        for folder in made:
            with contextlib.suppress(OSError):  # the folder was never made, or holds files of another process by now
                folder.rmdir()
        raise


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name too long for any file
        return False


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
