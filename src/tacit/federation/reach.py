"""Reach the coordinator as the node of a site will: address, TCP, TLS, certificate, clock, key, version, in this order.

Each step is a CheckResult, and the first that leaves nothing to go on with is the last. Nothing here trusts what an
unverified peer says: without TLS there are no further steps.
"""

from __future__ import annotations

import email.utils
import http.client
import json
import socket
import ssl
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit._version import __version__
from tacit.federation import certificates, key_status

STEPS = ("address", "tcp", "tls", "certificate", "clock", "key", "version")
OK, NOTE, PROBLEM, SKIPPED = "ok", "note", "problem", "not checked"
SECONDS = 10.0  # for each word of the coordinator
FEW_DAYS = 30  # of a certificate: time to renew it
AHEAD, BEHIND = 5.0, 305.0  # Flower 1.41 refuses a request (401) that is signed so many seconds ahead, or ago
DRIFT = 2.0  # seconds of difference that are worth a word
_STATES = (key_status.UNKNOWN, key_status.REVOKED, key_status.ONLINE, key_status.REGISTERED)
_TICK = 0.5  # a Date header is cut to whole seconds: half of that, to either side
NTP = "synchronise this machine with NTP (timedatectl set-ntp true, or chrony), and the coordinator's too"


@dataclass(frozen=True)
class CheckResult:
    """What was checked, how it is, and what to do. `waits`: it may be well later, without anybody here."""

    name: str
    state: str
    text: str
    waits: bool = False


def parsed(superlink: str) -> tuple[str, int] | None:
    """Return host and port of an address such as fl.example.org:9092 or [2001:db8::1]:9092; None if it is not one."""
    host, _, port = superlink.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    return (host, int(port)) if host and port.isdecimal() and port.isascii() and 0 < int(port) < 2**16 else None


