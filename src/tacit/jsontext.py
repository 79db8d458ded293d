"""JSON that every reader takes: it has no infinity and no NaN, so null stands for them."""

from __future__ import annotations

import json
import math
from typing import Any, TypeAlias

Values: TypeAlias = dict[str, Any]  # what an object of JSON, a record or a spec says, by name


def dumps(value: Any, indent: int | None = None) -> str:
    """The value as JSON, numbers that are not finite as null."""
    return json.dumps(_finite(value), indent=indent, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
