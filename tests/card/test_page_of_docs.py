"""docs/card.md: its example runs as it is printed, and its numbers are those of the code."""

import re
import shlex
from pathlib import Path

import pytest

from tacit.privacy import risk
from tacit.privacy.budget import any_guess, best_guess, calibrate, total
from tacit.privacy.release import GaussianRelease
from tests.run.test_numbers import command

PAGE = (Path(__file__).parents[2] / "docs" / "card.md").read_text(encoding="utf-8")


def test_the_example_prints_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    block = "".join(re.findall(r"```console\n(.*?)```", PAGE, re.S))
    for part in re.findall(r"^\$ (.*\n(?:[^$].*\n)*)", block, re.M):
        line, _, wanted = part.partition("\n")
        tacit, *arguments = shlex.split(line)
        assert tacit == "tacit"
        into = Path(arguments[arguments.index(">") + 1]) if ">" in arguments else None
        assert command(*(arguments if into is None else arguments[: arguments.index(">")])) == 0
        told = capsys.readouterr().out
        if into is not None:
            into.write_text(told)
        elif wanted:
            assert told == wanted
    card = (tmp_path / "cards" / "card.md").read_text()
    assert "Nothing of this run is for release" in card
    assert "The audit attacked the mechanism of the spec of this run." in card
    listed = re.findall(r"^\| ([A-Z][^|]*?) \|", PAGE, re.M)
    assert [name.split(":")[0] for name in re.findall(r"^## (.*)$", card, re.M)] == listed


def test_the_numbers_are_those_of_the_code() -> None:
    release, found = GaussianRelease(1.0), []
    for shown, epsilon in re.findall(r"([\d.]+) % at epsilon (\d)", PAGE):
        spent = total([(calibrate(release, float(epsilon), 1e-6, 100), 100)], 1e-6)
        exact, any_ = best_guess(spent, 1e-6), any_guess(float(epsilon), 1e-6)
        found.append([f"{shown}%" == risk.percent(one) for one in (exact, any_)])
    assert found == [[True, False], [True, False], [False, True]]
