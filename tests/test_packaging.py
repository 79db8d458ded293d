"""What is packed: every data file is listed, `import tacit` pulls nothing heavy, and each extra is one line."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tacit import toml
from tests import package

ROOT = Path(__file__).parent.parent
PROJECT = toml.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"), "pyproject.toml")


def listed() -> set[str]:
    """The files that package-data takes into the wheel."""
    globs = PROJECT["tool"]["setuptools"]["package-data"]["tacit"]
    base = ROOT / "src" / "tacit"
    return {path.relative_to(ROOT / "src").as_posix() for glob in globs for path in base.glob(glob)}


def test_every_data_file_of_the_package_is_listed_for_the_wheel() -> None:
    assert package.data_files() - listed() == set()
    assert listed() - package.data_files() == set()


def test_a_data_file_that_is_not_listed_is_found(tmp_path: Path) -> None:
    (tmp_path / "src" / "tacit" / "ui").mkdir(parents=True)
    (tmp_path / "src" / "tacit" / "ui" / "page.html").touch()
    (tmp_path / "src" / "tacit" / "ui" / "page.py").touch()
    assert package.data_files(tmp_path) - listed() == {"tacit/ui/page.html"}


def test_what_nobody_expected_to_be_pulled_is_found() -> None:
    freeze = "numpy==2.0\ndp_accounting==0.6.0\ntacit-dp @ file:///x.whl\npandas==2.2\nPygments==2.1\n"
    assert package.strangers(freeze) == {"pandas"}


def test_the_core_asks_for_what_is_said_and_nothing_else() -> None:
    asked = {re.split("[><=; ]", one)[0] for one in PROJECT["project"]["dependencies"]}
    assert asked == package.ASKED
    assert all(f"| {name}" in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8") for name in asked)


@pytest.mark.parametrize("path", package.QUICK)
def test_the_quick_tests_exist(path: str) -> None:
    assert (ROOT / path).exists()


def test_import_tacit_loads_nothing_beyond_the_standard_library() -> None:
    code = "import sys, tacit; print(*sorted({name.split('.')[0] for name in sys.modules} - sys.stdlib_module_names))"
    done = subprocess.run([sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}; {code}"],
                          capture_output=True, text=True, check=True)  # fmt: skip
    assert set(done.stdout.split()) <= {"tacit", "__main__", "__mp_main__"}


def test_the_manifest_packs_tests_and_documents() -> None:
    packed = (ROOT / "MANIFEST.in").read_text(encoding="utf-8")
    for folder in ("tests", "docs", "benchmarks", "records"):
        assert f"graft {folder}\n" in packed
