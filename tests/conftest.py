"""Small problems a person can check, shared by the tests."""

from __future__ import annotations

import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

# BLAS reads these when NumPy is imported: workers that run side by side would compete for the cores with its threads
os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import numpy as np
import pytest
from hypothesis import settings

from tacit.engine.kernels import compiled
from tacit.types import Federation, Shard, Target

settings.register_profile("full", deadline=None, derandomize=True, max_examples=40)
settings.register_profile("quick", settings.get_profile("full"), max_examples=10)  # by --hypothesis-profile
settings.load_profile("full")
# The quick profile holds for these folders only: tests of privacy, conformance and hostile input keep all examples.
QUICK = ("admm", "engine", "paper")
FIRST = ("test_docs_blocks.py", "test_examples.py")  # the longest files: begun last, one worker would wait for another

# pytest loads readline, which sets COLUMNS = 80 for child processes behind Python's back: their lines would be folded
os.environ.pop("COLUMNS", None)
os.unsetenv("COLUMNS")

_TEMPORARY = pytest.StashKey[str]()


def _short_folder() -> str:
    """Create a folder for this user only whose path leaves room for the path of a Unix socket, about 100 bytes."""
    system = tempfile.gettempdir()
    parents = [system] if len(system) <= len("/tmp") else ["/tmp", system]
    usable = [path for path in parents if os.path.isdir(path) and os.access(path, os.W_OK | os.X_OK)]
    return tempfile.mkdtemp(prefix="t", dir=next(iter(usable), None))


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Keep temporary files below a short path, unless --basetemp names another; workers of xdist are given theirs."""
    if config.option.basetemp is None:
        config.option.basetemp = config.stash[_TEMPORARY] = _short_folder()


@pytest.hookimpl(tryfirst=True)
def pytest_make_collect_report(collector: pytest.Collector) -> None:
    """Load the Hypothesis profile of a module before pytest imports it, which fixes the settings of its tests."""
    if isinstance(collector, pytest.Module):
        chosen = collector.config.getoption("hypothesis_profile", None) if collector.path.parent.name in QUICK else None
        settings.load_profile(chosen or "full")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest files."""
    items.sort(key=lambda item: item.path.name not in FIRST)


def examples(full: int) -> settings:
    """Return settings with this number of examples in the full profile, and in proportion in the quick one."""
    return settings(max_examples=full * settings.default.max_examples // settings.get_profile("full").max_examples)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Keep the temporary files of a session with a failed test: they may explain the failure."""
    if exitstatus == pytest.ExitCode.TESTS_FAILED and _TEMPORARY in session.config.stash:
        del session.config.stash[_TEMPORARY]


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the temporary files of every other session."""
    if _TEMPORARY in config.stash:
        shutil.rmtree(config.stash[_TEMPORARY], ignore_errors=True)


@pytest.fixture(autouse=True)
def _in_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start every test in the folder of the checkout, whatever test the worker ran before."""
    monkeypatch.chdir(Path(__file__).parent.parent)


def federation(
    n_agents: int = 3, n_features: int = 4, n_classes: int = 3, seed: int = 0, sizes: tuple[int, ...] = ()
) -> Federation:
    """Ragged agents whose records differ in mean; features in [0, 1]."""
    rng = np.random.default_rng(seed)
    sizes = sizes or tuple(5 + 3 * p for p in range(n_agents))
    true = rng.normal(size=(n_features, n_classes))

    def shard(n: int, shift: float) -> Shard:
        x = np.clip(rng.uniform(size=(n, n_features)) + shift, 0, 1)
        y = (x @ true + 0.3 * rng.normal(size=(n, n_classes))).argmax(axis=1)
        return Shard(x, y)

    shards = tuple(shard(n, 0.2 * p / n_agents) for p, n in enumerate(sizes))
    return Federation(shards, shard(20, 0.0), n_classes, "small", bounds=(0.0, 1.0))


def numbers(
    n_agents: int = 3, n_features: int = 4, seed: int = 0, sizes: tuple[int, ...] = (), noise: float = 0.1
) -> Federation:
    """Agents as in `federation`, whose label is a number in [0, 10] that depends linearly on the features."""
    over, target = federation(n_agents, n_features, 2, seed, sizes), Target(0.0, 10.0)
    rng = np.random.default_rng(seed)
    true = rng.uniform(-2, 2, size=n_features)

    def measured(shard: Shard) -> Shard:
        value = 5 + shard.x.astype(np.float64) @ true + noise * rng.normal(size=len(shard))
        return Shard(shard.x, target.scaled(value))

    shards = tuple(map(measured, over.shards))
    return Federation(shards, measured(over.test), 1, "small", bounds=over.bounds, target=target)


@contextmanager
def instructions(name: str) -> Iterator[ModuleType]:
    """The compiled loops with one instruction set; the test is skipped where the processor has it not."""
    kernels = compiled()
    assert kernels is not None
    try:
        before = kernels.use(name)
    except ValueError:
        pytest.skip(f"no {name} on this processor")
    try:
        yield kernels
    finally:
        kernels.use(before)


def claim_too_much(path: Path) -> None:
    """Write an archive of one array, x, whose header says that it has 72 TiB."""
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (10000000000000,), }".ljust(117) + b"\n"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", b"\x93NUMPY\x01\x00v\x00" + header + b"\0" * 64)


def encrypt(path: Path) -> None:
    """Set the flag that says the first member of an archive is encrypted, in both of its headers."""
    data = bytearray(path.read_bytes())
    for mark, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(mark) + at] |= 1
    path.write_bytes(data)


@pytest.fixture(scope="session")
def mnist() -> Federation:
    """The paper's instance: ten contiguous blocks."""
    from tacit import data

    return data.load("mnist", agents=10)
