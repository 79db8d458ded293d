"""Connections to the door: how many an address may hold, and how long one that says nothing may stay."""

from __future__ import annotations

import asyncio
import json
import resource
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager

import pytest
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from tacit.errors import SpecError
from tacit.federation import connections
from tacit.federation.access_log import AccessLog

ASK = b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"
HEAD = 0.4
WAIT = 20.0


async def app(scope, receive, send):
    """Read a request whose path is /read, and answer; refuse others unread."""
    more = scope["path"] == "/read"
    while more:
        more = (await receive()).get("more_body", False)
    closing = [] if scope["path"] in ("/x", "/read") else [(b"connection", b"close")]
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2"), *closing]})
    await send({"type": "http.response.body", "body": b"ok"})


@contextmanager
def door(per_address=1000, kept=30):
    """A server as the door is, but for TLS and what it answers; gives its port and the lines of its log."""
    lines: list[str] = []
    log = AccessLog(lines.append)
    with connections.listening("127.0.0.1", 0, per_address, log) as listener:
        config = uvicorn.Config(
            app, http=connections.timed(H11Protocol, log), ws="none", loop="asyncio", lifespan="off",
            log_level="error", timeout_keep_alive=kept, timeout_graceful_shutdown=1,
        )  # fmt: skip
        server = uvicorn.Server(config)
        thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])))
        port = listener.getsockname()[1]
        thread.start()
        try:
            yield port, lines, listener
        finally:
            server.should_exit = True
            thread.join(WAIT)
            assert not thread.is_alive()


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(connections, "HEAD", HEAD)
    monkeypatch.setattr(connections, "LINGER", HEAD)


def connect(port, source="127.0.0.1"):
    return socket.create_connection(("127.0.0.1", port), WAIT, source_address=(source, 0))


def ended(stream) -> bool:
    """Wait until the other side has ended a connection; what it says before is read."""
    stream.settimeout(WAIT)
    try:
        while stream.recv(4096):
            pass
    except ConnectionResetError:
        pass
    return True


def answered(stream) -> bool:
    stream.sendall(ASK)
    found = b""
    while not found.endswith(b"ok"):
        more = stream.recv(4096)
        if not more:
            return False
        found += more
    return found.startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("begun", [b"", b"P", ASK[:-2], b"\r\n"])
def test_a_connection_without_a_whole_head_is_closed_in_time(begun):
    with door() as (port, _, _), connect(port) as stream:
        start = time.monotonic()
        stream.sendall(begun)
        assert ended(stream)
        assert time.monotonic() - start < WAIT / 2


def test_whoever_sends_a_byte_now_and_then_gains_no_time():
    with door() as (port, _, _), connect(port) as stream:
        stream.settimeout(HEAD / 20)
        start, found = time.monotonic(), None
        while found is None and time.monotonic() - start < WAIT:
            try:
                stream.sendall(b"P")
                found = stream.recv(1)
            except TimeoutError:
                continue
            except OSError:
                found = b""
        assert found == b""
        assert time.monotonic() - start < WAIT / 2


def test_a_kept_connection_outlives_the_limit_of_a_head_and_ends_after_its_own():
    with door(kept=1.0) as (port, _, _), connect(port) as stream:
        for _ in range(3):
            assert answered(stream)
            time.sleep(1.5 * HEAD)
        assert ended(stream)


def test_a_second_head_that_never_ends_is_closed_too():
    with door() as (port, _, _), connect(port) as stream:
        assert answered(stream)
        stream.sendall(b"P")
        start = time.monotonic()
        assert ended(stream)
        assert time.monotonic() - start < WAIT / 2


def test_a_long_body_is_not_cut_by_the_limit_of_heads():
    with door() as (port, _, _), connect(port) as stream:
        stream.sendall(b"POST /read HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n")
        for _ in range(4):
            time.sleep(HEAD / 2)
            stream.sendall(b"a")
        assert stream.recv(4096).startswith(b"HTTP/1.1 200")


def test_a_refused_request_whose_body_never_ends_is_closed():
    with door() as (port, _, _), connect(port) as stream:
        stream.sendall(b"POST /refused HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n")
        assert ended(stream)


def test_what_is_no_http_is_refused_with_a_date_and_a_line():
    with door() as (port, lines, _), connect(port) as stream:
        stream.sendall(b"\x16\x03\x01 is no request\r\n\r\n")
        found = stream.recv(4096)
        assert found.startswith(b"HTTP/1.1 400")
        assert b"\r\ndate: " in found
        assert ended(stream)
        assert json.loads(lines[-1])["status"] == 400


def test_an_address_that_holds_too_many_connections_is_turned_away_and_others_are_not(monkeypatch):
    monkeypatch.setattr(connections, "HEAD", WAIT)
    with door(per_address=5) as (port, lines, listener), ExitStack() as held:
        for _ in range(5):
            assert answered(held.enter_context(connect(port, "127.0.0.2")))
        for _ in range(300):  # more than one burst
            with connect(port, "127.0.0.2") as stream:
                assert ended(stream)
        with connect(port) as stream:
            assert answered(stream)
        assert listener.held["127.0.0.2"] == 5
        assert [json.loads(line)["event"] for line in lines].count("turned away") == 1


def test_a_connection_that_ends_makes_room(monkeypatch):
    monkeypatch.setattr(connections, "HEAD", WAIT)
    with door(per_address=1) as (port, _, listener):
        for _ in range(20):
            with connect(port) as stream:
                assert answered(stream)
            end = time.monotonic() + WAIT
            while listener.held and time.monotonic() < end:
                time.sleep(0.005)
            assert not listener.held
            assert listener.open == 0


def test_all_addresses_together_hold_no_more_than_there_are_files(monkeypatch):
    monkeypatch.setattr(connections, "HEAD", WAIT)
    monkeypatch.setattr(connections, "MOST", 3)
    with door() as (port, _, _), ExitStack() as held:
        for n in range(3):
            assert answered(held.enter_context(connect(port, f"127.0.0.{n + 1}")))
        with connect(port, "127.0.0.9") as stream:
            assert ended(stream)


@pytest.mark.parametrize(("limits", "most"), [("(64, 5000)", connections.MOST), ("(64, 1000)", 800)])
def test_the_door_takes_as_many_files_as_the_system_allows(limits, most):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard != resource.RLIM_INFINITY and hard < 5000:
        pytest.skip("this machine allows fewer than 5000 files")
    program = (
        f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, {limits})\n"
        "from tacit.federation import connections\nfrom tacit.federation.access_log import AccessLog\n"
        "with connections.listening('127.0.0.1', 0, 64, AccessLog(print)) as listener:\n    print(listener.most)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert int(done.stdout) == most


def test_a_port_that_is_taken_is_named():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SpecError, match=rf"cannot listen at 127\.0\.0\.1, port {port} \(Address already in use\)"):
            connections.listening("127.0.0.1", port, 64, AccessLog(print))
    with pytest.raises(SpecError, match="cannot listen at no host"):
        connections.listening("no host", 1, 64, AccessLog(print))
