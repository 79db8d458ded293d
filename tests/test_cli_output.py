"""Tables and progress are for people on a terminal, and plain text for whoever reads a pipe."""

import io
import re
import sys
from argparse import Namespace

import pytest

from tacit.cli.progress import Progress
from tacit.cli.table import table

HEAD, ROWS = ("run", "error", "guarantee"), [("objt", "1.5%", "long " * 60), ("[bold]é", "-", "")]
ROW = {"t": 1, "test_error": 0.25, "objective": 1.0, "consensus_violation": 0.1, "noise_gradient_units": 0.0}
ROW |= {"rho": 1.0, "binding": 0.025}


class Terminal(io.StringIO):
    def isatty(self):
        return True


def on_terminal(monkeypatch):
    """A terminal 60 characters wide, in place of stdout and stderr."""
    shown = Terminal()
    for name, value in {"COLUMNS": "60", "TERM": "xterm"}.items():
        monkeypatch.setenv(name, value)
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, shown)
    return shown


@pytest.mark.parametrize("forced", [False, True])
def test_a_table_in_a_pipe_is_aligned_plain_and_never_folded(forced, monkeypatch):
    if forced:
        monkeypatch.setenv("FORCE_COLOR", "1")  # it asks for colours, and is no terminal
    text = table(HEAD, ROWS, right=("error",))
    assert text == f"run      error  guarantee\nobjt      1.5%  {('long ' * 60).rstrip()}\n[bold]é      -"


def test_a_table_on_a_terminal_fits_it(monkeypatch):
    on_terminal(monkeypatch)
    lines = table(HEAD, ROWS, right=("error",)).splitlines()
    assert "\033[1m" in lines[0]  # bold
    assert len(lines) > 5
    assert max(map(len, lines[1:])) <= 60


def test_progress_in_a_pipe_is_a_line_now_and_one_at_the_end(capsys):
    with Progress(4, Namespace(quiet=0, verbose=0)) as progress:
        for done in range(1, 5):
            progress(done, ROW)
    out, err = capsys.readouterr()
    first, last = err.splitlines()
    assert out == ""
    assert first == f"[{'#' * 7}{'.' * 21}] round 1/4  0:00  test error 25.00%"
    assert last == f"[{'#' * 28}] round 4/4  0:00  test error 25.00%"


def test_progress_on_a_terminal_is_a_bar_with_rounds_time_and_error(monkeypatch):
    terminal = on_terminal(monkeypatch)
    with Progress(4, Namespace(quiet=0, verbose=0)) as progress:
        progress(1, ROW)
        progress(4, None)
    *_, last, end = terminal.getvalue().split("\n")
    for part in ("━" * 10, "round 4/4", "0:00:00", "test error 25.00%"):
        assert part in last
    assert len(re.sub(r"\033\[[0-9;?]*[a-zA-Z]|.*\r", "", last)) <= 60
    assert end == "\033[?25h"  # the cursor is back, on a line of its own


def test_quiet_says_nothing_and_verbose_every_recorded_round(monkeypatch):
    terminal = on_terminal(monkeypatch)
    Progress(4, Namespace(quiet=1, verbose=1))(1, ROW)
    assert terminal.getvalue() == ""
    with Progress(4, Namespace(quiet=0, verbose=1)) as progress:
        progress(1, ROW)
        progress(2, None)
    assert max(map(len, terminal.getvalue().splitlines())) <= 60
    assert " ".join(terminal.getvalue().split()) == (
        "t= 1 test error 25.00% objective 1.00000 consensus 0.1 noise 0 rho 1 binding 2.50%"
    )
