"""Methods made of queries give the model of a plain transcription of their formulas, simulated and deployed.

Noise is injected: that of agent p in round t is the same for a method and for its transcription.
"""

import math
from contextlib import ExitStack
from dataclasses import replace

import numpy as np
import pytest

from tacit.admm.messages import Broadcast
from tacit.agent.cover import Alone
from tacit.errors import IncompatibleError
from tacit.methods import outp
from tacit.methods.gradient_descent import FedGD
from tacit.methods.method import Budget, simulate
from tacit.methods.onemessage import OneMessage
from tacit.methods.queried import Gathered, QueryMethod
from tacit.methods.registry import METHODS
from tacit.privacy.summed import InSum
from tacit.problem.sensitivity import ROOM
from tacit.rounds import FADING, rounds
from tacit.run import build, deploy
from tacit.run.asking import AskingEngine
from tacit.run.presets import preset
from tacit.types import Shard
from tests.conftest import federation
from tests.methods.tasks import task
from tests.methods.transcribed import (
    BETA,
    SIZES,
    T,
    admm_with_noise_on_steps,
    drawn,
    fedgd,
    huang,
    one_message,
)

SHORT = replace(
    federation(), shards=tuple(Shard(0.4 * shard.x, shard.y) for shard in federation().shards), bounds=None
)  # no row is longer than one
DEPLOYED = {
    "privacy.noise": "exact", "privacy.epsilon": 8.0, "run.rounds": T, "problem.beta": BETA, "data.source": "synthetic",
}  # fmt: skip


def injected(key, t, _step, shape):
    return drawn(key[1], t, shape)


def records_of(shards):
    return [(shard.x.astype(np.float64), shard.y) for shard in shards]


def near(found, wanted):
    assert len(found) == len(wanted)
    for w, twin in zip(found, wanted, strict=True):
        assert np.linalg.norm(w - twin) <= 1e-12 * np.linalg.norm(twin)


# --- simulated -------------------------------------------------------------------------------------------------------


def in_simulation(method, beta=BETA):
    own = replace(task(SHORT, beta=beta), normals=injected, row_norm=1.0)
    return own, records_of(own.shards), [state.w for state, _ in simulate(method, own)]


ROUNDING = 1 + 1e-6 * max(SIZES)  # what a simulation leaves for sums in float32


@pytest.mark.parametrize("clip", [0.05, 0.7])
def test_simulated_fedgd_is_its_formula(clip):
    method = FedGD(T, clip, multiplier=0.7, step=2.0)
    own, records, found = in_simulation(method)
    std = 0.7 * clip / own.n_records * ROUNDING
    near(found, fedgd(records, [std] * 3, 2.0, clip, BETA))


@pytest.mark.parametrize(("name", "rho"), [("outp-huang", 0.1), ("outp-plus", 0.001)])
def test_simulated_outp_is_huangs_algorithm_with_noise_on_solutions(name, rho):
    assert METHODS[name].grid[0]["rho"] == rho
    method = outp.OutP(T, multiplier=0.7, rho=rho / 3, c_w=100.0)
    own, records, found = in_simulation(method)
    s = 0.7 * 2 * math.sqrt(2) / ROOM / own.n_records * ROUNDING
    near(found, huang(records, [s] * 3, s, rho / 3, 100.0, 1.0, BETA))


@pytest.mark.parametrize("balance", [0.7, 2.0])
@pytest.mark.parametrize("multiplier", [0.01, 1.0])
def test_simulated_onemessage_is_ridge_regression_on_noisy_moments(balance, multiplier):
    method = OneMessage(multiplier, balance)
    own, records, found = in_simulation(method)
    std = multiplier * math.sqrt(1 + balance**2 * 2 / 3)
    assert method.sensitivity(own) == pytest.approx(std / multiplier, rel=1e-9)
    std = multiplier * method.sensitivity(own)  # with room for rounding
    near(found, one_message(records, [std] * 3, std, balance, 1.0))


# --- deployed --------------------------------------------------------------------------------------------------------


@pytest.fixture
def injecting(monkeypatch):
    """Exact noise is the noise of the test at the scale of the agreement; the server's own draws are injected too."""

    def over(self, asked):
        p, scale = SIZES.index(self.records), self.agreement.scale(self.agreement.place(asked.t), self.records)
        return "", lambda value: value + scale * drawn(p, asked.t, value.shape)

    monkeypatch.setattr(Alone, "over", over)
    monkeypatch.setattr(build, "normals", lambda: injected)


