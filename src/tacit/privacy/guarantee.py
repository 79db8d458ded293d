"""The guarantee of a run as a value. Its sentence and all that pages show are rendered from it: nothing parses them.

result.json has its fields as "guarantee_fields" (`described`, `stated_in`). To add a fact, add a field here, what it
says in `sentence` or `facts`, and its value in `tacit.run.guarantee.of`. Each field follows from the spec and from
public facts, and none from a record: a page that may be shared shows all of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any

from tacit import jsontext
from tacit.errors import RecordError
from tacit.jsontext import Values
from tacit.privacy.budget import MEANING, upward
from tacit.privacy.exclusions import OF_A_SEED, Exclusion
from tacit.privacy.release import Events, Release, describe, noise_in_words, read_strictly, says_nothing
from tacit.privacy.release import described as described_releases

FIELDS = "guarantee_fields"  # the key in result.json
LONGEST_NAME = 1000  # letters of a feature map's
PROBED = "probed, not proved"  # of a feature map that is a function of the user's own
NOBODY_TRUSTED = "no server, agent or channel is trusted"
AS_JSON: jsontext.Own = {Release: (describe, read_strictly)}


class Unit(Enum):
    """What two neighbouring data sets differ by."""

    RECORD = "one record present or absent"
    REPLACED = "one record replaced"
    CLIENT = "one agent with all of its records added or removed"

    @property
    def adjacency(self) -> str:
        """The name that specs and results give it."""
        return {"RECORD": "zero_out", "REPLACED": "replace_one", "CLIENT": "client"}[self.name]


class Trusted(Enum):
    """Who sees more than what the guarantee covers."""

    NOBODY = "nobody: noise is added at each agent"
    SUM = "a secure sum: the server sees totals over agents, and agents follow the protocol"
    SERVER = "the server, which adds the noise"
    CURATOR = "a curator, who holds all records"


COVERS = {
    Trusted.NOBODY: "{}, and the model; against the server, the other agents and the public",
    Trusted.SUM: "the sums that the server sees, and the model; against the server, the other agents and the public",
    Trusted.SERVER: "the models that the server sends; against the agents and the public",
    Trusted.CURATOR: "the models that the curator publishes; against everybody else",
}
WHO = {  # who must be trusted, in a few words, and what that means
    Trusted.NOBODY: ("Nobody", "Each agent adds noise to what it sends, before anything leaves it."),
    Trusted.SUM: ("A secure sum", "The server sees totals over all agents, never the answer of one agent."),
    Trusted.SERVER: ("The server", "It sees what agents send, and adds the noise to what it passes on."),
    Trusted.CURATOR: ("A curator", "One party holds all records, and adds the noise to what it publishes."),
}
WHO_RAN_IT = ("Whoever ran this", "One process held all records, and no ledger tells what it has released.")


class Answers(Enum):
    """What agents release."""

    STEPS = "every z_p an agent releases"
    MESSAGES = "all that agents send"


class NoiseSource(Enum):
    """Where the noise of a run comes from."""

    EXACT = "exact noise from the operating system"
    SIMULATED = "simulated noise, from the seed: not for release"
    NONE = "no noise"


class Ledgers(Enum):
    """Which ledgers the agents of a run keep."""

    NONE = "no ledgers"
    OF_THE_RUN = "ledgers of this run alone"
    OF_ALL_RUNS = "ledgers of all runs"
    ELSEWHERE = "ledgers that each agent keeps where its records are"


@dataclass(frozen=True)
class Guarantee:
    """What a run guarantees, or the `reasons` why it guarantees nothing.

    epsilon, dp_delta   the total; dp_delta is at most `allowed_delta`, which the sentence states
    accountant          the argument that gives it (tacit.privacy.budget.MEANING)
    each_round, once    the releases about one unit: the law of the noise
    coalition           (c, P) of a secure sum: holds against the server with any c of P agents
    own_map             the feature map, if it is a function of the user's own
    claim               what the paper states of a run without a guarantee
    """

    epsilon: float | None
    dp_delta: float | None
    allowed_delta: float | None
    accountant: str | None
    unit: Unit
    rounds: int
    each_round: Events
    once: Events
    trusted: Trusted
    coalition: tuple[int, int] | None
    answers: Answers
    noise: NoiseSource
    ledgers: Ledgers
    own_map: str | None
    not_covered: tuple[Exclusion, ...]
    reasons: tuple[str, ...]
    claim: str | None

    def __post_init__(self) -> None:
        whole = (self.epsilon, self.dp_delta, self.allowed_delta, self.accountant)
        if {one is not None for one in whole} != {self.private}:
            raise ValueError("it has a total and reasons against it, or neither")
        if self.private != bool([*self.each_round, *self.once]) or self.private != bool(self.not_covered):
            raise ValueError("a total needs releases and what it does not cover, and only a total has them")
        if self.epsilon is not None and not 0 <= self.epsilon < math.inf:
            raise ValueError("its epsilon is no total")
        if not 0 <= (self.dp_delta or 0.0) <= (self.allowed_delta or 0.0) < 1:
            raise ValueError("its dp_delta is no probability that it allows")
        if self.accountant != "basic" and self.dp_delta != self.allowed_delta:
            raise ValueError("only epsilons that are added up hold at another delta than what is allowed")
        if self.own_map is not None and not (self.own_map.isprintable() and len(self.own_map) <= LONGEST_NAME):
            raise ValueError("the name of its feature map is no name")
        if self.private and (self.accountant not in MEANING or self.noise is NoiseSource.NONE):
            raise ValueError("a total needs noise, and an accountant that is known")
        if self.private and self.simulated != any(one in OF_A_SEED for one in self.not_covered):
            raise ValueError("simulated noise, and only that, is not covered against who knows the seed")
        if self.private and (self.own_map is not None) != (Exclusion.OWN_MAP in self.not_covered):
            raise ValueError("what a feature map of the user's own does, and only that, is not covered")
        c, n = self.coalition or (0, 1)
        if not c < n or (self.private and (self.trusted is Trusted.SUM) != (self.coalition is not None)):
            raise ValueError("a secure sum, and only that, holds against some of the agents, and not against all")
        if any(says_nothing(one) for one, _ in [*self.each_round, *self.once]):
            raise ValueError("one of its releases says nothing of a record")

    @property
    def private(self) -> bool:
        """Whether there is a guarantee."""
        return not self.reasons

    @property
    def simulated(self) -> bool:
        """Whether the noise can be drawn again from a seed."""
        return self.noise is NoiseSource.SIMULATED

    @property
    def sentence(self) -> str:
        """The guarantee in one sentence, or the reasons why there is none."""
        if self.epsilon is None or self.allowed_delta is None or self.accountant is None:
            return " ".join(["not private:", *self.reasons, *filter(None, [self.claim]), "For reproduction only."])
        again = sum(n for _, n in self.once) if self.coalition else 0
        repeated = f" and up to {again} repetition{'s' if again > 1 else ''}" if again else ""
        extent = f"for the whole run of {self.rounds} round{'' if self.rounds == 1 else 's'}{repeated}"
        total = total_in_words(self.epsilon, self.allowed_delta, extent, self.accountant, self.unit)
        trusting = "" if self.trusted is Trusted.NOBODY else f"; trusts {trust_in_words(self.trusted, self.coalition)}"
        own = f"; features by {self.own_map}, {PROBED}" if self.own_map else ""
        return f"{total}; {self.law}; {self.noise.value}{trusting}{own}"

    @property
    def law(self) -> str:
        """The noise of every release in words."""
        each = [f"{noise_in_words(one, n)} a round" for one, n in self.each_round]
        if self.coalition is not None:  # repetitions have the noise of a round
            return ", ".join(f"{one}, in the sum over agents" for one in each)
        once = [f"{noise_in_words(one, n)} {'once' if n == 1 else 'in the run'}" for one, n in self.once]
        return ", ".join(each + once)

    @property
    def covers(self) -> str:
        """What is covered, and against whom."""
        covered = COVERS[self.trusted].format(self.answers.value)
        return covered if self.coalition is None else f"{covered}; {self._adversary}"

    @property
    def trust(self) -> str:
        """Who is trusted. To trust nobody, the agents' ledgers must outlive the process that asks the agents."""
        if self.simulated:
            method = f"; the method itself trusts {trust_in_words(self.trusted, self.coalition)}"
            told = "a simulation: one process holds all records and the seed of all noise"
            return told + ("" if self.trusted is Trusted.NOBODY else method)
        if self.ledgers is Ledgers.NONE:
            deploy = "train with --ledger what is to be deployed"
            return f"one process holds all records, and no ledger outlives it: {deploy}"
        if self.ledgers is Ledgers.ELSEWHERE:
            own = "adds its noise" if self.coalition is None else "adds its share of the noise and masks its answer"
            return f"each agent {own} where its records are, and keeps its own ledger; {self._adversary}"
        shared_out = "shared out over the agents, who mask their answers"
        added = "added at each agent" if self.coalition is None else shared_out
        told = f"noise is {added}; {self._adversary}; one process read all records"
        alone = "; the ledgers are of this run alone (with --ledger, of all runs)"
        return told + alone if self.ledgers is Ledgers.OF_THE_RUN else told

    @property
    def who(self) -> tuple[str, str]:
        """Who must be trusted in a few words (of simulated noise: would have to be), and what that means."""
        if not self.simulated and self.ledgers is Ledgers.NONE:
            return WHO_RAN_IT
        whom, means = WHO[self.trusted]
        if self.trusted is Trusted.NOBODY and self.ledgers is not Ledgers.ELSEWHERE:
            means += " In this run, one process read all records."
        return whom, means if self.coalition is None else f"{means} It {_holds(*self.coalition)}."

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """What report, card and live page list of a guarantee, beside the sentence and what it does not cover."""
        return (
            ("trust", self.trust),
            ("covers", self.covers),
        )

    @property
    def exclusions(self) -> list[str]:
        """What is not covered, in sentences."""
        return [f"{brief}{one.why}" for brief, one in zip(self.brief_exclusions, self.not_covered, strict=True)]

    @property
    def brief_exclusions(self) -> list[str]:
        """What is not covered, without the reasons."""
        return [one.what.replace("{map}", self.own_map or "") for one in self.not_covered]

    @property
    def _adversary(self) -> str:
        """Against whom the guarantee holds; of a secure sum, who must not collude with whom."""
        if self.coalition is None:
            return NOBODY_TRUSTED
        c, n = self.coalition
        return (
            f"no channel is trusted, and neither is the server, nor any {c} of the {n} agents that tell it all they "
            f"know; {c + 1} agents that do so void the guarantee"
        )


