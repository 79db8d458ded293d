"""The tables of artefacts: TABLES names the functions that compute them."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tacit.audit import mechanism
from tacit.errors import TacitWarning
from tacit.jsontext import Values
from tacit.paper import convergence, difference, trust
from tacit.paper.archive import mean, select
from tacit.paper.artefact import Artefact
from tacit.privacy.budget import total
from tacit.privacy.mechanism import Gaussian, Laplace
from tacit.privacy.release import GaussianRelease, LaplaceRelease
from tacit.run import build
from tacit.run.presets import preset
from tacit.run.sources import FEMNIST, HOW_TO_GET, Sources
from tacit.run.spec import Spec
from tacit.types import Federation, Norm

INSTANCES = {  # the paper's two data sets
    "MNIST": Spec().with_values({"data.source": "mnist", "data.agents": 10}),
    "FEMNIST": Spec().with_values({"data.source": FEMNIST, "data.class_count": 62}),
}


@dataclass(frozen=True)
class Given:
    """What a table is made of."""

    artefact: Artefact
    records: Sequence[Values]
    panels: Sequence[Values]
    sources: Sources


def instances(given: Given) -> Values:
    """Table 1: the sizes of the two instances, printed and found."""
    rows = []
    for entry in given.artefact.compare:
        name, spec = entry["instance"], INSTANCES[entry["instance"]]
        rows.append([name, "paper", *entry["paper"]])
        if given.sources.has(spec):
            federation = given.sources.load(spec)
            sizes = [len(shard) for shard in federation.shards]
            spread = (round(float(np.mean(sizes)), 2), round(float(np.std(sizes)), 2))
            counts = (federation.n_records, federation.n_features, federation.n_classes, federation.n_agents)
            rows.append([name, "tacit", *counts, *spread])
        else:
            rows.append([name, "tacit", *["not given"] * 6])
    return {"table": {"columns": ["instance", "", "I", "J", "K", "P", "mean I_p", "stdev I_p"], "rows": rows}}


def audited(given: Given, draws: int | None = None) -> Values:  # noqa: ARG001
    """The per-iteration theorem, attacked: one round on worst-case neighbours against the epsilon it states."""
    declared: Values = {"privacy.sensitivity": "feature_bounds"}
    cases: list[tuple[str, str, Values, str]] = [
        ("paper", "objp", declared, "a declared bound"),
        ("paper", "objt", declared, "a declared bound"),
        ("paper", "objp", {}, "a bound read from the data"),
        ("paper", "objt", {}, "a bound read from the data"),
        ("released", "outp", {}, "the number of records, sigma^2 for sigma"),
    ]
    verdicts = {"VIOLATED": "refuted", "no guarantee": "not refuted by this attack"}
    rows = []
    for (bundle, name, values, about), epsilon in itertools.product(cases, (1.0, 5.0)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TacitWarning)  # what training would warn of is what is measured
            found = mechanism.audit(preset(bundle, name).with_values(values | {"privacy.epsilon": epsilon}), draws)
        claim = f"({found.claim.epsilon:.4g}, {found.claim.dp_delta:g})"
        verdict = verdicts.get(found.verdict, found.verdict)
        rows.append([name, bundle, about, claim, round(found.measured, 3), verdict])
    columns = ["algorithm", "preset", "noise scaled by", "claimed (epsilon, delta)", "at least", "verdict"]
    return {"table": {"columns": columns, "rows": rows}}


def register(given: Given) -> Values:
    """Where text, code and theory disagree: what each way gives, from short runs or computed."""
    rows = [_compared(one, given.records) for one in given.artefact.compare]
    rows += [_composed(), _beyond_one(), *_steps(), _read_from_data(given.sources), _written_twice(given.sources)]
    return {"table": {"columns": ["finding", "one way", "gives", "another", "gives"], "rows": rows}}


def _compared(entry: Values, records: Sequence[Values]) -> list[str]:
    cells = [entry["finding"]]
    for side in (entry["one"], entry["other"]):
        value = mean(select(records, side["where"]), side["y"])
        share = side["y"].startswith(("test_error", "binding"))
        text = "not run" if value is None else f"{100 * value:.2f} %" if share else f"{value:.3g}"
        cells += [side["label"], text]
    return cells


def _composed() -> list[str]:
    """What epsilon 0.05 a round is worth after 20,000 rounds, for noise that is calibrated by a public bound."""
    rounds, dp_delta, epsilon = 20_000, 1e-6, 0.05
    laplace = total([(LaplaceRelease(1 / Laplace.pure(epsilon).multiplier, None), rounds)], dp_delta)
    gaussian = total([(GaussianRelease(Gaussian.classic(epsilon, dp_delta).multiplier), rounds)], dp_delta)
    return [
        f"epsilon {epsilon} is per round: the total of {rounds} rounds at delta {dp_delta:g}, by a public bound",
        "Laplace (ObjP, ObjT)", f"{laplace.epsilon:.4g}", "Gaussian (OutP, repaired)", f"{gaussian.epsilon:.4g}",
    ]  # fmt: skip


def _beyond_one() -> list[str]:
    """What the classic Gaussian formula gives where its proof does not reach."""
    dp_delta, cells = 1e-6, []
    for epsilon in (3.0, 5.0):
        one = GaussianRelease(Gaussian.classic(epsilon, dp_delta).multiplier)
        cells += [f"stated {epsilon:g}", f"{total([(one, 1)], dp_delta).epsilon:.4g}"]
    return [f"the classic Gaussian formula, proven up to epsilon 1: exact epsilon at delta {dp_delta:g}", *cells]


def _steps() -> list[list[str]]:
    """How much shorter the steps of released OutP are than those of Huang's constants, at the two ends of a run."""
    records = build.federation(preset("paper", "outp", "mnist"))
    rows = []
    for epsilon in (0.05, 1.0, 5.0):
        ours, theirs = (_ends(preset(bundle, "outp", "mnist"), epsilon, records) for bundle in ("paper", "released"))
        first, last = (a / b for a, b in zip(ours, theirs, strict=True))
        finding = f"steps of OutP, Huang's over released, epsilon {epsilon:g}"
        rows.append([finding, "round 1", f"{first:.1f}", "round 20,000", f"{last:.1f}"])
    return rows


