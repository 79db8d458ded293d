"""The files of a LEAF directory: which users each holds, without a look at their records, and all that is in one."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from pathlib import Path
from typing import Any

from tacit.data.share import Share
from tacit.errors import DataError

HEAD = 1 << 20  # characters in which a file mostly names all its users
_KEY = re.compile(r'\s*[{,]\s*("(?:[^"\\]|\\.)*")\s*:\s*')


def files(folder: Path) -> list[Path]:
    """List the JSON files of a folder; 2 comes before 10."""
    found = [*folder.glob("*.json"), *folder.glob("*.json.gz")]
    if not found:
        raise DataError(f"{folder} has no *.json or *.json.gz: LEAF keeps them in train/ and test/.")
    return sorted(found, key=lambda p: [int(c) if c.isdecimal() else c for c in re.split(r"(\d+)", p.name)])


def users_of(folder: Path, share: Share) -> set[str]:
    """Return the users whose records this process holds: all are dealt by the numbers of their records."""
    total: dict[str, int] = {}
    for path in files(folder):
        for user, count in counts(path).items():
            if count > 0:
                total[user] = total.get(user, 0) + count
    users, mine = list(total), share.mine(list(total.values()))
    return {*users[mine.start : mine.stop]}


def counts(path: Path) -> dict[str, int]:
    """Return the number of records of each user of a file."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            head = _head(file.read(HEAD).decode(errors="ignore"))
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path} is not readable JSON ({error}): fetch it again.") from error
    content = head or parse(path)
    found: dict[str, int] = {}
    for user, count in zip(content["users"], content["num_samples"], strict=True):
        if not isinstance(user, str) or not isinstance(count, int):
            raise DataError(f"{path}: users are names, and num_samples whole numbers: fetch the file again.")
        found[user] = found.get(user, 0) + count
    return found


def _head(text: str) -> dict[str, Any] | None:
    """Return users and num_samples of a file that has both before the records, None where it has not."""
    found: dict[str, Any] = {}
    decoder, place = json.JSONDecoder(), 0
    try:
        while (key := _KEY.match(text, place)) is not None and (name := json.loads(key[1])) != "user_data":
            found[name], place = decoder.raw_decode(text, key.end())
    except ValueError:  # the head is longer than the text, or no JSON
        return None
    lists = [found.get(name) for name in ("users", "num_samples")]
    if key is None or not all(isinstance(one, list) for one in lists) or len(lists[0] or ()) != len(lists[1] or ()):
        return None
    return found


def parse(path: Path) -> dict[str, Any]:
    """Read one JSON file, and refuse what is not LEAF's."""
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        content = json.loads(data)
    except (OSError, EOFError, zlib.error, ValueError, RecursionError) as error:
        raise DataError(f"{path} is not readable JSON ({error}): fetch it again.") from error
    kinds = {"users": list, "num_samples": list, "user_data": dict}
    if not (isinstance(content, dict) and all(isinstance(content.get(k), kind) for k, kind in kinds.items())):
        raise DataError(f"{path} is not a LEAF file: it needs users, num_samples and user_data.")
    if len(content["users"]) != len(content["num_samples"]):
        raise DataError(f"{path}: users and num_samples differ in length: fetch the file again.")
    return content
