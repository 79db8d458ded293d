"""Names and what they stand for: every choice that a spec offers by name is a member of one registry.

A registry stands beside the description of its members: losses in problem/loss.py, engines in engine/registry.py. A
member is one file and one line, "package.module:Name"; the file is imported when its member is first used. Python code
elsewhere adds a member of its own with `LOSSES["hinge"] = Hinge`. The spec reads its choices from the registries, so
that a new member needs no other place. `key` declares a key of the spec: a dataclass field that carries its help text,
its choices, and when a run reads it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Container, Iterator, Mapping, MutableMapping
from dataclasses import field
from typing import Any, TypeVar

from tacit.errors import SpecError, unknown

T = TypeVar("T")


class UnknownName(SpecError, KeyError):
    """A name that a registry does not hold; a KeyError too, so that `get` and `pop` work as in any mapping."""

    __str__ = Exception.__str__  # that of KeyError puts the message in quotes


class Registry(MutableMapping[str, T]):
    """A mapping of names to values; `kind` is what its error messages call a member.

    `check` refuses a member that cannot be used, with the reason.
    """

    def __init__(
        self, kind: str, members: Mapping[str, T | str], check: Callable[[str, T], None] = lambda _name, _member: None
    ) -> None:
        self.kind, self.check = kind, check
        self._members = dict(members)

    def __getitem__(self, name: str) -> T:
        """The member of this name; a text says where the member is, and is followed on every use."""
        if name not in self:
            raise UnknownName(str(unknown(self.kind, name, self)))
        found = self._members[name]
        if not isinstance(found, str):
            return found
        module, _, attribute = found.partition(":")
        member: T = getattr(importlib.import_module(module), attribute)
        self.check(name, member)
        return member

    def __setitem__(self, name: str, member: T | str) -> None:
        if not isinstance(member, str):
            self.check(name, member)
        self._members[name] = member

    def __delitem__(self, name: str) -> None:
        del self._members[name]

    def __contains__(self, name: object) -> bool:
        """Whether a member has this name; nothing is imported."""
        return isinstance(name, str) and name in self._members

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)


class AnyBut:
    """Every value but some."""

    def __init__(self, *values: Any) -> None:
        self.values = values

    def __contains__(self, value: object) -> bool:
        return value not in self.values


Reads = Mapping[str, Container[Any]]  # another key of the spec -> the values of it under which a key is read


def key(
    default: Any, about: str, *names: str, choices: Collection[str] = (), when: Reads | None = None, path: bool = False
) -> Any:
    """Declare a key of a spec: the names it takes, or the registry that holds them; without either, any value.

    A run reads the key only if each key in `when` has one of its values there; without `when`, every run reads it. A
    `path` may name a file or a folder of this machine, and stays out of pages that are shared.
    """
    told = {"about": about, "choices": names or choices, "when": when or {}, "path": path}
    return field(default=default, metadata=told)
