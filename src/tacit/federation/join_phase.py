"""Before the first round: the sites introduce themselves, and join the run or say that they do not.

Where the run trusts a secure sum, they meet as well: each is given the signed keys of all agents.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tacit import jsontext
from tacit.errors import DataError, IncompatibleError, InputError, RunDirectoryError, Suspended, Unfit
from tacit.federation import facts, messages
from tacit.federation.differences import MOST, in_words, schema_of
from tacit.federation.log import Log, Reminder, counted
from tacit.federation.messages import (
    Hello,
    Introduction,
    Join,
    Joined,
    Meet,
    Message,
    Met,
    Receipt,
    RecordCounts,
    Refusal,
    Signed,
    Transport,
    Unjoined,
)
from tacit.federation.plan import Faults, FederationConfig, ListedSite
from tacit.machine import write_whole
from tacit.run.directory import RunDirectory

FILE = "federation.json"
AT_MOST = 1.0  # seconds between two looks at the clock
MOST_NAMED = 10  # names in an error

M = TypeVar("M", bound=Message)
_WHAT = {"hello": "before the first round", "join": "joining the run", "meet": "meeting the others",
         "close": "ending the run"}  # fmt: skip
Waiting = Callable[[Sequence[str]], None]  # is told which sites have not answered


@dataclass(frozen=True)
class Participants:
    """Who takes part in a run, in order, and what is public of all records; kept in the run's directory."""

    sites: dict[str, RecordCounts]
    public: str

    @property
    def agents(self) -> RecordCounts:
        """All agents, site by site."""
        return tuple(pair for agents in self.sites.values() for pair in agents)

    def write(self, directory: RunDirectory) -> None:
        """Keep it in the directory of the run, which is resumed with the same agents."""
        text = jsontext.dumps({"sites": self.sites, "public": self.public}, indent=2) + "\n"
        write_whole(directory.path / FILE, lambda file: file.write(text.encode()))

    @classmethod
    def read(cls, path: Path) -> Participants:
        """Read what `write` wrote."""
        try:
            found = json.loads((path / FILE).read_text(encoding="utf-8"))
            sites = {site: tuple((str(who), int(n)) for who, n in agents) for site, agents in found["sites"].items()}
            return cls(sites, str(found["public"]))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise RunDirectoryError(f"{path / FILE} is damaged ({error}): restore it, or start anew.") from None

    def check(self, plan: FederationConfig) -> None:
        """Refuse to resume a run with other agents than it was started with."""
        listed = {site.name: set(site.agents) for site in plan.sites}
        for site, agents in self.sites.items():
            if listed.get(site) != {who for who, _ in agents}:
                raise RunDirectoryError(
                    f"the run was started with {', '.join(who for who, _ in agents)} at site {site}, and "
                    "federation.toml lists others: restore it, or move the folder of that run away to start a new one."
                )


