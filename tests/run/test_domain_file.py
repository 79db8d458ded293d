"""A set W that is read from a file is part of a run; numbers beyond all engines and odd models are refused."""

import numpy as np
import pytest

from tacit.errors import IncompatibleError, Interrupted, RunDirectoryError, SpecError
from tacit.problem.domain import from_values
from tacit.problem.l1 import L1
from tacit.problem.objective import Problem
from tacit.run import sweep
from tacit.run.model import Model
from tacit.run.presets import preset
from tacit.run.train import resume, train
from tacit.types import Target
from tests.conftest import federation


def halfspace(path, sign=1.0):
    np.savez(path, normals=np.full((1, 4, 3), sign), offsets=np.zeros(1))


def spec_of(file, rounds=6):
    return preset("sound", "objp").with_values({
        "problem.domain": "halfspaces", "problem.domain_file": str(file), "features.map": "none", "run.seed": 0,
        "run.rounds": rounds, "data.row_norm": "l2",
    })  # fmt: skip


def stopped_after(n):
    def hear(done, _row):
        if done == n:
            raise KeyboardInterrupt

    return hear


def test_a_run_goes_on_with_the_set_that_it_began_with_and_no_other(tmp_path):
    file, out = tmp_path / "w.npz", tmp_path / "run"
    halfspace(file)
    whole = train(spec_of(file), federation(), tmp_path / "whole")
    with pytest.raises(Interrupted):
        train(spec_of(file), federation(), out, stopped_after(3))
    halfspace(file, -1.0)
    with pytest.raises(RunDirectoryError, match="started on other data"):
        resume(out, federation())
    halfspace(file)
    np.testing.assert_array_equal(resume(out, federation()).w, whole.w)


def test_a_file_that_changes_while_a_run_goes_on_is_not_taken_for_the_set_of_that_run(tmp_path):
    file, out = tmp_path / "w.npz", tmp_path / "run"
    halfspace(file)

    def hear(done, _row):
        if done == 3:
            halfspace(file, -1.0)
            raise KeyboardInterrupt

    with pytest.raises(Interrupted):
        train(spec_of(file), federation(), out, hear)
    with pytest.raises(RunDirectoryError, match="started on other data"):
        resume(out, federation())


def test_a_sweep_takes_no_run_of_another_set_for_its_own(tmp_path):
    file = tmp_path / "w.npz"
    values = spec_of(file).values() | {"data.source": "synthetic", "data.features": 4, "data.agents": 2}
    halfspace(file)
    members = sweep.expand({key: value for key, value in values.items() if value is not None}, "here")
    (first,) = sweep.run(members, tmp_path / "out")
    assert len(first["domain_sha256"]) == 64
    assert sweep.run(members, tmp_path / "out") == [first]
    halfspace(file, -1.0)
    with pytest.raises(RunDirectoryError, match="restore the file, or remove the run"):
        sweep.run(members, tmp_path / "out")


@pytest.mark.parametrize("key", ["low", "high", "radius", "center"])
def test_a_set_of_numbers_beyond_single_precision_is_refused(key):
    name = "ball" if key == "center" else "box"
    with pytest.raises(SpecError, match="at most 1e\\+30 in size"):
        from_values({"domain": name, f"domain_{key}": -1e31 if key == "low" else 1e31})


def test_kinks_that_weigh_nothing_have_no_curvature():
    assert Problem(3, 0.1, regularizer=L1(), beta=0.0).regular_curvature == 0.0
    assert Problem(3, 0.1, regularizer=L1(), beta=0.1).regular_curvature == np.inf


@pytest.mark.parametrize(("loss", "low", "why"), [
    ("nonsense", 0.0, "nobody has registered"), ("hinge", 0.0, "not predicted by the loss hinge"),
    ("poisson", -3.0, "begins at 0"),
])  # fmt: skip
def test_a_model_of_a_number_whose_loss_does_not_fit_is_refused(tmp_path, loss, low, why):
    model = Model(np.ones((2, 1)), np.ones((2, 1)), (), ("a", "b"), False, target=Target(low, 9.0), loss=loss)
    np.savez(tmp_path / "model.npz", **model.arrays())
    with pytest.raises((RunDirectoryError, IncompatibleError), match=why):
        Model.read(tmp_path / "model.npz")
