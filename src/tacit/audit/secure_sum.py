"""The audit of a secure sum: the server and a colluding agent attack a record of an honest agent, by many draws.

All agents are deployed, with their masks. The main view is the sum of the honest shares, which must show a record no
better than the claimed release. The other views:

    two attempts, two rounds    differences of sums at the model that the record moves most and at its opposite, where
                                the record moves nothing: noise that is not new would cancel
    one dropped                 the sum of a set less that of the next attempt, without the agent of the record; that
                                agent has released once, and the noise of both sums is new
    one agent, low bits         the words of the agent alone, as whole numbers and by their LOW last bits
    one agent's attempts,       differences of the words of the agent alone: masks that are used again would cancel
    one agent's rounds
    a part                      the words of some of the honest agents, added up

Masks hide everything in the views of one agent and of a part: there the claim is epsilon = 0. Beside the attacks, the
noise of the sum is tested against the claimed scale (tacit.audit.noise). A draw is a round of one long run; its noise
and its masks are new, and the claim is for one release.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tacit.audit import mechanism
from tacit.audit.finding import CONFIDENCE, Claim, Finding, OneGaussian, Trials, claimed, weigh
from tacit.audit.mechanism import Sight
from tacit.audit.neighbours import neighbours
from tacit.audit.sum_faults import CANARY, COLLUDING, HONEST, PART, Fault
from tacit.audit.sum_views import Asked, Coalition, coalition
from tacit.errors import SpecError
from tacit.run.spec import Spec
from tacit.types import Array

DRAWS = 2000  # with the record, and as many without it
_FEWER = 8  # one draw in eight is used for views of two attempts or of two rounds: what is used again shows at once
LOW = 16  # bits
_QUESTIONS = ("one", "again", "dropped", "next")  # of a further draw: two attempts, one without an agent, a next round


def audit(spec: Spec, draws: int | None = None, confidence: float = CONFIDENCE, fault: Fault | None = None) -> Finding:
    """Test the secure sum of the spec against its claim for one release; a control has a fault."""
    spec = _short(spec)
    draws = draws or DRAWS
    fewer, pair = -(-draws // _FEWER), neighbours(spec)
    once, twice = (claimed(spec, pair.present.variant, count) for count in (1, 2))
    rounds, again = draws + fewer, 2 * fewer
    steer = pair.questions[0].msg.w
    shape = (steer.shape[0], steer.shape[1])
    sides = coalition(spec, pair.sides, pair.other, shape, (rounds, again), fault)
    seen = [_look(side, steer, draws, fewer) for side in sides]
    whole, few = _sums(sides, seen, ("main",)), _sums(sides, seen, _QUESTIONS)
    nothing = Claim(0.0, once.dp_delta, OneGaussian(0.0, once.dp_delta))
    numbers = sides[0].summed
    return weigh(
        "mechanism",
        mechanism.name_of(spec),
        once,
        lambda factor: whole.shrunk(factor).likelihood(pair.score),
        confidence,
        {
            "two attempts": (twice, few.difference(few, 1)),
            "one dropped": (once, few.difference(few, 2)),
            "two rounds": (twice, few.difference(few, 3)),
        }
        | {view: (nothing, trials) for view, trials in _words(sides, seen).items()},
        whole.noise(pair.present.variant.mechanism, np.array([numbers.multiplier * numbers.sensitivity])),
    )


def _short(spec: Spec) -> Spec:
    """Return the spec with its whole budget in one round, of a small federation of deployed agents."""
    if spec.privacy.colluding not in (None, len(COLLUDING)):
        raise SpecError(f"the audit of a sum attacks with {len(COLLUDING)} colluding agent: drop --colluding.")
    own = {"privacy.noise": "exact", "privacy.colluding": len(COLLUDING), "privacy.repetitions": 0, "run.rounds": 1}
    return spec.with_values(own | {"run.seed": None}).checked()


@dataclass(frozen=True, eq=False)
class Draws:
    """What was seen in answer to one kind of question: words (draws, m, d) of the agents `honest`, at the model w."""

    words: Array
    asked: Asked

    def steps(self, side: Coalition, names: Sequence[str]) -> Array:
        """Return what these agents add at w, in steps of the grid, without noise: (d,) int64."""
        step = side.attempt(self.asked).step
        return np.asarray(sum(np.rint(side.value(name, self.asked.w) / step).astype(np.int64) for name in names))


def _look(side: Coalition, steer: Array, draws: int, fewer: int) -> dict[str, Draws]:
    """Ask all questions of an attack: two rounds for each of the fewer draws, and then a round for each other draw."""
    others = [name for name in HONEST if name != CANARY]
    kinds = {
        "one": Asked(1, 0, HONEST, steer),
        "again": Asked(1, 1, HONEST, -steer),
        "dropped": Asked(1, 2, others, steer),
        "next": Asked(2, 0, HONEST, -steer),
    }
    found: dict[str, list[Array]] = {kind: [] for kind in kinds}
    for n in range(fewer):
        for kind, asked in kinds.items():  # an agent answers in the order of rounds and attempts
            found[kind].append(side.seen(replace(asked, t=2 * n + asked.t)))
    rest = range(2 * fewer + 1, draws + fewer + 1)
    found["main"] = found["one"] + [side.seen(replace(kinds["one"], t=t)) for t in rest]
    return {kind: Draws(np.stack(words), kinds.get(kind, kinds["one"])) for kind, words in found.items()}


def _sums(sides: Sequence[Coalition], seen: Sequence[Mapping[str, Draws]], kinds: Sequence[str]) -> Sight:
    """Return the sums of the honest shares in answer to these questions, with the record and without it.

    The scale is that of one share in answer to the question, times the same number: whoever compares two sums scales
    shares to equal noise.
    """
    views, centers = [], []
    for side, found in zip(sides, seen, strict=True):
        totals, means = [], []
        for kind in kinds:
            one = found[kind]
            shape = one.asked.w.shape
            totals.append(side.attempt(one.asked).total(one.words.sum(axis=1, dtype=np.uint64)).reshape(-1, *shape))
            means.append(np.sum([side.value(name, one.asked.w) for name in one.asked.honest], axis=0).reshape(shape))
        views.append(np.stack(totals, axis=1))
        centers.append(np.stack(means))
    attempts = [sides[0].attempt(seen[0][kind].asked) for kind in kinds]
    scale = np.array([math.sqrt(len(HONEST)) * one.share_steps * one.step for one in attempts])
    return Sight((views[0], views[1]), (centers[0], centers[1]), (scale, scale), paired=False)


def _words(sides: Sequence[Coalition], seen: Sequence[Mapping[str, Draws]]) -> dict[str, Trials]:
    """Return the views that masks hide, scored as if there were no masks."""
    attempt = sides[0].attempt(seen[0]["main"].asked)
    first = [HONEST.index(CANARY)]
    part = [HONEST.index(name) for name in PART]

    def trials(rows: Sequence[int], bits: int, kind: str, less: str | None = None) -> Trials:
        names = [HONEST[row] for row in rows]
        words = [found[kind].words[:, rows].sum(axis=1, dtype=np.uint64) for found in seen]
        centers = [found[kind].steps(side, names) for side, found in zip(sides, seen, strict=True)]
        if less is not None:
            words = [one - found[less].words[:, rows].sum(axis=1, dtype=np.uint64)
                     for one, found in zip(words, seen, strict=True)]  # fmt: skip
            centers = [one - found[less].steps(side, names)
                       for one, side, found in zip(centers, sides, seen, strict=True)]  # fmt: skip
        present, absent = (nearer(one, (centers[0], centers[1]), bits) for one in words)
        return Trials(present, absent)

    return {
        "one agent": trials(first, attempt.width, "main"),
        "low bits": trials(first, LOW, "main"),
        "one agent's attempts": trials(first, attempt.width, "one", "again"),
        "one agent's rounds": trials(first, attempt.width, "one", "next"),
        "a part": trials(part, attempt.width, "main"),
    }


def nearer(words: Array, centers: tuple[Array, Array], bits: int) -> Array:
    """Score words modulo 2^bits, (draws, d) uint64: positive where they are nearer to the first centre, in squares.

    Where words are integers with Gaussian noise that does not wrap, this orders draws as the likelihood ratio does.
    """
    away = np.uint64(64 - bits)

    def squares(center: Array) -> Array:
        moved = (words - center.view(np.uint64)) << away  # at the high end of a word, whose sign is that of the residue
        return np.asarray(np.square(moved.view(np.int64) * 2.0**-63).sum(axis=1))

    return np.asarray(squares(centers[1]) - squares(centers[0]))
