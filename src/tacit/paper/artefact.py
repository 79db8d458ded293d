"""The paper's tables and figures as data: one TOML each, beside this module in paper/.

    title, about, columns, notes   what the report says of it
    [[grid]]                       its runs: sections and keys of a spec, any value may be a list
    [quick], [grid.quick]          what the quick scale changes, in all grids and in one
    [[panels]]                     its charts; a list in `where` stands for a panel each, named by {} in the title
    [[printed]]                    numbers of the paper, with a tolerance where one is claimed
    [[compare]]                    rows of a table, each with what is set side by side
    runner, compute                who runs the grid, and what is computed from its records, by name
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tacit import record, toml
from tacit.errors import RecordError, SpecError, unknown
from tacit.run import sweep
from tacit.run.spec import Spec
from tacit.run.sweep import Member

FOLDER = Path(__file__).parent / "artefacts"
ORDER = (
    "table1", "fig1", "fig2", "fig3", "fig4", "fig5", "fig6", "long", "convergence", "privacy", "discrepancies",
    "writers",
)  # fmt: skip

Values = dict[str, Any]


class Scale(enum.Enum):
    """quick: the shapes, in minutes; full: the paper's lengths and seeds."""

    QUICK = "quick"
    FULL = "full"


@dataclass(frozen=True)
class Artefact:
    """One table or figure."""

    name: str
    title: str
    about: str
    columns: int = 3
    notes: tuple[str, ...] = ()
    grid: tuple[Values, ...] = ()
    quick: Values = field(default_factory=dict)
    panels: tuple[Values, ...] = ()
    printed: tuple[Values, ...] = ()
    compare: tuple[Values, ...] = ()
    runner: str = "sweep"
    compute: str | None = None

    def members(self, scale: Scale) -> list[Member]:
        """Its runs, each once."""
        found = {}
        for grid in self.grid:
            source = f"{self.name}.toml"
            values = toml.flat({key: content for key, content in grid.items() if key != "quick"}, source)
            if scale is Scale.QUICK:
                values |= toml.flat(self.quick, source) | toml.flat(grid.get("quick", {}), source)
            for member in sweep.expand(values, source):
                found[key_of(member.spec)] = named(member.spec)
        return list(found.values())

    def all_panels(self) -> list[Values]:
        """The panels with every list in a `where` written out."""
        return [one for panel in self.panels for one in _written_out(panel)]


def read(path: Path) -> Artefact:
    """The artefact of a TOML file."""
    found = toml.loads(toml.text_of(path), str(path))
    known = set(Artefact.__dataclass_fields__) - {"name"}
    for key in found:
        if key not in known:
            raise SpecError(f"{path}: {unknown('key', key, known)}")
    missing = sorted({"title", "about"} - set(found))
    if missing:
        raise SpecError(f"{path} has no {missing[0]}: every artefact says what it is.")
    lists: Values = {key: tuple(value) if isinstance(value, list) else value for key, value in found.items()}
    return Artefact(path.stem, **lists)


def read_all(folder: Path = FOLDER) -> dict[str, Artefact]:
    """Every artefact of a folder by name, in the order of the paper."""
    found = {path.stem: read(path) for path in sorted(folder.glob("*.toml"))}
    rank = {name: n for n, name in enumerate(ORDER)}
    return dict(sorted(found.items(), key=lambda item: rank.get(item[0], len(rank))))


def choose(names: Iterable[str], known: dict[str, Artefact]) -> list[Artefact]:
    """The artefacts of these names, each once; `all` is every one."""
    wanted = list(names)
    for name in wanted:
        if name != "all" and name not in known:
            raise unknown("artefact", name, ["all", *known])
    return [one for name, one in known.items() if "all" in wanted or name in wanted]


def key_of(spec: Spec) -> str:
    """What names a run: its spec, but for how often it is measured, which changes nothing of it."""
    return record.spec_hash(spec.with_values({"run.record_every": None}).toml())


def named(spec: Spec) -> Member:
    """The run of a spec under a name that follows from the spec alone, whichever artefact asks for it."""
    varied = {key: spec.values()[key] for key in ("data.source", "algorithm.name", "privacy.epsilon", "run.seed")}
    words = f"{spec.data.source}-{spec.algorithm.name}-epsilon{spec.privacy.epsilon:g}-seed{spec.run.seed}"
    return Member(f"{words}-{key_of(spec)[:8]}", varied, spec)


def spec_of(one: Values) -> Values:
    """The dotted keys of a record's spec."""
    return toml.parsed(one["spec"], f"the spec of {one['name']}")


def select(records: Iterable[Values], where: Values) -> list[Values]:
    """The records whose specs have these values, without those that diverged."""
    whole = [(one, spec_of(one)) for one in records if "diverged" not in one]
    return [one for one, spec in whole if all(spec.get(key) == value for key, value in where.items())]


def last(one: Values, quantity: str) -> float | None:
    """A quantity of a record: of its summary, or the last point of its curve."""
    if quantity in one:
        value: float | None = one[quantity]
        return value
    if quantity not in one["curve"]:
        raise RecordError(f"{one['name']} holds no {quantity}: run it again with this version of tacit.")
    return None if not one["curve"][quantity] else one["curve"][quantity][-1]


def mean(records: Iterable[Values], quantity: str) -> float | None:
    """The mean of a quantity over records that have it; None without any."""
    found = [value for one in records if (value := last(one, quantity)) is not None]
    return sum(found) / len(found) if found else None


def unclaimed(artefact: Artefact, note: str) -> Artefact:
    """The artefact with its printed numbers shown beside ours, but those of a length, and no tolerance claimed."""
    shown = (one for one in artefact.printed if "run.rounds" not in one.get("where", {}))
    printed = ({key: value for key, value in one.items() if key != "tolerance"} for one in shown)
    noted = (one | {"note": f"{one['note']}; {note}" if "note" in one else note} for one in printed)
    return replace(artefact, printed=tuple(noted))


def _written_out(panel: Values) -> list[Values]:
    where = panel.get("where", {})
    lists = {key: value if isinstance(value, list) else [value] for key, value in where.items()}
    varied = [key for key, value in where.items() if isinstance(value, list)]
    panels = []
    for combination in itertools.product(*lists.values()):
        chosen = dict(zip(lists, combination, strict=True))
        title = panel["title"].format(*(chosen[key] for key in varied))
        panels.append(panel | {"title": title, "where": chosen})
    return panels
