"""The law of a noisy objective's minimiser: its density, and how far one record moves it, against what is declared."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import DataError, IncompatibleError
from tacit.methods.objective_perturbation import (
    Normal,
    Radial,
    check_loss,
    check_records,
    jacobian,
    least_convexity,
    record_gradient,
)
from tacit.methods.solve import minimise
from tacit.methods.task import Task
from tacit.problem.loss import Squared
from tacit.problem.objective import Problem
from tacit.problem.regularizer import NoRegularizer
from tacit.types import Shard

I = 10  # noqa: E741


def small(x, y, n_classes, agents=1, row_norm=1.0) -> Task:
    """The same records at every agent, and no regulariser of their own."""
    shard = Shard(np.asarray(x), np.asarray(y), dtype=np.float64)
    problem = Problem(agents, 1 / I, regularizer=NoRegularizer(), beta=0.0)
    return Task.whole((shard,) * agents, problem, (shard.x.shape[1], n_classes), row_norm)


def without_first(own: Task) -> Task:
    shards = tuple(Shard(s.x[1:], s.y[1:], dtype=np.float64) for s in own.shards)
    return replace(own, shards=shards)


def gradient(own: Task, z, mu):
    return own.problem.gradient(z, own.shards[0]) + mu * z


def log_determinant(own: Task, z, mu):
    h = own.problem.loss.probability(own.shards[0].x @ z)
    out = mu * np.eye(z.size)
    for x, p in zip(own.shards[0].x, h, strict=True):
        out += own.problem.weight * np.kron(np.outer(x, x), np.diag(p) - np.outer(p, p))
    return np.linalg.slogdet(out)[1]


def log_density(own: Task, z, mu, noise):
    """Up to the normaliser of nu, which neighbours share."""
    b = np.linalg.norm(gradient(own, z, mu)) / (record_gradient(own) * noise.multiplier)
    nu = -b if isinstance(noise, Radial) else -(b**2) / 2
    return nu + log_determinant(own, z, mu)


def opposed(n_classes=3) -> Task:
    """A first record that all others contradict, in its own direction: the one that moves most."""
    x = np.zeros((9, 2))
    x[:, 0] = 1.0
    x[5:, 1], x[5:, 0] = 0.6, 0.8
    return small(x, [0] + [1] * 8, n_classes)


def points(own: Task, rng):
    """Anywhere, and far out where the first record is wrong."""
    for scale in (0.1, 1.0, 10.0):
        yield from scale * rng.normal(size=(60, *own.shape))
    away = np.zeros(own.shape)
    away[0, 0], away[0, 1] = -1, 1
    yield from (r * away for r in (1.0, 10.0, 100.0))


def test_the_density_integrates_to_one():
    own, mu, noise = small([[1.0], [0.7], [0.5]], [0, 1, 0], 2), 0.2, Radial(0.8)
    x, y = own.shards[0].x[:, 0], own.shards[0].y
    scale = record_gradient(own) * noise.multiplier
    line = np.linspace(-20 * scale / mu, 20 * scale / mu, 801)
    z = np.stack(np.meshgrid(line, line, indexing="ij"), -1)[..., None, :]  # scores are x z, one feature, two classes
    h = 1 / (1 + np.exp(x * (z[..., 1] - z[..., 0])))  # of the first class
    slope = ((h - (y == 0)) * x).sum(-1) / I
    b = np.hypot(mu * z[..., 0, 0] + slope, mu * z[..., 0, 1] - slope)
    determinant = mu * (mu + 2 / I * (x**2 * h * (1 - h)).sum(-1))
    at = 300, 470
    written = -b[at] / scale + np.log(determinant[at])
    assert written == pytest.approx(log_density(own, z[at], mu, noise))
    mass = (np.exp(-b / scale) * determinant).sum() * (line[1] - line[0]) ** 2 / (2 * np.pi * scale**2)
    assert mass == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize(("mu", "epsilon"), [(0.5, 0.7), (0.2, 2.0), (0.5, 3.0)])
def test_no_point_tells_neighbours_apart_by_more_than_the_radial_epsilon_and_some_by_most_of_it(mu, epsilon):
    own = opposed()
    noise = Radial.of(own, mu, epsilon)
    ratios = [
        log_density(own, z, mu, noise) - log_density(without_first(own), z, mu, noise)
        for z in points(own, np.random.default_rng(0))
    ]
    declared = noise.inside(own, mu)
    assert declared.epsilon == pytest.approx(epsilon, rel=1e-12)
    assert declared.dp_delta == 0
    assert epsilon / 2 < max(map(abs, ratios)) <= epsilon


def losses(mu, noise, shown, agents=300):
    """The privacy loss of minimisers drawn with the noise `shown`, against data without the first record."""
    own, problem = opposed(), Problem(agents, 1 / I, regularizer=NoRegularizer(), beta=0)
    many = Task.whole(own.shards * agents, problem, own.shape, own.row_norm)
    b = record_gradient(own) * np.stack([shown.draw(many, p, 1, 0) for p in range(agents)])
    z = minimise(many, lambda u: mu * u + b, mu, np.zeros((agents, *own.shape)), 1e-8)
    other = without_first(own)
    return np.array([log_density(own, u, mu, noise) - log_density(other, u, mu, noise) for u in z])


def test_the_loss_of_gaussian_noise_passes_epsilon_more_rarely_than_delta_and_with_a_quarter_of_it_far_too_often():
    mu, dp_delta = 0.3, 0.05
    noise = Normal.of(opposed(), mu, 3.0, dp_delta)
    declared = noise.inside(opposed(), mu)
    assert declared.epsilon == pytest.approx(3.0, rel=1e-12)
    assert declared.dp_delta == dp_delta
    assert (losses(mu, noise, noise) > 3.0).mean() <= dp_delta
    quarter = replace(noise, multiplier=noise.multiplier / 4)
    assert (losses(mu, quarter, quarter) > 3.0).mean() > 2 * dp_delta


def test_the_size_of_gaussian_noise_in_the_direction_of_a_record_is_bounded_over_all_residuals():
    own = small(np.ones((2, 1)), [0, 1], 6)
    g = np.random.default_rng(3).normal(size=(200_000, 6))
    from tacit.methods.objective_perturbation import size

    over = np.linalg.norm(g - g.mean(1, keepdims=True), axis=1) > size(own, 0.01)
    assert over.mean() <= 0.01


@given(seed=st.integers(0, 10**6), n_classes=st.integers(2, 5), mu=st.floats(1e-3, 1), scale=st.floats(0, 5))
def test_a_record_changes_the_determinant_by_no_more_than_the_jacobian(seed, n_classes, mu, scale):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(6, 3))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    own = small(x, rng.integers(n_classes, size=6), n_classes)
    z = scale * rng.normal(size=own.shape)
    change = log_determinant(own, z, mu) - log_determinant(without_first(own), z, mu)
    assert -1e-9 <= change <= jacobian(own, mu)


def test_a_first_record_at_equal_scores_reaches_the_jacobian():
    own = small([[1.0]], [0], 4)
    change = log_determinant(own, np.zeros(own.shape), 0.02) - log_determinant(
        without_first(own), np.zeros(own.shape), 0.02
    )
    assert change == pytest.approx(jacobian(own, 0.02), rel=1e-4)  # ROOM apart


@given(epsilon=st.floats(0.01, 5))
def test_the_least_convexity_is_where_the_determinant_takes_epsilon(epsilon):
    own = opposed()
    assert jacobian(own, least_convexity(own, epsilon)) == pytest.approx(epsilon)


def test_what_the_argument_does_not_cover_is_refused():
    own = opposed()
    with pytest.raises(IncompatibleError, match="Squared"):
        check_loss(replace(own, problem=replace(own.problem, loss=Squared())))
    with pytest.raises(DataError, match="above the declared"):
        check_records(replace(own, row_norm=0.5))
    check_records(own)
