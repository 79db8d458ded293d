"""A test of the scale of the noise. This test is no attack: it tells nothing about a record.

Noise xi of a claimed law and of a claimed scale b has energies that add up, over n independent entries, to a Gamma law:

    Laplace     sum |xi| / b            ~ Gamma(n)
    Gaussian    sum xi^2 / (2 b^2)      ~ Gamma(n / 2)

Noise of f times the scale has f, or f^2, times the energy. So a sum that is too small for Gamma(a) bounds f from above,
and a few thousand draws of a few entries tell f to one or two per cent. By Chernoff's bound

    P[Gamma(a) <= r a] <= exp(-a (r - 1 - ln r)),   r < 1.

The test assumes the shape of the law, and that entries are independent; the attacks look for noise of another shape and
for noise that is not new. The centre of the noise may be unknown: noise about another point than the expected point
makes the sum larger (Anderson's lemma), and the bound on f stays a bound. The bound also holds for discrete noise of t
steps on a grid. Chernoff's bound needs only E exp(-q energy), which differs by a relative q (q + 2) / (12 t^2) between
the discrete and the continuous Laplace law, and by e^(-t^2) between the Gaussian laws; to round a value to the grid
moves the centre by 1 / (2t) scales; and t is 2^36 at least (tacit.privacy.lattice).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from tacit.privacy.mechanism import Laplace, Mechanism
from tacit.types import Array


@dataclass(frozen=True)
class Noise:
    """The energy of many entries of noise in units of the claimed scale: Gamma(shape) if the claim is true.

    Noise of f times the claimed scale has f^power times the energy. `hidden`: a projection may have hidden some of the
    noise, which is then smaller than the drawn noise; hidden noise is measured but not tested.
    """

    energy: float
    shape: float
    power: int
    hidden: bool = False

    @classmethod
    def of(cls, mechanism: Mechanism, entries: Array, hidden: bool = False) -> Noise:
        """Return the noise of these entries, which are in units of the scale that is claimed for the mechanism."""
        if isinstance(mechanism, Laplace):
            return cls(float(np.abs(entries).sum()), entries.size, 1, hidden)
        return cls(float(np.square(entries).sum() / 2), entries.size / 2, 2, hidden)

    def __add__(self, other: Noise) -> Noise:
        return replace(self, energy=self.energy + other.energy, shape=self.shape + other.shape)

    @property
    def scale(self) -> float:
        """Return the most likely true scale over the claimed scale."""
        return float((self.energy / self.shape) ** (1 / self.power))

    def scale_at_most(self, confidence: float) -> float:
        """Return an upper bound on the true scale over the claimed scale, which holds with this confidence."""
        return float(self.scale / _luckiest(-math.log1p(-confidence) / self.shape) ** (1 / self.power))

    def shrunk(self, factor: float) -> Noise:
        """Return the noise with every entry multiplied by `factor`."""
        return replace(self, energy=self.energy * factor**self.power)


def _luckiest(exponent: float) -> float:
    """Return the r < 1 with r - 1 - ln r = exponent, rounded down."""
    low, high = math.exp(-1 - exponent), 1.0
    while high - low > 1e-12 * high:
        r = (low + high) / 2
        low, high = (r, high) if r - 1 - math.log(r) >= exponent else (low, r)
    return low
