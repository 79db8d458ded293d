"""What integers with binomial noise tell of a record: a bound on the Renyi divergence, with its proof.

    q_j = floor(v_j + U_j) + n_j,    U_j uniform on [0, 1),    n_j = (heads of m fair coins) - m/2,    m even

v is a vector of d entries in steps, and a record moves v by D, |D|_2 <= c. This is the release of cpSGD (Agarwal et al.
2018). Their theorem adds terms in |.|_1 and |.|_inf to the epsilon of a Gaussian release, for one release and for large
m. Here the releases of a run add up as Renyi divergences, and the bound is that of a Gaussian release of variance
(m + 1)/4, times 1 + O(1/m). P is the law of n, N = (m + 1)/2, alpha > 1, b = alpha - 1/2.

1. One entry, moved by a whole number k. With y = n + k/2, the privacy loss is

       L = ln P(n) / P(n + k) = sum_{i=1..k} 2 artanh((n + i - 1/2) / N)

   It is odd in y, and convex for y >= 0. So where |n| <= A and A + k < N,

       |L| <= theta |y|,    theta = 2 k g / N,    g = artanh(v)/v,    v = (A + k)/N

2. P(n)^alpha P(n+k)^(1-alpha) = S(y) e^(b L), where S(y) = sqrt(P(n) P(n+k)) is even in y. The sum over |y| <= A + k/2
   is one of S cosh(b L) <= S cosh(b theta y), and so at most sum S e^(b theta y) <= E e^(b theta n) (Cauchy-Schwarz;
   the factors e^(+- b theta k/2) cancel) = cosh(b theta/2)^m <= e^(b^2 theta^2 m / 8). As m < m + 1,

       ln sum_{|n| <= A} P(n)^alpha P(n+k)^(1-alpha)  <=  x k^2,    x = 2 b^2 g^2 / (m + 1)

   A Gaussian of variance (m + 1)/4 has 2 alpha (alpha - 1) / (m + 1) for x: b^2 is that plus 1/4.

3. Rounding. Both data sets share U, and p^alpha q^(1-alpha) is jointly convex: the sum for the laws of q is at most the
   mean over U of the sums given U. Given U entry j moves by k or k + 1, where |D_j| = k + f, by the latter with
   probability f. Hoeffding's lemma for these two numbers gives

       ln( (1-f) e^(x k^2) + f e^(x (k+1)^2) ) <= x ( D_j^2 + f (1-f) ) + x^2 (2k+1)^2 / 8

   (2k+1)^2 <= 9 D_j^2 where k >= 1, and f (1-f) <= min(1/4, |D_j|). Entries are independent, so over all of them

       (alpha - 1) R <= x ( c^2 + min(d/4, c sqrt d) ) + x^2 ( 9 c^2 + d ) / 8

   with A + ceil(c) in the place of A + k.

4. What was cut. The probability that some |n_j| > A is at most 2 d e^(-2 A^2 / m) (Hoeffding) = dp_delta of a release.
   Let E be that this happens in no release of a run. For every set of outcomes, P(S) - e^epsilon Q(S) <= P(not E) +
   the same with P restricted to E, and the step from Renyi divergences to (epsilon, delta) holds point by point: it
   asks for no total mass of one. So the dp_deltas of the releases add up and are taken off delta, as those of general
   releases are. n is symmetric: the bound holds with P and Q exchanged.

Where A + ceil(c) >= N there is no bound: R = inf. A U of 53 bits rounds up with a probability that is off by 2^-53 at
most: ROOM is for that, and for the arithmetic here.
"""

from __future__ import annotations

import math

import numpy as np

from tacit.privacy.release import BinomialRelease
from tacit.types import Array

ROOM = 1 + 1e-9


def cut(release: BinomialRelease) -> int:
    """A: beyond it lies some entry of the noise with probability dp_delta at most."""
    return math.ceil(math.sqrt(release.coins / 2 * math.log(2 * release.entries / release.dp_delta)))


def square_cost(coins: int, reach: int, alpha: Array) -> Array:
    """x of statement 2, where reach = A + k; inf where the reach is too long."""
    middle = (coins + 1) / 2
    v = reach / middle
    if v >= 1:
        return np.full_like(alpha, np.inf)
    return np.asarray(((alpha - 0.5) * (math.atanh(v) / v)) ** 2 / middle)


def renyi(release: BinomialRelease, alpha: Array) -> Array:
    """R: statement 3."""
    c, d = release.moved, release.entries
    x = square_cost(release.coins, cut(release) + math.ceil(c), alpha)
    rounded = min(d / 4, c * math.sqrt(d))
    return np.asarray(ROOM * (x * (c**2 + rounded) + x**2 * (9 * c**2 + d) / 8) / (alpha - 1))
