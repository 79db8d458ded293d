"""The parts of a federation over Flower, one by one: courier, transport, door, certificates and folders."""

from __future__ import annotations

import asyncio
import configparser
import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("flwr")

import httpx
import yaml
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_ssh_private_key, load_ssh_public_key
from flwr.app import Array, ArrayRecord, ConfigRecord, Error, Message, MetricRecord, RecordDict
from flwr.supercore.task_identity import TaskIdentity

from tacit.cli import main
from tacit.errors import SpecError
from tacit.federation import certificates, courier, door, flower, folders, messages, nodes, wire
from tacit.federation.flower import GridTransport
from tacit.federation.local_demo import free_ports
from tacit.federation.nodes import listens
from tacit.federation.plan import read_plan
from tests.distributed.conftest import until

ASK = messages.Ask("r", "a" * 64, 3, 0, ("x", "y"), (), {"point": np.arange(6.0).reshape(1, 2, 3)})
EMPTY = messages.SiteAnswer("r", 3, 0, (), ("x",), np.zeros((0, 6), np.uint64))


@pytest.fixture(autouse=True)
def a_task(monkeypatch):
    """Flower's messages name the run of their process."""
    for name in ("_run_id", "_node_id", "_task_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)


# ---- the courier


@pytest.mark.parametrize("message", [messages.Hello(), ASK, EMPTY])
def test_a_message_survives_flowers_records(message):
    header, body = messages.written(message)
    found = courier.records(header, body)
    inflated = RecordDict({name: type(one).inflate(one.deflate(), one.children) for name, one in found.items()})
    again, same = courier.frame(inflated)
    assert json.loads(json.dumps(header)) == again
    assert body == same
    assert type(messages.read(again, same, (type(message),))) is type(message)


def _changed(**records):
    found = courier.records(*messages.written(ASK))
    return RecordDict({**found, **records})


def _config(**values):
    return ConfigRecord({"version": 1, "header": '{"kind": "ask", "arrays": {}}'} | values)


def _array(dtype="float64", shape=(2, 3), stype="tacit.f8", data=bytes(48)):
    return ArrayRecord({"w": Array(dtype, shape, stype, data)})


@pytest.mark.parametrize(
    "content",
    [
        RecordDict(),
        _changed(more=ConfigRecord({})),
        _changed(more=MetricRecord({"accuracy": 1.0})),
        _changed(tacit=_config(version=2)),
        _changed(tacit=_config(header=b"{}")),
        _changed(tacit=_config(header="[1]")),
        _changed(tacit=_config(header='{"kind": NaN, "arrays": {}}')),
        _changed(tacit=_config(header='{"kind": "ask", "arrays": {"point": [0, 3]}}')),
        _changed(tacit=_config(header='{"kind": "ask", "arrays": {"v": [1, 3]}}')),
        _changed(tacit=_config(more=1)),
        _changed(arrays=ConfigRecord({})),
        _changed(arrays=_array(dtype="object")),
        _changed(arrays=_array(stype="numpy.ndarray")),
        _changed(arrays=_array(shape=(2, 2))),
        _changed(arrays=_array(shape=(2, -3))),
        _changed(arrays=_array(shape=(6,) * 9)),
    ],
)
def test_records_that_hold_no_message_of_ours_are_refused(content):
    with pytest.raises(wire.Malformed):
        courier.frame(content)


class Answering:
    """A service that gives one prepared reply, or hangs up."""

    def __init__(self, path: Path, reply) -> None:
        self.heard: list = []
        self.door = socket.socket(socket.AF_UNIX)
        self.door.bind(str(path))
        self.door.listen()
        threading.Thread(target=self.serve, args=(reply,), daemon=True).start()

    def serve(self, reply) -> None:
        stream, _ = self.door.accept()
        self.door.close()
        with stream:
            self.heard.append(wire.receive(stream, 1 << 20))
            if isinstance(reply, bytes):
                stream.sendall(reply)
            elif reply is not None:
                wire.send(stream, *messages.written(reply))


def carried(path, **config):
    question = Message(courier.records(*messages.written(ASK)), 7, courier.KIND)
    context = SimpleNamespace(node_config={"socket": str(path)} | config)
    return courier.frame(courier.carry(question, context).content)


def test_the_courier_brings_the_question_to_the_service_and_its_answer_back(short):
    refusal = messages.Refusal("r")
    service = Answering(short / "s", refusal)
    assert carried(short / "s") == tuple(messages.written(refusal))
    ((header, body),) = service.heard
    found = messages.read(header, body, (messages.Ask,))
    assert found.asked == ASK.asked
    np.testing.assert_array_equal(found.parameters["point"], ASK.parameters["point"])


@pytest.mark.parametrize("reply", [None, b"GET / HTTP/1.1\r\n\r\n", wire.PREFIX.pack(wire.MARK, 1 << 30, 0)])
def test_a_service_that_hangs_up_or_babbles_is_absent(short, reply):
    Answering(short / "s", reply)
    assert carried(short / "s") == ({"kind": "absent", "arrays": {}}, b"")


def test_no_service_is_absent_and_nothing_of_the_reason_leaves(short, capsys):
    found = carried(short / "nobody")
    assert found == ({"kind": "absent", "arrays": {}}, b"")
    assert "no answer" in capsys.readouterr().out  # for the site's own log


def test_a_service_that_does_not_answer_in_time_is_absent(short):
    door = socket.socket(socket.AF_UNIX)
    door.bind(str(short / "s"))
    door.listen()
    start = time.monotonic()
    assert carried(short / "s", timeout=0.2)[0]["kind"] == "absent"
    assert time.monotonic() - start < 5.0
    door.close()


def test_the_shipped_courier_needs_no_tacit_and_imports_no_numpy_of_its_own(short):
    folders.ship(short / "app")
    program = f"""
import sys
sys.path.insert(0, {str(short / "app")!r})
import builtins
real = builtins.__import__
def watched(name, scope=None, *rest):
    asker = (scope or {{}}).get("__name__", "")
    known = {{*sys.stdlib_module_names, "flwr", "wire", ""}}
    if asker.startswith("{folders.MODULE}") and name.split(".")[0] not in known:
        raise SystemExit(f"{{asker}} imports {{name}}")
    if name.split(".")[0] == "tacit":
        raise SystemExit("tacit is imported")
    return real(name, scope, *rest)
builtins.__import__ = watched
from {folders.MODULE}.courier import app
assert type(app).__name__ == "ClientApp"
assert not [name for name in sys.modules if name.split(".")[0] == "tacit"]
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr or done.stdout


# ---- the transport


class Grid:
    """A grid whose nodes answer what a test says."""

    def __init__(self, here=(1, 2)) -> None:
        self.here, self.pushed, self.replies = list(here), {}, []

    def get_node_ids(self):
        return self.here

    def push_messages(self, some):
        found = []
        for message in some:
            name = f"m{len(self.pushed)}"
            message.metadata.__dict__["_message_id"] = name
            self.pushed[name] = message
            found.append(name)
        return found

    def pull_messages(self, names):
        found = [one for one in self.replies if one.metadata.reply_to_message_id in names]
        self.replies = [one for one in self.replies if one not in found]
        return found

    def answer(self, name, content, node=None):
        reply = Message(content, reply_to=self.pushed[name])
        if node is not None:
            reply.metadata.__dict__["_src_node_id"] = node
        self.replies.append(reply)


@pytest.fixture
def grid():
    return Grid()


def asked(grid, seconds=60.0):
    transport = GridTransport(grid, {"north": 1, "south": 2}, seconds)
    transport.send("north", *messages.written(ASK))
    return transport


def reply():
    return courier.records(*messages.written(messages.Refusal("r")))


def test_an_answer_is_of_the_site_whose_node_gave_it(grid):
    transport = asked(grid)
    grid.answer("m0", reply())
    assert transport.received(0.0) == [("north", *messages.written(messages.Refusal("r")))]
    assert transport.received(0.0) == []
    assert grid.pushed["m0"].metadata.dst_node_id == 1


def test_an_answer_that_another_node_gives_is_dropped(grid):
    transport = asked(grid)
    grid.answer("m0", reply(), node=2)
    assert transport.received(0.0) == []
    assert transport.dropped == 1


@pytest.mark.parametrize(
    "content", [Error(1, "gone"), RecordDict(), courier.records({"kind": courier.ABSENT, "arrays": {}}, b"")]
)
def test_errors_of_flower_absent_services_and_what_is_no_message_are_no_answer(grid, content):
    transport = asked(grid)
    grid.answer("m0", content)
    assert transport.received(0.0) == []
    assert not transport.waiting


@pytest.mark.parametrize(("content", "why"), [
    (None, "asked 0 s ago, no answer yet"),
    (Error(12, "/home/site/secret"), "its node could not run the courier, error 12 of Flower: see its log"),
    (courier.records({"kind": courier.ABSENT, "arrays": {}}, b""), flower._NO_SERVICE),
    (courier.records(*messages.written(messages.Refusal("r"))), "no answer yet"),
])  # fmt: skip
def test_the_coordinator_knows_as_much_of_a_silent_site_as_flower_and_the_courier_say(grid, content, why):
    """The courier of a site without a service says a fixed word: no path, and no reason."""
    transport = asked(grid)
    if content is not None:
        grid.answer("m0", content)
        transport.received(0.0)
    assert transport.absence("north") == why
    assert transport.absence("west") == "no key of its node is registered: tacit federate register"


def test_a_node_that_is_away_is_told_from_one_that_never_came(grid, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(flower, "time", SimpleNamespace(monotonic=lambda: now[0]))
    grid.here = [2]
    transport = GridTransport(grid, {"north": 1, "south": 2}, 60.0)
    assert transport.absence("south") == "no answer yet"
    assert transport.absence("north").startswith("its node is not connected since the coordinator's process began")
    now[0], grid.here = 40.0, []
    assert transport.absence("south").startswith("its node is not connected for 40 s")


def test_nothing_is_sent_to_a_node_that_is_away_or_unknown(grid):
    grid.here = [2]
    transport = asked(grid)
    transport.send("west", *messages.written(ASK))
    assert not grid.pushed


def test_a_node_that_has_a_question_gets_no_copy_of_it(grid):
    transport = asked(grid)
    transport.send("north", *messages.written(ASK))
    assert list(grid.pushed) == ["m0"]
    transport.send("north", *messages.written(messages.Hello()))
    transport.send("south", *messages.written(ASK))
    assert list(grid.pushed) == ["m0", "m1", "m2"]
    grid.answer("m0", courier.records({"kind": courier.ABSENT, "arrays": {}}, b""))
    assert transport.received(0.0) == []
    transport.send("north", *messages.written(ASK))  # its service was away: once more
    assert list(grid.pushed)[3:] == ["m3"]


def test_a_question_to_a_node_that_went_away_is_asked_again_when_it_is_back(grid, monkeypatch):
    monkeypatch.setattr(flower, "_SEEN", 0.0)
    transport = asked(grid)
    grid.here = []
    transport.send("north", *messages.written(ASK))
    grid.here = [1]
    transport.send("north", *messages.written(ASK))
    assert list(grid.pushed) == ["m0", "m1"]


def test_a_message_lives_for_a_while_and_is_then_forgotten(grid):
    transport = asked(grid, 0.05)
    assert grid.pushed["m0"].metadata.ttl == 0.05
    time.sleep(0.06)
    assert transport.received(0.0) == []
    assert not transport.waiting


def test_two_sites_on_one_node_are_refused(grid):
    with pytest.raises(SpecError, match="same node"):
        GridTransport(grid, {"north": 1, "south": 1}, 60.0)


# ---- the door


@pytest.fixture
def served(short):
    """A door before a server that tells what reached it; the addresses of both."""
    certificates.authority(short, "trial")
    certificates.server(short, ["127.0.0.1"])
    inner, outer = free_ports(2)
    heard: list[bytes] = []

    async def converse(reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(dict(line.split(b": ", 1) for line in head.lower().split(b"\r\n")[1:-2]).get(b"content-length", 0))
        heard.append(head + await reader.readexactly(length))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
        await writer.drain()
        writer.close()

    async def upstream():
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(short / "server.pem", short / "server.key")
        await (await asyncio.start_server(converse, "127.0.0.1", inner, ssl=context)).serve_forever()

    threading.Thread(target=lambda: asyncio.run(upstream()), daemon=True).start()
    program = f"from pathlib import Path; from tacit.federation import door; door.serve('127.0.0.1', {outer}, " \
              f"'https://127.0.0.1:{inner}', Path({str(short)!r}), 64, lambda: True)"  # fmt: skip
    process = subprocess.Popen([sys.executable, "-c", program])
    until(lambda: listens(outer) and listens(inner))
    context = ssl.create_default_context(cafile=str(short / "ca.pem"))
    with httpx.Client(base_url=f"https://127.0.0.1:{outer}", verify=context, trust_env=False) as client:
        yield client, heard, outer
    process.kill()
    process.wait()


def raw(short, port, request):
    """The status of a request whose bytes no library has tidied."""
    context = ssl.create_default_context(cafile=str(short / "ca.pem"))
    with context.wrap_socket(socket.create_connection(("127.0.0.1", port)), server_hostname="127.0.0.1") as stream:
        stream.settimeout(10.0)
        stream.sendall(request)
        return stream.recv(4096).split(b" ")[1:2]


def test_the_door_lets_nodes_through_and_nobody_else(served, short):
    client, heard, port = served
    assert client.post("/v1/fleet/pull-messages", content=b"hello", headers={"flwr-signature": "s"}).text == "ok"
    assert b"hello" in heard[0]
    assert b"flwr-signature: s" in heard[0]
    for path in ("control/start-run", "control/register-node", "runtime/acquire-task", "fleet/"):
        assert client.post(f"/v1/{path}").status_code == 404
    assert client.get("/v1/fleet/pull-messages").status_code == 404
    for path in (
        "/v1/fleet/../control/start-run", "/v1/fleet/%2e%2e/control/start-run", "/v1/fleet/x/../../control/x",
        "//v1/control/start-run", "/v1/fleet/..;/control", "/v1/fleet\\..\\control", "/V1/control/start-run",
        "https://127.0.0.1/v1/control/start-run",
    ):  # fmt: skip
        request = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()
        assert raw(short, port, request) != [b"200"], path
    head = b"POST /v1/fleet/x HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    raw(short, port, head + b"POST /v1/control/start-run HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
    assert not [one for one in heard if b"/v1/fleet/" not in one.split(b"\r\n")[0] or b"control" in one]


def passed(short, *callers):
    """The statuses that a door, whose SuperLink is away, gives callers that come at once, each with its pieces."""
    certificates.authority(short, "trial")
    certificates.server(short, ["127.0.0.1"])
    (port,) = free_ports(1)
    scope = {"type": "http", "method": "POST", "raw_path": b"/v1/fleet/pull-messages", "headers": []}

    async def all_at_once():
        one = door.NodeProxy(f"https://127.0.0.1:{port}", short / "ca.pem")

        async def call(pieces):
            peer, pieces = pieces if isinstance(pieces, tuple) else ("192.0.2.1", pieces)
            sent, left = [], iter(pieces)

            async def receive():
                await asyncio.sleep(0)
                piece = next(left)
                if piece is None:  # it says no more
                    await asyncio.sleep(60)
                return {"type": "http.disconnect"} if piece == "gone" else {
                    "type": "http.request", "body": piece, "more_body": bool(piece),
                }  # fmt: skip

            async def send(event):
                sent.append(event)

            await one(scope | {"client": (peer, 1)}, receive, send)
            return sent[0]["status"] if sent else None

        found = await asyncio.gather(*map(call, callers))
        assert not one.held
        return found

    return asyncio.run(all_at_once())


def test_the_door_says_that_the_superlink_is_away(short):
    assert passed(short, [b"body", b""]) == [503]  # Flower's nodes try again


def test_strangers_cannot_fill_the_memory_of_the_door_nor_hold_it(short, monkeypatch):
    monkeypatch.setattr(door, "LARGEST_BODY", 10)
    monkeypatch.setattr(door, "LARGEST_HELD", 15)
    monkeypatch.setattr(door, "ARRIVAL", 0.2)
    eight, slow = [b"x" * 8, b""], [b"x", None]
    assert passed(short, [b"x" * 8, b"x" * 8, b""]) == [413]
    monkeypatch.setattr(door, "AWAY", 502)
    assert sorted(passed(short, eight, eight)) == [502, 503]  # the second finds no room
    assert passed(short, slow) == [408]
    assert passed(short, [b"half", "gone"]) == [None]  # and nothing is passed on


def test_one_address_cannot_take_the_memory_of_the_door_from_the_others(short, monkeypatch):
    monkeypatch.setattr(door, "LARGEST_OF_PEER", 15)
    monkeypatch.setattr(door, "AWAY", 502)
    eight = [b"x" * 8, b""]
    found = passed(short, ("192.0.2.1", eight), ("192.0.2.1", eight), ("192.0.2.2", eight), ("2001:db8::1", eight),
                   ("2001:db8::2", eight))  # fmt: skip
    assert found[2] == 502
    assert sorted(found[:2]) == [502, 503]
    assert sorted(found[3:]) == [502, 503]  # of one network


# ---- certificates and folders


def test_keys_are_secret_and_certificates_are_for_the_server_alone(tmp_path):
    certificates.authority(tmp_path, "trial")
    certificates.server(tmp_path, ["fl.example.org"])
    certificates.node(tmp_path / "node")
    for name in ("ca.key", "server.key", "node"):
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o600
    server = x509.load_pem_x509_certificate((tmp_path / "server.pem").read_bytes())
    ca = x509.load_pem_x509_certificate((tmp_path / "ca.pem").read_bytes())
    server.verify_directly_issued_by(ca)
    assert not server.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    names = server.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["fl.example.org", "localhost"]
    key = load_ssh_private_key((tmp_path / "node").read_bytes(), None)
    assert key.public_key() == load_ssh_public_key((tmp_path / "node.pub").read_bytes())
    assert key.curve.name == "secp384r1"


@pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="no ssh-keygen here")
def test_ssh_keygen_reads_the_key_of_a_node(tmp_path):
    certificates.node(tmp_path / "node")
    words = ["ssh-keygen", "-y", "-f", str(tmp_path / "node")]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.split()[:2] == (tmp_path / "node.pub").read_text().split()[:2]


@pytest.fixture
def made(tmp_path, capsys):
    words = ["federate", "init", str(tmp_path / "f"), "--sites", "north,south", "--agents", "north=a,b"]
    assert main([*words, "--address", "fl.example.org"]) == 0
    capsys.readouterr()
    return tmp_path / "f"


def test_no_site_gets_a_key_that_is_not_its_own(made):
    secret = {path.read_bytes() for path in made.rglob("*") if path.is_file() and b"PRIVATE KEY" in path.read_bytes()}
    assert len(secret) == 4  # CA, server, two nodes
    for site in ("north", "south"):
        own = [path for path in (made / site).rglob("*") if path.is_file() and b"PRIVATE KEY" in path.read_bytes()]
        assert [path.name for path in own] == ["node.key"]
    assert not list((made / "coordinator").rglob("node.key"))
    for path in made.rglob("*.key"):
        assert path.stat().st_mode & 0o777 == 0o600
    for folder in ("coordinator", "north/agent", "north/node"):
        assert (made / folder).stat().st_mode & 0o777 == 0o700


def test_the_folders_say_who_is_who(made):
    plan = read_plan(made / "coordinator")
    assert {site.name: site.agents for site in plan.sites} == {"north": ("a", "b"), "south": ("south",)}
    for text in ((made / name / "compose.yaml").read_text() for name in ("coordinator", "north")):
        assert yaml.safe_load(text)["services"]
    for path in made.rglob("*.service"):
        unit = configparser.ConfigParser(strict=False)  # a list may go on in a second line
        unit.optionxform = str
        unit.read_string(path.read_text())
        assert unit["Service"]["ExecStart"].startswith("/srv/tacit/venv/bin/tacit ")
        assert "$" not in path.read_text()
    assert "fl.example.org:9092" in (made / "north" / "README.md").read_text()


def test_the_commands_are_flowers_own_with_telemetry_off(made, capsys):
    assert main(["federate", "link", str(made), "--print"]) == 0
    link = capsys.readouterr().out
    assert "flower-superlink --host 127.0.0.1" in link
    assert "--enable-supernode-auth" in link
    assert "--insecure" not in link
    assert main(["federate", "node", str(made / "north"), "--print"]) == 0
    node = capsys.readouterr().out
    assert "flower-supernode --superlink fl.example.org:9092" in node
    assert "FLWR_TELEMETRY_ENABLED=0" in link
    assert "FLWR_TELEMETRY_ENABLED=0" in node


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--sites", "a,a"], "no name for a site"),
        (["--sites", "a/b"], "no name for a site"),
        (["--sites", "coordinator"], "no name for a site"),
        (["--sites", "a,b", "--agents", "c=x"], "no site of --sites"),
        (["--sites", "a,b", "--agents", "a"], "SITE=AGENT"),
        (["--sites", "a,b", "--agents", "a=x;b=x"], "two sites"),
        (["--sites", "a", "--address", "no host"], "is no host"),
        (["--sites", "a", "--port", "70000"], "--port takes a port"),
        (["--sites", "a", "--config", "missing.toml"], "cannot read"),
    ],
)
def test_bad_input_of_init_is_one_line_and_leaves_nothing(words, says, tmp_path, capsys):
    assert main(["federate", "init", str(tmp_path / "f"), *words]) == 2
    told = capsys.readouterr().err
    assert says in told
    assert told.count("\n") == 1
    assert not (tmp_path / "f").exists()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[run]\nroundz = 3\n", "roundz"),
        ("[privacy]\nledger = 'x'\n", "for each site to say"),
        ("[data]\nschema = 'gone.toml'\n", "is not at"),
        ("[run]\npreset = 3\n", "takes a name"),
    ],
)
def test_a_run_that_no_federation_could_have_is_refused(text, says, tmp_path, capsys):
    (tmp_path / "run.toml").write_text(text)
    words = ["federate", "init", str(tmp_path / "f"), "--sites", "a", "--config", str(tmp_path / "run.toml")]
    assert main(words) == 2
    assert says in capsys.readouterr().err
    assert not (tmp_path / "f").exists()


@pytest.mark.parametrize("action", ["link", "door", "register", "run", "status", "renew"])
def test_a_folder_that_is_no_coordinators_is_refused(action, tmp_path, capsys):
    assert main(["federate", action, str(tmp_path)]) == 2
    assert "no coordinator's folder" in capsys.readouterr().err


def test_init_does_not_touch_a_folder_that_is_not_empty(made, capsys):
    before = sorted(made.rglob("*"))
    assert main(["federate", "init", str(made), "--sites", "a"]) == 2
    assert "not empty" in capsys.readouterr().err
    assert sorted(made.rglob("*")) == before


def test_renewed_certificates_are_by_the_same_authority(made, capsys):
    before = (made / "coordinator" / "server.key").read_bytes(), (made / "coordinator" / "ca.pem").read_bytes()
    assert main(["federate", "renew", str(made)]) == 0
    capsys.readouterr()
    after = (made / "coordinator" / "server.key").read_bytes(), (made / "coordinator" / "ca.pem").read_bytes()
    assert before[0] != after[0]
    assert before[1] == after[1]
    assert os.stat(made / "coordinator" / "server.key").st_mode & 0o777 == 0o600


@pytest.mark.parametrize("text", [b"root:x:0:0\n", b"", b"ssh-ed25519 AAAA\n", b"\xff\x00"])
def test_a_file_that_is_no_key_costs_a_site_nothing(text, made, tmp_path, monkeypatch):
    """The old key would be given up before Flower refuses the new one."""
    plan = made / "coordinator" / "federation.toml"
    site = read_plan(made / "coordinator").sites[0].name
    nodes._write_nodes(made / "coordinator", {site: 7})
    before = plan.read_bytes()
    monkeypatch.setattr(nodes, "flwr", lambda *_, **__: pytest.fail("Flower was asked"))
    (tmp_path / "key").write_bytes(text)
    with pytest.raises(SpecError, match="is not the public key of a node"):
        nodes.register(made / "coordinator", site, tmp_path / "key")
    assert plan.read_bytes() == before
