"""What a column of a file looks like: numbers, dates, names of records, free text. For drafts of schemas alone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, partial

import numpy as np

from tacit.data.cells import Cells, Coded, plain
from tacit.data.column_kinds import as_numbers
from tacit.data.partition import distinct
from tacit.data.table import MARKS
from tacit.types import Array

SHARE = 0.95  # of the cells of a column that look alike, at least: the rest are mistakes
FEW_NUMBERS = 10  # a column of no more different numbers, beside texts, is a list of codes: 0, 1, 2, 3+
UNIQUE_SHARE = 0.9  # different values over records of an identifier, at least
LEAST = 20  # records, below which nothing is taken for an identifier
SPREAD = 1.1  # numbers that fill their range so densely, each once, were counted
TRIED = 1000  # texts of a column that are read as dates of every form, at most
WORDS = 4  # of a free text on average, at least

_KEY = re.compile(
    r"(?:^|[^a-z])(?:id|ids|uid|pid|uuid|guid|ssn|mrn|nr|no|num|number|key|index|idx|row|rowid|account|passport)$"
    r"|^(?:id|key|index|row|unnamed)(?:[^a-z]|$)"
)
_ISO = re.compile(
    r"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
    r"(?:[T ][0-2][0-9]:[0-5][0-9](?::[0-5][0-9](?:\.[0-9]+)?)?(?:Z|[+-][0-9:]+)?)?"
)
_OTHER_DATE = re.compile(
    r"(?:[0-9]{1,2}[./-][0-9]{1,2}[./-](?:[0-9]{4}|[0-9]{2})|[0-9]{4}[./][0-9]{1,2}[./][0-9]{1,2})(?:[T ,].*)?"
)
# how dates are written elsewhere, as strptime takes it; the month may come first where there are slashes
_FORMS = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y.%m.%d", "%d.%m.%y")


@dataclass(frozen=True, eq=False)
class ColumnFacts:
    """A column in pieces, and what was found in it."""

    name: str
    pieces: list[Cells]

    @cached_property
    def _parsed(self) -> tuple[Array, int]:
        found = [as_numbers(piece, MARKS) for piece in self.pieces]
        return np.concatenate([value for value, _ in found]), sum(unreadable for _, unreadable in found)

    @cached_property
    def numbers(self) -> Array:
        """The finite numbers."""
        value = self._parsed[0]
        found: Array = value[np.isfinite(value)]
        return found

    @property
    def unreadable(self) -> int:
        """How many cells hold a text that is no number."""
        return self._parsed[1]

    @cached_property
    def present(self) -> int:
        """How many cells are not missing."""
        value, unreadable = self._parsed
        return int((~np.isnan(value)).sum()) + unreadable

    @cached_property
    def names(self) -> list[str]:
        """The different texts, sorted."""
        return distinct({name for piece in self.pieces for name in Coded.of(piece).names} - {""})

    @cached_property
    def times(self) -> dict[str, int]:
        """How often each text is there."""
        whole = Coded.stacked([Coded.of(piece) for piece in self.pieces])
        return {name: int(n) for name, n in zip(whole.names, np.bincount(whole.codes), strict=True) if name}

    def renames(self, other: ColumnFacts) -> bool:
        """Whether values of this column and of the other go one with one: it may say the same in other words."""
        own, its = (Coded.stacked([Coded.of(piece) for piece in one.pieces]) for one in (self, other))
        here = np.array([bool(name) and name not in MARKS for name in own.names])[own.codes]
        pairs = np.unique(np.stack([own.codes[here], its.codes[here]]), axis=1)
        values, others = (len(np.unique(one)) for one in pairs)
        return 1 < values == others == pairs.shape[1] and bool(here.sum() >= LEAST * values)

    @cached_property
    def texts(self) -> list[str]:
        """The different texts that are not missing, sorted."""
        return [name for name in self.names if name not in MARKS]

    @cached_property
    def is_numeric(self) -> bool:
        """Whether the column holds numbers, but for a few cells."""
        if not self.unreadable:
            return len(self.numbers) > 0
        return len(self.numbers) >= SHARE * self.present and len(np.unique(self.numbers)) > FEW_NUMBERS

    @cached_property
    def identifies(self) -> str:
        """Why the column is taken for the name or number of a record; "" where it is not."""
        if self.present < LEAST:
            return ""
        if not self.is_numeric:
            unique = len(self.texts) >= UNIQUE_SHARE * self.present
            return "nearly every record has a text of its own" if unique else ""
        if (self.numbers % 1).any():
            return ""
        values = np.unique(self.numbers)
        if len(values) == len(self.numbers) and values[-1] - values[0] < SPREAD * len(values):
            return "whole numbers, each once and without gaps: they count the records"
        if len(values) >= UNIQUE_SHARE * self.present and self._named_as_key:
            return "it is called a number or key, and nearly every record has a value of its own"
        return ""

    @property
    def _named_as_key(self) -> bool:
        parts = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", self.name).lower()  # patientId is patient_id
        return _KEY.search(parts) is not None

    @cached_property
    def is_iso_date(self) -> bool:
        """Whether texts are dates as in 2024-01-31, perhaps with a time."""
        return self._all_like(_ISO) and bool(self.days())

    @cached_property
    def is_other_date(self) -> bool:
        """Whether texts look like dates of another form: 31.1.2024, 01/31/24."""
        return self._all_like(_OTHER_DATE)

    def _all_like(self, pattern: re.Pattern[str]) -> bool:
        return bool(self.texts) and sum(map(bool, map(pattern.fullmatch, self.texts))) >= SHARE * len(self.texts)

    @cached_property
    def date_form(self) -> str:
        """The one form that dates, not as in 2024-01-31, are all written in; "" where several fit, or none does."""
        some = self.texts[:: -(-len(self.texts) // TRIED)] if self.texts else []  # from all over: they are sorted
        fit = [form for form in _FORMS if sum(_day(text, form) is not None for text in some) > SHARE * len(some)]
        return fit[0] if len(fit) == 1 else ""

    def days(self, form: str = "") -> list[str]:
        """The different days, in order, as in 2024-01-31; of texts in a form of strptime, or in that of these days."""
        if form:
            return sorted({f"{day:%Y-%m-%d}" for day in map(partial(_day, form=form), self.texts) if day})
        return sorted({text[:10] for text in self.texts if _ISO.fullmatch(text) and _day(text[:10], "%Y-%m-%d")})

    @property
    def has_times(self) -> bool:
        """Whether dates have a time of day."""
        return any(":" in text for text in self.texts)

    @cached_property
    def is_prose(self) -> bool:
        """Whether texts have several words."""
        return bool(self.texts) and sum(len(text.split()) for text in self.texts) >= WORDS * len(self.texts)

    def odd_texts(self, most: int = 3) -> list[str]:
        """The first few texts that are no numbers."""
        found: dict[str, None] = {}
        for piece in self.pieces:
            value, unreadable = as_numbers(piece, MARKS)
            if unreadable:
                cells = piece.tolist()
                texts = (plain(cells[i]) for i in np.flatnonzero(np.isnan(value)).tolist())
                found |= dict.fromkeys(text for text in texts if text and text not in MARKS)
            if len(found) >= most:
                break
        return list(found)[:most]


def _day(text: str, form: str) -> datetime | None:
    """Return the day that a text says in a form of strptime, None where it says none."""
    try:
        return datetime.strptime(text, form)
    except ValueError:
        return None
