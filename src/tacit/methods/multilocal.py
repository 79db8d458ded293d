"""ObjP and ObjT with E noisy local steps a round (Ryu & Kim 2022, the authors' follow-up). For e = 1 .. E, from z_p^t:

    objp-local    z_p <- Proj_W((rho w + dual_p - g + z_p / eta) / (rho + 1/eta))
    objt-local    z_p <- Proj_{W and T}(w + (dual_p - g) / rho),   T = {u : |u - z_p| <= radius}
                  g = f'_p(z_p) + xi_p^e,   |x_i a_i^T| <= clip,   xi_p^e ~ N(0, (multiplier clip / I)^2)

Released is the mean of the E points, or the last of them; then w = 1/P sum_p (z_p - dual_p / rho) and
dual_p += rho (w - z_p). What is released is a function of E noisy gradients, so a round costs E releases.

Where nothing binds and all z_p agree this is fedgd with E answers a round, at points that only the agent knows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tacit.admm.messages import Broadcast, Local
from tacit.admm.rule import Prox, Trust
from tacit.methods.local_models_first import LocalModelsFirst
from tacit.methods.method import Budget, Choice, Entry, KeepsDual, grid
from tacit.methods.promise import Promise, gaussian_releases
from tacit.methods.task import Facts, Task, cooled_penalty, noise_std, noisy_gradients
from tacit.schedule import Constant, Inverse, Scaled, Schedule
from tacit.types import Array


@dataclass(frozen=True)
class MultiLocal(KeepsDual, LocalModelsFirst):
    """Agents apply the rule, ObjP's or ObjT's, local_steps times before they release z_p."""

    rounds: int
    clip: float
    multiplier: float
    rho: Schedule
    rule: Prox | Trust
    local_steps: int
    averaged: bool = True

    def promise(self, facts: Facts) -> Promise:  # noqa: ARG002
        return gaussian_releases(self.multiplier, count=self.local_steps)

    def penalty(self, facts: Facts, t: int) -> float:  # noqa: ARG002
        return self.rho(t)

    def released(self, agents: Task, z: Array, dual: Array, msg: Broadcast) -> Array:
        msg, std = replace(msg, rho=self.rho(msg.t)), noise_std(agents, self.multiplier, self.clip)

        def step(g: Array, u: Array, own: Array) -> Array:
            return self.rule.solve(g, lambda _: g, Local(u, own), msg, agents.problem.domain)[0]

        total = np.zeros_like(z)
        for e in range(self.local_steps):
            slope = noisy_gradients(agents, z, self.clip, std, msg.t, e)
            z = np.stack([step(*each) for each in zip(slope, z, dual, strict=True)])
            total += z
        return total / self.local_steps if self.averaged else z


def noise_gain(share: float, local_steps: int, averaged: bool) -> float:
    """The std of the noise in a release over that of one local step.

    With share = (1/eta) / (rho + 1/eta), u the mean of the z_p less w, and noise n_e in units of z,
    u_{e+1} = share u_e - n_e: the last u holds share^{E-1-e} n_e, and their mean 1/E (1 + ... + share^{E-1-e}) n_e.
    """
    powers = share ** np.arange(local_steps)
    weights = powers.cumsum() / local_steps if averaged else powers
    return float(np.linalg.norm(weights))


def build(facts: Facts, budget: Budget, choice: Choice) -> MultiLocal:
    """The method whose stiffness rho + 1/eta = 1 / (P step) of one local step suits the noise.

    It is ObjP where choice has a "share", the part of the stiffness that the proximal term gets; else it is ObjT.
    """
    rounds, steps, averaged = int(choice["rounds"]), int(choice["local_steps"]), bool(choice["averaged"])
    clip, multiplier, share = choice["clip"], budget.multiplier(rounds * steps), choice.get("share", 0.0)
    std = noise_gain(share, steps, averaged) * noise_std(facts, multiplier, clip)
    stiffness = cooled_penalty(facts, choice["score_noise"], std, rounds)
    rule = Prox(Inverse(Scaled(share, stiffness))) if "share" in choice else Trust(Constant(choice["radius"]))
    return MultiLocal(rounds, clip, multiplier, Scaled(1 - share, stiffness), rule, steps, averaged)


LOCAL = {
    "local_steps": "noisy local steps per round, each of which is a release",
    "averaged": "1: agents release the mean of their local steps; 0: the last step",
}

OBJP = Entry("objp-local", "ObjP with several noisy local steps a round", build, grid(
    rounds=50, clip=(0.7, 0.35, 0.7, 0.35), local_steps=2, averaged=1, share=(0.5, 0.5, 0.9, 0.9), score_noise=1.0,
), sets=True, constants={
    **LOCAL, "share": "share of the stiffness rho + 1/eta that the proximal term 1/eta gets",
})  # fmt: skip
OBJT = Entry("objt-local", "ObjT with several noisy local steps a round", build, grid(
    rounds=50, clip=(0.7, 0.35, 0.7, 0.35), local_steps=2, averaged=1, radius=(1e3, 1e3, 1.0, 1.0), score_noise=1.0,
), sets=True, constants={**LOCAL, "radius": "radius of the trust region of each local step"})  # fmt: skip
