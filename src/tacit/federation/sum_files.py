"""What `tacit federate init` and `try` write of secure sums: [sum] of a site file, and keys where one machine is all.

A signing key is drawn at the site of its agent, and its public half is learned from its owner. Whoever draws the keys
of all agents can play all of them: `draw` is for a demonstration, where one person owns everything anyway.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from tacit import toml
from tacit.errors import IncompatibleError
from tacit.federation import site_keys
from tacit.federation.site import read
from tacit.jsontext import Values
from tacit.run import in_sum
from tacit.run.spec import Spec

_TOLD = """\
# Secure sums: what this site adds is hidden among what the others add. Signing keys are drawn here, by
# `tacit agent key site.toml`, and never leave; it prints the public halves. Show them to the other institutions by a
# way that you both trust, and write theirs below. Take no key from the coordinator: it could play all but your agents.
# A sum is over `threshold` agents or more. With no more agents than that, one that is missing stops the run.
"""
_NO_SUM = "# Secure sums: without the section [sum], this site takes part in none.\n"


def completed(values: Values, sites: Mapping[str, Collection[str]]) -> Values:
    """The keys of a run; where nobody says how many agents of a sum may collude, as many as one site has."""
    asked = values.get("privacy.trust") == "sum" and "privacy.colluding" not in values
    return values | ({"privacy.colluding": max(map(len, sites.values()))} if asked else {})


def check(spec: Spec, sites: Mapping[str, Collection[str]]) -> None:
    """Refuse a federation whose agents are too few for a sum, or in which one site has more of them than may collude.

    Agents of one institution know what all of them know: whoever counts on fewer colluding agents than a site has
    promises the others too much.
    """
    if spec.in_sum is None:
        return
    if told := counts_on_fewer(spec, {name: len(agents) for name, agents in sites.items()}):
        raise IncompatibleError(told)
    in_sum.check_agents(spec.in_sum, sum(map(len, sites.values())))


def counts_on_fewer(spec: Spec, sites: Mapping[str, int]) -> str | None:
    """What is wrong where one site has more agents than may collude; None where nothing is."""
    found = spec.in_sum
    site, most = max(sites.items(), key=lambda one: one[1])
    if found is None or found.colluding >= most:
        return None
    return (
        f"site {site} has {most} agents, which know all of each other, and privacy.colluding = {found.colluding} "
        f"counts on fewer: set it to {most} or more (--colluding {most}), or give each agent a site of its own."
    )


def may_be_missing(needed: int, n_agents: int) -> str:
    """Return how many of so many agents a secure sum can do without, if it needs `needed` of them."""
    if n_agents <= needed:
        return f"all {n_agents} agents have to answer every round, and the run stops while one is missing"
    return f"of {n_agents} agents, {n_agents - needed} may be missing in a round, and the run stops while more are"


def needs(values: Values, sites: Mapping[str, Collection[str]]) -> str:
    """Return how many agents the sums of a run need, and how many may be missing."""
    needed = completed(values, sites)["privacy.colluding"] + 2
    return f"A sum needs {needed} agents (colluding + 2): {may_be_missing(needed, sum(map(len, sites.values())))}."


def section(spec: Spec, others: Collection[str]) -> list[str]:
    """The lines of [sum] in a site file, for a run with this spec; comments if it trusts nobody."""
    found = spec.in_sum
    peers = [f'# {toml.literal(name)} = ""' for name in others]
    told = "[sum.peers]  # the public signing key of every agent elsewhere: 64 hexadecimal digits, from its owner"
    if found is None:
        return ["", _NO_SUM + "# [sum]", *site_keys.lines("sum", {}), f"# {told}", *peers]
    values = {
        "keys": site_keys.default("sum", "keys"), "threshold": found.colluding + 2, "colluding": found.colluding,
    }  # fmt: skip
    return ["", _TOLD + "[sum]", *site_keys.lines("sum", values), told, *peers]


def draw(folder: Path, sites: Mapping[str, Collection[str]]) -> None:
    """Draw the signing keys of all agents of a demonstration, and pin them at all sites."""
    from tacit.agent.masks import files  # needs the extra `secure`

    public: dict[str, str] = {}
    for site, agents in sites.items():
        config = read(_file(folder, site)).sum
        assert config is not None, "the site file was written for a secure sum"
        public |= {agent: files.new_signing_key(config.key_file(agent)).public.hex() for agent in agents}
    for site, agents in sites.items():
        path = _file(folder, site)
        text = path.read_text()
        for agent in set(public) - set(agents):
            text = text.replace(f'# {toml.literal(agent)} = ""', f'{toml.literal(agent)} = "{public[agent]}"')
        path.write_text(text)


def _file(folder: Path, site: str) -> Path:
    return folder / site / "agent" / "site.toml"
