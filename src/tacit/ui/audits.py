"""What `tacit audit --json` said of a run, read as a card reads it.

What the findings say decides, not what the file says of itself, and an audit of another spec is said to be one.
"""

from __future__ import annotations

from pathlib import Path

from tacit import record
from tacit.card import audited
from tacit.card.audited import Audit, Found
from tacit.errors import TacitError
from tacit.jsontext import Values
from tacit.ui.place import Parts, Place, Unreadable
from tacit.ui.said import finite, text

AUDIT, SPEC = "audit.json", "spec.toml"
LARGEST = 4 << 20  # bytes of an audit or a spec
LISTED = 200  # findings
CONSISTENT, NO_GUARANTEE = "consistent", "no guarantee"  # verdicts of a finding beside VIOLATED
OTHER = "This audit is not of the spec of this run, or does not say so: run tacit audit with --config DIR/spec.toml."
UNCAUGHT = "A mechanism that was broken on purpose was not caught, so the attacks prove too little."
ABOUT = "Attacks on this method measure a lower bound on epsilon. A consistent claim is not proved by them."


def told(place: Place, parts: Parts) -> Values | None:
    """Return what the page shows of the audit of a run; None where there is no audit."""
    if place.stamp(parts, AUDIT) is None:
        return None
    try:
        with place.copied(parts, (AUDIT, SPEC), LARGEST) as copy:
            found, own = _read(copy / AUDIT), _own(copy / SPEC)
    except Unreadable as error:
        return {"reason": str(error), "verdict": "not readable", "passed": False, "findings": []}
    verdict, reason = _verdict(found, own)
    rows = [_row(one) for one in (*found.findings, *(one for one in found.controls if not one.violated))]
    return {"reason": reason, "verdict": verdict, "passed": verdict == CONSISTENT, "findings": rows[:LISTED]}


def _read(copy: Path) -> Audit:
    try:
        found = audited.read(copy)
    except TacitError as error:
        raise Unreadable(text(str(error).replace(str(copy), copy.name))) from None
    except (ArithmeticError, MemoryError) as error:  # numbers that no audit writes
        raise Unreadable(f"{copy.name} makes no sense ({type(error).__name__})") from None
    if not all(one.violated or one.verdict in (CONSISTENT, NO_GUARANTEE) for one in found.findings):
        raise Unreadable(f"{copy.name} has a verdict that tacit audit does not give: run the audit again")
    return found


def _own(spec: Path) -> str | None:
    """Return the hash of the spec itself: what a result says of it could be edited with it."""
    try:
        return record.spec_hash(spec.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _verdict(found: Audit, own: str | None) -> tuple[str, str]:
    """Return the verdict of all findings, the worst first, and a sentence that explains it."""
    foreign = own is None or found.spec_hash != own
    if any(one.violated for one in found.findings):
        return "VIOLATED", f"An attack refuted a claim. {OTHER}" if foreign else "An attack refuted a claim."
    if not all(one.violated for one in found.controls):
        return "failed", UNCAUGHT
    if foreign:
        return "of another spec", OTHER
    if not found.passed:
        return "failed", "The audit says that it failed."
    if not found.findings:
        return "nothing attacked", "The audit holds controls only."
    if any(one.verdict == NO_GUARANTEE for one in found.findings):
        return NO_GUARANTEE, ABOUT
    return CONSISTENT, ABOUT


def _row(one: Found) -> Values:
    return {key: text(getattr(one, key)) for key in ("attack", "name", "verdict")} | {
        key: finite(getattr(one, key)) for key in ("claimed", "measured", "dp_delta")
    }
