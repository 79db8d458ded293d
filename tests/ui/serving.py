"""A real server over a directory, and plain HTTP to ask it."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

SPEC = (
    '[data]\nsource = "synthetic"\n\n[algorithm]\nname = "objt"\n\n[privacy]\nepsilon = 1.0\ndp_delta = 1e-06\n'
    'noise = "simulated"\n\n[run]\npreset = "sound"\nrounds = 10\nseed = 0\n'
)


def write_run(folder: Path, rounds: int = 10, done: int = 5, spec: str = SPEC, **result: Any) -> Path:
    """Write a run by hand, of which so many rounds are done; finished, where it has a result."""
    folder.mkdir(parents=True)
    (folder / "spec.toml").write_text(spec.replace("rounds = 10", f"rounds = {rounds}"))
    rows = [{"t": t, "test_error": 1 / (t + 1), "objective": 2 / (t + 1)} for t in range(1, done + 1)]
    (folder / "rounds.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    if result:
        (folder / "result.json").write_text(json.dumps(result))
    return folder


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def told(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Served:
    """A server that runs."""

    port: int
    token: str
    root: Path

    @property
    def link(self) -> str:
        return f"http://127.0.0.1:{self.port}/#token={self.token}"

    def ask(self, path: str, headers: Sequence[tuple[str, str]] = (), method: str = "GET", **asked: Any) -> Answer:
        """Ask with the token and with the right host, unless `headers` name them; an empty header is left out."""
        given = {name.lower() for name, _ in headers}
        usual = [("Host", f"127.0.0.1:{self.port}"), ("X-Tacit-Token", self.token)]
        every = [*(one for one in usual if one[0].lower() not in given), *(one for one in headers if one[1])]
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        with contextlib.closing(connection):
            target = f"{path}?{urlencode(asked, doseq=True)}" if asked else path
            connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
            for name, value in every:
                connection.putheader(name, value)
            connection.endheaders()
            answer = connection.getresponse()
            return Answer(answer.status, {key.lower(): value for key, value in answer.getheaders()}, answer.read())

    def id_of(self, name: str) -> str:
        """Return the id of a row by its name, once it is listed."""
        end = time.monotonic() + 5
        while True:
            for row in self.ask("/api/list").told["rows"]:
                if row["name"] == name:
                    return str(row["id"])
            assert time.monotonic() < end, f"{name} is not listed"
            time.sleep(0.05)


@contextlib.contextmanager
def serving(root: Path, *options: str, **environment: str) -> Iterator[Served]:
    """Start `tacit ui` over a directory, and end it."""
    command = [sys.executable, "-m", "tacit", "ui", str(root), "--json", "-q", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env=os.environ | environment)  # fmt: skip
    try:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline() or "{}")
        assert told, process.communicate()[1]
        yield Served(int(told["url"].rstrip("/").rpartition(":")[2]), told["token"], root)
    finally:
        process.terminate()
        process.communicate(timeout=10)
