"""The engine of a federation: one exchange with all sites a round, some of whose agents may be missing.

A round ends when every site has answered, or when its deadline passes and somebody has. Missing agents are counted with
what they last released, faded (tacit.federation.account). A site that is late is not asked anew until its answer has
come, or until its question is GIVEN_UP rounds old: its answer is taken when it comes.

Nothing of a round is kept before the round has ended. What an exchange asks follows from the last checkpoint alone, so
that a coordinator that is started again asks the same, and no agent pays for a second answer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tacit.admm.messages import Broadcast, Order, Replies
from tacit.errors import Suspended
from tacit.federation.account import Account, Taken
from tacit.federation.attendance import Attendance
from tacit.federation.carrier import Carrier
from tacit.federation.exchange import Post, Question, is_model, unfit
from tacit.federation.log import Log, counted, silent
from tacit.federation.messages import Answer, Ask, Join
from tacit.federation.plan import Faults
from tacit.rounds import Trace
from tacit.types import Array

# rounds, each of a whole deadline, after which a question is dropped and the site is asked that of the round. Not
# seconds: a clock starts anew with the process, and a question of which no checkpoint tells would not be counted
GIVEN_UP = 3
HEAD = 64  # digits of a ledger's head


@dataclass
class Round:
    """What came in one round, before any of it counts."""

    taken: list[Taken]
    heads: dict[str, str]
    reasons: dict[str, str]  # of agents that refused or whose answer was refused


class Remote:
    """An engine for one run (tacit.engine.registry.Engine); `sites` lists the agents of each site."""

    path = "federation"

    def __init__(
        self, join: Join, sites: Mapping[str, Sequence[str]], shape: tuple[int, int], order: Order,
        trace: Callable[[Broadcast], Trace], carrier: Carrier, faults: Faults, log: Log = silent,
        watch: Callable[[Remote], None] = lambda _: None, clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self.names = [name for name, _ in join.agents]
        self.place = {name: p for p, name in enumerate(self.names)}
        self.sites, self.shape, self.trace, self.faults = dict(sites), shape, trace, faults
        self.log, self.watch, self.clock = log, watch, clock
        self.account = Account.zero(len(self.names), shape, order)
        self.attendance = Attendance.zero(len(self.names))
        self.heads = [""] * len(self.names)
        self.reasons: dict[str, str] = {}
        self.t = 0
        self.join = join
        self.post: Post[Ask, Answer] = Post(
            carrier, join, faults.resend, log, clock, Answer, {}, {}, dict.fromkeys(self.sites, 0), {}
        )

    @property
    def present(self) -> list[str]:
        """The sites that were heard of."""
        return list(self.post.seen)

    @property
    def over(self) -> list[str]:
        """The sites all of whose agents have answered the last round that was asked: they can release no more."""
        done = self.account.accepted == self.t
        return [site for site, agents in self.sites.items() if all(done[self.place[name]] for name in agents)]

    def exchange_all(self, msgs: Sequence[Broadcast]) -> list[Replies]:
        """Ask all sites; Suspended where the rule of [faults] says that the run cannot go on."""
        (msg,) = msgs
        before = dict(self.post.out)
        try:
            return [self._exchange(msg)]
        except BaseException:
            self.post.out = before  # the round is asked again, as it was
            raise

    def _exchange(self, msg: Broadcast) -> Replies:
        self.t, began = msg.t, self.clock()
        asked = self._put(msg, began)
        found = Round([], {}, {})
        while self.post.awaited and (left := began + self.faults.deadline - self.clock()) > 0:
            due = self.post.send_what_is_due()
            for site, question, answer in self.post.answers(min(due, left)):
                self._hear(site, question, answer, found)
            self.watch(self)
        return self._conclude(msg, asked, found, self.clock() - began)

    def _put(self, msg: Broadcast, now: float) -> list[str]:
        """Put the question of this round to every site that owes no answer; return the agents that are asked it."""
        asked: list[str] = []
        for site, agents in self.sites.items():
            old = self.post.out.get(site)
            if old is not None and not old.refused and msg.t - old.t < GIVEN_UP:
                self.post.out[site] = replace(old, sent=None)  # at the start of a round, in any case
                continue
            self.post.out[site] = Question(self._ask(agents, msg.t, msg.w, msg.rho), now)
            asked += agents
        return asked

    def _ask(self, agents: Sequence[str], t: int, w: Array, rho: float) -> Ask:
        accepted = {name: int(self.account.accepted[self.place[name]]) for name in agents}
        return Ask(self.join.run, self.join.agreed, t, rho, accepted, w)

    def _hear(self, site: str, question: Question[Ask], answer: Answer | str, found: Round) -> None:
        """Take the answer of a site, or say why it is none."""
        ask = question.asked
        if isinstance(answer, Answer) and (wrong := unfit(ask, answer, self.shape)):
            if self.post.asks_again(site):
                return
            answer = wrong
        if isinstance(answer, str):
            self.log(f"round {ask.t}: site {site} does not answer: {answer}", site=site, t=ask.t)
            found.reasons |= dict.fromkeys(ask.accepted, answer)
            self.post.out[site] = replace(self.post.out[site], refused=True)
            return
        del self.post.out[site]
        for name in ask.accepted:
            found.reasons.pop(name, None)  # of an earlier message
        silent_ones = set(ask.accepted) - {one.agent for one in answer.released}
        found.reasons |= dict.fromkeys(silent_ones, "it refuses to answer")
        for row, one in zip(answer.z, answer.released, strict=True):
            p = self.place[one.agent]
            if not is_model(row):
                found.reasons[one.agent] = "it sent a model that is not finite, or far too large"
                continue
            taken = Taken(p, ask.t, ask.w, ask.rho, row)
            if one.dual != self.account.hash_of_dual(taken):
                raise Suspended(
                    f"round {ask.t}: agent {one.agent} of site {site} has another dual than the coordinator, so "
                    "that they do not compute the same: the run is saved after the round before. Check that both "
                    "have the same version of tacit, and resume."
                )
            found.taken.append(taken)
            found.heads[one.agent] = one.head
        for name in silent_ones | (set(found.reasons) & set(ask.accepted)):
            self.log(f"round {ask.t}: agent {name}: {found.reasons[name]}", site=site, agent=name, t=ask.t)

    def _conclude(self, msg: Broadcast, asked: Sequence[str], found: Round, seconds: float) -> Replies:
        account = self.account.after(found.taken)
        fresh = account.accepted == msg.t
        late = (account.accepted != self.account.accepted) & ~fresh
        self.reasons |= found.reasons
        attendance = self.attendance.after(self._mask(asked), fresh, late, self._mask(found.reasons))
        self._check_enough(msg.t, fresh, late, attendance)
        for name in (self.names[p] for p in np.flatnonzero(~fresh)):
            said = found.reasons.get(name, "no answer came in time")
            self.log(f"round {msg.t} goes on without agent {name}: {said}", agent=name, t=msg.t)
        trace = replace(self.trace(msg), seconds={"exchange": seconds})
        replies = account.replies(msg.t, msg.w, msg.rho, trace, self.account)
        self.account, self.attendance = account, attendance
        for name, head in found.heads.items():
            self.heads[self.place[name]] = head
            self.reasons.pop(name, None)
        return replies

    def _check_enough(self, t: int, fresh: Array, late: Array, attendance: Attendance) -> None:
        """Suspend the run where nobody has answered, or where somebody is missing who may not be."""
        resume = "What was done is saved: see to them, and resume the run."
        missing = [name for name, there in zip(self.names, fresh, strict=True) if not there]
        said = ", ".join(f"{name} ({self.reasons[name]})" if name in self.reasons else name for name in missing)
        if not (fresh | late).any():
            raise Suspended(f"round {t}: no agent has answered: {said}. {resume}")
        if missing and self.faults.missing == "stop":
            raise Suspended(f'round {t}: missing = "stop", and no answer came from {said}. {resume}')
        gone = attendance.in_a_row > self.faults.most_missed
        if gone.any():
            names = ", ".join(name for name, away in zip(self.names, gone, strict=True) if away)
            most = counted(self.faults.most_missed, "round")
            raise Suspended(f"round {t}: more than {most} in a row without {names}. {resume}")

    def _mask(self, names: Sequence[str] | Mapping[str, Any]) -> Array:
        chosen = np.zeros(len(self.names), bool)
        chosen[[self.place[name] for name in names]] = True
        return chosen

    def save(self, _r: int) -> dict[str, Array]:
        """Return all that the next round needs: the account, the counts, and the questions that are out."""
        out = [self.post.out.get(site) for site in self.sites]
        blank = np.zeros(self.shape)
        return {
            **self.account.save(),
            **self.attendance.save(),
            "heads": np.array(self.heads, dtype=f"U{HEAD}"),
            "out_t": np.array([0 if q is None or q.refused else q.t for q in out]),
            "out_w": np.stack([blank if q is None else q.asked.w for q in out]),
            "out_rho": np.array([0.0 if q is None else q.asked.rho for q in out]),
        }

    def load(self, _r: int, saved: dict[str, Array]) -> None:
        """Go on from what `save` gave; questions that were out are sent again."""
        self.account = self.account.load(saved)
        self.attendance = Attendance(**{name: saved[name] for name in self.attendance.save()})
        self.heads = [str(head) for head in saved["heads"]]
        rows = zip(self.sites.items(), saved["out_t"].tolist(), saved["out_w"], saved["out_rho"].tolist(), strict=True)
        self.post.out = {
            site: Question(self._ask(agents, t, w, rho), self.clock())
            for (site, agents), t, w, rho in rows if t
        }  # fmt: skip
