"""Agents that are asked side by side answer as they do one after another, and refuse in the same order."""

import threading
import time
from dataclasses import dataclass

import numpy as np
import pytest

from tacit.admm.messages import Broadcast, Local, Reply
from tacit.engine import side_by_side
from tacit.engine.plain import PlainEngine
from tacit.engine.side_by_side import SideBySide
from tacit.errors import Refused
from tacit.rounds import Trace, rounds
from tacit.run import build
from tests.conftest import federation
from tests.guarded.agents import spec

SHAPE = (2, 3)


@dataclass
class Agent:
    """An agent that does something when it is asked, and answers with its own number."""

    number: int
    act: object = lambda: None

    def in_double(self):
        return self

    def start(self, shape):
        return Local.first(np.zeros(shape))

    def respond(self, own, msg):
        self.act()
        z = np.full(SHAPE, self.number + msg.t / 10)
        return Local(z, own.dual + z, msg.rho), Reply(z), Trace(0.0, 0.0, 1.0, 1.0, 0.0, {})


def question(t=1):
    return Broadcast(t, np.zeros(SHAPE), 1.0)


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_numbers_are_those_of_the_plain_engine_whatever_the_number_of_threads(threads):
    chosen = spec(**{"privacy.noise": "simulated"})
    setup = build.setup(chosen, federation())
    seen = []
    for engine in (PlainEngine([setup.agents] * 2, setup.shape), SideBySide([setup.agents] * 2, setup.shape, threads)):
        going = rounds([setup.server] * 2, [setup.server.start()] * 2, engine.exchange_all)
        ended = [next(going) for _ in range(4)]
        seen.append([state.w for run in ended for state, _ in run] + [info.violation() for _, info in ended[-1]])
        seen[-1] += [*engine.save(0).values(), *engine.save(1).values()]
    for plain, beside in zip(*seen, strict=True):
        np.testing.assert_array_equal(plain, beside)
    engine.close()


def test_a_run_goes_on_from_what_was_saved():
    agents = [Agent(n) for n in range(3)]
    first, second = SideBySide([agents], SHAPE), SideBySide([agents], SHAPE)
    first.exchange_all([question()])
    second.load(0, first.save(0))
    replies = [engine.exchange_all([question(2)])[0] for engine in (first, second)]
    np.testing.assert_array_equal(replies[0].z_mean, replies[1].z_mean)
    np.testing.assert_array_equal(first.save(0)["dual"], second.save(0)["dual"])
    for engine in (first, second):
        engine.close()


def test_all_agents_are_asked_before_any_has_answered():
    together = threading.Barrier(4, timeout=20)  # breaks where they come one after another
    engine = SideBySide([[Agent(n, together.wait) for n in range(4)]], SHAPE, threads=4)
    np.testing.assert_array_equal(engine.exchange_all([question()])[0].z_mean, np.full(SHAPE, 1.6))
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

    agents = [Agent(0), Agent(1, refuses(1, 0.1)), Agent(2, refuses(2, 0)), Agent(3, late)]
    engine = SideBySide([agents], SHAPE)
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

    def stopped(answers, wait=side_by_side.wait):
        waits.append(1)
        if len(waits) == 1:
            started.wait(20)
            raise KeyboardInterrupt
        cancelled.set()  # the others are cancelled before it waits again
        return wait(answers)

    monkeypatch.setattr(side_by_side, "wait", stopped)
    engine = SideBySide([[Agent(n, act) for n in range(5)]], SHAPE, threads=1)
    with pytest.raises(KeyboardInterrupt):
        engine.exchange_all([question()])
    assert (len(began), len(ended)) == (1, 1)
    engine.close()
    assert (len(began), len(ended)) == (1, 1)


def test_a_refusal_in_one_run_leaves_the_other_runs_where_they_were():
    def refuse():
        raise Refused("no")

    engine = SideBySide([[Agent(0)], [Agent(1, refuse)]], SHAPE)
    before = engine.save(0)
    for _ in range(2):
        with pytest.raises(Refused, match="no"):
            engine.exchange_all([question(), question()])
    for name, array in engine.save(0).items():
        np.testing.assert_array_equal(array, before[name])
    engine.close()
