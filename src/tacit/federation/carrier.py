"""What brings the coordinator's messages to the sites, and theirs back: Flower's grid, or a test in one process."""

from __future__ import annotations

from typing import Protocol

from tacit.federation import wire


class Carrier(Protocol):
    """Carry messages, and promise nothing: what is sent may be lost, late, doubled or out of order.

    A site is who its transport says it is (for Flower, the id of its node), not who a message claims to be. Where a
    site's service cannot be reached, nothing comes back: a Refusal is a word of the service itself.
    """

    def send(self, site: str, header: wire.Header, body: bytes) -> None:
        """Queue a message for a site. Never wait; drop the message where the site is not connected."""

    def received(self, seconds: float) -> list[tuple[str, wire.Header, bytes]]:
        """Return what came, with the site that it came from; wait at most so many seconds for the first."""

    def absence(self, site: str) -> str:
        """Say why a site may not have answered, as far as the transport knows; nothing if it does not know."""
