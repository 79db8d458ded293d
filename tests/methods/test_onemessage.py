"""One message: what a record moves, what the noise hides, and what the server makes of it."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.audit import methods as audit
from tacit.errors import IncompatibleError, SpecError
from tacit.methods import noisy_ridge, onemessage
from tacit.methods.method import Budget, simulate
from tacit.methods.noisy_ridge import Known, NoisyMoments
from tacit.methods.onemessage import OneMessage
from tacit.methods.promise import Trusted, Unit
from tacit.methods.registry import METHODS
from tacit.methods.task import Task
from tacit.privacy.summed import InSum
from tacit.problem.loss import Softmax, Squared
from tacit.problem.objective import Problem
from tacit.types import Shard
from tests.methods.tasks import empty, task

SILENT = OneMessage(0.0, 1.0)


def classes(n=3000, features=8, n_classes=3, n_agents=3, seed=0, row_norm=1.0):
    """Gaussian classes, rows of norm row_norm, dealt to agents; and as many records for a test."""
    rng = np.random.default_rng(seed)
    middle = rng.normal(size=(n_classes, features))
    y = rng.integers(n_classes, size=2 * n)
    x = middle[y] + rng.normal(size=(2 * n, features))
    x *= row_norm / np.linalg.norm(x, axis=1, keepdims=True)
    shards = tuple(Shard(x[rows], y[rows], np.float64) for rows in np.array_split(np.arange(n), n_agents))
    own = Task.whole(shards, Problem(n_agents, 1 / n, beta=0.0), (features, n_classes), row_norm, seed)
    return own, Shard(x[n:], y[n:], np.float64)


def sent(method, of):
    """What the first agent sends."""
    return method.answer(of.alone(0), {}, method.ask(of, method.start(of)))[1]["answer"][0]


def with_record(of, x, y):
    """The first record of the first agent is this one."""
    first, *rest = of.shards
    rows, labels = first.x.copy(), first.y.copy()
    rows[0], labels[0] = x, y
    return replace(of, shards=(replace(first, x=rows, y=labels), *rest))


def moved(of, x, y, balance):
    """How far a record moves what its agent sends, against zeros in its place."""
    method = OneMessage(0.0, balance)
    return np.linalg.norm(sent(method, with_record(of, x, y)) - sent(method, with_record(of, 0 * x, y)))


@given(seed=st.integers(0, 10**6), balance=st.floats(0.01, 100), length=st.floats(0, 1), row_norm=st.floats(0.1, 10))
def test_no_record_moves_a_message_further_than_the_noise_is_scaled_for(seed, balance, length, row_norm):
    own, _ = classes(30, 5, row_norm=row_norm)
    rng = np.random.default_rng(seed)
    x = rng.normal(size=5)
    x *= row_norm / np.linalg.norm(x)
    s = OneMessage(0.0, balance).sensitivity(own)
    assert moved(own, length * x, rng.integers(3), balance) <= s
    assert moved(own, x, rng.integers(3), balance) == pytest.approx(s, rel=1e-9)  # and so no less would do
    assert s == pytest.approx(row_norm**2 * math.sqrt(1 + balance**2 * 2 / 3))


@pytest.mark.parametrize("length", [1.001, 30.0, 1e20])
def test_a_row_that_is_longer_than_declared_is_shrunk_by_its_agent(length):
    own, _ = classes(30, 5)
    assert moved(own, length * np.eye(5)[0], 1, 1.0) <= OneMessage(0.0, 1.0).sensitivity(own)


def test_a_message_holds_the_moments_and_has_their_norm():
    own, _ = classes(40, 5, n_agents=1)
    (shard,) = own.shards
    y = np.eye(3)[shard.y] - 1 / 3
    v = sent(OneMessage(0.0, 0.5), own)
    assert v.shape == (onemessage.message_size(own.shape),) == (5 * 6 // 2 + 5 * 3,)
    found = onemessage.unpacked(v, own.shape, 0.5)
    np.testing.assert_allclose(found.gram, shard.x.T @ shard.x, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.cross, shard.x.T @ y, rtol=0, atol=1e-12)
    expected = np.square(shard.x.T @ shard.x).sum() + 0.25 * np.square(shard.x.T @ y).sum()
    assert np.square(v).sum() == pytest.approx(expected)


def test_blocks_of_records_add_up(monkeypatch):
    own, _ = classes(100, 5, n_agents=1)
    whole = sent(SILENT, own)
    monkeypatch.setattr("tacit.types.BLOCK", 7)
    np.testing.assert_allclose(sent(SILENT, own), whole, rtol=1e-12, atol=1e-12)


def test_every_agent_has_noise_of_its_own_and_new_noise_for_every_seed():
    own = empty(classes(30, 5)[0])
    method = OneMessage(2.0, 1.0)
    msg = method.ask(own, method.start(own))
    rows = [method.answer(replace(own, seed=seed), {}, msg)[1]["answer"] for seed in (0, 1)]
    assert len(np.unique(np.concatenate(rows))) == 6 * onemessage.message_size(own.shape)


@pytest.mark.parametrize("colluding", [0, 1, 2])
def test_the_server_knows_the_noise_of_the_sum_whoever_is_trusted(colluding):
    own = classes(30, 5)[0]
    alone, shared = OneMessage(2.0, 1.0), OneMessage(2.0, 1.0, InSum(colluding))
    assert alone.noise_std(own) == pytest.approx(2 * OneMessage(0.0, 1.0).sensitivity(own))
    assert alone.total_std(own) == math.sqrt(3) * alone.noise_std(own)
    assert shared.total_std(own) == pytest.approx(alone.total_std(own) / math.sqrt(3 - colluding), rel=1e-4)


def test_behind_a_sum_the_server_sees_the_moments_of_all_and_the_noise_of_their_words():
    own, method = classes(300, 5)[0], OneMessage(2.0, 1.0, InSum())
    clean = SILENT.answer(own, {}, SILENT.ask(own, SILENT.start(own)))[1]["answer"].sum(0)
    seen = np.array([next(simulate(method, replace(own, seed=seed)))[1].seen[0] for seed in range(100)])
    noise = (seen - clean) / method.total_std(own)
    assert np.mean(noise**2) == pytest.approx(1, abs=5 * math.sqrt(2 / noise.size))
    assert np.mean(noise) == pytest.approx(0, abs=5 / math.sqrt(noise.size))


def test_behind_a_sum_only_the_sum_is_seen():
    own = classes(30, 5)[0]
    for method, shape, width in ((OneMessage(2.0, 1.0, InSum()), (30,), 8), (OneMessage(2.0, 1.0), (3, 30), 4)):
        ((_, info),) = simulate(method, own)
        assert [array.shape for array in info.seen] == [shape]
        assert info.sent == width * 30


@pytest.mark.parametrize(("name", "trusted"), [("onemessage", Trusted.NOBODY), ("onemessage-sum", Trusted.SUM)])
def test_it_takes_one_round_and_spends_the_budget(name, trusted):
    own, entry = task(), METHODS[name]
    method = entry.build(own, Budget(1.0, 1e-5), entry.grid[0])
    promise = method.promise(own)
    assert method.rounds == 1
    assert (promise.unit, promise.trusted) == (Unit.RECORD, trusted)
    assert 0.99 < promise.total(method.rounds, 1e-5).epsilon <= 1.0


@pytest.mark.parametrize("exponent", [-90, 90])
@pytest.mark.parametrize("multiplier", [0.0, 1.0])
def test_a_unit_of_the_features_changes_nothing(exponent, multiplier):
    """Also where float32 could hold neither R^2 nor the noise."""
    unit = 2.0**exponent
    (one, _), (other, _) = classes(300), classes(300, row_norm=unit)
    for in_sum in (None, InSum()):
        w, scaled = (next(simulate(OneMessage(multiplier, 1.0, in_sum), own))[0].w for own in (one, other))
        np.testing.assert_allclose(scaled * unit, w, rtol=1e-6)


def test_without_noise_the_model_is_ridge_regression_on_one_hot_labels():
    own, test = classes()
    ((state, _),) = simulate(SILENT, own)
    x, y = np.concatenate([s.x for s in own.shards]), np.eye(3)[np.concatenate([s.y for s in own.shards])]
    found = []
    for penalty in Known(3000, 1.0, 2000.0, 0.0).penalties:
        ridge = np.linalg.solve(x.T @ x + penalty * np.eye(8), x.T @ y)
        ridge -= ridge.mean(1, keepdims=True)
        found.append(np.abs(state.w / np.linalg.norm(state.w) - ridge / np.linalg.norm(ridge)).max())
        if found[-1] < 1e-9:
            np.testing.assert_array_equal((test.x @ state.w).argmax(1), (test.x @ ridge).argmax(1))
    assert min(found) < 1e-9


def test_where_noise_outweighs_the_records_the_penalty_alone_holds_a_direction():
    """d = (-5, 3): w = (c_1 / penalty, c_2 / (3 + penalty)) up to a factor."""
    released = NoisyMoments(np.diag([-5.0, 3.0]), np.array([[1.0, -1.0], [2.0, -2.0]]))
    known = Known(10, 1.0, 5.0, 2.0, least=1e3)  # one penalty is left
    w = noisy_ridge.fit(released, (released, released), known, softmax=False)
    assert w[1, 0] / w[0, 0] == pytest.approx(2 * 1e3 / (1e3 + 3))
    np.testing.assert_allclose(w[:, 0], -w[:, 1])


def test_a_release_of_noise_alone_gives_a_model_of_finite_numbers():
    own = empty(classes(30, 8)[0])
    for seed in range(50):
        ((state, _),) = simulate(OneMessage(50.0, 1.0), replace(own, seed=seed))
        assert np.isfinite(state.w).all()


def test_the_halves_that_choose_the_penalty_have_independent_noise(monkeypatch):
    """Each has twice the variance of the sum, and what they share is nothing: over 400 seeds."""
    own, method, seen = empty(classes(30, 4)[0]), OneMessage(2.0, 1.0), []

    def listen(released, halves, *_):
        seen.append([part.gram for part in (released, *halves)])
        return np.zeros(own.shape)

    monkeypatch.setattr(onemessage, "fit", listen)
    for seed in range(400):
        next(simulate(method, replace(own, seed=seed)))
    rows, columns = np.triu_indices(4, 1)
    std = method.noise_std(own) * math.sqrt(3 / 2)  # of three agents, off the diagonal
    released, first, second = np.array(seen)[:, :, rows, columns].transpose(1, 0, 2) / std
    n = first.size
    assert np.mean(released**2) == pytest.approx(1, abs=5 * math.sqrt(2 / n))
    assert np.mean(first**2) == pytest.approx(2, abs=10 * math.sqrt(2 / n))
    assert np.mean(first * second) == pytest.approx(0, abs=10 / math.sqrt(n))


def squares(own, w):
    """|Y - X w|^2 - |Y|^2 of all records, without noise, for the best factor of w."""
    x, y = np.concatenate([s.x for s in own.shards]), np.concatenate([s.y for s in own.shards])
    inner, square = (w * (x.T @ (np.eye(own.shape[1])[y] - 1 / own.shape[1]))).sum(), np.square(x @ w).sum()
    return -(inner**2) / square


@pytest.mark.parametrize("multiplier", [0.3, 3.0, 10.0])
@pytest.mark.parametrize("in_sum", [None, InSum()])
def test_the_penalty_that_the_release_chooses_is_nearly_the_best_there_is(multiplier, in_sum, monkeypatch):
    """Of all penalties, in the mean over seeds; the smallest or the largest by itself loses more."""
    method, lost, one = OneMessage(multiplier, 1.0, in_sum), [], Known.penalties.fget
    for seed in range(5):
        own, _ = classes(3000, 30, seed=seed)
        fits = [squares(own, next(simulate(method, own))[0].w)]
        known = Known(3000, 1.0, 2000.0, method.total_std(own) * math.sqrt(2 * 30))
        for penalty in one(known):
            with monkeypatch.context() as only:
                only.setattr(Known, "penalties", np.array([penalty]))
                fits.append(squares(own, next(simulate(method, own))[0].w))
        best = min(fits)
        lost.append([(best - fit) / best for fit in (fits[0], fits[1], fits[-1])])
    chosen, largest, smallest = np.mean(lost, axis=0)
    assert chosen < 0.05
    assert chosen < max(largest, smallest)


def error(w, shard):
    return np.mean((shard.x @ w).argmax(1) != shard.y)


@pytest.mark.parametrize("name", ["onemessage", "onemessage-sum"])
def test_with_many_records_little_is_lost_to_the_noise(name):
    own, test = classes(20_000, 10)
    entry = METHODS[name]
    errors = [
        error(next(simulate(entry.build(own, Budget(epsilon), entry.grid[0]), own))[0].w, test)
        for epsilon in (math.inf, 8.0, 1.0)
    ]
    assert errors[0] < 0.3
    assert errors[1] < errors[0] + 0.01
    assert errors[2] < errors[0] + 0.02


@pytest.mark.parametrize("multiplier", [0.0, 1.0, 5.0])
def test_scores_are_scaled_for_probabilities(multiplier):
    own, test = classes(3000, 8)
    ((state, _),) = simulate(OneMessage(multiplier, 1.0), own)
    loss = {times: Softmax().value(test.x @ (times * state.w), test.y) / len(test) for times in (0.25, 0.5, 1, 2, 4)}
    assert loss[1] < min(loss.values()) + 0.03
    assert loss[1] < min(loss[0.25], loss[4])


def test_for_squares_scores_are_those_of_the_regression():
    own, _ = classes(3000, 8)
    own = replace(own, problem=replace(own.problem, loss=Squared()))
    ((state, _),) = simulate(SILENT, own)
    x, y = np.concatenate([s.x for s in own.shards]), np.eye(3)[np.concatenate([s.y for s in own.shards])] - 1 / 3
    np.testing.assert_allclose(state.w, np.linalg.lstsq(x, y, rcond=None)[0], rtol=0.02, atol=0.01)


def test_a_small_table_without_noise_is_not_fitted_to_the_last_record():
    """As many features as records: least squares would explain every label."""
    own, test = classes(60, 60, n_agents=1, seed=3)
    ((state, _),) = simulate(SILENT, own)
    x, y = own.shards[0].x, np.eye(3)[own.shards[0].y] - 1 / 3
    assert error(state.w, test) <= error(np.linalg.lstsq(x, y, rcond=None)[0], test)
    assert error(state.w, own.shards[0]) > 0 or np.abs(x @ state.w - y).max() > 1e-3


def test_the_regulariser_of_the_problem_is_the_least_penalty():
    own, _ = classes(300)
    own = replace(own, problem=replace(own.problem, beta=5.0, loss=Squared()))
    ((state, _),) = simulate(SILENT, own)
    x, y = np.concatenate([s.x for s in own.shards]), np.eye(3)[np.concatenate([s.y for s in own.shards])] - 1 / 3
    ridge = np.linalg.solve(x.T @ x + 300 * 2 * 5.0 * np.eye(8), x.T @ y)
    np.testing.assert_allclose(state.w / np.linalg.norm(state.w), ridge / np.linalg.norm(ridge), rtol=0, atol=1e-9)


class Unknown:
    curvature = 1.0


@pytest.mark.parametrize(("change", "balance", "says"), [
    ({"shape": (4097, 3)}, 1.0, "4097 features"),
    ({"shape": (4000, 3), "sizes": (10,) * 100}, 1.0, "8.01e\\+08 numbers in all"),
    ({"problem": Problem(3, 0.1, Unknown())}, 1.0, "softmax or squared"),
    ({}, 1e-4, "from 0.001 to 1000"),
    ({}, 1e4, "from 0.001 to 1000"),
])  # fmt: skip
def test_what_it_cannot_do_is_refused_by_public_numbers(change, balance, says):
    facts = replace(task().facts, **change)
    for name in ("onemessage", "onemessage-sum"):
        choice = METHODS[name].grid[0] | {"balance": balance}
        with pytest.raises((IncompatibleError, SpecError), match=says):
            METHODS[name].build(facts, Budget(1.0), choice)


def half(method, facts, honest=OneMessage.sensitivity):
    """Agents draw half of the noise."""
    return honest(method, facts) / 2


def without_labels(_method, facts):
    """The noise is scaled for X'X alone."""
    return facts.row_norm**2


@pytest.mark.parametrize("name", ["onemessage", "onemessage-sum"])
@pytest.mark.parametrize("mistaken", [half, without_labels])
def test_the_audit_catches_too_little_noise(name, mistaken, monkeypatch):
    """Behind a sum, where nobody colludes: the noise of those who may is more than the claim needs."""
    present, budget = audit.task(), Budget(3.0, 1e-5)
    honest = audit.short(METHODS[name], present, budget)
    wrong = replace(honest, in_sum=honest.in_sum and InSum(0))
    monkeypatch.setattr(OneMessage, "sensitivity", mistaken)
    several = audit.attacks(wrong, present, audit.without(present, Unit.RECORD), 800, 0)
    assert audit.weigh_all("method", name, audit.claimed(honest, present, budget), several, 0.95).verdict == "VIOLATED"
