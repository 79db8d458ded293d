"""What the page is told of one item: the facts and curves of a run, a sweep, a federation, a comparison."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import PurePath
from typing import Any

from tacit.errors import TacitError
from tacit.jsontext import Values
from tacit.report import curves, output, shapes
from tacit.report.chart import MOST, Chart
from tacit.report.runs import short
from tacit.report.runs import text as spelled
from tacit.report.source import Source, read
from tacit.ui import charts, index, rows
from tacit.ui.gauges import Gauges, of_status
from tacit.ui.history import Histories, finite
from tacit.ui.index import Index, Item
from tacit.ui.place import Parts, Place, Stamp, Unreadable, shown
from tacit.ui.rows import FINISHED, RUNNING, STOPPING, Rows, text

RECORDED = ("spec.toml", "result.json", "rounds.jsonl", "model.npz", "records.jsonl", "artefact.json")
CHARTED = 60  # runs of a sweep at most whose means are drawn: the page compares others by choice
LISTED = 200  # rows of a table
AUDIT = "audit.json"
REST = ("guarantee", "seal", "spec_hash", "rounds_hash", "model_hash")  # of a result, shown elsewhere or for no reader


class Missing(Exception):
    """There is no such item."""


class Views:
    """What the page can ask for. Slow parts are kept as long as the files they were made of stay as they are."""

    def __init__(self, place: Place) -> None:
        self.place, self.index = place, Index(place)
        self.rows, self.histories, self.gauges = Rows(place, self.index), Histories(place), Gauges(place)
        self._kept: dict[tuple[str, Parts], tuple[tuple[Stamp | None, ...], Values]] = {}

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
            return told | self._run(item.parts, row.state)
        if item.kind == index.FEDERATION:
            return told | self._federation(item)
        return told | {"runs": self._runs_in(item)}

    def _run(self, parts: Parts, state: str) -> Values:
        result, spec = self.rows.result(parts) if state == FINISHED else {}, self.rows.spec(parts)
        history = self.histories.of(parts)
        drawn = [chart.description() for chart in charts.drawn([("this run", history)])]
        agents = result.get("agents") or spec.get("data.agents")
        facts = [(key.replace("_", " "), _spelled(value)) for key, value in result.items() if key not in REST]
        return {
            "guarantee": text_long(result.get("guarantee")), "agents": rows.whole(agents), "result": facts,
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
        """Return what takes longer: whether records are whole, effects of columns, the budget, the audit."""
        item = self.item(name)
        stamps = tuple(self.place.stamp(item.parts, file) for file in (*RECORDED, AUDIT))
        known = self._kept.get(("more", item.parts))
        if known is None or known[0] != stamps:
            known = stamps, self._more(item)
            self._kept["more", item.parts] = known
        return known[1]

    def _more(self, item: Item) -> Values:
        told: Values = {
            "damaged": "",
            "charts": [],
            "effects": None,
            "audit": self._audit(item.parts),
            "comparison": [],
        }
        if item.kind not in (index.RUN, index.SWEEP) or self.rows.row(item).state != FINISHED:
            return told
        try:
            with self.place.copied(item.parts, RECORDED) as copy:
                source = _source(copy, item)
        except Unreadable as error:
            return told | {"damaged": str(error)}
        if item.kind == index.RUN:
            budget = replace(curves.spent(source.runs[0]), name="this run")
            own = [_budget(source, budget)] if budget.x else []
            return told | {"charts": [one.description() for one in own], "effects": _effects(source.learnt)}
        drawn = curves.panels(source.artefact, source.runs) if source.artefact else []
        drawn += curves.standard(source.runs) if 0 < len(source.runs) <= CHARTED else []
        columns = (
            "runs",
            "algorithm",
            "data",
            "label",
            "epsilon",
            "dp_delta",
            "rounds",
            "seeds",
            "test_error",
            "test_rmse",
        )
        table = [{key: _plain(row.get(key)) for key in columns} for row in output.comparison([source])[:LISTED]]
        described = [one.description() for one in drawn if not one.empty]
        return told | {
            "charts": described,
            "comparison": table,
            "title": source.title,
            "many": len(source.runs) > CHARTED,
        }

    def _audit(self, parts: Parts) -> Values | None:
        """Return what `tacit audit --json` said of a run, where its output is in the run's directory."""
        if self.place.stamp(parts, AUDIT) is None:
            return None
        try:
            said = rows.document(self.place.read(parts, AUDIT, most=rows.SMALL))
        except Unreadable as error:
            return {"reason": str(error), "passed": None, "findings": []}
        listed = said.get("findings")
        findings = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
        kept = [{**{key: text(one.get(key)) for key in ("attack", "name", "verdict", "by")},
                 **{key: finite(one.get(key)) for key in ("claimed", "measured", "dp_delta", "confidence", "detects")}}
                for one in findings[:LISTED]]  # fmt: skip
        passed = said.get("passed")
        return {"reason": "", "passed": passed if isinstance(passed, bool) else None, "findings": kept}

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
        drawn = charts.drawn([(label, self.histories.of(item.parts)) for label, item in zip(labels, runs, strict=True)])
        return {"rows": [asdict(row) for row in told], "labels": labels, "apart": apart[:LISTED],
                "charts": [chart.description() for chart in drawn]}  # fmt: skip

    def stop(self, name: str) -> Values:
        """Ask the process of a run to stop after its round."""
        item = self.item(name)
        if item.kind != index.RUN or self.rows.state(item.parts) not in (RUNNING, STOPPING):
            raise Unreadable("nothing runs there that could be stopped")
        self.place.ask_to_stop(item.parts)
        return {"state": self.rows.state(item.parts)}


def text_long(value: object) -> str:
    """Return a sentence of a result."""
    return value[:4000] if isinstance(value, str) else ""


def _spelled(value: object) -> str:
    try:
        return text_long(spelled(value))
    except (ValueError, RecursionError, KeyError, TypeError):
        return ""


def _plain(value: Any) -> Any:
    """Return a cell of a comparison: the mean of a spread."""
    found = value.get("mean") if isinstance(value, dict) else value
    return None if isinstance(found, float) and not math.isfinite(found) else found


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


def _source(copy: Any, item: Item) -> Source:
    """Read the copy of a run or a sweep as a report does; errors name what is shown, not the copy."""
    try:
        return read(copy)
    except TacitError as error:
        raise Unreadable(str(error).replace(str(copy.resolve()), item.name).replace(copy.name, item.name)) from None
    except (ArithmeticError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise Unreadable(f"its records make no sense ({type(error).__name__})") from None


def _budget(source: Source, line: Any) -> Chart:
    run = source.runs[0]
    return Chart("budget", "Budget spent", "round", f"total epsilon (at delta = {run.summary['dp_delta']:g})", (line,))


def _effects(found: shapes.Learnt | None) -> Values | None:
    if found is None:
        return None
    return {
        "reason": found.reason, "classes": list(found.classes), "log_odds": found.log_odds, "sigmas": shapes.SIGMAS,
        "charts": [chart.description() for chart in shapes.charts(found)],
        "all": 0 if found.last is None else len(found.last.columns),
        "undrawn": [] if found.last is None else list(found.last.undrawn[: shapes.SHOWN]),
    }  # fmt: skip
