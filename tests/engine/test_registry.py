"""Engines by name: torch is asked for only when it is wanted, and its absence says what to install."""

import subprocess
import sys

import pytest

from tacit.cli import main
from tacit.engine.registry import require
from tacit.errors import IncompatibleError, MissingDependency


@pytest.fixture
def without_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "tacit.engine.torch", raising=False)


@pytest.mark.usefixtures("without_torch")
def test_without_torch_the_message_says_what_to_install(capsys, tmp_path, monkeypatch):
    with pytest.raises(MissingDependency, match=r"pip install 'tacit\[torch\]'"):
        require("torch", "cpu")
    monkeypatch.chdir(tmp_path)
    assert main(["train", "--data", "synthetic", "--rounds", "2", "--engine", "torch", "--out", "run"]) == 2
    assert capsys.readouterr().err == "tacit: the torch engine needs torch: pip install 'tacit[torch]'\n"
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
        assert "pip install 'tacit[mpi]'" in capsys.readouterr().err
        assert not (tmp_path / "run").exists()


@pytest.mark.usefixtures("without_torch")
@pytest.mark.parametrize("engine", ["plain", "fast"])
def test_other_engines_need_no_torch_and_run_on_the_cpu(engine):
    require(engine, "cpu")
    with pytest.raises(IncompatibleError, match="--engine torch"):
        require(engine, "cuda")


def test_torch_is_not_imported_unless_it_is_used():
    code = "import sys, tacit, tacit.cli.train, tacit.run.train; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
