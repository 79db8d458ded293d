"""The faults of a first deployment, with real processes: each ends with a sentence that says what to do."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

pytest.importorskip("flwr")

from tacit._version import __version__
from tacit.federation import certificates, ledger_files, local_demo, nodes
from tacit.federation.local_demo import free_ports
from tacit.federation.site import read
from tests.distributed.conftest import Federation, until

SITE = "ohio"
ELSEWHERE = "127.0.0.2"  # another address of this machine


@pytest.fixture(scope="module")
def running():
    """SuperLink, door and the agent service of one site, whose node is registered; the node is not started."""
    folder = Path(tempfile.mkdtemp(prefix="tacit-", dir="/tmp"))
    local_demo.make(folder / "f", 3)
    with Federation(folder / "f") as federation:
        for site, port in zip(federation.sites, federation.runtime, strict=True):
            address(federation, site, f"localhost:{federation.port}", port)
        ledger_files.init(read(federation.folder / SITE / "agent" / "site.toml", with_data=False))
        for name in ("superlink", "door", f"{SITE}-agent"):
            federation.start(name)
        until(lambda: nodes.listens(federation.control) and nodes.listens(federation.port))
        until((federation.folder / SITE / "socket" / "agent.sock").exists)
        nodes.register(federation.coordinator, control=federation.control)
        yield federation
    shutil.rmtree(folder, ignore_errors=True)


def address(federation, site, superlink, port):
    """Write node.toml."""
    text = f'[node]\nsuperlink = "{superlink}"\nsocket = "../socket/agent.sock"\nport = {port}\n'
    (federation.folder / site / "node" / "node.toml").write_text(text)


@pytest.fixture
def copy(running, tmp_path):
    """A copy of the site's node folder, to be changed, beside the same socket."""
    shutil.copytree(running.folder / SITE / "node", tmp_path / "node", ignore=shutil.ignore_patterns("flower"))
    path = tmp_path / "node" / "node.toml"
    path.write_text(path.read_text().replace("..", str(running.folder / SITE)))
    return tmp_path / "node"


def edit(folder, old, new):
    path = folder / "node.toml"
    text = re.sub(old, new, path.read_text())
    assert text != path.read_text()
    path.write_text(text)


def tacit(action, folder, *words, shift=0.0):
    """Run a command of tacit federate as its own process, whose clock is shifted."""
    program = "import sys, time; real = time.time\n"
    program += f"time.time = lambda: real() + {shift}\n" if shift else ""
    program += "from tacit.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", program, "federate", action, str(folder), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def refused(folder, **options):
    """What `tacit federate node` says before it ends; `doctor` says the same of the same step."""
    done = tacit("node", folder, **options)
    assert done.returncode == 1, done
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    told = json.loads(tacit("doctor", folder, "--json", **options).stdout)
    assert not told["well"]
    return line


def states(done):
    return {one["name"]: one["state"] for one in json.loads(done.stdout)["checks"]}


def waiting(folder, line, then):
    """Start a node, let it say that it waits, change something, and return the whole log once Flower has begun."""
    log = folder / "log"
    with log.open("w") as out:
        words = [sys.executable, "-m", "tacit", "federate", "node", str(folder)]
        process = subprocess.Popen(words, stdout=out, stderr=out, start_new_session=True)
    try:
        until(lambda: line in log.read_text(), 30)
        assert process.poll() is None
        then()
        until(lambda: "Starting Flower SuperNode" in log.read_text(), 60)
        return log.read_text()
    finally:
        os.killpg(process.pid, 9)
        process.wait()


def test_a_site_where_all_is_well_is_told_so_line_by_line(running):
    done = tacit("doctor", running.folder / SITE)
    assert done.returncode == 0, done.stdout
    found = [line.split(None, 2) for line in done.stdout.splitlines()]
    assert {state for _, state, _ in found} == {"ok"}
    names = ["node.key", "socket", "port", "address", "tcp", "tls", "certificate", "clock", "key", "version"]
    assert [name for name, _, _ in found] == names
    assert f"registered for site {SITE}" in done.stdout
    assert f"tacit {__version__}, as the coordinator" in done.stdout


def test_a_folder_that_is_no_nodes_is_bad_input(running, tmp_path):
    for folder in (tmp_path, running.coordinator, tmp_path / "gone"):
        for action in ("doctor", "node"):
            done = tacit(action, folder)
            assert done.returncode == 2
            assert done.stderr.count("\n") == 1
            assert "is no node's folder" in done.stderr


def test_fault_7_a_wrong_authority(copy):
    certificates.authority(copy, "another")
    assert "is not signed by the authority in" in refused(copy)


def test_fault_8_a_key_that_nobody_knows(copy):
    certificates.node(copy / "node.key")
    line = refused(copy)
    assert "the coordinator does not know the key of this node (SHA256:" in line
    assert "tacit federate register" in line
    assert "2004" not in line


