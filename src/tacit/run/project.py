"""A project: a folder with a drafted schema, the settings of a run, and a README that leads from there to a model.

README.md and run.toml are written to be shared: they hold names of columns and of files, and nothing that was read
from the records. schema.toml holds such numbers and lists until its owner has put public knowledge in their place.
"""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

from tacit import toml
from tacit.data.look import Look
from tacit.errors import DataError, RunDirectoryError, SpecError
from tacit.jsontext import Values
from tacit.run.spec import Spec
from tacit.types import is_unicode

EPSILON, DP_DELTA = 1.0, 1e-6  # what the sound preset spends

_RUN = """\
# The settings of tacit train --config run.toml. Every key that can stand here: tacit train --keys
# Paths are read from the folder in which tacit is started: start it in this one.

"""

_IGNORE = """\
# private: all files but these. Records, ledgers and runs may have any name, so what may be shared is listed instead
*
!/.gitignore
!/README.md
!/run.toml
# take the sign off the next line when nothing in schema.toml is read from the records
#!/schema.toml
"""

_README = """\
# {name}

A private model that predicts {label} from {source}. Start every command in this folder.

## 1. Confirm what was read from the data

`tacit new` looked at the records, which are private, and wrote ranges and lists that it found into `schema.toml`. The
largest value of a column is somebody's, and a rare category may be one person. So these lines are yours to confirm:

| column | lines of schema.toml | put there |
|---|---|---|
{rows}

Put in what is known without these records: a code book, a form, what is physically possible. A range may be wider than
the records are, and values outside it are moved to its ends. If a line is public knowledge as it stands, leave it. Then
delete the line `read_from_data = true` of the column. Training refuses while one is left.

Look at the kinds too, which are guesses: numbers that are codes (1 a woman, 2 a man) are `kind = "categorical"` with
`values = [1, 2]` in place of `lo` and `hi`.
{left_out}
## 2. Check, train, predict

```
{check}
{train}
{predict}
```

`check` counts what the schema changes in your records, for your eyes. `train` writes the model, its guarantee and
`report.html` into `model/`, and each agent's account of what it gave away into `ledgers/`. `predict` prints {prints}.

A second run on the same records spends as much again, and `ledgers/` keeps the sum (give it another `--out`).

To try settings before that, `{simulate}` simulates the noise: fast, repeatable, and not for
release. What you choose by looking at its results is covered by no guarantee.

## Files

- `schema.toml`: what is publicly known of each column (docs/schema.md of tacit). Git ignores it until you take
  the `#` off its line in `.gitignore`: do so when nothing in it is read from the data.
- `run.toml`: the budget, epsilon = {epsilon:g} and delta = {delta:g} for the whole run, and the other settings.
- `.gitignore`: keeps everything but itself, this file and `run.toml` out of a repository: records, ledgers and runs.
"""

_PUT = {
    ("lo", "hi"): "`lo` and `hi`: the smallest and the largest there can be",
    ("values",): "`values`: all values there can be",
    ("classes",): "`classes`: all classes there can be",
}


def project_files(found: Look, folder: Path, name: str) -> dict[str, str]:
    """Return the files of a project in a folder, by name, from what was found in a table."""
    source = _from(folder, found.path)
    for text in (source, name):
        if not is_unicode(text):
            raise SpecError(f"{text!r} is not UTF-8, as run.toml must be: rename it.")
    if not {*found.draft.kinds.values()} - {"label", "target", "agent", "ignore"}:
        why = "; ".join(f"{column!r}, {reason}" for column, reason in list(found.draft.ignored.items())[:3])
        raise DataError(f"{found.path} has no column to predict from ({why}): make numbers, dates or lists of them.")
    agent = next((column for column, kind in found.draft.kinds.items() if kind == "agent"), None)
    return {
        "schema.toml": found.draft.text,
        "run.toml": _run(source, agent, found.path.is_dir()),
        "README.md": _readme(found, source, name),
        ".gitignore": _IGNORE,
    }


