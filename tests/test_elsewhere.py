"""Shards whose records another process holds: all that is known of them is their number."""

from dataclasses import replace

import numpy as np
import pytest

from tacit.data import synthetic
from tacit.engine.evaluate import loss_and_errors
from tacit.engine.fast import FastEngine
from tacit.engine.registry import ENGINES
from tacit.errors import DataError, Refused
from tacit.run import build, deploy
from tacit.run.presets import preset
from tacit.run.train import train
from tacit.types import Federation, Shard


def hollow(federation: Federation, kept: int) -> Federation:
    """The federation as agent `kept` knows it before the run: its own records, and the numbers of the others'."""
    shards = [
        shard if p == kept else Shard.elsewhere(len(shard), shard.x.shape[1])
        for p, shard in enumerate(federation.shards)
    ]
    return replace(federation, shards=tuple(shards))


def test_records_elsewhere_take_no_memory() -> None:
    shard = Shard.elsewhere(10**9, 10**4)
    assert len(shard) == 10**9
    assert shard.x.base is not None
    assert max(shard.x.strides) == 0


@pytest.mark.parametrize("features", ["none", "auto", "fourier"])
def test_an_agent_that_knows_the_numbers_of_the_others_composes_the_run_that_one_process_does(features: str) -> None:
    spec = preset("sound", "objt", "synthetic").with_values(
        {"features.map": features, "data.intercept": True, "run.rounds": 7}
    )
    whole = synthetic.make(3, 200, 6, 3, seed=5)
    told = build.transformed(spec, whole)
    own = build.transformed(spec, hollow(whole, 1))
    assert [len(shard) for shard in own.shards] == [len(shard) for shard in told.shards]
    assert [shard.here for shard in own.shards] == [False, True, False]
    for known in ("recipe", "features", "bounds", "longest"):
        assert getattr(own, known) == getattr(told, known)
    np.testing.assert_array_equal(own.shards[1].x, told.shards[1].x)
    ours, theirs = build.admm_setup(spec, own), build.admm_setup(spec, told)
    assert ours.shape == theirs.shape
    assert [ours.rho(t) for t in (1, 4, 7)] == [theirs.rho(t) for t in (1, 4, 7)]
    assert [a.variant for a in ours.agents] == [a.variant for a in theirs.agents]
    assert ours.server.momentum == theirs.server.momentum


def test_checksums_that_other_processes_tell_make_the_checksum_of_the_whole() -> None:
    whole = synthetic.make(3, 60, 4, 2, seed=1)
    own = hollow(whole, 0)
    told = [
        shard if shard.here else Shard.elsewhere(len(shard), 4, known.checksum)
        for shard, known in zip(own.shards, whole.shards, strict=True)
    ]
    assert replace(own, shards=tuple(told)).checksum == whole.checksum != own.checksum


def test_a_checksum_tells_how_many_records_are_elsewhere() -> None:
    whole = synthetic.make(3, 60, 4, 2, seed=1)
    fewer = replace(hollow(whole, 0), shards=(whole.shards[0], *(Shard.elsewhere(7, 4) for _ in range(2))))
    assert len({whole.checksum, hollow(whole, 0).checksum, hollow(whole, 1).checksum, fewer.checksum}) == 4


@pytest.mark.parametrize("algorithm", ["objt", "objp", "outp"])
def test_nothing_is_computed_on_the_zeros_that_stand_for_records_elsewhere(algorithm: str) -> None:
    spec = preset("sound", algorithm, "synthetic").with_values({"run.rounds": 2})
    setup = build.admm_setup(spec, build.transformed(spec, hollow(synthetic.make(3, 60, 4, 2, seed=1), 0)))
    here, away = setup.agents[0], setup.agents[1]
    w = np.zeros(setup.shape)
    here.gradient(w, w)
    with pytest.raises(DataError, match="elsewhere"):
        away.gradient(w, w)
    with pytest.raises(DataError, match="elsewhere"):
        away.in_double()
    with pytest.raises(DataError, match="elsewhere"):
        loss_and_errors(w, away.shard, away.problem.loss)
    with pytest.raises(DataError, match="elsewhere"):
        away.shard.rows([0])
    with pytest.raises(DataError, match="elsewhere"):
        FastEngine([setup.agents], setup.shape)
    for name in ("plain", "fast"):
        with pytest.raises(DataError, match="elsewhere"):
            ENGINES[name]([setup.agents], setup.shape)


@pytest.mark.filterwarnings("ignore::tacit.errors.RefusalWarning")
@pytest.mark.parametrize("noise", ["simulated", "exact"])
def test_a_run_in_one_process_needs_all_records(noise: str) -> None:
    spec = preset("sound", "objt", "synthetic").with_values({"run.rounds": 2, "privacy.noise": noise})
    with pytest.raises((DataError, Refused), match=r"elsewhere|does not answer"):
        train(spec, hollow(synthetic.make(3, 60, 4, 2, seed=1), 0))


def test_a_deployed_agent_answers_for_records_that_it_holds_alone() -> None:
    spec = preset("sound", "objt", "synthetic").with_values({"run.rounds": 2, "privacy.noise": "exact"})
    over = build.transformed(spec, hollow(synthetic.make(3, 60, 4, 2, seed=1), 0))
    deployment = build.admm_setup(spec, over).deployment
    pairs = zip(deployment.agreements, over.shards, strict=True)
    first, second, _ = (deploy.queries_of(own, shard)[0] for own, shard in pairs)
    assert first.value is not None
    with pytest.raises(DataError, match="elsewhere"):
        _ = second.value
