"""Crosses: a feature for each pair of levels, of norm at most one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.data.columns.cross import crossed
from tacit.data.encoded_table import encode
from tacit.data.schema import parse
from tacit.data.table import RawTable
from tacit.errors import SpecError

PEOPLE = """
[columns.age]
kind = "numeric"
lo = 0
hi = 100
spline = 3
[columns.sex]
kind = "categorical"
values = ["f", "m"]
missing = "level"
[columns.dose]
kind = "numeric"
lo = 0
hi = 8
[columns.note]
kind = "text"
[columns.day]
kind = "date"
lo = 2020-01-01
hi = 2021-01-01
[columns.site]
kind = "agent"
[columns.y]
kind = "label"
classes = [0, 1]
[crosses]
age_sex = ["age", "sex"]
sex_dose = ["sex", "dose"]
"""


def test_a_cross_is_the_product_of_levels_and_a_bare_number_has_four_bins() -> None:
    schema = parse(PEOPLE)
    cells = {"age": [25, 100], "sex": ["m", ""], "dose": [2, "x"], "note": ["", ""], "day": ["", ""]}
    table = encode(RawTable("t", {name: np.array(own, dtype=object) for name, own in cells.items()}), schema)
    counts = table.counts
    ages, sexes, *_ = (table.x[:, one.start : one.stop] for one in schema.made)
    *_, age_sex, sex_dose = (table.x[:, one.start : one.stop] for one in schema.made)
    np.testing.assert_array_equal(age_sex, (ages[:, :, None] * sexes[:, None, :]).reshape(2, 9))
    names = schema.features[-12:]
    ones = [[names[j] for j in np.flatnonzero(row)] for row in sex_dose]
    assert ones == [["sex_dose: sex=m, dose in [2, 4)"], ["sex_dose: sex=missing, dose in [4, 6)"]]
    assert set(counts.columns) == {"age", "sex", "dose", "note", "day"}
    assert [one.column for one in schema.made][-2:] == ["age_sex", "sex_dose"]


@given(st.lists(st.tuples(*[st.floats(0, 1, width=32)] * 3), min_size=1, max_size=5))
def test_a_product_of_hats_is_never_longer_than_one(shares: list[tuple[float, float, float]]) -> None:
    larger = np.maximum(shares, 1 - np.array(shares)).astype(np.float32)
    x = crossed([np.column_stack([own, 1 - own]) for own in larger.T])
    assert x.dtype == np.float32
    assert x.astype(np.float64).sum(axis=1).max() <= 1
    np.testing.assert_allclose(x.sum(axis=1), 1, atol=1e-6)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('bad = ["age", "sexx"]', "crosses.bad: unknown column of a cross 'sexx': did you mean 'sex'?"),
        ('bad = ["age", "y"]', "crosses.bad: unknown column of a cross 'y'"),
        ('bad = ["age", "site"]', "crosses.bad: unknown column of a cross 'site'"),
        ('bad = ["age", "note"]', "crosses.bad: 'note' is a text column, which has no levels"),
        ('bad = ["age", "day"]', "crosses.bad: 'day' is a date column, which has no levels"),
        ('bad = ["age"]', "two or more different columns"),
        ('bad = ["age", "age"]', "two or more different columns"),
        ('bad = "age"', "crosses.bad: the list of columns takes a list"),
        ('sex = ["age", "sex"]', "crosses.sex has the name of a column"),
    ],
)
def test_a_bad_cross_is_named(line: str, says: str) -> None:
    with pytest.raises(SpecError) as error:
        parse(PEOPLE + line)
    assert says in str(error.value)


def test_a_cross_of_too_many_features_is_refused_by_public_numbers() -> None:
    text = PEOPLE.replace("spline = 3", "bins = 2048")
    with pytest.raises(SpecError, match=r"crosses\.age_sex: 2048 x 3 are 6144 features, and at most 4096"):
        parse(text)
    with pytest.raises(SpecError, match="crosses is 3"):
        parse("crosses = 3\n" + PEOPLE.split("[crosses]")[0])
