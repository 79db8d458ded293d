"""What a method is: an agents' half, a server's half, a promise, and a way to build it from a budget and a choice."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np

from tacit.admm.messages import Broadcast
from tacit.errors import IncompatibleError
from tacit.methods.behind_sum import BehindSum
from tacit.methods.promise import Promise, Trusted
from tacit.methods.task import Facts, Task
from tacit.privacy.budget import multiplier_of
from tacit.privacy.summed import InSum
from tacit.rounds import Info, State, rounds
from tacit.types import Array

Choice: TypeAlias = Mapping[str, float]  # the constants that tuning may choose, by name
Own: TypeAlias = Mapping[str, Array]  # what agents keep, by name: each array has a row for every agent of the task
Answers: TypeAlias = Mapping[str, Array]  # what agents send, by name: a row each, or their total through a secure sum


class Method(Protocol):
    """A method in two halves, so that any runtime can host it: agents in this process, on other ranks, or elsewhere.

    The agents' half (`carried`, `answer`) sees the records of the agents that are here, be that all of them or one. The
    server's half (`start`, `ask`, `conclude`) sees public facts and answers. Where the promise trusts a secure sum, the
    server is given the total of the answers and no single one (tacit.methods.behind_sum).
    """

    @property
    def rounds(self) -> int: ...

    def promise(self, facts: Facts) -> Promise:
        """What each round releases, from public numbers alone."""

    def carried(self, agents: Task) -> Own:
        """What agents carry into the first round."""

    def answer(self, agents: Task, own: Own, msg: Broadcast) -> tuple[Own, Answers]:
        """What agents carry on, and what leaves them. An agent that was not asked has no row in what leaves."""

    def start(self, facts: Facts) -> State:
        """The server's state before the first round."""

    def ask(self, facts: Facts, state: State) -> Broadcast:
        """What the server sends to agents, and to which of them."""

    def share(self, facts: Facts) -> float:
        """The share of the agents that a round is expected to ask: how many were drawn may be private."""

    def conclude(self, facts: Facts, state: State, msg: Broadcast, answers: Answers) -> State:
        """The server's next state, from what it asked and what it was answered."""

    def behind(self, facts: Facts) -> BehindSum | None:
        """The secure sum that agents answer into; None if the server reads each answer, or if there is no noise."""


WORD = 8.0  # bytes of a number in a secure sum
PARTS = ("promise", "carried", "answer", "start", "ask", "share", "conclude", "behind")  # of a Method


class AnswersAlone:
    """The server reads the answer of every agent: there is no secure sum."""

    def behind(self, facts: Facts) -> BehindSum | None:  # noqa: ARG002
        return None


class StartsInW(AnswersAlone):
    """The server's model is the point of W nearest to zero before the first round; the server keeps nothing else."""

    def start(self, facts: Facts) -> State:
        return State(0, facts.problem.start(facts.shape), np.zeros(facts.shape))


class AsksEveryone(AnswersAlone):
    """The server sends its model to every agent."""

    def ask(self, facts: Facts, state: State) -> Broadcast:  # noqa: ARG002
        return Broadcast(state.t + 1, state.w)

    def share(self, facts: Facts) -> float:  # noqa: ARG002
        return 1.0


class KeepsNothing(AnswersAlone):
    """Agents keep nothing from one round to the next."""

    def carried(self, agents: Task) -> Own:  # noqa: ARG002
        return {}


class Stateless(StartsInW, AsksEveryone, KeepsNothing):
    """Every agent is asked in every round, and nothing but the server's model outlives a round."""


class KeepsDual(AnswersAlone):
    """Agents keep a local model z_p, which starts where the server's does, and a multiplier, which starts at zero."""

    def carried(self, agents: Task) -> Own:
        return {"z": agents.zeros + agents.problem.start(agents.shape), "dual": agents.zeros}


