"""The engine of a federation that trusts a secure sum: a round is one sum over a set of agents, in one attempt or more.

Attempt 0 is asked of the agents that are there. It ends when each of them has given its masked words. Where one is
missing at the deadline, refuses, or sends what is no answer, the words of the others add up to nothing: attempt 1 is
asked of the others, as a new release of each, and so on while repetitions are left and `colluding` + 2 agents. Agents
that come back take part from the next round on.

What is asked is on disk before it is asked: a checkpoint is written at the end of every round, and here before every
attempt but the first (`keep`). It has the number of the attempt and the set (tacit.federation.stage). So a coordinator
that is started again asks the same attempt of the same set, and ledgers answer it again, free of cost.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tacit.admm.messages import Broadcast, Replies
from tacit.federation import sum_stops
from tacit.federation.attendance import SumAttendance
from tacit.federation.carrier import Carrier
from tacit.federation.exchange import AT_MOST, Post, Question
from tacit.federation.log import Log, counted, silent
from tacit.federation.messages import AskSum, Join, Meet, Shares
from tacit.federation.plan import Faults
from tacit.federation.stage import Heard, Stage, mask_of, unfit
from tacit.guarded.mean import Mean
from tacit.privacy.summed import Attempt, InSum, Peers, attempt_of
from tacit.types import Array

SILENT = "no answer came in time"


class SumRemote:
    """An engine for one run (tacit.engine.registry.Engine); `sites` lists the agents of each site."""

    path = "federation, secure sum"

    def __init__(
        self, join: Join, meet: Meet, sites: Mapping[str, Sequence[str]], mean: Mean, in_sum: InSum, carrier: Carrier,
        faults: Faults, log: Log = silent, watch: Callable[[SumRemote], None] = lambda _: None,
        keep: Callable[[SumRemote], None] = lambda _: None, clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self.names = [name for name, _ in join.agents]
        self.place = {name: p for p, name in enumerate(self.names)}
        self.join, self.sites, self.in_sum, self.faults = join, dict(sites), in_sum, faults
        self.log, self.watch, self.keep, self.clock = log, watch, keep, clock
        self.stage = Stage.first(self.names, mean)
        self.t, self.asking, self.skipped_at = 0, False, 0
        self.reasons: dict[str, str] = {}  # of agents that are missing
        self.gone: set[str] = set()  # agents that refused: they are asked again when the coordinator is started again
        self.kept_out: set[str] = set()  # agents that are back, and of which it was said that they stay out
        self.post: Post[AskSum, Shares] = Post(
            carrier, join, faults.resend, log, clock, Shares, {}, {}, dict.fromkeys(self.sites, 0), {}, meet
        )

    @property
    def left(self) -> int:
        """The repetitions that are left."""
        return self.in_sum.repetitions - self.stage.repeated

    @property
    def heads(self) -> list[str]:
        """The head of each agent's ledger, as far as the coordinator knows."""
        return [self.stage.heads[name] for name in self.names]

    @property
    def attendance(self) -> SumAttendance:
        """The counts, the attempt that is under way among them."""
        counts = self.stage.attendance
        return counts.asking(self._mask(self.stage.peers)) if self.asking else counts

    @property
    def present(self) -> list[str]:
        """The sites with agents in the set."""
        return [site for site, agents in self.sites.items() if set(agents) & set(self.stage.peers)]

    @property
    def over(self) -> list[str]:
        """The sites where nothing is left to close: none, because all of them have keys of the run."""
        return []

    def exchange_all(self, msgs: Sequence[Broadcast]) -> list[Replies]:
        """Ask for a sum until there is one; Suspended where the run cannot go on."""
        (msg,) = msgs
        self.t, began = msg.t, self.clock()
        self.post.there.clear()
        self._probe(self.names)
        while True:
            heard = self._asked(msg)
            missing = [name for name in self.stage.peers if name not in heard.words]
            if not missing:
                return [self._conclude(msg, heard, began)]
            self._go_on_without(missing, heard)

    def _asked(self, msg: Broadcast) -> Heard:
        """Ask the attempt that is next, and return what came of it before the deadline."""
        stage, began, heard = self.stage, self.clock(), Heard()
        ask = AskSum(self.join.run, self.join.agreed, msg.t, stage.attempt, stage.peers, msg.w)
        self.post.out = {site: Question(ask, began) for site in self.present}
        self.asking = True
        while self.post.awaited and (left := began + self.faults.deadline - self.clock()) > 0:
            due = self.post.send_what_is_due()
            for site, question, answer in self.post.answers(min(due, left)):
                self._hear(site, question.asked, answer, heard)
            self.watch(self)
        return heard

    def _hear(self, site: str, ask: AskSum, answer: Shares | str, heard: Heard) -> None:
        """Take the words of a site, or say why they are none."""
        own = [name for name in self.sites[site] if name in ask.peers]
        if isinstance(answer, Shares) and (wrong := unfit(own, answer, self._numbers(ask.peers), ask.w.size)):
            if self.post.asks_again(site):
                return
            answer = wrong
        if isinstance(answer, str):
            self._log(f"site {site} does not answer: {answer}", site=site)
            heard.reasons |= dict.fromkeys(own, answer)
            self.post.out[site] = replace(self.post.out[site], refused=True)
            return
        del self.post.out[site]
        heard.take(own, answer)
        for name in set(own) - set(heard.words):
            heard.reasons[name] = "it refuses to answer"
            self._log(f"agent {name} refuses to answer", site=site, agent=name)

    def _go_on_without(self, missing: Sequence[str], heard: Heard) -> None:
        """Make the next attempt one of those who have given; Suspended where that cannot be."""
        stage, least = self.stage, self.in_sum.colluding + 2
        self.reasons |= dict.fromkeys(missing, SILENT) | heard.reasons
        said = ", ".join(f"{name} ({self.reasons[name]})" for name in missing)
        peers = tuple(name for name in stage.peers if name in heard.words)
        if not peers and self.skipped_at != self.t:
            # the number of the attempt may be taken: by a coordinator whose checkpoint is lost. Nobody has paid for it
            self.skipped_at, peers = self.t, tuple(name for name in stage.peers if name in heard.reasons)
        if self.faults.missing == "stop":
            why = 'missing = "stop"'
        elif len(peers) < least:
            why = f"a sum with {counted(least - 2, 'colluding agent')} needs {least}, and {len(peers)} answered"
        elif not self.left:
            why = f"no repetition is left of the {self.in_sum.repetitions} declared"
        else:
            self._repeat(peers, heard)
            self._log(f"asks {len(peers)} agents, {counted(self.left, 'repetition')} left: no words came from {said}")
            return
        place, new = self._place, bool(heard.reasons) and self.left > 0  # who refuses an attempt refuses it again
        if new:
            self._repeat(stage.peers, heard)
        raise sum_stops.missing(place, said, why, new, bool(heard.reasons))

    def _conclude(self, msg: Broadcast, heard: Heard, began: float) -> Replies:
        stage = self.stage
        peers, numbers = stage.peers, self._numbers(stage.peers)
        residues = np.add.reduce([heard.words[name] for name in peers], dtype=np.uint64)
        if not numbers.holds(residues):
            self._stop_at_garbage(heard)
        attendance = self._attended(peers)
        mean = stage.mean.after(msg, numbers.total(residues), peers)
        back = self._returning(attendance, msg.t + 1)
        for name in back:
            self._log(f"agent {name} is back, and takes part from the next round on", agent=name)
        for name in {*back, *peers}:
            self.reasons.pop(name, None)
        self.stage, self.asking = stage.ended({*peers, *back}, attendance, mean, heard.heads), False
        return mean.replies(msg, len(peers), self.in_sum.colluding, {"exchange": self.clock() - began})

    def _stop_at_garbage(self, heard: Heard) -> None:
        """Suspend the run: masks hide who it was. Every further attempt would be spoiled by the same agent."""
        place, new = self._place, self.left > 0
        if new:
            self._repeat(self.stage.peers, heard)
        raise sum_stops.garbage(place, len(self.stage.peers), self.left if new else None)

    def _attended(self, peers: Collection[str]) -> SumAttendance:
        """Return the counts after a round; Suspended where an agent has shown no sign of life for too many rounds.

        A round may be over before the answer to a probe comes: whoever would stop the run has one more deadline.
        """
        end, sent = self.clock() + self.faults.deadline, self.clock()
        while True:
            attendance = self.attendance.after(self._mask(peers), self._mask(self._there))
            away = [self.names[p] for p in np.flatnonzero(attendance.in_a_row > self.faults.most_missed)]
            if not away:
                return attendance
            if self.clock() >= end:
                raise sum_stops.away(self.t, self.faults.most_missed, away)
            if self.clock() >= sent + self.faults.resend:
                self._probe(away)
                sent = self.clock()
            for _ in self.post.answers(min(AT_MOST, self.faults.resend)):
                pass  # every question has its answer: what still comes is a sign of life, or nothing
            self.watch(self)

    @property
    def _there(self) -> list[str]:
        """The agents of the sites that have shown a sign of life in this round."""
        return [name for site in self.post.there for name in self.sites[site]]

    def _probe(self, agents: Collection[str]) -> None:
        """Let the sites of these agents meet the others once more: whoever answers is there."""
        for site, own in self.sites.items():
            if set(own) & set(agents) and site not in self.present:
                self.post.introduce(site)

    def _repeat(self, peers: tuple[str, ...], heard: Heard) -> None:
        """Note on disk that the next attempt is one of these peers, before anybody is asked."""
        left_out = set(self.stage.peers) - set(peers)
        self.gone |= left_out & set(heard.reasons)
        attendance = self.attendance.failed(
            self.t, self._mask(heard.words), self._mask(left_out), self._mask(heard.reasons)
        )
        self.stage, self.asking = self.stage.repeating(peers, attendance, heard.heads), False
        self.keep(self)

    def _returning(self, attendance: SumAttendance, t: int) -> list[str]:
        """Who takes part again from round t on; nobody where it could cost a repetition that there is not.

        Without the agent the run goes on by itself, with fewer records. With it, the run would stop where it drops out
        once more, and would be lost where it then refuses.
        """
        may = attendance.may_return(t)
        away = [name for name in self._there if name not in self.stage.peers and name not in self.gone]
        back = [name for name in away if may[self.place[name]]]
        if self.left:
            return back
        for name in sorted(set(back) - self.kept_out):
            self._log(f"agent {name} is back, and stays out: no repetition is left, should it drop out", agent=name)
        self.kept_out |= set(back)
        return []

    @property
    def _place(self) -> str:
        return f"round {self.t}, attempt {self.stage.attempt}"

    def _numbers(self, peers: Sequence[str]) -> Attempt:
        return attempt_of(self.stage.mean.summed, Peers(len(peers), self.in_sum.colluding))

    def _mask(self, names: Collection[str]) -> Array:
        return mask_of(names, self.names)

    def _log(self, text: str, **told: Any) -> None:
        self.log(f"{self._place}: {text}", t=self.t, **told)

    def save(self, _r: int) -> dict[str, Array]:
        """Return all that the next attempt needs."""
        return self.stage.save(self.names)

    def load(self, _r: int, saved: dict[str, Array]) -> None:
        """Go on from what `save` gave."""
        self.stage = self.stage.load(self.names, saved)
