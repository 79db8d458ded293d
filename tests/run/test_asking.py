"""Agents that are asked side by side answer as they do one after another, and refuse in the same order."""

import threading
import time
from dataclasses import dataclass

import numpy as np
import pytest

from tacit.admm.agent import Agent
from tacit.admm.messages import Broadcast
from tacit.agent.agent import Answer
from tacit.engine.plain import PlainEngine
from tacit.errors import Refused
from tacit.rounds import rounds
from tacit.run import asking
from tacit.run.asking import AskingEngine, Lane
from tacit.run.compose import asked_of
from tests.agent.agents import SHAPE, setup_of
from tests.conftest import federation

SIMULATED = {"privacy.noise": "simulated", "run.seed": 0, "problem.beta": 0.0}


@dataclass
class Fake:
    """An agent that does something when it is asked, and answers with its own number."""

    number: int
    act: object = lambda: None

    @property
    def name(self):
        return str(self.number)

    def answer_or_refuse(self, question):
        self.act()
        value = np.full(SHAPE, self.number + question.t / 10)
        return Answer(question.run, question.t, question.attempt, value, {"gradient": 0.0, "noise": 0.0})


@dataclass
class Simulated:
    """A simulated agent that answers as a deployed one does: the gradient of its records, with its noise."""

    p: int
    agent: Agent

    @property
    def name(self):
        return str(self.p)

    def answer_or_refuse(self, question):
        own = self.agent
        value, bound = own.data_gradient(question.parameters["point"])
        drawn = own.variant.mechanism.sample(own.stream, question.t, 0, value.shape).astype(value.dtype)
        noisy = value + own.calibration * bound * drawn
        return Answer(question.run, question.t, question.attempt, noisy, {"gradient": 0.0, "noise": 0.0})


class Program:
    """A server that keeps the last answer of every agent, and concludes their mean."""

    def __init__(self, n_agents):
        self.z, self.accepted = np.zeros((n_agents, *SHAPE)), np.zeros(n_agents, np.int64)

    def parameters(self, msg, p):
        return {"point": msg.w, "to": p}

    def move(self, p, msg, answer, whole=1.0):
        self.z[p], self.accepted[p] = whole * answer.reshape(SHAPE), msg.t

    def replies(self, _msg, _spreads, _seconds, in_step=True):
        assert in_step
        return self.z.mean(0)

    def save(self):
        return {"z": self.z.copy(), "accepted": self.accepted.copy()}

    def load(self, saved):
        self.z[...], self.accepted[...] = saved["z"], saved["accepted"]


def engine_of(*runs, threads=None):
    """An engine of runs of these agents, whose answers need not be those of honest agents."""
    asked = [setup_of(federation(len(agents))).deployment for agents in runs]
    return AskingEngine(
        [Lane("run", "agreed", agents, one, Program(len(agents))) for agents, one in zip(runs, asked, strict=True)],
        threads,
        checked=False,
    )


def question(t=1):
    return Broadcast(t, np.zeros(SHAPE), 1.0)


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_numbers_are_those_of_the_plain_engine_whatever_the_number_of_threads(threads):
    over = federation()
    setup = setup_of(over, **SIMULATED)
    agents = [Simulated(p, agent.in_double()) for p, agent in enumerate(setup.agents)]
    deployment = asked_of(setup.agents, setup.shape, setup.server.rounds)
    lanes = [Lane("run", "agreed", agents, deployment, deployment.program(False)) for _ in range(2)]
    seen = []
    for engine in (PlainEngine([setup.agents] * 2, setup.shape), AskingEngine(lanes, threads)):
        going = rounds([setup.server] * 2, [setup.server.start()] * 2, engine.exchange_all)
        ended = [next(going) for _ in range(4)]
        seen.append([state.w for run in ended for state, _ in run] + [info.violation() for _, info in ended[-1]])
        seen[-1] += [engine.save(r)[name] for r in (0, 1) for name in ("z", "dual", "rho")]
    for plain, beside in zip(*seen, strict=True):
        np.testing.assert_array_equal(plain, beside)
    engine.close()


