"""The engine over ranks, on the one rank that this process is, passes the suite of every engine."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("mpi4py")

from tacit.engine import mpi
from tacit.engine.fast import FastEngine
from tacit.engine.passes import counted
from tacit.engine.plain import PlainEngine
from tacit.engine.registry import ENGINES
from tacit.engine.spread import Part, SpreadEngine
from tacit.errors import DataError, MissingDependency, TacitError
from tests.conformance import test_engines
from tests.conformance.test_engines import FEDERATIONS, POSSIBLE, REFUSED, agree, lanes, mixed, trajectory


def engine(runs, shape):
    part = Part(runs, shape, counted([agent.shard for agent in runs[0]]))
    return SpreadEngine(part, mpi.team(), [part.agents], "mpi")


def equal(expected, got):
    for ours, theirs in zip(expected, got, strict=True):
        for (w, z, violation, trace), (w2, z2, violation2, trace2) in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(w, w2)
            np.testing.assert_array_equal(z, z2)
            assert violation == violation2
            for name in ("noise", "noise_parameter", "scale", "sensitivity"):
                assert getattr(trace, name) == getattr(trace2, name)


@pytest.mark.parametrize("case", POSSIBLE.values(), ids=POSSIBLE)
def test_mpi_is_the_fast_engine_for_every_combination(case):
    runs = lanes(FEDERATIONS["odd"], case)
    agents = [run.agents for run in runs]
    found = trajectory(engine(agents, runs[0].shape), runs)
    equal(trajectory(FastEngine(agents, runs[0].shape, 1), runs), found)
    agree(trajectory(PlainEngine(agents, runs[0].shape), runs), found)


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_mpi_refuses_what_has_no_valid_noise(case):
    test_engines.is_refused(case, "mpi")


@pytest.mark.parametrize("over", FEDERATIONS.values(), ids=FEDERATIONS)
def test_a_batch_over_every_shape_of_data_is_that_of_the_fast_engine(over):
    runs = mixed(over)
    agents = [run.agents for run in runs]
    equal(trajectory(FastEngine(agents, runs[0].shape, 1), runs), trajectory(engine(agents, runs[0].shape), runs))


@pytest.mark.parametrize("order", ["wzd", "zwd"])
def test_the_server_keeps_the_mean_of_duals_over_a_long_run(order):
    test_engines.keeps_the_mean_of_duals(order, engine)


def test_what_was_saved_goes_on_as_if_never_stopped():
    runs = mixed(FEDERATIONS["odd"])
    agents = [run.agents for run in runs]
    first, second = (engine(agents, runs[0].shape) for _ in range(2))
    trajectory(first, runs)
    for r in range(len(runs)):
        second.load(r, first.save(r))
    equal(trajectory(first, runs), trajectory(second, runs))


def test_an_agent_that_fails_in_a_round_is_told_as_its_error(monkeypatch):
    runs = lanes(FEDERATIONS["ragged"], {})
    made = engine([runs[0].agents], runs[0].shape)

    def fail(_msgs):
        raise DataError("a record is refused")

    monkeypatch.setattr(made.part.engine, "move", fail)
    with pytest.raises(DataError, match="a record is refused"):
        trajectory(made, runs)


def test_the_error_of_another_rank_has_its_kind_and_an_unknown_one_its_rank():
    assert isinstance(mpi._rebuilt("MissingDependency", "install it", 2), MissingDependency)
    unknown = mpi._rebuilt("ZeroDivisionError", "division by zero", 2)
    assert type(unknown) is TacitError
    assert str(unknown) == "rank 2: ZeroDivisionError: division by zero"
    assert type(mpi._rebuilt("unknown", "a function of the module, not a class", 1)) is TacitError


def test_the_engine_of_the_registry_has_all_agents_here():
    runs = lanes(FEDERATIONS["ragged"], {})
    assert isinstance(ENGINES["mpi"]([runs[0].agents], runs[0].shape, "cpu"), FastEngine)
