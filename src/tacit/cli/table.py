"""A table for a terminal or a pipe."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Sequence

from tacit.cli.folding import fold, width

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
