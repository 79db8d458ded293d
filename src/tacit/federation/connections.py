"""Connections that say nothing must not keep nodes out: how many a peer may hold, and for how long.

A peer with too many connections is turned away before TLS. TLS has 60 s (of asyncio), the head of a request HEAD
seconds, its body those of the door; a connection that is kept between requests is closed after KEPT seconds, which is
longer than nodes keep it.
"""

from __future__ import annotations

import os
import socket
from collections import Counter
from email.utils import formatdate
from typing import Any

from tacit.errors import SpecError
from tacit.federation.access_log import AccessLog, neighbourhood
from tacit.machine import open_files

HEAD = 20.0  # seconds for the head of a request, from the first byte or, of a new connection, from the end of TLS
KEPT = 30  # seconds without a request; Flower's nodes leave after 5
LINGER = 5.0  # seconds that a peer has to take its answer and end TLS, once we have ended
MOST = 4096  # connections of all peers: some 50 KB each
SPARE = 200  # files for everything else: connections to the SuperLink, the database, logs
_BAD = "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n"
_BURST = 100  # peers turned away in a row, before requests get their turn again


class _Counted(socket.socket):
    """A connection that says when it is closed."""

    listener: ListeningSocket
    who: str | None = None

    def close(self) -> None:
        super().close()
        if self.who is not None:
            self.listener.left(self.who)
            self.who = None


class ListeningSocket(socket.socket):
    """A listening socket that turns away peers who hold too many connections, and everyone once all are taken."""

    def prepare(self, per_address: int, log: AccessLog) -> None:
        """Set how many connections an address may hold; as many files are allowed as all of them need."""
        self.per_address, self.log = per_address, log
        self.most = max(1, min(MOST, open_files(MOST + SPARE) - SPARE))
        self.held: Counter[str] = Counter()
        self.open = 0

    def accept(self) -> tuple[socket.socket, Any]:
        """Return the next connection that has a place."""
        for _ in range(_BURST):
            stream, peer = super().accept()
            who = neighbourhood(peer[0])
            if self.held[who] < self.per_address and self.open < self.most:
                self.log.note("connected", peer[0])
                return self._taken(stream, who), peer
            self.log.note("turned away", peer[0])
            stream.close()
        raise BlockingIOError  # asyncio comes back

    def left(self, who: str) -> None:
        """A connection has ended."""
        self.open -= 1
        self.held[who] -= 1
        if self.held[who] <= 0:
            del self.held[who]

    def _taken(self, stream: socket.socket, who: str) -> _Counted:
        counted = _Counted(fileno=stream.detach())
        counted.listener, counted.who = self, who
        self.held[who] += 1
        self.open += 1
        return counted


def listening(host: str, port: int, per_address: int, log: AccessLog) -> ListeningSocket:
    """Listen at an address of this machine."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        plain = socket.create_server((host, port), family=family, backlog=2048)
    except (OSError, UnicodeError) as error:
        why = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else error
        raise SpecError(f"cannot listen at {host}, port {port} ({why}): give another --host or --port.") from None
    listener = ListeningSocket(fileno=plain.detach())
    listener.prepare(per_address, log)
    return listener


def timed(base: type[Any], log: AccessLog) -> type[Any]:
    """Return uvicorn's protocol for h11, with a time limit for the head of a request and for the end."""

    class Timed(base):  # type: ignore[misc]
        """A connection that ends where no request comes of it."""

        due: Any = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._await_head()

        def connection_lost(self, exc: Exception | None) -> None:
            self._forget()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)  # which no longer waits for the next request
            if self.cycle is not None and not self.cycle.response_complete:
                self._forget()
            elif self.due is None and not self.transport.is_closing():
                self._await_head()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self._end_soon()

        def timeout_keep_alive_handler(self) -> None:
            super().timeout_keep_alive_handler()
            self._end_soon()

        def send_400_response(self, _msg: str) -> None:
            if self.transport.is_closing():
                return
            log.note("request", self.client[0] if self.client else "", b"", 400)
            if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
                date = formatdate(usegmt=True)
                self.transport.write(f"{_BAD}date: {date}\r\n\r\n".encode())
            self.transport.close()
            self._end_soon()

        def _await_head(self) -> None:
            self.due = self.loop.call_later(HEAD, self.transport.abort)

        def _forget(self) -> None:
            if self.due is not None:
                self.due.cancel()
                self.due = None

        def _end_soon(self) -> None:
            """End a connection that we have closed, even if the peer does not end TLS."""
            if self.transport.is_closing():
                self._forget()
                self.due = self.loop.call_later(LINGER, self.transport.abort)

    return Timed
