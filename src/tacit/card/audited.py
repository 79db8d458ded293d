"""What `tacit audit --json` has found, for the card: the file may come from anywhere, and is checked."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit import record
from tacit.card.blocks import Block, Table, Text
from tacit.errors import RecordError
from tacit.report.runs import Recorded

MECHANISM = "mechanism"  # what a finding calls an attack on what agents release
NOT_AUDITED = (
    "Not audited. An audit attacks the mechanism and compares what it finds with what is claimed: run tacit audit "
    "--config DIR/spec.toml --what mechanism --json > audit.json, and give that file to tacit card by --audit."
)
OTHER = (
    "This audit is not of the spec of this run, or does not say so: run tacit audit with --config DIR/spec.toml and no "
    "other option that changes it."
)
OWN = "The audit attacked the mechanism of the spec of this run."
PASSED = "No attack has refuted a claim. An audit looks for mistakes; it proves nothing."
NO_ATTACK = (
    "This audit holds no attack on the mechanism, so it says nothing of what is claimed: run tacit audit with --what "
    "mechanism."
)
FAILED = "The audit failed: an attack refuted a claim, or a mechanism broken on purpose was not caught. Do not sign."


@dataclass(frozen=True)
class Found:
    """One finding: what was attacked, what was claimed and what an attack has shown at least."""

    attack: str
    name: str
    claimed: float
    dp_delta: float
    measured: float
    samples: int
    verdict: str
    note: str

    @property
    def violated(self) -> bool:
        return self.verdict.startswith("VIOLATED")


@dataclass(frozen=True)
class Audit:
    """An audit as its file tells it."""

    passed: bool
    findings: tuple[Found, ...]
    controls: tuple[Found, ...]
    spec_hash: str | None = None

    @property
    def attacked(self) -> bool:
        """Whether it attacked the mechanism of a spec; controls alone test the audit."""
        return any(one.attack == MECHANISM and one.samples > 0 for one in self.findings)


def read(path: Path) -> Audit:
    """Read the output of tacit audit --json; refuse another file."""
    try:
        found = record.loads(path.read_text(encoding="utf-8"))
        findings, controls = (tuple(map(_found, found[name])) for name in ("findings", "controls"))
        if not isinstance(found["passed"], bool) or not (findings or controls):
            raise ValueError("it has no findings")
        wrong = any(one.violated for one in findings) or not all(one.violated for one in controls)
        return Audit(found["passed"] and not wrong, findings, controls, found.get("spec_hash"))
    except OSError as error:
        todo = "Give --audit the output of tacit audit --json."
        raise RecordError(f"cannot read {path}: {error.strerror}. {todo}") from None
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise RecordError(
            f"{path} is no output of tacit audit --json ({type(error).__name__}: {error}): run the audit again."
        ) from None


def blocks(audit: Audit | None, run: Recorded) -> list[Block]:
    """Return what the card says of the audit."""
    if audit is None:
        return [Text(NOT_AUDITED)]
    own = audit.spec_hash is not None and audit.spec_hash == run.summary.get("spec_hash")
    told: list[Block] = [] if own else [Text(OTHER, "bad")]  # first: what follows is about something else
    if not audit.passed:
        told.append(Text(FAILED, "bad"))
    elif not audit.attacked:
        told.append(Text(NO_ATTACK, "bad"))
    else:
        told.append(Text(PASSED, "good" if own else ""))
    if audit.findings:
        told.append(_table("Attacks", audit.findings))
    if audit.controls:
        caught = sum(one.violated for one in audit.controls)
        told.append(Text(f"{caught} of {len(audit.controls)} mechanisms that were broken on purpose were caught."))
    return [*told, Text(OWN)] if own and audit.attacked else told


def _table(caption: str, findings: Sequence[Found]) -> Table:
    columns = ["attack", "on", "claimed epsilon", "delta", "shown by the attack, at least", "samples", "verdict"]
    rows = [[one.attack, "; ".join(filter(None, [one.name, one.note])), f"{one.claimed:.4g}", f"{one.dp_delta:g}",
             f"{one.measured:.3f}", f"{one.samples:,}", one.verdict] for one in findings]  # fmt: skip
    return Table(caption, columns, rows)


def _found(one: Mapping[str, Any]) -> Found:
    texts = [one[key] for key in ("attack", "name", "verdict")]
    numbers = [math.inf if one[key] is None else one[key] for key in ("claimed", "dp_delta", "measured")]  # as in JSON
    if not all(isinstance(text, str) for text in texts) or type(one["samples"]) is not int:
        raise TypeError("a finding has no text where one belongs")
    if not all(type(number) in (int, float) for number in numbers):
        raise TypeError("a finding has no number where one belongs")
    (attack, name, verdict), (claimed, delta, measured) = texts, map(float, numbers)
    return Found(attack, name, claimed, delta, measured, one["samples"], verdict, str(one.get("note") or ""))
