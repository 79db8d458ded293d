"""Messages as bytes, and back: `read` is the one way from bytes to a value of a kind (tacit.federation.kinds).

Every field has one type, and nothing else is let through. A `Transport` carries the bytes.
"""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any, Protocol, TypeGuard

import numpy as np

from tacit.errors import Unfit
from tacit.federation import wire
from tacit.federation.kinds import (
    REPLIES,
    REQUESTS,
    Ask,
    Close,
    Closed,
    Hello,
    Introduction,
    Join,
    Joined,
    Meet,
    Message,
    Met,
    RecordCounts,
    Refusal,
    Signed,
    SiteAnswer,
    Unjoined,
)
from tacit.privacy.witness import Receipt
from tacit.types import Array, is_unicode

__all__ = [
    "LONGEST_NAME", "REPLIES", "REQUESTS", "VERSION", "Ask", "Close", "Closed", "Hello", "Introduction", "Join",
    "Joined", "Meet", "Message", "Met", "Receipt", "RecordCounts", "Refusal", "Signed", "SiteAnswer", "Transport",
    "Unjoined", "is_name", "read", "written",
]  # fmt: skip

VERSION = 2  # 1 had messages for steps of ADMM (tacit 0.2)
LONGEST_NAME = 200


def written(message: Message) -> tuple[wire.Header, bytes]:
    """The header and the body of a message."""
    header: wire.Header = {"version": VERSION, "kind": message.kind, "arrays": {}}
    body = b""
    for each in dataclasses.fields(message):
        value = getattr(message, each.name)
        if each.name in _TYPES:
            for name, array in value.items() if each.name == _PARAMETERS else [(each.name, value)]:
                header["arrays"][name] = list(array.shape)
                body += np.ascontiguousarray(array, _TYPES[each.name]).tobytes()
        else:
            header[each.name] = [dataclasses.asdict(one) for one in value] if each.name in _ROWS else _plain(value)
    return header, body


def _plain(value: Any) -> Any:
    """The value as JSON gives it back: lists instead of tuples."""
    return [_plain(one) for one in value] if isinstance(value, tuple) else value


def read(header: wire.Header, body: bytes, allowed: tuple[type[Message], ...]) -> Message:
    """The message that a header and a body are; Unfit if they are none of the allowed types."""
    if type(header.get("version")) is not int or header["version"] != VERSION:
        other = header.get("version") if type(header.get("version")) is int else "unknown"
        raise Unfit(
            f"the message has version {other} of the wire format, and this is version {VERSION}: install the same "
            "version of tacit everywhere."
        )
    kinds = {one.kind: one for one in allowed}
    kind = header.get("kind")
    if type(kind) is not str or kind not in kinds:
        raise Unfit(f"a message is one of {', '.join(kinds)}.")
    message = kinds[kind]
    names = [each.name for each in dataclasses.fields(message)]
    arrays = [name for name in names if name in _TYPES]
    if set(header) != {"version", "kind", "arrays", *names} - set(arrays):
        raise Unfit(f"a message {kind} has the fields {', '.join(names)} and no others.")
    try:
        shapes, data = wire.sizes(header), wire.pieces(header, body)
    except wire.Malformed as error:
        raise Unfit(str(error)) from error
    if _PARAMETERS in arrays:  # a query names them; the gate of an agent holds them to its form
        if len(shapes) > MOST_PARAMETERS or not all(map(is_name, shapes)):
            raise Unfit(f"a question has at most {MOST_PARAMETERS} parameters, each with a name.")
    elif list(shapes) != arrays:
        raise Unfit(f"a message {kind} has the arrays {', '.join(arrays) or 'none'} and no others.")

    def array(name: str, of: str) -> Array:
        return _native(np.frombuffer(data[name], _TYPES[of])).reshape(shapes[name])

    values: dict[str, Any] = {name: _CHECKS[name](name, header[name]) for name in names if name not in _TYPES}
    if _PARAMETERS in arrays:
        values[_PARAMETERS] = {name: array(name, _PARAMETERS) for name in shapes}
    else:
        values |= {name: array(name, name) for name in arrays}
    return message(**values)


