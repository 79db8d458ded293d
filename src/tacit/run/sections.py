"""Sections of a spec, with every key: [problem], [algorithm], [schedule], [privacy] and [run]."""

from __future__ import annotations

from dataclasses import dataclass

from tacit.engine.registry import DEVICES, ENGINES
from tacit.methods.registry import METHODS
from tacit.problem.domain import DOMAINS
from tacit.problem.loss import LOSSES
from tacit.problem.regularizer import REGULARIZERS
from tacit.registry import AnyBut
from tacit.registry import key as declare
from tacit.schedule import RADII

EXACT, PROX, TRUST = ({"algorithm.rule": (rule,)} for rule in ("exact", "prox", "trust"))
HUANG, OUTPUT = {**PROX, "schedule.eta": ("huang",)}, {"algorithm.perturbation": ("output",)}
DYNAMIC, STATIC = {"schedule.rho": ("dynamic",)}, {"schedule.rho": ("static", "root")}


@dataclass(frozen=True)
class ProblemSpec:
    loss: str = declare("softmax", "the loss", choices=LOSSES)
    regularizer: str = declare("l2", "r(w)", choices=REGULARIZERS)
    threshold: float | None = declare(None, "huber: largest residual, of a target scaled to [-1, 1]; unset: 0.5")
    beta: float = declare(1e-6, "weight of the regulariser")
    domain: str = declare("everywhere", "the set W", choices=DOMAINS)
    domain_radius: float = declare(1.0, "radius of the box or ball W; what each column of a simplex adds up to",
                                   when={"problem.domain": AnyBut("everywhere", "halfspaces")})  # fmt: skip
    domain_low: float | None = declare(None, "box: the least that an entry of w may be, instead of a radius, such as 0")
    domain_high: float | None = declare(None, "box: the most that an entry of w may be, instead of a radius")
    domain_center: float | None = declare(None, "ball: all entries of its centre; unset: 0")
    domain_file: str | None = declare(
        None, "halfspaces: a .npz file of normals (M, J, K) and offsets (M,)", path=True
    )


@dataclass(frozen=True)
class AlgorithmSpec:
    name: str = declare("objt", "the method; the keys below are choices of the ADMM family", choices=METHODS)
    rule: str = declare("trust", "the local step", "exact", "prox", "trust")
    order: str = declare("wzd", "which of w and z moves first", "wzd", "zwd")
    linearize_at: str = declare("z", "where the loss is linearised", "z", "w")
    perturbation: str = declare("objective", "where noise enters", "objective", "output", "none")
    trust_norm: str = declare("inf", "norm of the trust region", "inf", "l2", when=TRUST)
    momentum: float | None = declare(None, "share of its last move that the server's w repeats; unset: by the features")
    tolerance: float = declare(1e-10, "of the exact local solve", when=EXACT)
    gradient_weight: str = declare("global", "1/I, or 1/I_p as the released OutP", "global", "local")
    regularize_at: str = declare("z", "(beta/P) r'(z_p), or beta r'(w) as the released code", "z", "w")


@dataclass(frozen=True)
class ScheduleSpec:
    rho: str = declare(
        "dynamic",
        "c1 1.2^floor(t/period) + c2/epsilon; rho_static; 1/(P step), as steps fall to zero; or rho_static sqrt(t)",
        "dynamic", "static", "cooling", "root",
    )  # fmt: skip
    rho_c1: float = declare(2.0, "c1 of the dynamic rho", when=DYNAMIC)
    rho_c2: float = declare(5.0, "c2 of the dynamic rho", when=DYNAMIC)
    rho_period: float = declare(10_000.0, "period of the dynamic rho, in rounds", when=DYNAMIC)
    rho_static: float = declare(1.0, "the static rho, and the first of the root", when=STATIC)
    step: float | None = declare(None, "the first step on sum_p f_p of the cooling rho; unset: from score_noise")
    score_noise: float | None = declare(
        None, "noise that a record's scores may gather in the run, where step is unset; unset: by the number of classes"
    )
    rho_factor: float = declare(1.0, "multiplies rho; 0.01 is the paper's OutP+")
    eta: str = declare(
        "power", "a/sqrt(t), a, or Huang's step", "power", "constant", "huang", "huang_released", when=PROX
    )
    eta_a: float = declare(1.0, "a of eta; multiplies Huang's step", when=PROX)
    c_w: float = declare(10.0, "Huang's bound on the norm of the optimum", when=HUANG)
    radius: str = declare("power", "a/t^2, a, a/sqrt(t) or a/t", choices=RADII, when=TRUST)
    radius_a: float = declare(1.0, "a of the trust radius", when=TRUST)


@dataclass(frozen=True)
class PrivacySpec:
    mechanism: str = declare("laplace", "the noise", "laplace", "gaussian", "silence")
    epsilon: float = declare(0.05, "the budget; inf for no noise")
    covers: str = declare("round", "what epsilon covers: one round, as in the paper, or the whole run", "round", "run")
    dp_delta: float = declare(1e-6, "delta of (epsilon, delta)")
    sensitivity: str = declare(
        "observed", "where the bound of a record comes from",
        "observed", "feature_bounds", "row_norm", "clip", "record_count",
    )  # fmt: skip
    clip: float | None = declare(None, "the clipping norm of sensitivity = clip; unset: from public numbers")
    adjacency: str = declare(
        "zero_out", "neighbours differ in one record: absent in its place, or replaced", "zero_out", "replace_one"
    )
    trust: str | None = declare(
        None, "nobody: each agent adds the whole noise; sum: agents share it, and a secure sum hides what each adds; "
        "unset: nobody", "nobody", "sum",
    )  # fmt: skip
    colluding: int | None = declare(
        None, "trust = sum: agents that may tell the server all they know; unset: 1, as each knows its own noise"
    )
    repetitions: int | None = declare(
        None, "trust = sum: times that a round may be asked again of those who are left; unset: 0, and in a federation "
        "one in ten rounds"
    )
    noise: str | None = declare(
        None, "simulated: fast, from the seed; exact: on a grid, from the operating system; unset: in train, exact "
        "under sound without a seed where agents can be deployed, else simulated", "simulated", "exact",
    )  # fmt: skip
    ledger: str | None = declare(
        None, "directory of the agents' ledgers, over all runs: each release is there before it leaves; unset: a run "
        "with exact noise keeps its own", path=True,
    )  # fmt: skip
    data_id: str | None = declare(None, "name of the data in the ledgers, for good; default: the name of the source")
    limit: float | None = declare(None, "epsilon that an agent's ledger allows over all runs on the same data")
    squared_std: bool = declare(False, "released OutP: sigma^2 where sigma belongs", when=OUTPUT)


@dataclass(frozen=True)
class RunSpec:
    preset: str = declare("released", "where the other values came from")
    name: str | None = declare(None, "of the run in the ledgers; drawn at random where a ledger is kept")
    rounds: int = declare(100, "T")
    seed: int | None = declare(None, "seed of simulated noise; unset: exact noise has none, and simulated noise has 0")
    record_every: int | None = declare(None, "rounds between two records; default about 100 records in all")
    measure_training: bool | None = declare(
        None, "with exact noise: record the training objective, which is exact and tells whether a record was used; "
        "unset: only a run with simulated noise records it"
    )  # fmt: skip
    engine: str = declare("fast", "who computes a round", choices=ENGINES)
    device: str = declare("cpu", "where the torch engine computes", choices=DEVICES, when={"run.engine": ("torch",)})
