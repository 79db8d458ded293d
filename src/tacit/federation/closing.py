"""After the last round of a secure sum: every site is told, until it says so, that it may delete its keys of the run.

The signed keys of all agents are public, and stay in the directory of the run beside the names of the sites that have
closed it. A coordinator that is killed before the end, or a site that is down, leaves keys at sites; the next run of
the folder begins with what is left to close.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

from tacit import jsontext
from tacit.errors import RunDirectoryError
from tacit.federation import messages
from tacit.federation.log import Log
from tacit.federation.messages import Close, Closed, Join, Meet, Refusal, Signed, Unjoined
from tacit.federation.opening import Gathered, Opening
from tacit.machine import write_whole
from tacit.run.directory import RunDirectory

KEYS = "keys.json"
CLOSING = 20.0  # seconds that sites have to hear that a run has ended, where they took part in its last round


@dataclass(frozen=True)
class Kept:
    """What a run's directory has of the keys: those that all agents were told, and who has deleted its own."""

    meet: Meet
    closed: tuple[str, ...] = ()

    def write(self, path: Path) -> None:
        """Keep it in the directory of the run, which is resumed with the same keys."""
        text = jsontext.dumps({**dataclasses.asdict(self.meet), "closed": self.closed}, indent=1) + "\n"
        write_whole(path / KEYS, lambda file: file.write(text.encode()))

    @classmethod
    def read(cls, path: Path) -> Kept:
        """Read what `write` wrote."""
        try:
            found = json.loads((path / KEYS).read_text(encoding="utf-8"))
            signed = tuple(Signed(**one) for one in found["signed"])
            meet = Meet(str(found["run"]), str(found["agreed"]), signed)
            return cls(meet, tuple(str(site) for site in found["closed"]))
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise RunDirectoryError(f"{path / KEYS} is damaged ({error}): restore it, or start anew.") from None


def read_meet(join: Join, path: Path) -> Meet:
    """The keys that the agents of a run were told."""
    return replace(Kept.read(path).meet, run=join.run, agreed=join.agreed)


def close(opening: Opening, path: Path, awaited: Collection[str]) -> None:
    """Tell every site that has not closed a run that it has ended, and wait for those of `awaited`."""
    kept = Kept.read(path)
    end, left = Close(kept.meet.run, kept.meet.agreed), set(Gathered.read(path).sites) - set(kept.closed)
    for name in sorted(left - set(awaited)):
        opening.carrier.send(name, *messages.written(end))
    closed = list(kept.closed)
    for name, reply in opening.replies(sorted(left & set(awaited)), end, (Closed, Refusal, Unjoined), CLOSING):
        if isinstance(reply, Closed):
            closed.append(name)
            opening.log(f"site {name} has closed the run {kept.meet.run}, and deleted its keys", site=name)
        else:
            opening.log(f"site {name} knows nothing of the run {kept.meet.run}, which has ended", site=name)
    replace(kept, closed=tuple(sorted(closed))).write(path)


def close_finished(opening: Opening, runs: Path, sites: Collection[str], log: Log) -> None:
    """Close the runs of a folder that are finished, at those of these sites that have not closed them."""
    for path in sorted(found.parent for found in runs.glob(f"[!.]*/{KEYS}")):
        try:
            left = set(Gathered.read(path).sites) - set(Kept.read(path).closed)
            if RunDirectory(path).finished and left & set(sites):
                close(opening, path, left & set(sites))
        except RunDirectoryError as error:
            log(f"a run that has ended cannot be closed: {error}")  # which is no reason not to start another