def test_fault_8_a_key_that_was_revoked_and_one_that_another_node_uses(running, copy):
    """In one federation: `hungary` is started, copied, and revoked."""
    site = running.folder / "hungary"
    for name in ("node.key", "node.pub"):
        shutil.copy(site / "node" / name, copy / name)
    running.start("hungary-node")
    until(lambda: "SuperNode ID" in (running.folder / "logs" / "hungary-node.log").read_text())
    line = refused_in_use(copy)
    assert "the key of site hungary is in use" in line
    assert re.search(r"lets it in again in \d+ s", line)
    nodes.revoke(running.coordinator, "hungary", control=running.control)
    assert "the coordinator has revoked the key of this node" in refused(copy)


def refused_in_use(folder):
    """A key in use is well while its node runs, so that `doctor` finds nothing wrong."""
    done = tacit("node", folder)
    assert done.returncode == 1
    told = tacit("doctor", folder)
    assert told.returncode == 0, told.stdout
    assert "its node is connected" in told.stdout
    return done.stderr


@pytest.mark.parametrize(("seconds", "says"), [
    (8, "8 s ahead of"), (20, "20 s ahead of"), (3600, "60 min ahead of"), (-3600, "60 min behind"),
])  # fmt: skip
def test_fault_12_a_clock_that_flower_refuses(copy, seconds, says):
    line = refused(copy, shift=seconds)
    assert re.search(rf"this machine's clock is {says.replace('20 s', '(19|20|21) s').replace('8 s', '[789] s')}", line)
    assert "NTP" in line


def test_fault_12_a_clock_that_flower_takes(copy):
    done = tacit("doctor", copy, "--json", shift=-8)
    assert done.returncode == 0
    assert states(done)["clock"] == "note"


@pytest.mark.skipif(not shutil.which("faketime"), reason="no faketime here, which shifts the clock of TLS as well")
def test_fault_12_a_clock_of_two_hours_ago(copy):
    words = ["faketime", "-f", "-2h", sys.executable, "-m", "tacit", "federate", "node", str(copy)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert "is not valid yet by this machine's clock" in done.stderr


def test_fault_13_a_port_that_is_closed_is_named_and_waited_for(running, copy):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    edit(copy, 'superlink = ".*"', f'superlink = "localhost:{port}"')
    done = tacit("doctor", copy)
    assert done.returncode == 1
    assert f"nobody listens at localhost:{port}" in done.stdout

    def correct():
        edit(copy, 'superlink = ".*"', f'superlink = "localhost:{running.port}"')

    found = waiting(copy, f"waiting: nobody listens at localhost:{port}", correct)
    assert found.count("waiting: ") == 1  # not a line for each look


def test_fault_13_a_port_that_does_not_speak_tls(copy):
    with socket.create_server(("127.0.0.1", 0)) as other:
        edit(copy, 'superlink = ".*"', f'superlink = "localhost:{other.getsockname()[1]}"')
        program = "import socket, sys; listener = socket.socket(fileno=int(sys.argv[1]))\n" \
                  "while True: listener.accept()[0].sendall(b'SSH-2.0-x\\r\\n')"  # fmt: skip
        words = [sys.executable, "-c", program, str(other.fileno())]
        process = subprocess.Popen(words, pass_fds=[other.fileno()])
        try:
            assert "does not speak TLS" in refused(copy)
        finally:
            process.kill()
            process.wait()


def test_fault_13_an_own_port_that_is_taken(copy):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        edit(copy, r"port = \d+", f"port = {port}")
        done = tacit("node", copy)
    assert done.returncode == 1
    assert f"port: {port} of 127.0.0.1 cannot be taken (Address already in use)" in done.stderr


def test_a_node_whose_agent_service_comes_later_waits_for_it(running, copy):
    edit(copy, 'socket = ".*"', f'socket = "{copy}/agent.sock"')

    def there():
        (copy / "agent.sock").symlink_to(running.folder / SITE / "socket" / "agent.sock")

    waiting(copy, f"waiting: no socket at {copy}/agent.sock yet", there)


# ---- the door


def context(running):
    return ssl.create_default_context(cafile=str(running.coordinator / "ca.pem"))


def connect(running, source):
    return socket.create_connection(("127.0.0.1", running.port), 20.0, source_address=(source, 0))


def log_of(running):
    text = (running.folder / "logs" / "door.log").read_text()
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines() if line[0] == "{"]


def test_fault_26_a_thousand_half_requests_of_one_address_keep_nobody_out(running, copy):
    """Half are in TLS, half before it; the door allows one address 64."""
    tls = context(running)
    with ExitStack() as held:
        refused = 0
        for n in range(998):
            stream = held.enter_context(connect(running, ELSEWHERE))
            try:
                if n % 2:
                    stream = held.enter_context(tls.wrap_socket(stream, server_hostname="localhost"))
                stream.sendall(b"POST /v1/fleet/pull-messages HTTP/1.1\r\nHost: x\r\n")
            except OSError:
                refused += 1
        assert refused
        start = time.monotonic()
        done = tacit("doctor", copy)
        assert done.returncode == 0, done.stdout
        assert time.monotonic() - start < 20.0
    found = [one for one in log_of(running) if one["peer"] == ELSEWHERE]
    assert {one["event"] for one in found} >= {"connected", "turned away"}
    until(lambda: tacit_connects(running, ELSEWHERE), 30)  # the address has its places again


