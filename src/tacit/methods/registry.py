"""Every method by name, one line each: where its entry is. A method is imported when it is first asked for.

Below the list: which key of a spec holds each constant that tuning may choose, and what values it may have.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from tacit.errors import SpecError
from tacit.methods.method import Choice, Entry, check_entry
from tacit.registry import Registry

METHODS: Registry[Entry] = Registry(
    "method",
    {
        "objp": "tacit.methods.admm:OBJP",
        "objt": "tacit.methods.admm:OBJT",
        "outp": "tacit.methods.admm:OUTP",
        "objt-laplace": "tacit.methods.admm:OBJT_LAPLACE",
        "admm": "tacit.methods.admm:ADMM",
        "iadmm-prox": "tacit.methods.admm:IADMM_PROX",
        "iadmm-trust": "tacit.methods.admm:IADMM_TRUST",
        "amp": "tacit.methods.noisy_minimum:AMP",
        "chaudhuri": "tacit.methods.noisy_minimum:CHAUDHURI",
        "chaudhuri-output": "tacit.methods.noisy_minimum:CHAUDHURI_OUTPUT",
        "cpsgd": "tacit.methods.cpsgd:ENTRY",
        "dp-fedavg": "tacit.methods.fedavg:DP_FEDAVG",
        "dpsgd": "tacit.methods.gradient_descent:CENTRAL",
        "dpsgd-local": "tacit.methods.gradient_descent:LOCAL",
        "dvp": "tacit.methods.exact_admm:DVP",
        "fedavg": "tacit.methods.fedavg:FEDAVG",
        "fedgd": "tacit.methods.gradient_descent:FEDGD",
        "fedprox": "tacit.methods.fedavg:FEDPROX",
        "gadmm": "tacit.methods.gadmm:ENTRY",
        "graph-admm": "tacit.methods.graph_admm:ENTRY",
        "iceadmm": "tacit.methods.appfl:ICEADMM_ENTRY",
        "iiadmm": "tacit.methods.appfl:IIADMM_ENTRY",
        "input-perturbation": "tacit.methods.input_perturbation:ENTRY",
        "kifer": "tacit.methods.noisy_minimum:KIFER",
        "objp-local": "tacit.methods.multilocal:OBJP",
        "objt-local": "tacit.methods.multilocal:OBJT",
        "nbafl": "tacit.methods.fedavg:NBAFL",
        "onemessage": "tacit.methods.onemessage:ENTRY",
        "onemessage-sum": "tacit.methods.onemessage:SUM",
        "outp-huang": "tacit.methods.outp:HUANG",
        "outp-plus": "tacit.methods.outp:PLUS",
        "outp-released": "tacit.methods.outp:RELEASED",
        "pvp": "tacit.methods.exact_admm:PVP",
        "secure-sum": "tacit.methods.gradient_descent:SECURE_SUM",
    },
    check_entry,
)


# The constants that tuning may choose, and the keys of a spec that hold those that methods share.
SHARED = {"rounds": "run.rounds", "clip": "privacy.clip", "score_noise": "schedule.score_noise"}


def key_of(constant: str) -> str:
    """The key of a spec that holds a constant of a choice: one that methods share, or one of [method]."""
    return SHARED.get(constant, f"method.{constant}")


def choice_of(entry: Entry, values: Mapping[str, Any]) -> Choice:
    """The choice that the dotted keys of a spec make; a constant that they leave out has its default."""
    return {name: values.get(key_of(name), default) for name, default in entry.grid[0].items()}


def own_constants(entry: Entry) -> tuple[str, ...]:
    """The constants of a method that [method] holds."""
    return tuple(name for name in entry.grid[0] if name not in SHARED)


SHARES = {"rate": 1.0, "fraction": 1.0, "averaged": 1.0, "share": 0.999, "jacobian": 0.999}  # the largest there can be
MAY_BE_ZERO = {"mu", "damping", "batch", "averaged", "share"}


def check_constant(entry: Entry, name: str, value: float) -> None:
    """Refuse a value that a constant of the method cannot have; one whose default is whole must be whole."""
    tried = [choice[name] for choice in entry.grid]
    if value in tried or (min(tried) < 0 and math.isfinite(value)):
        return
    whole, most = isinstance(tried[0], int), SHARES.get(name, math.inf)
    if not 0 <= value <= most or math.isinf(value) or (value == 0 and name not in MAY_BE_ZERO):
        least = "at least 0" if name in MAY_BE_ZERO else "above 0"
        allowed = f"{least}, finite" if math.isinf(most) else f"{least}, at most {most:g}"
        raise SpecError(f"method.{name} of {entry.name} must be {allowed}: got {value:g}.")
    if whole and value != int(value):
        raise SpecError(f"method.{name} of {entry.name} must be a whole number: got {value:g}.")
