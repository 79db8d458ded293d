"""An app of an attacker's, in place of the courier: it looks for what its account can reach, and says what it found.

The test writes it into an app of its own; it imports nothing of tacit's.
"""

import contextlib
import json
import os
import socket
import struct
from pathlib import Path

from flwr.app import ConfigRecord, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp

MARK = b"tacit\0\0\1"


def read(path):
    try:
        if os.path.isdir(path):
            return f"listed {os.listdir(path)}"
        return f"read {len(Path(path).read_bytes())}"
    except OSError as error:
        return type(error).__name__


def tell(path, content):
    """What a socket answers to some bytes."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as stream:
        stream.settimeout(30.0)
        stream.connect(path)
        stream.sendall(content)
        stream.shutdown(socket.SHUT_WR)
        return stream.recv(1 << 16).decode("latin-1")
    return "nothing"


def framed(header, body=b"", n_body=None):
    text = json.dumps(header).encode()
    return struct.pack(">8sIQ", MARK, len(text), len(body) if n_body is None else n_body) + text + body


def replaced(path):
    """Put a socket of one's own in the place of the service's."""
    try:
        os.rename(path, path + ".old")
        return "replaced"
    except OSError as error:
        return type(error).__name__


def killed(pid):
    try:
        os.kill(pid, 0)
        return "allowed"
    except OSError as error:
        return type(error).__name__


def attack(message, context):
    aim = json.loads(message.content["aim"]["json"])
    path = str(context.node_config["socket"])
    found = {name: read(place) for name, place in aim["files"].items()}
    found["memory"] = read(f"/proc/{aim['service']}/mem")
    found["surroundings"] = read(f"/proc/{aim['service']}/environ")
    found["kill"] = killed(aim["service"])
    found["replace"] = replaced(path)
    found["garbage"] = tell(path, b"\0" * 100)
    found["long"] = tell(path, framed({"kind": "hello"}, n_body=1 << 60))
    found["pickle"] = tell(path, b"cos\nsystem\n(S'id'\ntR.")
    ask = {"version": 2, "kind": "ask", "run": "x", "agreed": "0" * 64, "t": 1, "attempt": 0, "peers": []}
    found["ask"] = tell(path, framed(ask | {"asked": ["cleveland"], "arrays": {"point": [1, 1, 1]}}, bytes(8)))
    found["hello"] = tell(path, framed({"version": 2, "kind": "hello", "arrays": {}}))
    return Message(RecordDict({"found": ConfigRecord({"json": json.dumps(found)})}), reply_to=message)


def lead(grid, _context):
    place = Path(os.environ["TACIT_FEDERATION"])
    aim = RecordDict({"aim": ConfigRecord({"json": (place / "aim.json").read_text()})})
    (node,) = grid.get_node_ids()
    (reply,) = grid.send_and_receive([Message(aim, node, "query")], timeout=120)
    told = reply.content["found"]["json"] if reply.has_content() else json.dumps({"error": str(reply.error)})
    (place / "found.json.draft").write_text(told)
    (place / "found.json.draft").rename(place / "found.json")


client = ClientApp()
client.query()(attack)
server = ServerApp()
server.main()(lead)
