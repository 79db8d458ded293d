"""What a finished run says: result.json, and its guarantee in a sentence."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from tacit._version import __version__
from tacit.admm import compatible
from tacit.admm.perturbation import Objective, Output
from tacit.admm.price import release
from tacit.privacy.budget import Guarantee, total, total_over_agents, upward
from tacit.privacy.release import GaussianRelease, LaplaceRelease, Release, describe
from tacit.problem.sensitivity import Clipped
from tacit.run.build import Setup, accounted_delta
from tacit.run.presets import preset
from tacit.run.sources import how_to_declare
from tacit.run.spec import Spec
from tacit.types import Array, Federation

COVERS = "every z_p an agent releases, and the model; against the server, the other agents and the public"
NOT_COVERED = (
    "the measurements in this file and in rounds.jsonl (test error, objective, noise), which are taken from the data "
    "as they are",
    "hyper-parameters chosen by looking at private results",
    "other runs on the same records, whose costs compose with this one's (a ledger keeps their sum)",
    "the number of records and the names of agents, features and classes, which are taken to be public",
    "whether the files can be read: a malformed cell ends the command",
    "how records were dealt to agents and to the test set: a record is present or absent after that, in its place",
)

SEEDED = (
    "whoever knows the seed: simulated noise can be drawn again and taken off, so train with --noise exact what is to "
    "be released"
)


@dataclass(frozen=True, eq=False)
class Result:
    """A finished run: its summary (result.json), its recorded rounds and its models."""

    summary: dict[str, Any]
    rounds: list[dict[str, Any]]
    w: Array
    w_average: Array

    @property
    def test_error(self) -> float | None:
        """Of the last iterate, between 0 and 1."""
        value: float | None = self.summary["test_error"]
        return value

    @property
    def guarantee(self) -> str:
        """What the run promises, in a sentence."""
        return str(self.summary["guarantee"])


def summarize(
    spec: Spec, over: Federation, setup: Setup, last: dict[str, Any], seconds: float, path: str
) -> dict[str, Any]:
    """The content of result.json."""
    p = spec.privacy
    private = not math.isinf(p.epsilon)
    spent = spent_by(spec, setup)
    return {
        "algorithm": spec.algorithm.name,
        "preset": spec.run.preset,
        "changed": changed(spec),
        "dataset": over.name,
        "agents": over.n_agents,
        "records": over.n_records,
        "rounds": spec.run.rounds,
        "seed": spec.run.seed,
        **{key: last[key] for key in ("test_error", "test_error_averaged", "objective", "consensus_violation")},
        "guarantee": guarantee(spec, setup),
        "epsilon": None if spent is None else spent.epsilon,
        "epsilon_per_round": _per_round(spec, setup) if private else None,
        "dp_delta": _delta(spec, spent) if private else None,
        "accountant": None if spent is None else spent.name,
        "releases": None if spent is None else [describe(one) for one in _releases(setup)],
        "accounted_delta": None if spent is None else accounted_delta(spec),
        "adjacency": p.adjacency,
        "trust": _trust(spec) if spent else None,
        "covers": COVERS if spent else None,
        "not_covered": [*([] if p.noise == "exact" else [SEEDED]), *NOT_COVERED] if spent else None,
        "noise": (_noise(spec) if private else None),
        "simulated_noise": private and spec.privacy.noise == "simulated",
        "engine": spec.run.engine,
        "path": path,
        "seconds": round(seconds, 3),
        "version": __version__,
    }


def spent_by(spec: Spec, setup: Setup) -> Guarantee | None:
    """The total of the run, from what each agent releases; None where it has none."""
    if reasons(spec, setup):
        return None
    if any(release(agent.method) is None for agent in setup.agents):
        return None
    events = [[(one, spec.run.rounds)] for one in _releases(setup)]
    return replace(total_over_agents(events, accounted_delta(spec)), dp_delta=spec.privacy.dp_delta)


def _releases(setup: Setup) -> list[Release]:
    """What agents release in a round, each kind once: agents do not add up."""
    return list(dict.fromkeys(one for agent in setup.agents if (one := release(agent.method)) is not None))


def reasons(spec: Spec, setup: Setup) -> list[str]:
    """Why this run has no guarantee; empty when it has one."""
    against = compatible.caveats(setup.agents[0].method)
    if not setup.public_classes and not math.isinf(spec.privacy.epsilon):
        against.append(classes_read(spec))
    return against


def classes_read(spec: Spec) -> str:
    """Why a run over classes that nobody declared has no guarantee."""
    how = how_to_declare(spec.data.source)
    return f"the list of classes was read from the private labels (declare it: {how})."


def as_if_public(spec: Spec, setup: Setup) -> Guarantee | None:
    """What the run would be worth if the bound it read from the data were a public one.

    None without noise, and for the noise of the released OutP: its scale belongs to no epsilon.
    """
    method = setup.agents[0].method
    if isinstance(method.perturbation, Output) and method.perturbation.squared:
        return None
    constant = replace(method, bound=Clipped(method.mechanism.norm, 1.0), perturbation=Objective())
    one = release(constant)
    return None if one is None else total([(one, spec.run.rounds)], spec.privacy.dp_delta)


def _claim(spec: Spec, setup: Setup) -> list[str]:
    worth = as_if_public(spec, setup)
    if worth is None or spec.privacy.covers == "run":
        return []
    return [
        f"The paper states epsilon {spec.privacy.epsilon:g} a round; were the largest gradient among its records a "
        f"public bound, the run would be ({worth.epsilon:.4g}, {worth.dp_delta:g})-DP."
    ]


def _delta(spec: Spec, spent: Guarantee | None) -> float:
    """The delta that goes with epsilon; 0 for the paper's pure epsilon a round, where there is no total."""
    if spent is not None:
        return 0.0 if spent.name == "basic" else spent.dp_delta
    return 0.0 if spec.privacy.mechanism == "laplace" else spec.privacy.dp_delta


