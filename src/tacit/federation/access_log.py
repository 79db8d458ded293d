"""The access log of the door: JSON lines with the address of each peer, and as many at most as a disk can hold.

Every event of a new kind (peer, path, status) is written at once. Its repetitions are counted, and written as one line
per PERIOD: honest nodes poll every few seconds for days, and strangers may send whatever they like. No header and no
body is written, and a path only as far as it is printable and short.
"""

from __future__ import annotations

import ipaddress
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone

from tacit import jsontext
from tacit.jsontext import Values

PERIOD = 3600.0  # seconds between two lines of one kind
KINDS = 4000  # that are told apart in a period, of all peers: a megabyte an hour at most
KINDS_OF_PEER = 40  # of one peer, whose other requests are counted without their paths
LONGEST_PATH = 100
OTHERS = "others"  # the peer of whatever is beyond KINDS

_Kind = tuple[str, str, str, int | None]


def neighbourhood(address: str) -> str:
    """Return an IPv4 address, or the /64 of an IPv6 address: a single subscriber has 2^64 of those."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
        return str(ipaddress.ip_network((found, 64), strict=False))
    return str(found)


def printable(path: bytes) -> str:
    """Return a path that cannot move the cursor of whoever reads it, nor fill a screen."""
    text = path[: LONGEST_PATH + 1].decode("ascii", "replace")
    shown = "".join(letter if letter.isprintable() and letter.isascii() else "?" for letter in text[:LONGEST_PATH])
    return f"{shown}..." if len(text) > LONGEST_PATH else shown


def _coarse(status: int | None) -> int | None:
    return status if status is None else status // 100 * 100


@dataclass
class _Count:
    """The events of one kind since the last line about them."""

    since: float
    times: int = 0
    received: int = 0
    sent: int = 0


class AccessLog:
    """Counts connections and requests, and writes a line of JSON where there is news."""

    def __init__(self, write: Callable[[str], object], clock: Callable[[], float] = time.monotonic) -> None:
        self._write, self._clock = write, clock
        self._counts: dict[_Kind, _Count] = {}
        self._of_peer: Counter[str] = Counter()  # kinds

    def note(
        self, event: str, peer: str, path: bytes = b"", status: int | None = None, received: int = 0, sent: int = 0
    ) -> None:
        """Count an event: "connected" and "turned away" have no path, and a "request" has one and a status."""
        who, shown = neighbourhood(peer), printable(path)
        kind: _Kind = (event, who, shown, status)
        if kind not in self._counts and self._of_peer[who] >= KINDS_OF_PEER:  # whoever asks may choose any path
            kind = (event, who, "", _coarse(status))
        if kind not in self._counts and len(self._counts) >= KINDS:
            kind = (event, OTHERS, "", _coarse(status))
        new = kind not in self._counts
        if new:
            self._counts[kind] = _Count(self._clock())
            self._of_peer[kind[1]] += 1
        count = self._counts[kind]
        count.times += 1
        count.received += received
        count.sent += sent
        if new:
            self._tell(kind, count)

    def tick(self) -> None:
        """Write what was counted in a period that is over; forget the kinds of which nothing came."""
        now = self._clock()
        for kind, count in list(self._counts.items()):
            if now - count.since < PERIOD:
                continue
            if count.times:
                self._tell(kind, count)
            else:
                del self._counts[kind]
                self._of_peer[kind[1]] -= 1
        self._of_peer += Counter()  # which drops those without any

    def flush(self) -> None:
        """Write all that is counted, at the end."""
        for kind, count in self._counts.items():
            if count.times:
                self._tell(kind, count)

    def _tell(self, kind: _Kind, count: _Count) -> None:
        event, peer, path, status = kind
        at = datetime.now(timezone.utc).isoformat(timespec="seconds")
        line: Values = {"at": at, "event": event, "peer": peer, "times": count.times}
        if status is not None:
            line |= {"path": path, "status": status, "received": count.received, "sent": count.sent}
        self._write(jsontext.dumps(line))
        count.since, count.times, count.received, count.sent = self._clock(), 0, 0, 0
