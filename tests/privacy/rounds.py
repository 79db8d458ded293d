"""Processes that use a ledger and may die: run by test_ledger.py.

    rounds.py answer FOLDER          a round in one child for every line of it, killed there
    rounds.py create FOLDER          the same for a ledger's creation
    rounds.py spend FILE LOG RUN...  answer rounds of these runs until refused, and log what would have left
"""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import sys
from pathlib import Path

import numpy as np

from tacit.errors import BudgetExhausted
from tacit.message import fingerprint
from tacit.privacy.ledger import Key, Ledger, Limit
from tacit.privacy.release import GaussianRelease
from tacit.privacy.witness import Witness

GAUSSIAN = GaussianRelease(10.0)
LIMIT = Limit(3.0, 1e-6)
CODE = tuple(f"privacy/{name}.py" for name in ("ledger", "admission", "chain", "history", "terms", "witness"))


def price(events, dp_delta):
    """zCDP of Gaussian releases, converted simply."""
    rho = sum(n / (2 * release.multiplier**2) for release, n in events)
    return rho + 2 * np.sqrt(rho * np.log(1 / dp_delta))


def asked(t):
    return fingerprint(t, {"w": np.full((2, 3), float(t)), "rho": 1.0})


def noisy():
    return np.frombuffer(os.urandom(48), dtype=np.int64).reshape(2, 3)


def killed_at(line, act):
    """Run act in a child that dies at its line-th line within the ledger's code; whether it lived."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1] == 0
    left = [line]

    def trace(frame, event, _):
        if not frame.f_code.co_filename.endswith(CODE):
            return None
        if event == "line":
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace

    sys.settrace(trace)
    act()
    os._exit(0)


def answer_everywhere(folder):
    """A ledger with two rounds; then, for each line, a copy of it in which the third round is killed there."""
    first, seen = folder / "first.ledger", folder / "first.witness"
    with Ledger.open(first, price, LIMIT) as ledger:
        ledger.attest(Witness(seen, "north"))
        for t in (1, 2):
            ledger.release(Key("data", "run", t), asked(t), GAUSSIAN, noisy)
    lived, line = False, 0
    while not lived:
        line += 1
        place = folder / f"{line:04d}"
        place.mkdir()
        shutil.copy(first, place / "ledger")
        shutil.copy(seen, place / "witness")
        lived = killed_at(line, lambda place=place: answer(place))


def answer(place):
    ledger = Ledger.open(place / "ledger", price, witness=Witness(place / "witness", "north"))
    ledger.forget_later("run", before=2)
    (place / "sent").write_bytes(ledger.release(Key("data", "run", 3), asked(3), GAUSSIAN, noisy).tobytes())
    ledger.close()


def create_everywhere(folder):
    lived, line = False, 0
    while not lived:
        line += 1
        (folder / f"{line:04d}").mkdir()
        lived = killed_at(line, lambda line=line: Ledger.open(folder / f"{line:04d}" / "ledger", price, LIMIT).close())


def spend(file, log, runs):
    with Ledger.open(file, price) as ledger, log.open("a") as sent:
        t = 0
        while True:
            t += 1
            for run in runs:
                try:
                    z = ledger.release(Key("data", run, t), asked(t), GAUSSIAN, noisy)
                except BudgetExhausted:
                    return
                sent.write(f"{run} {t} {hashlib.sha256(z.tobytes()).hexdigest()}\n")
                sent.flush()


if __name__ == "__main__":
    command, place, *rest = sys.argv[1:]
    if command == "spend":
        spend(Path(place), Path(rest[0]), rest[1:])
    else:
        {"answer": answer_everywhere, "create": create_everywhere}[command](Path(place))
