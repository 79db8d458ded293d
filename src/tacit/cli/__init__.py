"""The command line: results on stdout, progress and warnings on stderr, exit code 2 for bad input."""

from __future__ import annotations

import argparse
import importlib
import io
import os
import sys
import warnings
from collections.abc import Callable, Sequence

from tacit._version import __version__
from tacit.machine import name_conflict, under_mpi

try:
    from tacit.cli.folding import say
    from tacit.cli.parser import Parser
    from tacit.errors import InputError, Interrupted, MissingDependency, TacitError, TacitWarning
except ImportError:  # `tacit` on PyPI has an errors.py too: installed after ours, it replaces it
    if (conflict := name_conflict()) is None:
        raise
    print(f"tacit: {conflict}", file=sys.stderr)
    raise SystemExit(2) from None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; where mpiexec has started several processes, rank 0 runs it and the others serve."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if under_mpi() and _command(arguments) in OVER_RANKS:
        try:
            from tacit.run.serve import led

            return led(lambda: _run(arguments))
        except MissingDependency as error:
            return _told(error)
    return _run(arguments)


def _run(arguments: Sequence[str]) -> int:
    """Parse, run one command, and turn errors into one line and an exit code."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # as stderr does: a name is no reason to stop
    options = _parser(arguments).parse_args(arguments)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore" if options.quiet > 1 else "always", TacitWarning)
            warnings.showwarning = _each_once()
            code: int = options.run(options)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader of our output has left
        _settle_stdout()
        return 1
    except MemoryError as error:
        say(f"tacit: not enough memory: {error or 'use fewer records, features or classes'}", file=sys.stderr)
        return 1
    except (TacitError, KeyboardInterrupt, OSError) as error:  # OSError: a full disk, a file that may not be read
        return _told(error)


def _told(error: BaseException) -> int:
    """Print an error, and return its exit code."""
    say(f"tacit: {str(error) or 'stopped'}", file=sys.stderr)
    _settle_stdout()
    return 2 if isinstance(error, InputError) else 130 if isinstance(error, Interrupted | KeyboardInterrupt) else 1


COMMANDS = {
    "new": "start a project from a table: schema, settings, README",
    "train": "train a model",
    "sweep": "run a grid of experiments, many at once",
    "compare": "compare methods at one total budget",
    "reproduce": "the paper's tables and figures, number by number",
    "report": "show runs on one page, from their records",
    "card": "write the model card of a run, for a board to read and sign",
    "ui": "show runs on a live page, while they go on",
    "predict": "predict with a trained model",
    "account": "compose rounds into a total, or invert",
    "audit": "attack tacit: measured lower bounds on epsilon beside the claimed ones",
    "federate": "train between institutions, over Flower",
    "ledger": "look at an agent's record of releases",
    "agent": "answer for the records of an institution in a federation",
    "data": "look at data",
    "info": "say which code runs here",
}


OVER_RANKS = ("train", "sweep", "compare")


def _command(arguments: Sequence[str]) -> str | None:
    """The command that is given, if one is."""
    return next((word for word in arguments if not word.startswith("-")), None)


def _parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    """The parser, with the options of the command that is given: the modules of other commands are not imported."""
    parser = Parser(
        prog="tacit",
        description="Train one model over data that many agents keep to themselves, with a stated privacy guarantee.",
        epilog="Start with: tacit train, or with a table of your own: tacit new DIR --data FILE.csv --label COLUMN",
    )
    parser.add_argument("--version", action="version", version=f"tacit {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    given = _command(arguments)
    for name, about in COMMANDS.items():
        command = commands.add_parser(name, help=about)
        if name == given:
            importlib.import_module(f"tacit.cli.{name}").add_options(command)
    return parser


def _settle_stdout() -> None:
    """Write what stdout still holds. If stdout takes nothing more, point it nowhere: Python's exit is then no error."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _each_once() -> Callable[..., None]:
    """A function that shows each warning in one line, and the same warning only once."""
    shown: set[str] = set()

    def show(message: Warning | str, *_: object) -> None:
        if str(message) not in shown:
            shown.add(str(message))
            say(f"tacit: warning: {message}", file=sys.stderr)

    return show