def trust_in_words(trusted: Trusted, coalition: tuple[int, int] | None) -> str:
    """Return who is trusted, and with what."""
    return trusted.value if coalition is None else f"a secure sum: it {_holds(*coalition)}"


def _holds(c: int, n: int) -> str:
    return (
        f"holds against the server and any {c} of the {n} agents together, if the other {n - c} follow the protocol, "
        "and X25519 and ChaCha20 hold"
    )


def total_in_words(epsilon: float, dp_delta: float, extent: str, accountant: str, unit: Unit) -> str:
    """Return a total in words: "(1, 1e-06)-DP in all (gdp), one record present or absent", if `extent` is "in all"."""
    return f"({upward(epsilon)}, {dp_delta:g})-DP {extent} ({accountant}), {unit.value}"


def described(guarantee: Guarantee) -> Values:
    """Return a guarantee as result.json has it."""
    return {"private": guarantee.private} | jsontext.described(guarantee, AS_JSON)


def stated_in(summary: Mapping[str, Any]) -> Guarantee | None:
    """Return the guarantee that a result states; None if a field is missing, as in results of earlier versions.

    Fields that make no sense, or that another key of the result contradicts, are a RecordError.
    """
    values = summary.get(FIELDS, {})
    if isinstance(values, dict) and not values.keys() >= {"private", *(one.name for one in fields(Guarantee))}:
        return None
    try:
        given = {key: one for key, one in values.items() if key != "private"} if isinstance(values, dict) else values
        found = jsontext.read(Guarantee, given, AS_JSON)
        if values["private"] is not found.private:
            raise RecordError("it is private without a total, or has a total without being private")
        _check_rest(found, summary)
    except RecordError as error:
        raise RecordError(f"{FIELDS} of a result makes no sense: {error}.") from None
    return found


def _check_rest(found: Guarantee, summary: Mapping[str, Any]) -> None:
    """Refuse a result whose other keys say something else."""
    same: Values = {"epsilon": found.epsilon, "accountant": found.accountant, "adjacency": found.unit.adjacency}
    same["simulated_noise"] = found.simulated
    if found.private:
        same |= {"dp_delta": found.dp_delta, "releases": described_releases(found.each_round, found.once)}
        beside: Values = {"rounds": found.rounds, "noise": found.noise.value}
        same |= {key: value for key, value in beside.items() if key in summary}
    for key, value in same.items():
        try:
            alike = jsontext.dumps(summary.get(key)) == jsontext.dumps(value)
        except (ValueError, RecursionError):  # more digits, or deeper, than JSON is written
            alike = False
        if not alike:
            raise RecordError(f"{key} of the result is another one")
