"""One round of ADMM with exact local minimisers, z first, and noise in the objective, on its minimiser, or on both.

    z_p  = argmin_z f_p(z) + <b_p, z> - <lambda_p, z> + rho/2 |w - z|^2    (4b), to a gradient of norm tau
    z_p += c_p                                                            what agent p sends
    w+ = 1/P sum_p (z_p - lambda_p / rho)   (4a),     lambda_p+ = lambda_p + rho (w+ - z_p)   (4c)

Duals follow from what was sent: server and agent keep the same. The local solve starts at w, which all know.
"""

from __future__ import annotations

import numpy as np

from tacit.admm.updates import ascent, consensus, exact_slope
from tacit.methods.method import Info, State, model_bytes, start
from tacit.methods.perturb import check
from tacit.methods.solve import minimise
from tacit.methods.task import Task
from tacit.types import Array


def exact_start(task: Task, private: bool) -> State:
    """Round zero; the records are checked where the noise rests on their norm."""
    if private:
        check(task)
    return start(task, dual=task.zeros)


def exact_round(
    task: Task, state: State, rho: float, tau: float, b: Array | float, c: Array | float
) -> tuple[State, Info]:
    """From (w, lambda) to (w+, lambda+), with noise b and c, (P, J, K)."""
    dual, w = state.own["dual"], state.w
    begin = np.broadcast_to(w, dual.shape)
    z = minimise(task, lambda u: exact_slope(u, w, dual, b, rho), rho, begin, tau) + c
    w = consensus(z.mean(0), dual.mean(0), rho)
    return State(state.t + 1, w, {"dual": ascent(dual, w, z, rho)}), Info((z,), model_bytes(task))
