"""What tacit prints fits the terminal: lines are folded at spaces, and no word is broken."""

import argparse
import re
import shlex
import sys

import pytest

from tacit.cli import COMMANDS, _parser, main
from tacit.cli.folding import fold
from tacit.cli.table import table
from tests.test_cli_output import Terminal

WIDTHS = (60, 80)


def words(text):
    """The words of a text; a backslash at the end of a line continues a command."""
    return text.replace(" \\\n", "\n").split()


def assert_fits(text, columns):
    """No line is longer, but for one that is a single word, perhaps with a label, or a single option of a usage."""
    for line in text.splitlines():
        single = re.fullmatch(r"\s*(\S+\s{2,})?(\S+|\[[^][]+\])( \\)?", line)
        assert len(line) <= columns or single, f"{len(line)} columns: {line}"


def parsers():
    """Every command, and every action of a command, with its words."""
    for name in COMMANDS:
        command = _parser([name])._subparsers._group_actions[0].choices[name]
        below = [one for one in command._actions if isinstance(one, argparse._SubParsersAction)]
        yield (name,)
        for action in below[0].choices if below else ():
            yield name, action


@pytest.mark.parametrize("command", [(), *parsers()], ids=" ".join)
def test_every_help_fits_the_terminal_and_breaks_no_word(command, monkeypatch, capsys):
    told = {}
    for columns in (*WIDTHS, 1000):
        monkeypatch.setenv("COLUMNS", str(columns))
        with pytest.raises(SystemExit):
            main([*command, "--help"])
        told[columns] = capsys.readouterr().out
    for columns in WIDTHS:
        assert_fits(told[columns], columns)
        assert words(told[columns]) == words(told[1000])


def test_a_folded_example_is_the_same_command(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "60")
    with pytest.raises(SystemExit):
        main(["train", "--help"])
    shown = re.sub(r" \\\n\s+", " ", capsys.readouterr().out)
    (line,) = (line for line in shown.splitlines() if "--agent-column hospital" in line)
    assert shlex.split(line)[-4:] == ["--classes", "ill,well", "--out", "runs/patients"]


SAYS = {
    "result": "train --data synthetic --rounds 2 --seed 0 --out run -qq",
    "keys": "train --keys",
    "list": "compare --list",
    "plan": "compare --plan --out plan",
    "account": "account --mechanism laplace --epsilon 0.05 --rounds 20000 --l2-ratio 0.0253",
    "info": "info",
}


@pytest.mark.parametrize("command", SAYS.values(), ids=SAYS)
def test_what_a_command_prints_fits_the_terminal_and_breaks_no_word(command, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    told = {}
    for columns in (*WIDTHS, 1000):
        monkeypatch.setenv("COLUMNS", str(columns))
        assert main(command.replace("--out run", f"--out run{columns}").split()) == 0
        told[columns] = capsys.readouterr().out
    for columns in WIDTHS:
        assert_fits(told[columns], columns)
        assert {word for word in words(told[columns]) if word.isalpha()} <= {*words(told[1000])}


GRID = '[data]\nsource = "synthetic"\n[run]\npreset = "sound"\nrounds = 2\nseed = [0, 1]\n'
ROWS = [f"{n},{n % 7},{'abc'[n % 3]},{'ill' if n % 2 else 'well'}" for n in range(40)]
AFTER = (  # one after the other, in one folder
    "data schema init table.csv --label-column outcome --agent-column ward --out s.toml",
    "data check table.csv --schema s.toml",
    "new project --data table.csv --label outcome --agent ward",
    "train --data synthetic --agents 2 --rounds 2 --out exact",
    "ledger show exact/ledgers/0.ledger",
    "ledger verify exact/ledgers/0.ledger --run exact",
    "sweep --config grid.toml --out grid",
    "compare --data synthetic --set data.records=120 --methods objt,fedavg --rounds 5 --seeds 1 --out compared",
    "report compared exact --out page.html",
    "card exact",
)


@pytest.mark.filterwarnings("ignore::tacit.errors.TacitWarning")
@pytest.mark.parametrize("columns", WIDTHS)
def test_what_a_day_of_work_prints_fits_the_terminal(columns, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "grid.toml").write_text(GRID)
    (tmp_path / "table.csv").write_text("\n".join(["age,dose,ward,outcome", *ROWS, ""]))
    terminal = Terminal()
    for name, value in {"COLUMNS": str(columns), "TERM": "dumb", "NO_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setattr(sys, "stderr", terminal)
    for command in AFTER:
        main([*command.split()])
    assert_fits(re.sub(r"\033\[[0-9;?]*[a-zA-Z]|.*\r", "", terminal.getvalue()), columns)


def test_a_finding_of_an_audit_fits_the_terminal(monkeypatch, capsys):
    from tacit.cli.table import FindingTable

    monkeypatch.setenv("COLUMNS", "80")
    cells = "mechanism", "objt, gaussian, clip, zero out, features", "(3, 1e-06)", "2.220 mu", "x 0.98", "consistent"
    FindingTable(silent=False)._line(*cells)
    shown = capsys.readouterr().out
    assert_fits(shown, 80)
    assert shown.split() == " ".join(cells).split()


@pytest.mark.parametrize(("columns", "told"), [(100, "# of data per agent"), (60, "test_records  185")])
def test_facts_about_data_are_a_table_or_a_list_as_the_terminal_is_wide(columns, told, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", str(columns))
    assert main(["data", "describe", "heart"]) == 0
    shown = capsys.readouterr().out
    assert_fits(shown, columns)
    assert told in shown


@pytest.mark.parametrize("columns", [12, 30, 60, 200])
def test_a_table_breaks_no_word_and_never_cuts_its_first_column(columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    rows = [("a-method-of-30-letters-in-a-word", "1.25%", "some words that explain it"), ("objt", "-", "")]
    shown = table(("method", "error", "guarantee of the run"), rows, right=("error",))
    assert_fits(shown, columns)
    assert {*words(" ".join(map(" ".join, rows)))} <= {*words(shown)}


def test_an_error_fits_the_terminal_and_is_one_line_in_a_log(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "60")
    arguments = ["train", "--data", "a/path/that/does/not/exist.csv"]
    assert main(arguments) == 2
    assert capsys.readouterr().err.count("\n") == 1
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    assert main(arguments) == 2
    assert_fits(terminal.getvalue(), 60)
    assert terminal.getvalue().count("\n") == 2


def test_a_pipe_is_not_folded(monkeypatch, capsys, tmp_path):
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.chdir(tmp_path)
    assert not sys.stdout.isatty()
    assert main(SAYS["result"].split()) == 0
    (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("guarantee"))
    assert len(line) > 120


@pytest.mark.parametrize(("line", "folded"), [
    ("name  some words here", ["name  some", "      words", "      here"]),
    ("  words without a column", ["  words", "      without", "      a", "      column"]),
    ("a-long-first-column  and words", ["a-long-first-column", "    and", "    words"]),
    ("/a/path/that/is/longer/than/the/terminal", ["/a/path/that/is/longer/than/the/terminal"]),
    ("well-known hyphen-words", ["well-known", "    hyphen-words"]),
    ("  tacit train --data x", ["  tacit \\", "      train \\", "      --data \\", "      x"]),
    ("", [""]),
])  # fmt: skip
def test_a_line_is_continued_under_its_last_column(line, folded):
    assert fold(line, 12).split("\n") == folded
