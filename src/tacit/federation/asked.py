"""What run.toml asks for: the spec that travels to the sites, and the test records that the coordinator holds."""

from __future__ import annotations

import dataclasses
import secrets
from contextlib import suppress
from pathlib import Path

from tacit import toml
from tacit.data import sources
from tacit.data.spec import GIVEN, DataSpec
from tacit.errors import DataError, IncompatibleError, SpecError
from tacit.federation import facts
from tacit.federation.differences import in_words
from tacit.federation.messages import LONGEST_NAME, is_name
from tacit.federation.plan import RUN, Faults
from tacit.federation.site_policy import usual_repetitions
from tacit.jsontext import Values, canonical
from tacit.methods.registry import METHODS
from tacit.run.compose import federated_rounds
from tacit.run.deployment import Deployment
from tacit.run.presets import fitted_to, preset
from tacit.run.spec import Spec
from tacit.types import Federation, Shard

TRANSFORMS = ("data.intercept", "data.row_norm", "data.row_bound", "data.row_mode")  # of [data], what is done at sites
OF_TEST = (
    "test", "schema", "class_names", "label_column", "target_low", "target_high", "low", "high",
)  # fmt: skip  of [data], what says how the coordinator reads its test records
AT_SITES = ("privacy.ledger", "privacy.limit", "privacy.data_id")


def read_run(folder: Path) -> Values:
    """Read run.toml; refuse keys that belong to the sites."""
    values = toml.read(folder / RUN)
    for key in values:
        if key in AT_SITES:
            raise SpecError(f"{RUN}: {key} is for each site to say, in its site.toml: drop it.")
        name = key.removeprefix("data.")
        if name != key and key not in TRANSFORMS and name not in OF_TEST:
            raise SpecError(f"{RUN}: {key} is for the sites, which hold the records: drop it.")
    check_name(values, RUN)
    if values.get("privacy.noise", "exact") != "exact":
        raise SpecError(f"{RUN}: agents in a federation draw exact noise: drop privacy.noise.")
    if "run.seed" in values:
        raise SpecError(f"{RUN}: agents in a federation draw exact noise, which follows no seed: drop run.seed.")
    for key in ("run.preset", "algorithm.name"):
        if type(values.get(key, "")) is not str:
            raise SpecError(f"{RUN}: {key} takes a name, got {values[key]!r}.")
    return values


def check_name(values: Values, source: str) -> None:
    """Refuse a run.name that no site would read: messages, ledgers and logs repeat it."""
    if "run.name" in values and not is_name(values["run.name"]):
        raise SpecError(
            f"{source}: run.name is a text of 1 to {LONGEST_NAME} characters that can be printed: give one, or drop it."
        )


def spec_of(values: Values, name: str, federation: Federation, run: str | None = None) -> Spec:
    """Return the spec of a run, without paths; `federation` has the public facts, `run` the name if it has one."""
    source = GIVEN + name
    chosen = {key: value for key, value in values.items() if not key.startswith("data.") or key in TRANSFORMS}
    known = preset(chosen.get("run.preset", "sound"), chosen.get("algorithm.name", "objt"), source)
    always = {"data.source": source, "privacy.noise": "exact"}
    spec = fitted_to(federation, known.with_values(chosen | always).checked())
    rounds = spec.run.rounds
    if "run.rounds" not in chosen and "rounds" in METHODS[spec.algorithm.name].grid[0]:
        rounds = federated_rounds(spec, federation)  # rounds take seconds here
    given = run or spec.run.name or secrets.token_hex(8)
    known_later = {"run.name": given, "run.rounds": rounds}
    if spec.privacy.trust == "sum" and spec.privacy.repetitions is None:
        known_later["privacy.repetitions"] = usual_repetitions(rounds)
    return spec.with_values(known_later)


def test_records(folder: Path, values: Values) -> Federation | None:
    """Load the test records that run.toml names, which lie at the coordinator; None where it names none."""
    own = {name: values[f"data.{name}"] for name in OF_TEST if f"data.{name}" in values}
    test = own.pop("test", None)
    if test is None:
        return None
    own |= {"schema": str(folder / own["schema"])} if "schema" in own else {}
    typed = Spec().with_values({f"data.{name}": value for name, value in own.items()} | {"data.test": test}).data
    bundled = test in sources.NAMED
    source = test if bundled else str(folder / test)
    if bundled:
        return sources.load(DataSpec(source=source))
    return sources.load(dataclasses.replace(typed, source=source, test=None, agents=1, test_fraction=0.0).checked())


def declared(folder: Path, values: Values) -> str | None:
    """Return public facts with the schema alone that the coordinator has; None if it has none that can be read."""
    if "data.schema" not in values:
        return None
    with suppress(SpecError):  # without test records, it only serves to name who differs
        path = folder / str(values["data.schema"])
        return canonical({"schema": toml.plain(toml.text_of(path), str(path))})
    return None


def shard_of(test: Federation | None, public: str) -> Shard | None:
    """Return the test records as one shard; refuse records of another form than those of the sites."""
    if test is None:
        return None
    if (own := facts.public(test)) != public:
        raise DataError(
            f"the test records are not declared as those of the sites: "
            f"{in_words(own, public, 'the coordinator', 'the sites')}. Give the coordinator the schema of the sites "
            "(data.schema)."
        )
    return test.test if len(test.test) else test.shards[0]


def resolved(faults: Faults, deployment: Deployment) -> Faults:
    """Return the faults of a run; refuse to reuse last answers that cannot stand for new ones."""
    reusable = deployment.fades or deployment.in_sum is not None  # a sum reuses nothing of agents that are missing
    if faults.missing == "reuse" and not reusable:
        raise IncompatibleError(
            'faults.missing = "reuse" needs a method that asks for gradients at w, as the sound preset has it: use '
            'another preset or method, or set faults.missing = "stop".'
        )
    return dataclasses.replace(faults, missing=faults.missing or ("reuse" if reusable else "stop"))
