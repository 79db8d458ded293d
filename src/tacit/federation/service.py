"""The institution's side of a federation: it owns records, gate, noise and ledgers, and answers messages.

`Service.answer` is all that anybody outside can reach: header and body in, header and body out. It never fails. What it
refuses, the caller is told as a Refusal and nothing else; the owner reads the reason in the log. Nothing is kept from
one message to the next but what can be made again from the site file, the ledgers and the same Join.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, nullcontext, suppress
from typing import TYPE_CHECKING, Any

from tacit.errors import TacitError, Unfit
from tacit.federation import facts, ledger_files, wire
from tacit.federation.log import Log, counted, reason, silent
from tacit.federation.messages import (
    REQUESTS,
    Ask,
    Close,
    Closed,
    Hello,
    Introduction,
    Join,
    Joined,
    Meet,
    Message,
    Refusal,
    Unjoined,
    is_name,
    read,
    written,
)
from tacit.federation.run_service import JoiningAgent, ServiceContext, SiteRun
from tacit.federation.site import Site, SiteAgent, load
from tacit.federation.site_policy import spec_of
from tacit.machine import cores
from tacit.privacy.budget import upward
from tacit.privacy.ledger import Ledger
from tacit.run import build, deploy
from tacit.run.asking import THREADS
from tacit.run.deployment import Deployment, allow_ledger_files, price
from tacit.run.spec import Spec
from tacit.types import Federation

if TYPE_CHECKING:
    from tacit.federation.sum_service import SumService

RUNS_KEPT = 4  # loaded at a time: whoever is asked for a run that was dropped says Unjoined, and joins it again


class Service:
    """The agents of a site, with their records loaded and their ledgers open."""

    def __init__(self, site: Site, log: Log = silent) -> None:
        self.site, self._log = site, log
        self.own = load(site)
        self.mapped = facts.MappedRecords(self.own)
        self.public = facts.public(self.own)
        self._files = ExitStack()
        self._runs: OrderedDict[str, SiteRun] = OrderedDict()
        self._joining, self._listed = threading.Lock(), threading.Lock()  # of a Join as a whole; of the list of runs
        try:
            allow_ledger_files(len(site.agents))
            self._ledgers = {one.name: self._ledger(one) for one in site.agents}
            threads = self._files.enter_context(ThreadPoolExecutor(THREADS * cores(), "agent"))
            data_ids = {one.name: one.data_id for one in site.agents}
            receipts = ledger_files.receipt_key(site)
            self._context = ServiceContext(self._ledgers, data_ids, receipts, threads, self.log)
            self._sums = None if site.sum is None else _sums(site, self._context)
        except BaseException:
            self._files.close()
            raise

    def close(self) -> None:
        """Let go of the ledgers, when no answer is on its way."""
        self._files.close()

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def log(self, text: str, **told: Any) -> None:
        """Tell the owner; a log that cannot be written is no reason to keep back an answer that is on record."""
        with suppress(Exception):
            self._log(text, **told)

    @property
    def largest_body(self) -> int:
        """The bytes of the largest question of a run that was joined; no message may bring more."""
        with self._listed:
            return max((run.largest_question for run in self._runs.values()), default=0)

    def answer(self, header: wire.Header, body: bytes) -> tuple[wire.Header, bytes]:
        """The reply to one message, whatever came."""
        run = ""
        try:
            message = read(header, body, REQUESTS)
            run = getattr(message, "run", "")
            return written(self._reply(message))
        except Exception as error:  # whatever it is, its text stays here
            self.log(f"refused a message: {reason(error)}", event="refused", run=run)
            return written(Refusal(run))

    def answer_unread(self, header: wire.Header) -> tuple[wire.Header, bytes]:
        """The reply to a message whose body is larger than any model of a run that is loaded, and was not read.

        Where the service has just been started, that is the question of an honest coordinator: join again.
        """
        run = header.get("run")
        if header.get("kind") == Ask.kind and is_name(run) and self._found(run) is None:
            return written(self._unjoined(run))
        self.log("refused a message whose body is larger than any model here", event="refused")
        return written(Refusal())

    def _reply(self, message: Message) -> Message:
        if isinstance(message, Hello):
            counts = tuple(zip(self.own.agents, map(len, self.own.shards), strict=True))
            self.log("said who is here", event="introduced", agents=dict(counts))
            return Introduction(self.site.name, counts, self.public)
        if isinstance(message, Join):
            with self._joining:  # one at a time: each may have to compute features of all records
                return self._joined(message)
        assert isinstance(message, Ask | Meet | Close)
        run = self._found(message.run)
        if isinstance(message, Close):
            return self._closed(message, run)
        if run is None:
            return self._unjoined(message.run)
        with run.lock:
            return run.reply(message)

    def _closed(self, close: Close, run: SiteRun | None) -> Closed | Unjoined:
        """End a run: its agents answer no more, it holds no budget, and its keys are deleted.

        If no ledger knows the run, there is nothing to lose but keys.
        """
        if run is not None and close.agreed != run.join.agreed:
            raise Unfit(f"a message of run {close.run!r} has the hash of another agreement.")
        with run.lock if run else nullcontext():
            if not self._context.ended(close):
                return self._unjoined(close.run)
            if run is not None:
                run.end()
                self._drop(run)
        if self._sums is not None:
            self._sums.forget_keys(close.run)
        self.log(f"run {close.run!r} has ended: it holds no budget and no keys", event="closed", run=close.run)
        return Closed(close.run)

    def _unjoined(self, run: str) -> Unjoined:
        self.log(f"was asked in run {run!r}, which is not loaded", event="unjoined", run=run)
        return Unjoined(run)

    def _joined(self, join: Join) -> Joined:
        """Join a run that is within the agreement; what was joined before is joined again at no cost."""
        self._context.confront(join.receipts)
        known = self._found(join.run)
        if known is None or known.join != join:
            known = self._made(join)
            with self._listed:
                self._runs[join.run] = known
                while len(self._runs) > RUNS_KEPT:
                    self._runs.popitem(last=False)
            who = list(known.names)
            told = f"{', '.join(who)} joined run {join.run!r} of {counted(len(join.agents), 'agent')}"
            self.log(told, event="joined", run=join.run, agents=who)
        return Joined(join.run, known.names, known.signed)

    def _made(self, join: Join) -> SiteRun:
        self.site.agree.check_run(join.run, self.own.agents, join.agents)
        spec = spec_of(join.spec)
        colluding = None if self.site.sum is None else self.site.sum.colluding
        self.site.agree.check_spec(spec, join.run, self.own, colluding)
        federation = self.mapped.of(spec, join.agents)
        deployment = build.setup(spec, federation).deployment
        if facts.agreed(spec, self.public, join.agents, federation, deployment) != join.agreed:
            raise Unfit(
                "this site arrives at another hash of the run than the coordinator: install the same version of tacit "
                "everywhere, and compare what is public of the records."
            )
        self.site.agree.check_queries(deployment.first_agreement)
        facts.check_size(self.site.name, sum(shard.here for shard in federation.shards), deployment)
        joining = self._joining_agents(join, spec, federation, deployment)
        in_sum = deployment.in_sum
        if in_sum is None:
            return SiteRun(join, joining, self._context)
        if self._sums is None or self.site.sum is None or in_sum.colluding < self.site.sum.colluding:
            raise Unfit("the run trusts a secure sum that the section [sum] of the site file does not allow.")
        return SiteRun(join, joining, self._context, self._sums.entered(join, joining, in_sum))

    def _joining_agents(
        self, join: Join, spec: Spec, federation: Federation, deployment: Deployment
    ) -> dict[str, JoiningAgent]:
        """Return the agents of this site, with what they agree to. All of their ledgers are asked before one joins."""
        data_ids, found = self._context.data_ids, {}
        for p, (name, shard) in enumerate(zip(federation.agents, federation.shards, strict=True)):
            if shard.here:
                own, terms = deployment.agreements[p], deployment.terms(spec, p, join.agreed)
                queries, ledger = deploy.queries_of(own, shard), self._ledgers[name]
                ours = spec.with_values({"privacy.data_id": data_ids[name]})
                deploy.check_ledger(name, ledger, data_ids[name], deployment, p, terms, ours, started=True)
                found[name] = JoiningAgent(name, data_ids[name], queries, own, terms, ledger)
        for one in found.values():
            for query in one.queries:
                _ = query.value  # made now, so that the first round takes no longer than the others
        return found

    def _drop(self, run: SiteRun) -> None:
        with self._listed:
            if self._runs.get(run.join.run) is run:
                del self._runs[run.join.run]

    def _found(self, name: str) -> SiteRun | None:
        with self._listed:
            if name in self._runs:
                self._runs.move_to_end(name)
            return self._runs.get(name)

    def _ledger(self, one: SiteAgent) -> Ledger:
        ledger = self._files.enter_context(ledger_files.opened(self.site, one))
        others = sorted(set(ledger.history().spent) - {one.data_id})
        if others:
            known = f"the ledger of agent {one.name} has answered for {', '.join(map(repr, others))} too"
            self.log(f"{known}: {one.data_id!r} has a budget of its own, and must share no record with them")
        return ledger

    def log_accounts(self, when: str) -> None:
        """Log the entries, head and spent budget of each ledger, so that the log is a second witness."""
        for one in self.site.agents:
            try:
                history = self._ledgers[one.name].history()
            except TacitError as error:
                self.log(f"{when}: agent {one.name}: {reason(error)}", event="account", agent=one.name)
                continue
            (entries, head), limit = history.tip, self.site.limit
            spent = price(tuple(history.spent.get(one.data_id, {}).items()), limit.dp_delta)
            text = f"{when}: agent {one.name} has spent {upward(spent)} of {limit}; {entries} entries, head {head}"
            self.log(text, event="account", agent=one.name, entries=entries, head=head, epsilon=spent)


def _sums(site: Site, context: ServiceContext) -> SumService:
    from tacit.federation.sum_service import SumService  # needs the extra `secure`

    return SumService(site, context)
