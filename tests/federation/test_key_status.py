"""Who may ask the door about a key: whoever holds it. What it costs is bounded."""

from __future__ import annotations

import json
import sqlite3
import time
from contextlib import closing

import pytest

pytest.importorskip("cryptography")

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tacit._version import __version__
from tacit.errors import SpecError
from tacit.federation import certificates, key_status
from tacit.federation.commands import DATABASE
from tacit.federation.key_status import KeyStatus, signed

PEER = "192.0.2.7"


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def place(tmp_path):
    """A coordinator's folder, and the key of a node beside it."""
    certificates.authority(tmp_path, "trial")
    certificates.server(tmp_path, ["localhost"])
    certificates.node(tmp_path / "node.key")
    return tmp_path


@pytest.fixture
def door(place):
    return KeyStatus(place, clock=Clock())


def public(path):
    return certificates.sign(path, b"")[0].encode()


def written(place, *rows, table="node"):
    """Flower's table of nodes, as far as it is read; tests/distributed asks the real one."""
    with closing(sqlite3.connect(place / DATABASE)) as link, link:
        link.execute(f"CREATE TABLE {table} (public_key BLOB UNIQUE, status TEXT, online_until REAL, name TEXT)")
        link.executemany(f"INSERT INTO {table} VALUES (?, ?, ?, ?)", rows)


def question(door, key, challenge=None, certificate=None):
    challenge = door.answer(b"", PEER)[1]["challenge"] if challenge is None else challenge
    message = signed(door.certificate if certificate is None else certificate, challenge)
    found, signature = certificates.sign(key, message)
    return {"challenge": challenge, "key": found, "signature": signature}


def asked(door, said, peer=PEER):
    return door.answer(said if type(said) is bytes else json.dumps(said).encode(), peer)


def test_the_holder_of_a_registered_key_is_told_so_with_the_version(door, place):
    written(place, (public(place / "node.key"), "registered", None, "north"))
    found = asked(door, question(door, place / "node.key"))
    assert found == (200, {"state": "registered", "version": __version__, "link": True, "site": "north"})


@pytest.mark.parametrize(
    ("status", "until", "state"),
    [("offline", 1.0, "registered"), ("online", 1.0, "registered"), ("online", time.time() + 1000, "in use")],
    ids=["offline", "was online", "online"],  # not by the clock, which workers read at different times
)
def test_a_key_is_in_use_as_long_as_flower_counts_its_node_as_online(door, place, status, until, state):
    written(place, (public(place / "node.key"), status, until, "north"))
    code, told = asked(door, question(door, place / "node.key"))
    assert (code, told["state"]) == (200, state)
    assert ("seconds" in told) == (state == "in use")


def test_the_holder_of_a_revoked_key_is_told_so_and_no_more(door, place):
    written(place, (public(place / "node.key"), "unregistered", None, "north"))
    assert asked(door, question(door, place / "node.key")) == (200, {"state": "revoked"})


def test_the_holder_of_another_key_is_told_that_it_is_unknown_and_no_more(door, place):
    written(place, (public(place / "node.key"), "online", 1e12, "north"))
    certificates.node(place / "other.key")
    assert asked(door, question(door, place / "other.key")) == (200, {"state": "unknown"})


def test_nobody_learns_of_a_key_by_its_public_half(door, place):
    written(place, (public(place / "node.key"), "online", 1e12, "north"))
    certificates.node(place / "other.key")
    mine = question(door, place / "other.key")
    theirs = public(place / "node.key").decode()
    assert asked(door, mine | {"key": theirs}) == (403, {})
    assert asked(door, mine | {"key": theirs, "signature": ""}) == (403, {})


def test_a_signature_that_another_door_got_opens_nothing_here(door, place):
    """A door of the same authority that passes our challenge on, as its own."""
    written(place, (public(place / "node.key"), "online", 1e12, "north"))
    (place / "abroad").mkdir()
    certificates.authority(place / "abroad", "trial")
    certificates.server(place / "abroad", ["localhost"])
    other = KeyStatus(place / "abroad")
    assert asked(door, question(door, place / "node.key", certificate=other.certificate)) == (403, {})
    assert asked(door, question(other, place / "node.key")) == (400, {})  # and its own challenge is none of ours


def test_a_signature_of_a_request_to_flower_is_none_of_ours_and_the_other_way_round(door, place):
    stamp = "2026-01-01T00:00:00+00:00"
    key, signature = certificates.sign(place / "node.key", stamp.encode())
    assert asked(door, {"challenge": stamp, "key": key, "signature": signature}) == (400, {})
    assert signed(door.certificate, stamp).startswith(b"tacit federate doctor")


