"""Why a run behind a secure sum is suspended: what happened, what it has cost, and what resuming does."""

from __future__ import annotations

from collections.abc import Sequence

from tacit.errors import Suspended
from tacit.federation.log import counted


def missing(place: str, who: str, why: str, asks_anew: bool, refused: bool) -> Suspended:
    """Words are missing; `refused`: not because of silence, so that the same attempt may be refused for good."""
    if asks_anew:
        then = "see to them, and resume the run; it then asks a new attempt"
    elif refused:
        then = (
            "see to them (their logs say why), and resume the run; it then asks the same attempt again, because no "
            "repetition is left, and where they refuse it again a new run is needed"
        )
    else:
        then = "see to them, and resume the run; it then asks the same attempt again"
    return Suspended(f"{place}: no words came from {who}, and {why}. What was done is saved: {then}.")


def garbage(place: str, n_agents: int, left: int | None) -> Suspended:
    """Words add up to no sum; `left` repetitions are left after the new attempt, None: there can be none."""
    then = "no repetition is left, so that a new run is needed" if left is None else (
        f"resuming asks a new attempt, and after that {counted(left, 'repetition')} can follow"
    )  # fmt: skip
    return Suspended(
        f"{place}: the words of {counted(n_agents, 'agent')} add up to what no honest sum is: somebody has sent "
        "garbage, or has another version of tacit, and masks hide who. It has cost each agent this one attempt and "
        "nothing beyond it. Compare versions and logs of the sites, or stop the service of one to leave it out; "
        f"{then}."
    )


def away(t: int, most_missed: int, who: Sequence[str]) -> Suspended:
    """Agents have shown no sign of life for too long."""
    return Suspended(
        f"round {t}: more than {counted(most_missed, 'round')} in a row without a sign of life of {', '.join(who)}. "
        "What was done is saved: see to them, or raise faults.most_missed to go on without them, and resume the run."
    )
