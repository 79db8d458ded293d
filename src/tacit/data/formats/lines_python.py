"""The Python twin of split_lines in _csv.c: where no compiler was at hand, and for tests that compare the two."""

from __future__ import annotations

from dataclasses import dataclass, field

LIMIT = 1 << 17  # bytes of a cell, at most
LARGEST = 1 << 29  # bytes of a record, or of one reading, at most: places of cells have 31 bits


@dataclass(frozen=True)
class Rules:
    """How lines become records."""

    end: bytes  # of a line
    separator: bytes
    quote: bytes  # b"" for none
    newlines: bool
    width: int  # cells of a record
    most: int  # bytes of a record


@dataclass
class Split:
    """The records found: their cells, None where a record is not well-formed, and the number of their last line."""

    rows: list[list[str] | None] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    used: int = 0  # bytes
    lines: int = 0
    long: bool = False  # the next line is longer than any record, wherever it ends


def split(text: bytes, start: int, final: bool, rules: Rules, room: int) -> Split:
    """Find at most so many records behind `start`; those that may go on behind the text are left, unless `final`."""
    found, at = Split(), start
    while len(found.rows) < room and at < len(text):
        stop, after = _line(text, at, final, rules)
        if after is None:
            found.long = len(text) - at > rules.most + 1
            break
        lines, cells, behind = 1, None, after
        if stop > at:  # not blank
            record = _record(text, at, stop, after, final, rules) if stop - at <= rules.most else (None, after, 1)
            if record is None:
                break
            cells, behind, lines = record
            found.rows.append(_decoded(cells))
            found.numbers.append(found.lines + lines)
        found.lines += lines
        at = behind
    found.used = at - start
    return found


def _line(text: bytes, at: int, final: bool, rules: Rules) -> tuple[int, int | None]:
    """Return where the text of a line stops, and where the next line begins: None where the line may go on."""
    stop = text.find(rules.end, at)
    if stop < 0:
        if not final:
            return len(text), None
        stop = after = len(text)
    else:
        after = stop + 1
    return stop - (rules.end == b"\n" and stop > at and text[stop - 1 : stop] == b"\r"), after


def _record(
    text: bytes, start: int, stop: int, after: int | None, final: bool, rules: Rules
) -> tuple[list[bytes] | None, int, int] | None:
    """Return (the cells or None, where the next record begins, lines); None where the record may go on."""
    assert after is not None
    bad, at, lines = (None, after, 1), start, 1
    if not rules.quote or text.find(rules.quote, start, stop) < 0:
        cells = text[start:stop].split(rules.separator)
        return (cells, after, 1) if len(cells) == rules.width and max(map(len, cells)) <= LIMIT else bad
    cells = []
    while len(cells) < rules.width:
        begin, doubled = at, False
        if rules.quote and text.startswith(rules.quote, at, stop):
            begin = at = at + 1
            while True:
                quote = text.find(rules.quote, at, stop)
                if quote >= 0:
                    at = quote + 1
                    if not text.startswith(rules.quote, at, stop):
                        break
                    doubled, at = True, at + 1
                    continue
                if not rules.newlines or (after == len(text) and final) or stop - begin > LIMIT:
                    return bad  # never closed, or too long
                at = stop
                stop, after = _line(text, after, final, rules) if after < len(text) else (len(text), None)
                lines += 1
                if stop - start > rules.most + (after is None):
                    return bad
                if after is None:
                    return None
            end = at - 1
            if at < stop and not text.startswith(rules.separator, at):
                return bad  # text behind a quoted cell
        else:
            end = text.find(rules.separator, at, stop)
            at = end = stop if end < 0 else end
        if end - begin > LIMIT:
            return bad
        cell = text[begin:end]
        cells.append(cell.replace(rules.quote * 2, rules.quote) if doubled else cell)
        if at == stop:
            return (cells, after, lines) if len(cells) == rules.width else bad
        at += 1
    return bad  # one cell more than the header has


def _decoded(cells: list[bytes] | None) -> list[str] | None:
    try:
        return None if cells is None else [cell.decode() for cell in cells]
    except UnicodeDecodeError:
        return None
