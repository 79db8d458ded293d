"""Rounds of a federated run behind a secure sum: a round is one sum over a set of agents, in one attempt or more.

Attempt 0 is asked of the agents that are there. It ends when each of them has given its masked words. If one is missing
at the deadline, refuses, or sends an invalid answer, the words of the others add up to nothing: attempt 1 is asked of
the others, as a new release of each, and so on while repetitions are left and `colluding` + 2 agents. Agents that come
back take part from the next round on.

What is asked is on disk before it is asked: a checkpoint is written at the end of every round, and here before every
attempt but the first (`RemoteEngine.keep`). It has the number of the attempt and the set. So a restarted coordinator
asks the same attempt of the same set, and ledgers answer it again, free of cost.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.admm.messages import Broadcast
from tacit.federation import sum_stops
from tacit.federation.attendance import SumAttendance
from tacit.federation.exchange import AT_MOST, CollectedAnswers
from tacit.federation.log import counted
from tacit.privacy.summed import InSum
from tacit.run.asking import apply_sum
from tacit.types import Array

if TYPE_CHECKING:
    from tacit.federation.remote_engine import RemoteEngine

SILENT = "no answer came in time"


@dataclass(frozen=True, eq=False)
class Stage:
    """The next attempt of a round, from 0 on, the agents of its sum in order, and the repetitions used so far."""

    attempt: int
    peers: tuple[str, ...]
    repeated: int
    attendance: SumAttendance

    def repeating(self, peers: tuple[str, ...], attendance: SumAttendance) -> Stage:
        """Return the stage after an attempt that gave no sum: the next is over these peers."""
        return Stage(self.attempt + 1, peers, self.repeated + 1, attendance)

    def ended(self, peers: Collection[str], attendance: SumAttendance) -> Stage:
        """Return the stage after a round: the next begins with these peers."""
        return Stage(0, tuple(sorted(peers)), self.repeated, attendance)


class SumRounds:
    """Rounds whose answers leave in secure sums."""

    def __init__(self, remote: RemoteEngine, agreed: InSum) -> None:
        self.remote, self.agreed = remote, agreed
        self.stage = Stage(0, tuple(sorted(remote.names)), 0, SumAttendance.zero(len(remote.names)))
        self.asking, self.skipped_at = False, 0
        self.gone: set[str] = set()  # agents that refused: they are asked again when the coordinator is started again
        self.kept_out: set[str] = set()  # agents that are back and stay out, as the log says

    @property
    def left(self) -> int:
        """The repetitions that are left."""
        return self.agreed.repetitions - self.stage.repeated

    @property
    def attendance(self) -> SumAttendance:
        """The counts, the attempt that is under way among them."""
        counts = self.stage.attendance
        return counts.asking(self.remote.mask(self.stage.peers)) if self.asking else counts

    @property
    def present(self) -> list[str]:
        """The sites with agents in the set."""
        return [site for site, agents in self.remote.sites.items() if set(agents) & set(self.stage.peers)]

    @property
    def over(self) -> list[str]:
        """The sites where nothing is left to close: none, because all of them have keys of the run."""
        return []

    @property
    def standing(self) -> dict[str, Any]:
        """Who is in the set, and how many attempts are used and left."""
        stage = self.stage
        said = {"set": list(stage.peers), "attempt": stage.attempt, "repeated": stage.repeated}
        return {"sum": said | {"repetitions_left": self.left}}

    @property
    def used(self) -> dict[str, Any]:
        """How often a round was asked again, and how often it could have been."""
        return {"repetitions": {"used": self.stage.repeated, "declared": self.agreed.repetitions}}

    def exchange(self, msg: Broadcast) -> Any:
        """Ask for a sum until there is one; Suspended if the run cannot go on."""
        began = self.remote.clock()
        self.remote.mailbox.there.clear()
        self._probe(self.remote.names)
        while True:
            heard = self._asked(msg)
            missing = [name for name in self.stage.peers if name not in heard.rows]
            if not missing:
                return self._conclude(msg, heard, began)
            self._go_on_without(missing, heard)

    def _asked(self, msg: Broadcast) -> CollectedAnswers:
        """Ask the next attempt, and return what came before the deadline."""
        remote, stage = self.remote, self.stage
        remote.mailbox.out = {
            site: remote.question(msg, [name for name in own if name in stage.peers], stage.attempt, stage.peers)
            for site, own in remote.sites.items() if site in self.present
        }  # fmt: skip
        self.asking = True
        return remote.mailbox.collect(remote.clock() + remote.faults.deadline, lambda: remote.watch(remote))

    def _go_on_without(self, missing: Sequence[str], heard: CollectedAnswers) -> None:
        """Make the next attempt a sum over the agents that have answered; Suspended if that is impossible."""
        remote, stage, least = self.remote, self.stage, self.agreed.colluding + 2
        remote.reasons |= dict.fromkeys(missing, SILENT) | heard.reasons
        said = ", ".join(f"{name} ({remote.reasons[name]})" for name in missing)
        peers = tuple(name for name in stage.peers if name in heard.rows)
        if not peers and self.skipped_at != remote.t:
            # a coordinator whose checkpoint is lost may have asked this attempt already. No agent has paid for it here
            self.skipped_at, peers = remote.t, tuple(name for name in stage.peers if name in heard.reasons)
        if remote.faults.missing == "stop":
            why = 'missing = "stop"'
        elif len(peers) < least:
            why = f"a sum with {counted(least - 2, 'colluding agent')} needs {least}, and {len(peers)} answered"
        elif not self.left:
            why = f"no repetition is left of the {self.agreed.repetitions} declared"
        else:
            self._repeat(peers, heard)
            self._log(f"asks {len(peers)} agents, {counted(self.left, 'repetition')} left: no words came from {said}")
            return
        place, new = self._place, bool(heard.reasons) and self.left > 0  # who refuses an attempt refuses it again
        if new:
            self._repeat(stage.peers, heard)
        raise sum_stops.missing(place, said, why, new, bool(heard.reasons))

    def _conclude(self, msg: Broadcast, heard: CollectedAnswers, began: float) -> Any:
        remote, peers = self.remote, self.stage.peers
        residues = np.add.reduce([heard.rows[name] for name in peers], dtype=np.uint64)
        if not remote.deployment.attempt(msg.t, len(peers)).holds(residues):
            self._stop_at_garbage(heard)
        attendance = self._attended(peers)
        back = self._returning(attendance, msg.t + 1)
        present = [remote.place[name] for name in peers]
        spent = {"exchange": remote.clock() - began}
        replies = apply_sum(remote.program, remote.deployment, msg, residues, present, spent)
        for name in back:
            self._log(f"agent {name} is back, and takes part from the next round on", agent=name)
        for name in {*back, *peers}:
            remote.reasons.pop(name, None)
        self.stage, self.asking = self.stage.ended({*peers, *back}, attendance), False
        remote.receipts |= heard.receipts
        return replies

    def _stop_at_garbage(self, heard: CollectedAnswers) -> None:
        """Suspend the run: masks hide who it was. Every further attempt would be spoiled by the same agent."""
        place, new = self._place, self.left > 0
        if new:
            self._repeat(self.stage.peers, heard)
        raise sum_stops.garbage(place, len(self.stage.peers), self.left if new else None)

    def _attended(self, peers: Collection[str]) -> SumAttendance:
        """Return the counts after a round; Suspended if an agent has shown no sign of life for too many rounds.

        A round may be over before the answer to a probe comes: an agent that would stop the run has one more deadline.
        """
        remote = self.remote
        end, sent = remote.clock() + remote.faults.deadline, remote.clock()
        while True:
            attendance = self.attendance.after(remote.mask(peers), remote.mask(self._there))
            away = [remote.names[p] for p in np.flatnonzero(attendance.in_a_row > remote.faults.most_missed)]
            if not away:
                return attendance
            if remote.clock() >= end:
                raise sum_stops.away(remote.t, remote.faults.most_missed, away)
            if remote.clock() >= sent + remote.faults.resend:
                self._probe(away)
                sent = remote.clock()
            for _ in remote.mailbox.answers(min(AT_MOST, remote.faults.resend)):
                pass  # every question has its answer: what still comes is a sign of life, or nothing
            remote.watch(remote)

    @property
    def _there(self) -> list[str]:
        """The agents of the sites that have shown a sign of life in this round."""
        return [name for site in self.remote.mailbox.there for name in self.remote.sites[site]]

    def _probe(self, agents: Collection[str]) -> None:
        """Let the sites of these agents meet the others once more: a site that answers is there."""
        for site, own in self.remote.sites.items():
            if set(own) & set(agents) and site not in self.present:
                self.remote.mailbox.introduce(site)

    def _repeat(self, peers: tuple[str, ...], heard: CollectedAnswers) -> None:
        """Write to disk that the next attempt is over these peers, before any of them is asked."""
        remote, left_out = self.remote, set(self.stage.peers) - set(peers)
        self.gone |= left_out & set(heard.reasons)
        attendance = self.attendance.failed(
            remote.t, remote.mask(heard.rows), remote.mask(left_out), remote.mask(heard.reasons)
        )
        self.stage, self.asking = self.stage.repeating(peers, attendance), False
        remote.receipts |= heard.receipts
        remote.keep(remote)

    def _returning(self, attendance: SumAttendance, t: int) -> list[str]:
        """Return the agents that take part again from round t on; none if no repetition is left.

        Without the agent the run goes on by itself, with fewer records. With it, the run would stop if it drops out
        once more, and would be lost if it then refuses.
        """
        may = attendance.may_return(t)
        away = [name for name in self._there if name not in self.stage.peers and name not in self.gone]
        back = [name for name in away if may[self.remote.place[name]]]
        if self.left:
            return back
        for name in sorted(set(back) - self.kept_out):
            self._log(f"agent {name} is back, and stays out: no repetition is left, should it drop out", agent=name)
        self.kept_out |= set(back)
        return []

    @property
    def _place(self) -> str:
        return f"round {self.remote.t}, attempt {self.stage.attempt}"

    def _log(self, text: str, **told: Any) -> None:
        self.remote.log(f"{self._place}: {text}", t=self.remote.t, **told)

    def save(self) -> dict[str, Array]:
        """Return the counts, and what the next attempt is."""
        stage = self.stage
        return {
            **stage.attendance.save(),
            "attempt": np.array(stage.attempt),
            "peers": self.remote.mask(stage.peers),
            "repeated": np.array(stage.repeated),
        }

    def load(self, saved: Mapping[str, Array]) -> None:
        """Continue from what `save` returned."""
        there = zip(self.remote.names, saved["peers"], strict=True)
        peers = tuple(sorted(name for name, is_there in there if is_there))
        attendance = SumAttendance(**{name: saved[name] for name in self.stage.attendance.save()})
        self.stage = Stage(int(saved["attempt"]), peers, int(saved["repeated"]), attendance)
