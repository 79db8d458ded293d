"""The socket of a service: who may connect, how much is read, for how long, and when replies leave."""

import grp
import json
import os
import random
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tacit.agent.cover import Alone
from tacit.errors import IncompatibleError, SpecError
from tacit.federation import accounts, listen, wire
from tacit.federation.messages import REPLIES, Ask, Refusal, Unjoined, read, written
from tacit.federation.site import read as read_site
from tests.federation.sites import HELLO, ask, at, join, make, service

PATIENCE = 30.0


@pytest.fixture
def folder():
    """A folder with a short name: the path of a socket has some 100 bytes."""
    made = Path(tempfile.mkdtemp(prefix="tacit-"))
    yield made
    shutil.rmtree(made)


@contextmanager
def listening(folder, agents=("north",), **options):
    """A service on a thread; gives its site and what it logs."""
    lines, stop, ready, failed = [], threading.Event(), threading.Event(), []

    def log(text, **facts):
        lines.append((text, facts))
        if facts.get("event") == "listening":
            ready.set()

    site = read_site(make(folder, agents, **options))

    def run():
        try:
            listen.serve(site, log, stop)
        except BaseException as error:
            failed.append(error)
            ready.set()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert ready.wait(PATIENCE)
        if failed:
            raise failed[0]
        yield site, lines, stop
    finally:
        stop.set()
        thread.join(PATIENCE)
        assert not thread.is_alive()


@contextmanager
def connected(site):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stream:
        stream.settimeout(PATIENCE)
        stream.connect(str(site.socket))
        yield stream


def exchanged(site, message):
    with connected(site) as stream:
        wire.send(stream, *written(message))
        return read(*wire.receive(stream, 1 << 20), REPLIES)


def sent(site, data: bytes):
    """What comes back for some bytes, after which the caller says no more; None for nothing."""
    with connected(site) as stream:
        try:
            stream.sendall(data)
            stream.shutdown(socket.SHUT_WR)
            return read(*wire.receive(stream, 1 << 20), REPLIES)
        except (wire.Malformed, OSError):
            return None


@pytest.fixture
def twin(folder):
    """A service of the same site in this process, to make the messages of a coordinator."""
    with service(folder / "twin", ("north", "south")) as one:
        one.answer(*written(join(one)))
        yield one


def test_a_run_goes_over_the_socket(folder, twin):
    with listening(folder, ("north", "south")) as (site, _, _):
        assert exchanged(site, HELLO).agents == (("north", 24), ("south", 17))
        first = join(twin)
        question = ask(twin, first)
        assert exchanged(site, question) == Unjoined("r1")  # a model, before any run was joined: its bytes are not kept
        assert exchanged(site, first).joined == ("north", "south")
        found = exchanged(site, question)
        assert [each.agent for each in found.given] == ["north", "south"]
        again = exchanged(site, question)
        assert again.words.tobytes() == found.words.tobytes()
        assert again.given == found.given
    assert not site.socket.exists()


@pytest.mark.parametrize(("extra", "mode"), [("", 0o600), ("group = 'no such'", None), ("group = 'GROUP'", 0o660)])
def test_the_socket_is_its_accounts_alone(folder, extra, mode):
    extra = extra.replace("GROUP", grp.getgrgid(os.getgid()).gr_name)
    if mode is None:
        with pytest.raises(SpecError, match="no group"), listening(folder, extra=extra):
            pass
        assert not (folder / "agent.sock").exists()
        return
    before = os.umask(0)
    try:
        with listening(folder, extra=extra) as (site, _, _):
            assert stat.S_IMODE(site.socket.stat().st_mode) == mode
            assert stat.S_IMODE(site.ledger.stat().st_mode) == 0o700
    finally:
        os.umask(before)


def test_whoever_puts_a_link_in_the_place_of_the_socket_opens_no_other_file(folder, monkeypatch):
    site = read_site(make(folder, extra=f"group = '{grp.getgrgid(os.getgid()).gr_name}'"))
    ledger, umask, handed = folder / "of the agent", os.umask, []
    ledger.write_text("releases")
    ledger.chmod(0o600)

    def swapping(mask):
        if site.socket.exists():  # it was bound, and nothing more
            site.socket.unlink()
            site.socket.symlink_to(ledger)
        return umask(mask)

    def noted(path, _user, _group, follow_symlinks=True):
        handed.append((Path(path), follow_symlinks))

    monkeypatch.setattr(os, "umask", swapping)
    monkeypatch.setattr(os, "chown", noted)
    with listen.listening(site, {os.getuid() + 1}):
        assert site.socket.is_symlink()
    assert stat.S_IMODE(ledger.stat().st_mode) == 0o600
    assert handed == [(site.socket, False)]


