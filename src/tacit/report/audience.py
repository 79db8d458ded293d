"""Who may read a page, and what a page for everybody may hold.

A page for the owners of the data shows all that a run recorded. A page that may be shared is built from an allow-list:
the guarantee, public names and counts, settings without paths, the model, ledgers, and hashes of the model and the
spec. Each of these is public or a function of releases. Whatever else a result holds, now or in a later version, stays
out.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from tacit import measures, toml
from tacit.data.sources import NAMED
from tacit.errors import IncompatibleError
from tacit.report.runs import Recorded


class Audience(Enum):
    """The readers of a page; the value is the line at its top."""

    OWNERS = (
        "For the owners of the data: this page shows exact measurements on private records. Release the model, not "
        "this page. To share a page, write one with --share."
    )
    PUBLIC = (
        "This page may be shared. It holds the guarantee, the released model, and names and numbers of records, which "
        "are taken to be public. No other number was computed from records."
    )
    PUBLIC_WITH_TESTS = (
        "This page may be shared. It holds the guarantee, the released model, and names and numbers of records, which "
        "are taken to be public. The owners of the data have declared the test records public, and the test results "
        "are exact."
    )

    @classmethod
    def of(cls, share: bool, test_is_public: bool) -> Audience:
        """Return the audience that two flags ask for."""
        if test_is_public and not share:
            raise IncompatibleError("--test-is-public is about a page that is shared: add --share, or drop it.")
        return cls.OWNERS if not share else cls.PUBLIC_WITH_TESTS if test_is_public else cls.PUBLIC

    @property
    def public(self) -> bool:
        """Whether everybody may read the page."""
        return self is not Audience.OWNERS


GUARANTEE = (
    "guarantee", "epsilon", "best_guess", "epsilon_per_round", "dp_delta", "accountant", "releases", "accounted_delta",
    "adjacency", "trust", "covers", "not_covered", "noise", "simulated_noise",
)  # fmt: skip
PUBLIC_FACTS = ("algorithm", "preset", "dataset", "features", "agents", "records", "rounds", "agent_records", "version")
LEDGERS = ("ledger_totals", "ledger_heads", "took_part")
HASHES = ("model_hash", "spec_hash")
SHARED = (*PUBLIC_FACTS, *GUARANTEE, *LEDGERS, *HASHES)
TEST_RESULTS = (*measures.KEYS, "test")
TOOK_PART = ("site", "released", "epsilon", "epsilon_at_most")  # of an agent in a federation


def shared(run: Recorded, audience: Audience) -> Recorded:
    """Return the run with what this audience may see; refuse to share a run that must not be released."""
    if not audience.public:
        return run
    _check_released(run)
    tests = TEST_RESULTS if audience is Audience.PUBLIC_WITH_TESTS else ()
    summary = {key: run.summary[key] for key in (*SHARED, *tests) if key in run.summary}
    if isinstance(told := summary.get("took_part"), Mapping):
        summary["took_part"] = {name: _counted(one) for name, one in told.items()}
    curve = {key: run.curve[key] for key in ("t", *tests) if key in run.curve}
    return Recorded(run.name, toml.text(settings(run.values)), summary, curve)


def settings(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a spec without paths: unknown keys, which may hold one, are left out too."""
    from tacit.run.sources import GIVEN  # only pages that are shared need the keys of a spec
    from tacit.run.spec import keys

    known = keys()
    kept = {}
    for key, value in values.items():
        named = key == "data.source" and (value in NAMED or str(value).startswith(GIVEN))  # bundled, or from Python
        if key.startswith("method.") or (key in known and (named or not known[key].metadata["path"])):
            kept[key] = value
    return kept


def _check_released(run: Recorded) -> None:
    """Refuse a run with simulated noise or no guarantee: its model must not be released, and neither may a page."""
    if run.private and run.summary.get("simulated_noise") is False:
        return
    why = "its noise is simulated" if run.private else "it has no guarantee"
    raise IncompatibleError(
        f"{run.name} cannot be shared, because {why}: its model tells about single records. Train it under the sound "
        "preset without a seed, or write the page for the owners, without --share."
    )


def _counted(one: Any) -> dict[str, Any]:
    return {key: one[key] for key in TOOK_PART if key in one} if isinstance(one, Mapping) else {}