def write_project(folder: Path, files: dict[str, str]) -> None:
    """Write the files of a project; refuse, and leave nothing behind, where one of them exists."""
    made: list[Path] = [one for one in (folder, *folder.parents) if not one.exists()]  # from the inside out
    for name in files:
        if os.path.lexists(folder / name):
            raise RunDirectoryError(f"{folder / name} exists: name another folder, or remove it first.")
    written: list[Path] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            with (folder / name).open("x", encoding="utf-8", newline="\n") as file:
                written.append(folder / name)
                file.write(text)
    except OSError as error:
        for path in written:
            path.unlink(missing_ok=True)
        for path in made:
            if path.is_dir():
                path.rmdir()
        raise RunDirectoryError(f"cannot write {folder}: {error.strerror}. Name another folder.") from None


def _run(source: str, agent: str | None, directory: bool) -> str:
    """The settings: they are checked here, so that a project never starts with a bad key."""
    values: Values = {"data.source": source, "data.schema": "schema.toml"}
    values |= {} if agent or directory else {"data.agents": 1}
    values |= {"privacy.epsilon": EPSILON, "privacy.dp_delta": DP_DELTA}
    Spec().with_values(values).checked()
    about = {
        "source": "the records; they stay where they are",
        "schema": "what is publicly known of each column",
        "agents": "no column names an agent, so one owner holds all records; more deal them out, for a simulation",
        "epsilon": "the budget of the whole run: smaller is more private, and noisier",
        "dp_delta": "keep it well below one over the number of records",
    }
    lines = toml.text(values).splitlines()
    keys = [line.partition(" = ")[0] for line in lines]
    return _RUN + "".join(
        f"{line}  # {about[key]}\n" if key in about else f"{line}\n" for key, line in zip(keys, lines, strict=True)
    )


def _readme(found: Look, source: str, name: str) -> str:
    """The README: nothing of it is read from the records, but for the kinds that columns were taken for."""
    draft = found.draft
    label = next(column for column, kind in draft.kinds.items() if kind in ("label", "target"))
    number = draft.kinds[label] == "target"
    rows = [
        f"| {_code(column)} | {own.first}{f' and {own.last}' if own.last > own.first else ''} | "
        f"{_PUT[own.keys]} |"
        for column, own in draft.marked.items()
    ]
    out = [_code(column) for column, kind in draft.kinds.items() if kind == "ignore"]
    left_out = f"\nNot used (`kind = \"ignore\"`; declare a column to use it): {', '.join(out)}.\n" if out else ""
    quoted = shlex.quote(source).replace("\n", " ")
    kind = "".join(found.path.suffixes[-2:]) if found.path.suffix == ".gz" else found.path.suffix
    return _README.format(
        name=_plain(name), label=_code(label), source=_code(source), rows="\n".join(rows), left_out=left_out,
        check=f"tacit data check {quoted} --schema schema.toml",
        train="tacit train --config run.toml --ledger ledgers --out model",
        predict=f"tacit predict --model model --data new{kind or '.csv'}",
        simulate="tacit train --config run.toml --seed 0", epsilon=EPSILON, delta=DP_DELTA,
        prints="a number a record" if number else "a class a record\n(with `--proba` the probability of each)",
    )  # fmt: skip


def _from(folder: Path, path: Path) -> str:
    """The path as it is seen from a folder."""
    try:
        return Path(os.path.relpath(path, folder)).as_posix()
    except ValueError:  # another drive of Windows
        return path.resolve().as_posix()


def _code(name: str) -> str:
    """A name in Markdown, whatever signs it holds: it comes from a file that somebody else may have written."""
    escaped = json.dumps(name, ensure_ascii=False)[1:-1].replace("`", "'").replace("|", "\\|").replace("\x7f", "")
    return f"`{escaped}`"


def _plain(name: str) -> str:
    """A name as a heading: letters, digits and a few signs."""
    return "".join(sign if sign.isalnum() or sign in " -_." else "_" for sign in name) or "project"
