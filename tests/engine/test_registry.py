"""Engines by name: torch is asked for only when it is wanted, and its absence says what to install."""

import subprocess
import sys

import pytest

from tacit.cli import main
from tacit.engine.registry import require
from tacit.errors import IncompatibleError, MissingDependency, install_extra
from tacit.machine import under_mpi


@pytest.fixture
def without_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "tacit.engine.torch", raising=False)


@pytest.mark.usefixtures("without_torch")
def test_without_torch_the_message_says_what_to_install(capsys, tmp_path, monkeypatch):
    with pytest.raises(MissingDependency, match="the extra 'torch'"):
        require("torch", "cpu")
    monkeypatch.chdir(tmp_path)
    assert main(["train", "--data", "synthetic", "--rounds", "2", "--engine", "torch", "--out", "run"]) == 2
    assert capsys.readouterr().err == f"tacit: the torch engine needs torch: {install_extra('torch')}.\n"
    assert list(tmp_path.iterdir()) == []


def test_without_mpi4py_the_message_says_what_to_install(capsys, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    monkeypatch.delitem(sys.modules, "tacit.engine.mpi", raising=False)
    monkeypatch.chdir(tmp_path)
    for name in ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"):
        monkeypatch.delenv(name, raising=False)
    for under in (False, True):  # alone, and as a rank of mpiexec
        if under:
            monkeypatch.setenv("PMIX_RANK", "0")
        assert main(["train", "--data", "synthetic", "--rounds", "2", "--engine", "mpi", "--out", "run"]) == 2
        assert "the extra 'mpi'" in capsys.readouterr().err
        assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("told", "several"),
    [
        ({"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"}, True),
        ({"PMI_RANK": "1", "PMI_SIZE": "2", "SLURM_STEP_NUM_TASKS": "1"}, True),  # mpiexec in a shell of srun
        ({"PMIX_RANK": "0"}, True),  # nobody says how many
        ({"PMIX_RANK": "0", "SLURM_STEP_NUM_TASKS": "4"}, True),
        ({"PMIX_RANK": "0", "SLURM_STEP_NUM_TASKS": "1"}, False),
        ({"PMI_RANK": "0", "PMI_SIZE": "1"}, False),
        ({}, False),
    ],
)
def test_one_process_of_a_batch_system_is_no_rank(told, several, tmp_path, monkeypatch):
    """srun names the rank of its only process too: a user without mpi4py can train there."""
    for name in ("OMPI_COMM_WORLD", "PMIX", "PMI"):
        for what in ("RANK", "SIZE"):
            monkeypatch.delenv(f"{name}_{what}", raising=False)
    monkeypatch.delenv("SLURM_STEP_NUM_TASKS", raising=False)
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    assert under_mpi() is several
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    monkeypatch.delitem(sys.modules, "tacit.engine.mpi", raising=False)
    words = ["train", "--data", "synthetic", "--rounds", "1", "--seed", "0", "-qq", "--out", str(tmp_path / "run")]
    assert main(words) == (2 if several else 0)


@pytest.mark.usefixtures("without_torch")
@pytest.mark.parametrize("engine", ["plain", "fast"])
def test_other_engines_need_no_torch_and_run_on_the_cpu(engine):
    require(engine, "cpu")
    with pytest.raises(IncompatibleError, match="--engine torch"):
        require(engine, "cuda")


def test_torch_is_not_imported_unless_it_is_used():
    code = "import sys, tacit, tacit.cli.train, tacit.run.train; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
