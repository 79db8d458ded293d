"""How tacit is installed: the extras that messages name, and a wheel file that pip checks by its hash."""

from __future__ import annotations

import ast
import hashlib
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tacit import toml
from tacit.errors import EXTRAS, MissingDependency, install_extra, missing_extra
from tacit.federation.folders import FolderLayout, make

ROOT = Path(__file__).parent.parent
PROJECT = toml.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"), "pyproject.toml")["project"]
FOR_DEVELOPERS = {"peers", "docs", "tuning", "dev"}  # no message of tacit names them


def named_extras() -> set[str]:
    """Return the extras that the messages of src name, each as a string in the call that makes the message."""
    calls = (
        node for path in (ROOT / "src" / "tacit").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)
    )  # fmt: skip
    last = [call.args[-1] for call in calls if getattr(call.func, "id", "") in ("missing_extra", "install_extra")]
    return {one.value for one in last if isinstance(one, ast.Constant)}


def sections(page: Path) -> dict[str, str]:
    """Return the sections of a page by their anchors."""
    parts = re.split(r"^#+ (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    titles = (re.sub(r"[^\w]+", "-", title.lower()).strip("-") for title in parts[::2])
    return dict(zip(titles, parts[1::2], strict=True))


def test_every_extra_that_a_message_names_exists_and_is_on_the_page_that_it_names() -> None:
    page, _, anchor = EXTRAS.partition("#")
    listed = set(re.findall(r"^\| `(\w+)` \|", sections(ROOT / page)[anchor], re.MULTILINE))
    assert named_extras() == listed == set(PROJECT["optional-dependencies"]) - FOR_DEVELOPERS


def test_the_page_says_which_packages_an_extra_brings() -> None:
    page, _, anchor = EXTRAS.partition("#")
    for name, brings in re.findall(r"^\| `(\w+)` \|.*\| ([^|]*) \|$", sections(ROOT / page)[anchor], re.MULTILINE):
        required = PROJECT["optional-dependencies"][name]
        assert brings.split(", ") == [re.split("[><=;]", one)[0] for one in required]


def test_a_missing_package_is_told_with_its_extra_and_where_to_read_on() -> None:
    error = missing_extra("figures need matplotlib", "figures")
    assert isinstance(error, MissingDependency)
    assert str(error) == f"figures need matplotlib: {install_extra('figures')}."
    assert install_extra("figures") == f"install tacit with the extra 'figures' ({EXTRAS})"


def test_the_makefile_removes_what_an_installation_under_the_old_name_left() -> None:
    installs = [line for line in (ROOT / "Makefile").read_text(encoding="utf-8").splitlines() if "--editable" in line]
    installs = [line for line in installs if not line.startswith("\t@echo")]  # which only says it
    assert len(installs) == 1  # the rules share it
    assert "rm -rf src/tacit.egg-info; $(BIN)/pip uninstall -qq --yes tacit; $(BIN)/pip install" in installs[0]


def wheel(folder: Path) -> Path:
    """Write a wheel of the name of ours, with an extra and nothing in it."""
    path = folder / "tacit_dp-0.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as file:
        about = "Metadata-Version: 2.1\nName: tacit-dp\nVersion: 0.0\nProvides-Extra: flower\n"
        file.writestr("tacit_dp-0.0.dist-info/METADATA", about)
        file.writestr("tacit_dp-0.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr("tacit_dp-0.0.dist-info/RECORD", "")
    return path


@pytest.mark.parametrize("right", [True, False], ids=["right hash", "wrong hash"])
def test_the_command_that_sites_are_given_refuses_a_wheel_with_another_hash(tmp_path, right) -> None:
    pytest.importorskip("pip")
    make(tmp_path / "study", FolderLayout("study", {"north": ("north",)}))
    pages = [*(tmp_path / "study").rglob("README.md"), ROOT / "docs" / "deploy.md"]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    given = set(re.findall(r"pip install '(tacit-dp.*)'", text))
    assert len(pages) == 3
    assert len(given) == 1  # the same for the coordinator, every site and the page
    path = wheel(tmp_path)
    digest = hashlib.sha256(path.read_bytes() if right else b"").hexdigest()
    wanted = given.pop().replace("/srv/tacit/WHEEL", path.as_posix()).replace("HASH", digest)
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--no-index", "--no-deps", wanted]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode == 0) == right
    assert ("DO NOT MATCH THE HASHES" in done.stderr) != right
