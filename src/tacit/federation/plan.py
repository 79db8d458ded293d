"""What a coordinator's folder says: the sites of the federation, and what becomes of answers that are missing.

    federation.toml   [federation] name; most_records, for all agents or as { agent = number } (optional)
                      [faults]     deadline, resend, missing, most_missed, start, start_deadline   (all optional)
                      [[site]]     name, agents = ["...", ...], and node, the id of its Flower node
    run.toml          keys of `tacit train`
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tacit import toml
from tacit.errors import DataError, SpecError, unknown
from tacit.federation.messages import LONGEST_NAME, RecordCounts
from tacit.types import is_unicode

FEDERATION, RUN = "federation.toml", "run.toml"
PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")  # a name that is also the name of a folder
LARGEST_NODE = 2**64


@dataclass(frozen=True)
class Faults:
    """What the coordinator does about sites that are slow, silent or gone."""

    deadline: float = 120.0  # seconds of a round, after which it goes on without those that have not answered
    resend: float = 20.0  # seconds after which the same question is sent again
    # "reuse": a missing agent is counted with its last release; "stop": the run is suspended; None: "reuse" if the
    # method's answers can stand for later ones, else "stop"
    missing: str | None = None
    most_missed: int = 5  # rounds in a row that an agent may miss, before the run is suspended
    start: str = "all"  # or "present": a run begins when all sites are there, or with those that are
    start_deadline: float = 600.0  # seconds that the coordinator waits for sites before the first round

    def __post_init__(self) -> None:
        for name in ("deadline", "resend", "start_deadline"):
            if not 0 < getattr(self, name) < math.inf:
                raise SpecError(f"{FEDERATION}: faults.{name} is a positive number of seconds.")
        for name, allowed in (("missing", ("reuse", "stop")), ("start", ("all", "present"))):
            if getattr(self, name) not in (*allowed, getattr(Faults, name)):  # the default of `missing` is None
                raise SpecError(f'{FEDERATION}: faults.{name} is "{allowed[0]}" or "{allowed[1]}".')
        if self.most_missed < 0:
            raise SpecError(f"{FEDERATION}: faults.most_missed is a whole number of at least 0.")


@dataclass(frozen=True)
class ListedSite:
    """An institution: its name, its agents, and the id of its Flower node, None where another transport knows it."""

    name: str
    agents: tuple[str, ...]
    node: int | None = None


@dataclass(frozen=True)
class FederationConfig:
    """The content of federation.toml.

    `most_records` is the largest number of records that an agent may declare, for agents that have such a limit. The
    weight of an agent grows with its number of records, and only its site can count them.
    """

    name: str
    sites: tuple[ListedSite, ...]
    faults: Faults = Faults()
    most_records: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not PLAIN.fullmatch(self.name):
            raise SpecError(f"{FEDERATION}: federation.name is at most 64 letters, digits, '.', '-' or '_'.")
        if not self.sites:
            raise SpecError(f"{FEDERATION} lists no site: add [[site]] with a name and its agents.")
        _distinct("site", [site.name for site in self.sites])
        _distinct("agent", [agent for site in self.sites for agent in site.agents])
        _distinct("node", [str(site.node) for site in self.sites if site.node is not None])
        for site in self.sites:
            if not site.agents:
                raise SpecError(f"{FEDERATION}: site {site.name} has no agents: list them, agents = [...].")
        listed = [agent for site in self.sites for agent in site.agents]
        for agent in self.most_records:
            if agent not in listed:
                raise unknown("agent of federation.most_records", agent, listed)

    def check_records(self, sites: Mapping[str, RecordCounts]) -> None:
        """Refuse an agent that declares more records than it may have."""
        for site, agents in sites.items():
            for who, count in agents:
                if (most := self.most_records.get(who)) is not None and count > most:
                    raise DataError(
                        f"agent {who} of site {site} declares {count} records, and federation.most_records allows "
                        f"{most}: ask the site why. Then correct its table, or {FEDERATION}."
                    )


def read_plan(folder: Path) -> FederationConfig:
    """Read federation.toml; refuse keys that it does not have."""
    path = folder / FEDERATION
    found = toml.loads(toml.text_of(path), str(path))
    for section in found:
        if section not in ("federation", "faults", "site"):
            raise unknown(f"section of {path}", section, ("federation", "faults", "site"))
    own = _section(found, "federation", ("name", "most_records"))
    if type(own.get("name")) is not str:
        raise SpecError(f"{path} gives the federation no name: add [federation] with name.")
    sites = found.get("site", [])
    if type(sites) is not list:
        raise SpecError(f"{path}: write each site as [[site]], in two pairs of brackets.")
    listed = tuple(map(_site, sites))
    return FederationConfig(own["name"], listed, _faults(found), _most_records(own.get("most_records", {}), listed))


def _section(found: Mapping[str, Any], name: str, keys: tuple[str, ...]) -> dict[str, Any]:
    section = found.get(name, {})
    if type(section) is not dict:
        raise SpecError(f"{FEDERATION}: write [{name}], and its keys below.")
    for key in section:
        if key not in keys:
            raise unknown(f"key of [{name}]", key, keys)
    return section


def _faults(found: Mapping[str, Any]) -> Faults:
    usual = {each.name: each.default for each in dataclasses.fields(Faults)} | {"missing": "reuse"}
    values = _section(found, "faults", tuple(usual))
    for name, value in values.items():
        kind = type(usual[name])
        if type(value) is not kind and not (kind is float and type(value) is int):
            raise SpecError(f"{FEDERATION}: faults.{name} takes a value such as {usual[name]!r}, got {value!r}.")
    return Faults(**values)


def _most_records(value: object, sites: tuple[ListedSite, ...]) -> dict[str, int]:
    """Return the limit of each agent that has one; a number is that of all."""
    each: dict[str, Any] = value if isinstance(value, dict) else {who: value for site in sites for who in site.agents}
    if not all(type(most) is int and most >= 1 for most in each.values()):
        raise SpecError(
            f"{FEDERATION}: federation.most_records is a whole number of at least 1 for all agents, or "
            "{ agent = number, ... } for some."
        )
    return each


def _site(values: object) -> ListedSite:
    if type(values) is not dict:
        raise SpecError(f"{FEDERATION}: write each site as [[site]], in two pairs of brackets.")
    for key in values:
        if key not in ("name", "agents", "node"):
            raise unknown("key of [[site]]", key, ("name", "agents", "node"))
    name, agents, node = values.get("name"), values.get("agents"), values.get("node")
    if type(agents) is not list or not all(map(_is_name, (name, *agents))):
        raise SpecError(f"{FEDERATION}: a site has a name and agents = [...], texts of 1 to {LONGEST_NAME} characters.")
    if type(node) is str and node.isdecimal():  # TOML has no whole numbers beyond 2^63, and node ids go up to 2^64
        node = int(node)
    if node is not None and not (type(node) is int and 0 <= node < LARGEST_NODE):
        raise SpecError(f"{FEDERATION}: node of site {name} is the id of a Flower node, a whole number.")
    return ListedSite(str(name), tuple(agents), node)


def _is_name(value: object) -> bool:
    return type(value) is str and 0 < len(value) <= LONGEST_NAME and is_unicode(value) and value.isprintable()


def _distinct(kind: str, names: list[str]) -> None:
    twice = [name for n, name in enumerate(names) if name in names[:n]]
    if twice:
        raise SpecError(f"{FEDERATION} has the {kind} {twice[0]} twice: give each its own.")