def test_a_challenge_lasts_for_a_while_and_its_end_is_not_the_callers_to_say(door, place):
    said = question(door, place / "node.key")
    door.clock.now += key_status.SECONDS - 0.1
    assert asked(door, said)[0] == 200
    door.clock.now += 0.2
    assert asked(door, said) == (400, {})
    ours = bytes.fromhex(said["challenge"])
    later = ours[:16] + key_status._END.pack(door.clock.now + 1000.0) + ours[24:]
    assert asked(door, question(door, place / "node.key", later.hex())) == (400, {})
    for end in (float("nan"), float("inf")):
        made = ours[:16] + key_status._END.pack(end) + bytes(32)
        assert asked(door, question(door, place / "node.key", made.hex())) == (400, {})


def test_a_restarted_door_takes_no_challenge_of_before(door, place):
    assert asked(KeyStatus(place, clock=door.clock), question(door, place / "node.key")) == (400, {})


@pytest.mark.parametrize("text", [
    b"{", b"[]", b"null", b"1e999", b"{}", b'{"challenge": 1, "key": 2, "signature": 3}', b"[" * 4000, b"\xff\x00",
    b'{"challenge": "", "key": "", "signature": ""}', b'{"challenge": "zz", "key": "", "signature": ""}',
    '{"challenge": "é", "key": "é", "signature": "é"}'.encode(),
    b'{"challenge": "00", "key": "", "signature": "", "x": 1}',
])  # fmt: skip
def test_what_is_no_question_is_refused_before_anything_is_computed(door, text, monkeypatch):
    monkeypatch.setattr(certificates, "signer", lambda *_: pytest.fail("a signature was checked"))
    assert asked(door, text) == (400, {})


@pytest.mark.parametrize("key", ["", "x", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"])
def test_what_is_no_key_is_refused(door, place, key):
    assert asked(door, question(door, place / "node.key") | {"key": key}) == (403, {})
    assert asked(door, question(door, place / "node.key") | {"signature": "no base64"}) == (403, {})


def test_a_key_that_flower_would_not_take_is_refused_unread(door, place):
    """A long RSA key would cost a hundred times as much."""
    key = rsa.generate_private_key(65537, 2048)
    text = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    (place / "rsa.key").write_bytes(text)
    with pytest.raises(SpecError, match="is not the key of a node"):
        certificates.sign(place / "rsa.key", b"")
    said = question(door, place / "node.key") | {"key": certificates._public(key.public_key()).decode()}
    assert asked(door, said) == (403, {})


def test_a_peer_that_asks_without_end_is_refused_and_others_are_not(door, place, monkeypatch):
    written(place, (public(place / "node.key"), "registered", None, "north"))
    checked = []
    usual = certificates.signer
    monkeypatch.setattr(certificates, "signer", lambda *said: checked.append(1) or usual(*said))
    said = question(door, place / "node.key")
    statuses = [asked(door, said, "198.51.100.1")[0] for _ in range(key_status.PER_PEER + 20)]
    assert statuses == key_status.PER_PEER * [200] + 20 * [429]
    assert asked(door, said)[0] == 200
    for n in range(1000):  # from the addresses of one subscriber, and then of many
        asked(door, said, f"2001:db8::{n:x}")
        asked(door, said, f"203.0.113.{n % 256}")
    assert len(checked) == key_status.IN_ALL
    assert len(door._asked) <= key_status.IN_ALL
    door.clock.now += key_status.WINDOW
    assert asked(door, question(door, place / "node.key"))[0] == 200


def test_a_database_that_is_not_there_or_of_another_flower_is_no_error_and_is_not_made(door, place):
    assert asked(door, question(door, place / "node.key")) == (200, {"state": "unreadable", "link": True})
    assert not (place / DATABASE).exists()
    written(place, table="nodes")
    assert asked(door, question(door, place / "node.key"))[1]["state"] == "unreadable"


def test_a_database_is_read_while_flower_writes_to_it(door, place):
    written(place, (public(place / "node.key"), "registered", None, "north"))
    with closing(sqlite3.connect(place / DATABASE)) as flower:
        flower.execute("PRAGMA journal_mode = WAL")
        flower.execute("BEGIN IMMEDIATE")
        flower.execute("UPDATE node SET status = 'unregistered'")
        assert asked(door, question(door, place / "node.key"))[1]["state"] == "registered"
        flower.commit()
        assert asked(door, question(door, place / "node.key"))[1]["state"] == "revoked"


def test_a_door_without_a_certificate_says_so(place):
    (place / "server.pem").write_text("none")
    with pytest.raises(SpecError, match=r"server\.pem is no certificate"):
        KeyStatus(place)
