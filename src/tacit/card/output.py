"""Writes the card of a run as card.md and card.html."""

from __future__ import annotations

from pathlib import Path

from tacit.card import markdown, page
from tacit.card.content import Filled, card
from tacit.errors import RunDirectoryError
from tacit.report.audience import Audience

NOTHING = Filled()


def write(
    directory: Path, out: Path | None = None, filled: Filled = NOTHING, audience: Audience = Audience.OWNERS
) -> dict[str, Path]:
    """Write both files into `out`, or beside the run; return them by kind. Each is written whole or not at all."""
    found = card(directory, filled, audience)
    place, name = directory if out is None else out, "card-shared" if audience.public else "card"
    texts = {
        "markdown": (place / f"{name}.md", markdown.write(found)), "html": (place / f"{name}.html", page.write(found)),
    }  # fmt: skip
    try:
        place.mkdir(parents=True, exist_ok=True)
        for path, text in texts.values():
            draft = path.with_name(f".{path.name}.draft")
            draft.write_text(text, encoding="utf-8")
            draft.replace(path)
    except OSError as error:
        raise RunDirectoryError(f"cannot write into {place}: {error.strerror}. Give another --out.") from None
    return {kind: path for kind, (path, _) in texts.items()}
