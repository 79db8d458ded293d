"""The integers have exactly the law they claim, and no float takes part in drawing them."""

import ast
import inspect
import math
import re
import threading
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import SpecError
from tacit.privacy import exact
from tacit.privacy.exact import FINE, MAX_SCALE, Law, sample

LAWS = pytest.mark.parametrize("law", Law, ids=lambda law: law.value)
BUILT = pytest.mark.skipif(exact.compiled() is None, reason="the compiled noise was not built")
CODES = pytest.mark.parametrize("code", ["numpy", pytest.param("compiled", marks=BUILT)])


def use(patch, code):
    """Draw by this code."""
    if code == "numpy":
        patch.setattr(exact, "compiled", lambda: None)


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


@CODES
@LAWS
@pytest.mark.parametrize("t", [1, 2, 3, 7, FINE, 2 * FINE, 3 * FINE])
def test_counts_agree_with_the_exact_probabilities(law, t, code, monkeypatch):
    use(monkeypatch, code)
    n = 300_000
    drawn = sample(law, t, (n,), bits(t))
    support = np.arange(-60 * t, 60 * t + 1)
    p = density(law, support, t) / density(law, support, t).sum()
    likely = p * n > 10
    counts = np.array([(drawn == k).sum() for k in support[likely]])
    rest = n - counts.sum()
    assert chi_square_score(np.append(counts, rest), np.append(p[likely], p[~likely].sum()) * n) < 3


