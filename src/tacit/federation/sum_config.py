"""The section [sum] of a site file: whom a site adds up with in secure sums, and its own signing keys.

    keys         folder of AGENT.key, the signing keys of the site's agents, mode 0600: `tacit agent key` draws them
    threshold    the fewest agents in any sum; at least colluding + 2
    colluding    the fewest agents that a run must expect to collude; a run may expect more
    [sum.peers]  signing keys of the agents of other sites, 64 hexadecimal digits each, learned from their owners

Keys of a coordinator's choice would be no protection against that coordinator: nothing here comes from one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.errors import DataError, SpecError
from tacit.federation.messages import is_name
from tacit.federation.site_keys import default, names
from tacit.jsontext import Values
from tacit.run.deployment import ledger_file_name

if TYPE_CHECKING:
    from tacit.agent.masks.keys import SigningKey

KEYS = (*names("sum"), "peers")
_KEY = re.compile("[0-9a-fA-F]{64}")


@dataclass(frozen=True)
class SumConfig:
    """The section [sum], checked. `peers` are public signing keys by name."""

    keys: Path
    threshold: int
    colluding: int
    peers: Mapping[str, bytes]
    source: str  # the site file

    def key_file(self, agent: str) -> Path:
        """The file of an agent's signing key, named as its ledger is."""
        return self.keys / f"{ledger_file_name(agent).removesuffix('.ledger')}.key"

    def signing_keys(self, agents: Iterable[str]) -> dict[str, SigningKey]:
        """The signing keys of the site's own agents, all of which must be there, and nobody else's to read."""
        from tacit.agent.masks import files  # needs the extra `secure`

        found = {}
        for agent in agents:
            path = self.key_file(agent)
            if not path.exists():
                raise DataError(f"agent {agent} has no signing key at {path}: draw it with tacit agent key.")
            found[agent] = files.signing_key(path)
        return found

    def pinned(self, own: Mapping[str, bytes]) -> dict[str, bytes]:
        """The public signing keys of everybody, the site's own agents among them; two names never have one key."""
        for agent, key in own.items():
            if self.peers.get(agent, key) != key:
                raise SpecError(
                    f"{self.source}: sum.peers pins agent {agent}, which is one of this site, to another key than that "
                    f"of {self.key_file(agent)}: drop the line, or restore the file."
                )
        everybody = {**self.peers, **own}
        _check_distinct(everybody, f"{self.source}: sum.peers")
        return everybody


def sum_config(section: Values, source: str, folder: Path) -> SumConfig:
    """The section [sum], whose keys are known names; paths are taken from `folder`."""
    keys = section.get("keys", default("sum", "keys"))
    if not is_name(keys):
        raise SpecError(f"{source}: sum.keys is the folder of the signing keys: give its path.")
    colluding = _whole(source, "colluding", section.get("colluding", default("sum", "colluding")), 1)
    threshold = _whole(source, "threshold", section.get("threshold"), 1)
    if threshold < colluding + 2:
        raise SpecError(
            f"{source}: sum.threshold = {threshold} would show an honest agent whole, where {colluding} of the others "
            f"may collude: set it to {colluding + 2} or more."
        )
    return SumConfig(folder / keys, threshold, colluding, _peers(source, section.get("peers", {})), source)


def _peers(source: str, listed: Any) -> dict[str, bytes]:
    if not isinstance(listed, dict):
        raise SpecError(f"{source}: sum.peers is a section: write [sum.peers], and a line for each agent below.")
    found = {}
    for name, key in listed.items():
        if not is_name(name):
            raise SpecError(f"{source}: sum.peers names an agent by a text that can be printed, got {name!r}.")
        if type(key) is not str or not _KEY.fullmatch(key):
            raise SpecError(
                f"{source}: sum.peers gives the key of agent {name} in 64 hexadecimal digits in quotes: copy the line "
                "that its owner shows (a name with a dot stands in quotes too)."
            )
        found[name] = bytes.fromhex(key)
    _check_distinct(found, f"{source}: sum.peers")
    return found


def _check_distinct(pinned: Mapping[str, bytes], where: str) -> None:
    names: dict[bytes, str] = {}
    for name, key in pinned.items():
        if key in names:
            raise SpecError(
                f"{where}: {names[key]} and {name} are pinned to one key, so that one agent would count for two: ask "
                "their owners for a key of each."
            )
        names[key] = name


def _whole(source: str, key: str, value: Any, least: int) -> int:
    if type(value) is not int or value < least:
        raise SpecError(f"{source}: sum.{key} is a whole number of at least {least}: give one.")
    return value
