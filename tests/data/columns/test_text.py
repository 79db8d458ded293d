"""Free text: hashed words, alike on every machine."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.data.column_kinds import Tally, TextColumn


def encoded(kind: TextColumn, *texts: object) -> np.ndarray:
    return kind.encode(np.array(texts, dtype=object), ("?",))[0]


def test_the_place_of_a_word_is_the_same_on_every_machine() -> None:
    assert TextColumn(256).place("angina") == (24, -1)
    assert TextColumn(256, seed=1).place("angina") == (125, 1)


def test_words_count_in_lower_case_and_in_any_order() -> None:
    kind = TextColumn(64)
    one, two = encoded(kind, "Chest pain, chest!", "pain CHEST chest")
    assert one.tolist() == two.tolist()
    place, sign = kind.place("chest")
    other, _ = kind.place("pain")
    assert place != other
    assert one[place] == pytest.approx(sign * 2 / 5**0.5, rel=1e-5)
    assert np.count_nonzero(one) == 2


def test_the_norm_is_one_whatever_the_length_and_zero_without_words() -> None:
    x = encoded(TextColumn(32), "a", "a b c d e f " * 99, "", "...", None, "?", 3.0, b"x")
    assert np.linalg.norm(x.astype(np.float64), axis=1).tolist() == pytest.approx([1, 1, 0, 0, 0, 0, 1, 1], abs=2e-6)
    assert np.linalg.norm(x.astype(np.float64), axis=1).max() <= 1


def test_words_that_cancel_are_zeros() -> None:
    kind = TextColumn(2)
    plus, minus = (next(w for w in map(str, range(99)) if kind.place(w) == (0, sign)) for sign in (1, -1))
    assert encoded(kind, f"{plus} {minus}").tolist() == [[0, 0]]


def test_cells_without_a_word_are_counted() -> None:
    kind = TextColumn(4, marks=("none",))
    _, tally = kind.encode(np.array(["", "none", "?", "!", "x"], dtype=object), ("?",))
    assert tally == Tally(missing=3, unreadable=1)
