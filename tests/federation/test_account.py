"""The server's account of agents that miss rounds: arithmetic, against agents that keep their own state."""

import numpy as np
import pytest

from tacit.admm.algorithm import Consensus
from tacit.admm.messages import Order
from tacit.admm.updates import ascent, trust_center
from tacit.federation.account import FADING, Account, Taken
from tacit.federation.attendance import Attendance
from tacit.message import fingerprint
from tacit.rounds import Trace
from tacit.schedule import Cooling

SHAPE, AGENTS, ROUNDS = (3, 2), 4, 30
TRACE = Trace(0.0, 0.0, 0.0, 0.0, None, {})
TARGETS = np.random.default_rng(5).normal(size=(AGENTS, *SHAPE))
RHO = Cooling(0.7, ROUNDS)


class Honest:
    """An agent as its ledger remembers it: what it carried on from every answer. f_p(w) = |w - target|^2 / 2."""

    def __init__(self, p: int) -> None:
        self.p, self.kept = p, {0: (np.zeros(SHAPE), np.zeros(SHAPE), 0.0)}

    def answer(self, t, w, rho, accepted):
        z, dual, last = self.kept[accepted]
        dual = ascent(dual, w, z, last)
        z = trust_center(w, dual, w - TARGETS[self.p], rho)
        self.kept[t] = (z, dual, rho)
        return z, dual


def run(present, momentum=0.0):
    """Rounds in which `present(t, p)` says who answers: the question, what came of it, and the gradients used."""
    server = Consensus(ROUNDS, SHAPE, RHO, Order.ZWD, momentum)
    state, account, agents = server.start(), Account.zero(AGENTS, SHAPE, Order.ZWD), list(map(Honest, range(AGENTS)))
    used = np.zeros((AGENTS, *SHAPE))
    while state.t < ROUNDS:
        msg, taken = server.ask(state), []
        for p, agent in enumerate(agents):
            if present(msg.t, p):
                z, dual = agent.answer(msg.t, msg.w, msg.rho, int(account.accepted[p]))
                taken.append(Taken(p, msg.t, msg.w, msg.rho, z))
                assert account.hash_of_dual(taken[-1]) == fingerprint(msg.t, {"dual": dual})
                used[p] = msg.w - TARGETS[p]
            else:
                used[p] *= FADING
        after = account.after(taken)
        replies = after.replies(msg.t, msg.w, msg.rho, TRACE, account)
        state, _ = server.conclude(state, msg, replies)
        account = after
        yield msg, state, account, replies, used.copy()


def test_w_moves_as_gradient_descent_on_gradients_of_which_some_are_old_and_fade():
    absent = np.random.default_rng(1).random((ROUNDS + 1, AGENTS)) < 0.4
    for msg, state, _, _, used in run(lambda t, p: not absent[t, p]):
        np.testing.assert_allclose(state.w, msg.w - used.mean(0) / msg.rho, atol=1e-12)


def test_an_absence_of_a_third_of_the_run_leaves_duals_in_agreement_and_an_optimum_that_is_reached():
    last = None
    for _, state, account, _, _ in run(lambda t, p: p != 2 or not 10 <= t < 20):
        last = state.w
        assert account.accepted[2] == (9 if 10 <= state.t < 20 else state.t)
    np.testing.assert_allclose(last, TARGETS.mean(0), atol=0.05)


def test_the_mean_of_duals_is_that_of_all_agents_whoever_is_missing():
    absent = np.random.default_rng(2).random((ROUNDS + 1, AGENTS)) < 0.5
    told = None
    for msg, state, account, replies, _ in run(lambda t, p: not absent[t, p], momentum=0.3):
        if told is not None and replies.dual_mean is None:  # the server's own mean is then theirs
            np.testing.assert_allclose(told, account.dual.mean(0), atol=1e-12)
        fresh = account.accepted == msg.t
        if fresh.all() and replies.dual_mean is not None:
            np.testing.assert_allclose(replies.dual_mean, account.dual.mean(0), atol=0)
        told = state.own["dual_mean"]


def test_with_everybody_there_the_mean_is_left_to_the_server():
    for _, _, account, replies, _ in run(lambda _t, _p: True):
        assert replies.dual_mean is None
        np.testing.assert_array_equal(replies.z_mean, np.stack(list(account.z)).mean(0))


def test_an_agent_that_never_answered_counts_with_a_gradient_of_zero():
    for msg, state, account, _, used in run(lambda _t, p: p != 0):
        assert not used[0].any()
        assert account.accepted[0] == 0
        np.testing.assert_allclose(state.w, msg.w - used.mean(0) / msg.rho, atol=1e-12)


def test_a_late_answer_is_taken_with_the_model_that_it_was_asked_at():
    account, agent, rng = Account.zero(1, SHAPE, Order.ZWD), Honest(0), np.random.default_rng(3)
    first, second, third = (rng.normal(size=SHAPE) for _ in range(3))
    z, _ = agent.answer(1, first, 0.5, 0)
    account = account.after([Taken(0, 1, first, 0.5, z)])
    z, dual = agent.answer(2, second, 0.7, 1)  # asked at `second`, heard while round 3 asks at `third`
    late = Taken(0, 2, second, 0.7, z)
    assert account.hash_of_dual(late) == fingerprint(2, {"dual": dual})
    assert account.hash_of_dual(Taken(0, 2, third, 0.7, z)) != fingerprint(2, {"dual": dual})
    account = account.after([late])
    np.testing.assert_allclose(account.slope[0], second - TARGETS[0], atol=1e-12)
    replies = account.replies(3, third, 0.9, TRACE, account)
    moved = replies.z_mean - replies.dual_mean / 0.9
    np.testing.assert_allclose(moved, third - FADING * (second - TARGETS[0]) / 0.9, atol=1e-12)


def test_where_w_moves_first_an_agent_keeps_the_dual_of_its_round():
    rng = np.random.default_rng(4)
    account, w, z = Account.zero(1, SHAPE, Order.WZD), rng.normal(size=SHAPE), rng.normal(size=SHAPE)
    one = Taken(0, 1, w, 0.5, z)
    after = account.after([one])
    np.testing.assert_array_equal(after.dual[0], 0.5 * (w - z))
    assert account.hash_of_dual(one) == fingerprint(1, {"dual": 0.5 * (w - z)})


def test_an_account_is_what_was_saved_of_it():
    *_, (_, _, account, _, _) = run(lambda t, p: (t + p) % 3 > 0)
    again = Account.zero(AGENTS, SHAPE, Order.ZWD).load(account.save())
    for name, array in account.save().items():
        np.testing.assert_array_equal(getattr(again, name), array)


def test_every_round_is_answered_or_missed():
    said, rng = Attendance.zero(3), np.random.default_rng(0)
    for _ in range(20):
        fresh = rng.random(3) < 0.5
        late = ~fresh & (rng.random(3) < 0.5)
        before = said
        said = said.after(np.ones(3, bool), fresh, late, ~fresh & ~late)
        for p in range(3):
            assert said.in_a_row[p] == (0 if fresh[p] or late[p] else before.in_a_row[p] + 1)
    assert (said.answered + said.missed == 20).all()
    assert (said.released == said.answered + said.late).all()
    assert said.of(1) == pytest.approx({name: int(array[1]) for name, array in said.save().items()})
