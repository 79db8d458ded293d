"""Whether a run trusts a secure sum (privacy.trust = sum), what it then agrees on, and who cannot have one."""

from __future__ import annotations

import math

from tacit.errors import IncompatibleError
from tacit.privacy.summed import InSum, Peers
from tacit.run.spec import Spec
from tacit.types import Federation

ENGINES = ("fast", "plain")  # names that a run behind a sum may give: its own engine computes in float64


def of(spec: Spec) -> InSum | None:
    """Return what a run agrees on that trusts a secure sum; None where it trusts nobody."""
    p = spec.privacy
    if p.trust == "sum":
        return InSum(1 if p.colluding is None else p.colluding, p.repetitions or 0)
    for key, value in (("colluding", p.colluding), ("repetitions", p.repetitions)):
        if value is not None:
            raise IncompatibleError(f"privacy.{key} is of a secure sum: add --trust sum, or drop it.")
    return None


def whole_noises(found: InSum | None, n_agents: int) -> float:
    """Return how many times the noise of one release enters a round: once an agent, or P / (P - c) times in a sum."""
    return n_agents if found is None else n_agents / Peers(n_agents, found.colluding).honest


def check_agents(found: InSum, n_agents: int) -> None:
    """Refuse a sum over so few agents that it would show one of them."""
    least = found.colluding + 2
    if n_agents < least:
        raise IncompatibleError(
            f"a sum shows a single honest agent whole: with {found.colluding} that may collude it needs {least} "
            f"agents, and {'there is one' if n_agents == 1 else f'there are {n_agents}'}. Train with more agents, or "
            "drop --trust sum."
        )


def check(spec: Spec, federation: Federation) -> None:
    """Refuse a run of the ADMM family that needs more of its agents than a sum, and say why."""
    a, p, found = spec.algorithm, spec.privacy, of(spec)
    if found is None:
        return
    check_agents(found, federation.n_agents)
    why = {
        "an exact step solves for each agent's own model, and no sum of gradients gives that: use objt or objp":
            a.rule == "exact",
        "a hidden z_p carries a share of the noise alone, and a gradient at z_p would show more of a record than one "
        "at w: set algorithm.linearize_at = w, as the sound preset does": a.linearize_at != "w",
        "noise on each agent's solution is not noise on a sum: use objt or objp": a.perturbation != "objective",
        "shares of Gaussian noise add up to Gaussian noise, and others do not add up to their own law: set "
        "privacy.mechanism = gaussian and a finite epsilon": p.mechanism != "gaussian" or math.isinf(p.epsilon),
        "a round may be asked again, so that a budget is for the whole run: set privacy.covers = run":
            p.covers != "run",
        "agents weigh their records differently with algorithm.gradient_weight = local: drop it":
            a.gradient_weight != "global",
        f"the engine {spec.run.engine} adds no shares: drop --engine": spec.run.engine not in ENGINES,
    }  # fmt: skip
    for reason, wrong in why.items():
        if wrong:
            raise IncompatibleError(f"{a.name} cannot go behind a secure sum here, because {reason}.")
