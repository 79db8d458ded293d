"""In float32, as the fast engine runs it: no neighbour moves an agent's gradient beyond the declared sensitivity."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.admm.agent import ROUNDING
from tacit.data.transform import rescale_rows
from tacit.engine.kernels import aligned, compiled, of_run, width
from tacit.engine.passes import Blas, Compiled, Form, Layout, LossesAndBounds, constant, row_norms
from tacit.problem.sensitivity import Adjacency
from tacit.run.build import setup
from tacit.run.presets import preset
from tacit.types import Federation, Norm, Shard, Target

J, K = 6, 3
MODES = {
    "clip": {"privacy.sensitivity": "clip", "privacy.clip": 0.3},
    "feature_bounds": {"privacy.sensitivity": "feature_bounds"},
    "row_norm": {"privacy.sensitivity": "row_norm"},
}
BUILT = pytest.mark.skipif(compiled() is None, reason="not built")
COMPUTE = ["blas", *(pytest.param(form, marks=BUILT, id=form.name.lower()) for form in Form)]


def gradient(kind, shard, values, point, norm):
    """The data gradient (float64 view of the float32 numbers) and the sensitivity it was declared to have."""
    number = shard.y.dtype.kind == "f"
    columns = 1 if number else K
    over = Federation((shard,), shard, columns, bounds=(0.0, 1.0), target=Target(0.0, 1.0) if number else None)
    if values["privacy.sensitivity"] == "row_norm":
        over = rescale_rows(over, norm.value, 1.0, "clip")
        values = values | {"data.row_norm": norm.value}
    law = "laplace" if norm is Norm.L1 else "gaussian"
    agents = setup(preset("paper", "objt").with_values(values | {"privacy.mechanism": law}), over).agents
    bound, (x_norm,) = agents[0].variant.bound, row_norms(over.shards, (norm,))
    compute = (
        Blas(over.shards, [x_norm], columns)
        if kind == "blas"
        else Compiled(Layout(kind), over.shards, [x_norm], columns, 1, compiled())
    )
    packed = aligned(J, width(1, columns))
    packed[:, :columns] = point
    total, _ = compute(0, packed, LossesAndBounds([agents[0].problem.loss], [bound]))
    return of_run(total, 0, columns).astype(np.float64), constant(bound, x_norm)


@pytest.mark.parametrize("kind", COMPUTE)
@pytest.mark.parametrize("n", [6_000, 20_000])
@pytest.mark.parametrize("seed", range(4))
def test_simulated_noise_is_scaled_for_float32_sums_over_many_records(kind, n, seed):
    """Records that pull one way make the sum large and its rounding with it; the noise counts that."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0.3, 0.9, size=(n, J))
    y = np.zeros(n, int)
    point = np.zeros((J, K), np.float32)
    point[:, 1] = rng.uniform(5, 50)  # every record is sure of the wrong class
    values = MODES["clip"]
    g, bound = gradient(kind, Shard(x, y), values, point, Norm.L2)
    removed, _ = gradient(kind, Shard(x[1:], y[1:]), values, point, Norm.L2)
    assert np.linalg.norm(g - removed) <= bound * (1 + ROUNDING * n)


@pytest.mark.parametrize("kind", COMPUTE)
@pytest.mark.parametrize("norm", [Norm.L1, Norm.L2])
@pytest.mark.parametrize("mode", MODES)
@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), n=st.integers(2, 60), size=st.sampled_from([0.0, 0.1, 3.0, 300.0]))
def test_one_record_moves_the_gradient_no_further_than_declared(kind, norm, mode, seed, n, size):
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(n + 1, J)) * (rng.uniform(size=(n + 1, J)) < 0.7)
    x[0] = 1.0  # the largest record there is
    y = rng.integers(K, size=n + 1)
    point = (size * rng.normal(size=(J, K))).astype(np.float32)
    with_first, without = Shard(x[:n], y[:n]), Shard(x[1:n], y[1:n])
    other = Shard(np.roll(x, -1, 0)[:n], np.roll(y, -1)[:n])
    g, bound = gradient(kind, with_first, MODES[mode], point, norm)
    removed, _ = gradient(kind, without, MODES[mode], point, norm)
    replaced, _ = gradient(kind, other, MODES[mode], point, norm)
    assert norm.of_rows((g - removed).reshape(1, -1))[0] <= bound * Adjacency.ZERO_OUT.value
    assert norm.of_rows((g - replaced).reshape(1, -1))[0] <= bound * Adjacency.REPLACE_ONE.value


NUMBERS = [
    *((kind, "squared", "clip") for kind in COMPUTE if kind == "blas"),
    *(pytest.param(form, "squared", "clip", marks=BUILT, id=f"{form.name.lower()}-squared-clip") for form in Form),
    *(("blas", "huber", mode) for mode in MODES),  # huber has no compiled form
]


@pytest.mark.parametrize(("kind", "loss", "mode"), NUMBERS)
@pytest.mark.parametrize("norm", [Norm.L1, Norm.L2])
@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), n=st.integers(2, 60), size=st.sampled_from([0.0, 0.1, 3.0, 300.0]))
def test_one_record_with_a_number_to_predict_moves_it_no_further_either(kind, loss, mode, norm, seed, n, size):
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(n + 1, J)) * (rng.uniform(size=(n + 1, J)) < 0.7)
    x[0] = 1.0
    y, values = rng.choice([-1.0, 1.0, 0.3], size=n + 1), MODES[mode] | {"problem.loss": loss}
    point = (size * rng.normal(size=(J, 1))).astype(np.float32)
    g, bound = gradient(kind, Shard(x[:n], y[:n]), values, point, norm)
    removed, _ = gradient(kind, Shard(x[1:n], y[1:n]), values, point, norm)
    replaced, _ = gradient(kind, Shard(np.roll(x, -1, 0)[:n], np.roll(y, -1)[:n]), values, point, norm)
    assert norm.of_rows((g - removed).reshape(1, -1))[0] <= bound * Adjacency.ZERO_OUT.value
    assert norm.of_rows((g - replaced).reshape(1, -1))[0] <= bound * Adjacency.REPLACE_ONE.value
