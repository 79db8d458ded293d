"""What both sides of a federation know of all records, and what they must agree on before the first round.

Sites and coordinator build the run from the same public facts: what a schema declares, and how many records each agent
has. Shards of others are `Shard.elsewhere`. So both arrive at the same feature map, noise, penalties and hash.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from dataclasses import asdict, replace

import numpy as np

from tacit import toml
from tacit.errors import DataError, IncompatibleError, Unfit
from tacit.federation import wire
from tacit.federation.messages import RecordCounts
from tacit.federation.wire import Malformed, parsed
from tacit.jsontext import canonical
from tacit.run import build
from tacit.run.deployment import Deployment
from tacit.run.spec import Spec
from tacit.types import ColumnFeatures, Federation, Shard, Target

_PLAIN = ("n_classes", "classes", "features", "bounds", "longest", "schema", "image")
LARGEST_FEATURES = 10**7
MAPS_KEPT = 2  # what a map makes of the records may be far larger than the records


def public(federation: Federation) -> str:
    """JSON of what is public of the records of a site, before any feature map; equal at all sites of a federation.

    Of a schema, that is what it declares: a comment in it, such as the path that it was drafted from, is its owner's.
    """
    if not federation.public_classes:
        raise DataError(
            f"the classes of {federation.name} were read from its labels, and a site would tell them: declare them "
            "(classes, or a schema)."
        )
    facts = {name: getattr(federation, name) for name in _PLAIN}
    facts["schema"] = toml.plain(federation.schema, "the schema")
    facts |= {"n_features": federation.n_features, "columns": [asdict(one) for one in federation.columns]}
    return canonical(facts | {"target": federation.target and asdict(federation.target)})


def hollow(name: str, text: str, agents: RecordCounts, test: Shard | None = None) -> Federation:
    """The federation as its coordinator knows it: public facts (of `public`), no records but those of a test set."""
    try:
        facts = parsed(text)
        n_features = int(facts.pop("n_features"))
        if not 1 <= n_features <= LARGEST_FEATURES:
            raise ValueError(n_features)
        columns = tuple(ColumnFeatures(**one) for one in facts.pop("columns"))
        target = facts.pop("target")
        facts = {key: tuple(value) if isinstance(value, list) else value for key, value in facts.items()}
        if set(facts) != set(_PLAIN):
            raise ValueError(sorted(facts))
        return Federation(
            tuple(Shard.elsewhere(count, n_features) for _, count in agents),
            replace(test or Shard(np.zeros((0, n_features)), np.zeros(0, np.int64)), owners=None),
            name=name, agents=tuple(who for who, _ in agents), columns=columns,
            target=None if target is None else Target(**target), **facts,
        )  # fmt: skip
    except (Malformed, KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise Unfit("what a site says of its records is not of the form that this version of tacit knows.") from error


def among(own: Federation, agents: RecordCounts) -> Federation:
    """The federation as a site knows it: its own agents' records, and how many the others have, in the run's order."""
    mine = dict(zip(own.agents, own.shards, strict=True))
    for who, count in agents:
        if who in mine and len(mine[who]) != count:
            raise Unfit(f"agent {who} has {len(mine[who])} records, and the run says {count}.")
    shards = tuple(mine[who] if who in mine else Shard.elsewhere(count, own.n_features) for who, count in agents)
    return replace(own, shards=shards, agents=tuple(who for who, _ in agents))


class MappedRecords:
    """The records of `own`, as runs of several agents see them. One thread may ask at a time."""

    def __init__(self, own: Federation) -> None:
        self.own = own
        self._kept: OrderedDict[str, tuple[Shard, ...]] = OrderedDict()

    def of(self, spec: Spec, agents: RecordCounts) -> Federation:
        """The federation of a run: its map is chosen by public facts, and records that have passed it are kept."""
        whole = among(self.own, agents)
        away = tuple(Shard.elsewhere(len(shard), whole.n_features) for shard in whole.shards)
        told = build.transformed(spec, replace(whole, shards=away))
        d = spec.data
        key = canonical([told.recipe, d.intercept, d.row_norm, d.row_bound, d.row_mode, whole.agents])
        if key in self._kept:
            self._kept.move_to_end(key)
            both = zip(told.shards, self._kept[key], strict=True)
            return replace(told, shards=tuple(ours if ours.here else theirs for theirs, ours in both))
        found = build.transformed(spec, whole)
        self._kept[key] = found.shards
        while len(self._kept) > MAPS_KEPT:
            self._kept.popitem(last=False)
        return found


def check_size(site: str, n_agents: int, deployment: Deployment) -> None:
    """Refuse a run whose messages to or from a site would be too long: answers that cannot arrive are paid for."""
    queries = [one.query for one in deployment.first_agreement.queries]
    largest = wire.ITEM * n_agents * max(max(query.size, query.parameters.size) for query in queries)
    if largest > wire.LARGEST_BODY:
        raise IncompatibleError(
            f"a message about the {n_agents} agents of site {site} would have {largest} bytes, and the most is "
            f"{wire.LARGEST_BODY}: spread the agents over more sites, or take fewer features."
        )


def agreed(spec: Spec, text: str, agents: RecordCounts, federation: Federation, deployment: Deployment) -> str:
    """Return the hash of what all parties agree on: spec, public facts, agents, feature map, and the agreements.

    `federation` is the one that has passed the feature map, and `deployment` is made of it.
    """
    told = canonical([spec.toml(), json.loads(text), agents, federation.recipe, deployment.digest])
    return hashlib.sha256(told.encode()).hexdigest()
