"""The agents of a site in secure sums: they sign keys, check those of all others, and add masked words.

What an agent adds, and what it refuses, is in tacit.agent; it needs nothing but its ledger, the run's key on disk and
the keys that were met. All three are the same after a restart, and so is every word that was sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from tacit.agent.agreement import Agreement
from tacit.agent.cover import Masked
from tacit.agent.masks import files
from tacit.agent.masks.keys import RunKey, SigningKey, Statement, roster
from tacit.agent.masks.masker import WIDEST, Masker, Terms
from tacit.errors import Unfit
from tacit.federation.messages import Join, Meet, Signed
from tacit.federation.run_service import ServiceContext
from tacit.federation.site import Site
from tacit.privacy.summed import InSum


class SumService:
    """What a site needs for all of its sums: its signing keys, and those that it has pinned."""

    def __init__(self, site: Site, context: ServiceContext) -> None:
        assert site.sum is not None, "the site file has a section [sum]"
        self.config, self.folder, self.context = site.sum, site.ledger, context
        self.data_ids = context.data_ids
        self.signing = self.config.signing_keys(self.data_ids)
        self.pinned = self.config.pinned({name: key.public for name, key in self.signing.items()})

    def entered(self, join: Join, agents: Iterable[str], asked: InSum) -> SiteKeyExchange:
        """Let agents enter a run, each with a key of its own, which stays on disk until the run is closed."""
        threshold = max(self.config.threshold, asked.colluding + 2)
        if len(join.agents) < threshold:
            raise Unfit(f"the run has {len(join.agents)} agents, and sum.threshold asks for {threshold} in every sum.")
        keys = {}
        for name in agents:
            if self._is_over(join.run, name):  # a double of a Join may come late, and would leave a key for good
                raise Unfit(f"run {join.run!r} has ended for agent {name}: its key is deleted, and no other is drawn.")
            keys[name] = files.run_key(self.folder, join.run, name, self._budget(name))
        signed = tuple(_signed(self.signing[name], join, name, key) for name, key in keys.items())
        return SiteKeyExchange(self, join, keys, signed, Terms(join.run, WIDEST, threshold, asked.colluding))

    def _is_over(self, run: str, agent: str) -> bool:
        """Whether the agent has met the others of a run, as its ledger knows, and its key is gone."""
        data_id = self.data_ids[agent]
        place = self.context.ledgers[agent].history().places.get((data_id, run))
        met = place is not None and place.terms is not None and not place.may_begin_anew
        return met and not files.has_run_key(self.folder, run, agent, self._budget(agent))

    def forget_others(self, run: str, agents: Iterable[str]) -> None:
        """Delete the keys of other runs whose last round was answered: nobody may come to end them.

        A run that is loaded needs no file. So the price is small: whoever has lost the answer to a last round, and asks
        for it after this service was started again, is refused.
        """
        for name in agents:
            data_id = self.data_ids[name]
            for (data, other), place in self.context.ledgers[name].history().places.items():
                over = place.terms is not None and place.last[0] >= place.terms.rounds
                there = files.has_run_key(self.folder, other, name, self._budget(name))
                if data == data_id and other != run and over and there:
                    self.forget_keys(other)
                    told = f"agent {name} has met in run {run!r}: its key of run {other!r}, which is over, is deleted"
                    self.context.log(told, event="forgot", run=other, agent=name)

    def _budget(self, agent: str) -> str:
        return self.context.ledgers[agent].budget(self.data_ids[agent])

    def forget_keys(self, run: str) -> None:
        """Delete the keys of all agents of a run."""
        files.forget_run(self.folder, run)


@dataclass(frozen=True, eq=False)
class SiteKeyExchange:
    """The agents of a site in one run behind a secure sum: their keys, and the check of the keys of all others."""

    sums: SumService
    join: Join
    keys: Mapping[str, RunKey]
    signed: tuple[Signed, ...]
    masks: Terms

    def covers(self, meet: Meet, agreements: Mapping[str, Agreement]) -> dict[str, Masked]:
        """Check the keys of all agents of the run; return how the answers of each agent of the site leave."""
        if {one.agent for one in meet.signed} != {who for who, _ in self.join.agents}:
            raise Unfit(f"keys of other agents came than those of run {meet.run!r}.")
        name_of_all = _agreed_name(self.join)
        statements = [
            Statement(name_of_all, one.agent, bytes.fromhex(one.key), bytes.fromhex(one.signature))
            for one in meet.signed
        ]
        keys, terms = roster(name_of_all, self.sums.pinned, statements), replace(self.masks, run=name_of_all)
        found = {
            name: Masked(agreements[name], replace(Masker.among(terms, name, key, keys), terms=self.masks))
            for name, key in self.keys.items()
        }
        told = f"{', '.join(found)} met {len(keys)} agents of run {meet.run!r}: every key is of a pinned one"
        self.sums.context.log(told, event="met", run=meet.run, agents=list(keys))
        self.sums.forget_others(meet.run, found)
        return found


def _agreed_name(join: Join) -> str:
    """What statements and secrets of pairs are bound to: the run, and the hash of what was agreed.

    A share has a part of the noise alone. Were agents that joined a run of this name on other terms, with less noise,
    to add up with these, the sum would have less noise than was agreed here. So they share no secret.
    """
    return f"{join.agreed} {join.run}"


def _signed(key: SigningKey, join: Join, agent: str, own: RunKey) -> Signed:
    statement = key.state(_agreed_name(join), agent, own.public)
    return Signed(agent, statement.key.hex(), statement.signature.hex())
