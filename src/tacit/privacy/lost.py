"""Runs that a ledger does not have, as its owner states them: what they count as."""

from __future__ import annotations

import math

from tacit.errors import SpecError
from tacit.privacy.budget import multiplier_of
from tacit.privacy.history import Price
from tacit.privacy.release import GaussianRelease, GeneralRelease, Release


def stated(epsilon: float, dp_delta: float, law: str | None, price: Price, limit_delta: float) -> Release:
    """Return what a run of (epsilon, dp_delta) counts as. `limit_delta` is the delta of the ledger's limit.

    Gaussian noise over all rounds of a run reveals as much as one Gaussian release. If the law is not known, the run
    counts as the worst of all (epsilon, dp_delta) mechanisms. That leaves nothing of a limit at the same delta, so it
    is refused unless `law` is "any".
    """
    if not (0 < epsilon < math.inf and 0 <= dp_delta < 1):
        raise SpecError(
            f"a lost run has a positive epsilon and a delta in [0, 1), got {epsilon} and {dp_delta}: enter what it was "
            "agreed to cost."
        )
    if law == "gaussian":
        if dp_delta == 0:
            raise SpecError("Gaussian noise has a delta above 0: enter that of the lost run, or --law any.")
        return GaussianRelease(multiplier_of(epsilon, dp_delta))
    found = GeneralRelease(epsilon, dp_delta)
    if law is None and math.isinf(price([(found, 1)], limit_delta)):
        raise SpecError(
            f"a run of ({epsilon:g}, {dp_delta:g}) of unknown noise leaves nothing of a limit at delta "
            f"{limit_delta:g}. If it drew Gaussian noise, as all methods but objt-laplace do under the sound preset, "
            "add --law gaussian. If you do not know, add --law any: then nothing more is released at this delta."
        )
    return found
