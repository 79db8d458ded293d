"""`tacit federate init`: a folder for the coordinator and one for each site, ready to be sent and started.

    coordinator/   federation.toml, run.toml, flower.toml, app/ (what is shipped to nodes), nodes/ (their public keys),
                   ca.pem, ca.key, server.pem, server.key, units, compose file, README.md
    SITE/agent/    site.toml, and the place of records and ledgers: for the account that may read records
    SITE/node/     node.toml, node.key, ca.pem: for the account that runs Flower
    SITE/socket/   where the two meet
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any, TypeAlias

from tacit import toml
from tacit._version import __version__
from tacit.data.sources import NAMED
from tacit.errors import InputError, RunDirectoryError, SpecError
from tacit.federation import certificates, commands, site_keys, sum_files
from tacit.federation.asked import OF_TEST, TRANSFORMS, check_name
from tacit.federation.plan import FEDERATION, PLAIN, RUN
from tacit.federation.site_policy import NOT_ASKED, askable
from tacit.jsontext import Values
from tacit.run.presets import preset
from tacit.run.rules import USUAL_ROUNDS
from tacit.run.spec import Spec

COORDINATOR = "coordinator"
MODULE = "tacit_courier"
SHIPPED = ("courier.py", "wire.py")
PORT, CONTROL, RUNTIME = 9092, 8000, 9094
DEFAULTS: Values = {"run.preset": "sound", "algorithm.name": "objt", "privacy.epsilon": 1.0}
_FILE = re.compile(r"[^A-Za-z0-9._-]")
_Sites: TypeAlias = Mapping[str, tuple[str, ...]]  # agents by site


@dataclass(frozen=True)
class FolderLayout:
    """What `init` is asked for."""

    name: str
    sites: _Sites
    address: str = "localhost"
    port: int = PORT
    control: int = CONTROL
    values: Mapping[str, Any] = ()  # type: ignore[assignment]  # keys of run.toml
    base: Path = Path()  # where relative paths of run.toml start
    one_account: bool = False  # all parties on one machine, under one account: for a trial


def parsed_sites(sites: str, agents: str | None) -> dict[str, tuple[str, ...]]:
    """The agents of each site from `--sites a,b` and `--agents "a=x,y;b=z"`; a site without has one of its own name."""
    names = [one.strip() for one in sites.split(",")]
    found: dict[str, tuple[str, ...]] = {}
    for part in (agents or "").split(";"):
        if not part.strip():
            continue
        site, equals, listed = part.partition("=")
        members = tuple(one.strip() for one in listed.split(","))
        if not equals or not all(members):
            raise SpecError(f'--agents takes SITE=AGENT,AGENT;SITE=..., got {part.strip()!r}.')
        if site.strip() not in names or site.strip() in found:
            raise SpecError(f"--agents names {site.strip()!r}, which is no site of --sites, or is there twice.")
        found[site.strip()] = members
    for name in names:
        if not PLAIN.fullmatch(name) or name == COORDINATOR or names.count(name) > 1:
            raise SpecError(
                f"{name!r} is no name for a site: letters, digits, '.', '-' and '_', each once, and not {COORDINATOR}."
            )
    everybody = [agent for name in names for agent in found.get(name, (name,))]
    if len(set(everybody)) != len(everybody):
        raise SpecError("an agent belongs to two sites: give each agent its own name.")
    return {name: found.get(name, (name,)) for name in names}


def make(folder: Path, layout: FolderLayout) -> None:
    """Write all folders; `folder` must be new or empty. Nothing is left where something is wrong."""
    values = sum_files.completed(DEFAULTS | dict(layout.values), layout.sites)
    sum_files.check(_check(values), layout.sites)
    certificates.check_host(layout.address)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise RunDirectoryError(f"{folder} is not empty: name a new folder.")
    made = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _coordinator(folder / COORDINATOR, layout, values)
        for site, agents in layout.sites.items():
            _site(folder / site, site, agents, layout, values)
            shutil.copy(folder / site / "node" / "node.pub", folder / COORDINATOR / "nodes" / f"{site}.pub")
            shutil.copy(folder / COORDINATOR / "ca.pem", folder / site / "node" / "ca.pem")
    except BaseException:
        for child in folder.iterdir() if folder.exists() else ():
            shutil.rmtree(child, ignore_errors=True)
        if made:
            folder.rmdir()
        raise


def records_name(agent: str) -> str:
    """The file, without its ending, that site.toml expects the records of an agent in."""
    return _FILE.sub("_", agent)


def ship(folder: Path) -> None:
    """Write the app that is shipped: the courier as it is here, and a ServerApp that needs tacit on this machine."""
    module = folder / MODULE
    module.mkdir(parents=True, exist_ok=True)
    here = resources.files("tacit.federation")
    for name in SHIPPED:
        (module / name).write_bytes(here.joinpath(name).read_bytes())
    (module / "__init__.py").write_text('"""What tacit ships to nodes: a courier, which has access to nothing."""\n')
    (module / "server_app.py").write_text(
        '"""The coordinator\'s half: it is imported on the coordinator\'s machine alone."""\n\n'
        "from tacit.federation.flower import app\n\n__all__ = [\"app\"]\n"
    )
    (folder / "pyproject.toml").write_text(_text("app.toml", module=MODULE))


