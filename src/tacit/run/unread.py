"""Keys of a spec that its run does not read: those of other sources, other methods and other rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tacit.data.sources import may_be
from tacit.methods.registry import METHODS
from tacit.run.build import CHOICES, reads
from tacit.run.sources import GIVEN
from tacit.run.spec import keys


def unread(values: Mapping[str, Any]) -> set[str]:
    """Return the keys that a run with these values does not read: whatever they say, the run is the same."""
    source, name = str(values.get("data.source")), str(values.get("algorithm.name"))
    kinds: set[Any] = set() if source.startswith(GIVEN) else may_be(source)
    found = set()
    for key, declared in keys().items():
        for other, some in declared.metadata["when"].items():
            if not any(value in some for value in (kinds if other == "data.source" else (values.get(other),))):
                found.add(key)
    if name in METHODS and not (entry := METHODS[name]).is_admm:
        found |= {key for key in values if key.startswith(CHOICES) and not reads(entry, key)}
    return found
