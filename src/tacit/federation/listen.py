"""The Unix socket of an agent service: one message in, one message out, then the connection ends.

Whoever connects is an account that the site file names, by what the system says of it. Nobody can make the service read
more than a model, wait for longer than SECONDS, or serve more than CONNECTIONS at a time. Replies leave at whole
multiples of the site's pace after their message came, so that no record decides when; refusals too.
"""

from __future__ import annotations

import math
import os
import socket
import stat
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from tacit.errors import IncompatibleError, SpecError
from tacit.federation import accounts, wire
from tacit.federation.ledger_files import alone
from tacit.federation.log import Log, silent
from tacit.federation.messages import Refusal, written
from tacit.federation.service import Service
from tacit.federation.site import Site
from tacit.run.train import GracefulInterrupt

SECONDS = 20.0  # for a message to arrive, and for its reply to leave
CONNECTIONS = 16  # attended at a time
QUEUE = 128  # that wait: the system turns away more
TICK = 0.1  # seconds between two looks at whether to end
_CREDENTIALS = struct.Struct("3i")  # process, user, group


def serve(site: Site, log: Log = silent, stop: threading.Event | None = None) -> None:
    """Answer on the socket of a site until SIGTERM, SIGINT or `stop`; an answer on its way is finished first."""
    allowed, stop = accounts.users(site), stop or threading.Event()
    accounts.group(site)  # which refuses one that is not there
    interrupt = GracefulInterrupt()
    with alone(site), Service(site, log) as service, listening(site, allowed) as listener, interrupt:
        for warning in accounts.warnings(site):
            service.log(warning, event="accounts")
        service.log_accounts("start")
        who = ", ".join(site.callers) or "its own account"
        service.log(f"listens at {site.socket} for {who}", event="listening")
        server = _ConnectionServer(service, allowed)
        try:
            server.attend(listener, lambda: stop.is_set() or interrupt.asked)
        finally:
            server.finish()
        service.log_accounts("end")
        service.log("ends: no answer is on its way", event="ended")


@contextmanager
def listening(site: Site, allowed: set[int]) -> Iterator[socket.socket]:
    """The socket, open to its accounts alone; gone with the service. A stale one is replaced, a live one is not."""
    path = site.socket
    _clear(path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        # its mode from the first moment, and never by its name, where somebody could put a link to another file
        before = os.umask(0o177 if site.group is None and allowed == {os.getuid()} else 0o117)
        try:
            listener.bind(str(path))
        except OSError as error:
            raise SpecError(f"cannot listen at {path} ({error.strerror}): name a folder of your own.") from None
        finally:
            os.umask(before)
        ours = path.lstat().st_ino
        try:
            if (group := accounts.group(site)) is not None:
                _hand_to(path, group, str(site.group))
            listener.listen(QUEUE)  # nobody can connect before
            yield listener
        finally:
            with suppress(FileNotFoundError):
                if path.lstat().st_ino == ours:
                    path.unlink()


def _clear(path: Path) -> None:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise IncompatibleError(f"{path} is there and is no socket: name another site.socket.")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:  # nobody listens: it is left of a service that was killed
            path.unlink(missing_ok=True)
            return
        except OSError:  # a full queue, or a file of somebody else: not ours to remove
            pass
    raise IncompatibleError(f"another service listens at {path}: stop it first.")


def _hand_to(path: Path, group: int, name: str) -> None:
    try:
        os.chown(path, -1, group, follow_symlinks=False)
    except OSError as error:
        why = f"{path} cannot be given to {name!r} ({error.strerror})"
        then = f"let the account of this service join it: usermod -aG {name} {accounts.name_of(os.geteuid())}"
        raise SpecError(f"site.group: {why}: {then}") from None


class _ConnectionServer:
    """Serve each accepted connection on its own thread."""

    def __init__(self, service: Service, allowed: set[int]) -> None:
        self.service, self.allowed, self.log = service, allowed, service.log
        self._free = threading.BoundedSemaphore(CONNECTIONS)
        self._lock = threading.Lock()
        self._threads: set[threading.Thread] = set()
        self._reading: set[socket.socket] = set()

    def attend(self, listener: socket.socket, ended: Callable[[], bool]) -> None:
        """Take connections until `ended`; those that find no place wait in the system's queue."""
        listener.settimeout(TICK)
        while not ended():
            if not self._free.acquire(timeout=TICK):
                continue
            try:
                stream, _ = listener.accept()
            except OSError as error:
                self._free.release()
                if not isinstance(error, TimeoutError):  # such as no file left: the next may find one
                    self.log(f"cannot take a connection: {error.strerror}", event="overrun")
                    time.sleep(TICK)
                continue
            thread = threading.Thread(target=self._attend, args=(stream,), name="connection", daemon=True)
            with self._lock:
                self._threads.add(thread)
            thread.start()

    def finish(self) -> None:
        """Let answers that are on their way leave; who has not said everything is not heard any more."""
        with self._lock:
            threads = list(self._threads)
            for stream in self._reading:
                with suppress(OSError):
                    stream.shutdown(socket.SHUT_RD)
        for thread in threads:
            thread.join()

    def _attend(self, stream: socket.socket) -> None:
        try:
            with stream:
                self._converse(stream)
        except Exception as error:  # the caller has gone, say: the next one is served
            self.log(f"a connection ended early: {type(error).__name__}", event="broken")
        finally:
            with self._lock:
                self._threads.discard(threading.current_thread())
            self._free.release()

    def _converse(self, stream: socket.socket) -> None:
        user = _CREDENTIALS.unpack(stream.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))[1]
        if user not in self.allowed:
            self.log(f"turned away user {user}, whom site.callers does not name", event="stranger", user=user)
            return
        reply = self._reply(stream)
        stream.settimeout(SECONDS)
        wire.send(stream, *reply)

    def _reply(self, stream: socket.socket) -> tuple[wire.Header, bytes]:
        with self._lock:
            self._reading.add(stream)
        try:
            heard = partial(self.service.answer, *wire.receive(stream, self.service.largest_body, SECONDS))
        except wire.TooLong as error:
            heard = partial(self.service.answer_unread, error.header)
        except (wire.Malformed, OSError) as error:
            self.log(f"refused what came: {error}", event="malformed")
            heard = partial(written, Refusal())
        finally:
            came = time.monotonic()
            with self._lock:
                self._reading.discard(stream)
        reply = heard()
        time.sleep(until_due(time.monotonic() - came, self.service.site.pace))
        return reply


def until_due(elapsed: float, pace: float) -> float:
    """The seconds to the next whole multiple of the pace; a reply that needed no time at all waits for the first."""
    return max(1, math.ceil(elapsed / pace)) * pace - elapsed
