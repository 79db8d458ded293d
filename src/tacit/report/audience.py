"""Audiences of a page, and the allow-list of a page that may be shared.

A page for the owners of the data shows all that a run recorded. A page that may be shared is built from an allow-list:
the guarantee, public names and counts, settings without paths, the model, ledgers, and hashes of the model and the
spec. Each of these is public or a function of releases; the fields of a guarantee follow from the spec and from public
facts. Any other key of a result, now or in a later version, is left out. Placeholders stand for names of directories
and files, which are those of the owner's machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path, PureWindowsPath
from typing import Any

from tacit import measures, toml
from tacit.data.sources import NAMED
from tacit.errors import IncompatibleError
from tacit.privacy.guarantee import FIELDS
from tacit.report.runs import Recorded


class Audience(Enum):
    """The readers of a page; the value is the line at its top, for a page and the command that writes it."""

    OWNERS = (
        "For the owners of the data: this {page} shows exact measurements on private records. Release the model, not "
        "this {page}. To share a {page}, write one with {command} --share."
    )
    PUBLIC = (
        "This {page} may be shared. It holds the guarantee, the released model, and names and numbers of records, "
        "which are taken to be public. No other number was computed from records."
    )
    PUBLIC_WITH_TESTS = (
        "This {page} may be shared. It holds the guarantee, the released model, and names and numbers of records, "
        "which are taken to be public. The owners of the data have declared the test records public, and the test "
        "results are exact."
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

    def notice(self, page: str = "page", command: str = "tacit report") -> str:
        """Return the line at the top of a page, or of a card."""
        return str(self.value).format(page=page, command=command)


GUARANTEE = (
    "guarantee", "epsilon", "best_guess", "epsilon_per_round", "dp_delta", "accountant", "releases", "accounted_delta",
    "adjacency", "trust", "covers", "not_covered", "noise", "simulated_noise", FIELDS,
)  # fmt: skip
PUBLIC_FACTS = ("algorithm", "preset", "dataset", "features", "agents", "records", "rounds", "agent_records", "version")
LEDGERS = ("ledger_totals", "ledger_heads", "took_part")
HASHES = ("model_hash", "spec_hash")
SHARED = (*PUBLIC_FACTS, *GUARANTEE, *LEDGERS, *HASHES)
TEST_RESULTS = (*measures.KEYS, "test")
OF_AN_AGENT = {  # of the tables with an entry for each agent
    "took_part": ("site", "released", "epsilon", "epsilon_at_most"), "ledger_totals": ("epsilon", "dp_delta", "limit"),
}  # fmt: skip


@dataclass
class Placeholders:
    """Names that stand for paths on one page: the same path has the same name, and other paths have other names."""

    known: dict[tuple[str, str], str] = field(default_factory=dict)

    def of(self, key: str, path: str) -> str:
        """Return the placeholder of a path, which keeps the ending of a table: data.source is source-1.csv."""
        from tacit.data.formats import FORMATS, suffix_of  # only pages that are shared need these

        number = 1 + sum(name == key for name, _ in self.known)
        ending = suffix_of(Path(path))
        named = f"{key.rpartition('.')[2]}-{number}{ending if ending in FORMATS else ''}"
        return self.known.setdefault((key, path), named)


def shared(run: Recorded, audience: Audience, name: str, paths: Placeholders) -> Recorded:
    """Return the run under another name, with what everybody may see; refuse a run that must not be released."""
    _check_released(run)
    tests = TEST_RESULTS if audience is Audience.PUBLIC_WITH_TESTS else ()
    summary = {key: run.summary[key] for key in (*SHARED, *tests) if key in run.summary}
    for table, parts in OF_AN_AGENT.items():
        if isinstance(told := summary.get(table), Mapping):
            summary[table] = {agent: _parts(one, parts) for agent, one in told.items()}
    if "dataset" in summary:
        summary["dataset"] = PureWindowsPath(str(summary["dataset"])).name  # which knows both kinds of slashes
    curve = {key: run.curve[key] for key in ("t", *tests) if key in run.curve}
    return Recorded(name, toml.text(settings(run.values, paths)), summary, curve)


def settings(values: Mapping[str, Any], paths: Placeholders) -> dict[str, Any]:
    """Return the values of a spec with placeholders for paths; unknown keys, which may hold one, are left out."""
    from tacit.data.spec import GIVEN  # as above
    from tacit.run.spec import keys

    known, kept = keys(), {}
    for key, value in values.items():
        if key not in known and not key.startswith("method."):
            continue
        if isinstance(value, str) and value.startswith(GIVEN):
            kept[key] = GIVEN + PureWindowsPath(value.removeprefix(GIVEN)).name
        elif isinstance(value, str) and value not in NAMED and (
            (key in known and known[key].metadata["path"]) or "/" in value or "\\" in value
        ):
            kept[key] = paths.of(key, value)
        else:
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


def _parts(one: Any, parts: tuple[str, ...]) -> dict[str, Any]:
    return {key: one[key] for key in parts if key in one} if isinstance(one, Mapping) else {}
