"""A newcomer with the README alone: its lines run, what it names exists, and it opens with the two commands."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tacit.cli import main

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PEERS = (ROOT / "docs" / "peers.md").read_text(encoding="utf-8")


def block(heading: str) -> list[str]:
    """The lines of the first code block below a heading."""
    found = re.search(rf"^#+ {heading}$.*?^```sh\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1].splitlines()


def patients(path: Path) -> None:
    with path.open("w") as file:
        subprocess.run([sys.executable, str(ROOT / "examples" / "patients.py")], stdout=file, check=True)


def test_it_opens_with_what_it_does_the_two_commands_and_a_picture() -> None:
    first, rest = README.split("```sh\n", 1)
    assert first.startswith("# tacit\n\ntacit is a Python library for differentially private federated learning")
    assert len(first.split()) < 150
    assert [line.split("#")[0].strip() for line in rest.split("```")[0].splitlines()] == ["make run", "make test"]
    assert README.count("![") == 2  # what it costs, and the report
    assert rest.index("![") < rest.index("\n## ")
    assert len(README.split("## How it compares")[0].splitlines()) < 130  # two screens, and then the table


def test_make_run_ends_with_the_command_for_federations_that_the_readme_has() -> None:
    """`make run` installs no extra, so that `tacit federate try` right after it fails."""
    (install,) = [line for line in block("As an institution") if line.startswith("pip ")]
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8").partition("\nrun:")[2].partition("\n\n")[0]
    last = recipe.splitlines()[-1]
    assert last.startswith("\t@echo ")
    assert f"$(BIN)/{install}" in last
    assert "federations need the extra flower" in last.lower()


def test_own_data_takes_six_lines_and_training_waits_for_public_knowledge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    patients(tmp_path / "patients.csv")
    monkeypatch.chdir(tmp_path)
    lines = block("As a data scientist")
    assert len(lines) == 6
    train = next(line for line in lines if line.startswith("tacit train"))
    for line in lines:
        command, *arguments = shlex.split(line, comments=True)
        if command == "source":
            assert arguments == [".venv/bin/activate"]
        elif command == "cd":
            monkeypatch.chdir(arguments[0])
            assert main([*shlex.split(train, comments=True)[1:], "-q"]) == 2
            schema = Path("schema.toml")
            kept = [row for row in schema.read_text().splitlines() if not row.startswith("read_from_data")]
            schema.write_text("\n".join(kept) + "\n")
        else:
            assert command == "tacit"
            capsys.readouterr()
            assert main(arguments) == 0
    predicted = capsys.readouterr().out.splitlines()
    assert len(predicted) == 4000
    assert set(predicted) == {"no", "yes"}
    assert Path("model", "report.html").exists()


def test_every_command_that_it_names_exists() -> None:
    told = subprocess.run(
        [sys.executable, "-m", "tacit", "--help"], capture_output=True, text=True, check=True,
        env={**os.environ, "COLUMNS": "200", "PYTHONPATH": str(ROOT / "src")},
    ).stdout  # fmt: skip
    there = set(re.findall(r"^    (\w+)\s", told, re.MULTILINE))
    code = "".join(re.findall(r"^```sh\n(.*?)^```", README, re.DOTALL | re.MULTILINE))
    named = set(re.findall(r"`tacit ([a-z]+)", README)) | set(re.findall(r"^tacit ([a-z]+)", code, re.MULTILINE))
    assert {"train", "new", "federate"} <= named
    assert named <= there


def test_every_file_that_it_links_to_exists() -> None:
    linked = [link for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", README) if not link.startswith("http")]
    assert len(linked) > 15
    assert [link for link in linked if not (ROOT / link).exists()] == []


def test_each_tool_of_the_table_has_its_release_and_its_sources() -> None:
    row = r"^\| \[([\w-]+)\]\(https://pypi\.org/project/([\w-]+)/([\d.]+)/\) ([\d.]+) \|"
    rows = re.findall(row, README, re.MULTILINE)
    assert {name for name, *_ in rows} == {"APPFL", "Flower", "NVFlare", "Fed-BioMed", "diffprivlib", "Opacus"}
    for name, package, linked, shown in rows:
        assert linked == shown
        assert f"**{name} {shown}** ([PyPI](https://pypi.org/project/{package}/{shown}/)" in PEERS
