"""Philox-4x64-10 (Salmon et al. 2011) in operators on int64 alone: NumPy, torch, any device.

The words of privacy.noise, where NumPy's own generator cannot reach. Unsigned arithmetic modulo 2^64 is
signed arithmetic that wraps; only a product's upper half and a shift to the right need care.
"""

MULTIPLIERS = (0xD2E7470EE14C6C93, 0xCA5A826395121157)
WEYL = (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)  # added to the key after every round
ROUNDS = 10
HALF = 0xFFFFFFFF


def integers(i, key, t):
    """Entries 8 i .. 8 i + 7 of noise.integers(key, t, 0, .), eight arrays; i and the key are arrays that broadcast."""
    zero = 0 * i
    return [half for word in words((i + 1, zero, zero, zero + t), key) for half in halves(word)]


def words(counter, key):
    """Four 64-bit words from a counter of four and a key of two, all of them arrays that broadcast."""
    a, b, c, d = counter
    k0, k1 = key
    for _ in range(ROUNDS):
        a, b, c, d = (
            high(c, MULTIPLIERS[1]) ^ b ^ k0,
            c * _signed(MULTIPLIERS[1]),
            high(a, MULTIPLIERS[0]) ^ d ^ k1,
            a * _signed(MULTIPLIERS[0]),
        )
        k0, k1 = k0 + _signed(WEYL[0]), k1 + _signed(WEYL[1])
    return a, b, c, d


def halves(word):
    """(lower, upper) 32 bits, as numbers from 0 to 2^32 - 1."""
    return word & HALF, (word >> 32) & HALF


def high(a, m):
    """The upper 64 bits of the 128 of a * m, both unsigned: long multiplication in digits of 32 bits."""
    (a0, a1), (m0, m1) = halves(a), halves(m)
    middle = a1 * m0 + halves(a0 * m0)[1]
    low, carry = halves(middle)
    return a1 * m1 + carry + halves(a0 * m1 + low)[1]


def _signed(m):
    """The int64 with the bits of a constant below 2^64."""
    return m - ((m >> 63) << 64)
