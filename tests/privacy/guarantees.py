"""Guarantees made by hand, and the results that state them."""

from __future__ import annotations

from typing import Any

from tacit.privacy.exclusions import ALWAYS, OF_A_RECORD, Exclusion
from tacit.privacy.guarantee import FIELDS, Answers, Guarantee, Ledgers, NoiseSource, Trusted, Unit, described
from tacit.privacy.release import GaussianRelease
from tacit.privacy.release import described as described_releases

RELEASES = ((GaussianRelease(15.0), 1),)


def guarantee(**changes: Any) -> Guarantee:
    """A total of (1, 1e-6) over ten rounds, exact noise and ledgers of all runs, unless `changes` say otherwise."""
    seeded = changes.get("noise") is NoiseSource.SIMULATED
    usual: dict[str, Any] = {
        "epsilon": 1.0, "dp_delta": 1e-6, "allowed_delta": 1e-6, "accountant": "gdp", "unit": Unit.RECORD, "rounds": 10,
        "each_round": RELEASES, "once": (), "trusted": Trusted.NOBODY, "coalition": None, "answers": Answers.STEPS,
        "noise": NoiseSource.EXACT, "ledgers": Ledgers.OF_ALL_RUNS, "own_map": None,
        "not_covered": (*((Exclusion.SEED,) if seeded else ()), Exclusion.TEST_RESULTS, *ALWAYS, *OF_A_RECORD),
        "reasons": (), "claim": None,
    }  # fmt: skip
    if changes.get("reasons"):
        usual |= dict.fromkeys(("epsilon", "dp_delta", "allowed_delta", "accountant"))
        usual |= {"each_round": (), "once": (), "not_covered": ()}
    return Guarantee(**usual | changes)


def result(found: Guarantee) -> dict[str, Any]:
    """What a result says about privacy that states this guarantee."""
    private = found.private
    return {
        "guarantee": found.sentence, "epsilon": found.epsilon, "dp_delta": found.dp_delta,
        "accountant": found.accountant, "adjacency": found.unit.adjacency, "simulated_noise": found.simulated,
        "releases": described_releases(found.each_round, found.once) if private else None,
        "trust": found.trust if private else None, "covers": found.covers if private else None,
        "not_covered": found.exclusions if private else None, "noise": found.noise.value, FIELDS: described(found),
    }  # fmt: skip