def plan_text(name: str, sites: _Sites, nodes: Mapping[str, int], rest: str = "", sums: bool = False) -> str:
    """federation.toml: sites with their agents, and node ids where they are known; `rest` is kept before the sites."""
    faults = _text("faults-sum.toml" if sums else "faults.toml").rstrip()
    most = "# most_records = 10000  # of any agent that a run may begin with; { agent = number, ... } limits some"
    lines = [rest.rstrip() or f"[federation]\nname = {_quoted(name)}\n{most}\n\n{faults}"]
    for site, agents in sites.items():
        lines += ["", "[[site]]", f"name = {_quoted(site)}", f"agents = {_list(agents)}"]
        lines += [f'node = "{nodes[site]}"  # of Flower'] if site in nodes else []
    return "\n".join(lines) + "\n"


def _coordinator(folder: Path, layout: FolderLayout, values: Values) -> None:
    (folder / "nodes").mkdir(parents=True)
    folder.chmod(0o700)
    told = {key: value for key, value in values.items() if key.partition(".")[0] != "data" or key in _OF_RUN}
    told |= _copied(folder, layout, values, "data.schema") | _copied(folder, layout, values, "data.test")
    (folder / RUN).write_text(toml.text(_by_section(told)))
    plan = plan_text(layout.name, layout.sites, {}, sums=values.get("privacy.trust") == "sum")
    (folder / FEDERATION).write_text(plan)
    ports = {"flower.address": layout.address, "flower.port": layout.port, "flower.control": layout.control}
    (folder / commands.FLOWER).write_text(toml.text(ports))
    ship(folder / "app")
    certificates.authority(folder, layout.name)
    certificates.server(folder, [layout.address])
    words = {"name": layout.name, "address": layout.address, "port": layout.port, "control": layout.control}
    _fill(folder, {"README.md": "coordinator.md", "superlink.service": "superlink.service",
                   "door.service": "door.service", "compose.yaml": "coordinator.yaml"}, **words)  # fmt: skip


def _site(folder: Path, site: str, agents: tuple[str, ...], layout: FolderLayout, values: Values) -> None:
    for name in ("agent/records", "agent/ledger", "node", "socket"):
        (folder / name).mkdir(parents=True)
    for name in ("agent", "node"):  # the two accounts of a site see nothing of each other but the socket
        (folder / name).chmod(0o700)
    own = values | _copied(folder / "agent", layout, values, "data.schema")
    others = [agent for name, theirs in layout.sites.items() if name != site for agent in theirs]
    (folder / "agent" / "site.toml").write_text(site_text(site, agents, own, others, layout.one_account))
    link = f"{layout.address}:{layout.port}" if ":" not in layout.address else f"[{layout.address}]:{layout.port}"
    place = list(layout.sites).index(site) if layout.one_account else 0  # machines of their own share no ports
    node = {"node.superlink": link, "node.socket": "../socket/agent.sock", "node.port": RUNTIME + place}
    (folder / "node" / commands.NODE).write_text(toml.text(node))
    certificates.node(folder / "node" / "node.key")
    (folder / "node" / "node.key.pub").rename(folder / "node" / "node.pub")
    words = {"site": site, "name": layout.name, "address": layout.address, "port": layout.port, "link": link,
             "agents": ", ".join(agents)}  # fmt: skip
    words["sum"] = _text("sum.md") if values.get("privacy.trust") == "sum" else ""
    _fill(folder, {"README.md": "site.md", "agent.service": "agent.service", "node.service": "node.service",
                   "compose.yaml": "site.yaml"}, **words)  # fmt: skip


