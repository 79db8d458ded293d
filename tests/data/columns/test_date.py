"""Dates and times: read as written, encoded part by part."""

from __future__ import annotations

import time
from datetime import date, datetime, timezone

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.data.column_kinds import DateColumn, Tally
from tacit.data.columns import moments
from tacit.types import Array

CENTURY = DateColumn("1970-01-01", "2070-01-01")


def cells(*values: object) -> Array:
    return np.array(values, dtype=object)


@given(st.datetimes(), st.sampled_from(["T", " "]), st.sampled_from(["minutes", "seconds", "microseconds"]),
       st.sampled_from(["", "Z", "+02:00", "-0930"]))  # fmt: skip
def test_iso_is_read_as_python_reads_it_and_a_zone_is_dropped(when: datetime, sep: str, spec: str, zone: str) -> None:
    found = moments.read([when.isoformat(sep, spec) + zone, when.date().isoformat(), str(when)[:16]])
    assert found.known.all()
    assert (found.month + 1).tolist() == [when.month] * 3
    assert found.weekday.tolist() == [when.weekday()] * 3
    assert found.hour.tolist() == [when.hour, -1, when.hour]
    day = when.toordinal() - date(1970, 1, 1).toordinal()
    assert found.when.tolist() == pytest.approx([day + (60 * when.hour + when.minute) / 1440, day, found.when[0]])


@pytest.mark.parametrize("text", [
    "", "x", "2020-13-01", "2020-00-01", "2020-02-30", "2021-02-29", "1900-02-29", "0000-01-01", "20-01-01", "2020-1-1",
    "2020-01-01T24:00", "2020-01-01T10:60", "2020-01-01T10", "2020-01-01 10:00 PM", "2020-01-01x", "2020-01-01T10:0012",
    "-020-01-01", "٢٠٢٠-01-01", "2020-01-01T10:00" + 40 * "0", "2020/01/01", "20201301", "12020-01-01", "\ud800",
    "2020-01-01T10:00:00" + 99 * "0",
])  # fmt: skip
def test_what_is_no_moment_is_not_known(text: str) -> None:
    found = moments.read([text, "2020-02-29"])
    assert found.known.tolist() == [False, True]
    x, tally = CENTURY.encode(cells(text), ())
    assert x.tolist() == [[0.5] + 19 * [0]]
    assert tally == (Tally(unreadable=1) if text else Tally(missing=1))


def test_short_and_compact_forms_say_as_much_as_they_say() -> None:
    found = moments.read(["2020", "2020-03", "20200301"])
    assert found.known.all()
    assert found.month.tolist() == [-1, 2, 2]
    assert found.weekday.tolist() == [-1, -1, 6]
    assert found.when.tolist() == [18262, 18322, 18322]


def test_the_range_suggests_the_parts() -> None:
    assert DateColumn("2020-01-01", "2020-01-04").made_of == ("year",)
    assert DateColumn("2020-01-01", "2020-02-01").made_of == ("year", "weekday")
    assert DateColumn("2019-01-01", "2020-01-01").made_of == ("year", "month", "weekday")
    assert DateColumn("2020-01-01T00:00", "2020-01-04T00:00").made_of == ("year", "hour")
    assert DateColumn("2019", "2020", parts=("hour", "month")).made_of == ("month", "hour")


def test_each_part_has_features_of_its_own() -> None:
    kind = DateColumn("2020-01-01", "2021-12-31T00:00:00", missing="level")
    assert [block.column for block in kind.blocks("t")] == ["t year", "t month", "t weekday", "t hour"]
    assert [block.number for block in kind.blocks("t")] == [True, False, False, False]
    x, tally = kind.encode(cells("2020-12-31 23:59:01", "2021-06-01", "1999-01-01", "soon", None, "-"), ("-",))
    names = kind.features("t")
    ones = [[names[j] for j in np.flatnonzero(row == 1)] for row in x]
    assert ones == [
        ["t month=12", "t weekday=Thursday", "t hour=23"],
        ["t month=6", "t weekday=Tuesday"],  # no hour was said
        ["t month=1", "t weekday=Friday"],  # outside: only the year is moved
        ["t=missing"], ["t=missing"], ["t=missing"],
    ]  # fmt: skip
    assert x[:, 0].tolist() == pytest.approx([366 / 730, 517 / 730, 0, 0, 0, 0], abs=1e-5)
    assert tally == Tally(clipped=1, missing=2, unreadable=1)


def test_other_forms_are_read_by_their_format() -> None:
    kind = DateColumn("2020-01-01", "2021-01-01", format="%d.%m.%Y %H:%M", parts=("month", "hour"))
    x, tally = kind.encode(cells("31.12.2020 07:30", "2020-12-31", "31.13.2020 07:30", ""), ())
    names = kind.features("t")
    assert [[names[j] for j in np.flatnonzero(row)] for row in x] == [["t month=12", "t hour=7"], [], [], []]
    assert tally == Tally(missing=1, unreadable=2)
    years = DateColumn("2000", "2021", format="%Y", parts=("month",))
    assert not years.encode(cells("2010"), ())[0].any()


def test_dates_of_typed_files_are_read_as_their_text() -> None:
    typed = cells(date(2020, 3, 1), datetime(2020, 3, 1), datetime(2020, 3, 1, 5, tzinfo=timezone.utc), 2020)
    texts = cells("2020-03-01", "2020-03-01 00:00:00", "2020-03-01T05:00Z", "2020.0")
    np.testing.assert_array_equal(CENTURY.encode(typed, ())[0], CENTURY.encode(texts, ())[0])
    assert CENTURY.encode(np.array([2020, 20200301]), ())[0][:, :4].tolist() == CENTURY.encode(
        cells("2020", "2020-03-01"), ()
    )[0][:, :4].tolist()


@pytest.mark.parametrize("unit", ["Y", "M", "D", "h", "s", "ms", "us", "ns"])
def test_arrays_of_dates_are_read_whatever_their_unit_and_the_format(unit: str) -> None:
    typed = np.array(["2020-01-01", "NaT", "1970-01-01"], dtype=f"datetime64[{unit}]")
    clock = ("month", "hour") if unit in ("h", "s", "ms", "us", "ns") else ("month",)
    for form in (None, "%d.%m.%Y %H:%M"):
        kind = DateColumn("1960-01-01", "2030-01-01", clock, form, "level")
        x, tally = kind.encode(typed, ())
        ones = [[kind.features("t")[j] for j in np.flatnonzero(row)] for row in x]
        assert ones[0] == ones[2] == ["t month=1", *(["t hour=0"] if len(clock) == 2 else [])]
        assert ones[1] == ["t=missing"]
        assert tally == Tally(missing=1)


def test_a_hundred_thousand_times_are_read_at_once() -> None:
    start = np.datetime64("2001-01-01T00:00:00")
    found = cells(*map(str, start + 7919 * np.arange(100_000)))
    begin = time.process_time()
    _, tally = CENTURY.encode(found, ())
    assert tally == Tally()
    assert time.process_time() - begin < 2  # it takes 0.12 s, and datetime.strptime 0.6
