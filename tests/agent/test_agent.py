"""What a hostile server may try on one deployed agent, and gets: a refusal that tells nothing, or what was agreed."""

import dataclasses
import itertools
import os
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from tacit.admm.compatible import agreement_of
from tacit.admm.messages import Broadcast
from tacit.agent.agent import Answer
from tacit.agent.agreement import DELTA_FOR_THE_GRID, Agreement, Noise, NoisyQuery
from tacit.agent.cover import Alone, Simulated
from tacit.errors import DataError, IncompatibleError, RefusalWarning, Refused, TermsChanged
from tacit.privacy import exact, lattice
from tacit.privacy import terms as agreements
from tacit.privacy.budget import total
from tacit.privacy.exact import Law
from tacit.privacy.mechanism import Silence
from tacit.privacy.release import GaussianRelease
from tacit.privacy.summed import InSum
from tacit.privacy.terms import Key, Memory, Terms
from tacit.problem.loss import Softmax
from tacit.problem.sensitivity import Adjacency, Clipped
from tacit.query.gradient import Gradient, evaluator, numpy_sums
from tacit.query.records import InMemory, Reader, Reads, View
from tacit.run import deploy, deployment
from tacit.types import LARGEST, Norm, Shard
from tests.agent.agents import (
    LINEARISED_AT_Z,
    SHAPE,
    SOUND,
    agents,
    ask,
    over_records,
    setup_of,
    value_at,
    with_records,
    with_value,
)
from tests.conftest import federation

KEPT = pytest.mark.parametrize("kept", [True, False], ids=["ledger", "memory"])


def first(tmp_path, kept=True, **options):
    return agents(tmp_path / "ledgers" if kept else None, **options)[0]


def refused(agent, question, reason):
    """The owner reads the reason; the server is told one sentence, whatever the reason is."""
    with (
        pytest.warns(RefusalWarning, match=reason),
        pytest.raises(Refused, match=f"^agent {agent.name}: {Refused.public}$") as told,
    ):
        agent.answer_or_refuse(question)
    assert type(told.value) is Refused
    assert told.value.__cause__ is None
    assert told.value.__context__ is None


def answers(agent):
    return len(agent.store.history().answers)


# --- the gate ------------------------------------------------------------------------------------------------------


class Sly(np.ndarray):
    """An array that says another shape than it has."""


MODELS = {
    "more axes": np.zeros((7, *SHAPE)),
    "records in front": np.zeros((5, 4, 3)),
    "one class": np.zeros((4, 1)),
    "one feature": np.zeros((1, 3)),
    "flat": np.zeros(12),
    "transposed": np.zeros((3, 4)),
    "empty": np.zeros((0, 3)),
    "scalar": np.float64(1.0),
    "complex": np.zeros(SHAPE, complex),
    "float32": np.zeros(SHAPE, np.float32),
    "float128": np.zeros(SHAPE, np.longdouble),
    "whole": np.zeros(SHAPE, int),
    "truth": np.zeros(SHAPE, bool),
    "objects": np.zeros(SHAPE, object),
    "other byte order": np.zeros(SHAPE, np.dtype(float).newbyteorder()),
    "text": np.zeros(SHAPE, "U3"),
    "list": np.zeros(SHAPE).tolist(),
    "matrix": np.zeros(SHAPE).view(Sly),
    "masked": np.ma.zeros(SHAPE),
    "nothing": None,
    "nan": np.full(SHAPE, np.nan),
    "inf": np.full(SHAPE, -np.inf),
    "beyond": np.full(SHAPE, np.nextafter(LARGEST, np.inf)),
    "one entry beyond": np.where(np.arange(12).reshape(SHAPE) == 11, 8e307, 0.0),
}


@pytest.mark.parametrize("w", MODELS.values(), ids=MODELS)
def test_a_model_is_a_finite_float64_array_of_the_agreed_shape_or_it_is_refused(tmp_path, w):
    agent = first(tmp_path)
    refused(agent, ask(agent, parameters={"point": w}), "point ")
    assert answers(agent) == 0


@pytest.mark.parametrize("layout", [np.asfortranarray, lambda w: np.broadcast_to(w[:1, :1], SHAPE), lambda w: w[::-1]])
def test_the_layout_of_a_model_in_memory_does_not_matter(tmp_path, layout):
    agent = first(tmp_path)
    assert agent.answer(ask(agent, w=layout(np.full(SHAPE, 0.1)))).value.shape == SHAPE


