"""The coordinator of a federation: it reads its folder, gathers the sites, and runs or resumes the run."""

from __future__ import annotations

from pathlib import Path

from tacit.federation.carrier import Carrier
from tacit.federation.log import Log, silent
from tacit.run.run import Result
from tacit.run.train import Listener, nobody


def train(folder: Path, carrier: Carrier, listener: Listener = nobody, log: Log = silent) -> Result:
    """Train the run of a coordinator's folder; a run that was started and has no result is continued.

    Suspended where too many agents are missing: call it again, and the run goes on.
    """
    raise NotImplementedError
