"""tacit: one model over data that many agents keep to themselves, with a stated privacy guarantee.

    import tacit
    result = tacit.train(data="mnist", agents=10, epsilon=1.0)
    print(result.test_error, result.guarantee)

    model = tacit.PrivateFederatedClassifier(epsilon=1.0, feature_bounds=(0, 1), classes=[0, 1])
    model.fit(X, y, agents=hospital).predict(X_new)  # as in scikit-learn, with the extra `sklearn`

The names in `__all__` are promised. Those of the packages below are not: they may change with any version.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

from tacit._version import __version__

if TYPE_CHECKING:
    from tacit import errors
    from tacit.data import load
    from tacit.estimator import PrivateFederatedClassifier, PrivateFederatedRegressor
    from tacit.run.keywords import train
    from tacit.run.model import Model
    from tacit.run.presets import preset
    from tacit.run.result import Result
    from tacit.run.spec import Spec
    from tacit.run.train import resume
    from tacit.types import Federation, Shard, Target

_HOME = {  # loaded on first use: `import tacit` costs nothing
    "Federation": "tacit.types",
    "Model": "tacit.run.model",
    "PrivateFederatedClassifier": "tacit.estimator",
    "PrivateFederatedRegressor": "tacit.estimator",
    "Result": "tacit.run.result",
    "Shard": "tacit.types",
    "Spec": "tacit.run.spec",
    "Target": "tacit.types",
    "load": "tacit.data",
    "preset": "tacit.run.presets",
    "resume": "tacit.run.train",
    "train": "tacit.run.keywords",
}

__all__ = [
    "Federation",
    "Model",
    "PrivateFederatedClassifier",
    "PrivateFederatedRegressor",
    "Result",
    "Shard",
    "Spec",
    "Target",
    "__version__",
    "errors",
    "load",
    "preset",
    "resume",
    "train",
]


def _has(package: str) -> bool:
    """Tell whether a package can be imported, without importing it."""
    try:
        return importlib.util.find_spec(package) is not None
    except (ImportError, ValueError):  # somebody blocks it
        return False


if not _has("sklearn"):  # else `from tacit import *` and help(tacit) would end where the extra is not installed
    __all__[:] = [name for name in __all__ if _HOME.get(name) != "tacit.estimator"]


def __getattr__(name: str) -> Any:
    if name == "errors":
        return importlib.import_module("tacit.errors")
    if name not in _HOME:
        raise AttributeError(f"module 'tacit' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__
