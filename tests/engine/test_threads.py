"""Runs on several threads, in child processes: tests/conftest.py gives BLAS one thread in the process of the tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tacit.engine.kernels import compiled
from tacit.machine import allowed_cores
from tests.docs_blocks import ROOT

pytest.importorskip("threadpoolctl", reason="counts the threads of BLAS; comes with scikit-learn")

TRAIN = """
import sys
import numpy as np
from threadpoolctl import threadpool_info
import tacit
from tests.conftest import federation, numbers

sizes = (3000, 2500, 4001)
records = {"softmax": federation(3, 64, 10, sizes=sizes), "huber": numbers(3, 64, sizes=sizes)}
models = {}
for loss, over in records.items():
    spec = tacit.preset("paper", "objt").with_values({"problem.loss": loss, "run.rounds": 5, "run.seed": 1})
    models[loss] = tacit.train(spec, over).w
np.savez(sys.argv[1], blas=max(pool["num_threads"] for pool in threadpool_info()), **models)
"""


def trained(path: Path, threads: int) -> dict[str, np.ndarray]:
    """Return the models of two runs in a process with this number of threads, for the engine and for BLAS."""
    names = ("TACIT_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    paths = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
    environment = {**os.environ, **dict.fromkeys(names, str(threads)), "PYTHONPATH": paths}
    subprocess.run([sys.executable, "-c", TRAIN, str(path)], env=environment, check=True)
    with np.load(path) as models:
        return dict(models)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, np.ndarray]]:
    """The models on one thread, and on three."""
    folder = tmp_path_factory.mktemp("threads")
    found = [trained(folder / f"{threads}.npz", threads) for threads in (1, 3)]
    assert [int(models["blas"]) for models in found] == [1, min(3, allowed_cores())]  # OpenBLAS takes a core per thread
    assert all(models[loss].any() for models in found for loss in ("softmax", "huber"))
    return found


@pytest.mark.skipif(compiled() is None, reason="kernels were not built")
def test_the_compiled_loops_give_the_same_bits_on_several_threads(runs):
    one, three = runs
    np.testing.assert_array_equal(one["softmax"], three["softmax"])


def test_a_loss_without_compiled_loops_has_the_same_model_on_several_threads_of_blas(runs):
    one, three = runs
    np.testing.assert_allclose(one["huber"], three["huber"], rtol=0, atol=1e-4 * np.abs(one["huber"]).max())


def test_blas_has_one_thread_in_a_worker():
    from threadpoolctl import threadpool_info

    assert {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"} <= {1}
