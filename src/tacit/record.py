"""A finished run in one line of JSON, under a seal: a record that was edited, or is not of its spec, is refused.

    spec        the complete spec of the run, as TOML
    spec_hash   names the run: equal specs are the same run
    curve       lists of equal length, one a measured quantity, thinned
    seal        a digest of all the rest. It shows an edit, not a forger: whoever edits can seal again
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tacit import jsontext
from tacit.errors import RecordError

Values = dict[str, Any]


def spec_hash(spec: str) -> str:
    """What names a run."""
    return hashlib.sha256(spec.encode()).hexdigest()[:16]


def sealed(record: Values) -> Values:
    """The record with its spec_hash and its seal."""
    named = {name: value for name, value in record.items() if name != "seal"}
    named = dict(json.loads(jsontext.dumps(named | {"spec_hash": spec_hash(record["spec"])})))
    return named | {"seal": _digest(named)}


def lines(records: Iterable[Values]) -> str:
    """Records as JSON lines."""
    return "".join(jsontext.dumps(record) + "\n" for record in records)


def read(path: Path) -> list[Values]:
    """The records of a file, each of them whole."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise RecordError(f"cannot read {path}: {error.strerror}. Check the path.") from None
    except UnicodeDecodeError as error:
        raise RecordError(f"{path} holds no records: {error}.") from None
    return [checked(line, f"{path}, line {n}") for n, line in enumerate(text.splitlines(), 1) if line.strip()]


def checked(line: str, where: str) -> Values:
    """A record whose seal holds; else an error that names the run to repeat."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        raise RecordError(f"{where}: not a whole record. Remove the line, and run it again.") from None
    if not isinstance(record, dict) or not isinstance(record.get("spec"), str):
        raise RecordError(f"{where}: a record without a spec. Run it again with this version of tacit.")
    name = record.get("name", "a run without a name")
    rest = {key: value for key, value in record.items() if key != "seal"}
    if record.get("spec_hash") != spec_hash(record["spec"]):
        raise RecordError(f"{where}: {name} is not the record of the spec it names. Run {name} again.")
    if record.get("seal") != _digest(rest):
        raise RecordError(f"{where}: {name} was changed after it was written. Run {name} again.")
    return record


def _digest(record: Values) -> str:
    return hashlib.sha256(json.dumps(record, sort_keys=True, allow_nan=False).encode()).hexdigest()[:16]