@dataclass(frozen=True)
class JoinPhase:
    """The coordinator before the first round: how it speaks to sites, and how long it waits for them."""

    transport: Transport
    faults: Faults
    log: Log
    waiting: Waiting
    clock: Callable[[], float] = time.monotonic

    def gathered(self, plan: FederationConfig, declared: str | None = None) -> Participants:
        """Say Hello until every site has introduced itself; refuse what federation.toml does not list.

        `declared` are public facts with the schema of the coordinator, if it has one.
        """
        sites = {site.name: site for site in plan.sites}
        found: dict[str, Introduction] = {}
        for name, reply in self.replies(dict.fromkeys(sites, Hello()), (Introduction,)):
            if isinstance(reply, Introduction):
                found[name] = reply
                self.log(f"site {name} is here with {counted(len(reply.agents), 'agent')}", site=name)
        missing = [name for name in sites if name not in found]
        if missing and (self.faults.start == "all" or not found):
            raise Suspended(
                f"the run does not begin: no word came from {', '.join(missing)}. Start their services, or set "
                'faults.start = "present" to begin without them.'
            )
        for name in missing:
            self.log(f"the run begins without site {name}: it is not here", site=name)
        return _agreeing({name: (site, found[name]) for name, site in sites.items() if name in found}, declared)

    def joined(
        self, join: Join, sites: Mapping[str, Sequence[str]], receipts: Mapping[str, Receipt]
    ) -> dict[str, tuple[Signed, ...]]:
        """Let every site join the run; stop if one refuses, before anything is released. Return the signed keys."""
        ready: dict[str, tuple[Signed, ...]] = {}
        joins = {name: join.to(agents, receipts) for name, agents in sites.items()}
        for name, reply in self.replies(joins, (Joined, Refusal)):
            if isinstance(reply, Refusal) or (isinstance(reply, Joined) and set(reply.joined) != set(sites[name])):
                raise IncompatibleError(
                    f"site {name} does not join the run, and nothing was released: ask there why (its log says so; its "
                    "site file limits what may be asked), change run.toml or the site file, and start again."
                )
            assert isinstance(reply, Joined)
            ready[name] = reply.signed
            self.log(f"site {name} has joined the run {join.run}", site=name)
        if missing := [name for name in sites if name not in ready]:
            raise Suspended(
                f"the run does not begin: {', '.join(missing)} did not join in time. Nothing was released; see to "
                "them, and resume the run."
            )
        return ready

    def met(self, join: Join, sites: Mapping[str, Sequence[str]], receipts: Mapping[str, Receipt]) -> Meet:
        """Let every site join, and meet all others; return what they were told."""
        signed = self.joined(join, sites, receipts)
        for name, agents in sites.items():
            if {one.agent for one in signed[name]} != set(agents):
                raise IncompatibleError(
                    f"site {name} does not send a key for each of its agents, so that it cannot take part in a secure "
                    "sum, and nothing was released: give its site.toml a section [sum], and start again."
                )
        meet = Meet(join.run, join.agreed, tuple(one for some in signed.values() for one in some))
        left = self._met(meet, sites)
        if left:  # a service that was started again in between joins again
            self.joined(join, left, receipts)
            left = self._met(meet, left)
        if left:
            raise Suspended(
                f"the run does not begin: {', '.join(left)} did not stay long enough to meet the others. Nothing was "
                "released; see to them, and resume the run."
            )
        return meet

    def _met(self, meet: Meet, sites: Mapping[str, Sequence[str]]) -> dict[str, Sequence[str]]:
        """Introduce all agents to these sites; return those that have been started again meanwhile."""
        silent, again = dict(sites), {}
        for name, reply in self.replies(dict.fromkeys(sites, meet), (Met, Refusal, Unjoined)):
            if isinstance(reply, Refusal):
                raise IncompatibleError(
                    f"site {name} does not take the keys of the others, and nothing was released: ask there why (its "
                    "log says so). Its site.toml must pin the signing keys of all other agents, as their owners show "
                    "them; then start again."
                )
            del silent[name]
            if isinstance(reply, Unjoined):
                again[name] = sites[name]
            else:
                self.log(f"site {name} has met the agents of the other sites", site=name)
        if silent:
            raise Suspended(
                f"the run does not begin: {', '.join(silent)} did not meet the others in time. Nothing was released; "
                "see to them, and resume the run."
            )
        return again

    def replies(
        self, requests: Mapping[str, Message], wanted: tuple[type[Message], ...], seconds: float | None = None
    ) -> Iterator[tuple[str, Message]]:
        """Send each site its request, again and again; yield the first wanted reply of each, until the deadline."""
        began, sent = self.clock(), -float("inf")
        left, remind = list(requests), Reminder(self.transport.absence, self.log, self.clock)
        while left and self.clock() < began + (seconds or self.faults.start_deadline):
            if self.clock() >= sent + self.faults.resend:
                sent = self.clock()
                for name in left:
                    self.transport.send(name, *messages.written(requests[name]))
            self.waiting(left)
            remind(_WHAT[requests[left[0]].kind], left)
            for name, header, body in self.transport.received(min(AT_MOST, self.faults.resend)):
                try:
                    reply = messages.read(header, body, messages.REPLIES)
                except Unfit as error:
                    self.log(f"site {name} sent what is no message: {error}", site=name)
                    continue
                run = getattr(requests.get(name), "run", "")
                ours = type(reply) in wanted and getattr(reply, "run", run) in (run, "")
                if name in left and ours:
                    left.remove(name)
                    yield name, reply


def _agreeing(found: Mapping[str, tuple[ListedSite, Introduction]], declared: str | None) -> Participants:
    """Return who takes part; refuse sites whose agents are not those of the plan, or whose records are of two forms."""
    counts: dict[str, RecordCounts] = {}
    for name, (site, said) in found.items():
        theirs = dict(said.agents)
        if set(theirs) != set(site.agents):
            raise DataError(
                f"site {name} has the agents {_some(list(theirs)) or 'none'}, and federation.toml lists "
                f"{', '.join(site.agents)}: correct one of them."
            )
        if said.site != name:
            raise DataError(f"site {name} calls itself {said.site}: give it one name in federation.toml and site.toml.")
        counts[name] = tuple((who, theirs[who]) for who in site.agents)
        _check_form(name, said)
    told = {name: said.public for name, (_, said) in found.items()}
    if len(set(told.values())) > 1:
        raise DataError(
            f"sites do not declare the same columns, classes or bounds: {_disagreement(told, declared)}. Give all "
            "sites one schema."
        )
    return Participants(counts, next(iter(told.values())))


def _check_form(name: str, said: Introduction) -> None:
    """Refuse public facts that this version of tacit does not know; what is in them is not repeated."""
    try:
        facts.hollow(name, said.public, said.agents)
    except (Unfit, InputError):
        raise DataError(
            f"what site {name} declares of its records is not of the form that this version of tacit knows: install "
            "the same version everywhere."
        ) from None


def _disagreement(told: Mapping[str, str], declared: str | None) -> str:
    """Return which sites differ and in what: from the coordinator's schema if there is one, else from most sites."""
    own = schema_of(declared) if declared else {}
    usual, whose = declared or "", "the coordinator (data.schema)"
    others = [name for name, public in told.items() if own and schema_of(public) != own]
    if not others:
        usual = Counter(told.values()).most_common(1)[0][0]
        same = [name for name, public in told.items() if public == usual]
        whose = f"site{'s' if len(same) > 1 else ''} {_some(same)}"
        others = [name for name in told if name not in same]
    return "; ".join(in_words(told[name], usual, f"site {name}", whose) for name in others[:MOST])


def _some(names: Sequence[str]) -> str:
    """Return names with commas between them, the first few of many."""
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more
