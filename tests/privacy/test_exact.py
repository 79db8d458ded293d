"""The integers have exactly the law they claim, and no float takes part in drawing them."""

import ast
import inspect
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import SpecError
from tacit.privacy import exact
from tacit.privacy.exact import MAX_SCALE, Law, sample

LAWS = pytest.mark.parametrize("law", Law, ids=lambda law: law.value)


def bits(seed=0):
    return np.random.default_rng(seed).bytes


def fed(*words):
    """A source that gives these (value, width in bytes) in turn, and then nothing."""
    stream = iter(b"".join(value.to_bytes(width, "little") for value, width in words))
    return lambda n: bytes(next(stream) for _ in range(n))


def density(law, n, t):
    return np.exp(-np.abs(n) / t) if law is Law.LAPLACE else np.exp(-np.square(n, dtype=float) / (2 * t * t))


def chi_square_score(counts, expected):
    """Wilson and Hilferty: close to standard normal."""
    df = len(counts) - 1
    statistic = ((counts - expected) ** 2 / expected).sum()
    return ((statistic / df) ** (1 / 3) - (1 - 2 / (9 * df))) / math.sqrt(2 / (9 * df))


@LAWS
@pytest.mark.parametrize("t", [1, 2, 3, 7, 64])
def test_counts_agree_with_the_exact_probabilities(law, t):
    n = 300_000
    drawn = sample(law, t, (n,), bits(t))
    support = np.arange(-60 * t, 60 * t + 1)
    p = density(law, support, t) / density(law, support, t).sum()
    likely = p * n > 10
    counts = np.array([(drawn == k).sum() for k in support[likely]])
    rest = n - counts.sum()
    assert chi_square_score(np.append(counts, rest), np.append(p[likely], p[~likely].sum()) * n) < 3


@LAWS
def test_tails_have_the_mass_of_the_law(law):
    n, t = 1_000_000, 5
    drawn = np.abs(sample(law, t, (n,), bits(1)))
    support = np.arange(-400, 401)
    p = density(law, support, t) / density(law, support, t).sum()
    for far in (10, 15, 18) if law is Law.GAUSSIAN else (20, 35, 45):
        expected = n * p[np.abs(support) >= far].sum()
        assert abs((drawn >= far).sum() - expected) < 4 * math.sqrt(expected)


@LAWS
@pytest.mark.parametrize("t", [(1 << 30) + 12345, MAX_SCALE])
def test_moments_and_quantiles_at_large_scale_are_those_of_the_continuous_law(law, t):
    n = 400_000
    x = sample(law, t, (n,), bits(2)) / t
    variance, fourth = (2, 24) if law is Law.LAPLACE else (1, 3)
    assert abs(x.mean()) < 4 * math.sqrt(variance / n)
    assert abs((x > 0).mean() - 0.5) < 2 / math.sqrt(n)
    assert x.var() == pytest.approx(variance, rel=0.02)
    assert (x**4).mean() == pytest.approx(fourth, rel=0.1)
    x = np.sort(x[:20_000])
    erf = np.vectorize(math.erf)
    laplace = np.where(x < 0, np.exp(x) / 2, 1 - np.exp(-np.abs(x)) / 2)
    cdf = laplace if law is Law.LAPLACE else (1 + erf(x / 2**0.5)) / 2
    assert np.abs(cdf - (np.arange(len(x)) + 0.5) / len(x)).max() < 1.95 / math.sqrt(len(x))


@LAWS
def test_low_bits_are_uniform_at_large_scale(law):
    low = sample(law, 1 << 36, (200_000,), bits(3)) & 15
    assert chi_square_score(np.bincount(low), np.full(16, 200_000 / 16)) < 3


@LAWS
def test_noise_is_int64_of_the_shape_asked(law):
    for shape in [(), (0,), (3, 4)]:
        drawn = sample(law, 10, shape)
        assert drawn.shape == shape
        assert drawn.dtype == np.int64
    assert not np.array_equal(sample(law, 1 << 36, (10,)), sample(law, 1 << 36, (10,)))


