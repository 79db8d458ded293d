"""OutP, the DP-ADMM of Huang et al. 2019: a linearised step with a proximal term, then noise on its solution.

    z_p  = argmin_u <f'_p(z_p) - dual_p, u> + rho/2 |u - w|^2 + 1/(2 eta_p) |u - z_p|^2  +  N(0, sigma_p^2)
    w    = 1/P sum_p (z_p - dual_p / rho)
    dual_p += rho (w - z_p)                                in this order, and on all of R^{J x K}

    1 / eta_p^k = c3 + lambda c4 / n + sqrt(2 d k) s / c_w        s = multiplier * sensitivity
    sigma_p^k   = s / (rho + 1 / eta_p^k)                         sensitivity = 2 c1 / I, a record replaced

c1 and c3 bound the first and the second derivative of a record's loss, c_w the norm of the optimum; d = J K. All are
declared. Huang et al. weigh a record by 1 / I_p; here it is 1 / I, so that the sum of the f_p is the objective (1)
that every other method minimises, and their rho is divided by P for the same reason.

`Released` is what the code released with Ryu & Kim 2021 ran under the name OutP, for reproduction: not private.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tacit.admm.messages import Broadcast
from tacit.admm.updates import ascent, prox_center
from tacit.methods.local_models_first import LocalModelsFirst
from tacit.methods.method import Answers, Budget, Choice, Entry, KeepsDual, grid
from tacit.methods.objective_perturbation import check_loss
from tacit.methods.promise import Promise, Trusted, Unit, no_privacy
from tacit.methods.queried import QueryMethod
from tacit.methods.task import Facts, Task
from tacit.problem.sensitivity import Adjacency, Declared, from_row_norm
from tacit.query.gradient import Gradient
from tacit.rounds import State
from tacit.schedule import HuangStep, Schedule, Staircase
from tacit.types import Array, Norm

REPLACED = Adjacency.REPLACE_ONE.value
MISTAKES = (
    "the standard deviation of the noise is sigma^2 in place of sigma.",
    "the number of records stands in for the bound of a gradient.",
)


@dataclass(frozen=True)
class OutP(QueryMethod):
    """Huang's own calibration. A replaced record leaves I_p as it was, so eta_p may be public.

    Noise on the solution of a proximal step, on all of R^{J x K}, is noise on the gradient over mu = rho + 1 / eta_p:
    agents answer with noisy gradients at their z_p, and the server takes the steps.
    """

    rounds: int
    multiplier: float
    rho: float
    c_w: float
    in_sum: None = None
    adjacency: ClassVar[Adjacency] = Adjacency.REPLACE_ONE

    def query(self, facts: Facts) -> Gradient:
        problem = facts.problem
        return Gradient(facts.shape, problem.loss, record_bound(facts), problem.weight, shared=False)

    def start(self, facts: Facts) -> State:
        """Return w and all z_p at zero, and multipliers of zero."""
        zeros = np.zeros((facts.n_agents, *facts.shape))
        return State.zero(facts.shape, z=zeros, dual=zeros)

    def ask(self, facts: Facts, state: State) -> Broadcast:  # noqa: ARG002
        """Ask every agent for its gradient at its own z_p."""
        return Broadcast(state.t + 1, state.own["z"])

    def conclude(self, facts: Facts, state: State, msg: Broadcast, answers: Answers) -> State:
        problem, z, dual = facts.problem, state.own["z"], state.own["dual"]
        slope = answers["answer"].reshape(z.shape) + problem.regularization * problem.regularizer.gradient(z)
        z = np.asarray(prox_center(state.w, z, dual, slope, self.rho, self.eta(facts, msg.t)))
        w = z.mean(0)  # (4a): the multipliers add up to zero
        return state.next(w, z=z, dual=ascent(dual, w, z, self.rho))

    def eta(self, facts: Facts, t: int) -> Array:
        """Return the proximity of every agent, (P, 1, 1)."""
        problem, d, sizes = facts.problem, math.prod(facts.shape), facts.sizes
        noise, c3 = self.multiplier * self.sensitivity(facts), problem.loss.curvature * facts.row_norm**2
        regular = problem.regular_curvature
        return _each(sizes, lambda n: HuangStep(problem.weight * n * c3 + regular, d, noise, self.c_w)(t))


@dataclass(frozen=True)
class Released(KeepsDual, LocalModelsFirst):
    """The released code: sigma^2 where the standard deviation belongs, c1 = I_p, c3 = I_p / 4, c_w = sqrt(4 J K).

    The loss of a record weighs 1 / I_p, and beta r'(w) stands in for (beta / P) r'(z_p).
    """

    rounds: int
    multiplier: float
    rho: Schedule

    def promise(self, facts: Facts) -> Promise:  # noqa: ARG002
        return Promise(Unit.REPLACED, Trusted.NOBODY, caveats=MISTAKES) if self.multiplier else no_privacy()

    def penalty(self, facts: Facts, t: int) -> float:  # noqa: ARG002
        return self.rho(t)

    def released(self, agents: Task, z: Array, dual: Array, msg: Broadcast) -> Array:
        problem, d, rho = agents.problem, math.prod(agents.shape), self.rho(msg.t)
        bound = Declared(Norm.L2, float(max(agents.sizes)), public=False)
        data = agents.sums(agents.shards, problem, z, bound) / agents.own_sizes
        slope = data + problem.beta * problem.regularizer.gradient(msg.w)
        s = REPLACED * self.multiplier  # multiplier * 2 c1 / I_p, with c1 = I_p
        eta = _each(agents.own_sizes.flat, lambda n: HuangStep(n / 4, d, s, math.sqrt(4 * d))(msg.t))
        sigma = s / (rho + 1 / eta)
        return np.asarray(prox_center(msg.w, z, dual, slope, rho, eta) - sigma**2 * agents.agents_gaussian(msg.t))


def _each(sizes: Iterable[float], value: Callable[[float], float]) -> Array:
    """Return a number for every agent, from its number of records: (P, 1, 1)."""
    return np.array([value(n) for n in sizes])[:, None, None]


def record_bound(facts: Facts) -> Declared:
    """c1 (facts.gradient_bound, with the room that float32 sums need), and the refusal of longer records."""
    return from_row_norm(Norm.L2, facts.row_norm, facts.problem.loss)


def build(facts: Facts, budget: Budget, choice: Choice) -> OutP:
    """The method with Huang's rho, which is for f_p that weigh records by 1 / I_p."""
    rounds = int(choice["rounds"])
    check_loss(facts)
    return OutP(rounds, budget.multiplier(rounds), choice["rho"] / facts.n_agents, choice["c_w"])


