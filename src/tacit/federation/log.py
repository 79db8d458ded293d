"""Lines that say what a long-lived process does: for a person to read, or JSON for a program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from typing import IO, Any, TypeAlias

from tacit import jsontext
from tacit.errors import TacitError

LONGEST_REASON = 1000  # characters of a line
REMIND_EVERY = 30.0  # seconds between two lines about who is waited for

Log: TypeAlias = Callable[..., None]  # log("what happened, as a sentence", site="north", t=3)


def silent(_text: str, **_facts: Any) -> None: ...


def to(stream: IO[str], as_json: bool = False) -> Log:
    """Return a log that writes a line at once for each thing that it is told."""

    def log(text: str, **facts: Any) -> None:
        at = datetime.now(timezone.utc).isoformat(timespec="seconds")
        said = " ".join(text.split())  # one line, whatever a name or a reason holds
        line = jsontext.dumps({"at": at, "text": said, **facts}) if as_json else f"{at}  {said}"
        print(line, file=stream, flush=True)

    return log


def reason(error: Exception) -> str:
    """Why something was refused, for the owner; what a caller wrote in it cannot move the owner's cursor."""
    said = "".join(letter if letter.isprintable() else "?" for letter in f"{error}"[:LONGEST_REASON])
    return said if isinstance(error, TacitError) else f"{type(error).__name__}: {said}"


def counted(n: int, what: str) -> str:
    """Return so many of something: 1 round, 2 rounds."""
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


class Reminder:
    """Log which sites are awaited, and why if the transport knows; first after REMIND_EVERY seconds."""

    def __init__(self, absence: Callable[[str], str], log: Log, clock: Callable[[], float]) -> None:
        self.absence, self.log, self.clock = absence, log, clock
        self.what, self.at = "", -float("inf")

    def __call__(self, what: str, sites: Sequence[str]) -> None:
        """Say who is missing, if it is time; a new `what` is waited for from now on."""
        now = self.clock()
        if what != self.what:
            self.what, self.at = what, now
        elif sites and now >= self.at + REMIND_EVERY:
            self.at = now
            told = {site: self.absence(site) or "no answer yet" for site in sites}
            said = ", ".join(f"{site} ({why})" for site, why in told.items())
            self.log(f"{what}: waiting for {said}", waiting=told)
