"""A job: one run of a comparison. This module holds its complete spec, what it promises, and its record."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from tacit import record, toml
from tacit._version import __version__
from tacit.jsontext import Values
from tacit.leaderboard.standing import SPLIT, check_role, shared
from tacit.measures import ERROR, Measure
from tacit.methods.method import Budget, Choice
from tacit.methods.promise import Promise
from tacit.methods.registry import METHODS, key_of
from tacit.privacy.budget import best_guess
from tacit.privacy.guarantee import total_in_words
from tacit.run.compose import kept_delta
from tacit.run.guarantee import UNBOUNDED, against, delta_of
from tacit.run.noise import simulated
from tacit.run.presets import preset
from tacit.run.spec import Spec


@dataclass(frozen=True)
class Job:
    """A method with one choice of its constants, at one budget, from one seed. `base` holds [data] and [problem]."""

    base: Spec
    method: str
    choice: Choice
    budget: Budget
    seed: int
    role: str  # "trial": tunes on a part of the training records; "run": is reported
    trust: str | None = None  # privacy.trust; None: as the name of the method says

    @property
    def spec(self) -> str:
        """Everything that the result of the job depends on, as TOML."""
        return toml.text(
            shared(self.base.values())
            | {"method.name": self.method}
            | {f"choice.{name}": value for name, value in self.choice.items()}
            | {"budget.epsilon": self.budget.epsilon, "budget.dp_delta": self.budget.dp_delta}
            | ({} if self.trust is None else {"budget.trust": self.trust})  # earlier records know no such key
            | {"run.seed": self.seed, "run.split": SPLIT[self.role]}
        )

    @property
    def run_spec(self) -> Spec:
        """The spec that is run: the sound preset of the method, with the choice, the budget and the seed of the job."""
        sound = preset("sound", self.method, self.base.data.source).with_values(
            shared(self.base.values())
            | {key_of(name): value for name, value in self.choice.items()}
            | {"privacy.dp_delta": self.budget.dp_delta, "run.seed": self.seed, "run.engine": self.base.run.engine}
            | {"privacy.epsilon": METHODS[self.method].values.get("privacy.epsilon", self.budget.epsilon)}
        )
        own = {} if self.trust is None else {"privacy.trust": self.trust}
        return simulated(sound.with_values({"run.record_every": sound.run.rounds} | own))

    @property
    def name(self) -> str:
        """A name for people; jobs are told apart by their specs."""
        parts = "-".join(f"{name}{value:g}" for name, value in self.choice.items())
        behind = "" if self.trust is None else f"-trust-{self.trust}"
        return f"{self.method}{behind}-epsilon{self.budget.epsilon:g}-{self.role}-{parts}-seed{self.seed}"


@dataclass(frozen=True)
class Outcome:
    """What a job gave; `failed` says why where it gave no model."""

    rounds: int
    promise: Promise
    error: float | None = None
    measure: Measure = ERROR  # what `error` is
    auc: float | None = None  # of two classes
    features: str | None = None  # the feature map, in words
    seconds: float = 0.0
    sent: float = 0.0  # bytes that an agent sent in the run, on average
    failed: str | None = None


def record_of(job: Job, outcome: Outcome) -> Values:
    """The sealed record of a job."""
    judge = "a random sixth of each agent's training records" if job.role == "trial" else "test records"
    return record.sealed({
        "name": job.name, "role": job.role, "method": job.method, "choice": dict(job.choice),
        "budget_epsilon": job.budget.epsilon, "budget_dp_delta": job.budget.dp_delta, "seed": job.seed,
        "error": outcome.error, **_named(outcome.measure), "auc": outcome.auc, "features": outcome.features,
        "judged_on": judge, "rounds": outcome.rounds,
        "seconds": round(outcome.seconds, 3), "sent_bytes": outcome.sent, "failed": outcome.failed,
        **guarantee(outcome.promise, outcome.rounds, job.budget),
        "simulated_noise": job.budget.private, "version": __version__, "spec": job.spec,
    })  # fmt: skip


def _named(measure: Measure) -> Values:
    """What is said of a measure that is no test error: records of classes are as they always were."""
    return {} if measure is ERROR else {"measure": measure.key}


def completed(one: Values, where: str) -> Values:
    """Return a record with every key that [data] and [problem] have by now; refuse one that is not of a comparison."""
    check_role(one, where)
    values = toml.parsed(one["spec"], where)
    same = shared(values)
    own = {key: value for key, value in values.items() if key not in same}
    spec = toml.text(shared(Spec().with_values(same).values()) | own)
    return one if spec == one["spec"] else record.sealed(one | {"spec": spec})


def guarantee(promise: Promise, rounds: int, budget: Budget) -> Values:
    """The accountant's total of what a method declares, or the reasons why there is none."""
    reasons = against(promise)
    kept = kept_delta(budget.dp_delta, promise.coalition is not None)
    spent = None if reasons else promise.total(rounds, kept)
    if spent is None or math.isinf(spent.epsilon):
        text = " ".join(["not private:", *(reasons or [UNBOUNDED])])
        nothing = dict.fromkeys(("epsilon", "dp_delta", "best_guess", "accountant", "unit", "trusted"))
        return {"private": False, "guarantee": text, **nothing}
    dp_delta = delta_of(replace(spent, dp_delta=budget.dp_delta), promise, rounds)
    text = total_in_words(spent.epsilon, dp_delta, "in all", spent.name, promise.unit)
    dear = "; more than the budget" if spent.epsilon > budget.epsilon * (1 + 1e-9) else ""
    return {
        "private": True, "guarantee": text + dear,
        "epsilon": spent.epsilon, "dp_delta": dp_delta,
        "best_guess": best_guess(spent, dp_delta, budget.dp_delta - kept), "accountant": spent.name,
        "unit": promise.unit.name.lower(), "trusted": promise.trusted.name.lower(),
        **({} if promise.coalition is None else {"coalition": list(promise.coalition)}),
    }  # fmt: skip