class Curated(StartsInW, KeepsNothing, ABC):
    """A method for a curator who holds all records. Agents who keep their records to themselves cannot run it."""

    @abstractmethod
    def train(self, records: Task, msg: Broadcast) -> Array:
        """The next model, which everybody may see."""

    def answer(self, agents: Task, own: Own, msg: Broadcast) -> tuple[Own, Answers]:
        if len(agents.index) < agents.n_agents:
            raise IncompatibleError(
                f"{type(self).__name__} needs all records in one place, and only those of {len(agents.index)} of "
                f"{agents.n_agents} agents are here: let a curator run it, or choose a method that trusts nobody."
            )
        return own, {"model": self.train(agents, msg)}

    def ask(self, facts: Facts, state: State) -> Broadcast:  # noqa: ARG002
        return Broadcast(state.t + 1, state.w)

    def share(self, facts: Facts) -> float:  # noqa: ARG002
        return 0.0  # agents send nothing in a round: the curator had their records before the first

    def conclude(self, facts: Facts, state: State, msg: Broadcast, answers: Answers) -> State:  # noqa: ARG002
        return state.next(answers["model"])


@dataclass(frozen=True, eq=False)
class Coordinator:
    """The server of a run: the server's half of a method on the facts of a federation (a tacit.rounds.Server)."""

    method: Method
    facts: Facts

    @property
    def rounds(self) -> int:
        return self.method.rounds

    @cached_property
    def promise(self) -> Promise:
        return self.method.promise(self.facts)

    def start(self) -> State:
        return self.method.start(self.facts)

    def ask(self, state: State) -> Broadcast:
        return self.method.ask(self.facts, state)

    def conclude(self, state: State, msg: Broadcast, answers: Answers) -> tuple[State, Info]:
        """The next state. Who is not trusted saw the answers, or the model alone where a trusted server adds noise."""
        trusted, sum_ = self.promise.trusted, self.method.behind(self.facts)
        after = self.method.conclude(self.facts, state, msg, answers)
        hidden = trusted is Trusted.SERVER and not self.promise.caveats
        seen = (after.w,) if hidden else tuple(answers.values())
        shapes = [a.shape if trusted is Trusted.SUM else a.shape[1:] for a in answers.values()]
        widths = [_width(a) if sum_ is None else WORD for a in answers.values()]
        sent = self.method.share(self.facts) * sum(n * math.prod(a) for n, a in zip(widths, shapes, strict=True))
        with np.errstate(over="ignore", invalid="ignore"):  # a step that is not finite ends the run, without a warning
            step = math.sqrt(np.square(after.w - state.w).sum())
        return after, Info(after.t, step, seen=seen, sent=sent)

    def reached(self, answers: Answers) -> Answers:
        """Return what reaches the server of a simulation: all answers, or their total if a secure sum is trusted.

        Words of 64 bits add up modulo 2^64, a multiple of every 2^k. A total of words becomes numbers again.
        """
        if self.promise.trusted is not Trusted.SUM:
            return answers
        totals, sum_ = {name: each.sum(0) for name, each in answers.items()}, self.method.behind(self.facts)
        return totals if sum_ is None else {name: sum_.total(words) for name, words in totals.items()}


def _width(answer: Array) -> float:
    """The bytes of a number on its way: whole numbers are sent as they are, others as float32."""
    return 4.0 if answer.dtype.kind == "f" else float(answer.dtype.itemsize)


class Here:
    """An exchange (tacit.rounds) of one run with the agents of a task, in this process; `own` is what they carry."""

    def __init__(self, server: Coordinator, task: Task) -> None:
        self.server, self.task, self.own = server, task, server.method.carried(task)

    def __call__(self, questions: Sequence[Broadcast]) -> list[Answers]:
        (msg,) = questions
        self.own, answers = self.server.method.answer(self.task, self.own, msg)
        return [self.server.reached(answers)]


def simulate(method: Method, task: Task, start: Array | None = None) -> Iterator[tuple[State, Info]]:
    """Yield the state and the info after each round of a run whose agents are all in this process.

    The models of the server and of the agents start at `start`, or as the method has it.
    """
    server = Coordinator(method, task.facts)
    exchange, state = Here(server, task), server.start()
    if start is not None:
        exchange.own = _moved(exchange.own, start)
        state = replace(state, w=start, own=_moved(state.own, start))
    for (ended,) in rounds([server], [state], exchange):
        yield ended


