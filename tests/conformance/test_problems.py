"""Every set W, loss and regulariser trains alike in every engine, from its start on; what has no form is refused."""

import importlib

import numpy as np
import pytest

import tacit
from tacit.engine.fast import FastEngine
from tacit.engine.plain import PlainEngine
from tacit.errors import IncompatibleError, SpecError
from tacit.run.build import setup
from tacit.run.presets import preset
from tests.conformance.test_engines import BASE, agree, path, trajectory  # noqa: F401
from tests.conftest import federation, numbers

SHAPE = (5, 3)
OVER = federation(3, 5, 3, sizes=(4, 9, 23))

SETS = {
    "box from zero": {"problem.domain": "box", "problem.domain_low": 0.0},
    "box without zero": {"problem.domain": "box", "problem.domain_low": 0.05, "problem.domain_high": 0.2},
    "ball around": {"problem.domain": "ball", "problem.domain_center": 0.1, "problem.domain_radius": 0.2},
    "simplex": {"problem.domain": "simplex"},
    "halfspaces": {"problem.domain": "halfspaces", "problem.domain_file": "halves.npz"},
}
STEPS = {
    f"{rule}-{norm}-{order}-{at}": {
        "algorithm.rule": rule, "algorithm.trust_norm": norm, "algorithm.order": order, "algorithm.linearize_at": at,
        "schedule.radius": "constant", "schedule.radius_a": 0.05,
    }
    for rule, norm in (("prox", "inf"), ("trust", "inf"), ("trust", "l2"))
    for order, at in (("wzd", "z"), ("zwd", "w"))
}  # fmt: skip
every_set = pytest.mark.parametrize("chosen", SETS.values(), ids=SETS)


@pytest.fixture(autouse=True)
def halves_file(tmp_path, monkeypatch):
    """No score falls with the first feature, and the first two entries of the second add up to -0.1 at most."""
    normals, offsets = np.zeros((4, *SHAPE)), np.array([0.0, 0.0, 0.0, -0.1])
    normals[range(3), 0, range(3)], normals[3, 1, :2] = -1.0, 1.0
    np.savez(tmp_path / "halves.npz", normals=normals, offsets=offsets)
    monkeypatch.chdir(tmp_path)


def spec_of(values):
    return preset("paper", "objt").with_values(BASE | values)


def lane(values, over=OVER):
    return setup(spec_of(values), over)


CLIPPED = {"privacy.sensitivity": "clip", "privacy.clip": 1.0, "run.seed": 0}


@every_set
@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
@pytest.mark.usefixtures("path")
def test_fast_follows_plain_on_every_set(chosen, step):
    run = lane(chosen | step)
    agents = [run.agents]
    expected = trajectory(PlainEngine(agents, run.shape), [run], 4)
    agree(expected, trajectory(FastEngine(agents, run.shape, 2), [run], 4))
    assert run.problem.domain.contains(expected[0][-1][1], tolerance=1e-9)  # the mean of points of W


@every_set
def test_torch_follows_plain_on_every_set(chosen):
    pytest.importorskip("torch")
    torch = importlib.import_module("tacit.engine.torch")
    for step in STEPS.values():
        run = lane(chosen | step)
        found = trajectory(torch.TorchEngine([run.agents], run.shape), [run], 3)
        agree(trajectory(PlainEngine([run.agents], run.shape), [run], 3), found)


@every_set
def test_server_and_agents_of_every_kind_start_at_the_same_point(chosen):
    run = lane(chosen | CLIPPED)
    start = run.problem.domain.project(np.zeros(SHAPE))
    assert run.problem.domain.contains(start)
    state = run.server.start()
    np.testing.assert_array_equal(state.w, start)
    np.testing.assert_array_equal(run.server.ask(state).w, start)
    for engine in (PlainEngine([run.agents], SHAPE), FastEngine([run.agents], SHAPE)):
        saved = engine.save(0)
        np.testing.assert_array_equal(saved["z"], np.broadcast_to(start.astype(saved["z"].dtype), (3, *SHAPE)))
        assert not saved["dual"].any()
    models = run.deployment.program(False)
    np.testing.assert_array_equal(models.z, np.broadcast_to(start, (3, *SHAPE)))
    assert not models.dual.any()


@every_set
def test_agents_are_deployed_whatever_the_set_is_because_the_server_projects(chosen, tmp_path):
    """A projection sees noisy values only, so that neither its result nor its time tells more of a record."""
    exact = {"privacy.noise": "exact", "run.rounds": 3, "data.source": "x", "features.map": "none"}
    spec = preset("sound", "objt").with_values(chosen | exact)
    result = tacit.train(spec, OVER, tmp_path / "run")
    assert not result.summary["simulated_noise"]
    assert setup(spec, OVER).problem.domain.contains(result.w, tolerance=1e-9)


