"""A loss of the user's own: one that couples records is refused, and one that understates its bound harms nobody."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest

import tacit
from tacit.cli import main
from tacit.data import synthetic
from tacit.engine.kernels import aligned, of_run, width
from tacit.engine.passes import Blas, LossesAndBounds, exact_sums, row_norms
from tacit.errors import IncompatibleError, InputError
from tacit.methods.method import Budget
from tacit.methods.registry import METHODS
from tacit.methods.task import Task, plain_sums
from tacit.problem.loss import LOSSES, ROWS, Softmax, Squared, aims, check_separable
from tacit.problem.sensitivity import ROOM, Declared, from_feature_bounds, from_row_norm, from_row_norms
from tacit.query.gradient import Gradient
from tacit.query.query import AgentQuery
from tacit.query.records import InMemory
from tacit.run import build
from tacit.types import Norm, Shard

J, K = 5, 3
SPEC = tacit.preset("sound", "objt").with_values(
    {"data.source": "synthetic", "data.agents": 2, "data.records": 80, "features.map": "none", "run.rounds": 4}
)


class ByFrequency(Softmax):
    """Weigh a record by how rare its class is in the batch."""

    def residual(self, score, y):
        weight = len(y) / (score.shape[1] * np.bincount(y, minlength=score.shape[1]))
        return Softmax.residual(self, score, y) * weight[y][:, None].astype(score.dtype)


class Mean(Softmax):
    """Divide by the number of records in the batch."""

    def residual(self, score, y):
        return Softmax.residual(self, score, y) / len(y)


class Centred(Softmax):
    """Subtract the mean residual of the batch."""

    def residual(self, score, y):
        a = Softmax.residual(self, score, y)
        return a - a.mean(axis=0)


class Hardest(Softmax):
    """Count only the harder half of a batch of two records or more."""

    def residual(self, score, y):
        a = Softmax.residual(self, score, y)
        size = np.abs(a).sum(axis=1, keepdims=True)
        return a * (size >= np.median(size))


class Restless(Softmax):
    """Draw the weights of records anew at every call."""

    def residual(self, score, y):
        return Softmax.residual(self, score, y) * np.random.default_rng().uniform(size=(len(y), 1)).astype(score.dtype)


class Misshapen(Softmax):
    """Return the residual of the label's score alone."""

    def residual(self, score, y):
        return Softmax.residual(self, score, y)[np.arange(len(y)), y]


class Standardised(Squared):
    """Subtract the mean of the numbers in the batch."""

    def residual(self, score, y):
        return score - aims(y - y.mean() if y.dtype.kind == "f" else y, score.shape[1], score.dtype)


COUPLED = [ByFrequency, Mean, Centred, Hardest, Restless]


@pytest.fixture
def registered(monkeypatch):
    """Put a loss into the registry for one test."""

    def put(loss):
        monkeypatch.setitem(LOSSES, "own", loss)
        return {"problem.loss": "own"}

    return put


@pytest.mark.parametrize("loss", COUPLED)
@pytest.mark.parametrize(
    "values",
    [
        {"run.seed": 0},
        {"run.seed": 0, "run.engine": "plain"},
        {"run.seed": None, "privacy.noise": "exact"},
        {"run.seed": 0, "privacy.epsilon": math.inf, "privacy.mechanism": "silence"},
    ],
    ids=["fast", "plain", "deployed", "not private"],
)
def test_a_loss_that_couples_records_is_refused_before_the_first_round(loss, values, registered):
    with pytest.raises(IncompatibleError, match=r"the loss own couples records.*compute row i"):
        build.setup(SPEC.with_values(values | registered(loss)), synthetic.make(2, 40, J, K))


def test_a_coupled_loss_is_refused_to_a_method_to_a_number_and_on_the_command_line(registered, capsys):
    fedgd = tacit.preset("sound", "fedgd").with_values({"features.map": "none", "run.seed": 0})
    with pytest.raises(InputError, match="couples records"):
        build.setup(fedgd.with_values(registered(ByFrequency)), synthetic.make(2, 40, J, K))
    with pytest.raises(IncompatibleError, match="couples records"):
        check_separable("own", Standardised(), 1, number=True)
    words = ["--data", "synthetic", "--agents", "2", "--rounds", "2", "--set", "problem.loss=own"]
    assert main(["train", "--seed", "0", *words]) == 2
    told = capsys.readouterr().err
    assert "couples records" in told
    assert "Traceback" not in told