def _ends(usual: Spec, epsilon: float, records: Federation) -> list[float]:
    """The step by which a record moves z, weight / (rho + 1 / eta), in rounds 1 and 20,000."""
    spec = usual.with_values({"privacy.epsilon": epsilon, "run.rounds": 20_000, "run.seed": 0})
    setup = build.setup(spec, records)
    agent = setup.agents[0]
    return [agent.problem.weight / agent.variant.rule.stiffness(setup.rho(t), t) for t in (1, 20_000)]


def _read_from_data(sources: Sources) -> list[str]:
    """max_i |x_i|_1 scales the noise of round one: how far one record changes it."""
    falls = []
    for p, shard in enumerate(sources(INSTANCES["MNIST"]).shards):
        largest, second = np.sort(Norm.L1.of_rows(shard.x))[[-1, -2]]
        falls.append((1 - second / largest, p, largest, second))
    fall, p, largest, second = max(falls)
    return [
        f"the noise scale is read from the data: MNIST's agent {p} without its largest record, "
        f"{100 * fall:.1f} % less noise in round one",
        "max |x|_1 with it", f"{largest:.1f}", "without it", f"{second:.1f}",
    ]  # fmt: skip


def _written_twice(sources: Sources) -> list[str]:
    """LEAF's pipeline stores one image of nearly every writer twice."""
    finding = "LEAF writes one image of almost every writer twice: training records"
    femnist = INSTANCES["FEMNIST"]
    if not sources.has(femnist):
        return [finding, "as LEAF wrote them", f"not run: {HOW_TO_GET}", "each once", "not run"]
    sizes = [sources(femnist.with_values({"data.dedup": once})).n_records for once in (False, True)]
    return [finding, "as LEAF wrote them", str(sizes[0]), "each once, and none of test", str(sizes[1])]


def theorem(given: Given) -> Values:
    """Constants, bounds and slopes of the convergence theorem."""
    return convergence.shown(given.records, given.panels) if given.records else {}


def gap(given: Given) -> Values:
    """What one change at a time is worth, of those that could explain why our errors lie above the printed ones."""
    return {"table": difference.table(given.artefact.compare, given.records)} if given.records else {}


def trust_region(given: Given) -> Values:
    """Merit, slope and binding of ObjT, by penalty and radius."""
    return trust.shown(given.records, given.panels) if given.records else {}


TABLES: dict[str, Callable[[Given], Values]] = {
    "instances": instances,
    "audit": audited,
    "register": register,
    "theorem": theorem,
    "gap": gap,
    "trust": trust_region,
}
