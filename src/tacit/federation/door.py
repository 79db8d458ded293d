"""The one port of a coordinator that others reach: it lets requests of nodes through, and no others.

Flower 1.41 serves its control interface (start a run: code on this machine and on every node; register a node) and its
runtime interface on the port that nodes use, and asks nobody there who they are. So the SuperLink listens on this
machine alone, and this process stands before it: TLS, the paths of nodes, and nothing else. Node keys are checked
behind it, by Flower. uvicorn and httpx come with flwr, and read and write HTTP: no byte of a request is passed on
unparsed.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

from tacit.errors import missing_extra

try:
    import httpx
    import uvicorn
except ImportError:  # tacit runs without them; `serve` says so
    httpx = uvicorn = None

PATHS = "/v1/fleet/"
LARGEST_BODY = 1 << 28
LARGEST_HELD = 1 << 30  # of all requests together: whoever asks is not known before the SuperLink has looked
AWAY = 503  # the status where the SuperLink does not answer
ARRIVAL = 120.0  # seconds for a request to arrive
_HOP = {"connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "host", "content-length", "expect"}
_SECONDS = 300.0

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class Door:
    """An ASGI app that passes the requests of nodes on to `behind`."""

    def __init__(self, behind: str, trusted: Path) -> None:
        self.behind = behind
        self.held = 0  # bytes of requests in memory
        context = ssl.create_default_context(cafile=str(trusted))
        self.client = httpx.AsyncClient(verify=context, timeout=_SECONDS, trust_env=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        path = scope["raw_path"]
        if scope["method"] != "POST" or not _is_of_nodes(path):
            await _answer(send, 404)
            return
        headers = _passed(scope["headers"])
        begun, body = False, bytearray()
        try:
            if not await asyncio.wait_for(self._arrived(receive, body), ARRIVAL):
                return
            target = f"{self.behind}{path.decode('ascii')}"
            async with self.client.stream("POST", target, headers=headers, content=bytes(body)) as answer:
                back = _passed(answer.headers.raw)
                await send({"type": "http.response.start", "status": answer.status_code, "headers": back})
                begun = True
                async for piece in answer.aiter_raw():
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        except _Refused as refused:
            await _answer(send, refused.status)
        except asyncio.TimeoutError:
            await _answer(send, 408)
        except httpx.TransportError:  # the SuperLink is away; nodes try again
            if begun:
                raise
            await _answer(send, AWAY)
        finally:
            self.held -= len(body)

    async def _arrived(self, receive: Receive, body: bytearray) -> bool:
        """Read a request into `body`; False where the caller has gone before its end."""
        more = True
        while more:
            event = await receive()
            if event["type"] != "http.request":
                return False
            piece: bytes = event.get("body", b"")
            more = event.get("more_body", False)
            if len(body) + len(piece) > LARGEST_BODY:
                raise _Refused(413)
            if self.held + len(piece) > LARGEST_HELD:
                raise _Refused(503)  # there is no room now; nodes try again
            body += piece
            self.held += len(piece)
        return True


class _Refused(Exception):
    """A request is not passed on."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


def serve(host: str, port: int, behind: str, folder: Path) -> None:
    """Stand before the SuperLink until the process ends; `folder` has server.pem, server.key and ca.pem."""
    if uvicorn is None:
        raise missing_extra("a coordinator needs flwr", "flower")
    uvicorn.run(
        Door(behind, folder / "ca.pem"), host=host, port=port, log_level="warning", access_log=False, lifespan="off",
        ssl_certfile=str(folder / "server.pem"), ssl_keyfile=str(folder / "server.key"), server_header=False,
    )  # fmt: skip


def _passed(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """The headers that are for the other side, not for this connection."""
    return [(name, value) for name, value in headers if name.decode("latin-1").lower() not in _HOP]


def _is_of_nodes(path: bytes) -> bool:
    """Whether a path is one of a node's: plain letters, so that nobody behind the door reads another path into it."""
    return path.startswith(PATHS.encode()) and path[len(PATHS) :].replace(b"-", b"").isalnum()


async def _answer(send: Send, status: int) -> None:
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})
