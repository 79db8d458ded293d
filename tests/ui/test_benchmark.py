"""The benchmark of the live page asks what the page asks."""

import re

import pytest

pytest.importorskip("uvicorn")
pytest.importorskip("websockets")

from benchmarks import ui


def test_every_question_is_timed(monkeypatch, capsys):
    monkeypatch.setattr(ui, "AGAIN", 1)
    monkeypatch.setattr(ui, "CHROMIUM", "")
    ui.main(3, 50)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("3 runs, histories of 50 rounds; milliseconds; load")
    assert len(lines) == 2 + 10
    assert all(re.search(r"\d+ +\d+$", line) for line in lines[2:])
