"""Who cannot go behind a secure sum (privacy.trust = sum), and why."""

from __future__ import annotations

import math

from tacit.errors import IncompatibleError
from tacit.methods.registry import METHODS
from tacit.privacy.summed import InSum
from tacit.run.spec import Spec
from tacit.types import Federation

ENGINES = ("fast", "plain")  # names that a run behind a sum may give: its own engine computes in float64


def check_agents(found: InSum, n_agents: int) -> None:
    """Refuse a sum over so few agents that it would show one of them."""
    least = found.colluding + 2
    if n_agents < least:
        raise IncompatibleError(
            f"a sum shows a single honest agent whole: with {found.colluding} that may collude it needs {least} "
            f"agents, and {'there is one' if n_agents == 1 else f'there are {n_agents}'}. Train with more agents, or "
            "drop --trust sum."
        )


def takers() -> list[str]:
    """Return the names of the methods that go behind a secure sum if they are asked to."""
    return [name for name, entry in METHODS.items() if entry.sums and "privacy.trust" not in entry.values]


def refused(name: str) -> str:
    """Return why a method needs more of its agents than a sum, and what to use."""
    *most, last = takers()
    return (
        f"{name} cannot go behind a secure sum, because its server needs more of an agent than its part of a sum of "
        f"gradients at the shared model, or of moments: use {', '.join(most)} or {last}, or drop the trust in a sum."
    )


def check_method(spec: Spec) -> None:
    """Refuse a secure sum that a method of tacit.methods cannot use, or without which its name means another method."""
    name, trust = spec.algorithm.name, spec.privacy.trust
    if trust == "sum" and not METHODS[name].sums:
        raise IncompatibleError(refused(name))
    if trust == "nobody" and METHODS[name].values.get("privacy.trust") == "sum":
        raise IncompatibleError(f"{name} is behind a secure sum by name: drop privacy.trust, or use another method.")


def check(spec: Spec, federation: Federation) -> None:
    """Refuse a run of the ADMM family that needs more of its agents than a sum, and say why."""
    a, p, found = spec.algorithm, spec.privacy, spec.in_sum
    assert found is not None, "the run trusts a secure sum"
    check_agents(found, federation.n_agents)
    why = {
        "an exact step solves for each agent's own model, and no sum of gradients gives that: use objt or objp":
            a.rule == "exact",
        "without noise there is nothing to share: give a finite epsilon, or drop --trust sum": math.isinf(p.epsilon),
        "a hidden z_p carries a share of the noise alone, and a gradient at z_p would show more of a record than one "
        "at w: use --preset sound, or set algorithm.linearize_at = w": a.linearize_at != "w",
        "noise on each agent's solution is not noise on a sum: use objt or objp": a.perturbation != "objective",
        "shares of Gaussian noise add up to Gaussian noise, and others do not add up to their own law: set "
        "privacy.mechanism = gaussian": p.mechanism != "gaussian",
        "a round may be asked again, so that a budget is for the whole run: set privacy.covers = run":
            p.covers != "run",
        "agents weigh their records differently with algorithm.gradient_weight = local: drop it":
            a.gradient_weight != "global",
        f"the engine {spec.run.engine} adds no shares: drop --engine": spec.run.engine not in ENGINES,
    }  # fmt: skip
    for reason, wrong in why.items():
        if wrong:
            raise IncompatibleError(f"{a.name} cannot go behind a secure sum here, because {reason}.")
