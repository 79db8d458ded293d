"""A run, a sweep, a federation or a folder of ledgers in one row of the list."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tacit.errors import RecordError
from tacit.leaderboard.standing import is_compared
from tacit.lock import STOP
from tacit.measures import ERROR, judge
from tacit.report.privacy_text import PrivacyText, privacy_text
from tacit.ui import index
from tacit.ui.history import ROUNDS
from tacit.ui.index import Index, Item
from tacit.ui.place import Parts, Place, Stamp, Unreadable
from tacit.ui.said import LONGEST, document, finite, last_record, last_row, spec, text, whole

RUNNING, STOPPING, FINISHED, STOPPED, DAMAGED = "running", "stopping", "finished", "stopped", "unreadable"
ORDERS = ("updated", "name", "error", "epsilon")
SMALL = 4 << 20  # bytes of a spec, a result or a status
PAGE = 100  # rows at a time

FILES = ("spec.toml", "result.json", ROUNDS, STOP)

_FIRST = {STOPPING: 0, RUNNING: 0}


@dataclass(frozen=True)
class Row:
    """One row; a number that is not known is None, a text that is not known is empty."""

    id: str
    kind: str
    name: str
    folder: str
    state: str
    algorithm: str = ""
    data: str = ""
    label: str = ""  # what its guarantee is worth: private, weak, simulated noise, not private or unreadable
    round: int | None = None
    rounds: int | None = None
    epsilon: float | None = None
    dp_delta: float | None = None
    judged: float | None = None
    shown: str = "-"  # what it is judged by, with its unit
    measure: str = ""
    updated: float = 0.0  # seconds since 1970
    note: str = ""

    @property
    def words(self) -> str:
        """What a filter looks in."""
        return " ".join(
            (self.folder + "/" + self.name, self.kind, self.state, self.algorithm, self.data, self.label)
        ).lower()


class Rows:
    """The rows of all items: files are read again only where they changed."""

    def __init__(self, place: Place, found: Index) -> None:
        self._place, self._index = place, found
        self._cache: dict[tuple[Parts, str], tuple[Stamp, Any]] = {}
        self._lock = threading.Lock()

    def all(self) -> list[Row]:
        """Return every row."""
        with self._lock:  # who comes second finds the files read
            items = self._index.items()
            inside = _inside(items.values())
            self._cache = {key: kept for key, kept in self._cache.items() if key[0] in inside}
            return [self.row(item, inside[item.parts]) for item in items.values()]

    def row(self, item: Item, inside: int = 0) -> Row:
        """Return the row of an item that holds so many runs."""
        bare = Row(item.id, item.kind, item.name, item.folder, FINISHED)
        try:
            if item.kind == index.RUN:
                return self._run(item.parts, bare)
            if item.kind == index.FEDERATION:
                return self._federation(item.parts, bare)
            return self._folder(item, bare, inside)
        except Unreadable as error:
            return replace(bare, state=DAMAGED, note=str(error))

    def spec(self, parts: Parts) -> Mapping[str, Any]:
        """Return the spec of a run by dotted keys."""
        return dict(self._read(parts, "spec.toml", spec) or {})

    def result(self, parts: Parts) -> Mapping[str, Any]:
        """Return the result of a run; empty where it has none."""
        return dict(self._read(parts, "result.json", document) or {})

    def status(self, parts: Parts) -> Mapping[str, Any]:
        """Return where a federation stands."""
        return dict(self._read(parts, "status.json", document) or {})

    def state(self, parts: Parts) -> str:
        """Return whether a run is finished, goes on, or has stopped."""
        return self._state(parts, self._place.stamps(parts, FILES))

    def _state(self, parts: Parts, there: Mapping[str, Stamp]) -> str:
        if "result.json" in there:
            return FINISHED
        if not self._place.is_written(parts):
            return STOPPED
        return STOPPING if STOP in there else RUNNING

    def _run(self, parts: Parts, bare: Row) -> Row:
        there = self._place.stamps(parts, FILES)
        asked, state = self._read(parts, "spec.toml", spec, there=there) or {}, self._state(parts, there)
        if state == FINISHED:
            done = self._read(parts, "result.json", document, there=there)
        else:
            done = self._read(parts, ROUNDS, last_row, tail=True, there=there) or {}
        measure = judge(done) or ERROR
        judged = finite(done.get(measure.key))
        stamp = there.get("result.json" if state == FINISHED else ROUNDS) or there.get("spec.toml")
        rounds, last = whole(asked.get("run.rounds")), whole(done.get("t"))
        hoped = {name: asked.get(f"privacy.{name}") for name in ("epsilon", "dp_delta")}
        label = _label(asked, done, state == FINISHED)
        promised = {} if label == DAMAGED else done if state == FINISHED else hoped
        return replace(
            bare, state=state, algorithm=text(asked.get("algorithm.name")),
            data=text(done.get("dataset") or asked.get("data.source")), label=label,
            round=rounds if state == FINISHED else last or 0, rounds=rounds, epsilon=finite(promised.get("epsilon")),
            dp_delta=finite(promised.get("dp_delta")), judged=judged, shown=measure.shown(judged), measure=measure.name,
            updated=stamp.mtime / 1e9 if stamp else 0.0,
        )  # fmt: skip

    def _federation(self, parts: Parts, bare: Row) -> Row:
        said = self.status(parts)
        measure = judge(said) or ERROR
        judged = finite(said.get(measure.key))
        state = text(said.get("state")) or DAMAGED
        known = RUNNING if self._place.is_written(parts) else FINISHED if state == FINISHED else STOPPED
        return replace(
            bare, state=known, note=state, round=whole(said.get("round")), rounds=whole(said.get("of")),
            dp_delta=finite(said.get("dp_delta")), judged=judged, shown=measure.shown(judged), measure=measure.name,
            updated=finite(said.get("at")) or 0.0,
        )  # fmt: skip

    def _folder(self, item: Item, bare: Row, inside: int) -> Row:
        records = self._place.stamp(item.parts, "records.jsonl")
        stamp = records or self._place.stamp(item.parts, "artefact.json")
        note = f"{inside} run directories" if inside else ""
        row = replace(bare, state=FINISHED if stamp else "", note=note, updated=stamp.mtime / 1e9 if stamp else 0.0)
        found = self._read(item.parts, "records.jsonl", last_record, tail=True) if records else {}
        return replace(row, kind="comparison", note="methods compared") if is_compared(found) else row

    def _read(
        self,
        parts: Parts,
        name: str,
        parse: Callable[[bytes], Any],
        tail: bool = False,
        there: Mapping[str, Stamp] | None = None,
    ) -> Any:
        """Return what a file says, parsed once as long as the file stays as it is; None where there is no file."""
        stamp = self._place.stamp(parts, name) if there is None else there.get(name)
        if stamp is None:
            return None
        known = self._cache.get((parts, name))
        if known is None or known[0] != stamp:
            content = self._place.tail(parts, name, 2 * LONGEST) if tail else self._place.read(parts, name, most=SMALL)
            known = stamp, parse(content)
            self._cache[parts, name] = known
        return known[1]


def chosen(rows: Sequence[Row], words: str = "", state: str = "", order: str = "updated") -> list[Row]:
    """Return the rows that hold all words and are in a state, runs that go on first, in an order."""
    wanted = words.lower().split()
    keys: dict[str, Callable[[Row], Any]] = {
        "updated": lambda row: (_FIRST.get(row.state, 1), -row.updated),
        "name": lambda row: (row.folder, row.name),
        "error": lambda row: (row.judged is None, row.judged),
        "epsilon": lambda row: (row.epsilon is None, row.epsilon),
    }
    found = [row for row in rows if all(word in row.words for word in wanted) and in_state(row, state)]
    return sorted(sorted(found, key=keys["name"]), key=keys.get(order, keys["updated"]))


def in_state(row: Row, state: str) -> bool:
    """Tell whether a row belongs under a state of the filter."""
    return not state or row.state == state or (state == RUNNING and row.state == STOPPING)


def _inside(items: Iterable[Item]) -> dict[Parts, int]:
    """Return how many runs stand below each item."""
    found = {item.parts: 0 for item in items}
    for item in items:
        for n in range(len(item.parts)):
            if item.kind == index.RUN and item.parts[:n] in found:
                found[item.parts[:n]] += 1
    return found


def privacy_of(spec: Mapping[str, Any], done: Mapping[str, Any]) -> PrivacyText | None:
    """Return what the result of a run says about privacy; None if it makes no sense."""
    try:
        found = privacy_text(done)
    except RecordError:
        return None
    return found.as_simulated() if spec.get("privacy.noise") == "simulated" else found


def _label(spec: Mapping[str, Any], done: Mapping[str, Any], finished: bool) -> str:
    """Return what a guarantee is worth, in the words of the report; of a run that goes on, what it draws."""
    if finished:
        found = privacy_of(spec, done)
        return DAMAGED if found is None else found.label
    return "simulated noise" if spec.get("privacy.noise") == "simulated" else ""
