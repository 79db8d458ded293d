"""What agents put into a secure sum, and what the sum costs: integers on one public grid, modulo 2^k.

    share_p = round(value_p / g) + n_p  mod 2^k,   n_p discrete Gaussian of s steps      total = g lift(sum_p share_p)

Every number but value_p and n_p is public and the same for all agents. The noise of the sum is t steps, which is
multiplier x sensitivity on the grid (tacit.privacy.lattice), so g and t do not depend on an agent's own number of
records. Of P agents in an attempt, c may collude with the server. The m = P - c others have the noise together:
s^2 m >= t^2. The lift takes a residue to [-2^(k-1), 2^(k-1)).

Theorem. An attempt is one Gaussian release with `multiplier`, up to `gap` in total variation, to the server together
with any c agents (the record's own not among them). So T of them (`releases`: rounds and repetitions) that are
(epsilon, delta)-DP with continuous noise are (epsilon, delta + (1 + e^epsilon) T gap)-DP here. Proof:

1. What is seen. Every two honest agents share a mask that nobody else knows. So the coalition sees the sum of the m
   honest shares modulo 2^k or, where an honest share is missing, uniform residues (as far as the cipher of the masks
   holds). The sum is a function of the integer vector
       N = sum over the honest of (round(value_p / g) + n_p).
   So reduction modulo 2^k, wrap-around, the lift, the product with g and the server's next model cost no privacy. Where
   fewer than c collude, the noise of the others is added independently, and costs none.
2. Sensitivity. Given what was seen, value_p depends on p's records alone (a gradient at the server's w: see
   tacit.admm.local_models, where the duals cancel). One record moves one value_p. Saturation moves no two values
   apart, and rounding adds g sqrt(d) once, not P times. `lattice.calibrate` counts the rounding.
3. The law of the noise. Let r_a(x) = exp(-x^2 / (2 a^2)) and v^2 = a^2 + b^2. The sum of discrete Gaussians of a and
   b steps is n with a probability proportional to
       sum_i r_a(i) r_b(n - i) = r_v(n) S(n a^2 / v^2),     S(x) = sum_i r_u(i - x),   u = a b / v,
   by completing the square. By Poisson summation S(x) = u sqrt(2 pi) (1 + 2 sum_{l>0} q^(l^2) cos(2 pi l x)) with
   q = exp(-2 pi^2 u^2). So S varies by a factor (1 + e) / (1 - e) at most, e = 2 q / (1 - q^3) (since l^2 >= 3 l - 2).
   Normalised, the law of the sum over the discrete Gaussian of v steps lies within this factor of 1, at every n. One
   more independent summand on both sides keeps the factor. Add m laws of s steps one by one: a = s sqrt(j), b = s, so
       |log ratio| <= H = sum_{0<j<m} 2 artanh(e_j),    about 4 sum_j exp(-2 pi^2 s^2 j / (j + 1))     (`log_ratio`)
   (Kairouz, Liu & Steinke 2021 have this form with 10 for 4). For m = 2 the truth is half of H; for more it is smaller
   yet. Laws within e^H of each other are tanh(H/2) <= H/2 apart in total variation, and the d entries add up. With
   s = 2^30 steps, H is below 10^(-10^18).
4. The discrete Gaussian of s sqrt(m) >= t steps is d / (24 s^2 m) from rounded continuous noise, as on any grid. Both
   distances are `gap`: at d = 50 000 it is below 4.5e-19 for up to a million agents, all of it from this point.

Who learns what. The server alone: the theorem with c = 0. An agent alone knows its own share and sees w, a function of
totals: c = 1. An outsider sees masked residues, or w: no more than the server. Nobody but its own agent sees a record.

Accuracy. The lift gives the integer sum unless that leaves [-2^(k-1), 2^(k-1)). Agents saturate at `bound` steps, and
discrete Gaussians are sub-Gaussian: with u = s, E exp(y n) = exp(y^2 s^2 / 2) S(y s^2) / S(0) <= exp(y^2 s^2 / 2),
as S is largest at 0. So the noise of P shares exceeds y steps with probability 2 exp(-y^2 / (2 P s^2)) at most.
`reach` is how far a sum goes, but with probability 2^-60 in a run, and `modulus` chooses k so that it does not wrap.
All choices are made in integers, or by IEEE operations: every agent finds the same k.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from tacit.errors import DataError, SpecError
from tacit.privacy import lattice
from tacit.privacy.exact import FINE, Bits, Law, sample, system
from tacit.types import Array, Norm

_WORD = 64  # bits of a residue at most: it is a word of the machine
_UNLIKELY = 60  # -log2 of the probability that anything wraps around in a run
_SPARE = 3  # bits beyond that, where a word has room: what is no sum of honest shares then leaves the range, and shows
_CHEAP = FINE << 14  # shares from here on are rounded up to a multiple of FINE, for less than 2^-14 of their noise


@dataclass(frozen=True)
class InSum:
    """What a run agrees on that trusts a secure sum: how many agents may collude, how often rounds may be repeated."""

    colluding: int = 1
    repetitions: int = 0

    def whole_noises(self, n_agents: int) -> float:
        """How many times the noise of one release enters a round: P / (P - c) times, and not P times."""
        return n_agents / Peers(n_agents, self.colluding).honest


@dataclass(frozen=True)
class Peers:
    """The agents of one attempt: `present` of them, of which `colluding` may tell the server their noise.

    Below `threshold` agents there is no attempt at all.
    """

    present: int
    colluding: int
    threshold: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.colluding < self.present:
            raise SpecError(
                f"{self.colluding} of {self.present} agents cannot collude: at least one, the record's own, must not. "
                "Choose a number from 0 to P - 1."
            )
        if self.present < self.threshold:
            raise SpecError(
                f"a sum over {self.present} agents hides less than a sum over {self.threshold}, the threshold: "
                "wait for more agents, or lower the threshold."
            )

    @property
    def honest(self) -> int:
        """m = P - c: the agents whose shares are the noise that is counted."""
        return self.present - self.colluding


@dataclass(frozen=True)
class Attempt:
    """What the agents of one attempt agree on: g, s, the bound of a value in steps, k, and how far a sum reaches."""

    step: float
    share_steps: int
    bound: int
    width: int
    reach: int

    def share(self, value: Array, bits: Bits = system) -> Array:
        """round(value / g) + noise modulo 2^k, as uint64: what an agent masks. Values saturate at the bound."""
        exact = np.asarray(value, dtype=np.float64)
        if not np.isfinite(exact).all():
            raise DataError("a vector to be summed holds NaN or inf: check step size and data before answering.")
        largest = self.bound * self.step  # exact: `bound_steps` gives whole numbers of a float64
        whole = np.rint(np.clip(exact, -largest, largest) / self.step).astype(np.int64)
        noisy = whole + sample(Law.GAUSSIAN, self.share_steps, exact.shape, bits)
        return np.asarray(noisy.view(np.uint64) & np.uint64((1 << self.width) - 1))

    def total(self, residues: Array) -> Array:
        """g times the integer that the sum of all shares stands for; uint64 residues, reduced modulo 2^k or not.

        Sums beyond 2^53 steps are rounded to a float64.
        """
        return self.steps(residues) * self.step

    def steps(self, residues: Array) -> Array:
        """The integers themselves, in [-2^(k-1), 2^(k-1)): int64."""
        if residues.dtype != np.uint64:
            raise DataError(f"a sum of shares is an array of uint64, not {residues.dtype}: add shares, nothing else.")
        unused = _WORD - self.width
        return np.asarray((residues << np.uint64(unused)).view(np.int64) >> np.int64(unused))

    def holds(self, residues: Array) -> bool:
        """Whether these can be a sum of honest shares: it is so with probability 1 - 2^-60 in a run.

        Of words that somebody made up, an entry lies in reach with probability 1/8 at most where k has its spare bits.
        """
        found = self.steps(residues)
        return bool((found <= self.reach).all() and (found >= -self.reach).all())


@dataclass(frozen=True)
class Summed:
    """The public numbers of a run, the same for every agent.

    One record moves a value by at most `sensitivity` in L2, and no entry of a value exceeds `largest`. Both bound the
    value as computed. `releases` are those of the whole run.
    """

    multiplier: float
    sensitivity: float
    largest: float
    dimension: int
    releases: int

    @cached_property
    def scale(self) -> float:
        """The noise of the sum: `multiplier` sensitivities, the rounding of one value counted."""
        return lattice.calibrate(Norm.L2, self.multiplier, self.sensitivity, self.dimension)

    def attempt(self, peers: Peers) -> Attempt:
        """Shares for these agents."""
        step = lattice.grid(self.scale)
        share = share_steps(lattice.steps(self.scale), peers)
        bound = bound_steps(self.largest, step)
        most = reach(bound, share, peers.present, self.dimension, self.releases)
        return Attempt(step, share, bound, modulus(most), most)


@lru_cache(maxsize=256)
def attempt_of(numbers: Summed, peers: Peers) -> Attempt:
    """`Summed.attempt`, made once."""
    return numbers.attempt(peers)


def releases(rounds: int, repetitions: int) -> int:
    """How many releases a run is calibrated for: each attempt is one, whatever the server kept of it."""
    if rounds < 1 or repetitions < 0:
        raise SpecError(f"a run has one round or more, and no less than 0 repetitions: got {rounds} and {repetitions}.")
    return rounds + repetitions


def share_steps(total: int, peers: Peers) -> int:
    """s: the least with s^2 m >= total^2, rounded up to a multiple of FINE where that is cheap."""
    if total < 1:
        raise SpecError(f"the noise of a sum is one step or more, got {total}: take a finer grid.")
    share = math.isqrt((total * total - 1) // peers.honest) + 1
    return share if share < _CHEAP else -(-share // FINE) * FINE


def bound_steps(largest: float, step: float) -> int:
    """The most steps to which a value is rounded; the quotient by a power of two is exact."""
    if not 0 < largest < math.inf:
        raise SpecError(f"values of a sum need a positive, finite bound that is public: got {largest}; clip gradients.")
    return math.ceil(largest / step)


def log_ratio(share: float, summands: int) -> float:
    """H: a bound of |log(P(n) / Q(n))|, the sum of discrete Gaussians of `share` steps over one of share sqrt(m)."""
    bound = 0.0
    for j in range(1, summands):
        q = math.exp(-2 * (math.pi * share) ** 2 * j / (j + 1))
        varies = 2 * q / (1 - q**3)
        bound += 2 * math.atanh(varies) if varies < 1 else math.inf
    return bound


def gap(share: int, honest: int, dimension: int) -> float:
    """Total variation between one attempt's honest sum and the rounded continuous mechanism: points 3 and 4 above."""
    return dimension * log_ratio(share, honest) / 2 + lattice.gap_in_steps(
        Law.GAUSSIAN, share * math.sqrt(honest), dimension
    )


def reach(bound: int, share: int, present: int, dimension: int, count: int) -> int:
    """P bound + y: how far a sum of honest shares goes, where 2 exp(-y^2 / (2 P s^2)) d T <= 2^-60 by ln 2 < 7/10."""
    if min(bound, share, present, dimension, count) < 1:
        raise SpecError(
            f"a modulus needs a bound, a share, agents, entries and releases of 1 or more: "
            f"got {bound}, {share}, {present}, {dimension}, {count}."
        )
    halvings = (dimension * count << _UNLIKELY + 1).bit_length()  # 2 d T 2^60 < 2^halvings
    return present * bound + math.isqrt(2 * present * share * share * halvings * 7 // 10) + 1


def modulus(most: int) -> int:
    """k: the least with 2^(k-1) > `most`, and spare bits where a word has room for them."""
    width = most.bit_length() + 1
    if width > _WORD:
        raise SpecError(
            f"a sum of values up to {most} steps needs {width} bits and a residue has {_WORD}: "
            "add more noise, which makes the grid coarser, or clip more, or sum over fewer agents."
        )
    return min(width + _SPARE, _WORD)
