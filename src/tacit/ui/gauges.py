"""What each agent has spent over its lifetime, from copies of ledgers: a ledger is neither written nor locked.

A ledger is a file and its log. Both are copied, and the chain of hashes over all entries shows whether the copy is
whole: if not, and the ledger has changed meanwhile, another copy is taken.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from tacit.errors import TacitError
from tacit.privacy.chain import Chain
from tacit.privacy.history import Account, History
from tacit.privacy.ledger import Ledger
from tacit.privacy.release import Release
from tacit.report.chart import MOST, Chart, Line
from tacit.ui import prices
from tacit.ui.place import Parts, Place, Stamp, Unreadable, shown
from tacit.ui.said import finite, text, whole

ENDING = ".ledger"
LARGEST = 256 << 20  # bytes of a ledger
AGENTS = 200  # of a folder at most
POINTS = 16  # of a line at most at which a budget is composed
PAUSE = 10.0  # seconds between two looks at a ledger that changes: a run should not feel that somebody watches
LASTS = 5.0  # seconds of a look at a folder, after which no further ledger is read: the next look goes on from there
WAITS = "it is read at the next look"
TRIES = 3
COUNTS = ("answered", "missed", "late", "spoiled", "refused")  # what a coordinator counts of an agent


@dataclass(frozen=True)
class Gauge:
    """What an agent has spent of one data set, against the most that it may spend."""

    agent: str
    account: Account
    most: float | None
    is_limit: bool  # else `most` is what the runs agreed on
    since: str
    until: str
    line: tuple[tuple[float, ...], tuple[float, ...]]  # releases made, and epsilon after them

    def described(self) -> dict[str, Any]:
        """Return the gauge as the page reads it."""
        own = {key: getattr(self, key) for key in ("agent", "most", "is_limit", "since", "until")}
        of = asdict(self.account)
        return own | {key: of[key] for key in ("data_id", "adjacency", "releases", "epsilon", "dp_delta", "runs")}


class Gauges:
    """The gauges of folders of ledgers."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._known: dict[tuple[Parts, str], tuple[float, tuple[Stamp | None, ...], list[Gauge] | str]] = {}
        self._lock = threading.Lock()

    def of(self, parts: Parts) -> dict[str, Any]:
        """Return the gauges of all ledgers in a folder, why some have none, and a chart of those that spent most."""
        try:
            with self._place.folder(parts) as folder:
                names = sorted(
                    name for name in os.listdir(folder) if name.endswith(ENDING) and not name.startswith(".")
                )
        except (OSError, Unreadable):
            names = []
        end = time.monotonic() + LASTS
        found = {name: self._ledger(parts, name, end) for name in names[:AGENTS]}
        gauges = [gauge for one in found.values() if not isinstance(one, str) for gauge in one]
        return {
            "gauges": [gauge.described() for gauge in gauges],
            "unread": [{"ledger": shown(name), "reason": one} for name, one in found.items() if isinstance(one, str)],
            "more": max(0, len(names) - AGENTS), "charts": [chart.description() for chart in _charts(gauges)],
        }  # fmt: skip

    def _ledger(self, parts: Parts, name: str, end: float) -> list[Gauge] | str:
        stamps = self._stamps(parts, name)
        with self._lock:  # not while a ledger is read and priced, which takes long
            at, known, found = self._known.get((parts, name), (-PAUSE, (), WAITS))
        if known == stamps or time.monotonic() - at < PAUSE or time.monotonic() > end:
            return found
        try:
            found = self._read(parts, name)
        except Unreadable as error:
            found = str(error)
        with self._lock:
            self._known[parts, name] = time.monotonic(), stamps, found
        return found

    def _stamps(self, parts: Parts, name: str) -> tuple[Stamp | None, ...]:
        return tuple(self._place.stamp(parts, one) for one in (name, f"{name}-wal"))

    def _read(self, parts: Parts, name: str) -> list[Gauge]:
        for _ in range(TRIES):
            before = self._stamps(parts, name)
            try:
                with self._place.copied(parts, [name, f"{name}-wal"], LARGEST) as copy:
                    return _gauges(copy / name, name)
            except Unreadable:
                if before == self._stamps(parts, name):
                    raise
        raise Unreadable("it changes all the time: it is shown when it rests for a moment")


