"""Presets: a preset gives every value of the spec of a method.

    paper      the text of Ryu & Kim 2021, but for what REMARKS states
    released   the settings that produced the paper's printed numbers (docs/reproduction.md)
    sound      a total (epsilon, delta) for the whole run, from public constants alone (docs/guarantees.md)
"""

from __future__ import annotations

from collections.abc import Collection

from tacit import data
from tacit.admm.agent import ROUNDING
from tacit.data import tables
from tacit.errors import IncompatibleError, unknown
from tacit.jsontext import Values
from tacit.methods.method import Entry
from tacit.methods.registry import METHODS, key_of
from tacit.problem.loss import LOSSES
from tacit.problem.sensitivity import ROOM
from tacit.run.spec import Spec
from tacit.types import Federation

# the paper's constants of rho-hat; other data start from the constants of MNIST
_RHO: dict[str, Values] = {
    "mnist": {"schedule.rho_c1": 2.0, "schedule.rho_c2": 5.0, "schedule.rho_period": 1e4},
    "femnist": {"schedule.rho_c1": 0.005, "schedule.rho_c2": 0.05, "schedule.rho_period": 2e3},
}


# of the sound preset, whatever the method: the default feature map, records of norm one at most, and a clipped release
# that the whole run pays for
_SOUND: Values = {
    "features.map": "auto", "data.row_norm": "l2", "data.row_mode": "clip", "privacy.covers": "run",
    "privacy.sensitivity": "clip",
}  # fmt: skip


# of the presets that reproduce: what the sound preset leaves to public numbers, and these presets do not use
_CONSTANT: Values = {"privacy.clip": 1.0, "schedule.score_noise": 1.5}


def _paper(algorithm: str) -> Values:
    """Return eta = 1/sqrt(t), delta = 1/t^2 and the observed l1 sensitivity; for OutP, Huang's own sigma and step."""
    if algorithm == "outp":
        return _CONSTANT | {
            "schedule.eta": "huang",
            "privacy.sensitivity": "feature_bounds",
            "privacy.adjacency": "replace_one",
        }
    return _CONSTANT | {"schedule.eta": "power", "schedule.radius": "power", "privacy.sensitivity": "observed"}


def _released(algorithm: str) -> Values:
    """Return the values of the released code, which differ from the text of the paper."""
    common: Values = _CONSTANT | {"algorithm.regularize_at": "w", "schedule.radius": "constant"}
    if algorithm == "outp":
        return common | {
            "algorithm.gradient_weight": "local",
            "schedule.eta": "huang_released",
            "privacy.sensitivity": "record_count",
            "privacy.adjacency": "replace_one",
            "privacy.squared_std": True,
        }
    return common | {"schedule.eta": "power", "privacy.sensitivity": "observed"}


def _sound(algorithm: str) -> Values:
    """Return values for records of norm one, clipped gradients, noise for the whole run and steps that fall to zero.

    z moves first and f_p is linearised at w, so the mean of the releases does gradient descent on sum_p f_p with the
    step of gradient descent. What depends on the data does so through public numbers alone (tacit.run.rules).
    """
    shape: Values = {
        **_SOUND,
        "schedule.rho": "cooling",
        "schedule.eta": "constant",
        "schedule.eta_a": 1e6,  # so large that no proximal term acts
        "schedule.radius": "constant",
        "schedule.radius_a": 1e3,  # so large that no trust region binds: the steps are cooled instead
        "run.rounds": 100,  # clip, score_noise, momentum and the largest step are unset: tacit.run.rules
    }
    if algorithm != "admm":  # an exact step does not linearise
        shape |= {"algorithm.order": "zwd", "algorithm.linearize_at": "w"}
    entry = METHODS[algorithm]
    if entry.is_admm and entry.values["algorithm.perturbation"] != "none":
        shape |= {"privacy.mechanism": entry.law, "privacy.epsilon": 1.0}
    return shape


def _sound_constants(entry: Entry) -> Values:
    """Return records of norm one, a budget for the whole run, and the first choice of the grid of a method."""
    return {
        **_SOUND,
        "privacy.mechanism": "gaussian",
        "privacy.epsilon": 1.0,
        "run.rounds": 1,  # for a method whose choices name no rounds
        **entry.values,
        **{key_of(name): value for name, value in entry.grid[0].items()},
    }


def for_numbers(spec: Spec) -> Spec:
    """Return the spec with the squared loss, if it has the loss of its preset, for a label that is a number.

    Squared, not huber: on records of norm one, which are clipped, both have the same gradients where the threshold is
    the clipping norm.
    """
    usual = preset(spec.run.preset, spec.algorithm.name, spec.data.source).problem.loss
    return spec.with_values({"problem.loss": "squared"}) if spec.problem.loss == usual else spec


def fitted(spec: Spec, chosen: Collection[str] = ()) -> Spec:
    """Return the spec as `for_numbers` does if its data declare a number to predict, else the spec itself."""
    says = spec.data.checked().target is not None or spec.data.schema is not None
    if not (says and tables.declares_a_number(spec.data)):
        return spec
    if "problem.loss" in chosen:
        check_loss(spec, spec.data.source, number=True)
        return spec
    return for_numbers(spec)


def fitted_to(federation: Federation, spec: Spec) -> Spec:
    """Return the spec as `for_numbers` does if its loss is for classes and the label of the federation is a number."""
    unfit = federation.target is not None and not LOSSES[spec.problem.loss]().for_numbers
    return for_numbers(spec) if unfit else spec


def check_loss(spec: Spec, data_name: str, number: bool) -> None:
    """Refuse a loss that is not for what the label is."""
    known = {name: LOSSES[name]() for name in LOSSES}
    fit = [name for name, loss in known.items() if (loss.for_numbers if number else loss.for_classes)]
    if spec.problem.loss not in fit:
        label, others = "a number" if number else "a class", " or ".join(fit)
        raise IncompatibleError(
            f"the loss {spec.problem.loss} does not fit, because the label of {data_name} is {label}: set problem.loss "
            f"to {others}."
        )


PRESETS = {"paper": _paper, "released": _released, "sound": _sound}

# where a preset differs from what its name says, by preset and method
REMARKS = {
    ("paper", "outp"): (
        f"The noise of agent p is (1 + {ROUNDING:g} I_p) times Huang's, and the bound of a record's gradient is the "
        f"declared one divided by (1 - {1 - ROOM:g}). Both allow for rounding in float32, and the stated total rests "
        "on them. eta is computed with the second and without the first."
    ),
}


def preset(name: str, algorithm: str, source: str = "mnist") -> Spec:
    """Return the spec of a method under a preset, with the constants for a data source."""
    if name not in PRESETS:
        raise unknown("preset", name, PRESETS)
    entry = METHODS[algorithm]
    named = {"run.preset": name, "data.source": source, "algorithm.name": algorithm}
    if entry.is_admm:
        rho = _RHO[source if source in _RHO else "femnist" if data.is_leaf(source) else "mnist"]
        return Spec().with_values(named | rho | dict(entry.values) | PRESETS[name](algorithm))
    if name != "sound":
        raise IncompatibleError(f"the preset {name} is for the paper's own methods, not for {algorithm}: use sound.")
    return Spec().with_values(named | _sound_constants(entry))
