"""Sums of several runs in one pass equal those of each run alone, whoever comes first and whoever leaves."""

import threading
import time

import numpy as np
import pytest

from tacit.engine import passes
from tacit.engine.kernels import compiled, normals
from tacit.engine.passes import Blas, Form, exact_sums
from tacit.engine.sums import Rendezvous, SharedSums, SumsAsked
from tacit.errors import DataError
from tacit.methods.task import plain_sums
from tacit.privacy import noise
from tacit.problem.loss import Softmax, Squared
from tacit.problem.objective import Problem
from tacit.problem.sensitivity import Clipped, Declared, Observed
from tacit.types import Norm, Shard
from tests.conftest import federation

OVER = federation(sizes=(1, 40, 17))
BOUNDS = [
    Clipped(Norm.L2, 0.3), Clipped(Norm.L1, 0.5), Clipped(Norm.L2, 1e6), Observed(Norm.L1), Observed(Norm.L2),
    Declared(Norm.L2, 1e6, row_norm=2.0), Clipped(Norm.L2, 0.05),  # declared: true for either loss, so it clips nothing
]  # fmt: skip


@pytest.fixture(params=[*Form, None], ids=lambda form: form.name.lower() if form else "blas")
def kind(request, monkeypatch):
    """One form of the compiled pass, or none."""
    if request.param is None:
        monkeypatch.setenv("TACIT_NO_KERNELS", "1")
    elif compiled() is None:
        pytest.skip("the loops are not compiled")
    monkeypatch.setattr(passes, "layouts_that_fit", lambda *_: [passes.Layout(request.param)])
    return request.param


def questions(bounds, seed=0):
    """Every other one at a point of each agent's own."""
    rng = np.random.default_rng(seed)
    shapes = [(4, 3) if n % 2 else (3, 4, 3) for n in range(len(bounds))]
    return [SumsAsked(3 * rng.normal(size=shape), bound) for shape, bound in zip(shapes, bounds, strict=True)]


@pytest.mark.parametrize("loss", [Softmax(), Squared()])
@pytest.mark.parametrize("n_runs", [1, 2, 7])
def test_one_pass_equals_plain_sums_for_every_bound(kind, loss, n_runs):
    shared, problem = SharedSums(OVER.shards, loss, 3, n_runs), Problem(3, 1.0, loss)
    assert isinstance(shared.sums, Blas) if kind is None else shared.sums.form is kind
    asked = questions(BOUNDS)
    for start in range(0, len(asked), n_runs):
        batch = asked[start : start + n_runs]
        for question, answer in zip(batch, shared(batch), strict=True):
            assert shared.serves(shared.shards, loss, question.bound)
            plain = plain_sums(OVER.shards, problem, question.points, question.bound)
            assert answer.dtype == np.float64
            np.testing.assert_allclose(answer, plain, rtol=0, atol=2e-6 * max(1, np.abs(plain).max()))


@pytest.mark.usefixtures("kind")
def test_points_common_to_all_agents_are_packed_once_and_give_the_same():
    shared = SharedSums(OVER.shards, Softmax(), 3, 2)
    point = np.random.default_rng(0).normal(size=(4, 3))
    (common,) = shared([SumsAsked(point, BOUNDS[0])])
    (each,) = shared([SumsAsked(np.stack([point] * 3), BOUNDS[0])])
    np.testing.assert_array_equal(common, each)


@pytest.mark.usefixtures("kind")
def test_a_record_beyond_its_declared_norm_is_refused():
    shared = SharedSums(OVER.shards, Softmax(), 3, 1)
    with pytest.raises(DataError, match="above the declared"):
        shared([SumsAsked(np.zeros((4, 3)), Declared(Norm.L2, 1.0, row_norm=0.1))])


def test_other_bounds_losses_and_records_are_not_served():
    shared = SharedSums(OVER.shards, Softmax(), 3, 1)
    assert not shared.serves(shared.shards, Softmax(), Clipped(Norm.INF, 1.0))
    assert not shared.serves(shared.shards, Squared(), BOUNDS[0])
    assert not shared.serves(OVER.shards[:2], Softmax(), BOUNDS[0])
    double = tuple(Shard(shard.x, shard.y, dtype=np.float64) for shard in OVER.shards)
    exact = SharedSums(double, Softmax(), 3, 1)
    assert not exact.serves(exact.shards, Softmax(), BOUNDS[0])


