"""What the owner of the data is told before the first round."""

from __future__ import annotations

import warnings

from tacit.errors import LargeDeltaWarning, NotPrivateWarning
from tacit.run.build import Setup
from tacit.run.guarantee import reasons
from tacit.run.spec import Spec
from tacit.types import Federation

HOW_TO_BE_PRIVATE = "For a guarantee: --preset sound --algorithm objt (or objp, outp), with a finite --epsilon."


def warn(spec: Spec, over: Federation, setup: Setup) -> None:
    """Say why the run will not be private and what to do, or that its delta is too large to mean much."""
    against = reasons(spec, setup)
    if against:
        advice = [HOW_TO_BE_PRIVATE] if setup.promise.caveats else []  # else the reason says it
        warnings.warn(" ".join(["not private:", *against, *advice]), NotPrivateWarning, stacklevel=3)
    elif spec.privacy.dp_delta > 1 / over.n_records:
        warnings.warn(
            f"delta = {spec.privacy.dp_delta:g} is above 1/I = {1 / over.n_records:.3g}: it allows a mechanism that "
            f"publishes each of the I = {over.n_records} training records whole with probability delta. Use --dp-delta "
            f"{0.1 / over.n_records:.1g} or less.",
            LargeDeltaWarning,
            stacklevel=3,
        )
