"""ADMM with exact local minimisers and noise in the objective, on its minimiser, or on both: what pvp and dvp share.

    z_p  = argmin_z f_p(z) + <b_p, z> - <lambda_p, z> + rho/2 |w - z|^2    (4b), to a gradient of norm tau
    z_p += c_p                                                            what agent p sends

then w and lambda_p, as in tacit.methods.local_models_first. The local solve starts at w, which everybody knows.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from tacit.admm.messages import Broadcast
from tacit.admm.updates import exact_slope
from tacit.methods.local_models_first import LocalModelsFirst
from tacit.methods.method import Own
from tacit.methods.objective_perturbation import check_records, tau
from tacit.methods.solve import minimise
from tacit.methods.task import Task
from tacit.types import Array


class ExactADMM(LocalModelsFirst):
    """Both halves of such a method, but for the noise and the penalty. Agents keep z_p and lambda_p."""

    tolerance: float

    @property
    @abstractmethod
    def private(self) -> bool:
        """Whether the method adds noise."""

    def carried(self, agents: Task) -> Own:
        """Both zero before the first round; where noise rests on the norm of the records, this checks the records."""
        if self.private:
            check_records(agents)
        return {"z": agents.zeros, "dual": agents.zeros}

    def minimisers(self, agents: Task, dual: Array, msg: Broadcast, b: Array | float = 0.0) -> Array:
        """Where the solve of (4b) ends at every agent, with noise b_p in its objective: (P, J, K)."""
        rho, limit = self.penalty(agents, msg.t), tau(agents, self.tolerance)
        start = np.broadcast_to(msg.w, dual.shape)
        return minimise(agents, lambda u: exact_slope(u, msg.w, dual, b, rho), rho, start, limit)