def steps(superlink: str, ca: Path, key: Path, starting: bool = False) -> Iterator[CheckResult]:
    """Check one step after the other. `superlink` is host:port, `ca` the certificate that the coordinator sent.

    Where the node is `starting`, its key must not be in use.
    """
    found = parsed(superlink)
    if found is None:
        yield CheckResult("address", PROBLEM, f"{superlink!r} is no address: node.superlink in node.toml is HOST:PORT.")
        return
    host, _ = found
    try:
        places = socket.getaddrinfo(*found, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or error
        text = f"{host} has no address here ({why}): correct node.superlink in node.toml, or this machine's DNS."
        yield CheckResult("address", PROBLEM, text, waits=True)
        return
    yield CheckResult("address", OK, f"{superlink} is {', '.join(dict.fromkeys(str(one[4][0]) for one in places))}")
    try:
        stream = socket.create_connection(found, SECONDS)
    except OSError as error:
        yield CheckResult("tcp", PROBLEM, _unreached(superlink, error), waits=True)
        return
    with stream:
        yield CheckResult("tcp", OK, f"{superlink} is open")
        yield from _over_tls(stream, superlink, host, ca, key, starting)


def _unreached(superlink: str, error: OSError) -> str:
    if isinstance(error, ConnectionRefusedError):
        return (
            f"nobody listens at {superlink}: the coordinator has not opened its door yet (tacit federate door), or "
            "node.superlink in node.toml names another port."
        )
    if isinstance(error, TimeoutError):
        return (
            f"{superlink} did not answer within {SECONDS:g} s: let TCP out to it through the firewalls of both sides, "
            "or correct node.superlink in node.toml."
        )
    return f"cannot reach {superlink} ({error.strerror or error}): check the network of this machine."


def _over_tls(
    stream: socket.socket, superlink: str, host: str, ca: Path, key: Path, starting: bool
) -> Iterator[CheckResult]:
    try:
        context = ssl.create_default_context(cafile=str(ca))
    except OSError as error:  # ssl.SSLError is one
        why = error.strerror or "no certificate in it"
        yield CheckResult("tls", PROBLEM, f"cannot use {ca} ({why}): put the ca.pem there that the coordinator sent.")
        return
    try:
        tls = context.wrap_socket(stream, server_hostname=host)
    except ssl.SSLCertVerificationError as error:
        yield _unverified(error, superlink, host, ca)
    except (ssl.SSLEOFError, ConnectionError):
        text = (
            f"{superlink} ended the connection before TLS: this address may have too many connections to the door "
            "(flower.per_address in flower.toml), or node.superlink in node.toml is not the address of a door."
        )
        yield CheckResult("tls", PROBLEM, text, waits=True)
    except ssl.SSLError as error:
        text = (
            f"{superlink} is open and does not speak TLS ({error.reason}): correct node.superlink in node.toml, or "
            "whatever stands between."
        )
        yield CheckResult("tls", PROBLEM, text)
    except OSError as error:
        text = f"{superlink} is open and does not answer TLS ({error}): another service may listen there."
        yield CheckResult("tls", PROBLEM, text, waits=True)
    else:
        with tls:
            yield CheckResult("tls", OK, f"{tls.version()}, signed by the authority of {ca.name}")
            yield _days(tls, host)
            yield from _asked(tls, key, starting)


def _unverified(error: ssl.SSLCertVerificationError, superlink: str, host: str, ca: Path) -> CheckResult:
    """Say why a certificate was refused, by OpenSSL's X509_V_ERR codes."""
    now = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    if error.verify_code in (62, 64):  # HOSTNAME_MISMATCH, IP_ADDRESS_MISMATCH
        return CheckResult("certificate", PROBLEM, (
            f"the certificate at {superlink} is not for {host}: use the name of --address in node.superlink "
            "(node.toml), or ask the coordinator for a certificate with this name (flower.address, then renew)."
        ))  # fmt: skip
    if error.verify_code == 9:  # CERT_NOT_YET_VALID
        return CheckResult("clock", PROBLEM, (
            f"the certificate at {superlink} is not valid yet by this machine's clock, which says {now}: {NTP}."
        ))  # fmt: skip
    if error.verify_code == 10:  # CERT_HAS_EXPIRED
        return CheckResult("certificate", PROBLEM, (
            f"the certificate at {superlink} has expired by this machine's clock, which says {now}: ask the "
            "coordinator for tacit federate renew, or set the clock."
        ))  # fmt: skip
    return CheckResult("tls", PROBLEM, (
        f"the certificate at {superlink} is not signed by the authority in {ca} ({error.verify_message}): take ca.pem "
        "from the coordinator again, by a way that both trust; if it is the right one, somebody else answers there."
    ))  # fmt: skip


def _days(tls: ssl.SSLSocket, host: str) -> CheckResult:
    end = str((tls.getpeercert() or {}).get("notAfter", ""))
    left = int((ssl.cert_time_to_seconds(end) - time.time()) // 86400)
    if left < FEW_DAYS:
        text = f"of {host} is valid for {left} more days: ask the coordinator for tacit federate renew."
        return CheckResult("certificate", NOTE, text)
    return CheckResult("certificate", OK, f"of {host}, valid for {left} more days")


def _asked(tls: ssl.SSLSocket, key: Path, starting: bool) -> Iterator[CheckResult]:
    """Ask the door for its time, and for what is known of the key, which proves itself by a signature."""
    line = http.client.HTTPConnection("coordinator")  # on the connection that is there
    line.sock = tls
    try:
        before = time.time()
        status, date, told = _post(line, None)
        yield clock(date, before, time.time())
        if status == 404:
            text = "the coordinator's door cannot say: it has an older version of tacit than this machine."
            yield CheckResult("key", SKIPPED, text)
            yield CheckResult("version", PROBLEM, f"older than {__version__}: install the same version at both.")
            return
        challenge = told.get("challenge")
        if type(challenge) is str and len(challenge) <= 200 and status == 200:
            message = key_status.signed(tls.getpeercert(binary_form=True) or b"", challenge)
            public, signature = certificates.sign(key, message)
            status, _, told = _post(line, {"challenge": challenge, "key": public, "signature": signature})
    except (OSError, http.client.HTTPException) as error:
        text = f"the door did not finish its answer ({type(error).__name__}): its log may say why."
        yield CheckResult("key", PROBLEM, text, waits=True)
        return
    yield from _known(status, told, key, starting)


def _post(line: http.client.HTTPConnection, asked: dict[str, str] | None) -> tuple[int, str, dict[str, Any]]:
    """Ask the door; return the status, the Date header and the JSON of its answer."""
    text = b"" if asked is None else json.dumps(asked).encode()
    line.request("POST", key_status.PATH, text, {"Content-Length": str(len(text))})
    answer = line.getresponse()
    said = answer.read(key_status.LARGEST)
    try:
        told = json.loads(said)
    except (ValueError, RecursionError):
        told = {}
    return answer.status, answer.headers.get("Date", ""), told if type(told) is dict else {}


def clock(date: str, before: float, after: float) -> CheckResult:
    """Compare the clock here, read before and after a question, with the Date of the answer."""
    try:
        theirs = email.utils.parsedate_to_datetime(date).timestamp() + _TICK
    except (ValueError, TypeError, OverflowError):
        text = "the coordinator does not say the time: is an old door, or a proxy, in between?"
        return CheckResult("clock", NOTE, text)
    ahead, late = (before + after) / 2 - theirs, (after - before) / 2
    said = f"this machine's clock is {_spelled(abs(ahead))} {'ahead of' if ahead > 0 else 'behind'} the coordinator's"
    if ahead - late > AHEAD - _TICK or ahead + late < _TICK - BEHIND:
        return CheckResult("clock", PROBLEM, (
            f"{said}: Flower refuses what is signed {AHEAD:g} s ahead or {BEHIND:g} s ago, and ends without an error. "
            f"{NTP[0].upper()}{NTP[1:]}."
        ))  # fmt: skip
    if abs(ahead) - late > DRIFT:
        return CheckResult("clock", NOTE, f"{said}, which Flower still takes: {NTP}.")
    return CheckResult("clock", OK, "as the coordinator's, to the second")


def _spelled(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 600 else f"{seconds / 60:.0f} min"


def _known(status: int, told: dict[str, Any], key: Path, starting: bool) -> Iterator[CheckResult]:
    """Say what the door knows of the key, and whether it is of our version. What it says is text of somebody else."""
    state, mark = told.get("state"), certificates.fingerprint(key)
    if told.get("link") is False:
        text = "the SuperLink behind the door is not running: ask the coordinator to start it (tacit federate link)."
        yield CheckResult("key", PROBLEM, text, waits=True)
    elif status != 200 or state not in _STATES:
        why = {200: "it cannot look into Flower's database", 429: "it was asked too often"}
        text = f"the door did not say whether it knows this key: {why.get(status, f'it answered {status}')}."
        yield CheckResult("key", NOTE, text)
    elif state == key_status.UNKNOWN:
        yield CheckResult("key", PROBLEM, (
            f"the coordinator does not know the key of this node ({mark}): send it node.pub, and ask for tacit "
            "federate register. There, ssh-keygen -lf nodes/SITE.pub shows whether it has this key."
        ))  # fmt: skip
    elif state == key_status.REVOKED:
        yield CheckResult("key", PROBLEM, (
            f"the coordinator has revoked the key of this node ({mark}), and Flower never takes it again: make another "
            '(ssh-keygen -t ecdsa -b 384 -N "" -f node.key), send node.key.pub, and ask for tacit federate register.'
        ))  # fmt: skip
    elif state == key_status.ONLINE:
        yield _in_use(told, starting)
    else:
        yield CheckResult("key", OK, f"registered for site {_shown(told.get('site'))} ({mark})")
    if "version" in told:
        theirs = _shown(told["version"])
        same = theirs == __version__
        text = f"tacit {theirs}, as the coordinator" if same else (
            f"this machine has tacit {__version__} and the coordinator {theirs}: install the same version at both."
        )  # fmt: skip
        yield CheckResult("version", OK if same else PROBLEM, text)


def _in_use(told: dict[str, Any], starting: bool) -> CheckResult:
    seconds, site = told.get("seconds"), _shown(told.get("site"))
    left = f"{seconds} s" if type(seconds) is int else "a minute"
    if not starting:
        text = f"registered for site {site}, and its node is connected: well, if that is the node of this folder."
        return CheckResult("key", OK, text)
    return CheckResult("key", PROBLEM, (
        f"the key of site {site} is in use. If this node was killed just now, Flower lets it in again in {left}; else "
        "stop the other node, which has a copy of node.key, or make a key of its own for each."
    ))  # fmt: skip


def _shown(said: object) -> str:
    """A word of the coordinator's, as it may stand on a terminal."""
    return "".join(one if one.isprintable() else "?" for one in said[:64]) if type(said) is str else "?"
