"""A figure never trains: records alone give the same bytes, whoever asks and whenever."""

import os
import subprocess
import sys

import pytest

from tacit.cli import main
from tests.report import made

REPORT = [sys.executable, "-m", "tacit", "report"]


def contents(directory):
    return {path.relative_to(directory): path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file()}


def test_two_processes_write_the_same_bytes(tmp_path):
    pytest.importorskip("matplotlib")
    source = made.write_artefact(tmp_path / "fig9")
    written = []
    for seed in ("1", "2"):
        out = tmp_path / seed
        subprocess.run([*REPORT, source, "--out", out / "page.html", "--figures", out / "figures", "-q"],
                       check=True, env=os.environ | {"PYTHONHASHSEED": seed}, stdout=subprocess.DEVNULL)  # fmt: skip
        written.append(contents(out))
    assert written[0] == written[1]
    names = {str(name) for name in written[0]}
    assert {"page.html", "figures/fig9.png", "figures/fig9.svg", "figures/fig9-averaged.svg",
            "figures/fig9-budget.png", "figures/fig9-test-error.svg"} <= names  # fmt: skip
    assert b"Date" not in written[0][next(name for name in written[0] if name.name == "fig9.svg")]
    assert sorted(path.name for path in source.iterdir()) == ["artefact.json", "records.jsonl"]


def test_a_report_imports_nothing_that_trains(tmp_path):
    source = made.write(tmp_path / "sweep")
    script = (
        "import sys; from tacit.report import artefacts; from pathlib import Path; "
        f"artefacts.write([Path({str(source)!r})], Path({str(tmp_path / 'page.html')!r})); "
        "print([name for name in sys.modules if name.split('.')[:2] in (['tacit', 'engine'], ['tacit', 'admm'], "
        "['tacit', 'run']) or name == 'matplotlib'])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_without_matplotlib_the_page_is_written_and_figures_say_what_to_install(tmp_path, capsys, monkeypatch):
    source = made.write(tmp_path / "sweep")
    monkeypatch.delitem(sys.modules, "tacit.report.figures", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    out = tmp_path / "page.html"
    assert main(["report", str(source), "--out", str(out), "--figures", str(tmp_path / "figures")]) == 2
    assert "pip install 'tacit[figures]'" in capsys.readouterr().err
    assert main(["report", str(source), "--out", str(out)]) == 0
    assert out.read_text().startswith("<!doctype html>")