def test_a_model_that_is_changed_after_the_gate_changes_nothing(tmp_path):
    w, seen = np.full(SHAPE, 0.1), []

    def late(value):
        def valued(asked):
            w[:] = np.nan
            seen.append(asked["point"].copy())
            return value(asked)

        return valued

    agent = with_value(first(tmp_path), late)
    assert np.isfinite(agent.answer(ask(agent, w=w)).value).all()
    np.testing.assert_array_equal(seen[0], np.full(SHAPE, 0.1))


@pytest.mark.parametrize("t", [0, -5, 7, 200, 10**30, 1.0, True, "1", None, np.int64(1), float("nan")])
def test_a_round_is_one_of_those_agreed_or_it_is_refused(tmp_path, t):
    agent = first(tmp_path)
    refused(agent, ask(agent, t), "number from 1 to 6")
    assert answers(agent) == 0


@pytest.mark.parametrize(("part", "reason"), [
    ({"run": "another"}, "another run"), ({"run": ""}, "another run"), ({"run": None}, "another run"),
    ({"agreed": "0" * 64}, "another agreement"), ({"agreed": b"0"}, "another agreement"),
    ({"parameters": None}, "the parts point"), ({"parameters": {}}, "the parts point"),
    ({"parameters": []}, "the parts point"), ({"parameters": {"w": np.zeros(SHAPE)}}, "the parts point"),
    ({"parameters": {"point": np.zeros(SHAPE), "seed": 3}}, "the parts point"),
    ({"parameters": {"point": np.zeros(SHAPE), "rho": 1.0}}, "the parts point"),
    ({"parameters": {"point": np.zeros(SHAPE), 3: 1.0}}, "the parts point"),
])  # fmt: skip
def test_a_question_of_another_run_or_with_other_parts_is_refused(tmp_path, part, reason):
    agent = first(tmp_path)
    refused(agent, ask(agent, **part), reason)
    assert answers(agent) == 0


@pytest.mark.parametrize(("part", "reason"), [
    ({"peers": ("0", "1", "2")}, "if and only if"), ({"peers": ["0"]}, "names"), ({"peers": None}, "names"),
    ({"attempt": 1}, "from 0 to 0"), ({"attempt": -1}, "from 0 to 0"), ({"attempt": False}, "from 0 to 0"),
    ({"attempt": None}, "from 0 to 0"), ({"attempt": 1, "peers": ("0", "1", "2")}, "from 0 to 0"),
])  # fmt: skip
def test_no_question_turns_a_run_without_a_secure_sum_into_one_with_shares_of_the_noise(tmp_path, part, reason):
    agent = first(tmp_path)
    refused(agent, ask(agent, **part), reason)
    assert answers(agent) == 0


@pytest.mark.parametrize("thing", [None, 3, "ask", {"t": 1}, Broadcast(1, np.zeros(SHAPE), 1.0)])
def test_what_is_no_question_is_refused(tmp_path, thing):
    refused(first(tmp_path), thing, "sends a Question")


def test_the_gate_holds_no_record(tmp_path):
    """It is a value of a name, a hash and the agreement, and no part of them is an array."""
    gate = first(tmp_path).gate
    assert {f.name for f in dataclasses.fields(gate)} == {"run", "agreed", "agreement"}

    def parts(value):
        yield value
        if dataclasses.is_dataclass(value):
            for f in dataclasses.fields(value):
                yield from parts(getattr(value, f.name))
        elif isinstance(value, tuple):
            for one in value:
                yield from parts(one)

    assert not any(isinstance(part, np.ndarray | Shard | InMemory) for part in parts(gate))


def test_what_leaves_an_agent_is_listed():
    """Whoever adds a field here adds something that leaves every agent; `seconds` stays in its process."""
    assert [f.name for f in dataclasses.fields(Answer)] == ["run", "t", "attempt", "value", "seconds"]


# --- rounds and terms ----------------------------------------------------------------------------------------------