def site_text(
    site: str, agents: Iterable[str], values: Values, others: Collection[str] = (), one_account: bool = False
) -> str:
    """site.toml: what the site holds, its limit, and agreement to the run that `values` are of; `others` are agents."""
    spec, ending = Spec().with_values(values), "csv"
    budget = {"epsilon": spec.privacy.epsilon, "dp_delta": spec.privacy.dp_delta}
    own: Values = {"name": site, "socket": "../socket/agent.sock", "ledger": "ledger"}
    own |= {} if one_account else {"callers": ["tacit-node"], "group": "tacit-socket"}
    known = {key.removeprefix("data."): value for key, value in values.items() if key.startswith("data.")}
    lines = [_text("site.toml"), "[site]", *site_keys.lines("site", own)]
    lines += ["", "[limit]", *site_keys.lines("limit", budget), "", "[data]", *site_keys.lines("data", known)]
    for agent in agents:
        held = {"name": agent, "data": f"records/{records_name(agent)}.{ending}", "data_id": agent}
        lines += ["", "[[agent]]", *site_keys.lines("agent", held)]
    agreed = {key: value for key, value in values.items() if key not in NOT_ASKED}
    agreed |= {f"privacy.{key}": value for key, value in budget.items()}
    agreed |= {} if "run.rounds" in values else {"run.rounds": USUAL_ROUNDS}  # public numbers choose no more
    asked = {key.name: key for key in askable(spec.run.preset, spec.algorithm.name)}
    lines += ["", "[agree]  # a run may ask for this, with these numbers at most; everything else is the preset's"]
    lines += site_keys.lines("agree", {"runs": [values["run.name"]]} if "run.name" in values else {})
    lines += [key.line(agreed[name]) for name, key in asked.items() if name in agreed]
    lines += [_REST, *(key.line() for name, key in asked.items() if name not in agreed)]
    lines += sum_files.section(spec, others)
    return "\n".join(lines) + "\n"


_REST = """\
# Every other key of a run must have the value of its preset, which stands here. To allow others, list them: a value, or
# several in [ ]."""
_OF_RUN = {*TRANSFORMS, *(f"data.{name}" for name in OF_TEST)}


def _check(values: Values) -> Spec:
    """Return the spec of these values; refuse those that no run of a federation could have."""
    for key, kind in (("run.preset", str), ("algorithm.name", str)):
        if type(values[key]) is not kind:
            raise SpecError(f"{key} takes a name, got {values[key]!r}.")
    spec = preset(values["run.preset"], values["algorithm.name"]).with_values(dict(values)).checked()
    for key in ("privacy.ledger", "privacy.limit", "privacy.data_id"):
        if key in values:
            raise SpecError(f"{key} is for each site to say, in its site.toml: drop it from the run.")
    check_name(values, "the run")
    if "run.seed" in values:
        raise SpecError("agents in a federation draw exact noise, which follows no seed: drop run.seed from the run.")
    return spec


def _copied(folder: Path, layout: FolderLayout, values: Values, key: str) -> Values:
    """Copy the file that a key names into a folder, and return the key with its new value; {} where it names none."""
    if key not in values or values[key] in NAMED:
        return {}
    source = layout.base / str(values[key])
    if not source.is_file():
        raise SpecError(f"{key} is not at {source}: check the path.")
    name = f"{key.partition('.')[2]}{source.suffix}"
    shutil.copy(source, folder / name)
    return {key: name}


def _by_section(values: Values) -> Values:
    return {key: values[key] for key in sorted(values, key=lambda key: key.partition(".")[0])}


def _quoted(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)  # TOML knows no halves of a surrogate pair


def _list(names: Iterable[str]) -> str:
    return f"[{', '.join(map(_quoted, names))}]"


def _fill(folder: Path, files: Mapping[str, str], **words: Any) -> None:
    words |= {"install": _text("install.md", version=__version__), "hardening": _text("hardening.conf").rstrip()}
    for name, template in files.items():
        (folder / name).write_text(_text(template, **words))


def _text(template: str, **words: Any) -> str:
    found = resources.files("tacit.federation").joinpath("templates").joinpath(template).read_text()
    try:
        return Template(found).substitute({key: str(value) for key, value in words.items()})
    except (KeyError, ValueError) as error:
        raise InputError(f"the template {template} of tacit is damaged ({error}): reinstall tacit.") from None
