"""tacit: one model over data that many agents keep to themselves, with a stated privacy guarantee.

    import tacit
    spec = tacit.preset("released", "objt").with_values({"run.rounds": 50})
    result = tacit.train(spec, tacit.load("mnist", agents=10))
    print(result.test_error, result.guarantee)

The names in `__all__` are promised. Those of the packages below are not: they may change with any version.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tacit._version import __version__

if TYPE_CHECKING:
    from tacit.data import load
    from tacit.run.model import Model
    from tacit.run.presets import preset
    from tacit.run.run import Result
    from tacit.run.spec import Spec
    from tacit.run.train import resume, train
    from tacit.types import Federation, Shard, Target

_HOME = {  # loaded on first use: `import tacit` costs nothing
    "Federation": "tacit.types",
    "Model": "tacit.run.model",
    "Result": "tacit.run.run",
    "Shard": "tacit.types",
    "Spec": "tacit.run.spec",
    "Target": "tacit.types",
    "load": "tacit.data",
    "preset": "tacit.run.presets",
    "resume": "tacit.run.train",
    "train": "tacit.run.train",
}

__all__ = [
    "Federation",
    "Model",
    "Result",
    "Shard",
    "Spec",
    "Target",
    "__version__",
    "load",
    "preset",
    "resume",
    "train",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'tacit' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__
