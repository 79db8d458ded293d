"""The deployed agent at the sizes of real runs: hundreds of records, columns and rounds, and ten million draws.

Some faults do not show with a few records: in a later block of the compiled loops, in a later column, in a later round,
or so far out in the tails of the noise that only many draws come there.
"""

import math
from contextlib import ExitStack
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from tacit.agent.cover import Alone
from tacit.agent.gate import Question
from tacit.privacy import lattice
from tacit.privacy.exact import Law
from tacit.run import build, deploy, deployment
from tacit.run.presets import preset
from tacit.types import Federation, Shard
from tests.conformance.test_deployed_sensitivity import BOUNDS, LAWS, no_further_than_the_noise

K = 3
DRAWS = 10**7


def federation(n, features, seed, agents=1):
    """Records of very different lengths, one of them the longest there may be."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(n, features)) * (rng.uniform(size=(n, features)) < 0.5) * rng.uniform(size=(n, 1)) ** 3
    x[rng.integers(n)] = 1.0
    shard = Shard(x, rng.integers(K, size=n))
    return Federation((shard,) * agents, Shard(x[:1], shard.y[:1]), K, bounds=(0.0, 1.0))


def sound(rounds=5, **values):
    return preset("sound", "objt").with_values(
        {"privacy.noise": "exact", "run.rounds": rounds, "data.row_norm": "none"} | values
    )


# --- one record ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("adjacency", ["zero_out", "replace_one"])
@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("law", LAWS)
@settings(max_examples=12)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(129, 700),  # odd and even: compiled and by NumPy
    features=st.sampled_from([21, 64, 200, 390]),
    size=st.sampled_from([0.1, 3.0, 1e30]),
    which=st.sampled_from(["any", "longest", "last"]),
)
def test_one_record_of_hundreds_moves_a_deployed_agent_no_further_than_its_noise_is_scaled_for(
    adjacency, bound, law, seed, n, features, size, which
):
    rng = np.random.default_rng(seed)
    over = federation(n, features, seed)
    x, y = over.shards[0].x, over.shards[0].y
    longest = int(np.linalg.norm(x, axis=1).argmax())
    at = {"any": int(rng.integers(n)), "longest": longest, "last": n - 1}[which]
    other, labels = x.copy(), y.copy()
    if adjacency == "zero_out":
        other[at] = 0.0
    else:
        other[at], labels[at] = rng.uniform(size=features), rng.integers(K)
    values, norm = LAWS[law]
    spec = sound(**{"privacy.adjacency": adjacency, "data.row_norm": norm if bound == "row_norm" else "none"}
                 | BOUNDS[bound] | values)  # fmt: skip
    scale = 5.0 if bound == "row_norm" else 1.0  # some rows are longer than declared, and some are not
    shards = Shard(scale * x, y), Shard(scale * other, labels)
    no_further_than_the_noise(spec, over, shards, size * rng.normal(size=(features, K)))


# --- all rounds ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rounds", [1, 20, 21, 100, 1000])
@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
def test_the_noise_that_is_drawn_keeps_the_budget_over_all_rounds_and_wastes_little(rounds, mechanism):
    spec = sound(rounds, **{"privacy.mechanism": mechanism, "privacy.covers": "run"} | BOUNDS["clip"])
    asked, p = build.setup(spec, federation(50, 7, 1)).deployment, spec.privacy
    terms, (one,) = asked.terms(spec, 0, "agreed"), asked.first_agreement.queries
    assert 0.98 * p.epsilon <= deployment.price([(terms.release, rounds)], p.dp_delta) <= p.epsilon
    if mechanism == "gaussian":  # by the formula of Balle & Wang for mu = sqrt(T) / multiplier, of the drawn scale
        mu = math.sqrt(rounds) * one.sensitivity(asked.first_agreement.adjacency, 50) / terms.scale
        below, above = (NormalDist().cdf(sign * mu / 2 - p.epsilon / mu) for sign in (1, -1))
        assert 0.9 * p.dp_delta <= below - math.exp(p.epsilon) * above <= p.dp_delta


# --- the noise -----------------------------------------------------------------------------------------------------


def test_no_two_features_agents_or_rounds_share_a_draw(monkeypatch):
    """A row of K entries of 2^36 steps each is drawn twice by chance once in 10^25."""
    features, rounds, agents = 401, 25, 2
    spec, over = sound(rounds, **BOUNDS["clip"]), federation(40, features, 3, agents)
    noisy, exact = [], []
    cover = Alone.over

    def listening(own, asked):
        peers, covering = cover(own, asked)

        def covered(value):
            exact.append(value)
            noisy.append(covering(value))
            return noisy[-1]

        return peers, covered

    monkeypatch.setattr(Alone, "over", listening)
    with ExitStack() as open_files:
        for agent in deploy.deployed(spec, build.setup(spec, over), over, None, False, open_files):
            for t in range(1, rounds + 1):
                point = np.zeros((features, K))
                agent.answer(Question(agent.terms.run, agent.terms.spec, t, {"point": point}))
    noise = np.concatenate(noisy) - np.concatenate(exact)
    rows = np.round(noise / lattice.grid(agent.terms.scale)).astype(np.int64)
    assert rows.shape == (features * rounds * agents, K)
    assert len(np.unique(rows, axis=0)) == len(rows)
    assert len(np.unique(np.abs(rows), axis=0)) == len(rows)
    assert (rows[:, 0] != rows[:, 1]).all()


@pytest.mark.parametrize(("law", "beyond"), [(Law.GAUSSIAN, (3.0, 4.0, 4.5)), (Law.LAPLACE, (7.0, 10.0, 11.5))])
def test_the_tails_of_ten_million_draws_are_as_heavy_as_the_law(law, beyond):
    """Truncated noise is not private: an answer beyond the end tells the neighbours apart for certain."""
    found = np.zeros(len(beyond), int)
    for _ in range(10):  # pieces of 80 MB
        noise = lattice.release(np.zeros(DRAWS // 10), 1.0, law)
        found += [int((np.abs(noise) > far).sum()) for far in beyond]
    for far, count in zip(beyond, found, strict=True):
        p = math.exp(-far) if law is Law.LAPLACE else math.erfc(far / math.sqrt(2))
        low, high = binom.ppf([1e-10, 1 - 1e-10], DRAWS, p)
        assert low <= count <= high, far
        assert low > 10
