"""`tacit.train`: a run by keyword arguments, which an editor completes, beside a spec and its dotted keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from tacit.arguments import path_text, two_numbers
from tacit.data.classes import check_class_names
from tacit.errors import SpecError
from tacit.run import train as trainer
from tacit.run.presets import fitted, preset
from tacit.run.result import Result
from tacit.run.spec import MOVED, Spec
from tacit.run.train import Listener, nobody
from tacit.types import Federation

# argument of `train` -> the key of the spec that it sets; `data`, `classes` and `target` are seen to by hand
KEYS = {
    "agents": "data.agents", "schema": "data.schema", "label_column": "data.label_column",
    "agent_column": "data.agent_column", "features": "features.map", "epsilon": "privacy.epsilon",
    "dp_delta": "privacy.dp_delta", "adjacency": "privacy.adjacency", "trust": "privacy.trust",
    "colluding": "privacy.colluding", "noise": "privacy.noise", "ledger": "privacy.ledger", "limit": "privacy.limit",
    "rounds": "run.rounds", "seed": "run.seed", "engine": "run.engine", "measure_training": "run.measure_training",
}  # fmt: skip


DATA = "a name, a path or a Federation (frames and arrays: tacit.PrivateFederatedClassifier(...).fit(X, y))"


def train(
    spec: Spec | None = None, federation: Federation | None = None, out: Path | str | None = None,
    listener: Listener = nobody, *, data: str | Path | Federation | None = None,
    preset: Literal["sound", "paper", "released"] | None = None, algorithm: str | None = None,
    epsilon: float | None = None, dp_delta: float | None = None, rounds: int | None = None,
    adjacency: Literal["zero_out", "replace_one"] | None = None, trust: Literal["nobody", "sum"] | None = None,
    colluding: int | None = None, features: str | None = None, seed: int | None = None,
    noise: Literal["exact", "simulated"] | None = None, ledger: Path | str | None = None, limit: float | None = None,
    agents: int | None = None, schema: Path | str | None = None, classes: Sequence[str] | int | None = None,
    target: tuple[float, float] | None = None, label_column: str | None = None, agent_column: str | None = None,
    engine: str | None = None, measure_training: bool | None = None, values: Mapping[str, Any] | None = None,
) -> Result:  # fmt: skip
    """Train from the start; if `out` is given, write every record into that directory as the run goes on.

        tacit.train(data="mnist", agents=10, epsilon=1.0, rounds=100)
        tacit.train(data="patients.csv", schema="schema.toml", epsilon=1.0, trust="sum", out="runs/patients")
        tacit.train(tacit.preset("released", "objt"), tacit.load("mnist"), rounds=50)

    spec, federation    a whole spec, and records that are at hand; what else is given changes that spec
    data                a name or a path as `tacit.load` takes it, or a federation
    preset, algorithm   where all other values come from: "sound" and "objt" unless said otherwise
    epsilon, dp_delta   the budget: of the whole run under "sound", where epsilon is 1 and dp_delta 1e-6
    adjacency           what two neighbours differ by: a record is absent ("zero_out") or another ("replace_one")
    rounds, engine      how many rounds, and who computes them
    trust, colluding    "sum" lets agents share the noise behind a secure sum (docs/secure-sum.md)
    features            the public map of each record: "auto", "none", a name, or "module:function"
    seed, noise         a seed simulates the noise: repeatable, not for release. Without one it is exact under "sound"
    ledger, limit       keep what each agent spends over all runs in this directory, and allow no more than `limit`
    classes, target     tables: the public classes (names, or how many), or the public range of a number to predict
    schema              tables: what is public of each column; label_column and agent_column name two without one
    agents              into how many agents to cut records that name none
    measure_training    with exact noise, record the training objective too. It is exact: with the model, it tells
                        whether a given record was used. A simulation always records it
    values              any other key by its dotted name: {"schedule.step": 2.0} (tacit train --keys), no key twice
    listener            a function that is called after every round, with its number and its row if one was recorded
    """
    asked = locals()
    given = {key: asked[name] for name, key in KEYS.items() if asked[name] is not None}
    if schema is not None:
        given["data.schema"] = path_text("schema", schema, "the path of a schema.toml (a dictionary: the estimators)")
    if ledger is not None:
        given["privacy.ledger"] = path_text("ledger", ledger, "a directory")
    if out is not None:
        out = path_text("out", out, "a directory")
    given |= _outcome(classes, target)
    if isinstance(data, Federation):
        if federation is not None:
            raise SpecError("the records are given twice, as data and as federation: drop one.")
        federation = data
    elif data is not None:
        given["data.source"] = path_text("data", data, DATA)
    refuse_twice(given if algorithm is None else given | {"algorithm.name": algorithm}, values or {})
    given |= values or {}
    if federation is not None:
        refuse_unread(given, federation.name)
    return trainer.train(_spec(spec, preset, algorithm, given), federation, out, listener)


def _spec(spec: Spec | None, name: str | None, algorithm: str | None, given: dict[str, Any]) -> Spec:
    """Return the spec of the preset and the method, or the spec that was given, with the values that were given."""
    if spec is not None and (name is not None or algorithm is not None):
        raise SpecError("a spec has its preset and its algorithm: drop these two, or drop the spec.")
    if spec is None:
        spec = preset(name or "sound", algorithm or "objt", str(given.get("data.source", "mnist")))
    return fitted(spec.with_values(given).checked(), chosen=given)


def _outcome(classes: Sequence[str] | int | None, target: tuple[float, float] | None) -> dict[str, Any]:
    """Return what is declared of the label."""
    found: dict[str, Any] = {}
    if classes is not None:
        names = (str(classes),) if isinstance(classes, int | str) else check_class_names(classes)
        if len(names) > 1 and any("," in name for name in names):
            raise SpecError("the name of a class holds a comma, which parts names in a spec.toml: declare a schema.")
        found["data.class_names"] = ",".join(names)
    if target is not None:
        found |= dict(zip(("data.target_low", "data.target_high"), two_numbers("target", target), strict=True))
    return found


def refuse_twice(given: Mapping[str, Any], values: Mapping[str, Any]) -> None:
    """Refuse a key that an argument sets and `values` too: which of the two counts, nobody could see."""
    twice = sorted(key for key in values if MOVED.get(key, key) in given)
    if twice:
        raise SpecError(f"values and an argument of train both set {', '.join(twice)}: give it once.")


def refuse_unread(given: Mapping[str, Any], name: str) -> None:
    """Refuse what says how to load records where the records are at hand: it would change nothing."""
    loading = sorted(key for key in given if key.startswith("data.") and key.partition(".")[2] not in _AFTER)
    if loading:
        raise SpecError(
            f"the records of {name} are loaded already, and {', '.join(loading)} would change nothing: drop "
            "what says how to load, or name the data in place of a federation."
        )


_AFTER = ("intercept", "row_norm", "row_bound", "row_mode")  # keys of [data] that act on records at hand
