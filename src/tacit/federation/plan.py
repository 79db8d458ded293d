"""What a coordinator's folder says: the sites of the federation, and what becomes of answers that are missing.

    federation.toml   [federation] name
                      [faults]     deadline, resend, missing, most_missed, start, start_deadline   (all optional)
                      [[site]]     name, agents = ["...", ...], and node, the id of its Flower node
    run.toml          keys of `tacit train`
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit import toml
from tacit.errors import SpecError, unknown
from tacit.federation.messages import LONGEST_NAME
from tacit.types import is_unicode

FEDERATION, RUN = "federation.toml", "run.toml"
PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")  # a name that is also the name of a folder
LARGEST_NODE = 2**64


@dataclass(frozen=True)
class Faults:
    """What the coordinator does about sites that are slow, silent or gone."""

    deadline: float = 120.0  # seconds of a round, after which it goes on without those that have not answered
    resend: float = 20.0  # seconds after which the same question is sent again
    missing: str = "reuse"  # or "stop": a missing agent is counted with its last release, or the run is suspended
    most_missed: int = 5  # rounds in a row that an agent may miss, before the run is suspended
    start: str = "all"  # or "present": a run begins when all sites are there, or with those that are
    start_deadline: float = 600.0  # seconds that the coordinator waits for sites before the first round

    def __post_init__(self) -> None:
        for name in ("deadline", "resend", "start_deadline"):
            if not 0 < getattr(self, name) < math.inf:
                raise SpecError(f"{FEDERATION}: faults.{name} is a positive number of seconds.")
        for name, allowed in (("missing", ("reuse", "stop")), ("start", ("all", "present"))):
            if getattr(self, name) not in allowed:
                raise SpecError(f'{FEDERATION}: faults.{name} is "{allowed[0]}" or "{allowed[1]}".')
        if self.most_missed < 0:
            raise SpecError(f"{FEDERATION}: faults.most_missed is a whole number of at least 0.")


@dataclass(frozen=True)
class Site:
    """An institution: its name, its agents, and the id of its Flower node, None where another transport knows it."""

    name: str
    agents: tuple[str, ...]
    node: int | None = None


@dataclass(frozen=True)
class Plan:
    """What federation.toml says."""

    name: str
    sites: tuple[Site, ...]
    faults: Faults = Faults()

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


def read_plan(folder: Path) -> Plan:
    """Read federation.toml; refuse keys that it does not have."""
    path = folder / FEDERATION
    found = toml.loads(toml.text_of(path), str(path))
    for section in found:
        if section not in ("federation", "faults", "site"):
            raise unknown(f"section of {path}", section, ("federation", "faults", "site"))
    own = _section(found, "federation", ("name",))
    if type(own.get("name")) is not str:
        raise SpecError(f"{path} gives the federation no name: add [federation] with name.")
    sites = found.get("site", [])
    if type(sites) is not list:
        raise SpecError(f"{path}: write each site as [[site]], in two pairs of brackets.")
    return Plan(own["name"], tuple(map(_site, sites)), _faults(found))


def _section(found: Mapping[str, Any], name: str, keys: tuple[str, ...]) -> dict[str, Any]:
    section = found.get(name, {})
    if type(section) is not dict:
        raise SpecError(f"{FEDERATION}: write [{name}], and its keys below.")
    for key in section:
        if key not in keys:
            raise unknown(f"key of [{name}]", key, keys)
    return section


def _faults(found: Mapping[str, Any]) -> Faults:
    defaults = {each.name: each.default for each in dataclasses.fields(Faults)}
    values = _section(found, "faults", tuple(defaults))
    for name, value in values.items():
        kind = type(defaults[name])
        if type(value) is not kind and not (kind is float and type(value) is int):
            raise SpecError(f"{FEDERATION}: faults.{name} takes a value such as {defaults[name]!r}, got {value!r}.")
    return Faults(**values)


def _site(values: object) -> Site:
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
    return Site(str(name), tuple(agents), node)


def _is_name(value: object) -> bool:
    return type(value) is str and 0 < len(value) <= LONGEST_NAME and is_unicode(value) and value.isprintable()


def _distinct(kind: str, names: list[str]) -> None:
    twice = [name for n, name in enumerate(names) if name in names[:n]]
    if twice:
        raise SpecError(f"{FEDERATION} has the {kind} {twice[0]} twice: give each its own.")
