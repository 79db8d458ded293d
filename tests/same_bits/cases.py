"""The cases: each runs something in the tree that is first on the path, and returns what is to be compared.

    cases.py FOLDER [WORD ...]

Writes a JSON object (case: part: text or digest) to stdout. Deployed agents draw noise that follows from the value.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

Found = dict[str, str]
SMALL = ["--data", "synthetic", "--set", "data.records=200", "--set", "data.agents=4"]
FAMILY = ("objp", "objt", "objt-laplace", "outp", "iadmm-prox", "iadmm-trust")
IN_SUM = ("objp", "objt", "fedgd", "onemessage")
DEPLOYED = ("objp", "objt", "objt-laplace")
CLOCKS = re.compile(r"seconds|^at$|held_until|nonce|version|^path$|^seal$|^rounds_hash$")  # differ from run to run
WITHOUT = os.environ.get("SAME_BITS_WITHOUT", "").split()  # keys of ledger entries that the caller lets differ
MASKED = (
    (re.compile(r"\d+\.\d+ s\b|\d+:\d\d\b|\b\d+ ms\b"), "TIME"),
    (re.compile(r"20\d\d-\d\d-\d\d[T ][\d:+.]+"), "DATE"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "HASH"),
)


def digest(array: Any) -> str:
    """Return shape, type and hash of an array."""
    array = np.ascontiguousarray(array)
    if array.dtype == object:
        return repr(array.tolist())
    return f"{array.dtype}{array.shape} {hashlib.sha256(array.tobytes()).hexdigest()[:16]}"


def without_clocks(value: Any) -> Any:
    """Return JSON without what differs between two runs of one version."""
    if isinstance(value, dict):
        kept = {key: one for key, one in value.items() if not CLOCKS.search(key) and key not in WITHOUT}
        return {key: without_clocks(one) for key, one in kept.items()}
    if isinstance(value, list):
        return [without_clocks(one) for one in value]
    return value


def masked(text: str, place: Path) -> str:
    """Return a transcript without times, dates, hashes, and the folder that it was run in."""
    text = text.replace(str(place), "PLACE")
    for pattern, word in MASKED:
        text = pattern.sub(word, text)
    return text


def command(place: Path, *words: str) -> Found:
    """Run a command of tacit in this process and return its exit code and what it prints."""
    from tacit.cli import main

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), contextlib.chdir(place):
        try:
            code = main([*words, "-q"])
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 2
    return {"exit": str(code), "stdout": masked(out.getvalue(), place), "stderr": masked(err.getvalue(), place)}


def stored(place: Path, run: str = "run") -> Found:
    """Return what the directory of a run holds."""
    found: Found = {}
    folder = place / run
    if (folder / "model.npz").exists():
        with np.load(folder / "model.npz", allow_pickle=False) as model:
            found |= {f"model.npz {name}": digest(model[name]) for name in sorted(model.files)}
    with suppress(FileNotFoundError):
        rows = (folder / "rounds.jsonl").read_text().splitlines()
        found["rounds.jsonl"] = json.dumps([without_clocks(json.loads(row)) for row in rows])
    with suppress(FileNotFoundError):
        summary = without_clocks(json.loads((folder / "result.json").read_text()))
        summary.pop("ledger_heads", None)  # they cover times
        found["result.json"] = masked(json.dumps(summary, sort_keys=True), place)
    with suppress(FileNotFoundError):
        found["spec.toml"] = masked((folder / "spec.toml").read_text(), place)
    return found


def entries(path: Path, words: bool = True) -> Found:
    """Return the entries of a ledger without times; masked words (`words` false) differ from run to run."""
    found = []
    with sqlite3.connect(path) as connection:
        for (text,) in connection.execute("SELECT body FROM entry ORDER BY n"):
            body = without_clocks(json.loads(text))
            if not words:
                body = {key: value for key, value in body.items() if key not in ("payload", "asked")}
            found.append(body)
    return {f"ledger {path.name}": json.dumps(found, sort_keys=True)}


def trained(place: Path, *words: str) -> Found:
    """Train by the command line, and return transcript and files."""
    found = command(place, "train", *SMALL, "--out", "run", "--rounds", "4", *words)
    if "takes 1 round" in found["stderr"]:
        found = command(place, "train", *SMALL, "--out", "run", *words)
    return found | stored(place)


def deployed(place: Path, *words: str, trust: str = "nobody") -> Found:
    """Train over deployed agents with ledgers, whose noise follows from the values."""
    with injected():
        found = trained(
            place, "--noise", "exact", "--ledger", "ledgers", "--trust", trust, "--set", "run.name=same", *words
        )
    for path in sorted((place / "ledgers").glob("*.ledger")):
        found |= entries(path, words=trust == "nobody")
    if (place / "ledgers" / "0.ledger").exists():
        found["ledger show"] = command(place, "ledger", "show", "ledgers/0.ledger")["stdout"]
    return found


@contextlib.contextmanager
def injected() -> Iterator[None]:
    """Let exact noise follow from the value that it is added to."""
    from tacit.privacy import lattice
    from tacit.privacy.summed import Attempt
    from tests.federation import room, summing

    release, share = lattice.release, Attempt.share
    lattice.release, Attempt.share = room.seeded, summing.seeded
    try:
        yield
    finally:
        lattice.release, Attempt.share = release, share


def federation(place: Path) -> Found:
    """Train over three agents at two sites, one of which misses a round."""
    from tests.federation import room as rooms

    def fate(_way: str, site: str, header: dict[str, Any]) -> list[float]:
        return [] if (site, header.get("t")) == ("alone", 3) else [rooms.QUICK]

    with injected():
        services = rooms.services(place)
        room = rooms.Room(services, fate)
        where = rooms.folder(place / "coordinator", faults="deadline = 5.0\n", run='name = "same"\n')
        try:
            rooms.go(where, room)
        finally:
            rooms.close(room)
    found = stored(where / "runs", "trial-1")
    for path in sorted(place.glob("*/ledgers/*.ledger")):
        found |= entries(path)
    return found


def federated_sum(place: Path) -> Found:
    """Train over five agents at three sites behind a secure sum."""
    from tests.federation import room as rooms
    from tests.federation import summing

    with injected():
        services = summing.services(place)
        room = rooms.Room(services)
        where = summing.folder(place / "coordinator", repetitions=2)
        asked = (where / "run.toml").read_text()
        (where / "run.toml").write_text(asked.replace("[run]\n", '[run]\nname = "same"\n'))
        try:
            rooms.go(where, room)
        finally:
            rooms.close(room)
    found = stored(where / "runs", "trial-1")
    for path in sorted(place.glob("*/ledgers/*.ledger")):
        found[f"ledger {path.name}"] = str(entries(path, words=False)[f"ledger {path.name}"].count('"kind": "release"'))
    return found


def two_ranks(place: Path, *words: str) -> Found:
    """Train over two ranks of MPI."""
    beside = Path(sys.executable).parent / "mpiexec"
    mpiexec = str(beside) if beside.exists() else shutil.which("mpiexec")
    if mpiexec is None:
        return {"skipped": "there is no mpiexec"}
    root = {f"{owner}_ALLOW_RUN_AS_ROOT{end}": "1" for owner in ("OMPI", "PRTE") for end in ("", "_CONFIRM")}
    own = ("--rounds", "4", "--out", "run", "--engine", "mpi", "-q")
    run = [sys.executable, "-m", "tacit", "train", *SMALL, *own, *words]
    done = subprocess.run(
        [mpiexec, "-n", "2", "--map-by", ":OVERSUBSCRIBE", *run], cwd=place, env=os.environ | root,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return {"exit": str(done.returncode), "stdout": masked(done.stdout, place)} | stored(place)


def cases() -> dict[str, Callable[[Path], Found]]:
    """Return all cases by name."""
    from tacit.methods.registry import METHODS

    found: dict[str, Callable[[Path], Found]] = {}
    for name in METHODS:
        found[f"fast: {name}"] = partial(_train, ("--algorithm", name, "--seed", "1"))
        found[f"unseeded: {name}"] = partial(_refused_or_exact, name)
    for name in (*FAMILY, "outp-huang", "outp-plus", "admm"):
        found[f"plain: {name}"] = partial(_train, ("--algorithm", name, "--seed", "1", "--engine", "plain"))
    for name in IN_SUM:
        found[f"sum: {name}"] = partial(_train, ("--algorithm", name, "--seed", "1", "--trust", "sum"))
    for name in FAMILY:
        for own in ("paper", "released"):
            words = ("--algorithm", name, "--seed", "1", "--preset", own)
            found[f"{own}: {name}"] = partial(_train, words)
    for name in ("objt", "outp", "fedgd"):
        found[f"two ranks: {name}"] = partial(_ranks, ("--algorithm", name, "--seed", "1"))
    for name in DEPLOYED:
        found[f"deployed: {name}"] = partial(_deploy, ("--algorithm", name), "nobody")
    for name in ("objp", "objt"):
        found[f"deployed sum: {name}"] = partial(_deploy, ("--algorithm", name), "sum")
    found |= {"federation": federation, "federation, secure sum": federated_sum}
    found["commands: account"] = lambda place: command(place, "account", "--epsilon", "1", "--rounds", "20")
    found["commands: keys"] = lambda place: command(place, "train", "--keys")
    found["commands: methods"] = lambda place: command(place, "compare", "--list")
    return found


def _train(words: tuple[str, ...], place: Path) -> Found:
    return trained(place, *words)


def _ranks(words: tuple[str, ...], place: Path) -> Found:
    return two_ranks(place, *words)


def _deploy(words: tuple[str, ...], trust: str, place: Path) -> Found:
    return deployed(place, *words, trust=trust)


def _refused_or_exact(name: str, place: Path) -> Found:
    """Return whether a run without a seed draws exact noise, simulates it or is refused: no bits."""
    found = trained(place, "--algorithm", name)
    summary = json.loads((place / "run" / "result.json").read_text()) if found["exit"] == "0" else {}
    return {"exit": found["exit"], "noise": str(summary.get("noise")), "guarantee": str(summary.get("guarantee"))}


def main() -> None:
    """Run the chosen cases, each in an empty folder of its own."""
    folder, *words = sys.argv[1:]
    warnings.simplefilter("ignore")
    found: dict[str, Found] = {}
    for n, (name, case) in enumerate(cases().items()):
        if not words or any(word in name for word in words):
            place = Path(folder) / str(n)
            place.mkdir()
            try:
                found[name] = case(place.resolve())
            except Exception as error:
                found[name] = {"error": masked(f"{type(error).__name__}: {error}", place.resolve())}
            shutil.rmtree(place)
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
