"""The distribution is called tacit-dp, and nothing asks an index for `tacit`, which belongs to somebody else there."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tacit import toml

ROOT = Path(__file__).parent.parent
OURS = "tacit-dp"
TAKEN = "tacit"  # samples below are put together from it: this file is searched like every other
NOT_PACKED = {".git", ".venv", ".cache", "build", "dist", "site", "__pycache__"}

INSTALLS = re.compile(
    r"""\b(?:
        (?:pip3?|pipx|pipenv|uv|poetry|pdm|hatch|rye|pixi|conda|mamba|micromamba)\b
        (?:[\s"',]+[\w./=-]+)*?                          # options, and words such as `pip` of `uv pip install`
        [\s"',]+(?:install|add|wheel|download|inject)
      | easy_install | uvx | uv\s+tool\s+run | pipx\s+run  # the last three install what they run
      | (?:uv|uvx|pipx)\b[^\n`;&|#]*--(?:with|spec)
    )\b
    (?P<what>[^\n`;&|#]*)                                # the rest of the command""",
    re.VERBOSE | re.IGNORECASE,
)
SPECIFIER = r"(?:\[[^\]]*\])?\s*(?:(?:[=~!<>]=|<|>|@).*)?"
NAMED = re.compile(rf"{TAKEN}{SPECIFIER}", re.IGNORECASE)
REQUIRED = re.compile(
    rf"(?<![\w./@-]){TAKEN}(?:\s*\[\s*[a-z][\w-]*(?:\s*,\s*[a-z][\w-]*)*\s*\]"  # an extra
    rf"|\s*[=~!<>]==?\s*[\d*{{$]|[=~!<>]=|\s*=\s*[\"'][\^~<>=*\d]"  # a version
    r"|\s+@\s+(?:file|https?|git|ssh|\.|/))",  # a place
    re.IGNORECASE,
)
LISTED = re.compile(
    r"\b(?:dependencies|requires|install_requires|setup_requires)\s*=\s*\[(?P<list>[^\]]*(?:\[[^\]]*\][^\]]*)*)\]",
)
ONE_PER_LINE = re.compile(rf"^\s*(?:-\s+)?[\"']?{TAKEN}[\"']?{SPECIFIER}\s*(?:#.*)?$", re.IGNORECASE | re.MULTILINE)


def asked(text: str, name: str = "") -> Iterator[str]:
    """Yield what a text asks an installer for under the name that is taken; `name` is that of its file."""
    joined = re.sub(r"\\\n\s*", " ", text)  # a command goes on after a backslash
    for command in INSTALLS.finditer(joined):
        if any(NAMED.fullmatch(word) for word in re.split(r"[\s\"',()\\]+", command["what"])):
            yield command[0]
    yield from (found[0] for found in REQUIRED.finditer(joined))
    for found in LISTED.finditer(joined):
        if any(NAMED.fullmatch(one) for one in re.findall(r"[\"']([^\"']*)[\"']", found["list"])):
            yield found[0]
    if re.match(r"(?:requirements|constraints|environment).*\.(?:txt|in|ya?ml)$", name):
        yield from (found[0] for found in ONE_PER_LINE.finditer(joined))


def files() -> list[Path]:
    """Every file of the checkout that git would keep; of an unpacked sdist every file."""
    if (ROOT / ".git").exists():
        command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
        told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        return [path for name in told.split("\0") if name and (path := ROOT / name).is_file()]
    return [path for path in ROOT.rglob("*") if path.is_file() and NOT_PACKED.isdisjoint(path.relative_to(ROOT).parts)]


def texts() -> Iterator[tuple[str, str, str]]:
    """Yield the place, the name and the contents of every text file."""
    for path in files():
        try:
            yield path.relative_to(ROOT).as_posix(), path.name, path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue


def test_no_file_asks_for_the_package_of_somebody_else() -> None:
    found = {place: said for place, name, text in texts() if (said := list(asked(text, name)))}
    assert found == {}


def test_the_project_and_its_references_to_itself_have_the_name_that_is_free() -> None:
    project = toml.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"), "pyproject.toml")["project"]
    assert project["name"] == OURS
    assert project["scripts"] == {"tacit": "tacit.cli:main"}  # the command and the import keep their name
    extras = project["optional-dependencies"]
    required = [*project["dependencies"], *(one for extra in extras.values() for one in extra)]
    assert f"{OURS}[docs]" in required
    assert [one for one in required if re.split(r"[\[<>=~!;@ ]", one)[0].lower() == TAKEN] == []


REFUSED = [
    *(f"{program} {TAKEN}" for program in (
        "pip install", "pip3 install --upgrade", "python -m pip install --quiet", "pip download", "pip wheel",
        "pipx install", "pipx run", "pipx inject app", "uvx", "uv tool run", "uv add", "uv pip install",
        "uv tool install", "easy_install", "poetry add", "conda install -c conda-forge", "mamba install -y", "pdm add",
        "RUN pip install --no-cache-dir numpy", "    - pip install", "uv run --with", "pipx run --spec",
    )),
    f"pip install '{TAKEN}[sklearn]'", f'pip install "{TAKEN}[sklearn]"', f"pip install {TAKEN}[sklearn]",
    f"`pip install {TAKEN}`", f"pip install numpy \\\n    {TAKEN}", f"pip install '{TAKEN} >= 0.2'",
    rf"match=r\"pip install '{TAKEN}\[ui\]'\"", rf'"!pip install {TAKEN}\n",', f"pip install {TAKEN.upper()}",
    f"pip install {TAKEN}==0.3.0 && true", f"(pip install {TAKEN})", f'{TAKEN} = "^0.3"',
    f'[python, "-m", "pip", "install", "--quiet", "{TAKEN}"]', f"['pip', 'install', '{TAKEN}']",
    f'raise Missing("needs sklearn: pip install \'{TAKEN}[sklearn]\'")', f"see {TAKEN}[flower]",
    f'dev = ["{TAKEN}[docs]"]', f"{TAKEN}==0.2.0", f"{TAKEN}>=0.2", f"{TAKEN} ~= 0.2", f"{TAKEN} @ file:///x.whl",
    f"{TAKEN} @ git+https://example.org/x", f"{TAKEN}[ui, flower] @ https://example.org/x.whl",
    f'dependencies = ["{TAKEN}"]', f"dependencies = [\n  'numpy',\n  '{TAKEN}',\n]", f'requires = ["{TAKEN}"]',
    f'install_requires=["{TAKEN} < 1"],',
]  # fmt: skip
ALLOWED = [
    f"pip install '{OURS}[sklearn]'", f"pip install {OURS}", f'"{OURS}[docs]",', f"{OURS}==0.2.0",
    "pip install '.[sklearn]'", "pip install . && tacit train", "pip install .; tacit info", "pip install .  # tacit",
    "`tacit ui` (`pip install '.[ui]'`) shows runs while tacit trains", f"pip uninstall {TAKEN} {OURS}",
    f"pip show {TAKEN}", f"pip install '{OURS}[flower] @ file:///srv/tacit_dp-0.2.0-py3-none-any.whl#sha256=0'",
    "tacit train --epsilon 1", "import tacit", "tacit.train(", "pip install ./tacit_dp-0.2.0-py3-none-any.whl[flower]",
    'containers = ["tacit"]', 'source_modules = ["tacit"]', 'publisher = "tacit"', 'command: ["tacit", "agent"]',
    "image: tacit", "uv run tacit train", "poetry run tacit info", 'found["tacit"]', 'tacit = "tacit.cli:main"',
    "git clone https://example.org/x/tacit && cd tacit && pip install .",
    "name == tacit", "run a tacit agent", 'who == "tacit"', "pip install --editable /srv/tacit",
]  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_a_command_or_a_requirement_with_the_name_that_is_taken_is_found(text: str) -> None:
    assert list(asked(text)) != []


@pytest.mark.parametrize("text", ALLOWED)
def test_our_own_name_paths_commands_and_imports_are_left_alone(text: str) -> None:
    assert list(asked(text)) == []


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-dev.in", "constraints.txt", "environment.yml"])
def test_a_line_of_a_list_of_requirements_is_found(name: str) -> None:
    assert list(asked(f"numpy\n{TAKEN}\n", name)) != []
    assert list(asked(f"dependencies:\n  - {TAKEN}  # ours?\n", name)) != []
    assert list(asked(f"numpy\n{OURS}\n  - {OURS}==1\n", name)) == []
