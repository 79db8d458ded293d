"""The mechanism audit attacks worst-case neighbours in one or a few rounds, by many draws of their answers.

The score is the likelihood ratio. A draw has the same noise with the record and without it: a pair of draws says more
about the two laws than two independent draws (tacit.privacy.lower_bounds). Two further views look for reused noise:
the difference of the answers of two agents, and of two rounds. Reused noise cancels; new noise adds up and hides more.
Beside the attacks, a test compares the noise of all views with the claimed scale (tacit.audit.noise).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tacit.admm.agent import Agent, Variant
from tacit.audit.answering import Answering, Situation, answer, answering, claimed_scale, drawn, views
from tacit.audit.finding import CONFIDENCE, Finding, Trials, claimed, weigh
from tacit.audit.neighbours import Score, neighbours
from tacit.audit.noise import Noise
from tacit.errors import IncompatibleError
from tacit.privacy.mechanism import Mechanism
from tacit.run.spec import Spec
from tacit.types import Array

DRAWS = 12_000  # with the record, and as many without it
LAPLACE_ROUNDS = 8
_FEWER = 8  # one draw in eight is used for the two further views: reused noise shows at once


def few_rounds(spec: Spec) -> Spec:
    """Return the spec with its whole budget in one or LAPLACE_ROUNDS rounds: of T rounds one release shows too little.

    Laplace noise that is accounted in l2 is claimed to reveal no more than a Gaussian of
    mu^2 = R (|s|_2 / b)^2 + (2/3) |s|_2 / b in R rounds. The attack sees only the first term. In one round the second
    term is three quarters of the claim at epsilon 1: half the noise would not violate the claim. In eight rounds it is
    a half at epsilon 1, so half the noise violates that claim, and a seventh at epsilon 8, so 0.8 of the noise does.
    """
    laplace = spec.privacy.mechanism == "laplace" and spec.privacy.covers == "run"
    return spec.with_values({"run.rounds": LAPLACE_ROUNDS if laplace else 1})


def usual_draws(spec: Spec) -> int:
    """Return DRAWS, or fewer: a draw of several rounds takes longer, and deployed agents sync their ledgers."""
    draws = DRAWS if spec.run.rounds == 1 else DRAWS // 2
    return draws // 4 if spec.privacy.noise == "exact" else draws


def name_of(spec: Spec) -> str:
    """Return the name of the audited mechanism, such as "objt, gaussian, clip, zero out"."""
    p = spec.privacy
    words = [spec.algorithm.name, p.mechanism, p.sensitivity, p.adjacency.replace("_", " ")]
    words += ["features"] if spec.features.map != "none" else []
    if p.trust == "sum":  # which is attacked as it is deployed
        return ", ".join([*words, "secure sum"])
    return ", ".join([*words, "deployed"] if p.noise == "exact" else words)


def audit(
    spec: Spec,
    draws: int | None = None,
    seed: int = 0,
    confidence: float = CONFIDENCE,
    break_: Callable[[Variant], Variant] = lambda variant: variant,
) -> Finding:
    """Test the mechanism of the spec against its claim. A control changes the variant by `break_`, not the claim."""
    if spec.privacy.trust == "sum":
        raise IncompatibleError("an agent of a secure sum releases nothing alone: call tacit.audit.secure_sum.audit.")
    spec = few_rounds(spec.checked())
    draws = draws or usual_draws(spec)
    pair, how = neighbours(spec), answering(spec)
    claim, once, twice = (claimed(spec, pair.present.variant, rounds) for rounds in (spec.run.rounds, 1, 2))
    broken, fewer = pair.broken(break_), draws // _FEWER
    (seen,) = look(how, [broken.sides], pair.questions, draws, seed)
    scales = np.array([claimed_scale(pair.present, question) for question in pair.questions])
    both = [broken.sides, (broken.other, broken.other)]  # two agents of one run, both asked twice
    one, other = look(how, both, (pair.questions[0], pair.later), fewer, seed)
    return weigh(
        "mechanism",
        name_of(spec),
        claim,
        lambda factor: seen.shrunk(factor).likelihood(pair.score),
        confidence,
        {"two agents": (once, one.difference(other, 0)), "two rounds": (twice, one.difference(one, 1))},
        seen.noise(pair.present.variant.mechanism, scales),
    )


@dataclass(frozen=True, eq=False)
class Sight:
    """The views with the record and without it, and what the attacker expects: noise of `scale` around `center`.

    Each field is a pair: views (draws, rounds, J, K), centers (rounds, J, K) and scales (rounds,).
    """

    views: tuple[Array, Array]
    center: tuple[Array, Array]
    scale: tuple[Array, Array]
    paired: bool

    def shrunk(self, factor: float) -> Sight:
        """Return the views with `factor` of their noise; the attacker expects the same centers and scales."""
        present, absent = (c + factor * (view - c) for view, c in zip(self.views, self.center, strict=True))
        return Sight((present, absent), self.center, self.scale, self.paired)

    def noise(self, mechanism: Mechanism, claimed: Array) -> Noise:
        """Return the noise of all views in units of the claimed scales (rounds,); paired views have the same noise."""
        found = [(v - c) / claimed[:, None, None] for v, c in zip(self.views, self.center, strict=True)]
        return Noise.of(mechanism, np.stack(found[:1] if self.paired else found))

    def likelihood(self, score: Score) -> Trials:
        """Return ln p(views | with) - ln p(views | without), added up over the rounds."""
        (c_in, c_out), (b_in, b_out) = self.center, self.scale
        present, absent = (
            np.sum([score(v[:, k], (c_in[k], c_out[k]), (b_in[k], b_out[k])) for k in range(len(c_in))], axis=0)
            for v in self.views
        )
        return Trials(present, absent, self.paired)

    def difference(self, of: Sight, k: int) -> Trials:
        """Score the first view less view k of `of`, scaled to equal noise: without the record -1, with the record 1."""
        ratio = self.scale[1][0] / of.scale[1][k]
        seen = [v[:, 0] - ratio * u[:, k] for v, u in zip(self.views, of.views, strict=True)]
        center = [c[0] - ratio * d[k] for c, d in zip(self.center, of.center, strict=True)]
        return Trials(along(seen[0], *center), along(seen[1], *center), self.paired)


def look(
    how: Answering, agents: Sequence[tuple[Agent, Agent]], questions: Sequence[Situation], draws: int, seed: int
) -> list[Sight]:
    """Return the answers of all agents of a run, with the record and without it, under the same keys."""
    with_it, without = (views(how, drawn(side, draws, seed), questions) for side in zip(*agents, strict=True))
    found = []
    for p, sides in enumerate(agents):
        expected = [[answer(agent, question) for question in questions] for agent in sides]
        c_in, c_out = (np.stack([center for center, _ in side]) for side in expected)
        b_in, b_out = (np.array([scale for _, scale in side]) for side in expected)
        found.append(Sight((with_it[:, p], without[:, p]), (c_in, c_out), (b_in, b_out), how.keyed))
    return found


def along(seen: Array, with_it: Array, without: Array) -> Array:
    """Return where each view lies on the line from `without` (-1) to `with_it` (1)."""
    way = with_it - without
    return np.asarray(((2 * seen - with_it - without) * way).sum(axis=(1, 2)) / np.square(way).sum())
