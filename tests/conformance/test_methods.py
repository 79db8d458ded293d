"""Every method of the registry: same shape, honest noise, a promise the accountant prices and an audit that agrees."""

import math
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from tacit.admm.messages import Broadcast
from tacit.audit import mechanism
from tacit.audit import methods as audit
from tacit.errors import IncompatibleError
from tacit.methods.appfl import ICEADMM
from tacit.methods.gradient_descent import FedGD
from tacit.methods.method import TRIALS, Budget, Coordinator, Curated, simulate
from tacit.methods.promise import Unit
from tacit.methods.registry import METHODS, own_constants
from tacit.methods.task import Facts
from tacit.rounds import rounds
from tacit.run.presets import preset
from tacit.types import Norm
from tests.methods.tasks import task

BUDGET = Budget(3.0, 1e-5)
WRITTEN = {name: entry for name, entry in METHODS.items() if not entry.is_admm}  # as halves
ENTRIES = [pytest.param(entry, id=name) for name, entry in WRITTEN.items()]


def small(entry, budget=BUDGET, choice=0, beta=1e-3):
    """One of its choices, three rounds at most, on the small federation with rows of norm one."""
    own = task(beta=beta)
    shards = tuple(replace(s, x=s.x / np.linalg.norm(s.x, axis=1, keepdims=True)) for s in own.shards)
    own = replace(own, shards=shards, row_norm=1.0)
    made = dict(entry.grid[choice])
    if "rounds" in made:
        made["rounds"] = min(3, made["rounds"])
    return own, entry.build(own, budget, made)


def trained(method, own):
    """The state and the info at the end of a run."""
    *_, last = simulate(method, own)
    return last


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_method_has_the_same_shape_as_all_others(entry):
    own, method = small(entry)
    state, info = trained(method, own)
    assert state.t == method.rounds
    assert state.w.shape == own.shape
    assert state.w.dtype == np.float64
    assert np.isfinite(state.w).all()
    assert info.sent >= 0
    assert info.seen
    assert len(entry.grid) == TRIALS
    assert len({tuple(sorted(choice.items())) for choice in entry.grid}) == TRIALS
    assert (Path(__file__).parents[2] / "docs" / "methods" / f"{entry.name}.md").exists()


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_method_says_what_each_of_its_constants_is(entry):
    assert list(entry.constants) == list(own_constants(entry))
    for about in entry.constants.values():
        assert len(about.split()) >= 4
        assert not about.startswith("of ")


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_run_is_a_function_of_its_seed(entry):
    own, method = small(entry)
    first, again, other = (trained(method, replace(own, seed=seed))[0].w for seed in (1, 1, 2))
    assert (first == again).all()
    private = not method.promise(own).caveats
    assert not private or (first != other).any()


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_promise_keeps_the_budget_whatever_the_choice(entry):
    own, _ = small(entry)
    for choice in entry.grid:
        method = entry.build(own, BUDGET, choice)
        spent = method.promise(own).total(method.rounds, BUDGET.dp_delta)
        assert spent is None or spent.epsilon <= BUDGET.epsilon
        assert spent is None or spent.epsilon > 0.5 * BUDGET.epsilon  # and does not waste it


@pytest.mark.parametrize("entry", ENTRIES)
def test_without_noise_nothing_is_promised(entry):
    own, method = small(entry, Budget(math.inf))
    assert method.promise(own).caveats
    assert np.isfinite(trained(method, own)[0].w).all()


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_promise_reads_nothing_from_the_records(entry):
    """Other records of the same number, shorter ones, give the same method and the same promise."""
    own, method = small(entry)
    flipped = replace(own, shards=tuple(replace(s, x=-0.3 * s.x[::-1], y=s.y[::-1]) for s in own.shards))
    assert entry.build(flipped, BUDGET, dict(entry.grid[0])) == entry.build(own, BUDGET, dict(entry.grid[0]))
    assert method.promise(flipped) == method.promise(own)


CURATED = {"amp", "chaudhuri", "chaudhuri-output", "dpsgd", "kifer"}
FEDERATED = [
    pytest.param(WRITTEN[name], n, id=f"{name}-{n}")  # every choice: rates, batches and local steps differ
    for name in WRITTEN
    if name not in CURATED
    for n in range(TRIALS)
]


def test_the_registry_has_every_method_under_its_own_name():
    assert all(entry.name == name for name, entry in WRITTEN.items())


def test_the_names_of_all_methods_are_known_before_any_of_them_is_imported():
    asked = "import sys, tacit.methods.registry as r; print(len(r.METHODS), 'tacit.methods.fedavg' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert told.stdout.split() == [str(len(METHODS)), "False"]


def test_the_methods_that_need_a_curator_are_these():
    built = {name: small(entry)[1] for name, entry in WRITTEN.items()}
    assert {name for name, method in built.items() if isinstance(method, Curated)} == CURATED


@pytest.mark.parametrize("name", sorted(CURATED))
def test_a_method_that_needs_a_curator_refuses_the_records_of_some_agents(name):
    own, method = small(WRITTEN[name])
    with pytest.raises(IncompatibleError, match="needs all records in one place, and only those of 1 of 3 agents"):
        method.answer(own.alone(1), {}, Broadcast(1, np.zeros(own.shape)))


