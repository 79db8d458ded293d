"""What a site is told when its node cannot reach the coordinator, step by step, and what nobody may make it say."""

from __future__ import annotations

import datetime
import json
import socket
import ssl
import threading
import time
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

pytest.importorskip("cryptography")

from tacit._version import __version__
from tacit.federation import certificates, reach
from tacit.federation.key_status import PATH, KeyStatus
from tacit.federation.reach import NOTE, OK, PROBLEM, SKIPPED, clock, parsed, steps
from tests.federation.test_key_status import public, written


@pytest.fixture
def place(tmp_path):
    """A coordinator's folder, and the key of a node beside it, which is registered."""
    certificates.authority(tmp_path, "trial")
    certificates.server(tmp_path, [])
    certificates.node(tmp_path / "node.key")
    written(tmp_path, (public(tmp_path / "node.key"), "registered", None, "north"))
    return tmp_path


@contextmanager
def listening(place, change=lambda status, told: (status, json.dumps(told).encode()), ahead=0.0):
    """What a door would answer, over TLS, changed; its clock is `ahead` of ours. Gives its port."""
    keys = KeyStatus(place)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):  # the standard library's name
            assert self.path == PATH
            said = self.rfile.read(int(self.headers["Content-Length"]))
            status, text = change(*keys.answer(said, self.client_address[0]))
            self.send_response_only(status)
            if ahead is not None:
                self.send_header("Date", formatdate(time.time() + ahead, usegmt=True))
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(place / "server.pem", place / "server.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.handle_error = lambda *_: None
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def saying(reply):
    """A listener that says something and hangs up, or (None) says nothing; gives its port."""
    done = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve():
            stream, _ = listener.accept()
            with stream:
                if reply is None:
                    done.wait(20.0)
                else:
                    stream.sendall(reply)

        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1]
        done.set()
        thread.join()


def checked(place, port, host="127.0.0.1", **options):
    return list(steps(f"{host}:{port}", place / "ca.pem", place / "node.key", **options))


def last(found):
    assert found[-1].state == PROBLEM
    return found[-1]


def test_where_all_is_well_every_step_is_checked(place):
    with listening(place) as port:
        found = checked(place, port)
    assert [one.name for one in found] == list(reach.STEPS)
    assert {one.state for one in found} == {OK}
    assert "registered for site north (SHA256:" in found[5].text


@pytest.mark.parametrize("superlink", ["", "host", "host:", ":9092", "host:0", "host:70000", "host:9o92", "host:٩"])
def test_what_is_no_address_is_named(place, superlink):
    assert parsed(superlink) is None
    (one,) = steps(superlink, place / "ca.pem", place / "node.key")
    assert "HOST:PORT" in one.text


def test_addresses_of_both_kinds_are_read():
    assert parsed("fl.example.org:9092") == ("fl.example.org", 9092)
    assert parsed("[2001:db8::1]:9092") == ("2001:db8::1", 9092)


def test_a_name_that_nobody_knows_is_waited_for(place, monkeypatch):
    def unknown(*_, **__):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    one = last(checked(place, 9092, "fl.example.org"))
    assert one.text.startswith("fl.example.org has no address here (Name or service not known)")
    assert one.waits


def test_a_port_that_is_closed_is_named_and_waited_for(place):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    one = last(checked(place, port))
    assert one.name == "tcp"
    assert f"nobody listens at 127.0.0.1:{port}" in one.text
    assert one.waits


def test_a_firewall_that_drops_everything_is_said_to_be_one(place, monkeypatch):
    def dropped(*_, **__):
        raise TimeoutError

    monkeypatch.setattr(socket, "create_connection", dropped)
    one = last(checked(place, 9092))
    assert "did not answer within 10 s: let TCP out" in one.text
    assert one.waits


@pytest.mark.parametrize("reply", [b"SSH-2.0-OpenSSH_9.6\r\n", b"HTTP/1.1 400 Bad Request\r\n\r\n" + bytes(100)])
def test_what_does_not_speak_tls_is_named_and_not_waited_for(place, reply):
    with saying(reply) as port:
        one = last(checked(place, port))
    assert one.name == "tls"
    assert "is open and does not speak TLS" in one.text
    assert not one.waits


def test_a_door_that_turns_this_address_away_is_waited_for(place):
    with saying(b"") as port:
        one = last(checked(place, port))
    assert "too many connections" in one.text
    assert one.waits


def test_a_listener_that_says_nothing_does_not_hold_the_look(place, monkeypatch):
    monkeypatch.setattr(reach, "SECONDS", 0.2)
    with saying(None) as port:
        one = last(checked(place, port))
    assert "does not answer TLS" in one.text


def test_a_certificate_of_another_authority_is_told_apart(place, tmp_path):
    (tmp_path / "abroad").mkdir()
    certificates.authority(tmp_path / "abroad", "trial")
    with listening(place) as port:
        one = last(list(steps(f"127.0.0.1:{port}", tmp_path / "abroad" / "ca.pem", place / "node.key")))
    assert one.name == "tls"
    assert "is not signed by the authority in" in one.text
    assert not one.waits


def test_a_certificate_for_another_name_is_told_apart(place, monkeypatch):
    usual = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", lambda _host, *rest, **more: usual("127.0.0.1", *rest, **more))
    with listening(place) as port:
        one = last(checked(place, port, "fl.example.org"))
        address = last(checked(place, port, "127.0.0.3"))
    assert one.name == "certificate"
    assert "is not for fl.example.org" in one.text
    assert "is not for 127.0.0.3" in address.text


