"""Two accounts at a site, and one account for the coordinator's folder."""

from __future__ import annotations

import grp
import json
import os
import pwd
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from tacit.cli import main
from tacit.errors import IncompatibleError, SpecError
from tacit.federation import accounts, folders, listen
from tacit.federation.site import read as read_site
from tests.federation.sites import make

OWN = str(os.getuid())
TWO = f"callers = ['4242']\ngroup = '{os.getgid()}'"
MISSING = [("callers = ['no-such-one']", "account"), ("group = 'no-such-one'", "group")]
as_root = pytest.mark.skipif(os.getuid() != 0, reason="needs root, to be another account")


def said(site):
    """What the service logs about accounts."""
    lines, stop = [], threading.Event()

    def log(text, **facts):
        if facts.get("event") == "accounts":
            lines.append(text)
        if facts.get("event") == "listening":
            stop.set()

    listen.serve(site, log, stop)
    return lines


@pytest.fixture
def short():
    """A folder with a short name: the path of a socket has some 100 bytes."""
    with tempfile.TemporaryDirectory(prefix="tacit-") as made:
        yield Path(made)


def test_accounts_are_named_by_their_name_or_number(tmp_path):
    site = read_site(make(tmp_path, extra=f"callers = ['{OWN}', '4242']\ngroup = '4243'"))
    assert accounts.users(site) == {os.getuid(), 4242}
    assert accounts.group(site) == 4243
    named = grp.getgrgid(os.getgid())
    assert accounts.group(read_site(make(tmp_path, extra=f"group = '{named.gr_name}'"))) == named.gr_gid
    plain = read_site(make(tmp_path))
    assert (accounts.users(plain), accounts.group(plain)) == ({os.getuid()}, None)


def test_init_writes_two_accounts_and_one_account_is_a_choice(tmp_path):
    pytest.importorskip("cryptography")
    sites = "a,b,c"
    assert main(["federate", "init", str(tmp_path / "two"), "--sites", sites]) == 0
    assert main(["federate", "init", str(tmp_path / "one"), "--sites", sites, "--one-account"]) == 0
    for place, site in enumerate(sites.split(",")):
        two, one = (read_site(tmp_path / way / site / "agent" / "site.toml", with_data=False) for way in ("two", "one"))
        assert (two.callers, two.group) == (("tacit-node",), "tacit-socket")
        assert (one.callers, one.group) == ((), None)
        node = (tmp_path / "one" / site / "node" / "node.toml").read_text()
        assert f"port = {folders.RUNTIME + place}" in node  # of one machine
        assert f"port = {folders.RUNTIME}\n" in (tmp_path / "two" / site / "node" / "node.toml").read_text()


@pytest.mark.parametrize("action", ["serve", "check"])
@pytest.mark.parametrize(("key", "missing"), MISSING)
def test_an_account_that_is_not_there_is_named_with_both_ways_out(tmp_path, capsys, action, key, missing):
    path = make(tmp_path, extra=key)
    assert main(["agent", action, str(path)]) == 2
    told = capsys.readouterr().err
    assert f"this machine has no {missing} 'no-such-one'" in told
    assert ("useradd --system no-such-one" if missing == "account" else "groupadd --force no-such-one") in told
    assert "remove the lines callers and group" in told
    assert "--one-account" in told
    assert told.count("\n") == 1


def test_the_commands_that_an_error_gives_run_nothing_else(tmp_path):
    site = read_site(make(tmp_path, extra="callers = ['a; reboot', '$(reboot)']\ngroup = '`reboot`'"))
    with pytest.raises(SpecError) as error:
        accounts.users(site)
    commands = str(error.value).partition("make it (")[2]
    for part in ("useradd --system 'a; reboot'; useradd --system '$(reboot)'", "groupadd --force '`reboot`'"):
        assert part in commands


def test_the_folder_of_init_names_the_commands_for_the_accounts_that_are_missing(tmp_path):
    pytest.importorskip("cryptography")
    if "tacit-node" in {one.pw_name for one in pwd.getpwall()}:
        pytest.skip("this machine has the account")
    folders.make(tmp_path / "f", folders.FolderLayout("f", {"north": ("north",)}))
    site = read_site(tmp_path / "f" / "north" / "agent" / "site.toml", with_data=False)
    with pytest.raises(SpecError) as error:
        accounts.users(site)
    told = str(error.value)
    assert "useradd --system tacit-node; groupadd --force tacit-socket; usermod -aG tacit-socket tacit-node" in told


@pytest.mark.parametrize("extra", ["", f"callers = ['{OWN}']", f"callers = ['4242', '{OWN}']"])
def test_a_service_whose_node_may_have_its_account_says_so_loudly(short, capsys, extra):
    path = make(short, extra=extra)
    (line,) = said(read_site(path))
    assert line.startswith("WARNING: site.callers ")
    assert "code that the coordinator ships could then read the records" in line
    assert main(["agent", "check", str(path)]) == 0
    assert f"accounts    {line}" in capsys.readouterr().out.splitlines()
    assert main(["agent", "check", "--json", str(path)]) == 0
    assert json.loads(capsys.readouterr().out)["warnings"] == [line]


def test_a_service_with_two_accounts_has_nothing_to_say_about_them(short, capsys):
    path = make(short, extra=TWO)
    assert said(read_site(path)) == []
    assert main(["agent", "check", str(path)]) == 0
    assert "accounts    " not in capsys.readouterr().out


