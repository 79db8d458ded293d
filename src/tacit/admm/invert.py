"""What a server learns from a released z: the noisy gradient behind it, up to what a projection hides."""

from __future__ import annotations

from tacit.admm.agent import Variant
from tacit.admm.messages import Broadcast, Local
from tacit.admm.rule import Prox, Trust
from tacit.admm.updates import prox_center, trust_center
from tacit.errors import IncompatibleError
from tacit.types import Array


def invert(variant: Variant, own: Local, msg: Broadcast, z: Array) -> Array:
    """f'_p + xi = mu (c - z), c the centre of the step at slope zero and mu its stiffness.

    The centre falls by slope / mu, so this is exact where neither W nor the trust region binds, for noise in the
    objective and on the output alike. `own` is what the agent carried into the step (after Agent.caught_up): its
    z is an earlier release and its dual follows from those, so the server has both.
    """
    rule = variant.rule
    if isinstance(rule, Trust):
        center = trust_center(msg.w, own.dual, 0.0, msg.rho)
    elif isinstance(rule, Prox):
        center = prox_center(msg.w, own.z, own.dual, 0.0, msg.rho, rule.eta(msg.t))
    else:
        raise IncompatibleError("an exact step has no single gradient behind it: audit the prox or the trust rule.")
    answer: Array = rule.stiffness(msg.rho, msg.t) * (center - z)
    return answer
