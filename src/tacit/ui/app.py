"""The pages and questions of the live page as an ASGI app: a fixed table of paths, nothing is looked up by a path."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import traceback
from collections.abc import Awaitable, Callable, Mapping
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qs

from tacit import jsontext
from tacit.report.chart import MOST
from tacit.ui.guard import SECURITY, Guard
from tacit.ui.place import Unreadable
from tacit.ui.rows import ORDERS
from tacit.ui.views import Missing, Views

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Asked = Mapping[str, list[str]]

LONGEST = 4096  # bytes of a query
AT_ONCE = 4  # questions that are answered at the same time
_TYPES = {"html": b"text/html; charset=utf-8", "js": b"text/javascript; charset=utf-8",
          "css": b"text/css; charset=utf-8", "svg": b"image/svg+xml"}  # fmt: skip
FILES = {  # by path: package and file
    "/": ("tacit.ui", "ui.html"), "/ui.css": ("tacit.ui", "ui.css"), "/icon.svg": ("tacit.ui", "icon.svg"),
    "/parts.js": ("tacit.ui", "parts.js"), "/list.js": ("tacit.ui", "list.js"), "/ui.js": ("tacit.ui", "ui.js"),
    "/sections.js": ("tacit.ui", "sections.js"), "/views.js": ("tacit.ui", "views.js"),
    "/shared.css": ("tacit.report", "shared.css"), "/axes.js": ("tacit.report", "axes.js"),
    "/chart.js": ("tacit.report", "chart.js"),
}  # fmt: skip


class App:
    """Answers requests that the guard lets through. Every answer says what a browser may do with it: nothing more."""

    def __init__(self, views: Views, guard: Guard) -> None:
        self._guard = guard
        self._files = {path: (_TYPES[name.rpartition(".")[2]], files(package).joinpath(name).read_bytes())
                       for path, (package, name) in FILES.items()}  # fmt: skip
        self._answers: dict[tuple[str, str], Callable[[Asked], Any]] = {
            ("GET", "/api/list"): lambda asked: views.listing(
                _one(asked, "words"), _one(asked, "state"), _choice(asked, "order", ORDERS), _number(asked, "start")
            ),
            ("GET", "/api/item"): lambda asked: views.shown(_one(asked, "id")),
            ("GET", "/api/more"): lambda asked: views.more(_one(asked, "id")),
            ("GET", "/api/budgets"): lambda asked: views.budgets(_one(asked, "id")),
            ("GET", "/api/compare"): lambda asked: views.compared(asked.get("id", [])[:MOST]),
            ("POST", "/api/stop"): lambda asked: views.stop(_one(asked, "id")),
        }
        self._places = asyncio.Semaphore(AT_ONCE)
        self._own = {"/api/budgets": asyncio.Semaphore(1)}  # whose answers may take long: others do not wait for them

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        status, kind, body, headers = await self._answer(scope)
        headers = [(b"content-type", kind), (b"content-length", str(len(body)).encode()), *headers, *SECURITY]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})

    async def _answer(self, scope: Scope) -> tuple[int, bytes, bytes, list[tuple[bytes, bytes]]]:
        path, method = scope["path"], scope["method"]
        is_file = path in self._files and method in ("GET", "HEAD")
        refused = self._guard.refused(scope["headers"], needs_token=not is_file)
        if refused is not None:
            return _said(*refused)
        if is_file:
            kind, content = self._files[path]
            return 200, kind, content, []
        answer = self._answers.get((method, path))
        if answer is None:
            return _said(404, "there is no such page.")
        query = scope["query_string"]
        if len(query) > LONGEST:
            return _said(414, "the question is too long.")
        try:
            asked = parse_qs(query.decode("ascii"), errors="replace", max_num_fields=50)
            async with self._own.get(path, self._places):
                body = await asyncio.to_thread(lambda: jsontext.dumps(answer(asked)).encode())
        except Missing:
            return _said(404, "there is nothing with this id any more: see the list.")
        except Unreadable as error:
            return _said(409, f"{error}.")
        except ValueError:
            return _said(400, "the question cannot be read.")
        except Exception as error:  # a file that nobody thought of: the page goes on, and the owner sees where
            _log(path, error)
            return _said(500, "this could not be read: see the terminal of tacit ui.")
        tag = b'"' + hashlib.sha256(body).hexdigest()[:24].encode() + b'"'
        if dict(scope["headers"]).get(b"if-none-match") == tag:
            return 304, _JSON, b"", [(b"etag", tag)]
        return 200, _JSON, body, [(b"etag", tag)]


_JSON = b"application/json"


def _said(status: int, sentence: str) -> tuple[int, bytes, bytes, list[tuple[bytes, bytes]]]:
    return status, _JSON, jsontext.dumps({"error": sentence}).encode(), []


def _log(path: str, error: Exception) -> None:
    """Tell the terminal where an error came up, and nothing of its words: a file may have put escapes into them."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{last.filename}, line {last.lineno}"
    logging.getLogger("tacit.ui").error("%s could not be answered: %s in %s", path, type(error).__name__, where)


def _one(asked: Asked, name: str) -> str:
    return asked.get(name, [""])[0]


def _choice(asked: Asked, name: str, choices: tuple[str, ...]) -> str:
    said = _one(asked, name)
    return said if said in choices else choices[0]


def _number(asked: Asked, name: str) -> int:
    said = _one(asked, name)
    return min(int(said), 10**6) if said.isascii() and said.isdigit() and len(said) < 8 else 0
