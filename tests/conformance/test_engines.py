"""Every engine gives the plain engine's trajectory: same noise, float32 tolerance."""

from dataclasses import replace

import numpy as np
import pytest

from tacit.admm.updates import ascent
from tacit.engine import passes
from tacit.engine.fast import FastEngine
from tacit.engine.kernels import bytes_if_exact, compiled
from tacit.engine.plain import PlainEngine
from tacit.errors import IncompatibleError
from tacit.rounds import rounds as loop
from tacit.run.build import setup
from tacit.run.presets import preset
from tacit.types import Federation, Shard
from tests.conftest import federation, instructions, numbers

BASE = {"schedule.rho": "static", "schedule.rho_static": 0.7, "privacy.epsilon": 2.0, "problem.beta": 0.01}


def odd_federation() -> Federation:
    """Empty records, features nobody has, agents of one record."""
    over = federation(4, 7, 2, seed=3, sizes=(1, 12, 30, 2))

    def blank(shard: Shard) -> Shard:
        x = shard.x.copy()
        x[::3] = 0
        x[:, [0, 5]] = 0
        return Shard(x, shard.y)

    return over.map(blank)


FEDERATIONS = {
    "ragged": federation(3, 5, 3, sizes=(4, 9, 23)),
    "one agent": federation(1, 4, 3),
    "two classes": federation(3, 6, 2),
    "many classes": federation(3, 4, 21, sizes=(40, 50, 60)),
    "several blocks": federation(2, 5, 3, sizes=(700, 1300)),
    "several pieces": federation(2, 19, 3, sizes=(5000, 100)),
    "odd": odd_federation(),
}

LOSSES_AND_BOUNDS = (("softmax", "observed"), ("softmax", "clip"), ("squared", "clip"), ("softmax", "feature_bounds"))

CASES = {
    f"{rule}-{domain}-{norm}-{where}-{order}-{at}-{loss}-{law}-{bound}": {
        "algorithm.rule": rule, "problem.domain": domain, "problem.domain_radius": 0.2, "algorithm.trust_norm": norm,
        "algorithm.perturbation": where, "algorithm.order": order, "algorithm.linearize_at": at, "problem.loss": loss,
        "privacy.mechanism": law, "privacy.sensitivity": bound, "privacy.clip": 0.4, "schedule.radius": "constant",
        "schedule.radius_a": 0.05,
    }
    for rule, norm in (("prox", "inf"), ("trust", "inf"), ("trust", "l2"))
    for domain in ("everywhere", "box", "ball")
    for where, order in (("objective", "wzd"), ("output", "zwd"), ("objective", "zwd"))
    for at in ("z", "w")
    for loss, bound in LOSSES_AND_BOUNDS
    for law in ("laplace", "gaussian")
}  # fmt: skip


def refusal(case):
    """Why a case has no valid noise, in words of the message; None where every engine must run it."""
    if case["algorithm.perturbation"] == "objective":
        return None
    domain, trust = case["problem.domain"], case["algorithm.rule"] == "trust"
    if trust and domain != "everywhere":
        return f"output noise can leave the {domain}"
    ball = domain == "ball" or (trust and case["algorithm.trust_norm"] == "l2")
    return "can lengthen a step in l1" if ball and case["privacy.mechanism"] == "laplace" else None


REFUSED = {name: case for name, case in CASES.items() if refusal(case)}
POSSIBLE = {name: case for name, case in CASES.items() if not refusal(case)}


def trajectory(engine, runs, rounds=6):
    """(R, rounds, J, K) of w, and the last infos."""
    servers, seen = [replace(run.server, rounds=rounds) for run in runs], [[] for _ in runs]
    for ended in loop(servers, [server.start() for server in servers], engine.exchange_all):
        for r, (state, info) in enumerate(ended):
            seen[r].append((state.w, state.own["z_mean"], info.violation(), info.trace))
    return seen


def agree(expected, got):
    for ours, theirs in zip(expected, got, strict=True):
        for (w, z, violation, trace), (w2, z2, violation2, trace2) in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(w2, w, atol=2e-5 * max(1, np.abs(w).max()))
            np.testing.assert_allclose(z2, z, atol=2e-5 * max(1, np.abs(z).max()))
            assert violation2 == pytest.approx(violation, rel=1e-3, abs=1e-4)
            assert trace2.scale == pytest.approx(trace.scale, rel=1e-4)
            assert trace2.noise == pytest.approx(trace.noise, rel=1e-4)
            assert trace2.noise_parameter == pytest.approx(trace.noise_parameter, rel=1e-4)
            assert trace2.sensitivity == pytest.approx(trace.sensitivity, rel=1e-4)
            assert trace2.binding == pytest.approx(trace.binding, abs=1 / w.size)  # an entry may lie within rounding


