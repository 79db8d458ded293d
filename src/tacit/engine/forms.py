"""Which choices have a compiled form (fast engine) and a stacked one (torch engine); new ones need neither.

The fast engine moves an agent with any other choice by the agent's own code; the torch engine refuses it by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tacit.admm.agent import Agent
from tacit.admm.rule import Objective, Output, Prox, Trust
from tacit.privacy.mechanism import Gaussian, Laplace, Silence
from tacit.problem.loss import Softmax, Squared
from tacit.problem.regularizer import L2, NoRegularizer
from tacit.problem.sensitivity import Clipped, Declared, Observed

Known = tuple[object, tuple[type, ...]]  # a choice, and the types that have a form

LOSSES = (Softmax, Squared)
BOUNDS = (Observed, Declared, Clipped)


def of_gradient(agent: Agent) -> Iterator[Known]:
    """The choices that a gradient depends on."""
    yield agent.problem.loss, LOSSES
    yield agent.variant.bound, BOUNDS


def of_step(agent: Agent) -> Iterator[Known]:
    """The choices that a step depends on, apart from the set W."""
    yield agent.variant.rule, (Prox, Trust)
    yield agent.variant.perturbation, (Objective, Output)
    yield agent.variant.mechanism, (Laplace, Gaussian, Silence)
    yield agent.problem.regularizer, (L2, NoRegularizer)


def all_known(choices: Iterable[Known]) -> bool:
    """Whether every choice is of a type that has a form; a subclass may differ, and has none."""
    return all(type(choice) in types for choice, types in choices)
