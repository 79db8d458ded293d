"""Whether the largest run that a site agrees to fits under its limit.

The ledger itself is asked, as it is when a run is joined (`deploy.check_ledger`), and writes nothing. What a run
releases follows from public numbers alone, so that no record is read for it.
"""

from __future__ import annotations

import decimal
import itertools
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tacit.data.spec import GIVEN
from tacit.errors import IncompatibleError, InputError, Refused, Unfit
from tacit.federation import facts
from tacit.federation.log import reason
from tacit.federation.messages import RecordCounts
from tacit.federation.site import Site, SiteAgent
from tacit.federation.site_policy import AT_MOST, DEFAULTS, SitePolicy, usual_repetitions
from tacit.methods.registry import METHODS
from tacit.privacy.budget import upward
from tacit.privacy.history import Limit
from tacit.privacy.ledger import Ledger
from tacit.privacy.terms import Terms
from tacit.run import build, deploy
from tacit.run.deployment import Deployment, price
from tacit.run.presets import fitted_to, preset
from tacit.run.spec import Spec
from tacit.types import Federation

# keys that decide what a round releases; of every other key that [agree] lists, the first value is taken
PRICED = (
    "run.preset", "algorithm.name", "algorithm.perturbation", "privacy.mechanism", "privacy.covers",
    "privacy.sensitivity", "privacy.adjacency", "privacy.trust",
)  # fmt: skip
MOST = 64  # combinations of their values that are priced
HALVINGS = 12  # of the search for the largest run that fits
_THREE_DIGITS_DOWN = decimal.Context(prec=3, rounding=decimal.ROUND_FLOOR)


@dataclass(frozen=True, eq=False)
class AgreedRun:
    """A run that a site agrees to, and what each of its agents would agree to when it joins."""

    spec: Spec
    deployment: Deployment
    terms: Terms

    @property
    def cost(self) -> float:
        """The most that the run costs, at its dp_delta."""
        return self.spec.privacy.epsilon if self.spec.privacy.covers == "run" else self.terms.epsilon


@dataclass(frozen=True)
class Headroom:
    """What the ledger of an agent leaves of its limit, and whether the largest agreed run would be admitted."""

    spent: float
    held: float  # what was spent and what open runs may still release
    limit: Limit
    asked: float  # what the run costs at most, at `dp_delta`
    dp_delta: float
    why: str  # a run of that cost is refused; "" if it would be admitted
    room: float  # what the largest run that would be admitted costs, `asked` at most; 0 if none would be

    @property
    def left(self) -> float:
        """The limit less what is held. Epsilons do not add up: a run that costs a little more may fit as well."""
        return max(0.0, self.limit.epsilon - self.held)

    def __str__(self) -> str:
        same = self.dp_delta == self.limit.dp_delta
        run = f"epsilon {upward(self.asked)}" if same else f"({upward(self.asked)}, {self.dp_delta:g})"
        if not self.why:
            return f"left {_down(self.left)}: a run of {run} fits"
        instead = f", one of {_down(self.room)} would fit" if self.room else f": {self.why}"
        return f"left {_down(self.left)}: a run of {run} would be refused{instead}"


def headrooms(
    site: Site, own: Federation, ledgers: Mapping[str, Ledger | None], run: AgreedRun
) -> dict[str, Headroom]:
    """Return what the ledger of each agent has left for a run; None stands for a ledger to be made."""
    with TemporaryDirectory() as folder, Ledger.open(Path(folder) / "new", price, site.limit) as new:
        return {one.name: headroom(site, one, ledgers[one.name] or new, run, own) for one in site.agents}


def headroom(site: Site, agent: SiteAgent, ledger: Ledger, run: AgreedRun, own: Federation) -> Headroom:
    """Return what an agent's ledger has left for the largest agreed run."""
    of_now, held = ledger.totals(agent.data_id, site.limit.dp_delta)
    why = refusal(agent, ledger, run)
    room = _room(site, agent, ledger, run, own) if why else run.cost
    return Headroom(of_now, held, site.limit, run.cost, run.terms.dp_delta, why, room)


