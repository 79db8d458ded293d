"""A real Chromium without a window, asked through its DevTools: open a page, press keys, read what is shown."""

from __future__ import annotations

import base64
import contextlib
import json
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

CHROMIUM = shutil.which("chromium") or ""
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--remote-debugging-port=0",
    "--disable-dev-shm-usage",
    "--force-prefers-reduced-motion",
    "--hide-scrollbars",
    "--host-resolver-rules=MAP evil.example 127.0.0.1",
)
PATIENCE = 10.0  # seconds for something to be shown


class Page:
    """One tab. What the page writes to its console, and what its policy refuses, is kept in `said`."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket, self._n = socket, 0
        self.said: list[str] = []
        for domain in ("Page", "Runtime", "Log"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._n += 1
        self._socket.send(json.dumps({"id": self._n, "method": method, "params": parameters}))
        while True:
            told = json.loads(self._socket.recv(timeout=PATIENCE))
            if told.get("id") == self._n:
                assert "error" not in told, told["error"]
                return dict(told["result"])
            self._hear(told)

    def _hear(self, told: dict[str, Any]) -> None:
        if told.get("method") == "Log.entryAdded":
            self.said.append(told["params"]["entry"]["text"])
        elif told.get("method") == "Runtime.exceptionThrown":
            self.said.append(json.dumps(told["params"]["exceptionDetails"])[:500])
        elif told.get("method") == "Runtime.consoleAPICalled":
            self.said.append(str([one.get("value") for one in told["params"]["args"]]))
        elif told.get("method") == "Page.javascriptDialogOpening":
            self.said.append(f"dialog: {told['params']['message']}")
            self._n += 1
            self._socket.send(
                json.dumps({"id": self._n, "method": "Page.handleJavaScriptDialog", "params": {"accept": True}})
            )

    def open(self, address: str) -> None:
        self.ask("Page.navigate", url="about:blank")  # a change behind the # alone would load nothing
        self.ask("Page.navigate", url=address)

    def run(self, script: str) -> Any:
        """Return the value of a script."""
        told = self.ask(
            "Runtime.evaluate",
            expression=script,
            returnByValue=True,
            awaitPromise=True,
            allowUnsafeEvalBlockedByCSP=False,
        )
        assert "exceptionDetails" not in told, told
        return told["result"].get("value")

    def wait(self, script: str, seconds: float = PATIENCE) -> Any:
        """Wait until a script has a value that is true, and return it; an element is true."""
        script = f"((found) => (found instanceof Node ? true : found))({script})"
        end = time.monotonic() + seconds
        while True:
            with contextlib.suppress(AssertionError):  # a page that is just loading has no functions yet
                if found := self.run(script):
                    return found
            shown = self.run("document.body?.innerText") if time.monotonic() > end else None
            assert time.monotonic() < end, f"not shown: {script}\n{self.said}\n{shown}"
            time.sleep(0.05)

    def text(self) -> str:
        return str(self.run("document.body.innerText"))

    def size(self, width: int, height: int = 844, dark: bool = False) -> None:
        self.ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500
        )
        self.ask(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}],
        )

    def press(self, key: str) -> None:
        text = {"Enter": "\r", " ": " "}.get(key, key if len(key) == 1 else "")
        codes = {
            "Enter": 13,
            "Escape": 27,
            "Tab": 9,
            "ArrowUp": 38,
            "ArrowDown": 40,
            "ArrowLeft": 37,
            "ArrowRight": 39,
            " ": 32,
        }
        told = {
            "key": key,
            "code": "Space" if key == " " else key,
            "windowsVirtualKeyCode": codes.get(key, ord(key[0].upper())),
        }
        self.ask("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **told)
        self.ask("Input.dispatchKeyEvent", type="keyUp", **told)

    def click(self, selector: str) -> None:
        box = self.wait(
            f"(() => {{ const found = document.querySelector({json.dumps(selector)});"
            " if (!found) return null; found.scrollIntoView({block: 'center'});"
            " const b = found.getBoundingClientRect();"
            " return b.width ? [b.x + b.width / 2, b.y + b.height / 2] : null; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.ask("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)

    def picture(self, path: Path, whole: bool = False) -> None:
        told = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(told["data"]))


@contextlib.contextmanager
def chromium(folder: Path) -> Iterator[Page]:
    """Start a browser with a profile in `folder`, and yield a page of it."""
    process = subprocess.Popen(
        [CHROMIUM, *FLAGS, f"--user-data-dir={folder}", "about:blank"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        line = next(line for line in process.stderr if "DevTools listening on" in line)
        port = int(line.rpartition("127.0.0.1:")[2].split("/")[0])
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=PATIENCE) as answer:
            (tab,) = [one for one in json.load(answer) if one["type"] == "page"]
        with connect(tab["webSocketDebuggerUrl"], max_size=None, compression=None) as socket:
            yield Page(socket)
    finally:
        process.terminate()
        process.wait(timeout=10)
        if process.stderr is not None:
            process.stderr.close()