def test_an_account_that_is_not_named_gets_nothing(folder, monkeypatch):
    monkeypatch.setattr(accounts, "users", lambda _: {os.getuid() + 1})
    with listening(folder) as (site, lines, _):
        assert stat.S_IMODE(site.socket.stat().st_mode) == 0o660
        assert sent(site, b"") is None
        with connected(site) as stream:
            assert stream.recv(100) == b""
        assert all(facts["user"] == os.getuid() for _, facts in lines if facts["event"] == "stranger")
        assert "stranger" in [facts["event"] for _, facts in lines]


def test_a_second_service_is_refused_and_the_first_goes_on(folder):
    with listening(folder) as (site, _, _):
        with pytest.raises(IncompatibleError, match="another service holds"):
            listen.serve(site)
        other = folder / "other"
        make(other)
        path = other / "site.toml"
        path.write_text(path.read_text().replace('"agent.sock"', f'"{site.socket}"'))
        with pytest.raises(IncompatibleError, match="another service listens"):
            listen.serve(read_site(path))
        assert exchanged(site, HELLO).site == "north"


def test_a_stale_socket_is_replaced_and_another_file_is_not(folder):
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(folder / "agent.sock"))
    assert (folder / "agent.sock").exists()
    with listening(folder) as (site, _, _):
        assert exchanged(site, HELLO).site == "north"
    (folder / "agent.sock").write_text("a letter")
    with pytest.raises(IncompatibleError, match="is no socket"), listening(folder):
        pass
    assert (folder / "agent.sock").read_text() == "a letter"
    (folder / "agent.sock").unlink()
    (folder / "agent.sock").symlink_to(folder / "north.csv")
    with pytest.raises(IncompatibleError, match="is no socket"), listening(folder):
        pass


def frame(header: bytes, body: bytes = b"", mark=wire.MARK, lengths=None) -> bytes:
    return wire.PREFIX.pack(mark, *(lengths or (len(header), len(body)))) + header + body


GARBAGE = [
    b"", b"\0", b"GET / HTTP/1.0\r\n\r\n", wire.MARK, frame(b"{}"), frame(b"[]"), frame(b"{"), frame(b"[" * 50_000),
    frame(b"{}", lengths=(2, 2**63)), frame(b"{}", lengths=(2**32 - 1, 0)), frame(b"{}", lengths=(100, 0)),
    frame(b'{"kind": "hello"}'), frame(b'{"kind": "hello", "version": 1, "arrays": {"w": [1000000, 1000000]}}'),
    frame(b'{"kind": "ask", "version": 1, "arrays": {}}'), frame(b'{"kind": ["join"]}'), frame(b"{}", b"\0" * 8),
    frame(b'{"kind": "hello", "version": 1, "arrays": {}}', mark=b"tacit\0\0\2"), b"\xff" * 4096,
]  # fmt: skip


def test_a_thousand_frames_of_garbage_get_refusals_and_the_service_goes_on(folder):
    dice = random.Random(17)

    def junk(k):
        return dice.randbytes(dice.randrange(200)) if k % 3 == 0 else GARBAGE[k % len(GARBAGE)]

    with listening(folder) as (site, lines, _):
        frames = [junk(k) for k in range(1000)]
        with ThreadPoolExecutor(8) as threads:
            found = list(threads.map(lambda data: sent(site, data), frames))
        assert set(found) <= {None, Refusal()}
        assert found.count(Refusal()) > 900
        assert exchanged(site, HELLO).site == "north"
        assert len(lines) > 900


def test_slow_callers_hold_the_service_for_no_longer_than_a_message_may_take(folder, monkeypatch):
    monkeypatch.setattr(listen, "CONNECTIONS", 2)
    monkeypatch.setattr(listen, "SECONDS", 0.5)
    with ExitStack() as opened:
        site, _, _ = opened.enter_context(listening(folder))
        start = time.monotonic()  # before the first caller, so that no delay of this test makes the wait look short
        one, two, three = (opened.enter_context(connected(site)) for _ in range(3))
        one.sendall(wire.MARK)
        assert exchanged(site, HELLO).site == "north"
        assert time.monotonic() - start >= listen.SECONDS  # it had to wait for a place
        for stream in (one, two, three):
            assert read(*wire.receive(stream, 0), REPLIES) == Refusal()