def in_deployment(name, **values):
    """The setup, the records, the noise of every agent, and w after each round."""
    spec = preset("sound", name).with_values(DEPLOYED | values)
    setup = build.setup(spec, SHORT)
    with ExitStack() as files:
        agents = deploy.deployed(spec, setup, SHORT, None, False, files)
        engine = AskingEngine([deploy.lane(spec, setup, SHORT, agents)])
        try:
            ended = rounds([setup.server], [setup.server.start()], engine.exchange_all)
            found = [state.w for ((state, _),) in ended]
        finally:
            engine.close()
    std = [own.scale(0, n) for own, n in zip(setup.deployment.agreements, SIZES, strict=True)]
    return setup, records_of(SHORT.shards), std, found


def check_scale(std, multiplier, sensitivity):
    """Agents draw the noise of their multiplier and no less, with room for rounding and for a grid."""
    assert all(multiplier * sensitivity <= one <= multiplier * sensitivity * (1 + 1e-6) for one in std)


@pytest.mark.usefixtures("injecting")
def test_deployed_fedgd_is_its_formula():
    setup, records, std, found = in_deployment("fedgd")
    method = setup.server.method
    check_scale(std, method.multiplier, method.clip / sum(SIZES))
    near(found, fedgd(records, std, method.step, method.clip, BETA))


@pytest.mark.usefixtures("injecting")
@pytest.mark.parametrize("name", ["outp-huang", "outp-plus"])
def test_deployed_outp_of_huang_is_the_algorithm_with_noise_on_solutions(name):
    """Agents add noise to gradients: on all of R^{J x K} that is noise on the solution over rho + 1 / eta."""
    setup, records, std, found = in_deployment(name)
    method = setup.server.method
    check_scale(std, method.multiplier, 2 * math.sqrt(2) / ROOM / sum(SIZES))
    s = method.multiplier * 2 * math.sqrt(2) / ROOM / sum(SIZES) * ROUNDING
    near(found, huang(records, std, s, METHODS[name].grid[0]["rho"] / 3, 100.0, 1.0, BETA))


@pytest.mark.usefixtures("injecting")
@pytest.mark.parametrize("eta", [0.5, 1e6])
def test_deployed_outp_is_proximal_admm_with_noise_on_steps(eta):
    setup, records, std, found = in_deployment("outp", **{"schedule.eta_a": eta})
    variant, server = setup.agents[0].variant, setup.consensus
    check_scale(std, variant.mechanism.multiplier, variant.bound.value / sum(SIZES))
    near(found, admm_with_noise_on_steps(records, std, server.rho, eta, variant.bound.value, server.momentum, BETA))


@pytest.mark.usefixtures("injecting")
def test_deployed_onemessage_is_ridge_regression_on_noisy_moments():
    setup, records, std, found = in_deployment("onemessage", **{"run.rounds": 1})
    check_scale(std, setup.server.method.multiplier, math.sqrt(1 + 2 / 3))
    assumed = setup.server.method.noise_std(setup.server.facts)  # by the server, which knows no grid
    assert std == pytest.approx([assumed] * 3, rel=1e-6)
    near(found, one_message(records, std, assumed, 1.0, 1.0))


# --- behind a secure sum, and with agents that are missing -----------------------------------------------------------


@pytest.mark.parametrize(("name", "n"), [("fedgd", T), ("onemessage", 1)])
def test_a_deployed_sum_gives_the_model_of_its_total_and_sends_words(monkeypatch, name, n):
    """The total that a method concludes with is the one that the exchange has read from the words."""
    values = {"run.rounds": n, "privacy.trust": "sum"}
    pytest.importorskip("cryptography")
    totals, spec = [], preset("sound", name).with_values(DEPLOYED | values)
    setup, move = build.setup(spec, SHORT), Gathered.move

    def listening(self, p, msg, answer, whole=1.0):
        totals.append((msg.w, answer.copy()))
        move(self, p, msg, answer, whole)

    monkeypatch.setattr(Gathered, "move", listening)
    with ExitStack() as files:
        agents = deploy.deployed(spec, setup, SHORT, None, False, files)
        engine = AskingEngine([deploy.lane(spec, setup, SHORT, agents)])
        files.callback(engine.close)
        ended = []
        for ((state, info),) in rounds([setup.server], [setup.server.start()], engine.exchange_all):
            ended.append((state, info.sent, [one.copy() for one in info.seen]))  # the next round reuses the array
    query, std = setup.server.method.query(setup.server.facts), setup.deployment.spread_of_sum(1, 3).scale
    for (w, total), (_, sent, seen) in zip(totals, ended, strict=True):
        asked = {"point": w} if query.parameters.parts else {}
        clean = sum(agent.queries[0].value(asked) for agent in agents)
        assert np.abs(total.ravel() - clean.ravel()).max() < 8 * std
        assert sent == 8 * query.size
        np.testing.assert_array_equal(np.ravel(seen), total.ravel())
    assert np.isfinite(ended[-1][0].w).all()


