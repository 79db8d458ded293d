"""A first schema.toml for a file. It looks at the records, so whatever it writes is marked until it is replaced."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field

from tacit.data.classes import MOST_NUMBERS, NUMBERS_SHARE
from tacit.data.column_facts import ColumnFacts
from tacit.data.file_layout import FileLayout
from tacit.data.table import MARKS, RawTable, missing_column
from tacit.errors import DataError, SpecError

RARE = 10  # records of a class, below which its owner is told

# a text column with more values than this is taken for a name or a number of the record
MOST_VALUES = 50

# the marks are written whatever the file holds, so that the list says nothing about the file
_HEAD = """\
# Drafted from {source} by: tacit data schema init
#
# READ FROM THE DATA: every number and list that is marked so. They are not private: the largest value of a column
# is somebody's, and a rare category may be one person. Replace each by what is known without these data (a code
# book, a form, what is physically possible), check the guessed kinds, and delete the lines read_from_data = true.
# Training refuses until they are gone.

missing_marks = {marks}  # count as missing, beside empty cells; not read from the data
"""

_MARK = "  # READ FROM THE DATA: replace by "
_FLAG = "read_from_data = true  # delete this line when the above is public knowledge"


_SAME = 'is it known before the label is? kind = "ignore" leaves it out'

_FILE = """
[file]  # how text files are written: they are read by this alone, so it must hold for the files of every agent
"""


@dataclass(frozen=True)
class Marked:
    """What was read from the data about a column: the lines of the schema that hold it, and its keys."""

    first: int
    last: int
    keys: tuple[str, ...]


@dataclass(frozen=True)
class Draft:
    """A schema.toml, and what its writer should know: `ignored` and `notes` are about records, for their owner."""

    text: str
    kinds: dict[str, str]  # column -> its kind
    marked: dict[str, Marked]  # the columns whose numbers or lists were read from the data, and where these stand
    ignored: dict[str, str]  # column -> why it was left out
    notes: list[str]

    @property
    def looked(self) -> list[str]:
        """The columns whose numbers or lists were read from the data."""
        return list(self.marked)


@dataclass
class _Column:
    """The lines that declare a column; why it is left out, if it is; what else to say of it."""

    lines: list[str]
    ignored: str = ""
    notes: list[str] = field(default_factory=list)


def draft_schema(
    tables: Sequence[RawTable], source: str, label_column: str | None = None, agent_column: str | None = None,
    layout: FileLayout | None = None,
) -> Draft:  # fmt: skip
    """Draft the schema of tables, which were read by `layout` if they are text.

    Without `label_column`, the label is the column that the format names, else "label". Without `agent_column`, a
    column called "agent" is taken for it if there is one.
    """
    first, *rest = tables
    if label_column is None:
        label_column = first.roles[0] if first.roles else "label"
    if label_column == agent_column:
        raise SpecError(f"the label and the agent column are both {label_column!r}: name two columns.")
    for name in (label_column, agent_column):
        if name is not None and name not in first.columns:
            raise missing_column(first.source, name, list(first.columns), "Say which column it is.")
    for other in rest:
        for odd in sorted(set(other.columns) ^ set(first.columns)):
            raise DataError(f"{odd!r} is a column of only one of {first.source} and {other.source}: make them alike.")
    drafts = {}
    label = ColumnFacts(label_column, [table.columns[label_column] for table in tables])
    for name in first.columns:
        facts = ColumnFacts(name, [table.columns[name] for table in tables])
        if name == label_column:
            drafts[name] = _label(source, facts)
        elif name == (agent_column or "agent"):
            drafts[name] = _Column(['kind = "agent"'])
        else:
            drafts[name] = _feature(facts)
            if not drafts[name].ignored and len(facts.names) <= MOST_VALUES and facts.renames(label):
                drafts[name].notes.append(f"its values go one with one with those of {label_column!r}: {_SAME}")
    head = _HEAD.format(source=_text(source), marks=_list(MARKS)) + ("" if layout is None else _file(layout))
    sections = ["\n".join([f"\n[columns.{_key(name)}]", *draft.lines]) for name, draft in drafts.items()]
    return Draft(
        head + "\n".join(sections) + "\n",
        {name: draft.lines[0].split('"')[1] for name, draft in drafts.items()},
        _marked(drafts, head.count("\n") + 1),
        {name: draft.ignored for name, draft in drafts.items() if draft.ignored},
        [f"{name!r}: {note}" for name, draft in drafts.items() for note in draft.notes],
    )


def _marked(drafts: Mapping[str, _Column], line: int) -> dict[str, Marked]:
    """Say where the lines stand that were read from the data, in a text whose sections begin at a line."""
    found = {}
    for name, draft in drafts.items():
        line += 2  # a blank line and the name of the column
        own = {line + i: text.split(" = ")[0] for i, text in enumerate(draft.lines) if _MARK in text}
        if own:
            found[name] = Marked(min(own), max(own), tuple(own.values()))
        line += len(draft.lines)
    return found


def _file(layout: FileLayout) -> str:
    """Draft the [file] table."""
    keys = {key: value for key, value in asdict(layout).items() if value is not None}
    return _FILE + "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())


def _label(source: str, facts: ColumnFacts) -> _Column:
    """Draft the label column: its classes, or the range of a target where it is a quantity and there are targets."""
    name, classes = facts.name, facts.names
    if len(classes) < 2:
        raise DataError(f"{source}: {name!r} holds {len(classes)} classes and a classifier needs two: is it the label?")
    real = len(facts.numbers) == facts.present and bool((facts.numbers % 1).any())
    many = len(classes) > MOST_NUMBERS and len(facts.numbers) >= NUMBERS_SHARE * facts.present
    if not (real or many):
        lines = _looked_up("label", ("classes", _list(classes), "the list of all classes there can be"))
        return _Column(lines, notes=_doubts(facts))
    looks = f"{len(classes)} different values, nearly all of them numbers: it looks like the target of a regression"
    return _Column(_range("target", facts), notes=[looks])


def _doubts(facts: ColumnFacts) -> list[str]:
    """Say what is odd about the classes of a label, to the owner of the records."""
    found = []
    marks = [name for name in facts.names if name in MARKS]
    if marks:
        found.append(f"{_few(marks)} looks like a missing label: take it out of classes if it is none of them")
    rare = [name for name, times in facts.times.items() if times < RARE and name not in marks]
    if rare:
        found.append(
            f"{len(rare)} of {len(facts.names)} classes have fewer than {RARE} records, such as {_few(rare)}: too few "
            "to learn, and a rare class may be one person. Group them (groups in docs/schema.md), or leave them out"
        )
    return found


def _few(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:3]))


def _feature(facts: ColumnFacts) -> _Column:
    """Choose the draft of another column."""
    if not facts.present:
        return _ignored("every cell is missing")
    if facts.identifies and not (facts.is_iso_date or facts.is_other_date or facts.is_prose):
        return _ignored(f"an identifier? {facts.identifies}")
    if facts.is_numeric:
        return _Column(_range("numeric", facts), notes=_unreadable(facts))
    if facts.is_iso_date or facts.is_other_date:
        return _date(facts)
    if len(facts.texts) <= MOST_VALUES and not facts.identifies:
        return _Column(_looked_up("categorical", ("values", _list(facts.texts), "the list of all values there can be")))
    if facts.is_prose:
        return _Column(['kind = "text"  # words are hashed with a public seed: nothing of them is read from the data'])
    return _ignored(f"many different texts: a name, a place, a code? ({len(facts.texts)} of them)")


def _date(facts: ColumnFacts) -> _Column:
    """Draft a column of dates, if there is a kind for them and one form is sure."""
    form = "" if facts.is_iso_date else facts.date_form
    if not form and not facts.is_iso_date:
        return _ignored("dates, and it is not sure what is the day and what the month")
    lo, hi = facts.days(form)[0], facts.days(form)[-1]
    first, last = ("T00:00", "T23:59") if facts.has_times and not form else ("", "")
    last = last or ("T23:59" if lo == hi else "")  # a range has two ends
    ends = (("lo", lo + first, "first"), ("hi", hi + last, "last"))
    lines = _looked_up("date", *((key, _text(day), f"the {end} day there can be") for key, day, end in ends))
    return _Column([lines[0], f"format = {_text(form)}", *lines[1:]] if form else lines)


def _ignored(why: str) -> _Column:
    return _Column([f'kind = "ignore"  # {re.sub(" [(][0-9].*", "", why)}. Declare it to use it'], ignored=why)


def _unreadable(facts: ColumnFacts) -> list[str]:
    """Say which cells of a numeric column are no numbers."""
    if not facts.unreadable:
        return []
    such = ", ".join(map(repr, facts.odd_texts()))
    share = f"{facts.unreadable} of {facts.present} cells ({100 * facts.unreadable / facts.present:.2g} %)"
    return [f"no number in {share}, such as {such}: read as missing"]


def _range(kind: str, facts: ColumnFacts) -> list[str]:
    """Draft a column of numbers by its ends."""
    lo, hi = float(facts.numbers.min()), float(facts.numbers.max())
    note = " (all values are the same)" if lo == hi else ""
    hi = lo + max(1.0, abs(lo)) if lo == hi else hi
    ends = (("lo", lo, "smallest"), ("hi", hi, "largest"))
    return _looked_up(kind, *((key, _number(v), f"the {e} value there can be{note}") for key, v, e in ends))


def _looked_up(kind: str, *keys: tuple[str, str, str]) -> list[str]:
    """Draft the lines of a column whose keys (name, value, what should replace the value) were read from the data."""
    marked = [f"{key} = {value}{_MARK}{public}" for key, value, public in keys]
    return [f'kind = "{kind}"', *marked, _FLAG]


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _text(name)


def _list(values: Iterable[str]) -> str:
    return "[" + ", ".join(map(_text, values)) + "]"


def _text(value: str) -> str:
    # a TOML text is a JSON text, but for surrogate pairs and DEL
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
