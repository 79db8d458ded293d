"""The paper's tables and figures as data: one TOML file each, in artefacts/.

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

from tacit import toml
from tacit.errors import SpecError, unknown
from tacit.jsontext import Values
from tacit.paper.archive import key_of
from tacit.run import sweep
from tacit.run.spec import Spec
from tacit.run.sweep import Member

FOLDER = Path(__file__).parent / "artefacts"
ORDER = (
    "table1", "fig1", "fig2", "fig3", "fig4", "fig5", "fig6", "early", "long", "convergence", "trust", "privacy",
    "discrepancies", "writers", "gap",
)  # fmt: skip
UNCLAIMED = "quick scale: shorter runs, fewer seeds"  # the note beside a number that is shown and not claimed


class Scale(enum.Enum):
    """quick: the shapes, in minutes; full: the paper's lengths and seeds."""

    QUICK = "quick"
    FULL = "full"


@dataclass(frozen=True)
class Artefact:
    """One table or figure of the paper."""

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
        """The runs of the artefact, each once."""
        found, source = {}, f"{self.name}.toml"
        for grid in self.grid:
            values = toml.flat({key: content for key, content in grid.items() if key != "quick"}, source)
            if scale is Scale.QUICK:
                values |= toml.flat(self.quick, source) | toml.flat(grid.get("quick", {}), source)
            for member in sweep.expand(values, source):
                found[key_of(member.spec)] = named(member.spec)
        return list(found.values())

    def all_panels(self) -> list[Values]:
        """The panels, with one panel for each combination of the lists in a `where`."""
        panels = []
        for panel in self.panels:
            where = panel.get("where", {})
            varied = [key for key, value in where.items() if isinstance(value, list)]
            for combination in itertools.product(*(where[key] for key in varied)):
                chosen = where | dict(zip(varied, combination, strict=True))
                panels.append(panel | {"title": panel["title"].format(*combination), "where": chosen})
        return panels

    def asks_for(self, quantity: str) -> bool:
        """Whether a panel or a row of the table shows this quantity."""
        sides = (entry.get(side, {}) for entry in self.compare for side in ("one", "other"))
        return any(shown.get("y") == quantity for shown in (*self.panels, *sides))

    def claimed(self, scale: Scale) -> Artefact:
        """The artefact as it stands at a scale: short runs are no ground for a claim about long ones.

        At the quick scale a number of the paper is shown without its tolerance, and not at all if it is of one length.
        """
        if scale is Scale.FULL:
            return self
        shown = (one for one in self.printed if "run.rounds" not in one.get("where", {}))
        noted = (one | {"note": f"{one['note']}; {UNCLAIMED}" if "note" in one else UNCLAIMED} for one in shown)
        return replace(self, printed=tuple(one | {"tolerance": None} for one in noted))


def read(path: Path) -> Artefact:
    """The artefact that a TOML file describes."""
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
    """The artefacts of these names, each once; the name `all` stands for every artefact."""
    wanted = list(names)
    for name in wanted:
        if name != "all" and name not in known:
            raise unknown("artefact", name, ["all", *known])
    return [one for name, one in known.items() if "all" in wanted or name in wanted]


def named(spec: Spec) -> Member:
    """The run of a spec under a name that follows from the spec alone, whichever artefact asks for it."""
    varied = {key: spec.values()[key] for key in ("data.source", "algorithm.name", "privacy.epsilon", "run.seed")}
    words = f"{spec.data.source}-{spec.algorithm.name}-epsilon{spec.privacy.epsilon:g}-seed{spec.run.seed}"
    return Member(f"{words}-{key_of(spec)[:8]}", varied, spec)
