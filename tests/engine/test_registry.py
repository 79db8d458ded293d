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


@pytest.mark.usefixtures("without_torch")
@pytest.mark.parametrize("engine", ["plain", "fast"])
def test_other_engines_need_no_torch_and_run_on_the_cpu(engine):
    require(engine, "cpu")
    with pytest.raises(IncompatibleError, match="--engine torch"):
        require(engine, "cuda")


def test_torch_is_not_imported_unless_it_is_used():
    code = "import sys, tacit, tacit.cli.train, tacit.run.train; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
