"""The one port of a coordinator that others reach: it lets requests of nodes through, and no others.

Flower 1.41 serves its control interface (start a run: code on this machine and on every node; register a node) and its
runtime interface on the port that nodes use, and asks nobody there who they are. So the SuperLink listens on this
machine alone, and this process stands before it: TLS, the paths of nodes, and nothing else. Node keys are checked
behind it, by Flower. uvicorn and httpx come with flwr, and read and write HTTP: no byte of a request is passed on
unparsed. One path is the door's own: a node that proves its key is told what the SuperLink knows of it (key_status).
"""

from __future__ import annotations

import asyncio
import ssl
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from email.utils import formatdate
from functools import partial
from pathlib import Path
from typing import Any

from tacit import jsontext
from tacit.errors import missing_extra
from tacit.federation import connections, key_status
from tacit.federation.access_log import AccessLog, neighbourhood
from tacit.federation.key_status import KeyStatus

try:
    import httpx
    import uvicorn
    from uvicorn.protocols.http.h11_impl import H11Protocol
except ImportError:  # tacit runs without them; `serve` says so
    httpx = uvicorn = None

PATHS = "/v1/fleet/"
LARGEST_BODY = 1 << 28
LARGEST_HELD = 1 << 30  # of all requests together: whoever asks is not known before the SuperLink has looked
LARGEST_OF_PEER = LARGEST_HELD // 4  # of one address, so that a stranger leaves room for nodes
AWAY = 503  # the status where the SuperLink does not answer
GONE, BROKEN = 499, 500  # in the log: the peer has left before it was answered; the door itself has failed
ARRIVAL = 120.0  # seconds for a request to arrive
TICK = 10  # seconds between two looks at whether the log has counted long enough
END = 10  # seconds for answers that are on their way when the door is told to end
_HOP = {"connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "host", "content-length", "expect"}
_OURS = {"date", "server"}  # of an answer: the door says the time itself
_SECONDS = 300.0

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class NodeProxy:
    """An ASGI app that passes the requests of nodes on to `behind`."""

    def __init__(self, behind: str, trusted: Path, keys: KeyStatus | None = None, log: AccessLog | None = None) -> None:
        self.behind, self.keys, self.log = behind, keys, log
        self.held: Counter[str] = Counter()  # bytes of requests in memory, by the neighbourhood of the peer
        context = ssl.create_default_context(cafile=str(trusted))
        self.client = httpx.AsyncClient(verify=context, timeout=_SECONDS, trust_env=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        if scope["type"] != "http":
            return
        body, reply = bytearray(), _Reply(send)
        peer = (scope.get("client") or ("",))[0]
        status = GONE
        try:
            await self._answer(scope, receive, reply, body)
        except Exception:
            status = BROKEN
            raise
        finally:
            self._release(neighbourhood(peer), len(body))
            if self.log is not None:
                self.log.note("request", peer, scope["raw_path"], reply.status or status, len(body), reply.sent)

    async def _live(self, receive: Receive, send: Send) -> None:
        """Wait for the end of the door, and write what the log has counted."""
        while True:
            event = (await receive())["type"]
            if event == "lifespan.shutdown" and self.log is not None:
                self.log.flush()
            await send({"type": f"{event}.complete"})
            if event == "lifespan.shutdown":
                return

    async def _answer(self, scope: Scope, receive: Receive, reply: _Reply, body: bytearray) -> None:
        path = scope["raw_path"]
        ours = self.keys is not None and path == key_status.PATH.encode()
        if scope["method"] != "POST" or not (ours or _is_of_nodes(path)):
            await reply.refuse(404)
            return
        try:
            largest = key_status.LARGEST if ours else LARGEST_BODY
            who = neighbourhood((scope.get("client") or ("",))[0])
            if not await asyncio.wait_for(self._arrived(receive, body, largest, who), ARRIVAL):
                return
            if ours and self.keys is not None:
                status, told = await asyncio.to_thread(self.keys.answer, bytes(body), scope["client"][0])
                await reply.tell(status, told)
            else:
                await self._pass_on(path.decode("ascii"), scope["headers"], bytes(body), reply)
        except _Refused as refused:
            await reply.refuse(refused.status)
        except asyncio.TimeoutError:
            await reply.refuse(408)
        except httpx.TransportError:  # the SuperLink is away; nodes try again
            if reply.status is not None:
                raise
            await reply.refuse(AWAY)

    async def _pass_on(self, path: str, headers: Iterable[tuple[bytes, bytes]], body: bytes, reply: _Reply) -> None:
        target = f"{self.behind}{path}"
        async with self.client.stream("POST", target, headers=_passed(headers, _HOP), content=body) as answer:
            await reply.begin(answer.status_code, _passed(answer.headers.raw, _HOP | _OURS))
            async for piece in answer.aiter_raw():
                await reply.add(piece, more=True)
            await reply.add(b"")

    async def _arrived(self, receive: Receive, body: bytearray, largest: int, who: str) -> bool:
        """Read a request into `body`; False where the caller has gone before its end."""
        more = True
        while more:
            event = await receive()
            if event["type"] != "http.request":
                return False
            piece: bytes = event.get("body", b"")
            more = event.get("more_body", False)
            if len(body) + len(piece) > largest:
                raise _Refused(413)
            of_peer, of_all = self.held[who] + len(piece), self.held.total() + len(piece)
            if of_peer > LARGEST_OF_PEER or of_all > LARGEST_HELD:
                raise _Refused(503)  # there is no room now; nodes try again
            body += piece
            self.held[who] += len(piece)
        return True

    def _release(self, who: str, size: int) -> None:
        self.held[who] -= size
        if not self.held[who]:
            del self.held[who]


class _Refused(Exception):
    """A request is not passed on."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class _Reply:
    """An answer on its way: its status, None before it has begun, and how many bytes of it were sent."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status: int | None = None
        self.sent = 0

    async def begin(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        self.status = status
        dated = [(b"date", formatdate(usegmt=True).encode()), *headers]  # a node compares its clock with it
        await self._send({"type": "http.response.start", "status": status, "headers": dated})

    async def add(self, piece: bytes, more: bool = False) -> None:
        self.sent += len(piece)
        await self._send({"type": "http.response.body", "body": piece, "more_body": more})

    async def tell(self, status: int, told: dict[str, Any]) -> None:
        text = jsontext.dumps(told).encode()
        await self.begin(status, [(b"content-type", b"application/json"), _length(text)])
        await self.add(text)

    async def refuse(self, status: int) -> None:
        """Refuse, and end the connection: what else its request holds is not read."""
        await self.begin(status, [_length(b""), (b"connection", b"close")])
        await self.add(b"")


def serve(host: str, port: int, behind: str, folder: Path, per_address: int, listens: Callable[[], bool]) -> None:
    """Stand before the SuperLink until the process ends; `folder` has server.pem, server.key and ca.pem.

    An address may hold `per_address` connections; `listens` tells whether the SuperLink is there. The access log goes
    to stderr.
    """
    if uvicorn is None:
        raise missing_extra("a coordinator needs flwr", "flower")
    log = AccessLog(partial(print, file=sys.stderr, flush=True))

    async def tick() -> None:
        log.tick()

    config = uvicorn.Config(
        NodeProxy(behind, folder / "ca.pem", KeyStatus(folder, listens), log), http=connections.timed(H11Protocol, log),
        ws="none", loop="asyncio", lifespan="on", log_level="error", access_log=False, proxy_headers=False,
        server_header=False, date_header=False, timeout_keep_alive=connections.KEPT, timeout_graceful_shutdown=END,
        callback_notify=tick, timeout_notify=TICK, ssl_certfile=str(folder / "server.pem"),
        ssl_keyfile=str(folder / "server.key"),
    )  # fmt: skip
    with connections.listening(host, port, per_address, log) as listener:
        uvicorn.Server(config).run(sockets=[listener])


def _passed(headers: Iterable[tuple[bytes, bytes]], dropped: set[str]) -> list[tuple[bytes, bytes]]:
    """The headers that are for the other side, not for this connection."""
    return [(name, value) for name, value in headers if name.decode("latin-1").lower() not in dropped]


def _is_of_nodes(path: bytes) -> bool:
    """Whether a path is one of a node's: plain letters, so that nobody behind the door reads another path into it."""
    return path.startswith(PATHS.encode()) and path[len(PATHS) :].replace(b"-", b"").isalnum()


def _length(text: bytes) -> tuple[bytes, bytes]:
    return b"content-length", str(len(text)).encode()
