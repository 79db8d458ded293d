"""A line, now and then, about who is waited for and why."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tacit.federation.carrier import Carrier
from tacit.federation.log import Log

EVERY = 30.0  # seconds between two lines


class Reminder:
    """Log who is waited for, and why as far as the transport knows; the first time EVERY seconds after it began."""

    def __init__(self, carrier: Carrier, log: Log, clock: Callable[[], float]) -> None:
        self.carrier, self.log, self.clock = carrier, log, clock
        self.what, self.at = "", -float("inf")

    def __call__(self, what: str, sites: Sequence[str]) -> None:
        """Say who is missing, if it is time; a new `what` is waited for from now on."""
        now = self.clock()
        if what != self.what:
            self.what, self.at = what, now
        elif sites and now >= self.at + EVERY:
            self.at = now
            told = {site: self.carrier.absence(site) or "no answer yet" for site in sites}
            said = ", ".join(f"{site} ({why})" for site, why in told.items())
            self.log(f"{what}: waiting for {said}", waiting=told)
