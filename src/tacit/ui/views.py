"""What the page is told of one item: the facts and curves of a run, a sweep, a federation, a comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import PurePath
from typing import Any

from tacit.jsontext import Values
from tacit.report.chart import MOST
from tacit.report.privacy_text import EARLIER, RENDERED, PrivacyText
from tacit.report.runs import short
from tacit.report.runs import text as spelled
from tacit.ui import index, rows
from tacit.ui.details import LISTED, Details
from tacit.ui.gauges import Gauges, of_status
from tacit.ui.history import Histories, charts
from tacit.ui.index import Index, Item
from tacit.ui.place import Parts, Place, Stamp, Unreadable, shown
from tacit.ui.rows import FINISHED, RUNNING, STOPPING, Rows
from tacit.ui.said import finite, text, text_long, whole

REST = (*RENDERED, "seal", "spec_hash", "rounds_hash", "model_hash")  # of a result, shown elsewhere or for no reader


class Missing(Exception):
    """There is no such item."""


class Views:
    """What the page can ask for."""

    def __init__(self, place: Place) -> None:
        self.place, self.index = place, Index(place)
        self.rows, self.histories, self.gauges = Rows(place, self.index), Histories(place), Gauges(place)
        self.details = Details(place, self.rows)

    def listing(self, words: str, state: str, order: str, start: int) -> Values:
        """Return one page of the list, and how many there are in each state."""
        every = self.rows.all()
        named = rows.chosen(every, words, "", order)
        found = [row for row in named if rows.in_state(row, state)]
        counts = {one: sum(rows.in_state(row, one) for row in named) for one in ("", RUNNING, FINISHED, rows.STOPPED)}
        return {
            "folder": shown(self.place.root.name), "total": len(found), "all": len(every), "counts": counts,
            "cut": self.index.cut, "start": start, "rows": [asdict(row) for row in found[start : start + rows.PAGE]],
        }  # fmt: skip

    def item(self, name: str) -> Item:
        """Return the item with an id."""
        try:
            return self.index.items()[name]
        except KeyError:
            raise Missing from None

    def shown(self, name: str) -> Values:
        """Return what is known at once of an item."""
        item = self.item(name)
        row = self.rows.row(item)
        told: Values = {"row": asdict(row), "spec": None, "result": [], "charts": [], "gauges": None, "runs": []}
        if row.state == rows.DAMAGED:
            return told
        if item.kind == index.RUN:
            return told | self._run(item.parts, row)
        if item.kind == index.FEDERATION:
            return told | self._federation(item)
        return told | {"runs": self._runs_in(item)}

    def _run(self, parts: Parts, row: rows.Row) -> Values:
        state = row.state
        result, spec = self.rows.result(parts) if state == FINISHED else {}, self.rows.spec(parts)
        history = self.histories.of(parts)
        drawn = [chart.description() for chart in charts([("this run", history)])]
        agents = result.get("agents") or spec.get("data.agents")
        said = rows.privacy_of(spec, result) if state == FINISHED else None
        facts = [(key.replace("_", " "), _spelled(value)) for key, value in result.items() if key not in REST]
        return {
            "guarantee": text_long(said.sentence if said else ""), "agents": whole(agents),
            "result": facts + _facts(said), "promise": _promise(said, state == FINISHED),
            "can_stop": state == RUNNING, "spec": self._spec_text(parts), "charts": drawn,
            "epsilon_per_round": finite(result.get("epsilon_per_round")), "seconds": finite(result.get("seconds")),
            "rate": _rate(history.t, self.place.stamp(parts, "spec.toml"), self.place.stamp(parts, "rounds.jsonl")),
        }  # fmt: skip

    def _spec_text(self, parts: Parts) -> str:
        return self.place.read(parts, "spec.toml", most=rows.SMALL).decode("utf-8", "replace")

    def _federation(self, item: Item) -> Values:
        said = self.rows.status(item.parts)
        runs = self._runs_in(item)
        most = next((row["epsilon"] for row in runs if row["name"] == text(said.get("run"))), None)
        sites = said.get("sites") if isinstance(said.get("sites"), dict) else {}
        facts = [("state", text_long(said.get("state"))), ("run", text(said.get("run")))]
        facts += [(f"site {text(site)}", _site(of, said)) for site, of in list((sites or {}).items())[:LISTED]]
        return {
            "result": facts,
            "runs": runs,
            "gauges": {"gauges": of_status(said, most), "unread": [], "more": 0, "charts": []},
        }

    def _runs_in(self, item: Item) -> list[Values]:
        """Return the rows of the runs below an item, the latest first."""
        depth = len(item.parts)
        inner = [
            one for one in self.index.items().values() if one.parts[:depth] == item.parts and one.kind == index.RUN
        ]
        return [asdict(row) for row in rows.chosen([self.rows.row(one) for one in inner])[:LISTED]]

    def more(self, name: str) -> Values:
        """Return what takes longer to find out of an item."""
        return self.details.of(self.item(name))

    def budgets(self, name: str) -> Values:
        """Return the gauges of the ledgers that a run keeps, or of a folder of ledgers."""
        item = self.item(name)
        if item.kind == index.LEDGERS:
            return self.gauges.of(item.parts) | {"where": ""}
        if item.kind != index.RUN:
            return {"gauges": [], "unread": [], "more": 0, "charts": [], "where": ""}
        named = self.rows.spec(item.parts).get("privacy.ledger")
        if not named:
            return self.gauges.of((*item.parts, "ledgers")) | {"where": ""}
        try:
            parts = PurePath(str(named)).relative_to(self.place.root).parts
        except ValueError:
            where = "The ledgers of its agents are outside the served directory: tacit ledger show reads them."
            return {"gauges": [], "unread": [], "more": 0, "charts": [], "where": where}
        return self.gauges.of(parts) | {"where": "/".join(map(shown, parts))}

    def compared(self, names: Sequence[str]) -> Values:
        """Return the curves of some runs on the same axes, and the keys in which their specs differ."""
        items = [self.item(name) for name in names[:MOST] or [""]]
        runs = [item for item in items if item.kind == index.RUN]
        told = [self.rows.row(item) for item in runs]
        labels = _labels(told)
        specs = [
            self.rows.spec(item.parts) if row.state != rows.DAMAGED else {}
            for item, row in zip(runs, told, strict=True)
        ]
        keys = dict.fromkeys(key for spec in specs for key in spec)
        apart = [[short(key), *(_spelled(spec.get(key)) for spec in specs)] for key in keys
                 if len({repr(spec.get(key)) for spec in specs}) > 1]  # fmt: skip
        drawn = charts([(label, self.histories.of(item.parts)) for label, item in zip(labels, runs, strict=True)])
        return {"rows": [asdict(row) for row in told], "labels": labels, "apart": apart[:LISTED],
                "charts": [chart.description() for chart in drawn]}  # fmt: skip

    def stop(self, name: str) -> Values:
        """Ask the process of a run to stop after its round."""
        item = self.item(name)
        if item.kind != index.RUN or self.rows.state(item.parts) not in (RUNNING, STOPPING):
            raise Unreadable("nothing runs there that could be stopped")
        self.place.ask_to_stop(item.parts)
        return {"state": self.rows.state(item.parts)}


def _promise(said: PrivacyText | None, finished: bool) -> str:
    """Return what the guarantee of a finished run means, in the words of its report."""
    if finished and said is None:
        return "Its result makes no sense, and no guarantee is shown."
    if said is None or not said.private:
        return ""
    return said.promise if said.guarantee else f"{said.promise} {EARLIER}."


def _facts(said: PrivacyText | None) -> list[tuple[str, str]]:
    """Return who is trusted, and all else that a guarantee states."""
    if said is None or not said.private:
        return []
    who = ("would be trusted" if said.simulated else "trusted", ". ".join(said.trusted))
    facts = (who, *said.facts, ("not covered", "; ".join(said.not_covered)))
    return [(name, text_long(words)) for name, words in facts]


def _spelled(value: object) -> str:
    try:
        return text_long(spelled(value))
    except (ValueError, RecursionError, KeyError, TypeError):
        return ""


def _rate(ts: Sequence[int], start: Stamp | None, end: Stamp | None) -> float | None:
    """Return rounds a second since the directory was made, roughly: a run that was resumed has rested."""
    if not ts or start is None or end is None or end.mtime <= start.mtime:
        return None
    return ts[-1] / ((end.mtime - start.mtime) / 1e9)


def _labels(told: Sequence[rows.Row]) -> list[str]:
    """Name runs as briefly as tells them apart."""
    names = [row.name for row in told]
    return [f"{row.folder}/{row.name}" if names.count(row.name) > 1 else row.name for row in told]


def _site(of: object, said: Mapping[str, Any]) -> str:
    """Say in a few words how a site is doing."""
    if not isinstance(of, dict):
        return ""
    if "here" in of:
        return "here" if of["here"] else "no word yet"
    seen, now = finite(of.get("last_seen")), finite(said.get("at"))
    words = [f"last seen {max(0.0, now - seen):.0f} s before this was written" if seen and now else "not seen yet"]
    words += ["late"] if of.get("late") is True else []
    return ", ".join(words)
