"""Small grey pictures in a grid, as a PNG, with the standard library alone."""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Gray = NDArray[np.uint8]

_ZOOM, _GAP, _WHITE = 4, 8, 255
# three by five pixels a letter, rows from the top, each an octal digit
_FONT = {
    "0": 0o75557, "1": 0o26227, "2": 0o71747, "3": 0o71717, "4": 0o55711, "5": 0o74717, "6": 0o74757, "7": 0o71122,
    "8": 0o75757, "9": 0o75717, ".": 0o00002, "-": 0o00700, "+": 0o02720, " ": 0o00000, "=": 0o07070,
    "A": 0o25755, "C": 0o34443, "D": 0o65556, "E": 0o74647, "G": 0o34553, "I": 0o72227, "L": 0o44447, "N": 0o65555,
    "O": 0o25552, "P": 0o65644, "R": 0o65655, "S": 0o34216, "T": 0o72222,
}  # fmt: skip


def tile(values: NDArray[np.float64]) -> Gray:
    """A record as a square picture: low is white and high is black, each picture on its own scale."""
    side = math.ceil(math.sqrt(values.size))
    padded = np.full(side * side, values.min())
    padded[: values.size] = values
    span = float(np.ptp(padded)) or 1.0
    gray = 255 - np.rint(255 * (padded - padded.min()) / span)
    return np.kron(gray.reshape(side, side), np.ones((_ZOOM, _ZOOM))).astype(np.uint8)


def caption(text: str, width: int) -> Gray:
    """Lines of capital letters, cut to the width."""
    lines = []
    for words in text.upper().splitlines():
        line = np.full((8, max(width // 2, 4 * len(words))), _WHITE, np.uint8)
        for n, letter in enumerate(words):
            bits = np.array([[_FONT.get(letter, 0) >> (14 - 3 * r - c) & 1 for c in range(3)] for r in range(5)])
            line[2:7, 4 * n : 4 * n + 3][bits == 1] = 0
        lines.append(np.kron(line, np.ones((2, 2), np.uint8))[:, :width])
    return np.vstack(lines)


def sheet(rows: Sequence[Sequence[tuple[Gray, str]]]) -> Gray:
    """Rows of equal pictures, each over a caption of as many lines as the others."""
    lines = []
    for row in rows:
        cells = []
        for picture, text in row:
            cell = np.vstack([picture, caption(text, picture.shape[1])])
            cells.append(np.pad(cell, _GAP // 2, constant_values=_WHITE))
        lines.append(np.hstack(cells))
    return np.vstack(lines)


def write_png(path: Path, gray: Gray) -> None:
    """An eight-bit grey image (height, width) as a PNG file."""
    height, width = gray.shape

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    lines = np.hstack([np.zeros((height, 1), np.uint8), gray.astype(np.uint8)])  # each line says: no filter
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines.tobytes(), 9)) + chunk(b"IEND", b"")
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + body)
