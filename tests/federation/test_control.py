"""The command that follows a run: it says at once why Flower's process failed, and a status says why a run stopped."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from tacit.cli import main
from tacit.errors import RunDirectoryError
from tacit.federation import control, nodes, status
from tacit.federation.control import ServerAppState
from tacit.lock import locked
from tests.federation.room import folder

WHY = "ServerApp failed with exception: [Errno 13] Permission denied: 'app.lock'"


class Link:
    """A SuperLink of which Flower's commands tell what a test wants, and a clock that sleeping moves."""

    def __init__(self, monkeypatch, statuses):
        self.now, self.statuses, self.started, self.lines = 0.0, list(statuses), 0, []
        monkeypatch.setattr(control, "time", SimpleNamespace(monotonic=lambda: self.now, sleep=self.sleep))
        monkeypatch.setattr(control, "register", lambda *_, **__: [])
        monkeypatch.setattr(control, "flwr", self.flwr)
        monkeypatch.setattr(nodes, "flwr", self.flwr)

    def sleep(self, seconds):
        self.now += seconds

    def flwr(self, _folder, *words, control=None):
        assert control is None
        if words[0] == "run":
            self.started += 1
            return {"run-id": str(self.started)}
        if words[0] == "list":
            found = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
            return {"runs": [{"status": found, "status-details": WHY}]}
        return {}

    def show(self, line):
        self.lines.append((self.now, line["text"]))


@pytest.fixture
def where(tmp_path):
    made = folder(tmp_path / "c")
    (made / "flower").mkdir()
    return made


def test_what_fails_at_once_is_said_at_once_and_not_tried_for_ten_minutes(where, monkeypatch):
    """Step 22 of the first deployment: two minutes of silence, five times, and the reason in none of the logs."""
    link = Link(monkeypatch, ["starting", "finished:failed"])
    with pytest.raises(RunDirectoryError) as error:
        control.run(where, link.show)
    assert link.now < 15
    assert link.started == 2  # once more, for what was only the end of a process before it
    said = str(error.value)
    assert WHY in said
    assert f"the account that owns {where}" in said
    assert f"FLWR_HOME={where}/flower flwr log 2 coordinator --show" in said
    assert any(WHY in text and at < 8 for at, text in link.lines)
    assert control.standing(where)["reason"] == said


def test_another_failure_than_before_is_tried_again(where, monkeypatch):
    link = Link(monkeypatch, ["finished:failed"])
    reasons = iter(range(100))
    monkeypatch.setattr(nodes, "status", lambda *_: ("finished:failed", f"reason {next(reasons)}"))
    with pytest.raises(RunDirectoryError, match=r"5 times .* reason 4"):
        control.run(where, link.show)
    assert link.started == control.IN_VAIN


def test_a_process_that_does_not_start_is_waited_for_with_a_line_every_thirty_seconds(where, monkeypatch):
    link = Link(monkeypatch, ["pending"])
    with pytest.raises(RunDirectoryError, match="5 times"):
        control.run(where, link.show)
    waited = [at for at, text in link.lines if text.startswith("waiting for Flower to start the process")]
    assert waited[:3] == pytest.approx([30, 60, 90], abs=1)


def test_a_superlink_that_is_away_is_no_failure(where, monkeypatch):
    link = Link(monkeypatch, ["pending"])

    def away(*_):
        raise nodes.Unreachable("flwr list: connection refused")

    monkeypatch.setattr(nodes, "status", away)
    with pytest.raises(RunDirectoryError, match=r"5 times before a round was done\."):
        control.run(where, link.show)
    assert link.now > control.STARTING


def told(where, capsys):
    """What `tacit federate status` prints, for a person and for a program."""
    assert main(["federate", "status", str(where)]) == 0
    lines = capsys.readouterr().out
    assert main(["federate", "status", "--json", str(where)]) == 0
    return lines, json.loads(capsys.readouterr().out)


def test_the_status_of_a_stopped_run_says_why(where, capsys):
    said = "the run does not begin: no word came from ohio"
    (where / status.FILE).write_text(json.dumps({"federation": "trial", "state": "waiting for sites"}))
    ServerAppState("7", control.STOPPED, said).write(where)
    lines, found = told(where, capsys)
    assert f"trial: stopped: {said} " in lines
    assert (found["state"], found["reason"], found["process"]) == ("stopped", said, "not running")


def test_the_status_of_a_process_that_was_killed_says_so(where, capsys):
    (where / status.FILE).write_text(json.dumps({"federation": "trial", "state": "running"}))
    ServerAppState("7", control.RUNNING).write(where)
    lines, found = told(where, capsys)
    assert "trial: interrupted: its process ended without a word" in lines
    assert found["state"] == "interrupted"
    lock = where / "flower" / control.LOCK
    lock.touch()
    with locked(lock, wait=False):  # which another process holds, as far as the status can see
        assert told(where, capsys)[1]["state"] == "running"


def test_the_status_of_a_run_that_never_waited_says_why(where, capsys):
    ServerAppState("7", control.STOPPED, "the test records are not at test.csv", wrong=True).write(where)
    lines, found = told(where, capsys)
    assert "trial: stopped: the test records are not at test.csv" in lines
    assert found["federation"] == "trial"


def test_a_status_makes_no_file(where, capsys):
    """A lock file of root's would stop the process of the run, which has another account."""
    (where / status.FILE).write_text(json.dumps({"federation": "trial", "state": "finished"}))
    before = sorted(Path(where).rglob("*"))
    lines, found = told(where, capsys)
    assert sorted(Path(where).rglob("*")) == before
    assert "trial: finished (as of" in lines
    assert "reason" not in found
    assert os.listdir(where / "flower") == []


def test_what_flower_says_of_a_run_is_one_line_that_moves_no_cursor(where, monkeypatch):
    told = {"status": "finished:failed", "status-details": "a\n\x1b[2Jb" + 10_000 * "c"}
    monkeypatch.setattr(nodes, "flwr", lambda *_, **__: {"runs": [told]})
    state, details = nodes.status(where, "7")
    assert (state, details[:8]) == ("finished:failed", "a ?[2Jbc")
    assert details.isprintable()
    assert len(details) <= 1000


@pytest.mark.parametrize("told", [{}, {"runs": []}, {"runs": [{}]}, {"runs": [1]}, {"runs": None}])
def test_what_is_no_status_of_flowers_is_no_failure(where, monkeypatch, told):
    monkeypatch.setattr(nodes, "flwr", lambda *_, **__: told)
    with pytest.raises(nodes.Declined, match="flwr list"):
        nodes.status(where, "7")
    assert control._failure(where, "7", None) == ""


def test_a_file_of_another_account_is_named_with_what_opens_it(where, monkeypatch):
    """A lock that root had made stopped the process of the run, and whoever followed it."""
    def closed(*_, **__):
        raise PermissionError(13, "Permission denied", str(where / "flower" / control.LOCK))

    monkeypatch.setattr(control, "locked", closed)
    for command in (lambda: control.run(where, print), lambda: control.standing(where)):
        with pytest.raises(RunDirectoryError, match=r"app\.lock is closed to this account: .* chown -R "):
            command()
