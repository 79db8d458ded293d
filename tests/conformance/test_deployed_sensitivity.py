"""Through the deployed agent: no neighbour moves what goes under the noise further than the noise was scaled for."""

from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.agent.agent import DeployedAgent
from tacit.agent.cover import Alone
from tacit.agent.gate import Question
from tacit.privacy import lattice
from tacit.privacy.exact import Law
from tacit.privacy.release import GaussianRelease
from tacit.privacy.terms import Memory
from tacit.query.gradient import evaluator, numpy_sums
from tacit.run import build, deploy
from tacit.run.compose import asked_of
from tacit.run.presets import preset
from tacit.types import Federation, Norm, Shard, Target

J, K = 9, 3  # more than one group of features
BOUNDS = {
    "clip": {"privacy.sensitivity": "clip", "privacy.clip": 0.3},
    "feature_bounds": {"privacy.sensitivity": "feature_bounds"},
    "row_norm": {"privacy.sensitivity": "row_norm"},
}
LAWS = {
    "gaussian": ({"privacy.mechanism": "gaussian", "privacy.covers": "run"}, "l2"),
    "laplace": ({"privacy.mechanism": "laplace", "privacy.covers": "round"}, "l1"),
    "laplace in l2": ({"privacy.mechanism": "laplace", "privacy.covers": "run"}, "l2"),
}
RULES = {
    "objt": {},
    "objp": {},
    "objt at z": {"algorithm.order": "wzd", "algorithm.linearize_at": "z"},
    "objt, released regulariser": {"algorithm.regularize_at": "w", "problem.beta": 1.0},
}
LOSSES = {"clip": ("softmax", "squared"), "feature_bounds": ("softmax",), "row_norm": ("softmax",)}


@contextmanager
def without_noise():
    """The laws that are asked for in releases whose integers are all zeros: what goes under the noise then leaves."""
    laws = []

    def zeros(law, scale, shape, bits):  # noqa: ARG001
        laws.append(law)
        return np.zeros(shape, np.int64)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lattice, "sample", zeros)
        yield laws


def deployed(spec, shard, over):
    """The first agent of the federation with this shard, as deployed; the weight is that of public numbers."""
    setup = build.setup(spec, over)
    deployment = asked_of([replace(setup.agents[0], shard=shard)], setup.shape, spec.run.rounds)
    own = deployment.first_agreement
    queries = deploy.queries_of(own, shard)
    if len(shard) % 2 == 0:
        queries = tuple(replace(one, evaluator=evaluator(numpy_sums)) for one in queries)
    terms = deployment.terms(spec, 0, "agreed")
    return DeployedAgent("0", "data", queries, own, terms, Alone(own, len(shard)), Memory())


def moved(spec, over, shards, point):
    """(the values under the noise, one for each shard; the scale of the noise that was drawn; the agreed query)."""
    seen = []
    with without_noise() as laws:
        for shard in shards:
            agent = deployed(spec, shard, over)
            seen.append(agent.answer(Question(agent.terms.run, agent.terms.spec, 1, {"point": point})).value)
    wanted = Law.LAPLACE if spec.privacy.mechanism == "laplace" else Law.GAUSSIAN
    assert laws == [wanted] * len(shards)
    assert agent.terms.scale == agent.agreement.scale(0, len(shard))
    return seen, agent.terms.scale, agent.agreement


@pytest.mark.parametrize("adjacency", ["zero_out", "replace_one"])
@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("rule", RULES)
@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), n=st.integers(2, 40), size=st.sampled_from([0.0, 0.1, 3.0, 300.0, 1e30]))
def test_one_record_moves_a_deployed_agent_no_further_than_its_noise_is_scaled_for(
    adjacency, bound, law, rule, seed, n, size
):
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(n + 1, J)) * (rng.uniform(size=(n + 1, J)) < 0.7)
    x[0] = 1.0  # the largest record there is
    y = rng.integers(K, size=n + 1)
    point = size * rng.normal(size=(J, K))
    values, norm = LAWS[law]
    loss = LOSSES[bound][seed % len(LOSSES[bound])]
    spec = preset("sound", rule[:4]).with_values(
        {"privacy.noise": "exact", "privacy.adjacency": adjacency, "run.rounds": 5, "problem.loss": loss,
         "data.row_norm": norm if bound == "row_norm" else "none"} | BOUNDS[bound] | values | RULES[rule]
    )  # fmt: skip
    own = Shard(x[:n], y[:n])
    if adjacency == "zero_out":
        other = Shard(np.concatenate([0 * x[:1], x[1:n]]), y[:n])
    else:
        other = Shard(np.concatenate([x[n:], x[1:n]]), np.concatenate([y[n:], y[1:n]]))
    if bound == "row_norm":  # longer than declared: the agent makes the bound true
        own, other = (replace(shard, x=5 * shard.x) for shard in (own, other))
    over = Federation((Shard(x[:n], y[:n]),), Shard(x[:1], y[:1]), K, bounds=(0.0, 1.0))
    no_further_than_the_noise(spec, over, (own, other), point)


