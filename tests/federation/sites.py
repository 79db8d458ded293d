"""Small sites, and an honest coordinator of theirs."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np

from tacit.agent.agreement import Agreement
from tacit.data.spec import GIVEN
from tacit.federation import facts, ledger_files
from tacit.federation.messages import REPLIES, Ask, Hello, Join, read, written
from tacit.federation.service import Service
from tacit.federation.site import read as read_site
from tacit.privacy.ledger import Ledger
from tacit.privacy.terms import Key
from tacit.run import build
from tacit.run.presets import preset
from tacit.types import Array

ROUNDS = 4
SIZES = {"north": 24, "south": 17, "east": 30}
MORE = {"west": 20}  # who takes part where a test says so


def records(who: str):
    """Three columns in [0, 1] and a label of two classes, for an agent."""
    rng = np.random.default_rng(sum(who.encode()))
    x = rng.random(((SIZES | MORE)[who], 3)).round(6)
    return x, (x @ [1.0, -1.0, 0.5] > 0.2).astype(int)


def write_table(path: Path, x, y) -> None:
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["a", "b", "c", "label"])
        rows.writerows([*map(repr, map(float, row)), "yes" if label else "no"] for row, label in zip(x, y, strict=True))


def site_text(name: str, agents, agree: str = "", limit: float = 3.0, extra: str = "") -> str:
    lines = [f'[site]\nname = "{name}"\nsocket = "agent.sock"\nledger = "ledgers"\npace = 0.01\n{extra}']
    lines.append(f"[limit]\nepsilon = {limit}\ndp_delta = 1e-6")
    lines.append('[data]\nclass_names = "no,yes"\nlow = 0.0\nhigh = 1.0')
    lines += [f'[[agent]]\nname = "{who}"\ndata = "{who}.csv"\ndata_id = "{who} 2024"' for who in agents]
    return "\n".join([*lines, f"[agree]\n{agree}\n"])


def make(folder: Path, agents=("north",), change=None, name=None, ledgers=True, **options) -> Path:
    """A folder with a site file, and ledgers unless a test is about their absence.

    `change` edits the records (x, y) of each agent before they are written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for who in agents:
        x, y = records(who)
        write_table(folder / f"{who}.csv", *((x, y) if change is None else change(x, y)))
    path = folder / "site.toml"
    path.write_text(site_text(name or "-".join(agents), agents, **options))
    if ledgers:
        ledger_files.init(read_site(path, with_data=False))
    return path


def service(folder: Path, agents=("north",), **options) -> Service:
    log = options.pop("log", None)
    site = read_site(make(folder, agents, **options))
    return Service(site, log) if log else Service(site)


def spec(run: str = "r1", algorithm: str = "objt", **values):
    chosen = {"privacy.noise": "exact", "run.name": run, "run.rounds": ROUNDS, "data.source": GIVEN + "trial"}
    return preset("sound", algorithm, GIVEN).with_values(chosen | values)


def join(one: Service, run: str = "r1", chosen=None, agents=None, **values) -> Join:
    """The Join of an honest coordinator who knows public facts alone."""
    chosen = chosen or spec(run, **values)
    counts = agents or tuple((who, SIZES[who]) for who in SIZES)
    hollow = build.transformed(chosen, facts.hollow("trial", one.public, counts))
    deployment = build.setup(chosen, hollow).deployment
    return Join(run, chosen.toml(), facts.agreed(chosen, one.public, counts, hollow, deployment), counts)


def agreement_of(one: Service, run: str = "r1") -> Agreement:
    """The agreement of the first agent of a site in a run."""
    return next(iter(one._runs[run].joining.values())).agreement


def shape_of(one: Service, run: str = "r1") -> tuple[int, int]:
    """The shape of the model of a run that asks for gradients."""
    return agreement_of(one, run).queries[0].query.shape


def at(point) -> dict[str, Array]:
    """The parameters of a gradient query that every agent is asked alike."""
    return {"point": np.asarray(point)[None]}


def ask(one: Service, joined: Join, t: int = 1, w=None, **changed) -> Ask:
    """The question of an honest coordinator to all agents of a site, but for what is changed."""
    w = np.full(shape_of(one, joined.run), 0.01 * t) if w is None else w
    asked = one._runs[joined.run].names
    return replace(Ask(joined.run, joined.agreed, t, 0, asked, (), at(w)), **changed)


def told(one: Service, message):
    """The reply to a message, through bytes both ways."""
    return read(*one.answer(*written(message)), REPLIES)


def stored(ledger: Ledger, key: Key) -> bytes | None:
    """The answer that a ledger still stores, packed; None if it has dropped it."""
    with ledger._chain.transaction():
        return ledger._stored(ledger._current().answers[key])


def begun(folder: Path, agents=("north",), **options):
    """A service that has joined a run, and the Join."""
    one = service(folder, agents, **options)
    first = join(one)
    assert told(one, first).kind == "joined"
    return one, first


HELLO = Hello()