def guarantee(spec: Spec, setup: Setup) -> str:
    """What the run promises, and the reasons where it promises nothing."""
    against = reasons(spec, setup)
    if against:
        return " ".join(["not private:", *against, *_claim(spec, setup), "For reproduction only."])
    spent = spent_by(spec, setup)
    assert spent is not None  # a method without caveats has a release
    one = "one record present or absent" if spec.privacy.adjacency == "zero_out" else "one record replaced"
    return (
        f"({upward(spent.epsilon)}, {spent.dp_delta:g})-DP for the whole run of {spec.run.rounds} rounds "
        f"({spent.name}), {one}; {_price(setup)} a round; {_noise(spec)}"
    )


def changed(spec: Spec) -> dict[str, Any]:
    """The values that are not the preset's, but for the data, the length and the seed, which it does not fix."""
    open_keys = ("epsilon", "dp_delta", "adjacency", "noise", "ledger", "limit")
    free = ("data.", "run.", *(f"privacy.{key}" for key in open_keys))
    fixed = ("data.row_norm", "data.row_bound", "data.row_mode")
    usual = preset(spec.run.preset, spec.algorithm.name, spec.data.source).values()
    return {
        key: value
        for key, value in spec.values().items()
        if value != usual[key] and (key in fixed or not key.startswith(free))
    }


def _trust(spec: Spec) -> str:
    """Who is trusted. That nobody is, holds only for agents whose ledgers outlive the process that asks them."""
    if spec.privacy.noise != "exact":
        return "a simulation: one process holds all records and the seed of all noise"
    if not spec.privacy.ledger:
        return "one process holds all records, and no ledger outlives it: train with --ledger what is to be deployed"
    return "noise is added at each agent; no server, agent or channel is trusted"


def _noise(spec: Spec) -> str:
    exact = spec.privacy.noise == "exact"
    return "exact noise from the operating system" if exact else "simulated noise, from the seed: not for release"


def _price(setup: Setup) -> str:
    one = release(setup.agents[0].method)
    if isinstance(one, GaussianRelease):
        return f"Gaussian noise of {one.multiplier:.4g} sensitivities"
    assert isinstance(one, LaplaceRelease)
    norm = one.l1 if math.isfinite(one.l1) else one.norms[1]
    return f"Laplace noise of {1 / norm:.4g} sensitivities"


def _per_round(spec: Spec, setup: Setup) -> float | None:
    """As the paper states it where epsilon is per round; else the exact price of one release at the same delta."""
    if spec.privacy.covers == "round":
        return spec.privacy.epsilon
    one = release(setup.agents[0].method)
    return None if one is None else total([(one, 1)], spec.privacy.dp_delta, pld=False).epsilon
