"""Which noise a run draws, where its spec leaves that open: exact noise of the operating system, or simulated noise.

`with_noise` is for a run whose model may be released. `simulated` is for all that is only looked at: sweeps,
comparisons, audits, reproductions. Both return a spec that names its noise, and simulated noise has a seed.
"""

from __future__ import annotations

import math

from tacit.errors import SpecError
from tacit.methods.registry import METHODS
from tacit.run.spec import Spec

PUBLIC_BOUNDS = ("clip", "feature_bounds", "row_norm")  # values of privacy.sensitivity that ask nothing of the records
SIMULATION_SEED = 0  # where none was given


def with_noise(spec: Spec) -> Spec:
    """Return the spec with its noise: exact under `sound` where no seed and no other engine was named, else simulated.

    What cannot be deployed is simulated. A seed beside exact noise is refused.
    """
    check_seed(spec)
    if spec.privacy.noise == "exact":
        return spec
    unnamed = spec.privacy.noise is None and spec.run.seed is None
    by_name = METHODS[spec.algorithm.name].values.get("privacy.trust") == "sum"  # a simulation, unless it is asked for
    if unnamed and spec.run.preset == "sound" and spec.run.engine == "fast" and deployable(spec) and not by_name:
        return spec.with_values({"privacy.noise": "exact"})
    return simulated(spec)


def check_seed(spec: Spec) -> None:
    """Refuse a seed beside exact noise, which would not follow it; runs that earlier versions began may have one."""
    if spec.privacy.noise == "exact" and spec.run.seed is not None:
        raise SpecError(
            f"exact noise comes from the operating system and follows no seed, and run.seed = {spec.run.seed}: "
            "drop the seed, or set privacy.noise = simulated."
        )


def simulated(spec: Spec) -> Spec:
    """Return the spec with simulated noise and a seed, unless the spec asks for exact noise."""
    if spec.privacy.noise == "exact":
        return spec
    seed = SIMULATION_SEED if spec.run.seed is None else spec.run.seed
    return spec.with_values({"privacy.noise": "simulated", "run.seed": seed})


def measures_training(spec: Spec) -> bool:
    """Tell whether a run computes numbers of its training records without noise: with exact noise only on request."""
    return spec.privacy.noise != "exact" or bool(spec.run.measure_training)


def deployable(spec: Spec) -> bool:
    """Tell whether agents of this spec can be deployed: the method is made of queries, with noise and public bounds."""
    a, p, entry = spec.algorithm, spec.privacy, METHODS[spec.algorithm.name]
    if p.mechanism == "silence" or math.isinf(p.epsilon):
        return False
    if not entry.is_admm:
        return entry.queries
    on_step = a.perturbation == "output" and not p.squared_std and a.rule == "prox"
    on_gradient = a.perturbation == "objective" or (on_step and spec.problem.domain == "everywhere")
    return a.rule != "exact" and on_gradient and p.sensitivity in PUBLIC_BOUNDS