@KEPT
def test_a_round_answered_before_gets_the_same_answer_again_and_is_never_drawn_again(tmp_path, kept, monkeypatch):
    agent = first(tmp_path, kept)
    sent = {t: agent.answer(ask(agent, t)).value for t in (1, 2)}
    monkeypatch.setattr(lattice, "release", None)
    for t in (1, 2, 1):
        np.testing.assert_array_equal(agent.answer(ask(agent, t)).value, sent[t])


@KEPT
def test_another_question_for_an_answered_round_is_refused(tmp_path, kept):
    agent = first(tmp_path, kept)
    agent.answer(ask(agent))
    refused(agent, ask(agent, w=np.full(SHAPE, np.nextafter(0.1, 1))), "another question")


@KEPT
def test_rounds_may_be_missed_and_are_then_gone(tmp_path, kept):
    agent = first(tmp_path, kept)
    for t in (2, 5):
        agent.answer(ask(agent, t))
    for t in (1, 3, 4):
        refused(agent, ask(agent, t), "round 5 was the last answered")
    agent.answer(ask(agent, 6))


@KEPT
def test_a_run_gives_what_was_agreed_and_no_round_more(tmp_path, kept):
    """The README's own command has a ledger and no limit: it is the terms that end it."""
    agent, answered = first(tmp_path, kept), 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RefusalWarning)
        for t in range(-5, 200):
            try:
                agent.answer_or_refuse(ask(agent, t))
                answered += 1
            except Refused:
                pass
    assert answered == 6
    if kept:
        (account,) = agent.store.show()
        assert account.epsilon <= agent.terms.epsilon <= 1.0


@pytest.mark.parametrize("change", [
    {"run.rounds": 600}, {"privacy.epsilon": 0.5}, {"privacy.clip": 0.7}, {"schedule.rho_factor": 2.0},
    {"privacy.mechanism": "laplace"}, {"problem.beta": 0.5},
])  # fmt: skip
@pytest.mark.parametrize("answered", [0, 1])
def test_the_terms_of_a_run_are_agreed_once(tmp_path, change, answered):
    agent = first(tmp_path, **{"run.name": "once"})
    for t in range(1, answered + 1):
        agent.answer(ask(agent, t))
    with pytest.raises(Refused, match="agreed on other terms"):
        first(tmp_path, started=True, **{"run.name": "once"} | change)
    first(tmp_path, started=True, **{"run.name": "once"}).answer(ask(agent))


def test_a_stored_answer_is_not_sent_again_under_another_adjacency(tmp_path):
    """The question may be the same: where the step is fixed, it does not depend on the noise."""
    fixed = {"run.name": "same", "schedule.rho": "static"}
    agent = first(tmp_path, **fixed)
    agent.answer(ask(agent))
    with pytest.raises((Refused, IncompatibleError), match="priced for zero_out"):
        first(tmp_path, started=True, **fixed, **{"privacy.adjacency": "replace_one"})


# --- after the gate ------------------------------------------------------------------------------------------------


def test_where_the_gradient_is_taken_at_the_agents_own_z_that_is_checked_too(tmp_path):
    """The server has z_p, and asks at that point: where the point comes from makes no difference to its check."""
    agent = first(tmp_path, **LINEARISED_AT_Z)
    for z in (np.full(SHAPE, 2 * LARGEST), np.full(SHAPE, np.nan)):
        refused(agent, ask(agent, w=z), "not finite, or has an entry beyond")
    for z in (np.zeros((7, *SHAPE)), np.zeros((4, 1)), np.zeros(SHAPE, complex)):
        refused(agent, ask(agent, w=z), "float64 array of shape")
    assert answers(agent) == 0
    agent.answer(ask(agent, w=np.full(SHAPE, LARGEST)))


@pytest.mark.parametrize("by_numpy", [False, True])
@pytest.mark.parametrize("largest", [1.0, 3e38])
def test_the_largest_model_is_answered_whatever_the_records_are(tmp_path, largest, by_numpy):
    over = federation()
    over = with_records(over, replace(over.shards[0], x=np.full_like(over.shards[0].x, largest)))
    for loss in ("softmax", "squared"):
        agent = first(tmp_path / loss, over=over, **{"problem.loss": loss})
        if by_numpy:
            agent = over_records(agent, over.shards[0], evaluator(numpy_sums))
        with np.errstate(all="raise"):
            value = agent.answer(ask(agent, w=np.full(SHAPE, LARGEST) * [1, -1, 0])).value
        assert np.isfinite(value).all()


