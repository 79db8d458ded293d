"""What a result says about privacy, in words that need no mathematics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tacit.privacy import risk
from tacit.privacy.budget import upward
from tacit.report.runs import Recorded

TRUSTED = {  # the first words after "trusts" in a guarantee: who is trusted, and what that means
    "a secure sum": ("A secure sum", "The server sees totals over all agents, never the answer of one agent."),
    "the server": ("The server", "It sees what agents send, and adds the noise to what it passes on."),
    "a curator": ("A curator", "One party holds all records, and adds the noise to what it publishes."),
}
ONE_PROCESS = "one process holds all records"  # what a result says where nobody kept a ledger
NOBODY = ("Nobody", "Each agent adds noise to what it sends, before anything leaves it.")


@dataclass(frozen=True)
class Status:
    """Whether a model may be released: a few words, the reason, and its kind (private, weak, simulated, bare)."""

    words: str
    reason: str
    kind: str


def promise(summary: Mapping[str, Any]) -> str:
    """Return the guarantee of a private run in plain words: of simulated noise, what exact noise would give."""
    found = risk.stated(summary)
    weak = f" {_sentence(found.verdict)}" if found.weak else ""
    return f"For somebody who sees all that is released and knows everything else, {found}.{weak}"


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."


def budget(summary: Mapping[str, Any]) -> str:
    """Return epsilon and delta."""
    return f"epsilon {upward(float(summary['epsilon']))}, delta {float(summary.get('dp_delta') or 0.0):g}"


def no_promise(run: Recorded) -> str:
    """Return why a run promises nothing: the first reason that its guarantee gives."""
    told = str(run.summary.get("guarantee", "")).removeprefix("not private:").strip()
    return _sentence(told.split(". ")[0].rstrip("."))


def trusted(summary: Mapping[str, Any]) -> tuple[str, str]:
    """Return who must be trusted where the noise is real, and what that means."""
    if str(summary.get("trust")).startswith(ONE_PROCESS):  # and no ledger that outlives it
        return "Whoever ran this", "One process held all records, and no ledger tells what it has released."
    _, found, whom = str(summary.get("guarantee", "")).partition("; trusts ")
    if not found:
        one_process = "" if summary.get("took_part") else " In this run, one process read all records."
        return NOBODY[0], NOBODY[1] + one_process
    known = next((told for start, told in TRUSTED.items() if whom.startswith(start)), None)
    if known is None:
        return "Somebody", f"The method trusts {whom}."
    if whom.startswith("a secure sum: it holds"):
        against = whom.partition(": ")[2].partition("; features by ")[0]
        return known[0], f"{known[1]} {against[0].upper()}{against[1:]}."
    return known


def title(run: Recorded) -> str:
    """Return what to call a run."""
    kind = {"private": "A private model on", "weak": "A weakly protected model on",
            "simulated noise": "A simulated private model on"}  # fmt: skip
    return f"{kind.get(run.label, 'A model without a guarantee on')} {run.summary.get('dataset', 'data')}"


def status(run: Recorded, page_is_public: bool = False) -> Status:
    """Return whether the model of a run may be released, and the page that says so."""
    if not run.private:
        return Status("Not for release", "The model may tell about single records.", "bare")
    if run.summary.get("simulated_noise"):
        return Status("A simulation", "The noise came from a seed, and whoever knows the seed can take it off again. "
                      "Nothing of this run is for release.", "simulated")  # fmt: skip
    if run.weak:
        return Status("Weak protection", f"{_sentence(run.weak)} Consider that before you release the model.", "weak")
    if "simulated_noise" not in run.summary:
        return Status("Private", "The record does not say where the noise came from.", "private")
    page = "" if page_is_public else " This page may not be released: its measurements are exact."
    return Status("The model may be released", "The noise came from the operating system, and nobody can draw it "
                  f"again.{page}", "private")  # fmt: skip