def test_a_caller_that_is_in_no_group_of_the_socket_is_named(short):
    """Where the README was followed but for the group, the node is refused by the system, and nobody says why."""
    other = next((one for one in pwd.getpwall() if one.pw_uid not in (0, os.getuid())
                  and os.getgid() not in os.getgrouplist(one.pw_name, one.pw_gid)), None)  # fmt: skip
    if other is None:
        pytest.skip("this machine has one account")
    (line,) = said(read_site(make(short, extra=f"callers = ['{other.pw_name}']")))
    assert f"account {other.pw_name} is not in the group" in line
    assert f"usermod -aG {grp.getgrgid(os.getgid()).gr_name} {other.pw_name}" in line


CONNECT = """
import os, socket, sys
path, user, *groups = sys.argv[1:]
os.setgroups([int(group) for group in groups])
os.setgid(int(user))
os.setuid(int(user))
with socket.socket(socket.AF_UNIX) as stream:
    stream.connect(path)
    print(stream.recv(100))
"""


@as_root
@pytest.mark.parametrize("grouped", [True, False])
def test_the_group_opens_the_socket_to_the_node_and_to_nobody_else(short, grouped):
    """Step 21 of the first deployment: with callers alone, the node was refused by the system."""
    node, group = 10002, 10000
    extra = f"callers = ['{node}']" + (f"\ngroup = '{group}'" if grouped else "")
    path, stop, ready = make(short, extra=extra), threading.Event(), threading.Event()
    short.chmod(0o755)
    site = read_site(path)

    strangers = []

    def log(_text, **facts):
        if facts.get("event") == "listening":
            ready.set()
        if facts.get("event") == "stranger":
            strangers.append(facts["user"])

    service = threading.Thread(target=listen.serve, args=(site, log, stop))
    service.start()
    try:
        assert ready.wait(30)
        opened = [connects(site, node, group), connects(site, 10003), connects(site, 10003, group)]
    finally:
        stop.set()
        service.join(30)
    assert opened == [grouped, False, grouped]
    assert strangers == ([10003] if grouped else [])  # the system lets in who is in the group, and the service does not


def connects(site, user, *groups):
    """Whether a process of this account can open the socket."""
    words = [sys.executable, "-c", CONNECT, str(site.socket), *map(str, (user, *groups))]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0 or "PermissionError" in done.stderr
    return done.returncode == 0


CHECK = """
import os, sys
import tacit.cli.federate, tacit.federation.accounts, tacit.federation.doctor  # before the account changes
from tacit.cli import main
folder, user, *groups = sys.argv[1:]
os.setgroups([int(group) for group in groups])
os.setgid(int(user))
os.setuid(int(user))
sys.exit(main(["federate", "node", folder, "--check"]))
"""


@as_root
@pytest.mark.parametrize(("extra", "groups", "code", "said"), [
    ("callers = ['10002']\ngroup = '10000'", ["10000"], 0, "agent.sock answers this account"),
    ("callers = ['10002']", ["10000"], 1, "account 10002 may not open"),
    ("callers = ['10003']\ngroup = '10000'", ["10000"], 1, "does not answer account 10002"),
    (None, ["10000"], 1, "no socket at"),
])  # fmt: skip
def test_a_node_says_whether_the_service_answers_its_account(short, extra, groups, code, said):
    """Step 21 to the letter: the README named callers alone, and the node found nobody."""
    pytest.importorskip("cryptography")
    path, stop, ready = make(short, extra=extra or ""), threading.Event(), threading.Event()
    (short / "node").mkdir(mode=0o700)
    (short / "node" / "node.toml").write_text(
        '[node]\nsuperlink = "localhost:1"\nsocket = "../agent.sock"\nport = 9094\n'
    )
    for file in (short / "node", short / "node" / "node.toml"):
        os.chown(file, 10002, 10002)
    short.chmod(0o755)

    def log(_text, **facts):
        if facts.get("event") == "listening":
            ready.set()

    service = threading.Thread(target=listen.serve, args=(read_site(path), log, stop))
    try:
        if extra is not None:
            service.start()
            assert ready.wait(30)
        words = [sys.executable, "-c", CHECK, str(short / "node"), "10002", *groups]
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    finally:
        stop.set()
        if extra is not None:
            service.join(30)
    assert (done.returncode, done.stderr.count("\n")) == (code, code), done.stderr
    assert said in done.stdout + done.stderr


@pytest.mark.parametrize("action", [
    ["run"], ["register"], ["link"], ["revoke", "--site", "north"], ["renew"],
])  # fmt: skip
def test_the_folder_of_another_account_is_refused_with_the_command_of_its_owner(tmp_path, capsys, monkeypatch, action):
    """Step 22 of the first deployment: link under its own account and run as root gave minutes of silence."""
    (tmp_path / "federation.toml").write_text("")
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 4242)
    assert main(["federate", *action, str(tmp_path)]) == 2
    told = capsys.readouterr().err
    assert f"{tmp_path} belongs to account {accounts.name_of(os.getuid())}" in told
    assert f"sudo -u {accounts.name_of(os.getuid())} " in told
    assert f" federate {action[0]} {tmp_path}" in told
    assert sorted(tmp_path.rglob("*")) == before


@as_root
def test_an_account_without_a_name_is_given_by_its_number(tmp_path):
    os.chown(tmp_path, 4242, 4242)
    with pytest.raises(IncompatibleError, match=r"sudo -u '#4242' .*federate run"):
        accounts.check_owner(tmp_path, "run")


def test_the_node_of_another_account_does_not_start(tmp_path, capsys, monkeypatch):
    """It runs code that the coordinator ships: under the account that whoever typed the command has."""
    (tmp_path / "node.toml").write_text('[node]\nsuperlink = "localhost:9092"\nsocket = "s"\nport = 9094\n')
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 4242)
    assert main(["federate", "node", str(tmp_path)]) == 2
    assert "federate node" in capsys.readouterr().err