def test_an_evaluator_that_rounds_more_than_the_noise_covers_is_refused(tmp_path):
    """The noise is for the evaluator of the query; another one may be injected only if it rounds no more."""
    over = federation()
    agent = first(tmp_path, over=over)
    usual = agent.queries[0].query.evaluator
    rough = replace(usual, allowance=lambda query, records: 1.001 * usual.allowance(query, records))
    with pytest.raises(IncompatibleError, match="rounds more than its noise covers"):
        over_records(agent, over.shards[0], rough)
    over_records(agent, over.shards[0], replace(usual, allowance=lambda *_: 1.0))


def test_records_whose_gradients_would_overflow_are_no_records():
    with pytest.raises(DataError, match=r"beyond 1e\+50"):
        Shard(np.full((2, 3), -2 * LARGEST), np.zeros(2, dtype=int), np.float64)


@pytest.mark.parametrize("sensitivity", ["row_norm", "feature_bounds"])
@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
def test_a_declared_bound_is_made_true_and_a_record_beyond_it_is_no_reason_to_refuse(tmp_path, sensitivity, mechanism):
    over = federation()
    norm = "l2" if mechanism == "gaussian" else "l1"
    values = {"privacy.sensitivity": sensitivity, "privacy.mechanism": mechanism, "data.row_norm": norm,
              "privacy.covers": "run" if mechanism == "gaussian" else "round"}  # fmt: skip
    agent = first(tmp_path, over=over, **values)
    agent = over_records(agent, replace(over.shards[0], x=1e3 * over.shards[0].x))
    assert agent.answer(ask(agent)).value.shape == SHAPE
    (one,) = agent.queries
    bound = one.query.record_bound
    held = one.query.held(Reader(one.records, Reads(View.ROWS)).whole())
    for norm, most in ((bound.norm, bound.row_norm), (Norm.L2, bound.euclidean_row)):
        assert norm.of_rows(held.x).max() <= most * (1 + 1e-12)


def test_any_error_on_the_way_is_told_to_the_owner_alone(tmp_path):
    agent = with_value(first(tmp_path), lambda _: lambda _: 1 / 0)
    refused(agent, ask(agent), "division by zero")
    assert answers(agent) == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(Refused, match=f"^agent 0: {Refused.public}$"):  # not the owner's warning
            agent.answer_or_refuse(ask(agent))


@pytest.mark.parametrize("change", [
    lambda agent: replace(agent, problem=replace(agent.problem, weight=1e60)),
    lambda agent: replace(agent, shard=replace(agent.shard, y=agent.shard.y + 3)),
    lambda agent: replace(agent, shard=replace(agent.shard, x=agent.shard.x[:, :3])),
], ids=["weight", "labels", "columns"])  # fmt: skip
def test_an_agent_that_could_fail_on_its_way_is_not_built(change):
    agent = change(setup_of().agents[0])
    with pytest.raises((IncompatibleError, DataError)):
        over_records(replace(agents()[0], agreement=agreement_of(agent, SHAPE, 6, 5, None)), agent.shard)


RULES = {
    "objt": {}, "objp": {}, "objt, as in the paper": LINEARISED_AT_Z, "objp, as in the paper": LINEARISED_AT_Z,
    "objt, regulariser at w": {"algorithm.regularize_at": "w", "problem.beta": 0.3},
    "objt, box": {"problem.domain": "box", "problem.domain_radius": 0.05},
    "objp, ball": {"problem.domain": "ball", "problem.domain_radius": 0.1},
    "objt, simplex": {"problem.domain": "simplex"},
    "objp, bounds": {"problem.domain": "box", "problem.domain_low": 0.01},
    "objt, hinge": {"problem.loss": "hinge", "problem.regularizer": "l1", "problem.beta": 0.3},
}  # fmt: skip