def gathered(method):
    return Gathered(method, task(SHORT).facts)


def test_a_missing_agent_counts_with_its_last_answer_halved_with_every_round():
    taken, w = gathered(FedGD(T, 0.7, 1.0, 1.0)), np.zeros((4, 3))
    for p in range(3):
        taken.move(p, Broadcast(1, w), np.full(12, 1.0 + p))
    taken.move(0, Broadcast(2, w), np.full(12, 5.0))
    taken.move(0, Broadcast(3, w), np.full(12, 7.0))
    taken.move(2, Broadcast(2, w), np.full(12, 4.0))  # late: the answer to an older question
    replies = taken.replies(Broadcast(3, w), (), {}, in_step=False)["answer"]
    assert FADING == 0.5
    np.testing.assert_array_equal(replies[:, 0], [7.0, 2.0 / 4, 4.0 / 2])


def test_a_run_that_is_taken_up_again_has_the_answers_that_it_had():
    first, second = (gathered(FedGD(T, 0.7, 1.0, 1.0)) for _ in range(2))
    first.move(1, Broadcast(2, np.zeros((4, 3))), np.arange(12.0))
    saved = first.save()
    first.move(1, Broadcast(3, np.zeros((4, 3))), np.zeros(12))  # what was saved is a copy
    second.load(saved)
    for name, array in second.save().items():
        np.testing.assert_array_equal(array, saved[name])
    np.testing.assert_array_equal(second.last[1], np.arange(12.0))


# --- what follows from the queries -----------------------------------------------------------------------------------

MADE = {
    "fedgd": FedGD(T, 0.7, 3.0, 1.0), "fedgd in a sum": FedGD(T, 0.7, 3.0, 1.0, InSum()),
    "outp-huang": outp.OutP(T, 3.0, 0.1, 100.0), "onemessage": OneMessage(3.0, 1.0),
    "onemessage in a sum": OneMessage(3.0, 1.0, InSum()),
}  # fmt: skip


@pytest.mark.parametrize("method", MADE.values(), ids=MADE)
def test_the_claim_of_a_method_made_of_queries_is_the_price_of_its_agreement(method):
    """A simulation and the agents of a deployment release the same, query by query."""
    facts = task(SHORT).facts
    agreement, promise = method.agreement(facts), method.promise(facts)
    assert list(agreement.events) == list(promise.events(method.rounds))
    assert agreement.rounds == method.rounds
    assert promise.unit.adjacency == agreement.adjacency.name.lower()


@pytest.mark.parametrize("method", MADE.values(), ids=MADE)
def test_without_noise_a_method_is_not_deployed(method):
    with pytest.raises(IncompatibleError, match="without noise there is nothing to deploy"):
        replace(method, multiplier=0.0).agreement(task(SHORT).facts)


def test_gradients_at_points_of_their_own_do_not_go_into_a_sum():
    with pytest.raises(IncompatibleError, match="a query that every agent is asked alike"):
        outp.OutP(T, 3.0, 0.1, 100.0, in_sum=InSum()).agreement(task(SHORT).facts)


def test_each_method_of_the_registry_that_says_it_is_made_of_queries_is_and_no_other():
    facts = replace(task(SHORT).facts, row_norm=1.0)
    for name in METHODS:
        entry = METHODS[name]
        if not entry.is_admm:
            made = entry.built(facts, Budget(1.0, 1e-5), entry.grid[0])
            assert isinstance(made, QueryMethod) is entry.queries, name


@pytest.mark.parametrize("name", ["cpsgd", "dpsgd", "outp-released", "gadmm"])
def test_a_method_that_cannot_be_deployed_is_refused_with_those_that_can(name):
    with pytest.raises(IncompatibleError, match=f"{name} cannot be deployed") as told:
        build.setup(preset("sound", name).with_values({"privacy.noise": "exact"}), SHORT)
    named = str(told.value).split("a method of ")[1].split(" (docs")[0].split(", ")
    assert {"objt", "outp", "fedgd", "onemessage"} <= set(named)
    assert not {"admm", "iadmm-prox", "iadmm-trust", "cpsgd", "outp-released"} & set(named)
