"""A run, ready for the loop: its server, its privacy claim, its problem, and who answers in a simulation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tacit.admm.agent import Agent
from tacit.admm.algorithm import Consensus
from tacit.methods.method import Coordinator, Method
from tacit.methods.promise import Promise
from tacit.methods.task import Task
from tacit.privacy.summed import InSum
from tacit.problem.objective import Problem
from tacit.rounds import Server
from tacit.run.deployment import Deployment
from tacit.schedule import Schedule


@dataclass(frozen=True, eq=False)
class HostedMethod:
    """A method with the records of its agents: the host of simulated methods answers for them (tacit.run.hosted)."""

    server: Coordinator
    task: Task

    @property
    def method(self) -> Method:
        """The method in both of its halves."""
        return self.server.method


@dataclass(frozen=True, eq=False)
class Setup:
    """The setup of a run of any method.

    In a simulation the agents of the ADMM family are moved by an engine (`agents`), and all others by the host
    (`hosted`). `asked` makes the deployment, or refuses a method that is not made of queries.
    """

    server: Server[Any, Any]
    promise: Promise
    problem: Problem  # the reported objective has weight 1/I, whatever weight the agents' objectives have
    shape: tuple[int, int]
    public_classes: bool
    asked: Callable[[], Deployment]
    in_sum: InSum | None = None  # if a secure sum is trusted
    agents: tuple[Agent, ...] = ()
    hosted: HostedMethod | None = None

    @cached_property
    def deployment(self) -> Deployment:
        """What agents are asked if they are deployed."""
        return self.asked()

    @property
    def consensus(self) -> Consensus:
        """The server of the ADMM family."""
        assert isinstance(self.server, Consensus), "only the ADMM family has engines of its own"
        return self.server

    @property
    def rho(self) -> Schedule:
        """The penalty of the ADMM family."""
        return self.consensus.rho
