"""Opens a link in the browser without telling it to other accounts: they see the arguments of every process.

The browser is given the address of a file that only the owner can read; the file leads it to the link.
"""

from __future__ import annotations

import html
import shutil
import signal
import sys
import tempfile
import threading
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_PAGE = (
    '<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer">'
    '<meta http-equiv="refresh" content="0;url={0}"><title>tacit</title><a href="{0}">tacit ui</a>\n'
)


@contextmanager
def opener() -> Iterator[Callable[[str], None]]:
    """Yield what opens a link; the files that it wrote are removed at the end, after SIGTERM too."""
    folder = Path(tempfile.mkdtemp(prefix="tacit-ui-"))  # of mode 0700

    def open_(link: str) -> None:
        page = folder / "open.html"
        page.touch(0o600)
        page.write_text(_PAGE.format(html.escape(link)), encoding="utf-8")
        webbrowser.open(page.as_uri())

    main = threading.current_thread() is threading.main_thread()  # no other thread may set what a signal does
    before = signal.signal(signal.SIGTERM, _ended) if main else None
    try:
        yield open_
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if main:
            signal.signal(signal.SIGTERM, before)


def _ended(number: int, _frame: object) -> None:
    """End as after any error, with what has to be removed; the server has already ended in order by then."""
    sys.exit(128 + number)
