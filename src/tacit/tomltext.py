"""TOML in, or one line that says what is wrong with it."""

from __future__ import annotations

import sys
from pathlib import Path

from tacit.errors import SpecError
from tacit.jsontext import Values

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def text_of(path: str | Path) -> str:
    """What a file says, as UTF-8."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise SpecError(f"cannot read {path}: {error.strerror}. Check the path.") from None
    except UnicodeDecodeError as error:
        raise SpecError(f"{path} is not TOML: {error}.") from None


def loads(text: str, source: str) -> Values:
    """The tables of a TOML text; `source` names it in errors."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # not TOML, or numbers and nests beyond Python
        raise SpecError(f"{source} is not TOML: {error}.") from None
