"""What an institution agrees to: a run that asks for anything else is not joined.

A spec has some seventy keys, and most of them could weaken what a site promises its patients, or cost it a day of
computing. So nothing is allowed by being left out: a key that the site names has one of the values that the site lists
(or, where less is safer, at most that value), and every other key has the value of its preset. Some keys are for the
site alone to decide and can neither be asked nor agreed: which files are read, what noise is, and who keeps account.

In a secure sum an agent adds a share of the noise alone. So a run trusts one only where [agree] lists privacy.trust =
sum and the site file has a section [sum], whose `colluding` the run must expect at least, because more is safer here.
Where [agree] does not say how often rounds may be repeated, it is one in ten of the run's rounds, rounded up.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from tacit import toml
from tacit.agent.agreement import Agreement
from tacit.data.spec import GIVEN, DataSpec
from tacit.errors import SpecError, Unfit, unknown
from tacit.federation.log import counted
from tacit.federation.messages import RecordCounts
from tacit.federation.site_keys import SiteKey, names, of_spec
from tacit.jsontext import Values
from tacit.query.registry import QUERIES
from tacit.run.presets import fitted_to, preset
from tacit.run.spec import MOVED, Spec, keys
from tacit.types import Federation

LONGEST_SPEC = 1 << 14  # characters; a complete spec has some 2,000
# of the TOML that tacit writes: a parser takes seconds for 16,000 characters of nested keys
_LINE = re.compile(r"(\[[a-z_]+\]|[a-z_][a-z0-9_]* = [^\[{].*)?")
AT_MOST = ("run.rounds", "privacy.epsilon", "privacy.dp_delta", "privacy.repetitions")
DEFAULTS: Mapping[str, tuple[Any, ...]] = {"run.preset": ("sound",), "algorithm.name": ("objt", "objp")}

# keys of [data] that change records after they are loaded; the others say how to load records, which a site does itself
_CHANGES = ("intercept", "row_norm", "row_bound", "row_mode")
_PATHS = ("source", "test", "schema")
UNREAD = {f"data.{each.name}" for each in fields(DataSpec) if each.name not in (*_CHANGES, *_PATHS)}
UNREAD |= {"run.seed"}  # of simulated noise
UNREAD |= {"run.record_every", "run.measure_training"}  # what the coordinator records
OF_SUMS = ("privacy.trust", "privacy.colluding", "privacy.repetitions")
USUAL_REPEATED = 10  # rounds of a run for each that may be asked again, where the site does not say
OURS = {"data.source", "run.name", "privacy.noise", "privacy.ledger", "privacy.limit", "privacy.data_id"}
OURS |= {"problem.domain_file"}  # a path, which a site does not follow: both sides would have to hold the same file
NOT_ASKED = OURS | UNREAD | {f"data.{name}" for name in _PATHS}
# in the site file and on its page: meanings where those of the spec do not say enough to a site, what holds of a key
# that neither [agree] nor the preset sets, and examples
_MEANINGS = {
    "run.preset": "what gives all other keys their values", "run.rounds": "rounds of the run, at most",
    "privacy.epsilon": "what the run costs, at most", "privacy.dp_delta": "the delta of that epsilon, at most",
    "privacy.trust": "sum: agents share the noise of one release, and need a section [sum]",
    "privacy.repetitions": "of a secure sum: how often rounds may be asked again, at most",
}  # fmt: skip
_UNSET = {"privacy.repetitions": "one for every ten rounds, rounded up"}
_EXAMPLES: Values = {
    "features.shape": "28x28", "features.size": 100, "problem.loss": ["softmax", "squared"], "algorithm.name": "objt",
    "privacy.epsilon": 0.5, "privacy.repetitions": 5, "privacy.trust": "sum", "run.rounds": 50,
}  # fmt: skip


@dataclass(frozen=True)
class SitePolicy:
    """What runs may ask of a site. `values` lists what the keys that the site names may be."""

    values: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    runs: tuple[str, ...] | None = None  # their names; None: any run
    agents: tuple[str, ...] | None = None  # who may take part beside the site's own; None: anybody
    fewest_agents: int = 1
    most_agents: int = 1000
    fewest_records: int = 1  # of all agents together
    queries: Mapping[str, int] | None = None  # the most questions of each kind; None: what the other keys allow

    @property
    def restrictions(self) -> dict[str, str]:
        """Return who may take part, in which runs, and what may be asked, as far as the site file restricts it."""
        found = {name: getattr(self, name) for name in names("agree")}
        usual = {name: getattr(SitePolicy(), name) for name in found}
        return {name: _in_words(value) for name, value in found.items() if value != usual[name]}

    def check_run(self, run: str, own: Iterable[str], agents: RecordCounts) -> None:
        """Refuse a run by its name, or by who takes part in it; `own` are the agents of the site."""
        if self.runs is not None and run not in self.runs:
            raise Unfit(f"a run of another name than those of agree.runs: {run!r}.")
        names, mine = [who for who, _ in agents], set(own)
        if not self.fewest_agents <= len(names) <= self.most_agents:
            there = counted(len(names), "agent")
            raise Unfit(f"the run has {there}: agree.fewest_agents and most_agents say how many may be.")
        if not mine & set(names):
            raise Unfit("none of the agents of this site takes part in the run.")
        for who in names:
            if self.agents is not None and who not in self.agents and who not in mine:
                raise Unfit(f"agent {who!r} takes part in the run, and agree.agents does not name it.")
        if sum(count for _, count in agents) < self.fewest_records:
            raise Unfit(f"the run has fewer records than agree.fewest_records = {self.fewest_records}.")

    def check_queries(self, agreed: Agreement) -> None:
        """Refuse a run whose list has a query that the site does not allow, or more questions than it allows."""
        for name, count in agreed.answers.items():
            most = count if self.queries is None else self.queries.get(name, 0)
            if count > most:
                told = f"{counted(count, 'question')} of the kind {name!r}"
                raise Unfit(f"the run has {told}, which is more than {most}: agree.queries would have to allow it.")

    def check_spec(self, spec: Spec, run: str, federation: Federation, colluding: int | None = None) -> None:
        """Refuse a spec with any key that is neither agreed nor that of its preset, for the label of these records.

        `colluding` is that of the section [sum]; None: the site file has none.
        """
        values = spec.values()
        self._check_trust(spec, colluding)
        for key, allowed in {**DEFAULTS, **self.values}.items():
            if key not in OF_SUMS:
                _check(key, values[key], allowed)
        if spec.run.name != run:
            raise Unfit(f"the spec of run {run!r} has another run.name.")
        if not spec.data.source.startswith(GIVEN) or spec.privacy.noise != "exact":
            raise Unfit(f"a federation has data.source = {GIVEN}NAME and privacy.noise = exact.")
        usual = fitted_to(federation, preset(spec.run.preset, spec.algorithm.name, GIVEN)).values()
        named = {*DEFAULTS, *self.values, *UNREAD, *OF_SUMS, "data.source", "run.name", "privacy.noise"}
        for key, value in values.items():
            if key not in named:
                _check(key, value, (usual.get(key),))

    def _check_trust(self, spec: Spec, colluding: int | None) -> None:
        """Refuse a secure sum that was not agreed, or that protects less than was agreed.

        The name of a method may stand for a sum, so that `in_sum` decides, as it does for the noise.
        """
        try:
            asked = spec.in_sum
        except SpecError as error:  # a number of a sum without a sum
            raise Unfit(f"{error} agree.privacy.trust would have to allow a sum.") from None
        _check("privacy.trust", "nobody" if asked is None else "sum", self.values.get("privacy.trust", ("nobody",)))
        if asked is None:
            return
        if colluding is None:
            raise Unfit("the run trusts a secure sum, and the site file pins nobody: it would need a section [sum].")
        if asked.colluding < colluding:
            raise Unfit(f"privacy.colluding = {asked.colluding} is less than sum.colluding = {colluding}.")
        usual = usual_repetitions(spec.run.rounds)
        _check("privacy.repetitions", asked.repetitions, self.values.get("privacy.repetitions", (usual,)))


def usual_repetitions(rounds: int) -> int:
    """The repetitions of a secure sum that a run pays for, and that a site agrees to, where nobody says how many."""
    return math.ceil(rounds / USUAL_REPEATED)


def _check(key: str, value: Any, allowed: tuple[Any, ...]) -> None:
    if key in AT_MOST:
        if not value <= max(allowed):
            raise Unfit(f"{key} = {value} is more than {max(allowed)}: agree.{key} would have to allow it.")
    elif not any(type(value) is type(one) and value == one for one in allowed):
        among = ", ".join(map(repr, allowed))
        raise Unfit(f"{key} = {value!r} is not among {among}: agree.{key} would have to allow it.")


def spec_of(text: str) -> Spec:
    """The spec that a coordinator sends, with every value in its range; nothing that it names is looked up."""
    if len(text) > LONGEST_SPEC:
        raise Unfit(f"a spec has at most {LONGEST_SPEC} characters, and this one has {len(text)}.")
    for n, line in enumerate(text.split("\n"), 1):
        if not _LINE.fullmatch(line):
            raise Unfit(f"line {n} of the spec is neither [section] nor key = value, as tacit writes a spec.")
    return Spec().with_values(toml.parsed(text, "the spec of the run")).checked()


def site_policy(section: Values, source: str) -> SitePolicy:
    """The section [agree] of a site file, checked; keys of a spec may stand in quotes or in sections of their own."""
    flat: Values = {}
    for name, value in section.items():
        table = isinstance(value, dict) and name not in names("agree")
        flat |= {f"{name}.{key}": one for key, one in value.items()} if table else {name: value}
    if "values" in flat:
        raise SpecError(f"{source}: agree.values is no key: name the keys of a spec, such as \"run.rounds\" = 50.")
    plain = {name: flat.pop(name) for name in names("agree") if name in flat}
    values = {key: _allowed(key, value, source) for key, value in flat.items()}
    for name in ("runs", "agents"):
        if plain.get(name) == "*":
            plain[name] = None
        if plain.get(name) is not None:
            plain[name] = _names(name, plain[name], source)
    for name in ("fewest_agents", "most_agents", "fewest_records"):
        if name in plain and (type(plain[name]) is not int or plain[name] < 1):
            raise SpecError(f"{source}: agree.{name} is a whole number of at least 1.")
    if "queries" in plain:
        plain["queries"] = None if plain["queries"] == "*" else _queries(plain["queries"], source)
    return SitePolicy(values, **plain)


def askable(preset_name: str = "sound", algorithm: str = "objt") -> tuple[SiteKey, ...]:
    """Return the keys of a run that [agree] may list, with what it allows of each that it leaves out."""
    usual = preset(preset_name, algorithm, GIVEN).values() | {"privacy.trust": "nobody"}
    usual |= {key: some[0] if len(some) == 1 else list(some) for key, some in DEFAULTS.items()}
    return tuple(
        of_spec(
            key, usual[key], "" if usual[key] is not None else _UNSET.get(key, "unset"),
            _EXAMPLES.get(key, 0.5 if usual[key] is None else usual[key]), _MEANINGS.get(key, ""),
        )
        for key in keys()
        if key not in NOT_ASKED and key != "privacy.colluding"
    )


def _allowed(key: str, value: Any, source: str) -> tuple[Any, ...]:
    """What a key may be: one value, or those of a list, each of the type of its key."""
    some = tuple(value) if isinstance(value, list) else (value,)
    key = MOVED.get(key, key)
    if key == "run.name":
        raise SpecError(f"{source}: {key} is not for [agree]: list the names of the runs in agree.runs.")
    if key in NOT_ASKED:
        raise SpecError(f"{source}: {key} is not for a run to ask: drop it from [agree].")
    if key.startswith("method."):
        raise SpecError(f"{source}: {unknown('key of [agree]', key, keys())}")
    if key == "privacy.colluding":
        raise SpecError(f"{source}: how many agents may collude is said once: set sum.colluding, not agree.{key}.")
    if not some or (key in AT_MOST and len(some) > 1):
        wanted = "the largest value" if key in AT_MOST else "a value, or several"
        raise SpecError(f"{source}: agree.{key} takes {wanted}.")
    try:
        return tuple(Spec().with_values({key: one}).checked().values()[key] for one in some)
    except SpecError as error:
        raise SpecError(f"{source}: [agree]: {error}") from None


def _queries(value: Any, source: str) -> dict[str, int]:
    if not isinstance(value, dict):
        raise SpecError(
            f'{source}: agree.queries is "*" or a table [agree.queries] with lines such as gradient = 50, the most '
            "questions of this kind in a run."
        )
    for name, most in value.items():
        if name not in QUERIES:
            raise SpecError(f"{source}: [agree.queries]: {unknown('query', name, QUERIES)}")
        if type(most) is not int or most < 0:
            raise SpecError(f"{source}: agree.queries.{name} is a whole number of at least 0.")
    return value


def _in_words(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} at most {most}" for name, most in value.items()) or "none"
    return ", ".join(value) or "none" if isinstance(value, tuple) else str(value)


def _names(name: str, value: Any, source: str) -> tuple[str, ...]:
    if not isinstance(value, list) or any(type(one) is not str or not one for one in value):
        raise SpecError(f'{source}: agree.{name} is a list of names, or "*" for any.')
    return tuple(value)