def tacit_connects(running, source):
    try:
        with context(running).wrap_socket(connect(running, source), server_hostname="localhost"):
            return True
    except OSError:
        return False


def ask(running, request, source="127.0.0.1"):
    with context(running).wrap_socket(connect(running, source), server_hostname="localhost") as stream:
        stream.settimeout(20.0)
        stream.sendall(request)
        found = b""
        while more := stream.recv(4096):
            found += more
        return found


@pytest.mark.parametrize(("method", "body", "status"), [
    ("GET", b"", 404), ("PUT", b"", 404), ("POST", b"{", 400), ("POST", b"x" * 4097, 413),
    ("POST", b'{"challenge": "00", "key": "", "signature": ""}', 400),
])  # fmt: skip
def test_what_is_no_question_about_a_key_is_refused_and_reaches_no_superlink(running, method, body, status):
    head = f"{method} /v1/tacit/key HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    found = ask(running, head.encode() + body)
    assert found.startswith(f"HTTP/1.1 {status} ".encode())
    for path in ("/v1/tacit/key/", "/v1/tacit/keys", "/v1/tacit/../control/start-run", "/v1/tacit/key%2f"):
        other = f"POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        assert ask(running, other.encode()).startswith(b"HTTP/1.1 404 "), path


def test_every_answer_of_the_door_has_one_date_and_no_name_of_a_server(running):
    for path in ("/", "/v1/fleet/pull-messages", "/v1/tacit/key", "/v1/control/start-run"):
        request = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        head = ask(running, request.encode()).partition(b"\r\n\r\n")[0].lower()
        assert head.count(b"\r\ndate: ") == 1, path
        assert b"\r\nserver:" not in head
    assert b"\r\ndate: " in ask(running, b"\x00\r\n\r\n")


def test_fault_28_the_log_says_who_connected_and_nothing_of_what_was_said(running):
    source, secret = "127.0.0.3", "flwr-signature: SECRET\r\nx-forwarded-for: 9.9.9.9"
    path = "/v1/\x7f{" + "a" * 500
    ask(running, f"POST {path} HTTP/1.1\r\nHost: x\r\n{secret}\r\nContent-Length: 6\r\n\r\nSECRET".encode(), source)
    ask(running, f"POST /v1/fleet/pull-messages HTTP/1.1\r\nHost: x\r\n{secret}\r\nConnection: close\r\n"
                 "Content-Length: 6\r\n\r\nSECRET".encode(), source)  # fmt: skip

    def found_of_peer():  # the line follows the answer
        found = [one for one in log_of(running) if one["peer"] == source]
        return found if any(one.get("path") == "/v1/fleet/pull-messages" for one in found) else None

    found = until(found_of_peer, 20)
    assert found[0]["event"] == "connected"
    assert all(set(one) <= {"at", "event", "peer", "times", "path", "status", "received", "sent"} for one in found)
    assert {one.get("status") for one in found} & {400, 404}
    (passed,) = [one for one in found if one.get("path") == "/v1/fleet/pull-messages"]
    assert passed["status"] >= 400
    assert passed["received"] == 6
    text = (running.folder / "logs" / "door.log").read_text()
    assert "SECRET" not in text
    assert "9.9.9.9" not in text
    assert max(map(len, text.splitlines())) < 500


def test_a_door_that_ends_writes_what_it_has_counted(running, short):
    folder = short / "coordinator"
    shutil.copytree(running.coordinator, folder, ignore=shutil.ignore_patterns("link.db*", "flower", "runs"))
    (port,) = free_ports(1)
    words = [sys.executable, "-m", "tacit", "federate", "door", str(folder), "--host", "127.0.0.1", "--port", str(port)]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    until(lambda: nodes.listens(port))
    for _ in range(3):
        socket.create_connection(("127.0.0.1", port), 20.0).close()
    process.terminate()
    lines = [json.loads(line) for line in process.communicate(timeout=30)[1].splitlines()]
    assert sum(line["times"] for line in lines if line["event"] == "connected") >= 3


def test_a_door_with_a_limit_of_its_own_takes_it_from_flower_toml(running, short):
    folder = short / "coordinator"
    shutil.copytree(running.coordinator, folder, ignore=shutil.ignore_patterns("link.db*", "flower", "runs"))
    with (folder / "flower.toml").open("a") as file:
        file.write("per_address = 0\n")
    done = tacit("door", folder)
    assert done.returncode == 2
    assert "flower.per_address takes a number from 1 to 65535, got 0" in done.stderr
