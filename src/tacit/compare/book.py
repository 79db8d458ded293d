"""The records of a comparison on disk: one sealed line a job, appended as it ends, found again by its spec."""

from __future__ import annotations

import os
from pathlib import Path

from tacit import record
from tacit.compare.job import Job
from tacit.errors import RecordError, RunDirectoryError
from tacit.run.directory import check_writable

Values = record.Values


class Book:
    """records.jsonl in a directory, which is made when the first record is written."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "records.jsonl"
        check_writable(directory, "give --out a new directory, or that of a comparison")
        self.held: dict[str, Values] = {}
        self.cut = False  # whether the last line has no end
        if self.path.exists():
            self.held = {one["spec_hash"]: one for one in self._whole_lines()}
            for one in self.held.values():
                if one.get("role") not in ("trial", "run"):
                    raise RecordError(f"{self.path} holds records that are none of a comparison: name another --out.")

    def __contains__(self, job: Job) -> bool:
        return record.spec_hash(job.spec) in self.held

    def __getitem__(self, job: Job) -> Values:
        return self.held[record.spec_hash(job.spec)]

    def add(self, content: Values) -> Values:
        """Seal a record, and have it on disk before it is used."""
        one = record.sealed(content)
        try:
            if self.cut:
                self._drop_a_cut_line()
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(record.lines([one]))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise RunDirectoryError(f"cannot write {self.path}: {error.strerror}. Choose another --out.") from None
        self.held[one["spec_hash"]] = one
        return one

    def _whole_lines(self) -> list[Values]:
        """A last line without its end was being written when the process was killed: its job is run again."""
        try:
            text = self.path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise RunDirectoryError(f"cannot read {self.path}: {error}. Name another --out.") from None
        self.cut = not text.endswith("\n")
        lines = text[: text.rfind("\n") + 1].splitlines()
        return [record.checked(line, f"{self.path}, line {n}") for n, line in enumerate(lines, 1)]

    def _drop_a_cut_line(self) -> None:
        """Before the next one is appended."""
        os.truncate(self.path, self.path.read_bytes().rfind(b"\n") + 1)
        self.cut = False
