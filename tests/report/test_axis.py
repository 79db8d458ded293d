"""An axis holds its values, and its numbers can be told apart."""

from hypothesis import given
from hypothesis import strategies as st

from tacit.report.axis import Axis, number

POSITIVE = st.lists(st.floats(1e-9, 1e9), min_size=1, max_size=5)
ANY = st.lists(st.floats(-1e9, 1e9).map(lambda value: round(value, 6)), min_size=1, max_size=5)


def check(axis: Axis, values: list[float]) -> None:
    assert all(-1e-9 <= axis.share(value) <= 1 + 1e-9 for value in values)
    assert all(-1e-6 <= axis.share(tick) <= 1 + 1e-6 for tick in axis.ticks)
    assert 2 <= len(axis.ticks) <= 8
    assert axis.ticks == sorted(axis.ticks)
    assert len({number(tick) for tick in axis.ticks}) == len(axis.ticks)


@given(ANY)
def test_a_linear_axis(values):
    check(Axis(values, False), values)


@given(POSITIVE)
def test_a_logarithmic_axis(values):
    check(Axis(values, True), values)
    low, high = Axis(values, True).ends
    assert high / low > 3.9


def test_a_constant_looks_like_one():
    for log in (False, True):
        axis = Axis([3.41e-4, 3.42e-4], log)
        assert axis.share(3.42e-4) - axis.share(3.41e-4) < 0.35
