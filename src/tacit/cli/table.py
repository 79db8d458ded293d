"""Tables for a terminal or a pipe: of rows that are known, and of findings that come one by one."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.cli.folding import fold, say, width

if TYPE_CHECKING:
    from tacit.audit.finding import Finding
    from tacit.audit.reconstruction import Recovery

GAP = 2  # columns between two cells


def table(head: Sequence[str], rows: Iterable[Sequence[str]], right: Collection[str] = ()) -> str:
    """The rows in columns under their heads; those named in `right` are aligned to the right.

    On a terminal the heads are bold, and cells are folded at spaces, but for the first of a row and those in `right`.
    If it is too narrow even so, each row is a block of lines. Elsewhere the text is plain, and no line is folded.
    """
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    cells, columns = [list(row) for row in rows], width()
    whole, least = [], []
    for n, (name, *own) in enumerate(zip(head, *cells, strict=True)):
        whole.append(max(map(cell_len, (name, *own))))
        words = (word for cell in (name, *own) for word in cell.split())
        least.append(whole[n] if n == 0 or name in right else max(map(cell_len, words), default=0))
    room = columns - GAP * (len(head) - 1)
    if sum(least) > room:
        return "\n".join(_blocks(head, cells, columns))
    on_terminal = sys.stdout.isatty()
    made = Table(box=None, pad_edge=False, header_style="bold")
    for name, size in zip(head, _sizes(least, whole, room), strict=True):
        made.add_column(Text(name), justify="right" if name in right else "left", width=size)
    for row in cells:
        made.add_row(*map(Text, row))
    console = Console(force_terminal=on_terminal, width=columns)
    with console.capture() as shown:
        console.print(made)
    return "\n".join(line.rstrip() for line in shown.get().splitlines())


def _sizes(least: Sequence[int], whole: Sequence[int], room: int) -> list[int]:
    """Return the width of each column: between the least and the whole one, the rest shared out by what is missing."""
    missing = [most - size for size, most in zip(least, whole, strict=True)]
    share = min(1.0, (room - sum(least)) / max(1, sum(missing)))
    return [size + int(share * more) for size, more in zip(least, missing, strict=True)]


def _blocks(head: Sequence[str], rows: Iterable[Sequence[str]], columns: int) -> list[str]:
    """Return lines that name each cell by its column, below the first cell of its row."""
    lines = []
    for first, *rest in rows:
        lines.append(fold(first, columns))
        named = zip(head[1:], rest, strict=True)
        lines += [fold(f"  {name}  {cell}".rstrip(), columns) for name, cell in named if cell]
    return lines

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