def _gauges(copy: Path, name: str) -> list[Gauge]:
    """Read the copy of a ledger."""
    try:
        chain = Chain(copy, None)
        try:
            ledger, agent = Ledger(chain, prices.quick), shown(unquote(name.removesuffix(ENDING)))
            history = ledger.history()
            prices.check(history)
            gauges = [_gauge(agent, history, account) for account in ledger.show()]
        finally:
            chain.close()
    except TacitError as error:
        raise Unreadable(str(error).replace(str(copy), shown(name)).partition(". ")[0]) from None
    except (ArithmeticError, ValueError, TypeError) as error:  # entries that add up, of numbers that no agent writes
        raise Unreadable(f"its entries make no sense ({type(error).__name__})") from None
    return gauges


def _gauge(agent: str, history: History, account: Account) -> Gauge:
    """Price all releases as the ledger does. A part of them costs no more than all, and a quick bound on it will do."""
    epsilon = prices.precise(tuple(history.spent[account.data_id].items()), account.dp_delta)
    runs = tuple(replace(run, epsilon=min(run.epsilon, epsilon)) for run in account.runs)
    left = None if account.limit is None else max(0.0, account.limit - epsilon)
    account = replace(account, epsilon=epsilon, remaining=left, runs=runs)
    answers = [answer for answer in history.answers.values() if answer.key.data_id == account.data_id]
    most = account.limit if account.limit is not None else _agreed(history, account)
    ends = sorted({max(1, round(len(answers) * n / POINTS)) for n in range(1, POINTS + 1)})
    spent = [prices.quick(tuple(Counter(one.release for one in answers[:n]).items()), account.dp_delta) for n in ends]
    line = tuple(map(float, ends)), (*(min(one, epsilon) for one in spent[:-1]), epsilon)
    return Gauge(agent, account, most, account.limit is not None, answers[0].at, answers[-1].at, line)


def _agreed(history: History, account: Account) -> float | None:
    """Return what all runs together may spend by their terms; None where a run has none on record."""
    terms = [place.terms for (data_id, _), place in history.places.items() if data_id == account.data_id]
    counted: Counter[Release] = Counter()
    for one in terms:
        if one is None:
            return None
        counted[one.release] += one.releases
    return prices.precise(tuple(counted.items()), account.dp_delta) if counted else None


def _charts(gauges: Sequence[Gauge]) -> list[Chart]:
    """Draw epsilon over the releases of the agents that spent most, below the limit where they share one."""
    most = sorted(gauges, key=lambda gauge: -gauge.account.epsilon)[:MOST]
    distinct: dict[object, list[Gauge]] = {}
    for gauge in most:
        distinct.setdefault(gauge.line, []).append(gauge)
    lines = [Line(_names(alike), *alike[0].line, style=style) for style, alike in enumerate(distinct.values())]
    if not lines:
        return []
    limits = {gauge.most for gauge in most}
    end = max(x for line in lines for x in line.x)
    if len(limits) == 1 and (limit := limits.pop()) is not None:
        name = "limit" if most[0].is_limit else "agreed in all"
        lines.append(Line(name, (1.0, max(end, 2.0)), (limit, limit), style=len(lines), aside=True))
    deltas = " or ".join(sorted({f"{gauge.account.dp_delta:g}" for gauge in most}))
    return [
        Chart(
            "lifetime", "Budget over the lifetime of agents", "releases", f"epsilon (at delta = {deltas})", tuple(lines)
        )
    ]


def _names(alike: Sequence[Gauge]) -> str:
    names = [gauge.agent for gauge in alike]
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def of_status(said: Mapping[str, Any], most: float | None) -> list[dict[str, Any]]:
    """Return gauges of the agents of a federation, as its coordinator counts: their own ledgers are with them."""
    found: list[dict[str, Any]] = []
    sites = said.get("sites")
    for site, of in sites.items() if isinstance(sites, dict) else ():
        agents = of.get("agents") if isinstance(of, dict) else None
        for name, agent in agents.items() if isinstance(agents, dict) else ():
            if isinstance(agent, dict) and len(found) < AGENTS:
                found.append({
                    "agent": text(name), "data_id": text(site), "most": most, "is_limit": False,
                    "epsilon": finite(agent.get("epsilon")), "at_most": finite(agent.get("epsilon_at_most")),
                    "dp_delta": finite(said.get("dp_delta")), "releases": whole(agent.get("released")), "runs": [],
                    "counts": {key: agent[key] for key in COUNTS if whole(agent.get(key)) is not None},
                    "reason": text(agent.get("reason")),
                })  # fmt: skip
    return found
