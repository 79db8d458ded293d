"""Names and what they stand for: every choice that a spec offers by name is a member of one registry.

A registry stands beside the description of its members: losses in problem/loss.py, engines in engine/registry.py. A
member is one file and one line, "package.module:Name"; the file is imported when its member is first used. Python code
elsewhere adds a member of its own with `LOSSES["hinge"] = Hinge`. The spec reads its choices from the registries, so
that a new member needs no other place.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import TypeVar

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
