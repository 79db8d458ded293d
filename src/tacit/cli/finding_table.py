"""The table of an audit: one line per finding, printed as soon as it is made."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.cli.folding import say, width

if TYPE_CHECKING:
    from tacit.audit.finding import Finding
    from tacit.audit.reconstruction import Recovery


class FindingTable:
    """Print findings as they come; with `silent`, print nothing."""

    def __init__(self, silent: bool) -> None:
        self.silent, self.begun = silent, False

    def findings(self, found: Iterable[Finding]) -> list[Finding]:
        """Return the findings, each printed as soon as it is made."""
        return [self._finding(one) for one in found]

    def _finding(self, one: Finding) -> Finding:
        if not self.begun:
            self._line("attack", "what", "claimed", "at least", "detects", "verdict")
            self.begun = True
        claim = f"({one.claim.epsilon:.4g}, {one.claim.dp_delta:g})"
        tested = one.checks[one.by].claimed
        other = "" if tested == one.claim.epsilon else f" of {tested:.3f}"
        detects = "" if one.violated else "nothing" if one.detects is None else f"x {one.detects:g}"
        verdict = one.verdict
        if one.attack == "control":
            verdict += ": caught" if one.violated else ": NOT CAUGHT"
        self._line(one.attack, one.name, claim, f"{one.measured:.3f}{other} {one.by}", detects, verdict)
        if one.claim.note:
            self._line("", one.claim.note)
        return one

    def recovered(self, recovered: list[Recovery], picture: Path | None) -> None:
        """Print how near the server came to the records that it tried to see."""
        for one in recovered:
            seen = f"cosine to the record {one.cosines.mean():.3f} on average, {one.cosines.max():.3f} at best"
            self._line("recovery", f"{one}: {seen}")
        see = "" if picture is None else f"; see {picture}"
        self._line("", f"a random guess has a cosine near {recovered[0].chance:.3f}{see}")

    def _line(
        self, attack: str, what: str, claim: str = "", measured: str = "", detects: str = "", verdict: str = ""
    ) -> None:
        if self.silent:
            return
        line = f"{attack:<10} {what:<58} {claim:<14} {measured:<29} {detects:<8} {verdict}".rstrip()
        if len(line) > width():  # then the numbers stand below what they are of
            line = f"{attack:<10} {what}\n{'':<10} {'  '.join(filter(None, (claim, measured, detects, verdict)))}"
        say(line, hang=11)
