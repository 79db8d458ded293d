"""Where a federation stands: a small file in the coordinator's folder, rewritten every round and while it waits."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tacit import jsontext
from tacit.errors import RunDirectoryError
from tacit.federation.log import counted
from tacit.federation.plan import FederationConfig
from tacit.federation.remote_engine import RemoteEngine
from tacit.jsontext import Values
from tacit.machine import write_whole
from tacit.measures import MEASURES, measured
from tacit.privacy.budget import upward
from tacit.run.deployment import cap_of
from tacit.run.run import Run
from tacit.run.train import Listener

FILE = "status.json"
FINISHED, STOPPED, INTERRUPTED = "finished", "stopped", "interrupted"  # states in which nothing goes on
OFTEN = 1.0  # seconds between two writings


class StatusWriter:
    """Write the status file. It never stops a run: if the file cannot be written, the run goes on without it."""

    def __init__(self, folder: Path, plan: FederationConfig) -> None:
        self.path, self.plan = folder / FILE, plan
        self.said: Values = {"federation": plan.name, "state": "waiting for sites"}
        self.written = -float("inf")
        self.remote: RemoteEngine | None = None
        self.dp_delta = 1.0

    def begin(self, run: Run, remote: RemoteEngine) -> None:
        """Say of which run the rest is said, and who knows of its agents."""
        self.remote = remote
        self.dp_delta = run.spec.privacy.dp_delta
        name = run.directory.path.name if run.directory else None
        self.said |= {
            "state": "running", "run": name, "round": run.state.t, "of": run.spec.run.rounds, "dp_delta": self.dp_delta,
        }  # fmt: skip

    def waiting(self, sites: Sequence[str]) -> None:
        """Say which sites are waited for before the first round."""
        self.said["sites"] = {site.name: {"here": site.name not in sites} for site in self.plan.sites}
        self._write()

    def asking(self, _remote: RemoteEngine) -> None:
        """Say whom the coordinator waits for in a round."""
        if time.monotonic() - self.written >= OFTEN:
            self._tell()

    def heard(self, listener: Listener) -> Listener:
        """Return the listener, after which the file says what it heard."""

        def both(done: int, row: dict[str, Any] | None) -> None:
            self.said |= {"round": done} | (measured(row) if row else {})
            self._tell()
            listener(done, row)

        return both

    def ended(self, reason: str | None = None) -> None:
        """Say that the run is finished, or that the coordinator has stopped and why."""
        self.said |= {"state": FINISHED} if reason is None else {"state": STOPPED, "reason": reason}
        self._tell()

    def told(self, remote: RemoteEngine) -> dict[str, Any]:
        """Return what the result says of a federation: who took part, and what the coordinator knows of their cost."""
        heads = {name: remote.receipts[name].head for name in remote.names if name in remote.receipts}
        took_part = {name: self._agent(remote, name) | {"site": site}
                     for site, agents in remote.sites.items() for name in agents}  # fmt: skip
        return {"ledger_heads": heads, "took_part": took_part} | dict(remote.strategy.used)

    def _tell(self) -> None:
        if self.remote is not None:
            self.said |= {"asking": self.remote.t, "sites": self._sites(self.remote)}
            self.said |= self.remote.strategy.standing
        self._write()

    def _sites(self, remote: RemoteEngine) -> Values:
        now, clock = time.time(), remote.clock()
        sites = {}
        for site, agents in remote.sites.items():
            question, seen = remote.mailbox.out.get(site), remote.mailbox.seen.get(site)
            sites[site] = {
                "last_seen": None if seen is None else round(now - clock + seen, 1),
                "waiting_since": None if question is None else round(now - clock + question.since, 1),
                "waiting_for_round": None if question is None else question.t,
                "late": question is not None and question.t < remote.t,
                "strays": remote.mailbox.strays[site],
                "agents": {name: self._agent(remote, name) | _reason(remote, name) for name in agents},
            }
        return sites

    def _agent(self, remote: RemoteEngine, name: str) -> dict[str, Any]:
        """Return the counts of an agent, and the price of the releases that came and of all that it was asked for.

        An answer may be paid for and lost: the agent's own ledger is between the two.
        """
        p, counts = remote.place[name], remote.strategy.attendance
        released, asked = int(counts.released[p]), int(counts.asked[p])
        return counts.of(p) | {
            "released": released, "epsilon": self._price(remote, released),
            "epsilon_at_most": self._price(remote, asked),
        }  # fmt: skip

    def _price(self, remote: RemoteEngine, releases: int) -> float:
        return cap_of(remote.deployment.first_agreement.first(releases), self.dp_delta) if releases else 0.0

    def _write(self) -> None:
        self.written = time.monotonic()
        text = jsontext.dumps({"at": round(time.time(), 1), **self.said}, indent=1) + "\n"
        with suppress(OSError):
            write_whole(self.path, lambda file: file.write(text.encode()))


def _reason(remote: RemoteEngine, name: str) -> dict[str, str]:
    return {"reason": remote.reasons[name]} if name in remote.reasons else {}


def read(folder: Path) -> Values:
    """Return what the file in a coordinator's folder says."""
    path = folder / FILE
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RunDirectoryError(
            f"{path} cannot be read ({error.strerror}): give the folder of a coordinator that has been started."
        ) from None
    except ValueError as error:
        raise RunDirectoryError(f"{path} is damaged ({error}): it is written again in the next round.") from None
    if not isinstance(found, dict) or "state" not in found:
        raise RunDirectoryError(f"{path} is damaged: it is written again in the next round.")
    return found


