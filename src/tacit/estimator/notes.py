"""Texts of a fitted estimator: what `notes_` says of the model, and what `guarantee_` always adds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tacit.privacy import risk
from tacit.run.build import deployable_methods
from tacit.run.noise import deployable
from tacit.run.spec import Spec

UNBOUNDED = (
    "no bounds are declared, and none were read from the data: {}. That takes nothing from the guarantee. With "
    "feature_bounds, or a schema, {}, and the model is usually better: give the ranges that you know without a look at "
    "these records."
)
_BENT = UNBOUNDED.format(
    "each number x became x / (1 + |x|), and each record got norm one", "numbers keep their proportions"
)
_SCALED = UNBOUNDED.format(
    "each record longer than one was scaled to norm one, so that columns of large numbers outweigh the others",
    "each column has its own range",
)
OWN_FIT = (
    "This covers the fit of this estimator only: not earlier steps of a pipeline, which see the records first, and not "
    "a search, which compares fits by scores without noise."
)

GAINS = {"auto": _BENT, "columns": _BENT, "none": _SCALED}  # what bounds would gain, by the feature map

SIMULATED = (
    "the noise is simulated, from a seed, so that whoever knows the seed can take it off: good for trying things out, "
    "not for release. {}"
)
ONLY = "Agents of {} cannot be deployed, and those of {} can."
OTHERWISE = "Agents with these parameters cannot be deployed: take a finite epsilon, and leave options away."


def simulated_because(spec: Spec, options: Mapping[str, Any], random_state: object) -> str:
    """Say that noise is simulated, and how to have exact noise; `options` and `random_state` are those of the fit."""
    if not deployable(spec):
        name, others = spec.algorithm.name, deployable_methods()
        return SIMULATED.format(OTHERWISE if name in others else ONLY.format(name, ", ".join(others)))
    causes = ["random_state"] if random_state is not None else []
    causes += [f"{key} of options" for key in ("privacy.noise", "run.seed", "run.engine") if key in options]
    return SIMULATED.format(f"Drop {' and '.join(causes)}." if causes else OTHERWISE)


def weak_because(summary: Mapping[str, Any]) -> str:
    """Say that the protection of a fit is weak, and why; "" if it is not, or if there is no guarantee."""
    if summary["epsilon"] is None:
        return ""
    found = risk.stated(summary)
    return f"{found.verdict}. In words: {found}." if found.weak else ""
