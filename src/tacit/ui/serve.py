"""Serves the live page until the process is stopped, and opens it in a browser."""

from __future__ import annotations

import html
import shutil
import signal
import socket
import sys
import tempfile
import threading
import webbrowser
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tacit.errors import InputError, missing_extra
from tacit.ui.app import App
from tacit.ui.guard import Guard, is_any, is_loopback
from tacit.ui.place import Place
from tacit.ui.views import Views

try:
    import uvicorn
    from uvicorn.protocols.http.h11_impl import H11Protocol
except ImportError:  # tacit runs without it; `serve` says so
    uvicorn = None

HOST = "127.0.0.1"
CONNECTIONS = 64  # beyond which those without the token go; those with it may be twice as many
PATIENCE = 10.0  # seconds for the first request
_PAGE = (
    '<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer">'
    '<meta http-equiv="refresh" content="0;url={0}"><title>tacit</title><a href="{0}">tacit ui</a>\n'
)


def serve(
    root: Path, told: Callable[[str, str], None], host: str = HOST, port: int = 0, allowed: Collection[str] = ()
) -> None:
    """Serve the runs below a directory; `told` is called with the address and the token, once both are known."""
    if uvicorn is None:
        raise missing_extra("the live page needs uvicorn", "ui")
    guard = Guard(host, allowed)
    with ExitStack() as opened:
        place = Place(root)
        opened.callback(place.close)
        listening = opened.enter_context(_listening(host, port))
        views = Views(place)
        threading.Thread(target=views.rows.all, daemon=True).start()  # the first page need not wait for all files then
        shown = HOST if is_any(host) else host
        told(f"http://{f'[{shown}]' if ':' in shown else shown}:{listening.getsockname()[1]}/", guard.token)
        config = uvicorn.Config(
            App(views, guard), log_level="warning", access_log=False, lifespan="off", server_header=False, ws="none",
            proxy_headers=False, limit_concurrency=2 * CONNECTIONS, timeout_keep_alive=30, timeout_graceful_shutdown=1,
            http=patient(H11Protocol, guard, CONNECTIONS),
        )  # fmt: skip
        uvicorn.Server(config).run(sockets=[listening])


def _listening(host: str, port: int) -> socket.socket:
    if not 0 <= port < 1 << 16:
        raise InputError(f"a port is a number from 0 to 65535, got {port}: give another --host or --port.")
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    except (OSError, UnicodeError) as error:
        raise InputError(f"cannot listen on {host}, port {port} ({error}): give another --host or --port.") from None


def warning(host: str) -> str:
    """Return what the owner should know of an address that others reach; nothing for loopback."""
    if is_loopback(host):
        return ""
    return (
        "others reach this address, and the token and all that is shown travel unencrypted: rather keep loopback and "
        "tunnel to it (ssh -L), or put a proxy with TLS before it"
    )


def patient(base: type[Any], guard: Guard, most: int) -> type[Any]:
    """Return a uvicorn protocol for h11 that keeps at most `most` connections without the token.

    Everybody who reaches the port can open connections without the token, which must not keep the owner out. So a
    connection without a whole request is closed after PATIENCE seconds, and if there are too many, the oldest that has
    not shown the token is closed.
    """

    class Patient(base):  # type: ignore[misc]
        """A connection that has to send a request in time."""

        def connection_made(self, transport: Any) -> None:
            """Accept a connection, and close another if there are too many."""
            super().connection_made(transport)
            self.since = self.loop.time()
            self.deadline = self.loop.call_later(PATIENCE, self.end_if_silent)
            others = [one for one in self.connections if one is not self and not one.transport.is_closing()]
            if len(others) >= most:
                strangers = [one for one in others if not one.is_owner()]
                if strangers:
                    min(strangers, key=lambda one: one.since).transport.abort()

        def connection_lost(self, exc: Exception | None) -> None:
            """Forget a connection."""
            self.deadline.cancel()
            super().connection_lost(exc)

        def end_if_silent(self) -> None:
            """Close the connection if no whole request has come."""
            if self.cycle is None and not self.transport.is_closing():
                self.transport.abort()

        def is_owner(self) -> bool:
            """Tell whether the last request showed the token."""
            return self.headers is not None and guard.refused(self.headers, needs_token=True) is None

    return Patient


@contextmanager
def opener() -> Iterator[Callable[[str], None]]:
    """Yield a function that opens a link in the browser without showing it to other accounts.

    Other accounts see the arguments of every process. So the browser is given the address of a file that only the owner
    can read, and the file leads it to the link. The files are removed at the end, after SIGTERM too.
    """
    folder = Path(tempfile.mkdtemp(prefix="tacit-ui-"))  # of mode 0700

    def open_(link: str) -> None:
        page = folder / "open.html"
        page.touch(0o600)
        page.write_text(_PAGE.format(html.escape(link)), encoding="utf-8")
        webbrowser.open(page.as_uri())

    main = threading.current_thread() is threading.main_thread()  # no other thread may set what a signal does
    before = signal.signal(signal.SIGTERM, _ended) if main else None
    try:
        yield open_
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if main:
            signal.signal(signal.SIGTERM, before)


def _ended(number: int, _frame: object) -> None:
    """End as after any error, with what has to be removed; the server has already ended in order by then."""
    sys.exit(128 + number)