@CODES
@LAWS
@pytest.mark.parametrize("t", [5, FINE])
def test_tails_have_the_mass_of_the_law(law, t, code, monkeypatch):
    use(monkeypatch, code)
    n = 1_000_000
    drawn = np.abs(sample(law, t, (n,), bits(1)))
    support = np.arange(-80 * t, 80 * t + 1)
    p = density(law, support, t) / density(law, support, t).sum()
    for far in (2 * t, 3 * t, 18 * t // 5) if law is Law.GAUSSIAN else (4 * t, 7 * t, 9 * t):
        expected = n * p[np.abs(support) >= far].sum()
        assert abs((drawn >= far).sum() - expected) < 4 * math.sqrt(expected)


@CODES
@LAWS
@pytest.mark.parametrize("t", [(1 << 30) + 12345, (1 << 36) + 5 * FINE, MAX_SCALE - 1, MAX_SCALE])
def test_moments_and_quantiles_at_large_scale_are_those_of_the_continuous_law(law, t, code, monkeypatch):
    use(monkeypatch, code)
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


@CODES
@LAWS
def test_low_bits_are_uniform_at_large_scale(law, code, monkeypatch):
    use(monkeypatch, code)
    low = sample(law, 1 << 36, (200_000,), bits(3)) & 15
    assert chi_square_score(np.bincount(low), np.full(16, 200_000 / 16)) < 3


@CODES
@LAWS
def test_noise_is_int64_of_the_shape_asked(law, code, monkeypatch):
    use(monkeypatch, code)
    for shape in [(), (0,), (3, 4)]:
        drawn = sample(law, 10, shape)
        assert drawn.shape == shape
        assert drawn.dtype == np.int64
    assert not np.array_equal(sample(law, 1 << 36, (10,)), sample(law, 1 << 36, (10,)))


@CODES
@LAWS
def test_one_stream_of_bits_gives_one_noise(law, code, monkeypatch):
    use(monkeypatch, code)
    np.testing.assert_array_equal(sample(law, 1000, (50,), bits(4)), sample(law, 1000, (50,), bits(4)))


@LAWS
@pytest.mark.parametrize("scale", [0, -1, MAX_SCALE + 1, 1.0, 2.5, math.inf, True - 1])
def test_a_scale_that_is_no_whole_number_of_steps_is_refused(law, scale):
    with pytest.raises(SpecError, match="whole scale"):
        sample(law, scale, (1,))


def test_no_float_takes_part_in_a_draw():
    compiled = Path(exact.__file__).with_name("_exact.c").read_text()
    assert not re.search(r"\b(double|float|math\.h)\b|\d\.\d|\bexp\(", re.sub(r"/\*.*?\*/", "", compiled, flags=re.S))
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


@pytest.mark.parametrize("parts", [1, FINE])
def test_the_table_holds_the_digits_of_the_tail_probabilities(parts):
    width, fine = 160, 700
    cut = 2 * parts * parts  # e^(-1/cut) and its powers make up all weights
    root, term = Fraction(0), Fraction(1)
    for k in range(1, 90):  # by its alternating series
        root, term = root + term, term * Fraction(-1, cut * k)
    digits = math.floor(root * 2**fine)

    def power(n):
        """e^(-n/cut), by squaring; what is cut off in each product is far below the last bit of the table."""
        product, square = 1 << fine, digits
        while n:
            product, square, n = (product * square >> fine if n & 1 else product), square * square >> fine, n >> 1
        return product

    for law, exponent in ((Law.LAPLACE, lambda k: 2 * k * parts), (Law.GAUSSIAN, lambda k: k * k)):
        weights = [power(exponent(k)) for k in range(parts * (200 if law is Law.LAPLACE else 20))]
        whole = sum(weights)
        found = exact._tail(law, width, parts)
        for k in (*range(1, 8), *range(8, len(found) - 1, 97)):
            assert found[k - 1] == ((sum(weights[k:]) << width) // whole, (sum(weights[k:]) << width) // whole + 1)
        assert found[-1][0] == 0


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


# --- the compiled code, draw by draw ------------------------------------------------------------------------------


class Stream:
    """Bytes in the order in which the compiled code reads them, and how many it has read."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, n):
        self.at += n
        return int.from_bytes(self.data[self.at - n : self.at], "little")

    def give(self, n):
        """All of it at once; whoever asks again wants to settle a level that 64 bits do not tell."""
        given, self.data = self.data, b""
        return given or b"\7" * n


def coin(part, whole, stream, digit):
    """Whether a uniform number in [0, 1) that begins with this digit lies below part/whole."""
    below = Fraction(digit, 256)
    width = Fraction(1, 256)
    while below < Fraction(part, whole) < below + width:
        width /= 256
        below += stream.take(1) * width
    return below + width <= Fraction(part, whole)


def exp_minus(g, stream, digit):
    """A coin of probability exp(-g), g given by the factors whose coins are tossed in turn."""
    j = 1
    while True:
        for first, (part, whole) in enumerate(g):
            if not coin(part, whole * (1 if first else j), stream, stream.take(1) if first else digit):
                return j % 2 == 1
        digit = stream.take(1)
        j += 1


def candidate(law, t, stream):
    """What _exact.c is to draw next, in fractions; None where it rejects."""
    m = 1 if t % FINE else FINE
    s = t // m
    word = stream.take(8)
    width = 64 if s > 2**35 else 39
    u = stream.take(8) if width == 64 else word >> 25
    if u >= 2**width // s * s:
        return None
    u %= s
    tail = [low for low, _ in exact._tail(law, 64, m)]
    level = word & 0xFFFF
    if any(low >> 48 == level for low in tail):
        whole = level << 48 | stream.take(6)
        k = sum(low > whole for low in tail)
        if whole in tail:
            k = exact._resolve(law, whole, 64, lambda n: b"\7" * n, m)
    else:
        k = sum(low >> 48 > level for low in tail)
    digit = word >> 17 & 0xFF
    if law is Law.LAPLACE:
        coins = [[(1, m), (u, s)]]
    elif 2 * k + 1 <= 2 * m * m:
        coins = [[(2 * k + 1, 2 * m * m), (u, s), (u + 2 * k * s, (2 * k + 1) * s)]]
    else:
        coins = [[(1, 2 * m * m), (u, s), (u, s)], *[[(1, m * m), (u, s)]] * k]
    for i, g in enumerate(coins):
        exponent = math.prod((Fraction(*factor) for factor in g), start=Fraction(1))
        assert 0 <= exponent <= 1
        if not exp_minus(g, stream, stream.take(1) if i else digit):
            return None
    exponents = sum(math.prod((Fraction(*factor) for factor in g), start=Fraction(1)) for g in coins)
    n = u + s * k
    wanted = Fraction(n, t) if law is Law.LAPLACE else Fraction(n * n, 2 * t * t)
    assert exponents == wanted - (Fraction(k, m) if law is Law.LAPLACE else Fraction(k * k, 2 * m * m))
    negative = word >> 16 & 1
    return None if negative and n == 0 else -n if negative else n


SCALES = st.one_of(
    st.sampled_from([1, 2, 3, FINE, 2 * FINE, 3 * FINE, FINE * (2**35), FINE * (2**35 - 1), 2**35 + 1, MAX_SCALE]),
    st.integers(1, MAX_SCALE),
    st.integers(1, MAX_SCALE // FINE).map(lambda s: s * FINE),
)


@BUILT
@LAWS
@given(t=SCALES, seed=st.integers(0, 2**32))
def test_the_compiled_code_makes_every_decision_of_its_definition_in_fractions(law, t, seed):
    data = bits(seed)(4000)
    stream = Stream(data)
    wanted = []
    while len(wanted) < 60:
        found = candidate(law, t, stream)
        wanted += [] if found is None else [found]
    assert sample(law, t, (60,), Stream(data).give).tolist() == wanted


@BUILT
@LAWS
def test_small_digits_and_ties_are_decided_as_in_fractions(law):
    """Bytes of a few values only: coins are won, tied and tossed again all the time."""
    for t in (1, 3, FINE, 5 * FINE, FINE * 2**20):
        for seed in range(300):
            few = np.array([0, 0, 0, 0, 1, 2, 85, 128, 128, 255], np.uint8)
            data = np.random.default_rng(seed).choice(few, 20_000).tobytes()
            stream, wanted = Stream(data), []
            while len(wanted) < 10:
                found = candidate(law, t, stream)
                wanted += [] if found is None else [found]
            assert sample(law, t, (10,), Stream(data).give).tolist() == wanted


@BUILT
@LAWS
@pytest.mark.parametrize("parts", [1, FINE])
def test_every_word_of_the_level_is_told_by_the_table_or_drawn_further(law, parts):
    direct, tail = exact._tables(law, parts)
    assert len(direct) == 1 << 16
    assert tail[-1] == 0
    assert (tail[:-1] >= tail[1:]).all()
    assert all(high == low + 1 for low, high in exact._tail(law, 64, parts))  # a tie is one word, and not two
    edges = {int(low) >> 48 for low in tail}
    assert {int(word) for word in np.flatnonzero(direct == exact.compiled().TIED)} == edges
    for word in (0, 1, 2, 77, 4096, 30000, 65535):
        if word not in edges:
            assert direct[word] == sum(int(low) > word << 48 for low in tail)


@BUILT
@LAWS
def test_a_level_that_64_bits_do_not_tell_is_settled_by_further_digits(law):
    s, edge = 3, exact._tail(law, 64, FINE)[0][0]
    further = exact._tail(law, 128, FINE)[0][0] - (edge << 64)
    word = edge >> 48 | 255 << 17 | 1 << 25  # u = 1; the first coin is lost: nothing is rejected
    for digits, level in ((further - 1, 1), (further + 1, 0)):
        begins = word.to_bytes(8, "little") + (edge & (1 << 48) - 1).to_bytes(6, "little")
        source = iter([begins, digits.to_bytes(8, "little")])
        assert sample(law, s * FINE, (1,), lambda _n, source=source: next(source)) == 1 + s * level


@BUILT
def test_the_last_incomplete_stretch_of_words_is_rejected_by_the_compiled_code_too():
    s = 3 * 2**30 + 1
    last = 2**39 // s * s
    first, second = ((255 << 17 | u << 25 | 0xFFFE).to_bytes(8, "little") for u in (last, last - 1))
    assert sample(Law.GAUSSIAN, s * FINE, (1,), fed((int.from_bytes(first + second, "little"), 10**4))) == s - 1


@BUILT
@LAWS
@pytest.mark.parametrize(("source", "error"), [
    (lambda _: b"", ValueError), (lambda _: 7, ValueError), (lambda _: 1 / 0, ZeroDivisionError),
])  # fmt: skip
def test_a_source_that_fails_ends_the_draw(law, source, error):
    with pytest.raises(error):
        sample(law, FINE, (5,), source)


@BUILT
def test_a_source_that_gives_little_at_a_time_gives_the_same_law():
    """A word is never put together from what two calls gave: what is left over is dropped unseen."""
    source = bits(8)
    drawn = sample(Law.GAUSSIAN, 2 * FINE, (20_000,), lambda _: source(11)) / (2 * FINE)
    assert drawn.mean() == pytest.approx(0, abs=0.03)
    assert drawn.var() == pytest.approx(1, rel=0.05)


@BUILT
def test_the_compiled_code_refuses_tables_and_scales_that_do_not_fit():
    module, out = exact.compiled(), np.zeros(3, np.int64)
    direct, tail = exact._tables(Law.GAUSSIAN, FINE)
    for law, t, m, table, rest in (
        (7, 64, 64, direct, tail), (1, 63, 64, direct, tail), (1, 0, 1, direct, tail), (1, 64, 2, direct, tail),
        (1, MAX_SCALE + 64, 64, direct, tail), (1, 64, 64, direct[:-1], tail), (1, 64, 64, direct, tail[:0]),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="does not fit"):
            module.fill(law, t, m, np.ascontiguousarray(table), rest, out, bits(), lambda _: 0)


@BUILT
def test_threads_draw_apart():
    """Side by side as one after another: no state is shared."""
    seeds = range(8)
    alone = [sample(Law.GAUSSIAN, 1 << 36, (30_000,), bits(seed)) for seed in seeds]
    found = {}
    threads = [
        threading.Thread(target=lambda s=s: found.update({s: sample(Law.GAUSSIAN, 1 << 36, (30_000,), bits(s))}))
        for s in seeds
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(found[seed], drawn) for seed, drawn in zip(seeds, alone, strict=True))
