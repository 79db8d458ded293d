"""What an agent has answered in one run: a ledger without a file, for an agent that ends with its run.

A round that was answered is sent again from memory and is never drawn again. Nothing here outlives the run, so it
counts no other run and enforces no limit: an agent that is asked again later needs a Ledger.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from tacit.errors import Refused
from tacit.privacy.history import ZERO_OUT, Key, Place, changed, forgotten
from tacit.privacy.release import Release
from tacit.privacy.terms import Terms
from tacit.types import Array

KEPT_BYTES = 1 << 20  # of the latest answers; the last one is kept whatever its size


class Memory:
    """The answers of one agent, the latest of them kept."""

    head = ""  # there is no chain

    def __init__(self) -> None:
        self._lock, self._process = threading.Lock(), os.getpid()
        self._places: dict[tuple[str, str], Place] = {}
        self._answered: dict[Key, tuple[str, Release]] = {}
        self._kept: dict[Key, Array] = {}

    def join(self, data_id: str, terms: Terms) -> None:
        """Agree on a run, once; other terms for the same run are refused."""
        with self._lock:
            place = self._places.setdefault((data_id, terms.run), Place())
            if not place.agreed(terms):
                place.terms = terms

    def release(
        self, key: Key, asked: str, release: Release, make: Callable[[], Array], adjacency: str = ZERO_OUT
    ) -> Array:
        """The answer to `asked`: kept, or made now; or Refused."""
        if os.getpid() != self._process:
            raise Refused("this agent was made before a fork, and another process answers for it: make it anew there.")
        with self._lock:
            if key in self._answered:
                if self._answered[key] != (asked, release):
                    raise changed(key, "an earlier moment")
                if key not in self._kept:
                    raise forgotten(key)
                return self._kept[key].copy()
            place = self._places.setdefault((key.data_id, key.run), Place())
            place.check_next(key, release, adjacency)
            answer = make()
            place.count(key)
            self._answered[key] = asked, release
            self._kept[key] = answer
            while len(self._kept) * answer.nbytes > KEPT_BYTES and len(self._kept) > 1:
                del self._kept[next(iter(self._kept))]
            return answer.copy()