def is_name(value: object) -> TypeGuard[str]:
    """Tell whether a value can be the name of a run or of an agent: printable, because logs and errors repeat it."""
    return type(value) is str and 0 < len(value) <= LONGEST_NAME and is_unicode(value) and value.isprintable()


def _text(name: str, value: object) -> str:
    if value != "" and not is_name(value):
        raise Unfit(f"{name} is a printable text of at most {LONGEST_NAME} characters.")
    return str(value)


def _long_text(name: str, value: object) -> str:
    if type(value) is not str or not is_unicode(value):  # no longer than a header may be
        raise Unfit(f"{name} is a text.")
    return value


def _named(name: str, value: object) -> str:
    if not _text(name, value):
        raise Unfit(f"{name} must not be empty.")
    return str(value)


def _digits(count: int, name: str, value: object) -> str:
    if type(value) is not str or len(value) != count or not set(value) <= set("0123456789abcdef"):
        raise Unfit(f"{name} has {count} hexadecimal digits.")
    return value


_hash = partial(_digits, 64)


def _whole(name: str, value: object, least: int = 0) -> int:
    if type(value) is not int or not least <= value < 2**53:
        raise Unfit(f"{name} is a whole number of at least {least}.")
    return value


def _items(name: str, value: object) -> list[Any]:
    if type(value) is not list:
        raise Unfit(f"{name} is a list.")
    return value


def _names(name: str, value: object) -> tuple[str, ...]:
    found = tuple(_named(name, one) for one in _items(name, value))
    if len(set(found)) != len(found):
        raise Unfit(f"{name} names an agent twice.")
    return found


def _counts(name: str, value: object) -> RecordCounts:
    pairs = _items(name, value)
    if any(type(pair) is not list or len(pair) != 2 for pair in pairs):
        raise Unfit(f"{name} is a list of pairs: an agent and the number of its records.")
    _names(name, [pair[0] for pair in pairs])
    return tuple((_named(name, who), _whole(name, count, 1)) for who, count in pairs)


def _rows(kind: type[Any], name: str, value: object) -> tuple[Any, ...]:
    """What each of several agents has sent, as values of a kind whose fields are checked one by one."""
    keys, found = [each.name for each in dataclasses.fields(kind)], []
    for one in _items(name, value):
        if type(one) is not dict or set(one) != set(keys):
            raise Unfit(f"{name} is a list of rows, each with {', '.join(keys)}.")
        found.append(kind(**{key: _OF_ROWS[key](key, one[key]) for key in keys}))
    _names(name, [one.agent for one in found])
    return tuple(found)


def _native(array: Array) -> Array:
    return array.astype(array.dtype.newbyteorder("="))


_PARAMETERS, MOST_PARAMETERS = "parameters", 16
_TYPES = {_PARAMETERS: "<f8", "words": "<u8"}  # of arrays, by field: items of eight bytes (tacit.federation.wire)
_ROWS = {"given": Receipt, "receipts": Receipt, "signed": Signed}
_OF_ROWS: dict[str, Any] = {
    "agent": _named, "first": _hash, "entries": partial(_whole, least=1), "head": _hash, "tag": _hash, "key": _hash,
    "signature": partial(_digits, 128),
}  # fmt: skip
_CHECKS: dict[str, Any] = {
    "site": _named, "public": _long_text, "agents": _counts, "run": _text, "spec": _long_text, "agreed": _hash,
    "t": lambda name, value: _whole(name, value, 1), "refused": _names, "joined": _names, "attempt": _whole,
    "asked": _names, "peers": _names, **{name: partial(_rows, kind) for name, kind in _ROWS.items()},
}  # fmt: skip


class Transport(Protocol):
    """An unreliable transport between coordinator and sites: it may lose, delay, repeat or reorder messages.

    The transport identifies each site (over Flower, by the id of its node), whatever a message claims. If the service
    of a site cannot be reached, nothing comes back: only the service itself sends a Refusal.
    """

    def send(self, site: str, header: wire.Header, body: bytes) -> None:
        """Queue a message for a site. Never wait; drop the message if the site is not connected."""

    def received(self, seconds: float) -> list[tuple[str, wire.Header, bytes]]:
        """Return what came, with the site that it came from; wait at most so many seconds for the first."""

    def absence(self, site: str) -> str:
        """Say why a site may not have answered, as far as the transport knows; nothing if it does not know."""
