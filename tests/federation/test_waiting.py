"""While a coordinator waits, a line every 30 s says for whom, and why."""

from __future__ import annotations

import re

import pytest

from tacit.errors import Suspended
from tacit.federation import status
from tacit.federation.log import REMIND_EVERY, Reminder
from tests.federation.room import QUICK, Room, close, folder, go, services

FAULTS = "deadline = 100.0\nresend = 20.0\nstart_deadline = 100.0"


def lines_of(room, where):
    """The lines that name who is waited for, each with its time."""
    told = []

    def log(text, **facts):
        if "waiting" in facts:
            told.append((round(room.now), text))

    with pytest.raises(Suspended):
        go(where, room, log)
    return told


def test_a_coordinator_that_waits_for_sites_names_them_every_thirty_seconds(tmp_path):
    room = Room(services(tmp_path) | {"pair": None})
    told = lines_of(room, folder(tmp_path / "c", 2, FAULTS))
    assert [at for at, _ in told] == pytest.approx([30, 60, 90], abs=2)
    assert {text for _, text in told} == {"before the first round: waiting for pair (the room knows that it is empty)"}
    close(room)


@pytest.mark.parametrize(("kind", "said"), [
    ("join", "joining the run: waiting for pair (no answer yet)"),
    ("ask", "round 1: waiting for pair (no answer yet), alone (no answer yet)"),
])  # fmt: skip
def test_who_has_joined_no_run_or_answered_no_question_is_named_too(tmp_path, kind, said):
    silent = ["pair"] if kind == "join" else ["pair", "alone"]

    def fate(_way, site, header):
        return [] if header["kind"] == kind and site in silent else [QUICK]

    room = Room(services(tmp_path), fate)
    told = lines_of(room, folder(tmp_path / "c", 2, FAULTS))
    assert len(told) == 3
    assert all(sorted(re.findall(r"\w+ \(no answer yet\)", text)) == sorted(re.findall(r"\w+ \(no answer yet\)", said))
               for _, text in told)  # fmt: skip
    assert all(text.startswith(said.partition(":")[0]) for _, text in told)
    close(room)


def test_nothing_is_said_where_nobody_is_waited_for_long(tmp_path):
    room, told = Room(services(tmp_path)), []
    go(folder(tmp_path / "c", 3, FAULTS), room, lambda text, **facts: told.append(text) if "waiting" in facts else None)
    assert told == []
    close(room)


def test_a_new_wait_begins_with_silence():
    now, told = [0.0], []
    remind = Reminder(Room({"a": None}).absence, lambda text, **_: told.append(text), lambda: now[0])
    every = REMIND_EVERY
    for what, at in (("round 1", 0.0), ("round 1", every - 1), ("round 2", every), ("round 2", 2 * every - 1)):
        now[0] = at
        remind(what, ["a"])
    assert told == []
    now[0] = 2 * REMIND_EVERY
    remind("round 2", ["a"])
    remind("round 2", ["a"])
    assert told == ["round 2: waiting for a (the room knows that it is empty)"]


def test_a_run_that_never_began_says_why_it_stopped(tmp_path):
    """Until now its status said "waiting for sites" for ever."""
    room = Room(services(tmp_path) | {"pair": None})
    lines_of(room, folder(tmp_path / "c", 2, FAULTS))
    found = status.read(tmp_path / "c")
    assert found["state"] == "stopped"
    assert "no word came from pair" in found["reason"]
    assert "stopped: the run does not begin: no word came from pair" in status.lines(found)[0]
    close(room)


def test_a_finished_run_has_no_reason(tmp_path):
    room = Room(services(tmp_path))
    go(folder(tmp_path / "c", 2, FAULTS), room)
    assert "reason" not in status.read(tmp_path / "c")
    close(room)