OTHERS = {
    "hinge": ({"problem.loss": "hinge"}, OVER),
    "poisson": ({"problem.loss": "poisson"}, numbers(3, 5, sizes=(4, 9, 23))),
    "l1": ({"problem.regularizer": "l1", "problem.beta": 0.05}, OVER),
    "l1 at w": ({"problem.regularizer": "l1", "problem.beta": 0.05, "algorithm.regularize_at": "w"}, OVER),
}
BOUNDS = ("clip", "row_norm")


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize(("chosen", "over"), OTHERS.values(), ids=OTHERS)
def test_fast_follows_plain_for_losses_and_regularisers_with_and_without_kinks(chosen, over, bound):
    row = {"data.row_norm": "l1", "data.row_bound": 20.0, "privacy.sensitivity": bound, "privacy.clip": 0.4}
    run = lane(chosen | row, over)
    agents = [run.agents]
    agree(trajectory(PlainEngine(agents, run.shape), [run]), trajectory(FastEngine(agents, run.shape, 2), [run]))


@pytest.mark.parametrize(("chosen", "over"), OTHERS.values(), ids=OTHERS)
def test_the_torch_engine_refuses_what_it_has_no_form_for(chosen, over):
    pytest.importorskip("torch")
    torch = importlib.import_module("tacit.engine.torch")
    run = lane(chosen | {"privacy.sensitivity": "clip", "privacy.clip": 0.4}, over)
    with pytest.raises(IncompatibleError, match="the torch engine knows"):
        torch.TorchEngine([run.agents], run.shape)


KINKED = {"hinge": {"problem.loss": "hinge"}, "l1": {"problem.regularizer": "l1"}}


@pytest.mark.parametrize("chosen", KINKED.values(), ids=KINKED)
@pytest.mark.parametrize("method", ["pvp", "dvp", "chaudhuri", "kifer", "amp", "outp-huang", "outp-plus", "onemessage"])
def test_methods_that_are_proved_for_smooth_problems_refuse_kinks(chosen, method):
    with pytest.raises(IncompatibleError, match=r"proved for|knows squares alone"):
        setup(preset("sound", method).with_values(chosen), OVER)


@pytest.mark.parametrize("chosen", KINKED.values(), ids=KINKED)
@pytest.mark.parametrize(
    ("preset_name", "method", "why"), [("paper", "admm", "has kinks"), ("paper", "outp", "Huang's step needs")]
)
def test_exact_steps_and_huangs_step_refuse_kinks(chosen, preset_name, method, why):
    with pytest.raises(IncompatibleError, match=why):
        setup(preset(preset_name, method).with_values(chosen), OVER)


@pytest.mark.parametrize("method", ["objt", "objp", "fedgd", "dpsgd", "dp-fedavg", "objp-local"])
@pytest.mark.parametrize("chosen", [*KINKED.values(), {"problem.loss": "hinge", "problem.regularizer": "l1"}])
def test_methods_that_take_steps_along_gradients_take_subgradients(method, chosen):
    values = {"run.rounds": 3, "run.seed": 0, "data.row_norm": "l2", "features.map": "none"}
    result = tacit.train(preset("sound", method).with_values(chosen | values), OVER)
    assert np.isfinite(result.w).all()
    assert np.abs(result.w).max() > 0


BAD = {
    "problem.domain_low=1 problem.domain_high=0 problem.domain=box": "the lower first",
    "problem.domain_low=nan problem.domain=box": "takes a value of type float",
    "problem.domain_center=inf problem.domain=ball": "centre of a ball",
    "problem.domain_center=1": "the set everywhere has no center",
    "problem.domain=simplex problem.domain_radius=0": "must be positive",
    "problem.domain=halfspaces": "needs file",
    "problem.domain=halfspaces problem.domain_file=halves.npz": r"shape \(5, 3\), and this one has",
    "problem.loss=hinge problem.threshold=1": "has no threshold",
    "problem.loss=poisson": "the label of heart is a class",
}


@pytest.mark.parametrize(("values", "why"), BAD.items(), ids=BAD)
def test_a_spec_that_makes_no_problem_is_refused_before_anything_is_written(values, why, tmp_path):
    given = dict(one.split("=") for one in values.split())
    with pytest.raises((SpecError, IncompatibleError), match=why):
        tacit.train(preset("sound", "objt", "heart").with_values(given | {"run.seed": 0}), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("values", [
    {"problem.domain": "box", "problem.domain_radius": 0.02}, {"problem.domain": "ball", "problem.domain_radius": 0.5},
    {"problem.domain": "simplex"},
], ids=["box", "ball", "simplex"])  # fmt: skip
@pytest.mark.filterwarnings("ignore::tacit.errors.TacitWarning")
def test_momentum_in_a_small_set_ends_where_descent_without_it_does(values):
    spec = preset("sound", "objt", "heart").with_values({"privacy.epsilon": np.inf, "run.seed": 0, **values})
    heart = tacit.load("heart")
    with_it, without = (
        tacit.train(spec.with_values({"algorithm.momentum": m}), heart).summary["objective"] for m in (None, 0.0)
    )
    assert with_it == pytest.approx(without, abs=0.002)  # it was above by 0.02 and more where corners caught it
