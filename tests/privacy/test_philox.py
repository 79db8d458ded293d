"""Philox in operators alone gives NumPy's words."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tacit.privacy import noise, philox

WORD = st.integers(0, 2**64 - 1)


def signed(*words):
    return np.array(words, np.uint64).view(np.int64)


@given(WORD, WORD)
def test_high_is_the_upper_half_of_the_unsigned_product(a, m):
    assert philox.high(signed(a), m).view(np.uint64).item() == a * m >> 64


@given(st.tuples(WORD, WORD, WORD, WORD), st.tuples(WORD, WORD))
def test_words_are_those_of_numpy(counter, key):
    before = sum(word << 64 * i for i, word in enumerate(counter))
    after = (before + 1) % 2**256  # NumPy counts up before it draws
    own = philox.words([signed(after >> 64 * i & 2**64 - 1) for i in range(4)], [signed(word) for word in key])
    # as arrays: NumPy turns a tuple with words beyond 2^63 into floats, and rounds them
    stream = np.random.Philox(key=np.array(key, np.uint64), counter=np.array(counter, np.uint64))
    drawn = stream.random_raw(4)
    np.testing.assert_array_equal(np.concatenate(own).view(np.uint64), drawn)


@given(st.integers(0, 2**63 - 1), st.integers(0, 1000), st.integers(1, 10**6))
def test_integers_are_those_of_the_noise(seed, agent, t):
    eights = philox.integers(np.arange(3), (signed(seed), signed(agent)), t)
    np.testing.assert_array_equal(np.stack(eights, axis=-1).ravel(), noise.integers((seed, agent), t, 0, 24))