def refusal(agent: SiteAgent, ledger: Ledger, run: AgreedRun) -> str:
    """Return why an agent's ledger would refuse a new run, "" if it would admit it."""
    spec = run.spec.with_values({"privacy.data_id": agent.data_id})
    try:
        deploy.check_ledger(agent.name, ledger, agent.data_id, run.deployment, 0, run.terms, spec, True)
    except (Refused, InputError) as error:
        return reason(error)
    return ""


def largest(site: Site, own: Federation) -> AgreedRun:
    """Return the costliest run that [agree] allows; InputError if none that it allows can be run on these records."""
    found, wrong = [], None
    for chosen in itertools.islice(_combinations(site.agree), MOST):
        try:
            found.append(_run(site, own, chosen))
        except InputError as error:
            wrong = wrong or error
    if not found:
        assert wrong is not None, "there is a combination"
        raise wrong
    return max(found, key=lambda run: run.terms.epsilon)


def _combinations(agree: SitePolicy) -> Iterator[dict[str, Any]]:
    """Yield the values of runs that an agreement allows, numbers as large as it allows them."""
    listed = {**DEFAULTS, **agree.values}
    fixed = {key: max(some) if key in AT_MOST else some[0] for key, some in listed.items()}
    priced = [key for key in PRICED if key in listed]
    for values in itertools.product(*(listed[key] for key in priced)):
        yield fixed | dict(zip(priced, values, strict=True))


def _run(site: Site, own: Federation, values: dict[str, Any], epsilon: float | None = None) -> AgreedRun:
    chosen = {key: value for key, value in values.items() if key not in ("run.preset", "algorithm.name")}
    chosen |= {"run.name": secrets.token_hex(8), "privacy.noise": "exact"}
    if "rounds" not in METHODS[values["algorithm.name"]].grid[0]:
        chosen.pop("run.rounds", None)  # the method has a number of its own
    chosen |= {} if epsilon is None else {"privacy.epsilon": epsilon}
    agents: RecordCounts = tuple(zip(own.agents, map(len, own.shards), strict=True))
    spec = preset(values["run.preset"], values["algorithm.name"], GIVEN + site.name).with_values(
        {key: value for key, value in chosen.items() if key != "privacy.repetitions"}
    )
    if spec.privacy.trust == "sum" and site.sum is not None:
        again = values.get("privacy.repetitions", usual_repetitions(spec.run.rounds))
        spec = spec.with_values({"privacy.colluding": site.sum.colluding, "privacy.repetitions": again})
        others = [*site.sum.peers, *(f"agent {n}" for n in range(site.sum.threshold))]  # as if all were pinned
        agents += tuple((name, 1) for name in others if name not in own.agents)
    hollow = facts.hollow(site.name, facts.public(own), agents)
    spec = fitted_to(hollow, spec.checked())
    deployment = build.setup(spec, build.transformed(spec, hollow)).deployment
    try:
        site.agree.check_queries(deployment.first_agreement)
    except Unfit as error:
        most = site.agree.queries or {}
        fewer = min(most.get(name, 0) for name in deployment.first_agreement.answers)
        if not 0 < fewer < spec.run.rounds:
            raise IncompatibleError(f"{spec.algorithm.name}: {error}") from None
        return _run(site, own, {**values, "run.rounds": fewer}, epsilon)
    return AgreedRun(spec, deployment, deployment.terms(spec, 0, "an estimate"))


def _room(site: Site, agent: SiteAgent, ledger: Ledger, run: AgreedRun, own: Federation) -> float:
    """Return what the largest run like this one that would be admitted costs, to three digits; 0 if there is none."""
    values, low, room = run.spec.values(), 0.0, 0.0
    high = min(run.spec.privacy.epsilon, 2 * site.limit.epsilon)  # what fits is below; halving from there is finer
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        smaller = _run(site, own, values, middle)
        if refusal(agent, ledger, smaller):
            high = middle
        else:
            low, room = middle, smaller.cost
    return float(_down(room))


def _down(epsilon: float) -> str:
    return f"{float(_THREE_DIGITS_DOWN.create_decimal(f'{epsilon:.12g}')):.3g}"
