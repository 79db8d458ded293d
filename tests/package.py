"""make package: build sdist and wheel, and use them as a stranger would.

The wheel is installed in a new environment, which says what it pulls. There tacit trains on bundled data, and the quick
tests of the sdist run against the wheel: nothing of the checkout is on the way. Exit code 1 where a step fails.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import venv
import zipfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCES = {".py", ".c", ".h", ".so", ".pyd", ".pyc"}  # what is no data file
# what the wheel pulls: what tacit itself asks for, and what that needs
ASKED = {"numpy", "dp-accounting", "scipy", "rich", "tomli"}
PULLED = {"absl-py", "attrs", "dm-tree", "mpmath", "wrapt", "markdown-it-py", "mdurl", "pygments"}
QUICK = (
    "tests/test_cli.py", "tests/test_cli_proba.py", "tests/test_parser.py", "tests/test_new.py",
    "tests/test_packaging.py", "tests/test_toml.py", "tests/test_schedule.py", "tests/admm", "tests/problem",
    "tests/privacy/test_budget.py", "tests/features",
)  # fmt: skip


def data_files(root: Path = ROOT) -> set[str]:
    """Return the data files of the package in a checkout, as paths below src."""
    files = (path for path in (root / "src" / "tacit").rglob("*") if path.is_file() and path.suffix not in SOURCES)
    return {path.relative_to(root / "src").as_posix() for path in files}


def names(archive: Path) -> set[str]:
    """Return the paths in a wheel, or in a sdist below its folder."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return set(wheel.namelist())
    with tarfile.open(archive) as sdist:
        return {name.partition("/")[2] for name in sdist.getnames()}


def strangers(installed: str) -> set[str]:
    """Return the packages of a pip freeze that nobody said tacit would pull."""
    found = {re.split("[= @]", line)[0].lower().replace("_", "-") for line in installed.splitlines() if line}
    return found - ASKED - PULLED - {"tacit-dp", "pip", "setuptools"}  # the last two come with an environment


def main() -> int:
    """Build, install, train, test."""
    with tempfile.TemporaryDirectory() as made:
        place = Path(made)
        dist = ROOT / "dist"
        shutil.rmtree(dist, ignore_errors=True)
        # from the sdist alone, in an environment of its own: what the sdist lacks, the wheel lacks
        _step("build", [sys.executable, "-m", "build", "--outdir", str(dist), str(ROOT)], place)
        (wheel,), (sdist,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
        wanted = data_files()
        lacks = [*(wanted - names(wheel)), *(path for path in wanted if f"src/{path}" not in names(sdist))]
        if lacks:
            print(f"not packed: {', '.join(sorted(lacks))}: add them to package-data in pyproject.toml.")
            return 1
        for file in (sdist, wheel):
            print(f"{file.name}  {file.stat().st_size / 1e6:.1f} MB, {len(wanted)} data files")
        venv.create(place / "env", with_pip=True)
        python = place / "env" / ("Scripts" if os.name == "nt" else "bin") / "python"
        _step("install", [python, "-m", "pip", "install", "--quiet", wheel], place)
        installed = _step("pulls", [python, "-m", "pip", "list", "--format=freeze"], place)
        print(installed)
        if strangers(installed):
            print(f"pulled without a reason: {', '.join(sorted(strangers(installed)))}.")
            return 1
        print(_step("version", [python, "-m", "tacit", "--version"], place))
        print(_step("train", [python, "-m", "tacit", "train", "--data", "heart", "-q", "--out", "run"], place))
        with tarfile.open(sdist) as packed:
            packed.extractall(place)  # our own file, made above
        (folder,) = place.glob("tacit_dp-*")
        _step("tools", [python, "-m", "pip", "install", "--quiet", "pytest", "hypothesis"], place)
        print(_step("quick tests", [python, "-m", "pytest", *QUICK], folder))
    return 0


def _step(name: str, command: Sequence[str | Path], place: Path) -> str:
    """Run a command in a place where no checkout is found; return what it printed, or stop with all it said."""
    start = time.perf_counter()
    env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run([*map(str, command)], cwd=place, env=env, capture_output=True, text=True, check=False)
    print(f"{time.perf_counter() - start:6.1f} s  {name}", flush=True)
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
