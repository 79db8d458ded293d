"""The end of a run at its sites: they free the budget that the run holds and delete their keys of a secure sum.

A run is closed after its last round, and if it cannot begin because a site refuses it. A site whose agents have made
all releases of their terms holds nothing: it is not asked. The directory of the run has the names of the sites that
have closed it and, for a secure sum, the signed keys of all agents, which are public. A coordinator that is killed
before the end, or a site that is down, leaves something to close; the next run of the folder begins with that.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from tacit import jsontext
from tacit.errors import RunDirectoryError
from tacit.federation import messages
from tacit.federation.join_phase import JoinPhase, Participants
from tacit.federation.log import Log
from tacit.federation.messages import Close, Closed, Join, Meet, Refusal, Signed, Unjoined
from tacit.machine import write_whole
from tacit.run.directory import RunDirectory

FILE, EARLIER = "closing.json", "keys.json"  # the second one in directories of version 0.2, for secure sums only
CLOSING = 20.0  # seconds that sites have to hear that a run has ended, where they took part in its last round


@dataclass(frozen=True)
class ClosingState:
    """What a run's directory has for its end: the signed keys of a sum, none otherwise, and which sites closed it."""

    meet: Meet
    closed: tuple[str, ...] = ()

    def write(self, path: Path) -> None:
        """Keep it in the directory of the run, which is resumed with the same keys."""
        text = jsontext.dumps({**dataclasses.asdict(self.meet), "closed": self.closed}, indent=1) + "\n"
        write_whole(path / FILE, lambda file: file.write(text.encode()))

    @classmethod
    def read(cls, path: Path) -> ClosingState:
        """Read what `write` wrote."""
        file = path / (FILE if (path / FILE).exists() else EARLIER)
        try:
            found = json.loads(file.read_text(encoding="utf-8"))
            signed = tuple(Signed(**one) for one in found["signed"])
            meet = Meet(str(found["run"]), str(found["agreed"]), signed)
            return cls(meet, tuple(str(site) for site in found["closed"]))
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise RunDirectoryError(f"{file} is damaged ({error}): restore it, or start anew.") from None


def read_meet(join: Join, path: Path) -> Meet:
    """The keys that the agents of a run were told."""
    return replace(ClosingState.read(path).meet, run=join.run, agreed=join.agreed)


def close(joining: JoinPhase, path: Path, awaited: Collection[str], over: Iterable[str] = ()) -> None:
    """Ask every site that has not closed a run to close it, and wait for those of `awaited`.

    The run is `over` at sites where it holds nothing: they count as closed.
    """
    kept = ClosingState.read(path)
    closed = set(kept.closed) | set(over)
    left = set(Participants.read(path).sites) - closed
    closed |= _closed(joining, Close(kept.meet.run, kept.meet.agreed), left, left & set(awaited))
    replace(kept, closed=tuple(sorted(closed))).write(path)


def withdraw(joining: JoinPhase, join: Join, sites: Collection[str]) -> None:
    """Close a run that does not begin at all sites, so that it holds no budget where it was joined."""
    _closed(joining, Close(join.run, join.agreed), sites, sites)


def _closed(joining: JoinPhase, end: Close, sites: Collection[str], awaited: Collection[str]) -> set[str]:
    """Ask sites to close a run, wait for some of them, and return those that have."""
    for name in sorted(set(sites) - set(awaited)):
        joining.transport.send(name, *messages.written(end))
    closed = set()
    requests = dict.fromkeys(sorted(awaited), end)
    for name, reply in joining.replies(requests, (Closed, Refusal, Unjoined), CLOSING):
        if isinstance(reply, Closed):
            closed.add(name)
            joining.log(f"site {name} has closed the run {end.run}", site=name)
        else:
            joining.log(f"site {name} did not close the run {end.run}, which has ended", site=name)
    return closed


def close_finished(joining: JoinPhase, runs: Path, sites: Collection[str], log: Log) -> None:
    """Close the runs of a folder that are finished, at those of these sites that have not closed them."""
    for path in sorted({found.parent for name in (FILE, EARLIER) for found in runs.glob(f"[!.]*/{name}")}):
        try:
            left = set(Participants.read(path).sites) - set(ClosingState.read(path).closed)
            if RunDirectory(path).finished and left & set(sites):
                close(joining, path, left & set(sites))
        except RunDirectoryError as error:
            log(f"a run that has ended cannot be closed: {error}")  # which is no reason not to start another
