"""Free text: its words in lower case, hashed to a fixed number of features by a public seed.

A word adds 1 or -1 to one feature; both follow from a hash of the word that every machine computes alike. The features
of a record are then scaled to norm one: the norm is that of the cell alone. A cell without a word is zeros.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from dataclasses import dataclass
from hashlib import blake2b
from typing import ClassVar

import numpy as np

from tacit.data.cells import Cells, Coded
from tacit.data.columns.encoding import FeatureBlock, FeatureColumn, Tally, check_size
from tacit.errors import SpecError
from tacit.features.map import BELOW
from tacit.types import Array

MOST = 1 << 16  # features
ROOM = 1 << 20  # numbers that are summed together: 8 MB

_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class TextColumn(FeatureColumn):
    """Words, hashed into `size` features in [-1, 1] by the public `seed`."""

    kind: ClassVar[str] = "text"
    size: int = 256
    seed: int = 0
    marks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_size("size", self.size, least=2, most=MOST)
        if not 0 <= self.seed < 1 << 64:
            raise SpecError(f"seed takes a whole number from 0 to 2^64 - 1, got {self.seed}.")

    def width(self) -> int:
        return self.size

    def blocks(self, column: str) -> tuple[FeatureBlock, ...]:
        """One block: remark word 0, ..., each a bucket of words."""
        names = tuple(f"{column} word {k}" for k in range(self.size))
        return (FeatureBlock(column, names, l1=math.sqrt(self.size), signed=True),)

    def levels(self) -> None:
        """Return None: words are no levels."""

    def place(self, word: str) -> tuple[int, int]:
        """Return the feature of a word, and 1 or -1."""
        digest = blake2b(word.encode(errors="surrogatepass"), digest_size=8, key=self.seed.to_bytes(8, "little"))
        code = int.from_bytes(digest.digest(), "little")
        return (code >> 1) % self.size, 2 * (code & 1) - 1

    def _summed(self, found: list[list[tuple[int, int]]]) -> Array:
        """Return the places and signs of each text's words as features of norm one."""
        x = np.zeros((len(found), self.size))
        rows = np.repeat(np.arange(len(found)), [len(own) for own in found])
        at = np.array([place for own in found for place in own], np.int64).reshape(-1, 2)
        np.add.at(x, (rows, at[:, 0]), at[:, 1])  # whole numbers: their order changes nothing
        size = np.sqrt(np.square(x).sum(axis=1, keepdims=True))
        return np.asarray(np.divide(x * BELOW, size, out=np.zeros_like(x), where=size > 0))

    def encode(self, cells: Cells, marks: Collection[str]) -> tuple[Array, Tally]:
        """Return ((n, size) float32 of norm at most one, what was changed)."""
        text, gone = Coded.of(cells), {"", *marks, *self.marks}
        absent = [name in gone for name in text.names]
        words = [[] if no else _WORD.findall(name.lower()) for name, no in zip(text.names, absent, strict=True)]
        known = {word: self.place(word) for word in {word for own in words for word in own}}
        x = np.empty((len(words), self.size), np.float32)
        step = max(1, ROOM // self.size)
        for start in range(0, len(words), step):
            x[start : start + step] = self._summed([[known[w] for w in own] for own in words[start : start + step]])
        wordless = [not no and not own for own, no in zip(words, absent, strict=True)]
        return text.each(x), Tally(missing=text.count(absent), unreadable=text.count(wordless))
