"""What can go wrong, as a tree.

    TacitError
    ├── InputError               the caller can fix it; the command line exits with 2
    │   ├── DataError            records, labels or files that cannot be used
    │   ├── SpecError            an unknown key, a bad value, a number out of range
    │   ├── IncompatibleError    two choices that do not go together
    │   ├── RunDirectoryError    an output directory that cannot be used or resumed
    │   ├── LedgerMissing        a ledger or its witness is not where it should be
    │   ├── DataRenamed          a ledger knows the records of its agent by another name
    │   ├── RecordError          a record of a run that is missing, edited, or not of its spec
    │   ├── Implausible          no honest agent sends this answer
    │   ├── Rejected             what an estimator was given cannot be used; a ValueError too, as scikit-learn expects
    │   └── MissingDependency    an optional package that the request needs; an ImportError too
    ├── Refused                  an agent does not answer; the server is told `public` and no more
    │   ├── Unfit                a message is not of the form that was agreed
    │   ├── BudgetExhausted      the next release would pass the limit of the agent
    │   ├── QuestionChanged      the round was answered before, to another question
    │   ├── TermsChanged         the run is asked for more, or for other things, than was agreed when it began
    │   └── LedgerCorrupt        the record of earlier releases cannot be trusted
    ├── Diverged                 a model is no longer finite
    ├── Suspended                a federation cannot go on for now; what was done is saved, and the run can be resumed
    └── Interrupted              the user stopped the run; what was done is saved

    TacitWarning
    ├── NotPrivateWarning        the result carries no guarantee
    ├── LargeDeltaWarning        delta is not below 1/I: it allows that whole records are published
    ├── UnboundedWarning         no bounds of the features are declared: the guarantee holds, the model could be better
    ├── RepeatedFitWarning       several fits on the same records, as in a search: what they cost together
    ├── OwnerWarning             what is wrong with private records, for their owner's eyes
    ├── RefusalWarning           why an agent does not answer, for its owner's eyes
    ├── SummableRadiusWarning    the trust radii add up to a finite distance: training freezes
    └── StabilityWarning         rho is below the bound under which linearised steps diverge

Every message says what is wrong, why, and what to do.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from numbers import Number


class TacitError(Exception):
    """The root of every error tacit raises on purpose."""


class InputError(TacitError):
    """Something the caller gave cannot be used."""


class DataError(InputError):
    """Records, labels or files that cannot be used."""


class SpecError(InputError):
    """An unknown key, a bad value, or a number out of range."""


class IncompatibleError(InputError):
    """Two choices that do not go together."""


class RunDirectoryError(InputError):
    """An output directory that cannot be used or resumed."""


class LedgerMissing(InputError):
    """A ledger or its witness is not where it should be: without it, nothing shows what was released before."""


class DataRenamed(InputError):
    """A ledger knows the records of its agent by another name: under a new one, they would have a second budget."""


class RecordError(InputError):
    """A record of a run that is missing, edited, or not of its spec."""


class Rejected(InputError, ValueError):
    """What an estimator was given cannot be used; scikit-learn asks for a ValueError."""


class Implausible(InputError):
    """No honest agent sends this answer."""


class MissingDependency(InputError, ImportError):
    """An optional package that the request needs is not installed; whoever imports asks for an ImportError."""


class Refused(TacitError):
    """An agent does not answer. The message is for its owner; `public` is all that may leave."""

    public = "this agent does not answer."


class Unfit(Refused):
    """A message is not of the form that was agreed."""


class BudgetExhausted(Refused):
    """The next release would pass the limit of the agent."""


class QuestionChanged(Refused):
    """The round was answered before, to another question."""


class TermsChanged(Refused):
    """The run is asked for more, or for other things, than was agreed when it began."""


class LedgerCorrupt(Refused):
    """The record of earlier releases cannot be trusted."""


class Diverged(TacitError):
    """A model is no longer finite; `run` says which of a batch."""

    def __init__(self, message: str, run: object = None) -> None:
        super().__init__(message)
        self.run = run


class Suspended(TacitError):
    """A federation cannot go on for now: agents are missing, or do not agree. What was done is saved."""


class Interrupted(TacitError):
    """The user stopped the run; what was done is saved."""


class TacitWarning(UserWarning):
    """The root of every warning tacit gives."""


class NotPrivateWarning(TacitWarning):
    """The result carries no guarantee: no noise, or something was read from the private data."""


class LargeDeltaWarning(TacitWarning):
    """delta is not below 1/I, so the guarantee allows that whole records are published."""


class UnboundedWarning(TacitWarning):
    """No bounds of the features are declared: the guarantee holds, and the model could be better."""


class RepeatedFitWarning(TacitWarning):
    """Several fits on the same records, as in a search over parameters: their costs add up."""


class OwnerWarning(TacitWarning):
    """What is wrong with private records: it stays with their owner."""


class RefusalWarning(TacitWarning):
    """Why an agent does not answer: it stays on the agent's side."""


class SummableRadiusWarning(TacitWarning):
    """The trust radii add up to a finite distance, so training freezes."""


class StabilityWarning(TacitWarning):
    """rho is below the bound under which linearised steps may diverge."""


EXTRAS = "docs/quick-start.md#extras"  # where a reader finds how to install them


def install_extra(extra: str) -> str:
    """Return what to do if a package of an extra is not installed.

    No command: how to install depends on whether tacit came from a checkout or from a wheel file.
    """
    return f"install tacit with the extra '{extra}' ({EXTRAS})"


def missing_extra(problem: str, extra: str) -> MissingDependency:
    """Return the error for a package that is not installed, with the extra that brings it."""
    return MissingDependency(f"{problem}: {install_extra(extra)}.")


MOST_TEXT = 200  # characters of a text in an error


def is_document(text: str) -> bool:
    """Tell whether a text may hold records: it has several lines, or begins as JSON and XML do."""
    return len(text.splitlines()) > 1 or text.lstrip()[:1] in ("{", "[", "<")


def printable(value: object) -> str:
    """Return what an error may print of an argument: a number or a line of text, and of anything else only its type.

    A container, a frame or a document given by mistake may hold records.
    """
    if isinstance(value, str) and (is_document(value) or len(value) > MOST_TEXT):
        lines = len(value.splitlines())
        return f"a text of {lines} lines" if lines > 1 else f"a text of {len(value)} characters"
    if isinstance(value, int) and value.bit_length() > 64:  # Python may refuse to print it
        return "a number that is too large"
    if value is None or isinstance(value, str | Number):
        return repr(value)
    if isinstance(value, type):
        return f"the type {value.__name__}"
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' or name.startswith('nd') else 'a'} {name}"


MOST_LISTED = 40  # names in an error: more are a wall, and the nearest one is what helps


def nearest(name: str, valid: Iterable[str]) -> str | None:
    """The name that was probably meant: case does not count, and neither does a section that was left out."""
    folded = {one.casefold(): one for one in valid}
    last = {one.rpartition(".")[2]: one for one in folded}
    word = name.casefold()
    near = difflib.get_close_matches(word, folded, n=1) or [
        last[one] for one in difflib.get_close_matches(word, last, n=1)
    ]
    return folded[near[0]] if near else None


def unknown(kind: str, name: str, valid: Iterable[str]) -> SpecError:
    """The error for a name that does not exist, with the nearest that does."""
    names = sorted(valid)
    near = nearest(name, names)
    more = f" and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else ""
    hint = f"did you mean {near!r}?" if near else f"choose from {', '.join(names[:MOST_LISTED])}{more}."
    return SpecError(f"unknown {kind} {printable(name)}: {hint}")