@LAWS
def test_one_stream_of_bits_gives_one_noise(law):
    np.testing.assert_array_equal(sample(law, 1000, (50,), bits(4)), sample(law, 1000, (50,), bits(4)))


@LAWS
@pytest.mark.parametrize("scale", [0, -1, MAX_SCALE + 1, 1.0, 2.5, math.inf, True - 1])
def test_a_scale_that_is_no_whole_number_of_steps_is_refused(law, scale):
    with pytest.raises(SpecError, match="whole scale"):
        sample(law, scale, (1,))


def test_no_float_takes_part_in_a_draw():
    for node in ast.walk(ast.parse(inspect.getsource(exact))):
        assert not (isinstance(node, ast.Constant) and isinstance(node.value, float))
        assert not isinstance(node, ast.Div)
        name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
        assert "float" not in name
        assert name not in ("random", "log", "sqrt")


@given(st.integers(1, 2**46), st.data())
def test_a_coin_wins_on_exactly_its_share_of_the_words(whole, data):
    part = data.draw(st.integers(0, whole))
    words = np.arange(1 << 16, dtype="<u2").tobytes()
    won = exact._coin(np.full(1 << 16, part, dtype=np.uint64), whole, lambda n: words if n > 2 else b"\xff\xff")
    assert won.sum() == (part << 16) // whole  # the one word that ties is settled by 0xffff: lost


def test_a_tied_coin_is_settled_by_the_next_digits():
    # 1/3 = 0.5555... in base 2^16 (hexadecimal): three ties, then just below, or just above
    third = np.array([1], dtype=np.uint64)
    assert exact._coin(third, 3, fed((0x5555, 2), (0x5555, 2), (0x5555, 2), (0x5554, 2)))[0]
    assert not exact._coin(third, 3, fed((0x5555, 2), (0x5555, 2), (0x5555, 2), (0x5556, 2)))[0]


def test_whole_number_words_that_would_bias_the_remainder_are_dropped():
    last = (1 << 64) // 3 * 3
    np.testing.assert_array_equal(exact._uniform(3, 3, fed((last - 1, 8), (last, 8), (4, 8))), [2, 1])
    assert len(exact._uniform(1 << 36, 2, fed(((1 << 64) - 1, 8), (0, 8)))) == 2


def test_the_table_holds_the_digits_of_the_tail_probabilities():
    width, fine = 160, 700
    root, term = Fraction(0), Fraction(1)
    for k in range(1, 90):  # e^(-1/2) by its alternating series
        root, term = root + term, term * Fraction(-1, 2 * k)
    digits = math.floor(root * 2**fine)

    def power(n):
        return digits**n >> fine * (n - 1) if n else 1 << fine

    for law, exponent in ((Law.LAPLACE, lambda k: 2 * k), (Law.GAUSSIAN, lambda k: k * k)):
        weights = [power(exponent(k)) for k in range(200 if law is Law.LAPLACE else 20)]
        for k, (low, high) in enumerate(exact._tail(law, width)[:8], start=1):
            assert low == (sum(weights[k:]) << width) // sum(weights)
            assert high == low + 1


@LAWS
def test_a_word_on_the_edge_of_the_table_draws_more_digits(law):
    edge = exact._tail(law, 32)[0][0]
    digits = exact._tail(law, 96)[0][0] - (edge << 64)
    assert exact._level(law, 1, fed((edge, 4), (digits - 1, 8)))[0] == 1
    assert exact._level(law, 1, fed((edge, 4), (digits + 1, 8)))[0] == 0
    assert exact._level(law, 1, fed((edge, 4), (digits, 8), ((1 << 64) - 1, 8)))[0] == 0


def test_the_tail_does_not_end_with_the_table():
    assert exact._level(Law.LAPLACE, 1, fed((0, 4), (0, 8), (1, 8)))[0] == math.floor(160 * math.log(2))
    assert exact._level(Law.GAUSSIAN, 1, fed((0, 4), (1, 8)))[0] == 11