def build_released(facts: Facts, budget: Budget, choice: Choice) -> Released:  # noqa: ARG001
    """The method with noise that would spend the budget, were it calibrated, and rho-hat at the epsilon of a round."""
    rounds = int(choice["rounds"])
    multiplier = budget.multiplier(rounds)
    # of a round, by the classic formula: multiplier = sqrt(2 ln(1.25 / delta)) / epsilon
    epsilon = math.sqrt(2 * math.log(1.25 / budget.dp_delta)) / multiplier if multiplier else math.inf
    rho = Staircase(choice["rho_c1"], choice["rho_c2"], choice["rho_period"], epsilon)
    return Released(rounds, multiplier, rho)


_REPLACED = {"privacy.adjacency": "replace_one"}
_PENALTY = {
    "rho": "penalty for records that weigh 1/I_p; it is divided by the number of agents",
    "c_w": "bound on the norm of the optimum, in Huang's step",
}

HUANG = Entry(
    "outp-huang", "Huang et al.'s DP-ADMM: a proximal step linearised at z_p, Gaussian noise on its solution", build,
    grid(rounds=(1000, 1000, 300, 300), rho=0.1, c_w=(100.0, 300.0, 100.0, 300.0)), _REPLACED,  # rho is their own
    constants=_PENALTY, queries=True,
)  # fmt: skip
PLUS = Entry(
    "outp-plus", "Huang et al.'s DP-ADMM with a hundredth of its rho (the paper's OutP+)", build,
    grid(rounds=(1000, 1000, 300, 300), rho=0.001, c_w=(100.0, 300.0, 100.0, 300.0)), _REPLACED, constants=_PENALTY,
    queries=True,
)  # fmt: skip
RELEASED = Entry("outp-released", "OutP as the paper's released code ran it: not private", build_released, grid(
    rounds=(1000, 1000, 300, 300), rho_c1=(2.0, 0.005, 2.0, 0.005), rho_c2=(5.0, 0.05, 5.0, 0.05),
    rho_period=(1e4, 2e3, 1e4, 2e3),  # the three are the paper's rho, for MNIST and for FEMNIST
), constants={
    "rho_c1": "c1 of the penalty c1 1.2^floor(t/period) + c2/epsilon, epsilon of one round",
    "rho_c2": "c2 of that penalty",
    "rho_period": "rounds after which the first part of that penalty grows by a fifth",
})  # fmt: skip
