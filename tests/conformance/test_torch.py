"""The torch engine gives the plain engine's trajectory: same noise, float32 tolerance. Skipped without torch."""

from dataclasses import replace

import numpy as np
import pytest

from tacit.cli import main
from tacit.engine.plain import PlainEngine
from tacit.engine.registry import ENGINES
from tacit.errors import IncompatibleError, SpecError
from tacit.privacy import noise
from tacit.problem.loss import Softmax
from tacit.run.build import setup
from tacit.run.presets import preset
from tests.conformance.test_engines import (
    FEDERATIONS,
    NUMBERS,
    POSSIBLE,
    REFUSED,
    agree,
    is_refused,
    keeps_the_mean_of_duals,
    lanes,
    mixed,
    trajectory,
)

torch = pytest.importorskip("torch")
from tacit.engine import torch as on_torch  # noqa: E402
from tacit.engine.torch import TorchEngine  # noqa: E402

torch.set_num_threads(1)  # more would only wait for one another on arrays this small

ABSENT = "mps" if torch.cuda.is_available() else "cuda"  # no machine has both


def follows_plain(runs):
    agents = [run.agents for run in runs]
    agree(
        trajectory(PlainEngine(agents, runs[0].shape), runs),
        trajectory(TorchEngine(agents, runs[0].shape), runs),
    )


@pytest.mark.parametrize("case", POSSIBLE.values(), ids=POSSIBLE)
def test_torch_follows_plain_for_every_combination(case):
    follows_plain(lanes(FEDERATIONS["odd"], case))


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_a_combination_without_valid_noise_is_refused_before_an_engine_is_built(case):
    is_refused(case, "torch")


@pytest.mark.parametrize("over", FEDERATIONS.values(), ids=FEDERATIONS)
@pytest.mark.parametrize("algorithm", ["iadmm-prox", "iadmm-trust", "objp", "objt", "outp"])
@pytest.mark.parametrize("name", ["paper", "released"])
def test_torch_follows_plain_on_every_shape_of_data(over, algorithm, name):
    follows_plain([setup(preset(name, algorithm).with_values({"problem.beta": 0.01}), over)])


@pytest.mark.parametrize("over", NUMBERS.values(), ids=NUMBERS)
@pytest.mark.parametrize("bound", ["clip", "observed"])
def test_torch_follows_plain_where_the_label_is_a_number(over, bound):
    choice = {"problem.loss": "squared", "privacy.sensitivity": bound, "privacy.clip": 0.4}
    follows_plain(lanes(over, choice, choice | {"run.seed": 1}))


def test_torch_refuses_huber_by_name():
    runs = lanes(NUMBERS["ragged"], {"problem.loss": "huber", "privacy.sensitivity": "clip"})
    with pytest.raises(IncompatibleError, match="not Huber: use the fast or the plain engine"):
        TorchEngine([run.agents for run in runs], runs[0].shape)


@pytest.mark.parametrize("over", FEDERATIONS.values(), ids=FEDERATIONS)
def test_runs_of_any_kind_share_a_batch(over):
    other = {"privacy.sensitivity": "clip", "privacy.clip": 0.3, "problem.loss": "squared", "problem.domain": "ball"}
    runs = [*mixed(over), *lanes(over, other, other | {"algorithm.trust_norm": "l2"}, {"problem.regularizer": "none"})]
    follows_plain(runs)


@pytest.mark.parametrize("order", ["wzd", "zwd"])
def test_the_server_keeps_the_mean_of_duals_it_never_sees_over_a_long_run(order):
    keeps_the_mean_of_duals(order, TorchEngine)


@pytest.mark.parametrize("order", ["wzd", "zwd"])
def test_a_penalty_that_grows_reaches_the_dual_in_its_own_round(order):
    growing = {"schedule.rho": "dynamic", "schedule.rho_period": 2.0, "privacy.adjacency": "replace_one"}
    follows_plain(lanes(FEDERATIONS["ragged"], growing | {"algorithm.order": order, "algorithm.rule": "prox"}))


