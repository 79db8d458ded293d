"""Mistakes of an operator with accounts and with sites that are not there, in real processes."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest

pytest.importorskip("flwr")

from tacit.cli import main
from tacit.errors import Interrupted
from tacit.federation import commands, control, ledger_files, local_demo, nodes
from tacit.federation.site import read
from tests.distributed.accounts import LINK, accounts_differ, as_user, give
from tests.distributed.conftest import Federation, until


def test_a_file_that_is_closed_to_the_coordinators_process_is_named_at_once(short):
    """Step 22: link ran under the account of its unit, and run as root: ten minutes of silence, and no reason."""
    folder = short / "f"
    local_demo.make(folder, 2)
    short.chmod(0o755)
    if not accounts_differ(short / "spare"):
        pytest.skip("accounts cannot be told apart here, which needs root, unshare and setpriv")
    with Federation(folder) as federation:
        coordinator = federation.coordinator
        ports = (coordinator / commands.FLOWER).read_text()
        (coordinator / commands.FLOWER).write_text(ports.replace("control = 8000", f"control = {federation.control}"))
        give(coordinator, LINK, LINK)
        federation.wrapped["superlink"] = lambda words: as_user(LINK, words, short / "spare")
        federation.start("superlink")
        until(lambda: nodes.listens(federation.control))
        run = [sys.executable, "-m", "tacit", "federate", "run", str(coordinator)]

        began = time.monotonic()
        assert f"sudo -u '#{LINK}' " in ended(run)
        assert time.monotonic() - began < 20
        assert not (coordinator / "flower" / control.LOCK).exists()

        (coordinator / "flower").mkdir(exist_ok=True)
        give(coordinator / "flower", LINK, LINK)
        (coordinator / "flower" / control.LOCK).touch(0o600)  # as root did
        failed = ended(as_user(LINK, run, short / "spare"))
        assert f"{control.LOCK} is closed to this account" in failed
        assert f"chown -R {LINK}: {coordinator}" in failed

        (coordinator / "flower" / control.LOCK).unlink()
        (coordinator / "flower" / control.STATE).mkdir()  # what Flower's process cannot write, and only Flower knows of
        began = time.monotonic()
        failed = ended(as_user(LINK, run, short / "spare"))
        print(f"{time.monotonic() - began:.0f} s", failed)
        assert time.monotonic() - began < 60
        assert "ServerApp failed with exception" in failed
        assert "Is a directory" in failed
        assert "flwr log" in failed


def ended(words):
    """What a command that ends with exit code 2 says."""
    failed = subprocess.run(words, capture_output=True, text=True, check=False, timeout=110)
    assert failed.returncode == 2, failed.stderr
    assert "Traceback" not in failed.stderr
    return failed.stderr


def test_who_is_missing_is_named_while_the_coordinator_waits_and_by_the_status_after_it(short, capsys):
    """Fault 13: nothing for ten minutes, and a status that says "waiting for sites" of a run that has stopped."""
    folder = short / "f"
    local_demo.make(folder, 2)
    with Federation(folder) as federation:
        plan = federation.coordinator / "federation.toml"
        plan.write_text(plan.read_text().replace("resend = 20.0", "resend = 5.0\nstart_deadline = 38.0"))
        for name in ("superlink", "door"):
            federation.start(name)
        until(lambda: nodes.listens(federation.control) and nodes.listens(federation.port))
        nodes.register(federation.coordinator, control=federation.control)
        ledger_files.init(read(folder / "abroad" / "agent" / "site.toml"))
        for name in ("hungary-node", "abroad-agent", "abroad-node"):
            federation.start(name)
        with pytest.raises(Interrupted, match="no word came from ohio, hungary"):
            federation.train(federation.show)
    (line,) = [one for one in federation.lines if one.startswith("before the first round: waiting for ")]
    ohio, hungary = line.split("), hungary (")
    assert "ohio (its node is not connected since the coordinator's process began" in ohio
    assert "the agent service behind it gives no answer" in hungary
    assert "abroad" not in line
    capsys.readouterr()
    assert main(["federate", "status", str(folder)]) == 0
    assert "stopped: the run does not begin: no word came from ohio, hungary" in capsys.readouterr().out
    assert main(["federate", "status", "--json", str(folder)]) == 0
    assert json.loads(capsys.readouterr().out)["state"] == "stopped"
