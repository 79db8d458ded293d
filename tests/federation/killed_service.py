"""An agent service that is killed (kill -9) at one moment after another: run by test_ledger_files.py.

    killed_service.py FOLDER MOMENTS

The moments lie before and after each step of an answer: the commit, the checkpoint, the witness, its rename, and the
reply. Prints one line of JSON: the digest of every answer that left, by round, and the last step before each kill.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path

from tacit.federation import listen, wire
from tacit.federation.messages import REPLIES, read, written
from tacit.federation.run_service import SiteRun
from tacit.federation.site import read as read_site
from tacit.privacy import chain, ledger, witness
from tests.federation.sites import ask, join, make, service, told

RUN = "r1"
STEPS = (
    (ledger.Ledger, "_made"),
    (chain.Chain, "checkpoint"),
    (witness.Witness, "write"),
    (Path, "replace"),
    (wire, "send"),
)


def serve(site, moment: int, where: int) -> None:
    """Serve in this process, which dies at the moment-th step after the first question; 0 for never."""
    left = [moment]
    asked = []
    whole = SiteRun.reply

    def reply(self, message):
        asked.append(message)
        return whole(self, message)

    def passed(name: str) -> None:
        left[0] -= bool(asked)
        if moment and left[0] == 0:
            os.write(where, f"{name}\n".encode())
            os.kill(os.getpid(), signal.SIGKILL)

    def stepping(name, step):
        def stepped(*values, **named):
            passed(f"before {name}")
            found = step(*values, **named)
            passed(f"after {name}")
            return found

        return stepped

    SiteRun.reply = reply
    for owner, name in STEPS:
        setattr(owner, name, stepping(name, getattr(owner, name)))
    listen.serve(site)


def exchanged(site, message):
    """The reply of the service; None if it was killed."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stream:
        stream.settimeout(30.0)
        try:
            stream.connect(str(site.socket))
            wire.send(stream, *written(message))
            found = read(*wire.receive(stream, 1 << 20), REPLIES)
        except (OSError, wire.Malformed):
            return None
        with suppress(OSError):
            stream.recv(1)  # the end: the service has made its last step for this message
        return found


def main(folder: Path, moments: int) -> None:
    rounds = 3 * moments
    agree = f'"run.rounds" = {rounds}'
    site = read_site(make(folder / "site", ("north",), agree=agree, name="n"))
    twin = service(folder / "twin", ("north",), agree=agree)
    first = join(twin, RUN, **{"run.rounds": rounds})
    assert told(twin, first).kind == "joined"
    sent: dict[int, str] = {}
    steps, t = [], 1
    for moment in [*range(1, moments + 1), 0]:
        out, where = os.pipe()
        child = os.fork()
        if not child:
            os.close(out)
            serve(site, moment, where)
            os._exit(0)
        os.close(where)
        while (reply := exchanged(site, first)) is None:
            time.sleep(0.01)
        assert reply.kind == "joined", reply
        for _ in range(5):
            reply = exchanged(site, ask(twin, first, t))
            if reply is None:
                break
            assert reply.kind == "answer", reply
            digest = hashlib.sha256(reply.words.tobytes()).hexdigest()
            assert sent.setdefault(t, digest) == digest
            t += 1
        if not moment:
            os.kill(child, signal.SIGTERM)
        status = os.waitpid(child, 0)[1]
        assert status == (signal.SIGKILL if moment else 0), (moment, status)
        steps += [os.read(out, 100).decode().strip()] if moment else []
        os.close(out)
    print(json.dumps({"sent": sent, "steps": steps}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