@pytest.mark.skipif(compiled() is None, reason="the loops are not compiled")
@pytest.mark.parametrize("loss", [Softmax(), Squared()])
@pytest.mark.parametrize("bound", [bound for bound in BOUNDS if bound.public], ids=str)
@pytest.mark.parametrize("density", [0.1, 1.0])
def test_exact_sums_are_those_of_numpy_in_float64(loss, bound, density):
    over = federation(2, 40, 3, sizes=(300, 20))
    for shard in over.shards:
        sparse = shard.x * (np.random.default_rng(0).random(shard.x.shape) < density)
        shard = Shard(sparse / 40, shard.y)
        point = 5 * np.random.default_rng(1).normal(size=(40, 3))
        (plain,) = plain_sums([Shard(shard.x, shard.y, dtype=np.float64)], Problem(3, 1.0, loss), point, bound)
        exact = exact_sums(shard, loss, bound, 3)(point)
        assert exact.dtype == np.float64
        np.testing.assert_allclose(exact, plain, rtol=0, atol=1e-12 * max(1, np.abs(plain).max()))


@pytest.mark.skipif(compiled() is None, reason="the loops are not compiled")
def test_a_clipped_record_keeps_its_bound_in_exact_sums_at_any_scale():
    """One record alone: its gradient is the sum, and may pass the bound by a few roundings at most."""
    rng = np.random.default_rng(0)
    for scale in (1e-30, 1e-3, 1.0, 1e4, 1e30):
        for norm in (Norm.L1, Norm.L2):
            shard = Shard((scale * rng.normal(size=(1, 21))).astype(np.float32), np.array([1]))
            bound, point = Clipped(norm, 0.3), rng.normal(size=(21, 3)) * 10 / scale
            moved = exact_sums(shard, Softmax(), bound, 3)(point)
            size = np.abs(moved).sum() if norm is Norm.L1 else np.sqrt((moved**2).sum())
            assert np.isfinite(moved).all()
            assert size <= bound.target * (1 + 1e-13)


def test_exact_sums_know_no_bound_that_is_read_from_the_records():
    assert exact_sums(OVER.shards[0], Softmax(), Observed(Norm.L2), 3) is None


def meet(lengths, pauses):
    """Runs that ask as many questions as `lengths` say; returns the batches, and what each run heard."""
    batches, heard = [], {r: [] for r in range(len(lengths))}

    def answer(asked):
        batches.append(tuple(asked))
        return [(r, n, len(asked)) for r, n in asked]

    meeting = Rendezvous(answer, len(lengths))

    def run(r):
        for n in range(lengths[r]):
            time.sleep(pauses[(r + n) % len(pauses)])
            heard[r].append(meeting.ask(r, (r, n)))
        time.sleep(pauses[r % len(pauses)])
        meeting.leave(r)

    threads = [threading.Thread(target=run, args=(r,), daemon=True) for r in range(len(lengths))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=10)
        assert not thread.is_alive()
    return batches, heard


@pytest.mark.parametrize("pauses", [[0.0], [0.003, 0.0], [0.0, 0.002, 0.005]])
def test_the_nth_pass_serves_the_nth_question_of_every_run_that_has_one(pauses):
    lengths = [3, 0, 5, 1]  # the second never asks
    batches, heard = meet(lengths, pauses)
    assert batches == [tuple((r, n) for r in range(4) if n < lengths[r]) for n in range(5)]
    assert [[n for _, n, _ in heard[r]] for r in range(4)] == [list(range(n)) for n in lengths]


def test_an_error_reaches_every_run_that_waits_and_nobody_hangs():
    meeting = Rendezvous(lambda _asked: 1 / 0, 2)
    met = []

    def run(r):
        try:
            meeting.ask(r, r)
        except ZeroDivisionError:
            met.append(r)
        meeting.leave(r)

    threads = [threading.Thread(target=run, args=(r,), daemon=True) for r in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=10)
    assert sorted(met) == [0, 1]


def test_compiled_noise_is_the_noise_of_the_same_key():
    ours, plain = normals()((3, 1), 5, 2, (7, 4)), noise.gaussian((3, 1), 5, 2, (7, 4))
    np.testing.assert_allclose(ours, plain, rtol=1e-4, atol=1e-5)
    assert ours.dtype == np.float32