class Places:
    """An exchange with agents in several places, each of which knows its own agents alone."""

    def __init__(self, method, places):
        self.method, self.places, self.server = method, places, Coordinator(method, public(places[0]))
        self.own = [method.carried(place) for place in places]
        self.sent = {}

    def __call__(self, questions):
        (msg,) = questions
        pairs = zip(self.places, self.own, strict=True)
        self.own, sent = zip(*[self.method.answer(place, own, msg) for place, own in pairs], strict=True)
        self.sent = {name: np.concatenate([answers[name] for answers in sent]) for name in sent[0]}
        return [self.server.reached(self.sent)]


def public(own):
    """What the server may know: the task without its records."""
    return Facts(own.sizes, own.problem, own.shape, own.row_norm, own.seed)


@pytest.mark.parametrize(("entry", "choice"), FEDERATED)
def test_agents_asked_one_by_one_answer_as_they_do_together(entry, choice):
    own, method = small(entry, choice=choice)
    together, apart = Places(method, [own]), Places(method, [own.alone(p) for p in own.index])
    asking = Coordinator(method, own)
    pairs = zip(*(rounds([asking], [asking.start()], places) for places in (together, apart)), strict=True)
    for ((one, _),), ((other, _),) in pairs:
        assert together.sent.keys() == apart.sent.keys()
        for name, rows in together.sent.items():
            np.testing.assert_allclose(apart.sent[name], rows, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(other.w, one.w, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(("entry", "choice"), FEDERATED)
def test_the_server_needs_no_record(entry, choice):
    own, method = small(entry, choice=choice)
    facts = public(own)
    assert entry.build(facts, BUDGET, entry.grid[choice]) == entry.build(own, BUDGET, entry.grid[choice])
    assert method.promise(facts) == method.promise(own)
    asking = Coordinator(method, facts)
    blind = rounds([asking], [asking.start()], Places(method, [own]))
    for ((one, seen),), (other, shown) in zip(blind, simulate(method, own), strict=True):
        np.testing.assert_array_equal(one.w, other.w)
        assert seen.sent == shown.sent
        for array, same in zip(seen.seen, shown.seen, strict=True):
            np.testing.assert_array_equal(array, same)


PRIVATE = [pytest.param(entry, id=entry.name) for entry in audit.chosen(["all"], BUDGET)]


SAMPLED = [
    pytest.param(WRITTEN[name], n, id=f"{name}-{n}")
    for name in WRITTEN
    for n, choice in enumerate(WRITTEN[name].grid)
    if choice.get("rate", 1.0) < 1
]


@pytest.mark.parametrize("entry", PRIVATE)
def test_the_mechanism_audit_agrees_with_the_promise(entry):
    finding = audit.audit(entry, BUDGET, draws=250)
    assert finding.verdict == "consistent", finding


@pytest.mark.parametrize(("entry", "choice"), SAMPLED)
def test_the_audit_agrees_where_only_a_sample_answers(entry, choice):
    finding = audit.audit(entry, BUDGET, draws=250, choice=choice)
    assert finding.verdict == "consistent", finding


def attacked(method, claim, unit=Unit.RECORD, draws=150):
    """A method against a claim that need not be its own."""
    present = audit.task()
    several = audit.attacks(method, present, audit.without(present, unit), draws, 0)
    return audit.weigh_all("method", "control", claim, several, 0.95)


@pytest.mark.parametrize("entry", PRIVATE)
def test_the_audit_has_power_over_every_method(entry):
    """With the noise of a hundred times the epsilon it claims, each one is caught."""
    present, little = audit.task(), Budget(0.5, 1e-5)
    honest = audit.short(entry, present, little)
    loud = audit.short(entry, present, Budget(50.0, 1e-5))
    found = attacked(loud, audit.claimed(honest, present, little), honest.promise(present).unit)
    assert found.verdict == "VIOLATED", found


class Halved(FedGD):
    """Agents draw half of the noise."""

    def answer(self, agents, own, msg):
        return FedGD.answer(replace(self, multiplier=self.multiplier / 2), agents, own, msg)


class ScaledByTheData(FedGD):
    """Agents scale their noise by the largest record present, in place of the clip: the paper's mistake."""

    def answer(self, agents, own, msg):
        largest = Norm.L2.of_rows(agents.shards[0].x).max()
        return FedGD.answer(replace(self, multiplier=self.multiplier * largest), agents, own, msg)


class CleanDual(ICEADMM):
    """APPFL's mistake: z travels with noise on it, and the dual without."""

    def answer(self, agents, own, msg):
        after, sent = ICEADMM.answer(self, agents, own, msg)
        quiet, _ = ICEADMM.answer(replace(self, multiplier=0.0), agents, own, msg)
        return after, sent | {"pi": quiet["pi"]}


@pytest.mark.parametrize(("name", "mistaken"), [("fedgd", Halved), ("fedgd", ScaledByTheData), ("iceadmm", CleanDual)])
def test_the_audit_catches_a_mistake(name, mistaken):
    present = audit.task()
    honest = audit.short(WRITTEN[name], present, BUDGET)
    wrong = mistaken(**{one.name: getattr(honest, one.name) for one in fields(honest)})
    found = attacked(wrong, audit.claimed(honest, present, BUDGET), draws=600)
    assert found.verdict == "VIOLATED", found


def test_the_released_outp_fails_the_audit():
    """At the paper's epsilon of 5 a round; tests/methods/test_outp.py shows that outp-released is this preset."""
    finding = mechanism.audit(preset("released", "outp").with_values({"privacy.epsilon": 5.0}), draws=1500)
    assert finding.verdict == "VIOLATED", finding
