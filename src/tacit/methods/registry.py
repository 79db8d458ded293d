"""Every method, one line each: its name, and where its Entry is. A method is imported when it is first asked for."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from importlib import import_module

from tacit.methods.method import Entry


class Registry(MutableMapping[str, Entry]):
    """Entries by name, in the order of the registry; a program may add entries of its own."""

    def __init__(self, places: dict[str, str]) -> None:
        self._entries: dict[str, str | Entry] = dict(places)

    def __getitem__(self, name: str) -> Entry:
        found = self._entries[name]
        if isinstance(found, str):
            module, _, value = found.partition(":")
            self._entries[name] = found = getattr(import_module(f"tacit.methods.{module}"), value)
        assert isinstance(found, Entry)
        return found

    def __setitem__(self, name: str, entry: Entry) -> None:
        self._entries[name] = entry

    def __delitem__(self, name: str) -> None:
        del self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


METHODS = Registry(
    {
        "amp": "noisy_minimum:AMP",
        "chaudhuri": "noisy_minimum:CHAUDHURI",
        "dp-fedavg": "dp_fedavg:ENTRY",
        "dpsgd": "dpsgd:ENTRY",
        "dpsgd-local": "dpsgd_local:ENTRY",
        "dvp": "dvp:ENTRY",
        "fedavg": "fedavg:FEDAVG",
        "fedgd": "fedgd:ENTRY",
        "fedprox": "fedavg:FEDPROX",
        "iceadmm": "iceadmm:ENTRY",
        "iiadmm": "iiadmm:ENTRY",
        "kifer": "noisy_minimum:KIFER",
        "objp-local": "multilocal:OBJP",
        "objt-local": "multilocal:OBJT",
        "nbafl": "nbafl:ENTRY",
        "outp-huang": "outp:HUANG",
        "outp-plus": "outp:PLUS",
        "outp-released": "outp:RELEASED",
        "pvp": "pvp:ENTRY",
        "secure-sum": "secure_sum:ENTRY",
    }
)
