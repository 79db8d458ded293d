"""What is below the served directory: runs, sweeps, federations and ledgers, found anew only where a folder changed."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

from tacit.ui.place import Parts, Place, Unreadable, shown

DEEPEST = 8  # folders below the served directory
MOST = 50_000  # folders in all
RACY = 2.0  # seconds: a folder changed so lately may change again without another time of change
FRESH = 0.5  # seconds that a listing serves without a look

RUN, SWEEP, FEDERATION, LEDGERS = "run", "sweep", "federation", "ledgers"


@dataclass(frozen=True)
class Item:
    """Something that the page can show, under an id that says nothing of its path."""

    id: str
    kind: str
    parts: Parts

    @property
    def name(self) -> str:
        return shown(self.parts[-1]) if self.parts else "."

    @property
    def folder(self) -> str:
        """The folders above it."""
        return "/".join(map(shown, self.parts[:-1]))


@dataclass(frozen=True)
class _Folder:
    """A folder as it was last listed."""

    mtime: int
    listed: float  # seconds of the clock that files have too
    kind: str | None
    folders: tuple[str, ...]

    def holds(self, mtime: int) -> bool:
        """Tell whether the listing is still good: a change in the tick of the listing leaves the time as it was."""
        return mtime == self.mtime and self.listed - mtime / 1e9 > RACY


class Index:
    """The items below a place, by id. A second look costs one stat a folder."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._known: dict[Parts, _Folder] = {}
        self._items: dict[str, Item] = {}
        self._looked = -FRESH
        self._lock = threading.Lock()
        self.cut = False  # whether there are more folders than are looked at

    def items(self) -> dict[str, Item]:
        """Return all items by id."""
        with self._lock:
            if time.monotonic() - self._looked >= FRESH:
                self._look()
            return self._items

    def _look(self) -> None:
        known: dict[Parts, _Folder] = {}
        self.cut = False
        found = {item.id: item for item in self._walked((), known)}
        self._known, self._items, self._looked = known, found, time.monotonic()

    def _walked(self, parts: Parts, known: dict[Parts, _Folder]) -> Iterator[Item]:
        if len(known) >= MOST:
            self.cut = True
            return
        try:
            with self._place.folder(parts) as opened:
                yield from self._inside(opened, parts, known)
        except (OSError, Unreadable):  # it is gone, or not ours to read
            return

    def _inside(self, opened: int, parts: Parts, known: dict[Parts, _Folder]) -> Iterator[Item]:
        before, mtime = self._known.get(parts), os.fstat(opened).st_mtime_ns
        own = before if before is not None and before.holds(mtime) else _listed(opened, mtime)
        known[parts] = own
        if own.kind is not None:
            yield Item(_id(parts), own.kind, parts)
        if own.kind != RUN and len(parts) < DEEPEST:
            for name in own.folders:
                yield from self._walked((*parts, name), known)


def _id(parts: Parts) -> str:
    return hashlib.sha256(b"/".join(map(os.fsencode, parts))).hexdigest()[:20]


def _listed(opened: int, mtime: int) -> _Folder:
    """List an open folder; drafts of folders begin with a dot, and are no runs."""
    files, folders = set(), []
    listed = time.time()
    with os.scandir(opened) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                folders += [entry.name] if not entry.name.startswith(".") else []
            elif entry.is_file(follow_symlinks=False):
                files.add(entry.name)
    return _Folder(mtime, listed, _kind(files), tuple(sorted(folders)))


def _kind(files: set[str]) -> str | None:
    if "spec.toml" in files:
        return RUN
    if "records.jsonl" in files or "artefact.json" in files:
        return SWEEP
    if "status.json" in files and "federation.toml" in files:
        return FEDERATION
    return LEDGERS if any(name.endswith(".ledger") for name in files) else None