def no_further_than_the_noise(spec, over, shards, point):
    (first, second), scale, agreed = moved(spec, over, shards, point)
    reach = {size: size.of_rows((first - second).reshape(1, -1))[0] / scale for size in Norm}
    price = agreed.queries[0].release(agreed.adjacency)
    if isinstance(price, GaussianRelease):
        assert reach[Norm.L2] <= 1 / price.multiplier
    else:  # every norm that the accountant counts
        for size, most in zip((Norm.L1, Norm.L2, Norm.INF), price.norms, strict=True):
            assert reach[size] <= most


@pytest.mark.parametrize("adjacency", ["zero_out", "replace_one"])
@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("law", LAWS)
@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), n=st.integers(2, 40), size=st.sampled_from([0.0, 0.1, 3.0, 300.0, 1e30]))
def test_one_number_to_predict_moves_a_deployed_agent_no_further_either(adjacency, bound, law, seed, n, size):
    """One column: a residual has one size in every norm, and a target at an end of its bounds is the worst."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(n + 1, J)) * (rng.uniform(size=(n + 1, J)) < 0.7)
    x[0] = 1.0
    y = rng.choice([-1.0, 1.0, 0.3], size=n + 1)
    values, norm = LAWS[law]
    spec = preset("sound", "objt").with_values(
        {"privacy.noise": "exact", "privacy.adjacency": adjacency, "run.rounds": 5,
         "problem.loss": "squared" if bound == "clip" and seed % 2 else "huber",
         "data.row_norm": norm if bound == "row_norm" else "none"} | BOUNDS[bound] | values
    )  # fmt: skip
    gone = (0 * x[:1], y[:1]) if adjacency == "zero_out" else (x[n:], y[n:])
    other = Shard(np.concatenate([gone[0], x[1:n]]), np.concatenate([gone[1], y[1:n]]))
    over = Federation((Shard(x[:n], y[:n]),), Shard(x[:1], y[:1]), 1, bounds=(0.0, 1.0), target=Target(0.0, 1.0))
    no_further_than_the_noise(spec, over, (over.shards[0], other), size * rng.normal(size=(J, 1)))


@pytest.mark.parametrize("adjacency", ["zero_out", "replace_one"])
@pytest.mark.parametrize("law", ["gaussian", "laplace in l2"])
def test_the_worst_record_comes_near_the_sensitivity_and_so_no_half_of_it_would_do(adjacency, law):
    spec = preset("sound", "objt").with_values(
        {"privacy.noise": "exact", "privacy.adjacency": adjacency, "run.rounds": 5, "data.row_norm": "none"}
        | BOUNDS["clip"] | LAWS[law][0]
    )  # fmt: skip
    x, y = np.zeros((3, J)), np.array([0, 1, 2])
    x[0, 0], point = 1.0, np.zeros((J, K))
    point[0, :2], point[1, :2] = (-30.0, 30.0), (30.0, -30.0)
    own = Shard(x, y)
    opposite = x.copy()
    opposite[0, :2] = (0.0, 1.0) if adjacency == "replace_one" else 0.0
    # the label that is wrong for certain, on another feature: two gradients of length C at right angles
    labels = np.array([1, 1, 2]) if adjacency == "replace_one" else y
    over = Federation((own,), own, K, bounds=(0.0, 1.0))
    (first, second), scale, agreed = moved(spec, over, (own, Shard(opposite, labels)), point)
    noise = agreed.queries[0].noise
    least, reach = 0.999 if adjacency == "zero_out" else 0.999 / np.sqrt(2), scale / noise.multiplier
    assert least * reach <= noise.norm.of_rows((first - second).reshape(1, -1))[0] <= reach


@pytest.mark.parametrize("summing", ["compiled", "numpy"])
@pytest.mark.parametrize("features", [6, 8, 9, 61, 64, 784])
@settings(max_examples=10)
@given(seed=st.integers(0, 10**6))
def test_no_record_decides_how_the_scores_of_the_others_are_rounded(summing, features, seed):
    """A hostile model has terms that cancel: one other order of a sum, and every residual is another."""
    rng = np.random.default_rng(seed)
    n = 400
    x = 0.5 * (rng.random((n, features)) < rng.choice([0.05, 0.5, 1.0]))
    heavy = rng.permutation(features)[:3]
    x[:, heavy] = 0.5
    x[0, heavy[rng.integers(3)]] = 0  # the record that may be absent tells the features apart
    w = np.zeros((features, 2))
    w[heavy, 0] = 10.0 ** rng.integers(15, 19) * np.array([1.0, -1.0, 0.0]) + [0.0, 0.0, 16.0]
    own = Shard(x.astype(np.float32), np.zeros(n, int))
    other = Shard(np.concatenate([0 * own.x[:1], own.x[1:]]), own.y)
    spec = preset("sound", "objt").with_values(
        {"privacy.noise": "exact", "run.rounds": 5, "privacy.sensitivity": "clip", "privacy.clip": 1.0,
         "data.row_norm": "none"}
    )  # fmt: skip
    over = Federation((own,), own, 2, bounds=(0.0, 1.0))
    agreed = build.setup(spec, over).deployment.first_agreement
    queries = [deploy.queries_of(agreed, shard)[0] for shard in (own, other)]
    if summing == "numpy":
        queries = [replace(one, evaluator=evaluator(numpy_sums)) for one in queries]
    values = [one.answer({"point": w}) for one in queries]
    assert np.linalg.norm(values[0] - values[1]) <= agreed.queries[0].sensitivity(agreed.adjacency, n)
