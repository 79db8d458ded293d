"""A message as bytes: a mark, two lengths, a header of JSON and a body of numbers. Standard library alone.

    tacit 0 0 1 | length of the header, 4 bytes | length of the body, 8 bytes | header | body

The header is an object with the key "kind", and with "arrays": the name and the shape of each array in the body, in
order. Numbers in the body are float64 or uint64, little endian, in C order. Lengths are checked before anything is
kept, so that nobody can make the reader allocate more than it allows.
"""

from __future__ import annotations

import json
import math
import socket
import struct
import time
from collections.abc import Iterator
from typing import Any

MARK = b"tacit\0\0\1"  # the last byte is the version
PREFIX = struct.Struct(">8sIQ")
LARGEST_HEADER = 4 << 20
LARGEST_BODY = 1 << 28  # bytes
ITEM = 8  # bytes of a float64 or a uint64

Header = dict[str, Any]


class Malformed(Exception):
    """What came is not a message."""


class TooLong(Malformed):
    """A message whose body is longer than the reader allows, and was not kept; its header is as it came."""

    def __init__(self, header: Header, largest_body: int) -> None:
        super().__init__(f"the message is too long: its body may have {largest_body} bytes.")
        self.header = header


def send(stream: socket.socket, header: Header, body: bytes = b"") -> None:
    """Write one message."""
    text = json.dumps(header, allow_nan=False).encode()
    if len(text) > LARGEST_HEADER:
        raise Malformed(f"a header has at most {LARGEST_HEADER} bytes, and this one has {len(text)}.")
    stream.sendall(PREFIX.pack(MARK, len(text), len(body)) + text + body)


def receive(stream: socket.socket, largest_body: int, seconds: float | None = None) -> tuple[Header, bytes]:
    """Read one message whose body has at most so many bytes; Malformed where something else came.

    `seconds` are for the whole message: a sender that gives one byte now and then does not hold the reader.
    """
    end = None if seconds is None else time.monotonic() + seconds
    mark, n_header, n_body = PREFIX.unpack(_exactly(stream, PREFIX.size, end))
    if mark != MARK:
        raise Malformed("what came is not a message of this version of tacit: install the same version everywhere.")
    if n_header > LARGEST_HEADER:
        raise Malformed(f"the message is too long: its header may have {LARGEST_HEADER} bytes.")
    header = parsed(_exactly(stream, n_header, end))
    if n_body > largest_body:
        for _ in _parts(stream, min(n_body, LARGEST_BODY), end):
            pass  # a sender that could not finish would not hear the reply
        raise TooLong(header, largest_body)
    return header, _exactly(stream, n_body, end)


def parsed(text: bytes | str) -> Header:
    """The header that a text spells: an object of finite numbers, its keys all different."""
    try:
        header = json.loads(text, parse_constant=_refuse, object_pairs_hook=_distinct)
    except (ValueError, RecursionError) as error:
        raise Malformed("the header of the message is not JSON.") from error
    if type(header) is not dict:
        raise Malformed("the header of the message is not an object.")
    return header


def sizes(header: Header) -> dict[str, tuple[int, ...]]:
    """The shapes of the arrays in the body, by name, as the header says them."""
    found = header.get("arrays")
    if type(found) is not dict or any(not _is_shape(shape) for shape in found.values()):
        raise Malformed('a header has "arrays", which gives the shape of each array in the body by its name.')
    return {name: tuple(shape) for name, shape in found.items()}


def pieces(header: Header, body: bytes) -> dict[str, bytes]:
    """The bytes of each array in the body, by name; Malformed where they are not all of it."""
    found, start = {}, 0
    for name, shape in sizes(header).items():
        stop = start + ITEM * math.prod(shape)
        found[name], start = body[start:stop], stop
    if start != len(body):
        raise Malformed(f"the body has {len(body)} bytes, and the arrays of the header have {start}.")
    return found


def _is_shape(shape: object) -> bool:
    return (
        type(shape) is list and len(shape) <= 4 and all(type(n) is int and 0 <= n < 2**31 for n in shape)
    )  # fmt: skip


def _exactly(stream: socket.socket, n: int, end: float | None) -> bytes:
    found = b"".join(_parts(stream, n, end))
    if len(found) < n:
        raise Malformed("the connection ended within a message.")
    return found


def _parts(stream: socket.socket, n: int, end: float | None) -> Iterator[bytes]:
    """Up to n bytes, as they come; fewer where the sender has ended."""
    while n > 0:
        if end is not None:
            left = end - time.monotonic()
            if left <= 0:
                raise Malformed("the message did not arrive in time.")
            stream.settimeout(left)
        more = stream.recv(min(n, 1 << 20))
        if not more:
            return
        n -= len(more)
        yield more


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def _distinct(pairs: list[tuple[str, Any]]) -> Header:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found