@pytest.mark.parametrize("records", [1, 5, 30])
def test_how_records_are_cut_into_blocks_changes_nothing(monkeypatch, records):
    runs = lanes(FEDERATIONS["odd"], {})
    monkeypatch.setattr(on_torch, "SCORES", records * runs[0].shape[1])
    follows_plain(runs)


def test_noise_drawn_on_the_device_is_the_same(monkeypatch):
    monkeypatch.setattr(on_torch, "_integers", on_torch._on_device)
    follows_plain(mixed(FEDERATIONS["many classes"]))


@pytest.mark.parametrize("draw", [on_torch._integers, on_torch._on_device])
@pytest.mark.parametrize("n", [1, 8, 37])
def test_integers_are_those_of_the_plain_engine_bit_for_bit(draw, n):
    keys = [[(0, 0), (7, 0)], [(2**63 - 1, 1), (12345678901234567, 195)]]
    bits = draw(torch.tensor(keys), 20_000, n)
    for p, r in np.ndindex(2, 2):
        np.testing.assert_array_equal(bits[p, r], noise.integers(keys[p][r], 20_000, 0, n))


def test_uniform_numbers_are_those_of_the_plain_engine_bit_for_bit():
    bits = np.concatenate([noise.integers((3, 1), 1, 0, 20_000), np.array([0, 1, 2**32 - 1], np.uint32)])
    wide = torch.from_numpy(bits.astype(np.int64))
    np.testing.assert_array_equal(on_torch._unit(wide, 32), noise.unit(bits, 32))
    np.testing.assert_array_equal(on_torch._unit(wide // 2, 31), noise.unit(bits // 2, 31))


def test_what_was_saved_goes_on_as_if_never_stopped():
    runs = mixed(FEDERATIONS["odd"])
    agents = [run.agents for run in runs]
    first, second = (TorchEngine(agents, runs[0].shape) for _ in range(2))
    trajectory(first, runs)
    for r in range(len(runs)):
        second.load(r, first.save(r))
    for name in ("z", "dual", "rho"):
        assert torch.equal(getattr(first, name), getattr(second, name))


def test_parameters_are_float32():
    run = lanes(FEDERATIONS["odd"], {})[0]
    engine = TorchEngine([run.agents], run.shape)
    trajectory(engine, [run])
    assert {engine.z.dtype, engine.dual.dtype, engine.rho.dtype} == {torch.float32}


def test_exact_steps_stay_with_the_plain_engine():
    run = setup(preset("paper", "admm"), FEDERATIONS["ragged"])
    assert isinstance(ENGINES["torch"]([run.agents], run.shape, "cpu"), PlainEngine)


def test_a_loss_of_ones_own_is_refused_by_name():
    class Mine(Softmax):
        pass

    run = lanes(FEDERATIONS["ragged"], {})[0]
    agents = [replace(agent, problem=replace(agent.problem, loss=Mine())) for agent in run.agents]
    with pytest.raises(IncompatibleError, match="Softmax, Squared and not Mine"):
        TorchEngine([agents], run.shape)


def test_a_device_that_is_not_there_is_refused():
    run = lanes(FEDERATIONS["ragged"], {})[0]
    with pytest.raises(SpecError, match=f"no device '{ABSENT}'"):
        TorchEngine([run.agents], run.shape, ABSENT)


SMALL = ["train", "--data", "synthetic", "--set", "data.records=60", "--rounds", "3", "--out", "run", "-qq"]


def test_a_flag_chooses_the_engine_and_the_device(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main([*SMALL, "--engine", "torch", "--device", ABSENT]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n"), list(tmp_path.iterdir())) == ("", 1, [])
    assert main([*SMALL, "--engine", "torch", "--device", "cpu", "--json"]) == 0
    assert "on cpu" in capsys.readouterr().out