def lines(status: Values, now: float | None = None) -> list[str]:
    """Return the status as lines for a person."""
    now = time.time() if now is None else now
    state = f"{status['state']}: {status['reason']}" if "reason" in status else status["state"]
    said = [f"{status['federation']}: {state} (as of {_ago(now, status.get('at'))})"]
    if status.get("of") is not None:
        said.append(f"run {status['run']}: {status['round']} of {status['of']} rounds")
    if "sum" in status:
        said.append(_summed(status["sum"]))
    tested = [f"{one.name} {one.shown(status[one.key])}" for one in MEASURES if status.get(one.key) is not None]
    said += [", ".join(tested)] if tested else []
    for site, of in status.get("sites", {}).items():
        said.append(f"site {site}: {_site(of, now)}")
        said += [f"  {name}: {_counted(agent, status.get('dp_delta'))}" for name, agent in of.get("agents", {}).items()]
    return said


def _summed(of: Values) -> str:
    used = f"{counted(of['repeated'], 'repetition')} used, {of['repetitions_left']} left"
    over = f"{counted(len(of['set']), 'agent')} ({', '.join(of['set'])})"
    return f"secure sum: attempt {of['attempt']} over {over}; {used}"


def _site(of: Values, now: float) -> str:
    if "here" in of:
        return "here" if of["here"] else "no word yet"
    seen = f"last seen {_ago(now, of['last_seen'])}" if of["last_seen"] else "not seen since the coordinator started"
    late = "late: " if of["late"] else ""
    waiting = f", {late}round {of['waiting_for_round']} asked {_ago(now, of['waiting_since'])}"
    return seen + (waiting if of["waiting_since"] else "")


def _counted(agent: Values, dp_delta: float | None) -> str:
    spent = f"({upward(agent['epsilon'])}, {dp_delta:g}) spent in {counted(agent['released'], 'release')}"
    if agent["asked"] > agent["released"]:  # it may have paid for an answer that was lost
        spent += f", at most {upward(agent['epsilon_at_most'])} in the {agent['asked']} that it was asked for"
    shown = ("answered", "missed", "late", "spoiled", "refused")
    counts = ", ".join(f"{name} {agent[name]}" for name in shown if name in agent)
    return f"{counts}; {spent}" + (f"; {agent['reason']}" if "reason" in agent else "")


def _ago(now: float, at: float | None) -> str:
    return "an unknown time ago" if at is None else f"{max(0.0, now - at):.0f} s ago"
