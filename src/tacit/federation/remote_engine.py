"""The engine of a federated run: it asks the sites and takes their answers (tacit.run.asking).

The cover of the answers decides what happens if one is missing. `IndividualRounds` continues without it
(tacit.federation.individual_rounds), and `SumRounds` asks the others again (tacit.federation.sum_rounds). The rest is
the same for both, and here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from tacit.admm.messages import Broadcast
from tacit.federation import receipts as kept_receipts
from tacit.federation.attendance import Attendance, SumAttendance
from tacit.federation.exchange import PendingQuestion, SiteMailbox, unfit
from tacit.federation.log import Log, silent
from tacit.federation.messages import Ask, Join, Meet, Receipt, SiteAnswer, Transport
from tacit.federation.plan import Faults
from tacit.run.deployment import Deployment
from tacit.types import Array


class RoundStrategy(Protocol):
    """The part of the engine that depends on the cover of the answers: rounds of individual answers, or of sums."""

    @property
    def attendance(self) -> Attendance | SumAttendance:
        """Who took part; what is under way counts as asked."""

    @property
    def present(self) -> list[str]:
        """The sites that take part: the end of a run waits for them."""

    @property
    def over(self) -> list[str]:
        """The sites where nothing is left to close."""

    @property
    def standing(self) -> Mapping[str, Any]:
        """The state of a secure sum, for the status."""

    @property
    def used(self) -> Mapping[str, Any]:
        """The repetitions of a secure sum, for the result."""

    def exchange(self, msg: Broadcast) -> Any:
        """Compute one round; Suspended if the run cannot go on."""

    def save(self) -> dict[str, Array]:
        """Return what the next question needs beside the program."""

    def load(self, saved: Mapping[str, Array]) -> None:
        """Continue from what `save` returned; the program is loaded already."""


class RemoteEngine:
    """An engine for one run (tacit.engine.registry.Engine); `sites` lists the agents of each site.

    A checkpoint is on disk before any question leaves. `keep` writes one between two attempts of a round. `receipts`
    are the last ones of the agents; those that come replace them in place.
    """

    def __init__(
        self, join: Join, sites: Mapping[str, Sequence[str]], deployment: Deployment, transport: Transport,
        faults: Faults, log: Log = silent, watch: Callable[[RemoteEngine], None] = lambda _: None,
        keep: Callable[[RemoteEngine], None] = lambda _: None, clock: Callable[[], float] = time.monotonic,
        meet: Meet | None = None, receipts: dict[str, Receipt] | None = None,
    ) -> None:  # fmt: skip
        from tacit.federation.individual_rounds import IndividualRounds
        from tacit.federation.sum_rounds import SumRounds

        self.names = [name for name, _ in join.agents]
        self.place = {name: p for p, name in enumerate(self.names)}
        self.join, self.sites, self.deployment, self.faults = join, dict(sites), deployment, faults
        self.log, self.watch, self.keep, self.clock = log, watch, keep, clock
        self.t, self.receipts = 0, {} if receipts is None else receipts
        self.reasons: dict[str, str] = {}  # of agents that are missing
        self.mailbox = SiteMailbox(
            transport, join, faults.resend, log, clock, self._unfit, self.sites, self.receipts, meet
        )
        self.program = deployment.program(faults.missing == "reuse" and deployment.in_sum is None)
        self.strategy: RoundStrategy = (
            IndividualRounds(self) if deployment.in_sum is None else SumRounds(self, deployment.in_sum)
        )
        self.path = "federation" if deployment.in_sum is None else "federation, secure sum"

    def exchange_all(self, msgs: Sequence[Broadcast]) -> list[Any]:
        """Compute one round."""
        (msg,) = msgs
        self.t = msg.t
        return [self.strategy.exchange(msg)]

    def question(
        self, msg: Broadcast, agents: Sequence[str], attempt: int = 0, peers: tuple[str, ...] = ()
    ) -> PendingQuestion:
        """Return the question of a round to some agents of a site."""
        shared = self.deployment.first_agreement.at(msg.t).query.additive
        places = [0] if shared else [self.place[name] for name in agents]
        each = [self.program.parameters(msg, p) for p in places]
        rows = {part: np.stack([one[part] for one in each]) for part in each[0]}
        ask = Ask(self.join.run, self.join.agreed, msg.t, attempt, tuple(agents), peers, rows)
        return PendingQuestion(ask, msg, self.clock())

    def mask(self, names: Collection[str]) -> Array:
        """Return for each agent whether it has one of these names."""
        return np.array([name in names for name in self.names])

    def _unfit(self, ask: Ask, answer: SiteAnswer) -> str | None:
        bits = self.deployment.attempt(ask.t, len(ask.peers)).width if ask.peers else 64
        return unfit(ask, answer, self.deployment.first_agreement.at(ask.t).query.size, bits)

    def save(self, _r: int) -> dict[str, Array]:
        """Return all that the next question needs."""
        last = kept_receipts.saved(self.receipts, self.names)
        return {**self.program.save(), **self.strategy.save(), "receipts": last}

    def load(self, _r: int, saved: dict[str, Array]) -> None:
        """Continue from what `save` returned."""
        self.program.load(saved)
        self.strategy.load(saved)
        self.receipts |= kept_receipts.later(kept_receipts.loaded(saved["receipts"], self.names), self.receipts)
