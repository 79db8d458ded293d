"""The systemd units that `tacit federate init` writes: what they keep from a process that does not need it."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tacit.cli.agent import NOT_RESTARTED
from tacit.federation import folders

pytest.importorskip("cryptography")

UNITS = {"superlink": "coordinator", "door": "coordinator", "agent": "ohio", "node": "ohio"}
EVERYWHERE = {
    "LimitCORE": "0", "UMask": "0077", "NoNewPrivileges": "true", "CapabilityBoundingSet": "",
    "ProtectSystem": "strict", "ProtectHome": "true", "ProtectProc": "invisible", "PrivateTmp": "true",
    "PrivateDevices": "true", "RestrictNamespaces": "true", "MemoryDenyWriteExecute": "true",
    "SystemCallArchitectures": "native",
}  # fmt: skip
WORST = 40  # tenths of systemd's exposure


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("units") / "study"
    folders.make(folder, folders.FolderLayout("study", {"ohio": ("ohio",)}))
    return {unit: folder / party / f"{unit}.service" for unit, party in UNITS.items()}


def directives(path):
    """The values of each directive of a unit, in order."""
    found = {}
    for line in path.read_text().splitlines():
        if "=" in line and not line.startswith("#"):
            key, _, value = line.partition("=")
            found.setdefault(key, []).append(value)
    return found


@pytest.mark.parametrize("unit", UNITS)
def test_a_unit_keeps_from_its_process_what_it_does_not_need(written, unit):
    found = directives(written[unit])
    assert {key: found[key] for key in EVERYWHERE} == {key: [value] for key, value in EVERYWHERE.items()}
    assert found["SystemCallFilter"][:2] == ["@system-service", "~@privileged @resources"]
    assert int(found["LimitNOFILE"][0]) >= 4096
    assert "$" not in written[unit].read_text()


def test_the_agent_has_no_network_and_writes_ledgers_witnesses_and_its_socket_alone(written):
    found = directives(written["agent"])
    assert found["RestrictAddressFamilies"] == ["AF_UNIX"]
    assert (found["PrivateNetwork"], found["IPAddressDeny"]) == (["true"], ["any"])
    folder = "-/srv/tacit/ohio"
    assert found["ReadWritePaths"] == [f"{folder}/agent/ledger {folder}/agent/witness {folder}/socket"]
    assert found["SystemCallFilter"][2:] == ["@chown"]  # of its socket, to the group of both accounts


def test_a_service_that_a_person_has_to_see_to_is_not_started_again(written):
    found = directives(written["agent"])
    assert found["RestartPreventExitStatus"] == [str(NOT_RESTARTED)]
    assert found["Restart"] == ["always"]
    compose = (written["agent"].parent / "compose.yaml").read_text()
    assert 'restart: "on-failure:5"' in compose.partition("  node:")[0]  # compose knows no exit code: it gives up


@pytest.mark.parametrize("unit", UNITS)
def test_systemd_calls_a_unit_safe_and_reads_all_of_it(written, unit, tmp_path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("needs systemd-analyze")
    words = ["systemd-analyze", "--no-pager", "security", "--offline=true", f"--threshold={WORST}", str(written[unit])]
    rated = subprocess.run(words, capture_output=True, text=True, check=False)
    assert rated.returncode == 0, rated.stdout[-200:] + rated.stderr
    assert "Overall exposure level" in rated.stdout
    here = tmp_path / written[unit].name  # the command is not installed here
    text = written[unit].read_text().replace("/srv/tacit/venv/bin/tacit ", f"{shutil.which('true')} ")
    here.write_text(text)
    read = subprocess.run(["systemd-analyze", "verify", str(here)], capture_output=True, text=True, check=False)
    assert (read.returncode, read.stderr) == (0, "")