def test_a_run_goes_on_from_what_was_saved():
    agents = [Fake(n) for n in range(3)]
    first, second = engine_of(agents), engine_of(agents)
    first.exchange_all([question()])
    second.load(0, first.save(0))
    replies = [engine.exchange_all([question(2)])[0] for engine in (first, second)]
    np.testing.assert_array_equal(*replies)
    for name, array in first.save(0).items():
        np.testing.assert_array_equal(array, second.save(0)[name])
    for engine in (first, second):
        engine.close()


def test_all_agents_are_asked_before_any_has_answered():
    together = threading.Barrier(4, timeout=20)  # breaks where they come one after another
    engine = engine_of([Fake(n, together.wait) for n in range(4)], threads=4)
    np.testing.assert_allclose(engine.exchange_all([question()])[0], np.full(SHAPE, 1.6), rtol=1e-15)
    engine.close()


def test_every_answer_moves_the_agent_that_gave_it_whichever_comes_first():
    engine = engine_of([Fake(n, lambda n=n: time.sleep(0.02 * (4 - n))) for n in range(4)], threads=4)
    engine.exchange_all([question()])
    np.testing.assert_array_equal(engine.save(0)["z"][:, 0, 0], np.arange(4) + 0.1)
    engine.close()


def test_the_first_agent_that_refuses_is_named_whichever_refuses_first_and_all_others_have_answered():
    answered = []

    def refuses(n, seconds):
        def act():
            time.sleep(seconds)
            raise Refused(f"agent {n}")

        return act

    def late():
        time.sleep(0.2)
        answered.append(3)

    agents = [Fake(0), Fake(1, refuses(1, 0.1)), Fake(2, refuses(2, 0)), Fake(3, late)]
    engine = engine_of(agents)
    before = engine.save(0)
    for _ in range(3):
        with pytest.raises(Refused, match="agent 1"):
            engine.exchange_all([question()])
    assert answered == [3, 3, 3]
    for name, array in engine.save(0).items():
        np.testing.assert_array_equal(array, before[name])  # the round is not half done
    engine.close()


def test_a_run_that_is_stopped_waits_for_agents_that_answer_and_asks_no_more(monkeypatch):
    began, ended, waits = [], [], []
    started, cancelled = threading.Event(), threading.Event()

    def act():
        began.append(1)
        started.set()
        cancelled.wait(20)
        ended.append(1)

    def stopped(answers, wait=asking.wait):
        waits.append(1)
        if len(waits) == 1:
            started.wait(20)
            raise KeyboardInterrupt
        cancelled.set()  # the others are cancelled before it waits again
        return wait(answers)

    monkeypatch.setattr(asking, "wait", stopped)
    engine = engine_of([Fake(n, act) for n in range(5)], threads=1)
    with pytest.raises(KeyboardInterrupt):
        engine.exchange_all([question()])
    assert (len(began), len(ended)) == (1, 1)
    engine.close()
    assert (len(began), len(ended)) == (1, 1)


def test_a_refusal_in_one_run_leaves_the_other_runs_where_they_were():
    def refuse():
        raise Refused("no")

    engine = engine_of([Fake(0)], [Fake(1, refuse)])
    before = engine.save(0)
    for _ in range(2):
        with pytest.raises(Refused, match="no"):
            engine.exchange_all([question(), question()])
    for name, array in engine.save(0).items():
        np.testing.assert_array_equal(array, before[name])
    engine.close()


def test_agents_of_a_sum_are_asked_alike_over_all_peers_and_others_each_for_itself():
    agents, msg = [Fake(n) for n in (2, 0, 1)], question()
    alone, summed = (
        Lane("run", "agreed", agents, setup_of(**values).deployment, Program(3)).questions(msg)
        for values in ({}, {"privacy.trust": "sum"})
    )
    assert [(one.peers, one.attempt, one.parameters["to"]) for one in alone] == [((), 0, p) for p in range(3)]
    assert [(one.peers, one.attempt, one.parameters["to"]) for one in summed] == [(("0", "1", "2"), 0, 0)] * 3
