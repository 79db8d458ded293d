"""Secret keys on disk: files of mode 0600, made once, read again after a restart, deleted with their run."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

from tacit.agent.masks.keys import RunKey, SigningKey
from tacit.agent.masks.primitives import encoded
from tacit.errors import DataError
from tacit.machine import sync_folder

_RUN = ".runkey"
_DIGITS = 64  # of a secret, in a file that a person can recognise


def run_key(folder: Path, run: str, agent: str, budget: str) -> RunKey:
    """Return the agent's key for a run, which is drawn where there is none yet, and is on disk then.

    One key is for one budget (`Ledger.budget`): where a ledger was lost, or names other data, an answer must not be
    masked as one was that this ledger knows nothing of.
    """
    path = _run_file(folder, run, agent, budget)
    if not path.exists():
        _create(path, RunKey.new().secret)
    return RunKey(_read(path))


def has_run_key(folder: Path, run: str, agent: str, budget: str) -> bool:
    """Whether the agent's key for a run is on disk."""
    return _run_file(folder, run, agent, budget).exists()


def run_keys(folder: Path) -> int:
    """Return how many run keys there are in a folder, of whatever runs."""
    return len(list(folder.glob(f"*{_RUN}")))


def forget_run_keys(folder: Path) -> int:
    """Delete the keys of all runs in a folder, and return how many they were."""
    found = list(folder.glob(f"*{_RUN}"))
    for path in found:
        path.unlink(missing_ok=True)
    return len(found)


def forget_run(folder: Path, run: str) -> None:
    """Delete all keys of a run that has ended: whoever finds one later could strip masks that he has kept."""
    for path in folder.glob(f"{_digest(run)}-*{_RUN}"):
        path.unlink(missing_ok=True)


def new_signing_key(path: Path) -> SigningKey:
    """Draw a signing key into a new file."""
    if path.exists():
        raise DataError(f"{path} is there already: peers have pinned its key. Move it away to draw another one.")
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    _create(path, SigningKey.new().secret)
    return signing_key(path)


def signing_key(path: Path) -> SigningKey:
    """Read a signing key."""
    return SigningKey(_read(path))


def _run_file(folder: Path, run: str, agent: str, budget: str) -> Path:
    return folder / f"{_digest(run)}-{_digest(agent, budget)}{_RUN}"


def _digest(*names: str) -> str:
    return hashlib.sha256(encoded(*names)).hexdigest()[:32]


def _create(path: Path, secret: bytes) -> None:
    """Write a secret under its name in one step: whoever reads the file finds all of it, and nobody else may."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(secret.hex().encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(draft, path)  # unless another process was first
    except FileExistsError:
        pass
    finally:
        draft.unlink()
    sync_folder(path.parent)


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            if os.name == "posix" and stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
                raise DataError(f"{path} holds a secret, and others may read it: chmod 600 it, or draw another key.")
            text = file.read(_DIGITS + 2)
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}): restore it, or draw another key.") from None
    try:
        secret = bytes.fromhex(text.decode("ascii").strip())
    except ValueError:
        secret = b""
    if len(secret) != _DIGITS // 2:
        raise DataError(f"{path} holds no key, which has {_DIGITS} hexadecimal digits: restore it, or draw another.")
    return secret