def test_a_residual_of_another_shape_is_refused():
    with pytest.raises(IncompatibleError, match=rf"returns shape \({ROWS},\) for scores of shape \({ROWS}, 3\)"):
        check_separable("own", Misshapen(), 3, number=False)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("columns", [1, 2, 10, 62, 1000])
def test_no_loss_of_the_registry_couples_records(name, columns):
    loss = LOSSES[name]()
    if columns > 1 and loss.for_classes:
        check_separable(name, loss, columns, number=False)
    if columns == 1 and loss.for_numbers:
        check_separable(name, loss, 1, number=True)


# --- a declared bound also clips ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Understated(Softmax):
    """Softmax that declares a hundredth of its bound, in some norms or in all."""

    norms: tuple[Norm, ...] = tuple(Norm)

    def residual_bound(self, norm):
        return Softmax.residual_bound(self, norm) / (100 if norm in self.norms else 1)


def federated(seed=0, n=30):
    """Records of norm one in l1 and so in l2 at most, and a model that is sure of a wrong class."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(n, J))
    x /= x.sum(axis=1, keepdims=True)
    return x, rng.integers(K, size=n), 50 * rng.normal(size=(J, K))


def plain(x, y, w, loss, bound):
    return plain_sums([Shard(x, y, np.float64)], problem(loss), w, bound)[0]


def blas(x, y, w, loss, bound):
    shards = [Shard(x, y)]
    packed = aligned(J, width(1, K))
    packed[:, :K] = w
    sums = Blas(shards, row_norms(shards, (bound.norm,)), K)(0, packed, LossesAndBounds([loss], [bound]))[0]
    return of_run(sums, 0, K).astype(np.float64)


def simulated(x, y, w, loss, bound):
    return agent(x, y, loss, bound).data_gradient(w)[0]


def deployed(x, y, w, loss, bound):
    records = InMemory.of(Shard(x, y))
    query = Gradient((J, K), loss, bound, 1.0)
    return AgentQuery(query, records, query.evaluator).value({"point": w})


def problem(loss):
    return replace(build.objective(SPEC, synthetic.make(1, 4, J, K)), loss=loss, weight=1.0)


def agent(x, y, loss, bound):
    own = build.admm_setup(SPEC.with_values({"run.seed": 0}), synthetic.make(1, 4, J, K)).agents[0]
    return replace(own, shard=Shard(x, y), problem=problem(loss), variant=replace(own.variant, bound=bound))


@pytest.mark.parametrize("sums", [plain, blas, simulated, deployed])
@pytest.mark.parametrize("norm", [Norm.L1, Norm.L2])
def test_a_loss_that_understates_its_bound_moves_no_sum_further_than_it_claims(sums, norm):
    x, y, w = federated()
    bound = from_row_norm(norm, 1.0, Understated())
    whole = sums(x, y, w, Understated(), bound)
    moved = [whole - sums(np.delete(x, i, 0), np.delete(y, i), w, Understated(), bound) for i in range(len(x))]
    sizes = norm.of_rows(np.stack(moved).reshape(len(x), -1))
    unclipped = norm.of_rows(x) * norm.of_rows(Softmax().residual(x @ w, y))
    assert unclipped.max() > 25 * bound.value
    assert (sizes <= bound.value).all()
    assert sizes.max() > 0.9 * norm.of_rows(x).max() * bound.value  # and no more is clipped than must be


def test_no_compiled_loop_takes_a_loss_that_it_does_not_know(registered):
    """Such a loop clips only where the bound is Clipped: it knows that the bounds of its own losses are true."""
    x, y, _ = federated()
    bound = from_row_norm(Norm.L2, 1.0, Understated())
    assert exact_sums(Shard(x, y), Understated(), bound, K) is None
    values = {"run.seed": 0, "privacy.sensitivity": "row_norm", "privacy.epsilon": 1e3} | registered(Understated)
    over = synthetic.make(2, 60, J, K)
    fast, slow = (tacit.train(SPEC.with_values(values | {"run.engine": one}), over).w for one in ("fast", "plain"))
    np.testing.assert_allclose(fast, slow, atol=1e-5 * np.abs(slow).max())


def test_a_bound_that_is_false_in_l2_alone_holds_under_laplace_noise_too():
    """Laplace noise is accounted in l1 and in l2 at once."""
    x, y, w = federated()
    loss = Understated(norms=(Norm.L2,))
    bound = from_row_norms(Norm.L1, 1.0, 1.0, loss)
    parts = np.stack([plain(x[i : i + 1], y[i : i + 1], w, loss, bound) for i in range(len(x))]).reshape(len(x), -1)
    assert (Norm.L2.of_rows(parts) <= bound.euclidean).all()
    assert (Norm.L1.of_rows(parts) <= bound.value).all()


@pytest.mark.parametrize("name", [name for name in LOSSES if math.isfinite(LOSSES[name]().residual_bound(Norm.L1))])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("columns", [2, 10, 1000])
def test_a_true_bound_changes_no_bit_of_a_residual(name, dtype, columns):
    """Even where the residual is at its bound, and rounded."""
    loss, rng = LOSSES[name](), np.random.default_rng(0)
    columns = columns if loss.for_classes else 1
    score = (np.repeat([0.1, 1, 10, 1e3, 1e30], 200)[:, None] * rng.normal(size=(1000, columns))).astype(dtype)
    y = rng.integers(columns, size=1000) if loss.for_classes else rng.choice([-1.0, 1.0, 0.1], size=1000)
    if columns > 1:
        score[np.arange(500), y[:500]] = -1e30  # none of the probability is left to the label
    residual = loss.residual(score, y)
    for norm in (Norm.L1, Norm.L2):
        for bound in (from_row_norm(norm, 0.7, loss), from_feature_bounds(norm, (-0.3, 0.1), 7, loss)):
            shrunk = bound.shrink(residual, np.full(1000, bound.row_norm))
            assert shrunk.dtype == residual.dtype
            assert shrunk.tobytes() == residual.tobytes()


@pytest.mark.parametrize(("method", "values"), [
    ("objt", {"privacy.sensitivity": "row_norm"}),
    ("objt", {"privacy.sensitivity": "row_norm", "run.engine": "plain"}),
    ("objt", {"privacy.sensitivity": "row_norm", "problem.loss": "hinge"}),
    ("objp", {"privacy.sensitivity": "row_norm", "problem.loss": "hinge", "run.engine": "plain"}),
    ("outp-huang", {}),
], ids=str)  # fmt: skip
def test_a_run_with_a_true_bound_is_the_run_without_the_clip(method, values, monkeypatch):
    spec = tacit.preset("sound", method).with_values(
        {"features.map": "none", "run.rounds": 5, "run.seed": 3, "privacy.epsilon": 50.0} | values
    )
    over = synthetic.make(2, 60, J, K)
    clipped = tacit.train(spec, over).w
    monkeypatch.setattr(Declared, "shrink", lambda _self, residual, _x_norm: residual)
    assert tacit.train(spec, over).w.tobytes() == clipped.tobytes()


def test_a_bound_without_a_row_norm_clips_nothing():
    """As that of the released OutP, which is no bound of a gradient and is not public."""
    residual = np.full((2, 3), 1e6)
    np.testing.assert_array_equal(Declared(Norm.L2, 5.0, public=False).shrink(residual, np.ones(2)), residual)


def test_a_method_whose_noise_is_proved_for_softmax_takes_no_loss_that_is_made_of_it():
    """It does not clip, so that the bound that Understated inherits or states would decide its noise."""
    facts = Task.whole((Shard(np.eye(J), np.zeros(J, int)),), problem(Understated()), (J, K), 1.0).facts
    for name in ("pvp", "kifer", "outp-huang"):
        with pytest.raises(IncompatibleError, match="softmax loss, and this loss is Understated"):
            METHODS[name].build(facts, Budget(1.0), METHODS[name].grid[0])


def test_the_allowance_for_rounding_leaves_room_in_the_bound():
    bound = from_row_norm(Norm.L2, 2.0, Softmax())
    long = bound.shrink(np.full((1, K), 1e3), np.array([2.0 * (1 + 1e-6)]))
    assert bound.value * ROOM < 2.0 * (1 + 1e-6) * Norm.L2.of_rows(long)[0] < bound.value * (1 - 3e-6)