def lanes(over, *choices):
    return [setup(preset("paper", "objt").with_values(BASE | values), over) for values in choices]


PATHS = [False, pytest.param(True, marks=pytest.mark.skipif(compiled() is None, reason="kernels were not built"))]


@pytest.fixture(params=PATHS, ids=["numpy", "compiled"])
def path(request, monkeypatch):
    if not request.param:
        monkeypatch.setenv("TACIT_NO_KERNELS", "1")
    return request.param


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("case", POSSIBLE.values(), ids=POSSIBLE)
def test_fast_follows_plain_for_every_combination(case):
    runs = lanes(FEDERATIONS["odd"], case)
    agents = [run.agents for run in runs]
    agree(trajectory(PlainEngine(agents, runs[0].shape), runs), trajectory(FastEngine(agents, runs[0].shape, 2), runs))


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("engine", ["plain", "fast"])
def test_a_combination_without_valid_noise_is_refused_before_an_engine_is_built(engine, case):
    is_refused(case, engine)


def is_refused(case, engine):
    with pytest.raises(IncompatibleError, match=refusal(case)):
        lanes(FEDERATIONS["odd"], case | {"run.engine": engine})


def test_the_combinations_that_run_and_those_that_are_refused_are_counted():
    assert (len(POSSIBLE), len(REFUSED)) == (352, 80)


@pytest.mark.parametrize("over", FEDERATIONS.values(), ids=FEDERATIONS)
@pytest.mark.parametrize("algorithm", ["iadmm-prox", "iadmm-trust", "objp", "objt", "outp"])
@pytest.mark.parametrize("name", ["paper", "released"])
def test_fast_follows_plain_on_every_shape_of_data(path, over, algorithm, name):
    runs = [setup(preset(name, algorithm).with_values({"problem.beta": 0.01}), over)]
    agents = [run.agents for run in runs]
    engine = FastEngine(agents, runs[0].shape, 2)
    assert ("BLAS" not in engine.path) == path
    agree(trajectory(PlainEngine(agents, runs[0].shape), runs), trajectory(engine, runs))


NUMBERS = {
    "ragged": numbers(3, 5, sizes=(4, 9, 23)),
    "one agent": numbers(1, 4),
    "whole rows": numbers(3, 19, sizes=(40, 50, 60)),
    "several pieces": numbers(2, 9, sizes=(5000, 100)),
    "non-zeros": numbers(3, 40, sizes=(70, 80, 90)).map(
        lambda shard: Shard(np.where(np.arange(40) % 9 == np.arange(len(shard))[:, None] % 9, shard.x, 0), shard.y)
    ),
}


@pytest.mark.parametrize("over", NUMBERS.values(), ids=NUMBERS)
@pytest.mark.parametrize(("loss", "bound"), [("squared", "clip"), ("squared", "observed"), ("huber", "feature_bounds")])
@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_fast_follows_plain_where_the_label_is_a_number(path, over, loss, bound, law):
    choice = {"problem.loss": loss, "privacy.sensitivity": bound, "privacy.clip": 0.4, "privacy.mechanism": law}
    runs = lanes(over, choice, choice | {"run.seed": 1})
    agents = [run.agents for run in runs]
    engine = FastEngine(agents, runs[0].shape, 2)
    assert ("BLAS" not in engine.path) == (path and loss == "squared")  # huber has no compiled form
    agree(trajectory(PlainEngine(agents, runs[0].shape), runs), trajectory(engine, runs))


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("order", ["wzd", "zwd"])
def test_the_server_keeps_the_mean_of_duals_it_never_sees_over_a_long_run(order):
    """Server and agents round w alike: else rho (w - z) differs a little each round, and always the same way."""
    keeps_the_mean_of_duals(order, lambda agents, shape: FastEngine(agents, shape, 1))


def keeps_the_mean_of_duals(order, make):
    silent = {"privacy.epsilon": float("inf"), "algorithm.order": order, "schedule.radius": "constant"}
    (run,) = lanes(FEDERATIONS["ragged"], silent | {"schedule.rho_static": 2.4})  # no float32
    engine, server = make([run.agents], run.shape), replace(run.server, rounds=3000)
    *_, ((state, info),) = loop([server], [server.start()], engine.exchange_all)
    saved = engine.save(0)
    z, dual = (saved[name].mean(0, dtype=np.float64) for name in ("z", "dual"))
    if order == "zwd":  # agents hear the last w in the next round
        dual = ascent(dual, state.w, z, info.rho)
    # what is left is the rounding of float32 duals themselves, which stops at some 4e-6 of them
    np.testing.assert_allclose(state.own["dual_mean"], dual, rtol=0, atol=1e-5 * np.abs(saved["dual"]).max())


