"""Runs the code blocks of a page as its reader would: in order, in one empty directory.

    python -m tests.docs_blocks docs/tutorial.md        says what is run, and stops where a page is wrong

A comment right above a block says what is special about it; the built pages do not show these comments:

    <!-- not run: REASON -->        too long, or needs what a test machine has not
    <!-- run by: FILE -->           a test of its own runs it, which needs processes that stay
    <!-- file: NAME ... -->         the reader saves this block under NAME
    <!-- given: NAME ... -->        files that the page takes for granted, made by tests/docs_data.py
    <!-- exits: N -->               the commands end with this exit code
    <!-- output -->                 a text block that holds what the block before it prints; ... stands for anything

Blocks of `sh` are commands. Blocks of `console` have commands after `$ ` and what they print on stdout. Blocks of
`python` share one namespace a page. Blocks of `toml` are parsed, as a schema where they have columns.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parent.parent
RUN = ("python", "sh", "console", "toml")
SHOWN = ("text", "html", "css", "json", "csv")
MARKS = ("not run", "run by", "file", "given", "exits", "output")
ELSEWHERE = {"not run", "run by"}  # marks of blocks that are not run here
FENCE = re.compile(r"^(```+)(.*)$")
MARK = re.compile(r"^<!-- ([a-z ]+?)(?:: (.*?))? -->$")


class Wrong(Exception):
    """A block does not do what its page says."""


@dataclass(frozen=True)
class Block:
    page: Path
    line: int
    language: str
    code: str
    marks: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def pages() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path) -> list[Block]:
    found: list[Block] = []
    lines = page.read_text(encoding="utf-8").splitlines()
    marks: dict[str, str] = {}
    at = 0
    while at < len(lines):
        if opened := FENCE.match(lines[at]):
            end = next(i for i in range(at + 1, len(lines)) if lines[i] == opened[1])
            found.append(Block(page, at + 1, opened[2].strip(), "\n".join(lines[at + 1 : end]) + "\n", marks))
            at, marks = end, {}
        elif (mark := MARK.match(lines[at])) and mark[1] in MARKS:
            marks = {**marks, mark[1]: mark[2] or ""}
        elif lines[at].strip():
            marks = {}  # a mark belongs to the block right below it
        at += 1
    return found


def same(expected: str, printed: str) -> bool:
    """Whether a text is what was printed, line ends aside; ... stands for anything."""
    wanted, got = ("\n".join(line.rstrip() for line in text.strip().splitlines()) for text in (expected, printed))
    return re.fullmatch(re.escape(wanted).replace(r"\.\.\.", ".*"), got, re.DOTALL) is not None


def transcript(code: str) -> list[tuple[str, str]]:
    """(command, what it prints) of a console block; a command goes on after a backslash."""
    parts: list[tuple[str, str]] = []
    goes_on = False
    for line in code.splitlines():
        if line.startswith("$ "):
            parts.append((line[2:], ""))
        elif goes_on:
            parts[-1] = (parts[-1][0] + "\n" + line, "")
        else:
            parts[-1] = (parts[-1][0], parts[-1][1] + line + "\n")
        goes_on = line.endswith("\\")
    return parts


class Session:
    """One reader with one page: a directory, a namespace, and what was printed last."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.printed = ""
        self.module = ModuleType("page")
        sys.modules["page"] = self.module  # dataclasses look their module up
        (folder / "examples").symlink_to(ROOT / "examples")  # a reader of the README is in a checkout
        programs = folder / ".bin"
        programs.mkdir()
        for name, arguments in {"tacit": " -m tacit", "python": ""}.items():
            (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}"{arguments} "$@"\n')
            (programs / name).chmod(0o755)
        self.environment = {
            **os.environ,
            "PATH": os.pathsep.join([str(programs), os.environ["PATH"]]),
            "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(folder)]),
            "HOME": str(folder),
        }

    @property
    def here(self) -> Path:
        """Where the reader is: `cd` of one block holds for the next."""
        noted = self.folder / ".here"
        return Path(noted.read_text().strip()) if noted.exists() else self.folder

    def run(self, block: Block) -> None:
        if "given" in block.marks:
            from tests.docs_data import GIVEN

            for name in block.marks["given"].split():
                GIVEN[name](self.here / name)
        for name in block.marks.get("file", "").split():
            (self.here / name).parent.mkdir(parents=True, exist_ok=True)
            (self.here / name).write_text(block.code, encoding="utf-8")
        if "output" in block.marks:
            if not same(block.code, self.printed):
                raise Wrong(f"{block}: what is printed differs\n{self.printed}")
        elif block.language == "toml":
            self.toml(block)
        elif block.language == "python" and "file" not in block.marks:
            self.python(block)
        elif block.language == "sh":
            self.printed = self.shell(block, block.code)
        elif block.language == "console":
            for command, expected in transcript(block.code):
                self.printed = self.shell(block, command)
                if expected and not same(expected, self.printed):
                    raise Wrong(f"{block}: {command} prints something else\n{self.printed}")

    def shell(self, block: Block, commands: str) -> str:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", f"trap 'pwd > \"{self.folder}/.here\"' EXIT\n{commands}"],
            cwd=self.here, env=self.environment, capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        if done.returncode != int(block.marks.get("exits", "0")):
            raise Wrong(f"{block}: exit code {done.returncode}\n{commands}\n{done.stdout}{done.stderr}")
        return done.stdout

    def python(self, block: Block) -> None:
        told = io.StringIO()
        os.chdir(self.here)
        with contextlib.redirect_stdout(told):
            try:
                exec(compile(block.code, str(block), "exec"), self.module.__dict__)
            except Exception as error:
                raise Wrong(f"{block}: {type(error).__name__}: {error}") from error
        self.printed = told.getvalue()

    def toml(self, block: Block) -> None:
        from tacit import toml
        from tacit.data.schema import parse

        holds = toml.loads(block.code, str(block))
        if "columns" in holds:
            kinds = {column["kind"] for column in holds["columns"].values()}
            more = "" if kinds & {"label", "target"} else '\n[columns.label]\nkind = "label"\nclasses = ["a", "b"]\n'
            more += '\n[columns.another]\nkind = "numeric"\nlo = 0\nhi = 1\n'  # a fragment may show the label alone
            parse(block.code + more)


def run_page(page: Path) -> None:
    with tempfile.TemporaryDirectory() as name:
        session = Session(Path(name))
        os.chdir(name)
        sys.path[:0] = [name]
        for block in blocks(page):
            if block.marks.keys() & ELSEWHERE or not (block.language in RUN or block.marks.keys() & {"file", "output"}):
                continue
            start = time.perf_counter()
            session.run(block)
            print(f"{time.perf_counter() - start:6.2f} s  {block} {block.language}")
        os.chdir(ROOT)


if __name__ == "__main__":
    try:
        run_page(Path(sys.argv[1]).resolve())
    except Wrong as wrong:
        sys.exit(str(wrong))
