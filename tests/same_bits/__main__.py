"""The command: see the package."""

from __future__ import annotations

import argparse
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from itertools import zip_longest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
CASES = Path(__file__).with_name("cases.py")
SHOWN = 100  # characters of each side around the first difference
Results = dict[str, dict[str, str]]


def main() -> int:
    """Run both versions and print what differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.same_bits", description=__doc__)
    parser.add_argument("words", nargs="*", help="cases whose name holds one of these words (default: all)")
    parser.add_argument("--before", metavar="REV", help="a commit (default: HEAD, or HEAD~1 if nothing is uncommitted)")
    parser.add_argument(
        "--without", metavar="KEY", action="append", default=[], help="a key of ledger entries that may differ"
    )
    options = parser.parse_args()
    rev = options.before or ("HEAD" if _git("status", "--porcelain") else "HEAD~1")
    with tempfile.TemporaryDirectory() as folder:
        before = Path(folder) / "tree"
        extract(rev, before)
        place = Path(folder) / "cases"  # the same for both: specs, and so their hashes, have absolute paths
        then, now = (found_by(root, place, options.words, options.without) for root in (before, ROOT))
    differing = 0
    for name in {**then, **now}:
        if found := difference(then.get(name), now.get(name)):
            print(f"differs  {name}\n{found}")
            differing += 1
    refused = sum(found.get("exit", "0") != "0" for found in now.values())
    total, rev = len({**then, **now}), _git("rev-parse", "--short", rev)
    print(f"{total - differing} cases are the same as in {rev} ({refused} are refused in both), {differing} differ")
    return int(bool(differing))


def extract(rev: str, to: Path) -> None:
    """Write the tree of a commit with its compiled parts: those of this tree, if their sources are the same."""
    archive = subprocess.run(["git", "archive", rev], cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(to, filter="data")
    if sources(to) == sources(ROOT):
        for path in (ROOT / "src").rglob("*.so"):
            shutil.copy(path, to / path.relative_to(ROOT))
        return
    wheels = to / "wheels"
    subprocess.run([sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(wheels), str(to)], check=True)
    (wheel,) = wheels.glob("*.whl")
    with zipfile.ZipFile(wheel) as files:
        files.extractall(to / "src", [name for name in files.namelist() if name.endswith(".so")])


def sources(root: Path) -> dict[str, bytes]:
    """Return the C sources of a tree, and what compiles them."""
    files = [root / "setup.py", *(path for path in (root / "src").rglob("*.[ch]"))]
    return {str(path.relative_to(root)): path.read_bytes() for path in files}


def found_by(root: Path, place: Path, words: list[str], without: list[str]) -> Results:
    """Run the cases with the tacit of a tree, and return what they found, without some keys of ledger entries."""
    place.mkdir()
    path = os.pathsep.join((str(root / "src"), str(root)))
    done = subprocess.run(
        [sys.executable, str(CASES), str(place), *words], cwd=root, stdout=subprocess.PIPE, text=True, check=False,
        env=os.environ | {"PYTHONPATH": path, "COLUMNS": "120", "SAME_BITS_WITHOUT": " ".join(without)},
    )  # fmt: skip
    shutil.rmtree(place)
    if done.returncode:
        raise SystemExit(f"the cases ended with exit code {done.returncode} in {root}")
    found: Results = json.loads(done.stdout)
    return found


def difference(then: dict[str, str] | None, now: dict[str, str] | None) -> str:
    """Return the first difference of a case; "" if there is none."""
    if now and "error" in now:
        return f"  the case fails: {now['error']}"
    if then is None or now is None:
        return f"  only {'now' if then is None else 'before'}"
    for part in {**then, **now}:
        one, other = then.get(part, "(nothing)"), now.get(part, "(nothing)")
        if one != other:
            at = next(n for n, (a, b) in enumerate(zip_longest(one, other)) if a != b)
            begin = max(0, at - SHOWN // 2)
            return f"  {part}\n    before  ...{one[begin:begin + SHOWN]}\n    now     ...{other[begin:begin + SHOWN]}"
    return ""


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
