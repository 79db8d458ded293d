"""A federation trains with what its systemd units allow it, and what they refuse is refused."""

from __future__ import annotations

import ctypes.util
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("flwr")

from tacit.federation import local_demo
from tests.distributed.conftest import Federation

CAGE = Path(__file__).with_name("caged.py")
PROBE = """
import ctypes, json, mmap, socket, sys
def tried(what):
    try:
        what()
        return "allowed"
    except OSError as error:
        return type(error).__name__
def mount():
    if ctypes.CDLL(None, use_errno=True).mount(b"/tmp", b"/mnt", None, 4096, None):
        raise OSError(ctypes.get_errno(), "mount")
site = sys.argv[1]
print(json.dumps({
    "internet": tried(lambda: socket.socket(socket.AF_INET)), "unix": tried(lambda: socket.socket(socket.AF_UNIX)),
    "code": tried(lambda: mmap.mmap(-1, 4096, prot=mmap.PROT_WRITE | mmap.PROT_EXEC)), "mount": tried(mount),
    "records": tried(lambda: open(f"{site}/agent/records/new", "w")),
    "ledger": tried(lambda: open(f"{site}/agent/ledger/new", "w")),
}))
"""


@pytest.fixture(autouse=True)
def tools():
    if shutil.which("systemd-analyze") is None or ctypes.util.find_library("seccomp") is None:
        pytest.skip("needs systemd-analyze and libseccomp")


def caged(unit, folder, words):
    return [sys.executable, str(CAGE), str(unit), str(folder), *words]


def test_a_federation_trains_with_what_its_units_allow(short):
    folder = short / "f"
    local_demo.make(folder, 2)
    with Federation(folder) as federation:
        for name in federation.commands():
            site, _, kind = name.rpartition("-")
            unit = folder / (site or "coordinator") / f"{kind}.service"
            federation.wrapped[name] = lambda words, unit=unit: caged(unit, folder, words)
        federation.begin(federation.show)
        assert len(federation.result().rows()) == 2


def test_what_the_unit_of_the_agent_refuses_is_refused(short):
    folder = short / "f"
    local_demo.make(folder, 2)
    words = caged(folder / "ohio" / "agent.service", folder, [sys.executable, "-c", PROBE, str(folder / "ohio")])
    found = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
    assert found.pop("unix") == found.pop("ledger") == "allowed"
    if found["records"] == "allowed":  # only root can make a file system read-only
        del found["records"]
    assert set(found.values()) <= {"OSError", "PermissionError"}, found
