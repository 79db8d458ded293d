"""What a result says about privacy, in words that need no mathematics: report, card and live page show this.

All of it comes from fields of the result, and no sentence is read. Results of earlier versions lack fields of the
guarantee. Their numbers are shown as they are, and the sentence as it stands. Who is trusted, or why there is no
guarantee, is "not stated", and such a result is never called private.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tacit.errors import RecordError
from tacit.privacy import risk
from tacit.privacy.budget import upward
from tacit.privacy.guarantee import FIELDS, Guarantee, stated_in
from tacit.privacy.risk import Risk

NOT_STATED = "guarantee not stated"
EARLIER = "An earlier version of tacit made this result, and did not store all fields of its guarantee"
RENDERED = (FIELDS, "guarantee", "trust", "covers", "not_covered")  # keys of a result that this stands for


@dataclass(frozen=True)
class Status:
    """Whether a model may be released: a few words, the reason, and its kind (private, weak, simulated, bare)."""

    words: str
    reason: str
    kind: str


@dataclass(frozen=True)
class PrivacyText:
    """What one result says about privacy; `guarantee` is None for a result of an earlier version."""

    guarantee: Guarantee | None
    sentence: str
    risk: Risk | None  # None: the result has no total
    budget: str  # epsilon and delta; empty without a total
    facts: tuple[tuple[str, str], ...]  # by name
    not_covered: tuple[str, ...]

    @property
    def private(self) -> bool:
        """Whether the result has a total for the whole run."""
        return self.risk is not None

    @property
    def simulated(self) -> bool:
        """Whether the result has a total that would hold if the noise were exact."""
        return self.risk is not None and self.risk.simulated

    @property
    def weak(self) -> str:
        """Why the protection is weak; empty if it is not."""
        return "" if self.risk is None else self.risk.weak

    @property
    def label(self) -> str:
        """What the guarantee is worth, in a few words."""
        if self.risk is None:
            return "not private"
        if self.simulated:
            return "simulated noise"
        return NOT_STATED if self.guarantee is None else "weak" if self.weak else "private"

    @property
    def title(self) -> str:
        """What to call the model."""
        return {
            "private": "A private model", "weak": "A weakly protected model",
            "simulated noise": "A simulated private model", NOT_STATED: "A model whose guarantee is not stated",
        }.get(self.label, "A model without a guarantee")  # fmt: skip

    @property
    def promise(self) -> str:
        """The total in plain words: of simulated noise, what exact noise would give; else why there is no total."""
        if self.risk is None:
            return self._told_in_words if self.guarantee is None else _sentence(self.guarantee.reasons[0])
        weak = f" {_sentence(self.risk.verdict)}" if self.risk.weak else ""
        return f"For somebody who sees all that is released and knows everything else, {self.risk}.{weak}"

    @property
    def trusted(self) -> tuple[str, str]:
        """Who must be trusted where the noise is real, and what that means."""
        return ("Not stated", self._told_in_words) if self.guarantee is None else self.guarantee.who

    @property
    def _told_in_words(self) -> str:
        return f"{EARLIER}. In full: {self.sentence}"

    def status(self, page_is_public: bool = False) -> Status:
        """Return whether the model may be released, and the page that says so."""
        if self.risk is None:
            return Status("Not for release", "The model may tell about single records.", "bare")
        if self.simulated:
            return Status("A simulation", "The noise came from a seed, and whoever knows the seed can take it off "
                          "again. Nothing of this run is for release.", "simulated")  # fmt: skip
        weak = f"{_sentence(self.weak)} " if self.weak else ""
        if self.guarantee is None:
            return Status(_sentence(NOT_STATED)[:-1], f"{weak}{EARLIER}. Read its sentence before you release the "
                          "model, or train again, at a cost of its own.", "bare")  # fmt: skip
        if weak:
            return Status("Weak protection", f"{weak}Consider that before you release the model.", "weak")
        page = "" if page_is_public else " This page may not be released: its measurements are exact."
        return Status("The model may be released", "The noise came from the operating system, and nobody can draw it "
                      f"again.{page}", "private")  # fmt: skip

    def as_simulated(self) -> PrivacyText:
        """Return the same of simulated noise."""
        return self if self.risk is None else replace(self, risk=replace(self.risk, simulated=True))


def privacy_text(summary: Mapping[str, Any]) -> PrivacyText:
    """Return what a result says about privacy; values that make no sense, or contradict each other, are a RecordError.

    A result without the fields of a guarantee has a total if it has an epsilon: in no version has a result without a
    guarantee had one.
    """
    found, epsilon, simulated = stated_in(summary), summary.get("epsilon"), summary.get("simulated_noise")
    told = {key: summary.get(key) for key in ("trust", "covers")}
    facts = tuple((key, one) for key, one in told.items() if isinstance(one, str) and one)
    listed = summary.get("not_covered")
    not_covered = tuple(one for one in listed if isinstance(one, str)) if isinstance(listed, list) else ()
    sentence = summary.get("guarantee")
    if found is not None:
        sentence, facts, not_covered = found.sentence, found.facts if found.private else (), (*found.exclusions,)
    if epsilon is None:
        return PrivacyText(found, str(sentence or ""), None, "", facts, not_covered)
    known = risk.stated(summary)
    if math.isinf(epsilon) or summary.get("dp_delta") == 1 or not isinstance(sentence, str) or not sentence.strip():
        raise RecordError("a result with an epsilon has a total and a guarantee in words, and this one makes no sense.")
    if simulated is not None and not isinstance(simulated, bool):
        raise RecordError("simulated_noise of a result is true or false, and this one makes no sense.")
    budget = f"epsilon {upward(float(epsilon))}, delta {float(summary.get('dp_delta') or 0.0):g}"
    return PrivacyText(found, sentence, known, budget, facts, not_covered)


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:].rstrip('.')}."
