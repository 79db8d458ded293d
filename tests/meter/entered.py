"""Print the modules that the second of two equal runs enters, as JSON: python entered.py WORD ...

The words are those of the command `tacit`. The meter runs this file in a process of its own for each tree.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

import tacit
from tacit.cli import main

ROOT = os.path.dirname(tacit.__file__)


def entered(words: list[str]) -> list[str]:
    """Run a command twice, and return the files of the package in which a function ran the second time."""
    found = set()

    def see(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            found.add(frame.f_code.co_filename)

    run(words)
    threading.setprofile(see)
    sys.setprofile(see)
    try:
        run(words)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return sorted(Path(path).relative_to(ROOT).as_posix() for path in found if path.startswith(ROOT + os.sep))


def run(words: list[str]) -> None:
    """Run a command and send its output to the standard error stream."""
    with contextlib.redirect_stdout(sys.stderr):
        if code := main(words):
            raise SystemExit(code)


if __name__ == "__main__":
    print(json.dumps(entered(sys.argv[1:])))
