"""A finished run in one line of JSON, under a seal: a record that was edited, or is not of its spec, is refused.

    spec        the complete spec of the run, as TOML
    spec_hash   names the run: equal specs are the same run
    curve       lists of equal length, one a measured quantity, thinned
    seal        a digest of all the rest. It shows an edit, not a forger: whoever edits can seal again
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
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
    return with_seal(record | {"spec_hash": spec_hash(record["spec"])})


def with_seal(values: Values) -> Values:
    """Values as JSON has them, with a seal over all of them."""
    plain = json.loads(jsontext.dumps({name: value for name, value in values.items() if name != "seal"}))
    return dict(plain) | {"seal": _digest(plain)}


def is_whole(values: Values) -> bool:
    """Whether the seal is that of the rest."""
    return bool(values.get("seal") == _digest({name: value for name, value in values.items() if name != "seal"}))


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
        json.dumps(record, ensure_ascii=False, allow_nan=False).encode()  # no NaN, no infinity, no half a character
    except (ValueError, RecursionError):
        raise RecordError(f"{where}: not a whole record. Remove the line, and run it again.") from None
    if not isinstance(record, dict) or not isinstance(record.get("spec"), str):
        raise RecordError(f"{where}: a record without a spec. Run it again with this version of tacit.")
    name = record.get("name", "a run without a name")
    if record.get("spec_hash") != spec_hash(record["spec"]):
        raise RecordError(f"{where}: {name} is not the record of the spec it names. Run {name} again.")
    if not is_whole(record):
        raise RecordError(f"{where}: {name} was changed after it was written. Run {name} again.")
    return record


def ends(curve: Sequence[float | None], value: float | None) -> bool:
    """Whether a curve, kept to six digits, ends with this value; what was not measured is None in both."""
    last = curve[-1]
    if value is None or last is None:
        return value is last
    return abs(value - last) <= 1e-5 * max(abs(value), abs(last))


def _digest(record: Values) -> str:
    return hashlib.sha256(json.dumps(record, sort_keys=True, allow_nan=False).encode()).hexdigest()[:16]
