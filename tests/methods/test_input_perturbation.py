"""Input perturbation: what a record moves, what the noise hides, and what the server makes of noisy records."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.audit import methods as audit
from tacit.errors import IncompatibleError, SpecError
from tacit.methods.input_perturbation import ENTRY, InputPerturbation, half_size, sensitivity
from tacit.methods.method import Budget, simulate
from tacit.methods.promise import Unit
from tacit.methods.task import Task
from tacit.problem.loss import Huber
from tacit.problem.objective import Problem
from tacit.types import Shard
from tests.methods.tasks import task
from tests.methods.test_onemessage import classes

SILENT, QUIET = InputPerturbation(0.0, 1.0), InputPerturbation(0.0, 0.8)


def sent(method, of):
    """What agents send: (P, max_p I_p, J + K)."""
    return method.answer(of, {}, method.ask(of, method.start(of)))[1]["records"]


def error(w, test):
    return float(np.mean((test.x @ w).argmax(1) != test.y))


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), balance=st.floats(0.1, 3), length=st.floats(0.01, 5))
def test_a_record_moves_its_own_row_alone_and_by_no_more_than_the_noise_is_scaled_for(seed, balance, length):
    rng, own = np.random.default_rng(seed), audit.task()
    first, *rest = own.shards
    rows, labels = first.x.copy(), first.y.copy()
    rows[-1], labels[-1] = rng.normal(size=4), rng.integers(3)
    rows[-1] *= length / np.linalg.norm(rows[-1])  # longer than declared, for some
    present = replace(own, shards=(replace(first, x=rows, y=labels), *rest))
    method = InputPerturbation(0.0, balance)
    with_it, without_it = (sent(method, side) for side in (present, audit.without(present, Unit.RECORD)))
    moved = np.linalg.norm(with_it - without_it, axis=2)
    assert (np.flatnonzero(moved) == [len(rows) - 1]).all()
    assert moved.max() <= sensitivity(own, balance) * (1 + 1e-6)  # what is compared was rounded to float32
    if length >= 1:
        assert moved.max() == pytest.approx(sensitivity(own, balance), rel=1e-6)


def test_an_absent_record_has_no_label():
    own = audit.without(audit.task(), Unit.RECORD)
    assert (sent(SILENT, own)[0, len(own.shards[0]) - 1] == 0).all()


def test_every_record_has_noise_of_its_own_and_the_rows_after_the_last_have_none():
    own = task()
    method = InputPerturbation(2.0, 1.0)
    noise = sent(method, own) - sent(SILENT, own)
    for row, size in zip(noise, own.sizes, strict=True):
        assert (row[:size] != 0).all()
        assert (row[size:] == 0).all()
    drawn = np.concatenate([row[:size].ravel() for row, size in zip(noise, own.sizes, strict=True)])
    assert len(np.unique(drawn)) > 0.99 * len(drawn)


def test_noise_is_drawn_afresh_for_every_block_of_records(monkeypatch):
    own = task()
    whole = sent(InputPerturbation(2.0, 1.0), own)
    monkeypatch.setattr("tacit.types.BLOCK", 2)
    parts = sent(InputPerturbation(2.0, 1.0), own)
    assert whole.shape == parts.shape
    values = (parts - sent(SILENT, own))[0, : own.sizes[0]]
    assert len(np.unique(values)) == values.size


def test_the_moments_that_the_server_reads_have_no_bias():
    """Over many draws the mean of X'X and X'Y comes to that of the records, to four standard errors."""
    own, _ = classes(n=31, features=3, n_agents=2)
    method, draws = InputPerturbation(1.5, 0.8), 600
    exact = [QUIET.moments(own, sent(QUIET, own), half) for half in (0, 1)]
    for half in (0, 1):
        found = [method.moments(own, sent(method, replace(own, seed=seed)), half) for seed in range(draws)]
        for name in ("gram", "cross"):
            tried = np.stack([getattr(one, name) for one in found])
            off = (tried.mean(0) - getattr(exact[half], name)) / (tried.std(0) / math.sqrt(draws))
            assert np.abs(off).max() < 4


def test_the_halves_hold_every_record_once():
    own, _ = classes(n=31, n_agents=3)
    assert half_size(own, 0) + half_size(own, 1) == own.n_records
    assert half_size(own, 0) == sum(len(shard.y[::2]) for shard in own.shards)


def test_with_little_noise_it_learns_and_with_much_it_says_nothing():
    own, test = classes(n=4000, seed=1)
    chance, errors = 2 / 3, []
    for epsilon in (math.inf, 50.0, 0.01):
        method = ENTRY.build(own, Budget(epsilon, 1e-6), ENTRY.grid[0])
        errors.append(error(next(simulate(method, own))[0].w, test))
    assert errors[0] < 0.2
    assert errors[1] < errors[0] + 0.1
    assert abs(errors[2] - chance) < 0.25


def test_to_take_the_known_part_of_the_noise_off_pays():
    """The class is in the difference of two features that go together: noise on the diagonal of X'X hides that."""

    class Uncorrected(InputPerturbation):
        def moments(self, facts, records, first):
            found = InputPerturbation.moments(self, facts, records, first)
            found.gram[np.diag_indices(len(found.gram))] += half_size(facts, first) * self.noise_std(facts) ** 2
            return found

    rng = np.random.default_rng(0)
    both, apart = rng.uniform(-0.5, 0.5, 20_000), rng.uniform(-0.2, 0.2, 20_000)
    x, y = np.stack([both + apart, both], 1), (apart > 0).astype(int)
    shard, test = (Shard(x[rows], y[rows], np.float64) for rows in (slice(10_000), slice(10_000, None)))
    own = Task.whole((shard,), Problem(1, 1e-4, beta=0.0), (2, 2), 1.0)
    corrected, plain = (
        np.mean([error(next(simulate(kind(0.2, 1.0), replace(own, seed=s)))[0].w, test) for s in range(5)])
        for kind in (InputPerturbation, Uncorrected)
    )
    assert corrected < plain / 2


def test_what_does_not_fit_is_refused():
    own = task()
    with pytest.raises(SpecError, match="balance must be from"):
        ENTRY.build(own, Budget(1.0), {"balance": 1e9})
    with pytest.raises(IncompatibleError, match="squares alone"):
        ENTRY.build(replace(own, problem=Problem(3, 0.1, loss=Huber())), Budget(1.0), ENTRY.grid[0])
    many = replace(own.facts, sizes=(10**6, 10**6), shape=(784, 10))
    with pytest.raises(IncompatibleError, match=r"2 agents with up to 1000000 records of 784 features send 1\.59e\+09"):
        ENTRY.build(many, Budget(1.0), ENTRY.grid[0])
