"""What `tacit federate doctor` says of the socket of a site: nobody has to guess which account lacks what."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

from tacit.federation import doctor
from tests.federation.test_listen import listening

OTHER = 10002  # an account that a root test becomes


@pytest.fixture
def folder():
    made = Path(tempfile.mkdtemp(prefix="tacit-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


@contextmanager
def another_account():
    """Become an account that is nobody's, if this one may; else it stays who it is, which modes of 0 bind as well."""
    user, group, groups = os.geteuid(), os.getegid(), os.getgroups()
    if user != 0:
        yield str(user)
        return
    os.setgroups([])
    os.setegid(OTHER)
    os.seteuid(OTHER)
    try:
        yield str(OTHER)
    finally:
        os.seteuid(user)
        os.setegid(group)
        os.setgroups(groups)


def test_a_service_that_hears_this_account_is_no_problem_and_refuses_nothing(folder):
    with listening(folder) as (site, lines, _):
        before = len(lines)
        assert doctor.socket_problem(site.socket) is None
        assert [facts["event"] for _, facts in lines[before:]] == ["introduced"]


def test_a_socket_or_folder_that_is_missing_is_named(folder):
    assert "start the agent service first" in doctor.socket_problem(folder / "agent.sock")
    told = doctor.socket_problem(folder / "gone" / "agent.sock")
    assert f"the folder {folder / 'gone'} of the socket is missing" in told


def test_a_stale_socket_and_a_file_are_told_apart_from_a_service(folder):
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(folder / "agent.sock"))
    assert "nobody listens at" in doctor.socket_problem(folder / "agent.sock")
    (folder / "file").write_text("")
    assert doctor.socket_problem(folder / "file") is not None
    assert "cannot connect" in doctor.socket_problem(folder / ("long" * 40))


def test_an_account_that_may_not_enter_the_folder_is_told_which_folder(folder):
    closed = folder / "socket"
    with listening(closed) as (site, _, _):
        closed.chmod(0)
        try:
            with another_account() as name:
                told = doctor.socket_problem(site.socket)
        finally:
            closed.chmod(0o755)
    assert f"may not enter {closed} (owner" in told
    assert "mode 0)" in told
    if os.geteuid() == 0:
        assert f"account {name} " in told


@pytest.mark.parametrize(("mode", "does"), [(0o750, "usermod -aG"), (0o700, "chgrp")])
def test_the_group_of_a_folder_that_would_let_the_account_in_is_named(folder, mode, does):
    if os.geteuid() != 0:
        pytest.skip("an account can close a folder to itself, but not to its group alone: needs root")
    closed = folder / "socket"
    with listening(closed) as (site, _, _):
        closed.chmod(mode)
        with another_account():
            assert does in doctor.socket_problem(site.socket)


def test_an_account_that_may_not_open_the_socket_is_told_of_callers_and_group(folder):
    with listening(folder) as (site, _, _):
        site.socket.chmod(0)
        with another_account() as name:
            told = doctor.socket_problem(site.socket)
        if os.geteuid() == 0:
            assert f'callers = ["{name}"]' in told
    assert f"may not open {site.socket} (owner" in told
    assert 'group = "GROUP"' in told


def test_a_service_that_turns_this_account_away_is_told_apart_from_one_that_is_away(folder):
    with listening(folder, extra='callers = ["4242"]') as (site, _, _):
        told = doctor.socket_problem(site.socket)
    assert "does not answer account" in told
    assert "callers = [" in told


@pytest.mark.parametrize("reply", [b"", b"HTTP/1.1 200 OK\r\n\r\n" + bytes(40), b"tacit\0\0\1" + bytes(12)])
def test_a_listener_that_hangs_up_or_babbles_is_a_problem_and_no_traceback(folder, reply):
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(folder / "agent.sock"))
        door.listen()

        def babble():
            stream, _ = door.accept()
            with stream:
                stream.sendall(reply)

        thread = threading.Thread(target=babble)
        thread.start()
        assert doctor.socket_problem(folder / "agent.sock") is not None
        thread.join()


def test_a_listener_that_never_answers_does_not_hold_the_look(folder, monkeypatch):
    monkeypatch.setattr(doctor, "SECONDS", 0.1)
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(folder / "agent.sock"))
        door.listen()
        assert "did not answer within" in doctor.socket_problem(folder / "agent.sock")
