"""TOML <-> dotted keys. A text that is no TOML gives one line that says what is wrong with it."""

from __future__ import annotations

import json
import sys
from datetime import date, time
from pathlib import Path
from typing import Any

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


def text(values: Values) -> str:
    """Dotted keys, those of a section together, as TOML; None is left out."""
    lines: list[str] = []
    section = ""
    for key, value in values.items():
        head, _, name = key.partition(".")
        if head != section:
            lines += ["", f"[{head}]"] if lines else [f"[{head}]"]
            section = head
        if value is not None:
            lines.append(f"{name} = {literal(value)}")
    return "\n".join(lines) + "\n"


def plain(document: str, source: str) -> str:
    """A TOML text as one line for each of its tables: what it declares, in its order, and nothing of its comments."""
    return document_of(loads(document, source))


def document_of(tables: Values) -> str:
    """A TOML text of tables within tables, one line for each of the outermost."""
    return "".join(f"{literal(key)} = {literal(value)}\n" for key, value in tables.items())


def read(path: Path) -> Values:
    """Dotted keys and values of a TOML file."""
    return parsed(text_of(path), str(path))


def parsed(document: str, source: str) -> Values:
    """Dotted keys and values of a TOML text; `source` names it in errors."""
    return flat(loads(document, source), source)


def flat(sections: Values, source: str) -> Values:
    """Dotted keys and values of some sections."""
    values: Values = {}
    for section, content in sections.items():
        if not isinstance(content, dict):
            raise SpecError(f"{source}: {section!r} stands outside a section: write it as [section] then key = value.")
        values |= {f"{section}.{name}": value for name, value in content.items()}
    return values


def literal(value: Any) -> str:
    """Return a value as TOML spells it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):  # JSON's escapes are TOML's, but for one character that only TOML wants escaped
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list):
        return f"[{', '.join(map(literal, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{literal(key)} = {literal(one)}' for key, one in value.items())}}}"
    return value.isoformat() if isinstance(value, date | time) else repr(value)
