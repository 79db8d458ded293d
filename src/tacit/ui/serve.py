"""Serves the live page until the process is stopped."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Collection
from contextlib import ExitStack
from pathlib import Path

from tacit.errors import InputError, missing_extra
from tacit.ui.app import App
from tacit.ui.guard import Guard, is_any, is_loopback
from tacit.ui.patience import patient
from tacit.ui.place import Place
from tacit.ui.views import Views

try:
    import uvicorn
    from uvicorn.protocols.http.h11_impl import H11Protocol
except ImportError:  # tacit runs without it; `serve` says so
    uvicorn = None

HOST = "127.0.0.1"
CONNECTIONS = 64  # beyond which those without the token go; those with it may be twice as many


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
