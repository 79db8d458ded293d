"""A run on disk: spec.toml, rounds.jsonl, result.json, model.npz, and checkpoint.npz while it lasts.

Every file but rounds.jsonl appears whole or not at all. rounds.jsonl grows by whole lines; what lies
beyond the last checkpoint is dropped on resume and computed again.
"""

from __future__ import annotations

import json
import os
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np

from tacit.errors import RunDirectoryError, SpecError
from tacit.experiments import toml
from tacit.experiments.spec import Spec
from tacit.types import Array


class RunDirectory:
    """The directory of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, path: Path, spec: Spec) -> RunDirectory:
        """A new directory that holds spec.toml; an existing one must be empty."""
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise RunDirectoryError(
                f"{path} is not empty: name another --out, or continue that run with --resume {path}."
            )
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            draft = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))
            draft.chmod(0o777 & ~_umask())
            write_whole(draft / "spec.toml", lambda file: file.write(toml.dumps(spec).encode()))
            draft.rename(path)  # replaces an empty directory
        except OSError as error:
            raise RunDirectoryError(f"cannot write {path}: {error.strerror}. Choose another --out.") from None
        return cls(path)

    @classmethod
    def open(cls, path: Path) -> RunDirectory:
        """A directory that `create` made."""
        if not (path / "spec.toml").is_file():
            raise RunDirectoryError(f"{path} holds no run (no spec.toml): give the --out of a run started before.")
        return cls(path)

    def spec(self) -> Spec:
        try:
            return Spec().with_values(toml.read(self.path / "spec.toml")).checked()
        except SpecError as error:
            raise SpecError(f"{self.path / 'spec.toml'}: {error}") from None

    @property
    def finished(self) -> bool:
        return (self.path / "result.json").is_file()

    def append(self, row: dict[str, Any]) -> None:
        with (self.path / "rounds.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")

    def rows(self) -> list[dict[str, Any]]:
        """The recorded rounds; a last line cut short by a crash is left out."""
        path = self.path / "rounds.jsonl"
        if not path.exists():
            return []
        *whole, _cut = path.read_text(encoding="utf-8").split("\n")
        try:
            return [json.loads(line) for line in whole]
        except json.JSONDecodeError as error:
            raise RunDirectoryError(f"{path} is damaged: {error}. Restore it, or start the run again.") from None

    def checkpoint(self, arrays: dict[str, Array]) -> None:
        """Save all that the next round needs; the rows so far are on disk before it."""
        rounds = self.path / "rounds.jsonl"
        if rounds.exists():
            with rounds.open("rb+") as file:
                os.fsync(file.fileno())
        write_whole(self.path / "checkpoint.npz", lambda file: np.savez(file, **arrays))  # type: ignore[arg-type]

    def restore(self) -> dict[str, Array] | None:
        """The last checkpoint, with rounds.jsonl cut back to it; None (and no rows) if there is none."""
        path = self.path / "checkpoint.npz"
        saved = load_npz(path) if path.exists() else None
        last = int(saved["t"]) if saved else 0
        kept = [row for row in self.rows() if row["t"] <= last]
        text = "".join(json.dumps(row) + "\n" for row in kept)
        write_whole(self.path / "rounds.jsonl", lambda file: file.write(text.encode()))
        return saved

    def finish(self, model: dict[str, Array], result: dict[str, Any]) -> None:
        """Write the model, then the result that marks the run complete."""
        write_whole(self.path / "model.npz", lambda file: np.savez(file, **model))  # type: ignore[arg-type]
        text = json.dumps(result, indent=2) + "\n"
        write_whole(self.path / "result.json", lambda file: file.write(text.encode()))
        (self.path / "checkpoint.npz").unlink(missing_ok=True)

    def result(self) -> dict[str, Any]:
        try:
            return dict(json.loads((self.path / "result.json").read_text(encoding="utf-8")))
        except (OSError, ValueError) as error:
            raise RunDirectoryError(f"cannot read {self.path / 'result.json'}: {error}.") from None


def write_whole(path: Path, write: Callable[[IO[bytes]], Any]) -> None:
    """Write to a neighbour, flush it to disk, and rename: the file is the old one or the new one."""
    draft = path.with_name(f".{path.name}.draft")
    with draft.open("wb") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def load_npz(path: Path) -> dict[str, Array]:
    """The arrays of an .npz file, or an error that names it."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            return dict(arrays)
    except FileNotFoundError:
        raise RunDirectoryError(f"{path} does not exist: give the directory of a finished run.") from None
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise RunDirectoryError(f"{path} is damaged ({error}): restore it, or train again.") from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
