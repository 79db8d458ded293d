"""The Flower ClientApp: it carries one message to the socket of the site's agent service, and its answer back.

A SuperNode runs whatever app the coordinator ships, so what is shipped has access to nothing: standard library, Flower
and `wire`, no records, no noise, no ledger. `tacit federate init` copies this file and wire.py into the app as they
are; a site needs no tacit for them. `records` and `frame` are the two ways between a message and Flower's records, and
the coordinator uses them too.
"""

from __future__ import annotations

import json
import socket

from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp

from . import wire

VERSION = 1
KIND = "query"  # Flower's type of our messages
ABSENT = "absent"  # the kind of an answer that no service gave
PATIENCE = 120.0  # seconds for one read or write, where the node's config has no `timeout`
_CONFIG, _ARRAYS, _STYPE, _DTYPE = "tacit", "arrays", "tacit.f8", "float64"


def records(header: wire.Header, body: bytes) -> RecordDict:
    """A message as Flower's records: the header as text, each array with its declared type and shape."""
    shapes, data = wire.sizes(header), wire.pieces(header, body)
    arrays = {name: Array(_DTYPE, shape, _STYPE, data[name]) for name, shape in shapes.items() if data[name]}
    rest = header | {"arrays": {name: shape for name, shape in shapes.items() if not data[name]}}  # Flower has no such
    config = ConfigRecord({"version": VERSION, "header": json.dumps(rest, allow_nan=False)})
    return RecordDict({_CONFIG: config, _ARRAYS: ArrayRecord(arrays)})


def frame(content: RecordDict) -> tuple[wire.Header, bytes]:
    """The message that Flower's records hold; Malformed where they hold anything else."""
    config, arrays = content.get(_CONFIG), content.get(_ARRAYS)
    if len(content) != 2 or type(config) is not ConfigRecord or type(arrays) is not ArrayRecord:
        raise wire.Malformed(f"a message has the records {_CONFIG} and {_ARRAYS}, and no others.")
    text = config.get("header")
    if set(config) != {"version", "header"} or config["version"] != VERSION or type(text) is not str:
        raise wire.Malformed(f"a message has a header of version {VERSION}: install the same version everywhere.")
    if len(text) > wire.LARGEST_HEADER:
        raise wire.Malformed(f"a header has at most {wire.LARGEST_HEADER} bytes.")
    header = wire.parsed(text)
    shapes = {name: list(shape) for name, shape in wire.sizes(header).items()}
    if wire.pieces(header, b"").keys() & arrays.keys():
        raise wire.Malformed("a name stands for two arrays.")
    if any((one.dtype, one.stype) != (_DTYPE, _STYPE) for one in arrays.values()):
        raise wire.Malformed(f"an array of a message is {_DTYPE}, as {_STYPE}.")
    header["arrays"] = shapes | {name: list(one.shape) for name, one in arrays.items()}
    body = b"".join(one.data for one in arrays.values())
    found = wire.pieces(header, body)  # shapes that are no shapes, or bytes that they do not give
    if len(body) > wire.LARGEST_BODY or any(len(found[name]) != len(one.data) for name, one in arrays.items()):
        raise wire.Malformed("the bytes of an array are not those of its shape.")
    return header, body


def exchange(path: str, seconds: float, header: wire.Header, body: bytes) -> tuple[wire.Header, bytes]:
    """One message to the socket, and one back."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stream:
        stream.settimeout(seconds)
        stream.connect(path)
        wire.send(stream, header, body)
        return wire.receive(stream, wire.LARGEST_BODY, seconds)


def carry(message: Message, context: Context) -> Message:
    """Take a message to the agent service. Nobody there, or no message: `absent`, and nothing of the reason."""
    config = context.node_config
    try:
        question = frame(message.content)
        answer = exchange(str(config["socket"]), float(config.get("timeout", PATIENCE)), *question)
        found = records(*answer)
    except (OSError, KeyError, ValueError, wire.Malformed) as error:
        print(f"tacit: no answer: {error}", flush=True)  # the site's own log; a path or an error stays here
        found = records({"kind": ABSENT, "arrays": {}}, b"")
    return Message(found, reply_to=message)


app = ClientApp()
app.query()(carry)
