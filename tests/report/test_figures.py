"""A figure never trains: records alone give the same bytes, whoever asks and whenever."""

import os
import subprocess
import sys

import numpy as np
import pytest

from tacit.cli import main
from tacit.errors import install_extra
from tacit.report.chart import Chart, Dot, DotChart, Line
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
        "import sys; from tacit.report import output; from pathlib import Path; "
        f"output.write([Path({str(source)!r})], Path({str(tmp_path / 'page.html')!r})); "
        "print([name for name in sys.modules if name.split('.')[:2] in (['tacit', 'engine'], ['tacit', 'admm'], "
        "['tacit', 'run']) or name == 'matplotlib'])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_dots_and_pictures_are_the_same_bytes_each_time(tmp_path):
    pytest.importorskip("matplotlib")
    from tacit.report.figures import draw_dots, draw_records

    rows = (Dot("$a_b & <c>", 1.0, 2.0, 4.0), Dot("bare", 3.0, 3.0, 3.0, hollow=True), Dot("skewed", 1.0, 5.0, 2.0))
    for n in (1, 2):
        draw_dots(DotChart("title", "error", rows, "with a guarantee", "not private"), tmp_path / f"dots{n}.svg")
        draw_records([[(np.arange(10.0), "record"), (np.zeros(10), "nothing")]], tmp_path / f"records{n}")
    dots = (tmp_path / "dots1.svg").read_text()
    assert "with a guarantee" in dots
    assert "not private" in dots
    assert "$a_b &amp; &lt;c&gt;" in dots
    picture = (tmp_path / "records1").read_bytes()
    assert picture.startswith(b"\x89PNG\r\n\x1a\n")
    assert (dots, picture) == ((tmp_path / "dots2.svg").read_text(), (tmp_path / "records2").read_bytes())


def test_a_constant_looks_like_one_and_what_is_not_positive_leaves_a_logarithmic_axis(tmp_path):
    pytest.importorskip("matplotlib")
    from tacit.report.figures import draw

    flat = Line("flat", (1.0, 2.0), (3.41e-4, 3.42e-4))
    falling = Line("falling", (1.0, 2.0, 3.0), (1.0, 0.5, 0.0), (0.5, -1.0, 0.0), (2.0, 1.0, 0.0))
    nothing = Line("nothing", (1.0, 2.0), (0.0, 0.0))
    charts = [Chart(f"{n}", "title", "x", "y", (line,), log_y=log)
              for n, line in enumerate((flat, falling, nothing)) for log in (False, True)]  # fmt: skip
    assert [path.name for path in draw(charts, tmp_path / "all", 2)] == ["all.svg", "all.png"]


def test_nothing_but_zeros_has_an_axis_from_zero_to_one(tmp_path):
    pytest.importorskip("matplotlib")
    from tacit.report.figures import draw

    chart = Chart("zeros", "title", "x", "y", (Line("nothing", (1.0, 2.0), (0.0, 0.0)),))
    text = draw([chart], tmp_path / "zeros", 1)[0].read_text()
    assert all(f"<!-- {number} -->" in text for number in (0.2, 0.8))
    assert "e-" not in "".join(line for line in text.splitlines() if "<!--" in line)


def test_without_matplotlib_the_page_is_written_and_figures_say_what_to_install(tmp_path, capsys, monkeypatch):
    source = made.write(tmp_path / "sweep")
    monkeypatch.delitem(sys.modules, "tacit.report.figures", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    out = tmp_path / "page.html"
    assert main(["report", str(source), "--out", str(out), "--figures", str(tmp_path / "figures")]) == 2
    assert "the extra 'figures'" in capsys.readouterr().err
    assert main(["report", str(source), "--out", str(out)]) == 0
    assert out.read_text().startswith("<!doctype html>")


def test_without_matplotlib_a_comparison_is_written_and_says_what_to_install(tmp_path, capsys, monkeypatch):
    monkeypatch.delitem(sys.modules, "tacit.report.figures", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    out = tmp_path / "compared"
    data = ["--data", "synthetic", "--agents", "3", "--set", "data.records=60", "--rounds", "2", "--seeds", "1"]
    assert main(["compare", *data, "--methods", "fedgd", "--out", str(out)]) == 0
    assert f"no figure: figures need matplotlib: {install_extra('figures')}" in capsys.readouterr().err
    assert [path.name for path in out.iterdir()] == ["records.jsonl"]


def test_without_matplotlib_a_picture_that_was_asked_for_is_refused_before_the_attack(tmp_path, capsys, monkeypatch):
    monkeypatch.delitem(sys.modules, "tacit.report.figures", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.chdir(tmp_path)
    attack = ["audit", "--what", "reconstruction", "--data", "synthetic", "--agents", "2", "--rounds", "3",
              "--set", "data.records=60"]  # fmt: skip
    assert main([*attack, "--picture", "seen.png"]) == 2
    told = capsys.readouterr()
    assert "the extra 'figures'" in told.err
    assert told.out == ""
    assert main(attack) == 0
    told = capsys.readouterr()
    assert told.err == f"no picture: figures need matplotlib: {install_extra('figures')}.\n"
    assert "no noise: cosine to the record 1.000" in told.out
    assert "audit.png" not in told.out
    assert list(tmp_path.iterdir()) == []
