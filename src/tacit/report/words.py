"""What a result says about privacy, in words that need no mathematics."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tacit.privacy.budget import upward
from tacit.report.runs import Recorded

GUESSED = {  # by adjacency: what somebody who attacks the run may want to know
    "zero_out": "whether one given record was used",
    "replace_one": "which of two given records was used",
    "client": "whether one given agent, with all of its records, took part",
}
LITTLE = 0.95  # right guesses from which on a guarantee is called weak
TRUSTED = {  # the first words after "trusts" in a guarantee: who is trusted, and what that means
    "a secure sum": ("A secure sum", "The server sees totals over all agents, never the answer of one agent."),
    "the server": ("The server", "It sees what agents send, and adds the noise to what it passes on."),
    "a curator": ("A curator", "One party holds all records, and adds the noise to what it publishes."),
}
IF_EXACT = "if the noise were exact"  # of simulated noise
ONE_PROCESS = "one process holds all records"  # what a result says where nobody kept a ledger
NOBODY = ("Nobody", "Each agent adds noise to what it sends, before anything leaves it.")


@dataclass(frozen=True)
class Status:
    """Whether a model may be released: a few words, the reason, and its kind (private, weak, simulated, bare)."""

    words: str
    reason: str
    kind: str


def right_guesses(epsilon: float, dp_delta: float) -> float:
    """Return how often a guess between two equally likely neighbours is right: (e^epsilon + delta) / (e^epsilon + 1).

    The sum of both kinds of error of a test of (epsilon, delta)-DP is at least 2 (1 - delta) / (e^epsilon + 1).
    """
    other = math.exp(-epsilon)  # which stays finite
    return (1 + dp_delta * other) / (1 + other)


def promise(summary: Mapping[str, Any]) -> str:
    """Return the guarantee of a private run as one plain sentence: of simulated noise, what exact noise would give."""
    guessed = GUESSED.get(str(summary.get("adjacency")), GUESSED["zero_out"])
    simulated = bool(summary.get("simulated_noise"))
    verb = "would be" if simulated else "is"
    condition = f" {IF_EXACT}" if simulated else ""
    weak = f" That {verb} weak protection." if weakness(summary) else ""
    return (
        f"Somebody who sees all that is released, knows everything else and guesses {guessed} {verb} right at most "
        f"{percent(_share(summary))} of the time{condition}; a coin is right 50%.{weak}"
    )


def weakness(summary: Mapping[str, Any]) -> str:
    """Return why the guarantee of a private run says little; "" where it says something."""
    share, delta = _share(summary), float(summary.get("dp_delta") or 0.0)
    if share >= LITTLE:
        return f"Somebody who guesses may be right {percent(share)} of the time."
    unit, key = ("agents", "agents") if summary.get("adjacency") == "client" else ("training records", "records")
    many = summary.get(key)
    if isinstance(many, int) and many > 0 and delta >= 1 / many:
        return f"A delta of {delta:g} lets one of the {many:,} {unit} be told in full: it must be well below 1/{many}."
    return ""


def _share(summary: Mapping[str, Any]) -> float:
    return right_guesses(float(summary["epsilon"]), float(summary.get("dp_delta") or 0.0))


def percent(share: float) -> str:
    """Write a share as per cent, rounded up: a promise must not become stronger on paper."""
    return f"{min(100.0, math.ceil(round(1000 * share, 6)) / 10):g}%"


def budget(summary: Mapping[str, Any]) -> str:
    """Return epsilon and delta."""
    return f"epsilon {upward(float(summary['epsilon']))}, delta {float(summary.get('dp_delta') or 0.0):g}"


def no_promise(run: Recorded) -> str:
    """Return why a run promises nothing: the first reason that its guarantee gives."""
    told = str(run.summary.get("guarantee", "")).removeprefix("not private:").strip()
    return told[:1].upper() + told[1:].split(". ")[0].rstrip(".") + "."


def trusted(summary: Mapping[str, Any]) -> tuple[str, str]:
    """Return who must be trusted where the noise is real, and what that means."""
    if str(summary.get("trust")).startswith(ONE_PROCESS):  # and no ledger that outlives it
        return "Whoever ran this", "One process held all records, and no ledger tells what it has released."
    _, found, whom = str(summary.get("guarantee", "")).partition("; trusts ")
    if not found:
        return NOBODY
    known = next((told for start, told in TRUSTED.items() if whom.startswith(start)), None)
    if known is None:
        return "Somebody", f"The method trusts {whom}."
    if whom.startswith("a secure sum: it holds"):
        against = whom.partition(": ")[2].partition("; features by ")[0]
        return known[0], f"{known[1]} {against[0].upper()}{against[1:]}."
    return known


def title(run: Recorded) -> str:
    """Return what to call a run."""
    kind = {"private": "A private model on", "simulated noise": "A simulated private model on"}
    return f"{kind.get(run.label, 'A model without a guarantee on')} {run.summary.get('dataset', 'data')}"


def status(run: Recorded, page_is_public: bool = False) -> Status:
    """Return whether the model of a run may be released, and the page that says so."""
    if not run.private:
        return Status("Not for release", "The model may tell about single records.", "bare")
    if run.summary.get("simulated_noise"):
        return Status("A simulation", "The noise came from a seed, and whoever knows the seed can take it off again. "
                      "Nothing of this run is for release.", "simulated")  # fmt: skip
    if why := weakness(run.summary):
        return Status("Weak: releasing tells much", f"{why} Whoever releases the model should know that.", "weak")
    if "simulated_noise" not in run.summary:
        return Status("Private", "The record does not say where the noise came from.", "private")
    page = "" if page_is_public else " This page may not be released: its measurements are exact."
    return Status("The model may be released", "The noise came from the operating system, and nobody can draw it "
                  f"again.{page}", "private")  # fmt: skip
