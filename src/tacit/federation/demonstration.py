"""The federation that `tacit federate try` shows where it is given none: the hospitals of heart, at three sites.

Behind a secure sum they are at four: two agents of one site would be two that may collude, and a sum that counts on
two needs all four hospitals in every round.
"""

from __future__ import annotations

import csv
import re
import tempfile
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

from tacit.federation import asked, folders, sum_files
from tacit.federation.folders import COORDINATOR, FolderLayout, records_name
from tacit.jsontext import Values
from tacit.methods.registry import METHODS

SITES = {"ohio": ("cleveland",), "hungary": ("hungarian",), "abroad": ("switzerland", "va")}
SUM_SITES = {"ohio": ("cleveland",), "hungary": ("hungarian",), "zurich": ("switzerland",), "pacific": ("va",)}
ROUNDS = 10  # of some seven seconds each
HELD_OUT = 5  # every so many-th patient of a hospital is a test record of the coordinator's, and no site's
_AGENT = re.compile(r"(?:^#.*\n)*^\[columns\.hospital\]\n(?:.+\n)*", re.MULTILINE)


def sites_of(trust: str | None) -> Mapping[str, tuple[str, ...]]:
    """The sites of a demonstration, with their agents."""
    return SUM_SITES if trust == "sum" else SITES


def make(folder: Path, rounds: int | None = None, trust: str | None = None, algorithm: str = "objt") -> None:
    """Write the folders, the records of each hospital at its site, and test records at the coordinator.

    Without `rounds`, a method of one round runs one, and every other ROUNDS.
    If the run trusts a secure sum, the signing keys of all agents are drawn here: one machine plays all parties.
    """
    sites = sites_of(trust)
    heart = resources.files("tacit.data").joinpath("_heart")
    header, *rows = csv.reader(heart.joinpath("heart.csv").read_text().splitlines())
    at = header.index("hospital")
    without = [name for name in header if name != "hospital"]
    tables: dict[str, list[list[str]]] = {agent: [] for agents in sites.values() for agent in agents}
    for row in rows:
        tables[row[at]].append(row[:at] + row[at + 1 :])
    with tempfile.TemporaryDirectory() as draft:
        schema = Path(draft) / "schema.toml"  # who holds a patient is no column here: each hospital has its own file
        schema.write_text(_AGENT.sub("", heart.joinpath("schema.toml").read_text()))
        test = [row for table in tables.values() for row in table[HELD_OUT - 1 :: HELD_OUT]]
        _write(Path(draft) / "test.csv", without, test)
        usual = ROUNDS if "rounds" in METHODS[algorithm].grid[0] else 1
        values: Values = {"data.schema": "schema.toml", "data.test": "test.csv", "run.rounds": rounds or usual}
        values |= {"algorithm.name": algorithm} | ({"privacy.trust": trust} if trust else {})
        folders.make(folder, FolderLayout("hearts", sites, values=values, base=Path(draft), one_account=True))
    for site, agents in sites.items():
        for agent in agents:
            kept = [row for n, row in enumerate(tables[agent], start=1) if n % HELD_OUT]
            _write(folder / site / "agent" / "records" / f"{records_name(agent)}.csv", without, kept)
    if trust == "sum":
        sum_files.draw(folder, sites)


def is_one(folder: Path) -> bool:
    """Whether a folder holds a federation."""
    return (folder / COORDINATOR).is_dir()


def trust_of(folder: Path) -> str:
    """Whom the run of a federation trusts."""
    return str(asked.read_run(folder / COORDINATOR).get("privacy.trust", "nobody"))


def algorithm_of(folder: Path) -> str:
    """Return the method of the run in a folder."""
    return str(asked.read_run(folder / COORDINATOR).get("algorithm.name", "objt"))


def _write(path: Path, header: list[str], rows: list[list[str]]) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])
