"""The server's check of an answer: whether an honest agent can have sent it.

    |answer| <= n bound allowance + g (sqrt(d) / 2 + |k|)        in l2, else it is refused

An agent with n records answers with g (round(value / g) + k): d numbers on the grid g of its noise k
(tacit.privacy.lattice). Everything on the right is public; for |k| stands a number that it exceeds with
a probability that is known. In a whole run no honest agent is refused, but for a probability of 2^-FAILURE. Numbers
that are not finite are refused.

The value. An absent record contributes zero, so that the value of n absent records is 0. Let the records come back one
by one. Each moves the value, as it is computed, by at most bound(l2, ZERO_OUT) times the evaluator's allowance
(tacit.query.query). So |value| <= n bound allowance.

The rounding moves an entry by at most 1/2. Entries that saturate become smaller.

The noise k has d independent entries, of the scale s = steps(scale).

* Gaussian law. For an entry, E e^(l k) <= e^(l^2 s^2 / 2): completing the square leaves the ratio of
  sum_k e^(-(k - l s^2)^2 / (2 s^2)) to the same sum with l = 0, which is the largest by Poisson summation. With h
  standard normal in d dimensions and 2 y s^2 < 1,

      E e^(y |k|^2) = E e^(sqrt(2 y) h.k) <= E e^(y s^2 |h|^2) = (1 - 2 y s^2)^(-d / 2)

  which is the moment generating function of s^2 chi^2_d. So Chernoff's bound of that law holds (Laurent and Massart
  2000; Hsu, Kakade and Zhang 2012): |k|^2 <= s^2 (d + 2 sqrt(d x) + 2 x) but for probability e^-x.
* Laplace law. With p = e^(-1 / s), P(|k_i| >= m) = 2 p^m / (1 + p) <= p^(m - 1/2) for m >= 1, because
  1 + p >= 2 sqrt(p). So |k_i| is at most 1/2 + s E_i in distribution, E_i exponential with mean 1, and |k| is at most
  sqrt(d) / 2 + s |E|. The largest E_i exceeds M = x + ln d with probability e^-x at most. Else |E|^2 is the sum of
  Y_i = min(E_i, M)^2. For 0 < l < 1 / M, because e^y <= 1 + y + y^2 e^y / 2, Y <= E^2 and Y <= M E,

      ln E e^(l Y) <= l E E^2 + (l^2 / 2) E E^4 e^(l M E) = 2 l + 12 l^2 / (1 - l M)^5

  and by Chernoff's bound sum_i Y_i <= 2 d + 12 d l / (1 - l M)^5 + x / l but for probability e^-x. Any l will do; it is
  the best of a few. Both bounds fail with probability 2 e^-x at most.

A run asks P agents T questions each, and an answer that is repeated is the same: x = FAILURE ln 2 + ln(2 P T). Records
and earlier rounds may be anything, because the bound holds for every value.

Behind a secure sum there is no such check: the server sees no single answer, and the range of the words is the bound.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from tacit.agent.agreement import NoisyQuery
from tacit.privacy import lattice
from tacit.privacy.exact import Law
from tacit.problem.sensitivity import Adjacency
from tacit.run.deployment import Deployment
from tacit.types import Array, Norm

FAILURE = 60  # -log2 of the probability that a run refuses an honest answer
ROOM = 1 + 2**-20  # above the rounding of a norm of up to 2^31 numbers, and of a threshold


def why_implausible(deployment: Deployment, p: int, t: int, answer: Array) -> str | None:
    """Return why an honest agent p does not send this answer to question t; None if it may."""
    own, records = deployment.agreements[p], deployment.records[p]
    most = threshold(own.at(t), own.adjacency, records, len(deployment.records) * own.rounds)
    with np.errstate(all="ignore"):  # a hostile answer may overflow
        size = float(np.linalg.norm(answer.ravel() / most))
    if size <= 1:  # NaN is not
        return None
    if not math.isfinite(size):
        return "its answer is not finite, or far too large"
    return f"the norm of its answer is {size:.3g} times the largest that {records} records and their noise can give"


@lru_cache(maxsize=4096)
def threshold(asked: NoisyQuery, adjacency: Adjacency, records: int, questions: int) -> float:
    """Return the largest l2 norm of the answer of an honest agent with so many records, in a run of so many answers."""
    query, scale = asked.query, asked.scale(adjacency, records)
    value = records * query.bound(Norm.L2, Adjacency.ZERO_OUT) * query.evaluator.allowance(query, records)
    x = FAILURE * math.log(2) + math.log(2 * questions)
    steps = math.sqrt(query.size) / 2 + noise(asked.noise.law, lattice.steps(scale), query.size, x)
    return ROOM * (value + lattice.grid(scale) * steps)


def noise(law: Law, scale: int, d: int, x: float) -> float:
    """Return a number of steps that the l2 norm of d entries of noise exceeds with probability 2 e^-x at most."""
    if law is Law.GAUSSIAN:
        return scale * math.sqrt(d + 2 * math.sqrt(d * x) + 2 * x)
    longest = x + math.log(d)
    shares = (n / 64 for n in range(1, 64))  # l M
    least = min(12 * d * share / (longest * (1 - share) ** 5) + x * longest / share for share in shares)
    return math.sqrt(d) / 2 + scale * math.sqrt(2 * d + least)
