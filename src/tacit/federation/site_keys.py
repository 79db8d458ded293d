"""Keys of a site file, each defined once: the parser knows these names, and `tacit federate init` writes all of them.

docs/site-file.md shows the same tables (tests/federation/test_site_keys.py). The keys of a run that [agree] may list
are those of a spec: tacit.federation.site_policy.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tacit import toml
from tacit.run.spec import keys

_PLAIN = re.compile(r"[A-Za-z0-9_-]+")
_FEW = 6  # choices that a line lists


@dataclass(frozen=True)
class SiteKey:
    """A key of a site file: its name, its meaning, and the value of a file that leaves it out.

    `without` says in words what holds if the key is left out and has no default. `beside` are keys without which this
    one is refused.
    """

    name: str
    meaning: str
    default: Any = None
    without: str = ""
    example: Any = None
    beside: tuple[str, ...] = ()

    @property
    def shown(self) -> Any:
        """The value of a commented line: the default, or else an example."""
        return self.example if self.default is None else self.default

    def line(self, value: Any = None) -> str:
        """Return the line of a site file: with a value, or as a comment without one."""
        name = self.name if _PLAIN.fullmatch(self.name) else toml.literal(self.name)
        without = f" (default: {self.without})" if self.without and value is None else ""
        mark, given = ("# ", self.shown) if value is None else ("", value)
        return f"{mark}{name} = {toml.literal(given)}  # {self.meaning}{without}"


def of_spec(key: str, default: Any, without: str, example: Any, meaning: str = "") -> SiteKey:
    """Return a key of a run's spec, described as there unless a `meaning` is given."""
    told = keys()[key].metadata
    names = list(told["choices"])
    listed = f" ({', '.join(names)})" if 0 < len(names) <= _FEW else ""
    return SiteKey(key, (meaning or told["about"]) + listed, default, without, example)


def _of_data(name: str, example: Any = None, **more: Any) -> SiteKey:
    found = keys()[f"data.{name}"]
    without = "" if found.default is not None else "unset"
    return SiteKey(name, found.metadata["about"], found.default, without, example, **more)


TABLES: Mapping[str, tuple[SiteKey, ...]] = {
    "site": (
        SiteKey("name", "of this site, as in the coordinator's federation.toml", example="ohio"),
        SiteKey(
            "socket", "path of the Unix socket that the node connects to, 100 bytes at most",
            example="../socket/agent.sock",
        ),
        SiteKey("ledger", "directory of the ledgers, which tacit agent init makes", example="ledger"),
        SiteKey("witness", "directory of their witnesses, outside of ledger, on another disk if possible", "witness",
                example="/other/disk/witness"),
        SiteKey(
            "callers", "accounts that may connect, by name or number: that of flower-supernode",
            without="the account of the service", example=["tacit-node"],
        ),
        SiteKey(
            "group", "group of the socket, which both accounts have to be in", without="that of the service",
            example="tacit-socket",
        ),
        SiteKey("pace", "seconds, 60 at most: replies leave at whole multiples of it", 0.25, example=1.0),
    ),
    "limit": (
        SiteKey("epsilon", "what each ledger allows over all runs on the same data", example=1.0),
        SiteKey("dp_delta", "the delta of that epsilon", example=1e-6),
    ),
    "data": (
        _of_data("schema", "schema.toml"),
        _of_data("class_names", "no,yes"),
        _of_data("class_count", 10),
        _of_data("label_column"),
        _of_data("agent_column"),
        _of_data("target_low", 0.0, beside=("target_high",)),
        _of_data("target_high", 100.0, beside=("target_low",)),
        _of_data("low", 0.0, beside=("high",)),
        _of_data("high", 1.0, beside=("low",)),
        _of_data("invert"),
        _of_data("dedup"),
    ),
    "agent": (
        SiteKey("name", "of the agent, as in the coordinator's federation.toml", example="cleveland"),
        SiteKey("data", "its records: a file, or a folder", example="records/cleveland.csv"),
        SiteKey("data_id", "name of the data in the ledger, for good: another name has a budget of its own",
                example="cleveland"),
        SiteKey(
            "shares_no_record_with", "earlier data_ids of this ledger whose records are all different from these",
            without="none", example=["cleveland 2023"],
        ),
    ),
    "agree": (
        SiteKey("runs", 'names of the runs that may be joined (run.name); "*" is any', "*", example=["hearts-2026"]),
        SiteKey("agents", 'agents of other sites that may take part; "*" is any', "*", example=["hungarian", "va"]),
        SiteKey("fewest_agents", "a run with fewer agents is refused", 1, example=3),
        SiteKey("most_agents", "a run with more agents is refused", 1000, example=5),
        SiteKey("fewest_records", "a run with fewer records, of all agents together, is refused", 1, example=500),
        SiteKey("queries", 'queries that a run may ask, each with the most questions; "*" is what the keys below allow',
                "*", example={"gradient": 50}),
    ),
    "sum": (
        SiteKey("keys", "directory of the signing keys of the agents here, which tacit agent key draws", "keys",
                example="/other/disk/keys"),
        SiteKey("threshold", "fewest agents in any sum, at least colluding + 2", example=3),
        SiteKey("colluding", "a run must assume that at least this many agents collude with the coordinator", 1,
                example=2),
    ),
    "sum.peers": (
        SiteKey("AGENT", "public signing key of an agent of another site: 64 hexadecimal digits, from its owner",
                example=""),
    ),
}  # fmt: skip


def names(table: str) -> tuple[str, ...]:
    """Return the names of the keys of a table."""
    return tuple(key.name for key in TABLES[table])


def default(table: str, name: str) -> Any:
    """Return the value of a file that leaves out a key."""
    return next(key.default for key in TABLES[table] if key.name == name)


def lines(table: str, values: Mapping[str, Any]) -> list[str]:
    """Return the lines of a table below its header: keys with a value as given, all others as comments."""
    return [key.line(values.get(key.name)) for key in TABLES[table]]