@pytest.mark.parametrize("rule", RULES)
def test_a_deployed_agent_computes_what_its_method_computes(rule, monkeypatch):
    """Without noise, and but for the grid: z, dual and penalty of five rounds are those of the simulated agent."""
    monkeypatch.setattr(lattice, "sample", lambda _law, _t, shape, _bits: np.zeros(shape, np.int64))
    deployed = agents(algorithm=rule[:4], **RULES[rule])[0]
    setup = setup_of(algorithm=rule[:4], **RULES[rule])
    models, agent = setup.deployment.program(False), setup.agents[0]
    simulated = replace(agent, variant=replace(agent.variant, mechanism=Silence()), key=(0, 0)).in_double()
    theirs = simulated.start(SHAPE)
    for t in range(1, 6):
        msg = Broadcast(t, np.random.default_rng(t).normal(size=SHAPE), setup.rho(t))
        models.move(0, msg, deployed.answer(ask(deployed, t, parameters=models.parameters(msg, 0))).value)
        theirs, reply, _ = simulated.respond(theirs, msg)
        np.testing.assert_allclose(models.z[0], reply.z, atol=1e-9)
        np.testing.assert_allclose(models.dual[0], theirs.dual, atol=1e-9)
        assert models.rho[0] == theirs.rho
        models.z[0], models.dual[0] = theirs.z, theirs.dual  # the grid does not add up


@pytest.mark.parametrize("change", [
    lambda terms: replace(terms, scale=terms.scale / 2), lambda terms: replace(terms, rounds=7),
    lambda terms: replace(terms, adjacency="replace_one"), lambda terms: replace(terms, release=GaussianRelease(99.0)),
    lambda terms: replace(terms, scale=float("nan")),
])  # fmt: skip
def test_no_agent_is_made_on_terms_that_are_not_those_of_its_noise(change):
    agent = agents()[0]
    with pytest.raises(IncompatibleError, match=r"not (those|that) of its agreement"):
        replace(agent, terms=change(agent.terms), store=Memory())


@pytest.mark.parametrize("change", [
    lambda agent: Alone(agent.agreement, len(agent.queries[0].records) - 1),
    lambda agent: Alone(replace(agent.agreement, adjacency=Adjacency.REPLACE_ONE), 5),
    lambda agent: Alone(replace(agent.agreement, in_sum=InSum()), 5),
    lambda agent: Alone(replace(agent.agreement, queries=(quieter(agent.agreement.queries[0]),)), 5),
    lambda agent: Simulated(replace(agent.agreement, queries=(quieter(agent.agreement.queries[0]),)), (0, 0)),
], ids=["fewer records", "another adjacency", "a sum", "less noise", "less noise, simulated"])  # fmt: skip
def test_no_agent_is_made_with_a_cover_that_is_not_that_of_its_agreement(change):
    agent = agents()[0]
    with pytest.raises(IncompatibleError, match="make the cover anew"):
        replace(agent, cover=change(agent), store=Memory())


def quieter(one):
    return replace(one, noise=replace(one.noise, multiplier=one.noise.multiplier / 2))


def test_answers_that_no_longer_fit_into_memory_are_not_drawn_again(monkeypatch):
    monkeypatch.setattr(agreements, "KEPT_BYTES", 2 * 8 * 12)
    agent = agents()[0]
    for t in (1, 2, 3):
        agent.answer(ask(agent, t))
    refused(agent, ask(agent, 1), "no longer stored")
    agent.answer(ask(agent, 2))
    agent.answer(ask(agent, 3))


def test_terms_are_agreed_once_in_memory_too():
    agent = agents()[0]
    with pytest.raises(TermsChanged):
        replace(agent, terms=replace(agent.terms, spec="another"))


def test_an_answer_that_was_sent_cannot_be_changed_by_whoever_got_it():
    agent = agents()[0]
    sent = agent.answer(ask(agent)).value
    first = sent.copy()
    sent[:] = 0.0
    np.testing.assert_array_equal(agent.answer(ask(agent)).value, first)


def test_what_is_not_finite_does_not_leave(tmp_path):
    agent = with_value(first(tmp_path), lambda _: lambda _: np.full(SHAPE, np.inf))
    refused(agent, ask(agent), "holds NaN or inf")
    assert answers(agent) == 0


@pytest.mark.parametrize("values", [{"privacy.clip": 1e60}, {"privacy.clip": 1e-60}])
def test_a_run_whose_constants_could_overflow_is_refused(values):
    with pytest.raises(IncompatibleError, match=r"constants from 1e-50 to 1e\+50"):
        agents(**values)