def _moved(kept: Own, start: Array) -> Own:
    """Return what is kept, with the local models, which methods call z, at `start`."""
    z = kept.get("z")
    return kept if z is None or z.shape[-2:] != start.shape else {**kept, "z": np.zeros(z.shape) + start}


@dataclass(frozen=True)
class Budget:
    """A total for the whole run, and the secure sum that agents share their noise in; epsilon = inf asks for no noise.

    A sum is given to methods that take one alone (`Entry.sums`).
    """

    epsilon: float
    dp_delta: float = 1e-6
    in_sum: InSum | None = None

    @property
    def private(self) -> bool:
        return not math.isinf(self.epsilon)

    def multiplier(self, releases: int, rate: float = 1.0) -> float:
        """The multiplier of Gaussian noise with which `releases` releases spend the budget; 0 without a budget."""
        return multiplier_of(self.epsilon, self.dp_delta, releases, rate) if self.private else 0.0


Builder: TypeAlias = Callable[[Facts, Budget, Choice], Method]
TRIALS = 4
SILENT = {"privacy.epsilon": math.inf, "privacy.mechanism": "silence"}  # of a spec whose method adds no noise


def grid(**constants: float | tuple[float, ...]) -> tuple[Choice, ...]:
    """The TRIALS choices that tuning tries, the default first. A constant has one value, or one for every choice."""
    columns = {name: value if isinstance(value, tuple) else TRIALS * (value,) for name, value in constants.items()}
    return tuple(dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))


@dataclass(frozen=True)
class Entry:
    """One line of the registry. Every grid has TRIALS choices, the first of them the default.

    `build` is None for the ADMM family: tacit.run.compose makes its agents of the choices in `values`.
    """

    name: str
    about: str
    build: Builder | None
    grid: tuple[Choice, ...]
    values: Mapping[str, Any] = field(default_factory=dict)  # keys of a spec that the name stands for
    ranked: bool = True  # whether a comparison that names no methods has it
    sets: bool = False  # whether its steps stay in the set W of the problem
    sums: bool = False  # whether its server needs sums alone, so that it goes behind a secure sum
    queries: bool = False  # whether its agents only answer queries, so that they can be deployed (methods.queried)
    constants: Mapping[str, str] = field(default_factory=dict)  # what each constant is that [method] holds, in a line
    law: str = "gaussian"  # the noise of the ADMM family in the sound preset; the paper's is in `values`

    @property
    def is_admm(self) -> bool:
        """Whether it is of the ADMM family."""
        return self.build is None

    def built(self, facts: Facts, budget: Budget, choice: Choice) -> Method:
        """Return the method with the constants of a choice, calibrated for a budget."""
        assert self.build is not None, "tacit.run.compose builds the ADMM family"
        made = self.build(facts, budget, choice)
        if lacking := [part for part in PARTS if not callable(getattr(made, part, None))]:
            raise _outdated(self.name, f"it lacks {', '.join(f'{part}()' for part in lacking)}")
        return made


def check_entry(name: str, entry: Entry) -> None:
    """Refuse an entry of another version, whose fields mean something else."""
    if not isinstance(entry, Entry):
        raise _outdated(name, "its entry is not a tacit.methods.method.Entry")


def _outdated(name: str, why: str) -> IncompatibleError:
    return IncompatibleError(
        f"the method {name} was written for another version of tacit, because {why}: see docs/adding-a-method.md."
    )


def summed(build: Builder) -> Builder:
    """Return a builder of the same method behind a secure sum: for a name that stands for privacy.trust = sum."""

    def behind(facts: Facts, budget: Budget, choice: Choice) -> Method:
        return build(facts, replace(budget, in_sum=budget.in_sum or InSum()), choice)

    return behind
