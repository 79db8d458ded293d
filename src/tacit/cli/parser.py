"""A parser whose errors are one line: what is wrong, the nearest word that is known, and exit code 2."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from tacit.cli.folding import HelpFormatter, say
from tacit.errors import nearest, unknown


class Parser(argparse.ArgumentParser):
    """The parser of tacit, and of each of its commands and actions: argparse makes them of one class."""

    words: Sequence[str] = ()  # what this parser was given

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"formatter_class": HelpFormatter} | kwargs)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Parse words; refuse a word that is left over here, where the options that it could mean are known."""
        if args is not None:
            self.words = list(args)
        options, left = super().parse_known_args(args, namespace)
        if left:
            self._stop(self._too_much(next(iter(self._strange()), left[0])))
        return options, left

    def error(self, message: str) -> NoReturn:
        """Print one line and exit with 2. A misspelt flag goes first: it may be why something else is missing."""
        for word in self._strange():
            self._stop(self._misspelt(word))
        if message.startswith("the following arguments are required: "):
            self._stop(self._too_little(message.split(": ", 1)[1]))
        message = message.removeprefix("argument ")
        self._stop(message if message[-1:] in ".?" else f"{message}. {self.prog} --help says more.")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse a name that is no choice: argparse would list the choices without the nearest one."""
        choices = list(action.choices or ())
        if action.choices is not None and value not in choices:
            is_flag = bool(action.option_strings)
            kind = f"value of {action.option_strings[0]}" if is_flag else str(action.metavar or action.dest).lower()
            error = unknown(kind, str(value), map(str, choices))
            raise argparse.ArgumentError(None, str(error))

    def _strange(self) -> Iterable[str]:
        """Return the long flags among the words that this parser and the commands below it do not know."""
        for word in self.words:
            if word == "--" or word in self._below():  # the flags behind a command are its own
                return
            flag = word.partition("=")[0]
            # a word with a space is a value to argparse; the beginning of a flag is an abbreviation
            if word.startswith("--") and " " not in flag and not any(own.startswith(flag) for own in self._flags()):
                yield flag

    @property
    def _name(self) -> str:
        """The name of the command in a line that begins with tacit."""
        return self.prog.removeprefix("tacit ")

    def _below(self) -> list[str]:
        """Return the names of the commands or actions below this parser."""
        return [name for one in self._actions if isinstance(one, argparse._SubParsersAction) for name in one.choices]

    def _flags(self) -> list[str]:
        return [flag for flag in self._option_string_actions if flag.startswith("--")]

    def _misspelt(self, flag: str) -> str:
        names = {own[2:]: own for own in self._flags()}
        names = {name.partition("-")[0]: own for name, own in names.items()} | names  # --label is --label-column
        near = nearest(flag.lstrip("-"), names)
        hint = f"did you mean {names[near]}?" if near else f"{self.prog} --help lists the options."
        if not near and flag != self.words[-1] and self._below():
            hint = "options stand behind the command that they are for."
        return f"{self._name} has no option {flag!r}: {hint}"

    def _too_much(self, word: str) -> str:
        """Say that a word is left over, such as a file that was given without its flag."""
        if word.startswith("-"):
            return self._misspelt(word.partition("=")[0])
        hint = f"{self.prog} --help says what it takes."
        if "--data" in self._flags() and "--data" not in self.words:
            hint = f"did you mean --data {word!r}?"
        return f"{self._name} does not take {word!r}: {hint}"

    def _too_little(self, missing: str) -> str:
        names = self._below()
        if names:
            return f"{self._name} needs {missing}, one of {', '.join(names)}: {self.prog} --help says what each does."
        return f"{self._name} needs {missing.replace(', ', ' and ')}: {self.prog} --help says more."

    def _stop(self, line: str) -> NoReturn:
        say(f"tacit: {line}", file=sys.stderr)
        self.exit(2)
