"""The site file: what an institution holds, what it gives away at most, and what it agrees to.

    [site]      the service: its socket, directories and callers
    [limit]     epsilon and dp_delta that the ledger of each agent allows over all runs
    [data]      keys of the section [data] of a spec that all agents of the site share: schema, class_names, ...
    [[agent]]   the agents: their records, and the names of these in the ledgers
    [agree]     what runs may ask (tacit.federation.site_policy)
    [sum]       whom the site adds up with in secure sums (tacit.federation.sum_config); else none

The keys are in tacit.federation.site_keys. Paths are taken from the folder of the file.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tacit import toml
from tacit.data import sources
from tacit.data.schema import read as read_schema
from tacit.data.spec import DataSpec
from tacit.errors import DataError, IncompatibleError, InputError, SpecError, unknown
from tacit.federation import facts
from tacit.federation.differences import in_words
from tacit.federation.messages import LONGEST_NAME
from tacit.federation.site_keys import default, names
from tacit.federation.site_policy import SitePolicy, site_policy
from tacit.federation.sum_config import KEYS, SumConfig, sum_config
from tacit.jsontext import Values
from tacit.privacy.history import Limit
from tacit.run.spec import Spec
from tacit.types import Federation, is_unicode

LONGEST_SOCKET = 100  # bytes of its path: the system takes 107, and fewer elsewhere
LONGEST_PACE = 60.0


@dataclass(frozen=True)
class SiteAgent:
    """One agent of a site: its name, where its records are, and their name in its ledger.

    `apart` are earlier names of data in this ledger that share no record with these.
    """

    name: str
    data: Path
    data_id: str
    apart: tuple[str, ...] = ()


@dataclass(frozen=True)
class Site:
    """A site file, checked."""

    name: str
    socket: Path
    ledger: Path
    witness: Path  # outside of `ledger`, and on another disk if the owner has one
    callers: tuple[str, ...]  # accounts that may connect; none named: that of the service
    group: str | None
    pace: float
    limit: Limit
    data: DataSpec
    agents: tuple[SiteAgent, ...]
    agree: SitePolicy
    sum: SumConfig | None = None  # of a site that takes part in secure sums


def read(path: str | Path, with_data: bool = True) -> Site:
    """Read a site file; one sentence says what is wrong with one that is. `with_data`: its records must be there."""
    source, folder = str(path), Path(path).absolute().parent
    document = toml.loads(toml.text_of(path), source)
    _known(source, "section", document, ("site", "limit", "data", "agent", "agree", "sum"))
    site = _section(source, document, "site", names("site"))
    limit = _section(source, document, "limit", names("limit"))
    socket = folder / _text(source, "site.socket", site.get("socket"))
    if len(str(socket).encode()) > LONGEST_SOCKET:
        raise SpecError(f"{source}: {socket} is longer than the {LONGEST_SOCKET} bytes of a socket: name a short path.")
    ledger = folder / _text(source, "site.ledger", site.get("ledger"))
    witness = folder / _text(source, "site.witness", site.get("witness", default("site", "witness")))
    if _within(witness, ledger) or _within(ledger, witness):
        raise SpecError(
            f"{source}: site.witness shows that site.ledger was put back, so that the two cannot be one directory, nor "
            "one inside the other: name a directory beside it, or on another disk."
        )
    agree = site_policy(_section(source, document, "agree"), source)
    config = sum_config(_section(source, document, "sum", KEYS), source, folder) if "sum" in document else None
    if config is None and "sum" in agree.values.get("privacy.trust", ()):
        raise SpecError(f"{source}: agree.privacy.trust allows secure sums, and nobody is pinned: add a section [sum].")
    return Site(
        name=_text(source, "site.name", site.get("name")),
        socket=socket,
        ledger=ledger,
        witness=witness,
        callers=_texts(source, "site.callers", site["callers"]) if "callers" in site else (),
        group=None if "group" not in site else _text(source, "site.group", site["group"]),
        pace=_number(source, "site.pace", site.get("pace", default("site", "pace")), LONGEST_PACE),
        limit=Limit(*(_number(source, f"limit.{key}", limit.get(key)) for key in names("limit"))),
        data=_data(source, folder, _section(source, document, "data", names("data")), with_data),
        agents=_agents(source, folder, document.get("agent"), with_data),
        agree=agree,
        sum=config,
    )  # fmt: skip


def load(site: Site) -> Federation:
    """Load the records of all agents of a site, none of them held out; what is public must be the same of all."""
    loaded = [_loaded(site, one) for one in site.agents]
    first, told = loaded[0], [facts.public(one) for one in loaded]
    for one, public in zip(site.agents, told, strict=True):
        if public != told[0]:
            raise DataError(
                f"two agents differ in columns, classes or bounds, and one model needs the same of all: "
                f"{in_words(public, told[0], f'agent {one.name}', f'agent {site.agents[0].name}')}."
            )
    shards = tuple(one.shards[0] for one in loaded)
    return replace(first, shards=shards, agents=tuple(one.name for one in site.agents), name=site.name)


def _loaded(site: Site, agent: SiteAgent) -> Federation:
    named = site.data.agent_column != DataSpec().agent_column
    if site.data.schema is not None:
        named = read_schema(site.data.schema).agent is not None
    asked = replace(site.data, source=str(agent.data), test_fraction=0.0)
    try:
        found = sources.load(asked if named else replace(asked, agents=1, partition="contiguous"))
    except InputError as error:
        raise type(error)(f"agent {agent.name}: {error}") from None
    if found.n_agents != 1:
        several = f"{agent.data} names {found.n_agents} agents"
        raise DataError(f"agent {agent.name}: {several}: give each agent a file of its own.")
    return found


def _within(inner: Path, outer: Path) -> bool:
    return inner.resolve().is_relative_to(outer.resolve())


def _data(source: str, folder: Path, section: Values, there: bool) -> DataSpec:
    try:
        found = Spec().with_values({f"data.{key}": value for key, value in section.items()}).checked().data.checked()
    except InputError as error:
        raise SpecError(f"{source}: [data]: {error}") from None
    if found.schema is None:
        return found
    schema = folder / found.schema
    if there and not schema.exists():
        raise SpecError(f"{source}: data.schema is not at {schema}: check the path.")
    return replace(found, schema=str(schema))


def _agents(source: str, folder: Path, listed: Any, there: bool) -> tuple[SiteAgent, ...]:
    if not isinstance(listed, list) or not listed or any(not isinstance(one, dict) for one in listed):
        raise SpecError(f"{source} needs one section [[agent]] for each agent of the site.")
    found = []
    for one in listed:
        _known(source, "key of [[agent]]", one, names("agent"))
        name, data, data_id = (_text(source, f"agent.{key}", one.get(key)) for key in ("name", "data", "data_id"))
        if there and not (folder / data).exists():
            raise SpecError(f"{source}: the data of agent {name} are not at {folder / data}: check the path.")
        key = "shares_no_record_with"
        apart = _texts(source, f"agent.{key}", one[key]) if key in one else ()
        if data_id in apart:
            raise SpecError(f"{source}: agent.{key} of agent {name} lists its own data_id: list earlier ones only.")
        found.append(SiteAgent(name, folder / data, data_id, apart))
    for key in ("name", "data", "data_id"):  # one data set with two ledgers would have two budgets
        values = [getattr(one, key).resolve() if key == "data" else getattr(one, key) for one in found]
        if len(set(values)) != len(values):
            raise IncompatibleError(f"{source}: two agents have the same {key}: each has its own, and one ledger.")
    return tuple(found)


def _section(source: str, document: Values, name: str, keys: Collection[str] | None = None) -> Values:
    section = document.get(name, {})
    if not isinstance(section, dict):
        raise SpecError(f"{source}: {name} is a section: write [{name}] and its keys below.")
    if keys is not None:
        _known(source, f"key of [{name}]", section, keys)
    return section


def _known(source: str, kind: str, given: Collection[str], known: Collection[str]) -> None:
    for name in given:
        if name not in known:
            raise SpecError(f"{source}: {unknown(kind, name, known)}")


def _text(source: str, key: str, value: Any) -> str:
    if type(value) is not str or not 0 < len(value) <= LONGEST_NAME or not is_unicode(value) or not value.isprintable():
        raise SpecError(f"{source}: {key} is a text of 1 to {LONGEST_NAME} characters: give one.")
    return value


def _texts(source: str, key: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        raise SpecError(f"{source}: {key} is a list of names: give at least one.")
    return tuple(_text(source, key, one) for one in value)


def _number(source: str, key: str, value: Any, most: float | None = None) -> float:
    if type(value) not in (int, float) or not value > 0 or (most is not None and value > most):
        raise SpecError(f"{source}: {key} is a positive number{f', at most {most:g}' if most else ''}: give one.")
    return float(value)
