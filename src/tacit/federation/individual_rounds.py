"""Rounds of a federated run whose answers leave alone: some of the agents may be missing.

A round ends when every site has answered, or at its deadline if some site has. Missing agents are counted with what
they last released, faded (tacit.admm.local_models). A site that is late is not asked anew until its answer has
come, or until its question is GIVEN_UP rounds old: its answer is taken when it comes. An answer that no honest agent
sends (tacit.run.plausible) is counted as refused: its agent is missing.

Nothing of a round is kept before the round has ended. What a round asks follows from the last checkpoint only, so that
a restarted coordinator asks the same, and no agent pays for a second answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.admm.messages import Broadcast
from tacit.errors import Suspended
from tacit.federation.attendance import Attendance
from tacit.federation.exchange import CollectedAnswers
from tacit.federation.log import counted
from tacit.run.asking import ReceivedAnswer, apply_answers
from tacit.run.plausible import why_implausible
from tacit.types import Array

if TYPE_CHECKING:
    from tacit.federation.remote_engine import RemoteEngine

# rounds, each of a whole deadline, after which a question is dropped and the site is asked that of the round. Not
# seconds: a clock starts anew with the process, and a question that is in no checkpoint would not be counted
GIVEN_UP = 3


class IndividualRounds:
    """Rounds whose answers leave one by one, each with its full noise."""

    def __init__(self, remote: RemoteEngine) -> None:
        self.remote = remote
        self.standing: Mapping[str, Any] = {}
        self.used: Mapping[str, Any] = {}
        self.attendance = Attendance.zero(len(remote.names))

    @property
    def accepted(self) -> Array:
        """(P,) the round of the last answer of each agent that was taken, 0 for none."""
        return self.remote.program.accepted

    @property
    def present(self) -> list[str]:
        return list(self.remote.mailbox.seen)

    @property
    def over(self) -> list[str]:
        """The sites all of whose agents have answered the last round that was asked: they can release no more."""
        remote, done = self.remote, self.accepted == self.remote.t
        return [site for site, agents in remote.sites.items() if all(done[remote.place[name]] for name in agents)]

    def exchange(self, msg: Broadcast) -> Any:
        """Ask all sites; Suspended if [faults] does not let the run go on without the missing agents."""
        mailbox = self.remote.mailbox
        before = dict(mailbox.out)
        try:
            began = self.remote.clock()
            asked = self._put(msg)
            heard = mailbox.collect(began + self.remote.faults.deadline, lambda: self.remote.watch(self.remote))
            return self._conclude(msg, asked, heard, self.remote.clock() - began)
        except BaseException:
            mailbox.out = before  # the round is asked again, as it was
            raise

    def _put(self, msg: Broadcast) -> list[str]:
        """Put the question of this round to every site that owes no answer; return the agents that are asked."""
        asked: list[str] = []
        out = self.remote.mailbox.out
        for site, agents in self.remote.sites.items():
            old = out.get(site)
            if old is not None and not old.refused and msg.t - old.t < GIVEN_UP:
                out[site] = replace(old, sent=None)  # sent again at the start of every round
                continue
            out[site] = self.remote.question(msg, agents)
            asked += agents
        return asked

    def _conclude(self, msg: Broadcast, asked: Sequence[str], heard: CollectedAnswers, seconds: float) -> Any:
        remote = self.remote
        for name, row in list(heard.rows.items()):
            why = why_implausible(remote.deployment, remote.place[name], heard.msgs[name].t, row.view(np.float64))
            if why is not None:
                heard.drop(name, why)
                remote.log(f"round {msg.t}: agent {name}: {heard.reasons[name]}", agent=name, t=msg.t)
        taken = [
            ReceivedAnswer(remote.place[name], heard.msgs[name], row.view(np.float64))
            for name, row in heard.rows.items()
        ]
        accepted = self.accepted.copy()
        for one in taken:
            accepted[one.p] = one.msg.t
        fresh = accepted == msg.t
        late = (accepted != self.accepted) & ~fresh
        remote.reasons |= heard.reasons
        attendance = self.attendance.after(remote.mask(asked), fresh, late, remote.mask(heard.reasons))
        self._check_enough(msg.t, fresh, late, attendance)
        for name in (remote.names[p] for p in np.flatnonzero(~fresh)):
            said = heard.reasons.get(name, "no answer came in time")
            remote.log(f"round {msg.t} goes on without agent {name}: {said}", agent=name, t=msg.t)
        in_step = bool(fresh.all()) and bool((self.accepted == msg.t - 1).all())
        replies = apply_answers(remote.program, remote.deployment, msg, taken, {"exchange": seconds}, in_step=in_step)
        self.attendance = attendance
        remote.receipts |= heard.receipts
        for name in heard.rows:
            remote.reasons.pop(name, None)
        return replies

    def _check_enough(self, t: int, fresh: Array, late: Array, attendance: Attendance) -> None:
        """Suspend the run if no agent has answered, or if [faults] does not allow an agent to be missing."""
        remote, faults = self.remote, self.remote.faults
        resume = "What was done is saved: see to them, and resume the run."
        missing = [name for name, there in zip(remote.names, fresh, strict=True) if not there]
        said = ", ".join(f"{name} ({remote.reasons[name]})" if name in remote.reasons else name for name in missing)
        if not (fresh | late).any():
            raise Suspended(f"round {t}: no agent has answered: {said}. {resume}")
        if missing and faults.missing == "stop":
            raise Suspended(f'round {t}: missing = "stop", and no answer came from {said}. {resume}')
        gone = attendance.in_a_row > faults.most_missed
        if gone.any():
            names = ", ".join(name for name, away in zip(remote.names, gone, strict=True) if away)
            most = counted(faults.most_missed, "round")
            raise Suspended(f"round {t}: more than {most} in a row without {names}. {resume}")

    def save(self) -> dict[str, Array]:
        """Return the counts, and the questions that are out."""
        out = [self.remote.mailbox.out.get(site) for site in self.remote.sites]
        blank = np.zeros(self.remote.deployment.shape)
        return {
            **self.attendance.save(),
            "out_t": np.array([0 if q is None or q.refused else q.t for q in out]),
            "out_w": np.stack([blank if q is None else q.msg.w for q in out]),
            "out_rho": np.array([0.0 if q is None else q.msg.rho for q in out]),
        }

    def load(self, saved: Mapping[str, Array]) -> None:
        """Continue from what `save` returned; questions that were out are sent again."""
        self.attendance = Attendance(**{name: saved[name] for name in self.attendance.save()})
        remote = self.remote
        out = (saved["out_t"].tolist(), saved["out_w"], saved["out_rho"].tolist())
        rows = zip(remote.sites.items(), *out, strict=True)
        remote.mailbox.out = {
            site: remote.question(Broadcast(t, w, rho), agents) for (site, agents), t, w, rho in rows if t
        }
