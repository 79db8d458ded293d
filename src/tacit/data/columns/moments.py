"""Texts in, moments out: the clock and the calendar as they are written; a time zone is dropped.

ISO 8601 is read by NumPy, all texts at once: 2020, 2020-03, 2020-03-31, 20200331, and 2020-03-31T23:59 with "T" or a
blank, seconds and a zone behind it or not. Other forms are read by `datetime.strptime`, one text after another.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from tacit.errors import SpecError
from tacit.types import Array

WIDTH = 40  # characters: 2020-03-31T23:59:59.123456789+02:00 has 35
BLOCK = 1 << 16  # texts that are looked at together: 10 MB of characters
DIRECTIVES = "YymdjHIMSfpbBaAz%"  # of strptime: those whose meaning does not hang on the machine's time zone

_TAIL = np.isin(np.arange(256), [0, *b"0123456789:.,+-Zz"])  # what may come behind the minutes


@dataclass(frozen=True, eq=False)
class Times:
    """Points in time (n,). Where `known` is False the others mean nothing; -1 where a text does not say so much."""

    known: Array
    when: Array  # days since 1970-01-01, with the time of day
    month: Array  # 0 .. 11
    weekday: Array  # 0 .. 6, 0 is Monday
    hour: Array  # 0 .. 23


def read(texts: Sequence[str], form: str | None = None) -> Times:
    """Read texts as ISO 8601, or by a form of `datetime.strptime`; what cannot be read is not known."""
    if form is None:
        parts = [_iso(texts[start : start + BLOCK]) for start in range(0, len(texts), BLOCK)]
        found = np.concatenate(parts, axis=1) if parts else np.zeros((6, 0), np.int64)
    else:
        says = {*re.findall("%(.)", form)}
        depth = 4 if says & {*"HI"} else 3 if says & {*"dj"} else 2 if says & {*"mbB"} else 1
        found = np.array([(*_by_form(text, form), depth) for text in texts], np.int64).reshape(-1, 6).T
    return _checked(*found)


def check_form(form: str) -> None:
    """Refuse a form that strptime cannot use, or that does not say the year."""
    asked = re.findall(r"%(.?)", form, re.DOTALL)
    bad = [letter for letter in asked if not letter or letter not in DIRECTIVES]
    if bad:
        known = " ".join(f"%{letter}" for letter in DIRECTIVES)
        raise SpecError(f"format = {form!r} holds %{bad[0]}: use {known}.")
    if not {"Y", "y"} & {*asked} or len({*asked}) < len(asked) - asked.count("%"):
        raise SpecError(f'format = {form!r} must say the year, and each thing once: for example "%d.%m.%Y".')


def _iso(texts: Sequence[str]) -> Array:
    """Return year, month, day, hour, minute and how many of the first four are said (6, n).

    The year is 0 where a text is not ISO 8601.
    """
    letters = np.array(texts, dtype=f"U{WIDTH}").view(np.uint32).reshape(len(texts), WIDTH)
    c = np.minimum(letters, 255).astype(np.uint8)
    digit = c - np.uint8(48)  # wraps around for other characters
    is_digit = digit <= 9

    def holds(where: range) -> Array:
        return np.asarray(is_digit[:, where.start : where.stop].all(axis=1))

    def value(where: range) -> Array:
        found = np.zeros(len(texts), np.int64)
        for j in where:
            found = 10 * found + digit[:, j]
        return found

    def ends(at: int) -> Array:
        return np.asarray(c[:, at] == 0)

    year, dash = holds(range(4)), c[:, 4] == ord("-")
    month = year & dash & holds(range(5, 7))
    day = month & (c[:, 7] == ord("-")) & holds(range(8, 10))
    compact = holds(range(8)) & ends(8)
    clock = day & np.isin(c[:, 10], [ord("T"), ord("t"), ord(" ")]) & holds(range(11, 13)) & holds(range(14, 16))
    clock &= (c[:, 13] == ord(":")) & _TAIL[c[:, 16:]].all(axis=1) & ~is_digit[:, 16] & ends(WIDTH - 1)
    known = (year & ends(4)) | (month & ends(7)) | (day & ends(10)) | compact | clock
    return np.array([
        np.where(known, value(range(4)), 0),
        np.where(month, value(range(5, 7)), np.where(compact, value(range(4, 6)), 1)),
        np.where(day, value(range(8, 10)), np.where(compact, value(range(6, 8)), 1)),
        np.where(clock, value(range(11, 13)), 0),
        np.where(clock, value(range(14, 16)), 0),
        1 + month + day + clock + 2 * compact,
    ])  # fmt: skip


def _by_form(text: str, form: str) -> tuple[int, int, int, int, int]:
    try:
        found = datetime.strptime(text, form)
    except (ValueError, OverflowError):
        return 0, 1, 1, 0, 0
    return found.year, found.month, found.day, found.hour, found.minute


def _checked(year: Array, month: Array, day: Array, hour: Array, minute: Array, said: Array) -> Times:
    """Return the moments; a day or a time that there is not is not known."""
    known = (year >= 1) & (month >= 1) & (month <= 12) & (hour <= 23) & (minute <= 59)
    since = np.where(known, 12 * (year - 1970) + month - 1, 0)
    first, following = (_first_day(months) for months in (since, since + 1))
    known &= (day >= 1) & (day <= following - first)
    date = first + day - 1
    return Times(
        known,
        date + (60 * hour + minute) / 1440,
        np.where(said >= 2, since % 12, -1),
        np.where(said >= 3, (date + 3) % 7, -1),  # 1970-01-01 was a Thursday
        np.where(said >= 4, hour, -1),
    )


def _first_day(months: Array) -> Array:
    """Return the day on which a month begins, months and days since 1970-01-01."""
    return np.asarray(months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64))
