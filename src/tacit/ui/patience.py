"""Connections that say nothing must not keep the owner out: they end after a while, and make room before that.

Whoever reaches the port can open connections without the token. So a connection without a whole request is closed, and
where there are too many, the oldest that has not shown the token goes.
"""

from __future__ import annotations

from typing import Any

from tacit.ui.guard import Guard

PATIENCE = 10.0  # seconds for the first request


def patient(base: type[Any], guard: Guard, most: int) -> type[Any]:
    """Return a protocol of uvicorn's for h11 that keeps at most so many connections without the token."""

    class Patient(base):  # type: ignore[misc]
        """A connection that has to show what it is for."""

        def connection_made(self, transport: Any) -> None:
            """Take a connection in, and let another go where there are too many."""
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
