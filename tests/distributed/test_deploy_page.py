"""docs/deploy.md, followed literally: every command of its step by step, in order, until the first round."""

from __future__ import annotations

import itertools
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

pytest.importorskip("flwr")

from tacit.federation.nodes import listens
from tests.docs_blocks import ROOT, blocks

PAGE = ROOT / "docs" / "deploy.md"
PORTS = (8000, 9092, 9094, 9095, 9096)  # of the page
PATIENCE = 120.0
STAYS = re.compile(r"tacit (federate (link|door|node)|agent serve) \S+$")


def steps() -> list[tuple[str, list[str]]]:
    """The commands of the step by step, each with what the sentence behind it says that one sees."""
    lines = PAGE.read_text().splitlines()
    first, last = lines.index("## Three institutions, step by step"), lines.index("### Behind a secure sum")
    found = []
    for block in blocks(PAGE):
        if first < block.line < last and block.language == "sh":
            after = itertools.takewhile(
                lambda line: not line.startswith(("```", "<!--", "#")), lines[block.line + block.code.count("\n") + 1 :]
            )
            said = re.search(r"Expect to see (.*?)\.\s", " ".join(after) + " ")
            texts = re.findall(r"`([^`]+)`", said[1]) if said else []
            found.append((block.code, [text.rstrip(". ") for text in texts]))
    return found


class Shell:
    """The terminals of all parties, in one empty folder."""

    def __init__(self, place: Path) -> None:
        self.place, self.running = place, []
        self.path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

    def start(self, command: str) -> tuple[subprocess.Popen, Path]:
        log = self.place / f"{len(self.running)}.log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                ["bash", "-ec", command], cwd=self.place, env=os.environ | {"PATH": self.path}, stdout=out, stderr=out,
                stdin=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        self.running.append(process)
        return process, log

    def sees(self, process: subprocess.Popen, log: Path, texts: list[str]) -> None:
        """Wait until a process has printed these texts; fail if it ends before, or takes too long."""
        end = time.monotonic() + PATIENCE
        while any(text not in " ".join(log.read_text(errors="replace").split()) for text in texts):
            assert process.poll() in (None, 0), log.read_text()
            assert time.monotonic() < end, f"{texts} did not come: {log.read_text()}"
            time.sleep(0.05)

    def end(self) -> None:
        for process in reversed(self.running):
            for number in (signal.SIGTERM, signal.SIGKILL):
                try:
                    os.killpg(process.pid, number)
                    process.wait(10)
                except (ProcessLookupError, subprocess.TimeoutExpired):
                    continue


def test_the_page_has_the_steps_that_are_run():
    commands = "".join(block for block, _ in steps())
    for command in ("federate init", "agent check", "federate link", "federate door", "federate register", "agent init",
                    "agent serve", "federate doctor", "federate node", "federate run"):  # fmt: skip
        assert f"tacit {command}" in commands
    assert sum(bool(texts) for _, texts in steps()) >= 5


def test_deploy_md_followed_literally_reaches_the_first_round():
    if any(map(listens, PORTS)):
        pytest.skip(f"the ports of the page ({PORTS}) are in use on this machine")
    with tempfile.TemporaryDirectory(dir="/tmp") as name:  # a socket's path is short
        shell, began = Shell(Path(name)), time.monotonic()
        try:
            for block, texts in steps():
                stays = [line for line in block.splitlines() if STAYS.search(line)]
                for command in stays or [block]:
                    process, log = shell.start(command)
                    if "tacit federate run" in command:
                        shell.sees(process, log, ["round 1"])
                    elif command in stays:
                        shell.sees(process, log, texts)
                    else:
                        assert process.wait(PATIENCE) == 0, log.read_text()
                        shell.sees(process, log, texts)
            print(f"deploy.md: {time.monotonic() - began:.0f} s until the first round")
        finally:
            shell.end()
