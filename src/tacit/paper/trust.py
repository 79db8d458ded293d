"""What can be said of ObjT's convergence, of which the paper says nothing: a bound, and a floor.

A trust region that holds W in every round binds in none, and then

    E[F(z^(T)) - F* + gamma |A w^(T) - z^(T)|]
        <= 1/T { 5/2 (P U1^2 + 2 P J K U3^2 / epsilon^2) sum_t 1 / rho^t
                 + gamma sqrt(P) U2 + P U2^2 rho^T / 2 + gamma^2 / (2 rho^1) }

for every nondecreasing rho^t and lambda^1 = 0: O(1 / sqrt(T)) with rho^t = c sqrt(t). Regions whose radii add up to
less than the way to the optimum hold the merit above a constant. Proofs: docs/reproduction.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np

from tacit.admm.rule import Trust
from tacit.jsontext import Values
from tacit.paper.archive import select, spec_of
from tacit.paper.theorem import Constants, Known, Merit, diameter, optimum, slope
from tacit.problem.domain import Box, Domain
from tacit.types import Array, Norm


@dataclass(frozen=True)
class WideBound(Known):
    """The right-hand side for ObjT where every trust region holds W."""

    def __call__(self, rounds: int, rho: float, inverse_rho: float) -> float:
        """The bound after so many rounds: rho is that of the last, inverse_rho the sum of 1 / rho^t over all."""
        squared, plain = self.distances
        steps = 5 / 2 * self.energy * inverse_rho
        return (steps + self.gamma * plain + squared * rho / 2 + self.gamma**2 / (2 * self.rho_first)) / rounds


def holds_set(rule: Trust, domain: Domain, dimension: int, rounds: int) -> bool:
    """Whether the trust region of every round holds W, around whichever z in W it lies."""
    widest = 2 * domain.radius if isinstance(domain, Box) and rule.norm is Norm.INF else diameter(domain, dimension)
    return all(rule.radius(t) >= widest for t in range(1, rounds + 1))


def floor(merit: Merit, rule: Trust, rounds: int) -> float | None:
    """A constant below which the merit cannot fall in so many rounds, as z_p starts at zero; None where unknown.

    With r = sum_t delta^t every entry of z_p stays in [-r, r]. Let w_r minimise F there, and nu_p = f'_p(w_r) less its
    mean over p. If |nu| <= gamma, no z in reach and no w have a merit below F(w_r) - F*. Where the radii reach all of W
    that is 0, for a gamma of at least |lambda*|, as Merit.of has it.
    """
    domain = merit.problem.domain
    if rule.norm is not Norm.INF or not isinstance(domain, Box):
        return None
    reach = math.fsum(rule.radius(t) for t in range(1, rounds + 1))
    if reach >= domain.radius:
        return 0.0
    within, shards = replace(merit.problem, domain=Box(reach)), merit.federation.shards
    nearest = optimum(within, merit.federation)
    slopes = np.stack([within.gradient(nearest, shard) for shard in shards])
    if np.linalg.norm(slopes - slopes.mean(0)) > merit.gamma:
        return None
    return float(sum(within.value(nearest, shard) for shard in shards) - merit.f_star)


def region_binding(rule: Trust, domain: Domain, t: int, before: Array, after: Array) -> float:
    """The share of entries that moved by as much as the region allows, less those that W stopped at its face.

    A radius below the rounding of an entry allows no move, and binds.
    """
    size = np.abs(after)
    rounding = 2 * np.spacing(np.maximum(size, np.abs(before)))
    stopped = np.abs(after - before) >= rule.radius(t) - rounding
    return float(np.mean(stopped & (size < domain.radius - rounding) if isinstance(domain, Box) else stopped))


RHO = {"static": "{:g}", "root": "{:g} sqrt(t)"}
RADIUS = {"constant": "{:g}", "root": "{:g}/sqrt(t)", "inverse": "{:g}/t", "power": "{:g}/t^2"}
COLUMNS = [
    "epsilon", "rho", "radius", "T", "seeds", "binds, first 1 % of rounds", "binds, last 90 %", "merit at T",
    "slope, last two decades", "last w: F - F*", "merit at least", "bound at T",
]  # fmt: skip
_KEYS = ("privacy.epsilon", "schedule.rho", "schedule.rho_static", "schedule.radius", "schedule.radius_a")


def bound_of(one: Values) -> list[float] | None:
    """The bound at every measured round of the record of a run of ObjT, if its regions hold W."""
    held, curve = one["theorem"], one["curve"]
    if not held["wide"]:
        return None
    found = Constants(held["u1"], held["u2"], held["u3"])
    bound = WideBound(found, one["agents"], held["noise"], held["gamma"], curve["rho"][0])
    return [bound(*point) for point in zip(curve["t"], curve["rho"], curve["inverse_rho"], strict=True)]


def shown(records: Sequence[Values], panels: Sequence[Values]) -> Values:
    """The table of merits, slopes, floors and bounds, and the floor as a line in the panels of the merit."""
    settings = sorted({tuple(spec_of(one)[key] for key in _KEYS) for one in records})
    rows, series = [], []
    for setting in settings:
        where = dict(zip(_KEYS, setting, strict=True))
        epsilon, rho, rho_static, radius, radius_a = setting
        names = ["no noise" if math.isinf(epsilon) else epsilon, RHO[rho].format(rho_static)]
        names.append(RADIUS[radius].format(radius_a))
        same = select(records, where)
        if not same:
            rows.append([*names, *["-"] * 8, "diverged"])
            continue
        t, floor, bound = same[0]["curve"]["t"], same[0]["theorem"]["floor"], bound_of(same[0])
        merit, binds, last = (_mean(same, name) for name in ("merit", "region_binding", "objective"))
        early = [share for x, share in zip(t, binds, strict=True) if x <= max(t[0], t[-1] / 100)]
        late = [share for x, share in zip(t, binds, strict=True) if x >= t[-1] / 10]
        told = [fmean(early), fmean(late), merit[-1], slope(t, merit), last[-1] - same[0]["theorem"]["f_star"]]
        known = ["-" if floor is None else _short(floor), "-" if bound is None else _short(bound[-1])]
        rows.append([*names, t[-1], len(same), *map(_short, told), *known])
        for n, panel in enumerate(panels):
            if floor and panel["y"] == "merit" and panel["where"].items() <= where.items():
                series.append({"panel": n, "name": f"least merit, radius {names[2]}", "x": t, "y": [floor] * len(t)})
    return {"table": {"columns": COLUMNS, "rows": rows}, "series": series}


def _mean(records: Sequence[Values], name: str) -> list[float]:
    return [fmean(values) for values in zip(*(one["curve"][name] for one in records), strict=True)]


def _short(value: float) -> float:
    return float(f"{value:.3g}")
