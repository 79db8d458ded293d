"""What the SuperLink knows of the key of a node, told to whoever holds that key and to nobody else.

Flower ends a node with the same words ("2004") whether its key is unknown, revoked or in use. So the door answers

    POST /v1/tacit/key                             ->  {"challenge"}
    POST /v1/tacit/key  {challenge, key, signature} ->  {"state"}, and more where the key is registered

The signature is over the challenge and over the certificate of this door, so that no other door can ask for it. A
challenge needs no memory here and no right clock there: it holds its own end, and a code that this process alone makes.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import sqlite3
import ssl
import struct
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from tacit._version import __version__
from tacit.errors import SpecError
from tacit.federation import certificates, commands
from tacit.federation.access_log import neighbourhood
from tacit.jsontext import Values

PATH = "/v1/tacit/key"
LARGEST = 4096  # bytes of a question, and of an answer
SECONDS = 30.0  # that a challenge is good for
WINDOW = 10.0  # seconds in which so many signatures are checked, which takes a millisecond each:
PER_PEER, IN_ALL = 60, 200
UNKNOWN, REVOKED, ONLINE, REGISTERED, UNREADABLE = "unknown", "revoked", "in use", "registered", "unreadable"
_NONCE, _END, _CODE = 16, struct.Struct(">d"), 32  # bytes of the parts of a challenge
_PURPOSE = b"tacit federate doctor: the key of this node is mine\n"  # begins like nothing else that a node signs
_END_OF_PEM = "-----END CERTIFICATE-----"


def signed(certificate: bytes, challenge: str) -> bytes:
    """Return what a node signs: the purpose, the certificate (DER) of the door that it speaks with, the challenge."""
    return b"\n".join((_PURPOSE, hashlib.sha256(certificate).hexdigest().encode(), challenge.encode()))


class KeyStatus:
    """Answers questions about keys, at a bounded cost."""

    def __init__(
        self, folder: Path, listens: Callable[[], bool] = lambda: True, clock: Callable[[], float] = time.monotonic
    ) -> None:
        first, end, _ = (folder / "server.pem").read_text().partition(_END_OF_PEM)
        try:
            self.certificate = ssl.PEM_cert_to_DER_cert(first + end)
        except ValueError:
            raise SpecError(f"{folder}/server.pem is no certificate: tacit federate renew makes a new one.") from None
        self.database, self.listens, self.clock = folder / commands.DATABASE, listens, clock
        self._secret = secrets.token_bytes(32)
        self._asked: Counter[str] = Counter()
        self._window = clock()

    def answer(self, text: bytes, peer: str) -> tuple[int, Values]:
        """Return the status and the body of an answer to somebody who may be anybody."""
        if not text:
            return 200, {"challenge": self._challenge()}
        try:
            asked = json.loads(text)
        except (ValueError, RecursionError):
            return 400, {}
        if type(asked) is not dict or set(asked) != {"challenge", "key", "signature"}:
            return 400, {}
        if not all(type(one) is str and one.isascii() for one in asked.values()):
            return 400, {}
        if not self._is_ours(asked["challenge"]):
            return 400, {}
        if not self._has_room(neighbourhood(peer)):
            return 429, {}
        key = certificates.signer(asked["key"], asked["signature"], signed(self.certificate, asked["challenge"]))
        return (403, {}) if key is None else (200, self._status(key))

    def _challenge(self) -> str:
        said = secrets.token_bytes(_NONCE) + _END.pack(self.clock() + SECONDS)
        return (said + self._code(said)).hex()

    def _is_ours(self, challenge: str) -> bool:
        try:
            found = bytes.fromhex(challenge)
        except ValueError:
            return False
        said, code = found[:-_CODE], found[-_CODE:]
        if len(said) != _NONCE + _END.size or not hmac.compare_digest(code, self._code(said)):
            return False
        end: float = _END.unpack(said[_NONCE:])[0]
        return self.clock() <= end

    def _code(self, said: bytes) -> bytes:
        return hmac.digest(self._secret, said, "sha256")

    def _has_room(self, who: str) -> bool:
        """Count a question, unless its peer or all together have asked enough for now."""
        if self.clock() - self._window >= WINDOW:
            self._asked.clear()
            self._window = self.clock()
        if self._asked[who] >= PER_PEER or self._asked.total() >= IN_ALL:
            return False
        self._asked[who] += 1
        return True

    def _status(self, key: bytes) -> Values:
        try:
            found = _row(self.database, key)
        except sqlite3.Error:  # no SuperLink was ever started here, or its database is of another version of Flower
            return {"state": UNREADABLE, "link": self.listens()}
        if found is None:
            return {"state": UNKNOWN}
        status, until, name = found
        if status == "unregistered":
            return {"state": REVOKED}
        left = (until or 0.0) - time.time() if status == "online" else 0.0
        told: Values = {"state": ONLINE if left > 0 else REGISTERED, "version": __version__, "link": self.listens()}
        return told | {"site": name or ""} | ({"seconds": round(left)} if left > 0 else {})


def _row(database: Path, key: bytes) -> tuple[str, float | None, str | None] | None:
    """What Flower's database has of a key; it is read, and never written."""
    place = f"file:{quote(str(database.absolute()))}?mode=ro"
    with closing(sqlite3.connect(place, uri=True, timeout=1.0)) as link:
        found: tuple[str, float | None, str | None] | None = link.execute(
            "SELECT status, online_until, name FROM node WHERE public_key = ?", (key,)
        ).fetchone()
        return found