# --- noise ---------------------------------------------------------------------------------------------------------


def noise_of(agent, t, w):
    """What an answer holds beyond the agent's value: the noise, to rounding."""
    return agent.answer(ask(agent, t, w=w)).value - value_at(agent, w)


def test_no_two_agents_rounds_or_runs_share_noise(tmp_path):
    asked = [(agent, t) for _ in range(2) for agent in agents(tmp_path / "ledgers") for t in (1, 2)]
    drawn = [noise_of(agent, t, np.full(SHAPE, 0.1)) for agent, t in asked]
    for i, one in enumerate(drawn):
        assert not any((np.abs(one - other) < 1e-11).any() for other in drawn[:i])


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_the_noise_has_the_law_and_the_scale_that_were_agreed(law, monkeypatch):
    """Gaussian: E x^2 = s^2, E|x| = s sqrt(2/pi). Laplace: E|x| = s, E x^2 = 2 s^2. Of bytes that stay."""
    monkeypatch.setattr(exact.os, "urandom", np.random.default_rng(0).bytes)
    agent = agents(**{"run.rounds": 600, "privacy.mechanism": law})[0]
    xi = [noise_of(agent, t, np.zeros(SHAPE)) for t in range(1, 601)]
    size = np.abs(xi).mean() / agent.terms.scale
    spread = np.square(xi).mean() / agent.terms.scale**2
    wanted = (1.0, 2.0) if law == "laplace" else (np.sqrt(2 / np.pi), 1.0)
    assert (size, spread) == (pytest.approx(wanted[0], rel=0.02), pytest.approx(wanted[1], rel=0.04))


def test_noise_is_a_function_of_what_the_operating_system_drew_and_of_nothing_else(tmp_path, monkeypatch):
    """The bytes of os.urandom are noted; drawn from them again, the noise is the same to the bit."""
    noted = []

    def system(n, drawn=exact.os.urandom):
        noted.append(drawn(n))
        return noted[-1]

    agent = first(tmp_path)
    value = value_at(agent, np.full(SHAPE, 0.1))
    monkeypatch.setattr(exact.os, "urandom", system)
    sent = agent.answer(ask(agent)).value
    monkeypatch.undo()
    assert sum(map(len, noted)) > 12 * 4
    again = iter(noted)
    noisy = lattice.release(value, agent.terms.scale, Law.GAUSSIAN, lambda _: next(again))
    np.testing.assert_array_equal(noisy, sent)


def test_sums_may_be_another_s_and_are_over_the_records_for_which_the_bound_is_true():
    values = {"privacy.sensitivity": "row_norm", "data.row_norm": "l2", "data.row_bound": 0.5}
    agent, shard, given = agents(**values)[0], federation().shards[0], []

    def summing(_query, held):
        given.append(held)
        return lambda point: np.full(point.shape, 7.0)

    other = over_records(agent, replace(shard, x=100 * shard.x), evaluator(summing))
    query = other.queries[0].query
    for _ in range(2):
        np.testing.assert_array_equal(value_at(other, np.zeros(SHAPE)), np.full(SHAPE, 7 * query.weight))
    (held,) = given  # once: whoever sums may pack the records
    assert held.x.dtype == np.float64
    assert Norm.L2.of_rows(held.x).max() <= query.record_bound.row_norm * (1 + 1e-12)


@pytest.mark.parametrize("by_numpy", [False, True])
def test_sums_are_the_gradient_of_the_simulated_agent(by_numpy):
    agent, simulated = agents()[0], setup_of().agents[0]
    agent = over_records(agent, simulated.shard, evaluator(numpy_sums)) if by_numpy else agent
    point = np.random.default_rng(0).normal(size=SHAPE)
    wanted = simulated.in_double().data_gradient(point)[0]
    np.testing.assert_allclose(value_at(agent, point), wanted, rtol=1e-13)


