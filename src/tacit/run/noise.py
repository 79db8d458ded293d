"""Which noise a run draws, where its spec leaves that open: exact noise of the operating system, or simulated noise.

`with_noise` is for a run whose model may be released. `simulated` is for all that is only looked at: sweeps,
comparisons, audits, reproductions. Both return a spec that names its noise, and simulated noise has a seed.
"""

from __future__ import annotations

import math
from dataclasses import asdict

from tacit.errors import SpecError
from tacit.guarded.half import PROJECTED
from tacit.methods.method import Composed
from tacit.methods.registry import METHODS
from tacit.problem.domain import from_values
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
    if unnamed and spec.run.preset == "sound" and spec.run.engine == "fast" and deployable(spec):
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
    """Whether agents of this spec can be deployed: an ADMM step from a noisy gradient, with a bound that is public."""
    a, p = spec.algorithm, spec.privacy
    noisy = p.mechanism != "silence" and math.isfinite(p.epsilon) and p.sensitivity in PUBLIC_BOUNDS
    step = isinstance(METHODS[a.name], Composed) and a.rule != "exact" and a.perturbation == "objective"
    return noisy and step and isinstance(from_values(asdict(spec.problem)), PROJECTED)
