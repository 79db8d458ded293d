"""Put every fault into a copy of the tree, one at a time, and run the test that must find it.

    make mutants                       every fault, about a second or two each
    python -m tests.mutants gate ...   those whose name holds one of these words

The tree is copied, the fault put in, the test run in the copy: it must fail there, and pass without the fault. A fault
whose text is no longer in its file is an error, so that the list follows the code. A fault in C is compiled: it needs a
compiler.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from tests.mutants import MUTANTS, ROOT

COPIED = ("src", "tests", "pyproject.toml", "records", "docs", "README.md")


def copied(place: Path) -> None:
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, place / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        else:
            shutil.copy(source, place / name)


def build(file: Path) -> None:
    """Compile the extension of a C file: the one in its directory."""
    if file.suffix not in (".c", ".h"):
        return
    (source,) = [one for one in file.parent.glob("*.c") if file.suffix == ".h" or one == file]
    made = source.with_suffix(sysconfig.get_config_var("EXT_SUFFIX"))
    flags = ["-O2", "-std=gnu11", "-Wno-psabi", "-fno-math-errno", "-fno-trapping-math", "-shared", "-fPIC"]
    includes = f"-I{sysconfig.get_path('include')}"
    subprocess.run(["cc", *flags, includes, str(source), "-o", str(made), "-lm"], check=True)


def run(place: Path, test: str) -> tuple[bool, str]:
    """(whether the test passes in the copy, the last line that it printed)."""
    environment = {**os.environ, "PYTHONPATH": str(place / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", test]
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)
    lines = done.stdout.strip().splitlines() or [done.stderr.strip()]
    if done.returncode not in (0, 1):  # no test of that name, or none that could be run
        raise SystemExit(f"{test}: {lines[-1]}")
    return done.returncode == 0, lines[-1]


def main(words: list[str]) -> int:
    chosen = [m for m in MUTANTS if not words or any(word in m.name for word in words)]
    lived = []
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        copied(place)
        for test in sorted({m.test for m in chosen}):
            passes, line = run(place, test)
            if not passes:
                raise SystemExit(f"{test} fails without any fault: {line}")
        for mutant in chosen:
            file = place / "src" / "tacit" / mutant.file
            whole = file.read_text()
            if whole.count(mutant.old) != 1:
                raise SystemExit(f"{mutant.name}: its text stands {whole.count(mutant.old)} times in {mutant.file}")
            file.write_text(whole.replace(mutant.old, mutant.new))
            build(file)
            passes, _ = run(place, mutant.test)
            file.write_text(whole)
            build(file)
            lived += [mutant.name] * passes
            print(f"{'LIVED' if passes else 'died':<6} {mutant.name:<66} {mutant.test.rpartition('::')[2]}", flush=True)
    print(f"{len(chosen) - len(lived)} of {len(chosen)} faults were found")
    return 1 if lived else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