@pytest.mark.parametrize(("elapsed", "wait"), [(0.0, 0.25), (0.01, 0.24), (0.25, 0.0), (0.26, 0.24), (1.1, 0.15)])
def test_replies_leave_at_whole_multiples_of_the_pace(elapsed, wait):
    assert listen.until_due(elapsed, 0.25) == pytest.approx(wait)


def test_answers_and_refusals_wait_for_the_pace_alike(folder):
    make(folder)
    with listening(folder) as (site, _, _):
        pass
    path = folder / "site.toml"
    path.write_text(path.read_text().replace("pace = 0.01", "pace = 0.3"))
    stop, ready = threading.Event(), threading.Event()
    thread = threading.Thread(target=listen.serve, args=(read_site(path), lambda *_, **__: ready.set(), stop))
    thread.start()
    assert ready.wait(PATIENCE)
    try:
        for data in (frame(json.dumps(written(HELLO)[0]).encode()), b"junk", frame(b"{}"), frame(b"{}", b"\0")):
            start = time.monotonic()
            assert sent(site, data) is not None
            assert time.monotonic() - start >= 0.3
    finally:
        stop.set()
        thread.join(PATIENCE)


def test_a_service_that_is_told_to_end_finishes_the_answer_that_is_on_its_way(folder, twin, monkeypatch):
    asked, go = threading.Event(), threading.Event()
    cover = Alone.over

    def slow(self, question):
        named, covering = cover(self, question)

        def wait(value):
            asked.set()
            assert go.wait(PATIENCE)
            return covering(value)

        return named, wait

    first = join(twin)
    question = ask(twin, first)
    with listening(folder, ("north", "south")) as (site, lines, stop):
        assert exchanged(site, first).kind == "joined"
        monkeypatch.setattr(Alone, "over", slow)
        with ThreadPoolExecutor(1) as caller, connected(site):  # another one has connected, and says nothing
            found = caller.submit(exchanged, site, question)
            assert asked.wait(PATIENCE)
            stop.set()
            time.sleep(3 * listen.TICK)
            go.set()
            assert len(found.result(PATIENCE).given) == 2
    assert lines[-1][1]["event"] == "ended"


def test_a_caller_that_leaves_before_its_answer_does_no_harm(folder):
    with listening(folder) as (site, _, _):
        for _ in range(20):
            with connected(site) as stream:
                wire.send(stream, *written(HELLO))
        assert exchanged(site, HELLO).site == "north"


def test_the_process_ends_with_sigterm_and_starts_again_after_a_kill(folder, twin):
    path = make(folder, ("north", "south"))
    site = read_site(path)
    command = [sys.executable, "-m", "tacit", "agent", "serve", "--log-json", str(path)]

    def started():
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        told = [json.loads(process.stderr.readline())["event"] for _ in range(4)]
        assert told == ["accounts", "account", "account", "listening"]
        return process

    first, process = join(twin), started()
    question = ask(twin, first)
    assert exchanged(site, first).kind == "joined"
    found = exchanged(site, question)
    process.kill()
    process.wait(PATIENCE)
    process.stderr.close()
    assert site.socket.exists()
    process = started()
    assert exchanged(site, question) == Unjoined("r1")
    assert exchanged(site, first).kind == "joined"
    assert exchanged(site, question).words.tobytes() == found.words.tobytes()
    process.send_signal(signal.SIGTERM)
    _, log = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    events = [json.loads(line)["event"] for line in log.splitlines()]
    assert events[-3:] == ["account", "account", "ended"]
    assert not site.socket.exists()


def test_a_large_model_of_a_run_that_is_not_loaded_is_not_kept_and_its_sender_hears_why(folder, twin):
    """The sender could not go on where the service read nothing: a socket holds some 200 kB."""
    with listening(folder, ("north", "south")) as (site, _, _):
        large = Ask("r1", "0" * 64, 1, 0, ("north",), (), at(np.zeros((1000, 1000))))
        assert exchanged(site, large) == Unjoined("r1")
        assert exchanged(site, join(twin)).kind == "joined"
        assert exchanged(site, large) == Refusal()
        assert exchanged(site, replace(large, run="")) == Refusal()