@pytest.mark.parametrize("adjacency", ["zero_out", "replace_one"])
def test_the_scale_counts_the_bound_the_adjacency_the_grid_and_the_rounding_of_the_sum(adjacency):
    setup = setup_of(**{"privacy.adjacency": adjacency})
    many = replace(setup.agents[0], shard=Shard(np.zeros((200_000, 4)), np.zeros(200_000, int)))
    variant, n, times = many.variant, 200_000, {"zero_out": 1, "replace_one": 2}[adjacency]
    bound = many.problem.weight * times * variant.bound.value
    summed = bound * (1 + 2 * n * (n + 4) * 2.0**-53)  # |fl(sum) - sum| <= (n + 4) u sum |g_i|, at both neighbours
    scale = agreement_of(many, SHAPE, 6, n, None).scale(0, n)
    moved = lattice.quantized_sensitivity(variant.bound.norm, summed, lattice.grid(scale), 12)
    assert scale >= variant.mechanism.multiplier * moved
    assert scale <= variant.mechanism.multiplier * bound * (1 + 1e-4)


def test_the_regulariser_goes_in_after_the_noise():
    """Its slope may be so large that adding it to a gradient would round a record away, or up by a whole float."""
    values = {"problem.beta": 1e3}
    agent, setup = agents(**values)[0], setup_of(**values)
    assert np.abs(value_at(agent, np.full(SHAPE, 1e40))).max() < 1
    models, msg = setup.deployment.program(False), Broadcast(1, np.full(SHAPE, 0.1), setup.rho(1))
    models.move(0, msg, np.zeros(SHAPE))
    slope = 2 * setup.agents[0].problem.regularization * 0.1
    np.testing.assert_allclose(models.z[0], 0.1 - slope / msg.rho, rtol=1e-12)


def test_sound_is_deployed_by_default_with_gaussian_noise():
    assert (SOUND.privacy.mechanism, SOUND.privacy.adjacency) == ("gaussian", "zero_out")


def test_threads_that_ask_one_agent_without_a_ledger_get_one_answer():
    memory, made, start_together = Memory(), [], threading.Barrier(8)
    memory.join("data", Terms("run", "spec", 5, GaussianRelease(1.0), "zero_out", 1.0, 1e-6, 1.0))

    def make():
        made.append(1)
        time.sleep(0.02)
        return np.random.default_rng().normal(size=3)

    def ask_once(_):
        start_together.wait()
        return memory.release(Key("data", "run", 1), "asked", GaussianRelease(1.0), make)

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask_once, range(8)))
    assert len(made) == 1
    assert all((one == answers[0]).all() for one in answers)


def test_an_agent_without_a_ledger_does_not_answer_after_a_fork(monkeypatch):
    memory = Memory()
    memory.join("data", Terms("run", "spec", 5, GaussianRelease(1.0), "zero_out", 1.0, 1e-6, 1.0))
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(Refused, match="fork"):
        memory.release(Key("data", "run", 1), "asked", GaussianRelease(1.0), lambda: np.zeros(3))


def test_ledgers_price_what_is_left_of_delta_when_the_grid_has_its_share():
    events = [(GaussianRelease(20.0), 100)]
    assert deployment.price(events, 1e-6) == total(events, 1e-6 * (1 - DELTA_FOR_THE_GRID)).epsilon
    assert deployment.price(events, 1e-6) > total(events, 1e-6).epsilon


def test_what_is_agreed_names_the_shape_of_the_model_the_bound_of_a_gradient_its_noise_and_how_often_it_is_asked():
    def agreement(shape, clip, multiplier, answers, in_sum):
        query = Gradient(shape, Softmax(), Clipped(Norm.L2, clip), 0.1)
        asked = NoisyQuery(query, Noise(Law.GAUSSIAN, Norm.L2, multiplier), answers)
        return Agreement((asked,), Adjacency.ZERO_OUT, 5, in_sum)

    choices = list(itertools.product(((4, 3), (3, 4)), (0.7, 0.8), (2.0, 3.0), (6, 7), (None, InSum(), InSum(2))))
    assert len({agreement(*choice).digest for choice in choices}) == len(choices)
    assert agreement(*choices[0]).digest == agreement(*choices[0]).digest


def test_an_agent_joins_on_the_hash_of_its_run_and_of_all_agreements():
    chosen = deploy.named(SOUND)
    one, other = (setup_of(**{"privacy.clip": clip}).deployment for clip in (0.7, 0.8))
    assert one.agreed(chosen) != other.agreed(chosen)
    assert one.agreed(chosen) != one.agreed(chosen.with_values({"run.rounds": 7}))
