"""A distribution called tacit is not ours: what is told of one that is installed beside ours, or over it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tacit.cli import main
from tacit.machine import name_conflict
from tests.test_installation import ROOT, sections


def distribution(folder: Path, name: str) -> Path:
    """Put the metadata of a distribution called tacit into a folder, as pip or setuptools leave them."""
    (folder / name).mkdir(parents=True)
    about = "PKG-INFO" if name.endswith("egg-info") else "METADATA"
    (folder / name / about).write_text("Name: tacit\nVersion: 0.3.0\n")
    return folder


def test_our_own_distribution_is_no_conflict(tmp_path, monkeypatch) -> None:
    distribution(tmp_path, "tacit_dp-0.2.0.dist-info")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert name_conflict() is None


@pytest.mark.parametrize("name", ["tacit-0.3.0.dist-info", "Tacit-0.3.0.dist-info", "tacit-0.2.0.dev0.dist-info"])
def test_another_distribution_called_tacit_is_reported_with_what_to_do(tmp_path, monkeypatch, capsys, name) -> None:
    monkeypatch.syspath_prepend(distribution(tmp_path, name))
    found = name_conflict()
    assert found is not None
    assert str(tmp_path) in found
    assert "pip uninstall tacit tacit-dp" in found  # both: either takes files of the other with it
    assert "delete" not in found
    assert found.partition("quick-start.md#")[2].rstrip(").") in sections(ROOT / "docs" / "quick-start.md")
    assert main(["info"]) == 0
    assert f"conflict  {found}" in capsys.readouterr().out.splitlines()
    assert main(["info", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["conflict"] == found


def test_what_an_old_checkout_left_in_src_is_to_be_deleted_because_pip_does_not(tmp_path, monkeypatch) -> None:
    monkeypatch.syspath_prepend(distribution(tmp_path, "tacit.egg-info"))
    assert f"delete {tmp_path / 'tacit.egg-info'}" in (name_conflict() or "")


def test_metadata_that_cannot_be_read_are_no_reason_to_stop(tmp_path, monkeypatch) -> None:
    (tmp_path / "tacit-9.dist-info").mkdir()
    (tmp_path / "tacit-9.dist-info" / "METADATA").write_bytes(b"\xff\xfe\x1b[31m")
    monkeypatch.syspath_prepend(tmp_path)
    assert "\x1b" not in (name_conflict() or "\x1b")


def test_the_command_reports_a_package_whose_errors_replaced_ours(tmp_path) -> None:
    """`tacit` on PyPI has __init__.py and errors.py: installed after ours, these two are what is imported."""
    data = shutil.ignore_patterns("_mnist", "*.so", "*.pyc")
    shutil.copytree(ROOT / "src" / "tacit", tmp_path / "tacit", ignore=data)
    for file in ("__init__.py", "errors.py"):
        (tmp_path / "tacit" / file).write_text("class ContractError(Exception): ...\n")
    command = [sys.executable, "-m", "tacit", "info"]
    environment = {"PYTHONPATH": str(tmp_path), "PATH": ""}
    alone = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert "cannot import name" in alone.stderr  # nothing is hidden that has another reason
    distribution(tmp_path, "tacit-0.3.0.dist-info")
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert done.stderr.startswith(f"tacit: a distribution called tacit is in {tmp_path}: ")
