"""A table for a terminal or a pipe."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Sequence

UNFOLDED = 10_000  # characters: wider than any table


def table(head: Sequence[str], rows: Iterable[Sequence[str]], right: Collection[str] = ()) -> str:
    """The rows in columns under their heads; those named in `right` are aligned to the right.

    On a terminal the heads are bold and long cells are folded. Elsewhere the text is plain, and no line is folded.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    on_terminal = sys.stdout.isatty()
    console = Console(force_terminal=on_terminal, width=None if on_terminal else UNFOLDED)
    made = Table(box=None, pad_edge=False, header_style="bold")
    for name in head:
        made.add_column(Text(name), justify="right" if name in right else "left", no_wrap=name in right)
    for cells in rows:
        made.add_row(*map(Text, cells))
    with console.capture() as shown:
        console.print(made)
    return "\n".join(line.rstrip() for line in shown.get().splitlines())