def mixed(over):
    return lanes(
        over,
        {"run.seed": 1},
        {"run.seed": 2, "algorithm.rule": "prox"},
        {"privacy.mechanism": "gaussian", "privacy.sensitivity": "feature_bounds", "algorithm.linearize_at": "w"},
        {"privacy.epsilon": float("inf")},
        {"algorithm.perturbation": "output", "algorithm.rule": "prox", "algorithm.order": "zwd", "run.seed": 5},
        *({"run.seed": seed, "privacy.epsilon": 0.1 * seed} for seed in range(10, 17)),
    )


@pytest.mark.parametrize("over", FEDERATIONS.values(), ids=FEDERATIONS)
def test_runs_in_a_batch_do_not_disturb_one_another(path, over):
    runs = mixed(over)
    agents = [run.agents for run in runs]
    batch = FastEngine(agents, runs[0].shape, 2)
    assert batch.fused == path
    agree(trajectory(PlainEngine(agents, runs[0].shape), runs), trajectory(batch, runs))


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("over", FEDERATIONS.values(), ids=FEDERATIONS)
def test_the_number_of_threads_never_changes_a_bit(over):
    runs = mixed(over)
    agents = [run.agents for run in runs]
    one, three = (trajectory(FastEngine(agents, runs[0].shape, n), runs) for n in (1, 3))
    for ours, theirs in zip(one, three, strict=True):
        for (w, z, *_), (w2, z2, *_) in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(w, w2)
            np.testing.assert_array_equal(z, z2)


@pytest.mark.usefixtures("path")
def test_what_was_saved_goes_on_as_if_never_stopped():
    runs = mixed(FEDERATIONS["odd"])
    agents = [run.agents for run in runs]
    first, second = (FastEngine(agents, runs[0].shape, 1) for _ in range(2))
    trajectory(first, runs)
    for r in range(len(runs)):
        second.load(r, first.save(r))
    np.testing.assert_array_equal(first.z, second.z)
    np.testing.assert_array_equal(first.dual, second.dual)


@pytest.mark.skipif(compiled() is None, reason="kernels were not built")
@pytest.mark.parametrize("name", ["avx512", "avx2", "plain"])
@pytest.mark.parametrize("form", passes.Form, ids=lambda form: form.name.lower())
@pytest.mark.parametrize("over", [*FEDERATIONS.values(), federation(2, 90, 3)], ids=[*FEDERATIONS, "many features"])
def test_every_form_and_instruction_set_follows_plain(monkeypatch, name, form, over):
    monkeypatch.setattr(passes, "layouts_that_fit", lambda *_: [passes.Layout(form)])
    with instructions(name):
        runs = mixed(over)
        agents = [run.agents for run in runs]
        engine = FastEngine(agents, runs[0].shape, 1)
        assert name in engine.path
        assert form.value in engine.path
        agree(trajectory(PlainEngine(agents, runs[0].shape), runs), trajectory(engine, runs))


@pytest.mark.usefixtures("path")
def test_parameters_are_float32():
    runs = lanes(FEDERATIONS["odd"], {})
    engine = FastEngine([runs[0].agents], runs[0].shape, 1)
    trajectory(engine, runs)
    assert {engine.z.dtype, engine.dual.dtype, engine.w.dtype} == {np.dtype(np.float32)}


def test_pixels_are_kept_as_bytes():
    x = np.arange(12).reshape(3, 4).astype(np.float32) / np.float32(255)
    pixels, scale = bytes_if_exact(x)
    assert pixels.dtype == np.uint8
    np.testing.assert_allclose(pixels * scale, x, rtol=1e-7)
    assert bytes_if_exact(x * np.float32(1.01))[0].dtype == np.float32


def test_without_a_compiler_records_go_through_blas(monkeypatch):
    monkeypatch.setenv("TACIT_NO_KERNELS", "1")
    runs = lanes(FEDERATIONS["ragged"], {})
    assert "dense" in FastEngine([runs[0].agents], runs[0].shape, 1).path


def test_a_loss_of_ones_own_runs_dense():
    from tacit.problem.loss import Softmax

    class Mine(Softmax):
        pass

    over = FEDERATIONS["odd"]
    run = lanes(over, {})[0]
    agents = [replace(agent, problem=replace(agent.problem, loss=Mine())) for agent in run.agents]
    engine = FastEngine([agents], run.shape, 1)
    assert "dense" in engine.path
    agree(trajectory(PlainEngine([agents], run.shape), [run]), trajectory(engine, [run]))