@pytest.mark.parametrize(("days", "name", "says"), [
    (-2, "clock", "is not valid yet by this machine's clock, which says 20"),
    (1000, "certificate", "has expired by this machine's clock, which says 20"),
])  # fmt: skip
def test_a_certificate_of_another_time_is_a_matter_of_the_clock_or_of_renewal(place, monkeypatch, days, name, says):
    monkeypatch.setattr(certificates, "_LATE", datetime.timedelta(days=days))
    certificates.server(place, [])
    with listening(place) as port:
        one = last(checked(place, port))
    assert one.name == name
    assert says in one.text


def test_a_certificate_that_ends_soon_is_a_note(place, monkeypatch):
    monkeypatch.setattr(certificates, "SERVER_DAYS", 9)
    certificates.server(place, [])
    with listening(place) as port:
        found = checked(place, port)
    assert found[3].state == NOTE
    assert "is valid for 8 more days: ask the coordinator for tacit federate renew" in found[3].text
    assert found[-1].name == "version"


@pytest.mark.parametrize("content", [None, b"", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"])
def test_an_authority_that_is_no_certificate_is_named(place, tmp_path, content):
    path = tmp_path / "other.pem"
    if content is not None:
        path.write_bytes(content)
    with saying(b"") as port:
        one = last(list(steps(f"127.0.0.1:{port}", path, place / "node.key")))
    assert "put the ca.pem there" in one.text


@pytest.mark.parametrize(("ahead", "state"), [
    (8.0, PROBLEM), (3600.0, PROBLEM), (-3600.0, PROBLEM), (-310.0, PROBLEM), (-290.0, NOTE), (-8.0, NOTE), (3.0, NOTE),
    (0.4, OK), (-1.0, OK), (1.4, OK),
])  # fmt: skip
def test_a_clock_is_wrong_by_as_much_as_flower_refuses(ahead, state):
    now = 1_800_000_000.5  # the door's second has begun half a second ago
    one = clock(formatdate(int(now), usegmt=True), now + ahead - 0.01, now + ahead + 0.01)
    assert one.state == state
    if state != OK:
        assert ("ahead of" if ahead > 0 else "behind") in one.text
        assert "NTP" in one.text


def test_a_slow_answer_is_not_taken_for_a_wrong_clock():
    now = 1_800_000_000.5
    assert clock(formatdate(int(now), usegmt=True), now, now + 12.0).state == OK


@pytest.mark.parametrize("date", ["", "yesterday", "Thu, 01 Jan 99999 00:00:00 GMT", "\x1b[2J"])
def test_an_answer_without_a_date_is_no_error(date):
    assert clock(date, 0.0, 0.0).state == NOTE


def test_a_clock_that_is_ahead_is_found_and_the_steps_go_on(place):
    with listening(place, ahead=-8.0) as port:
        found = {one.name: one for one in checked(place, port)}
    assert "this machine's clock is 8 s ahead of the coordinator's" in found["clock"].text
    assert "timedatectl set-ntp true, or chrony" in found["clock"].text
    assert found["key"].state == OK


def test_a_door_of_an_older_version_cannot_say(place):
    with listening(place, lambda *_: (404, b"")) as port:
        found = {one.name: one for one in checked(place, port)}
    assert found["key"].state == SKIPPED
    assert found["version"].state == PROBLEM
    assert found["clock"].state == OK


@pytest.mark.parametrize("changed", [
    {"version": "9.9"}, {"link": False}, {"state": "revoked"}, {"state": "unknown"}, {"state": "in use", "seconds": 50},
])  # fmt: skip
def test_what_the_door_knows_becomes_one_sentence_each(place, changed):
    with listening(place, lambda status, told: (status, json.dumps(told | changed).encode())) as port:
        wrong = [one for one in checked(place, port, starting=True) if one.state == PROBLEM]
    says = {
        "version": f"this machine has tacit {__version__} and the coordinator 9.9", "link": "SuperLink behind the door",
        "revoked": "has revoked the key of this node (SHA256:",
        "unknown": "does not know the key of this node (SHA256:",
        "in use": "is in use. If this node was killed just now, Flower lets it in again in 50 s",
    }  # fmt: skip
    assert says[changed.get("state", next(iter(changed)))] in wrong[0].text
    assert wrong[0].waits == ("link" in changed)


def test_a_key_in_use_is_well_while_its_node_runs(place):
    with listening(place, lambda status, told: (status, json.dumps(told | {"state": "in use"}).encode())) as port:
        assert checked(place, port)[5].state == OK


@pytest.mark.parametrize("reply", [
    (200, b"{"), (200, b"[]"), (200, b"[" * 4000), (200, b"x" * 100_000), (200, b'{"challenge": 3}'), (500, b""),
    (429, b"{}"), (200, b'{"state": ["registered"]}'), (200, b'{"challenge": "' + b"0" * 3000 + b'"}'),
])  # fmt: skip
def test_an_answer_that_makes_no_sense_is_a_note_and_no_traceback(place, reply):
    with listening(place, lambda *_: reply) as port:
        one = checked(place, port)[5]
    assert (one.name, one.state) == ("key", NOTE)
    assert "did not say whether it knows this key" in one.text


def test_no_word_of_the_coordinators_moves_the_cursor_of_a_site(place):
    bad = "\x1b[2J\n" + "x" * 1000
    for changed in ({"site": bad}, {"version": bad}, {"site": bad, "state": "in use"}, {"site": 3, "version": []}):
        with listening(place, lambda status, told, more=changed: (status, json.dumps(told | more).encode())) as port:
            for one in checked(place, port):
                assert one.text.isprintable()
                assert len(one.text) < 400


def test_a_door_that_hangs_up_in_the_middle_is_waited_for(place):
    def gone(*_):
        raise ConnectionResetError

    with listening(place, gone) as port:
        one = last(checked(place, port))
    assert one.name == "key"
    assert "did not finish its answer" in one.text
    assert one.waits
