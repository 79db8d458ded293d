"""A misspelt command, flag, key, column or method: one line on stderr, the nearest that exists, exit code 2."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from tacit.cli import COMMANDS, main
from tacit.cli.parser import Parser
from tacit.errors import MOST_LISTED, nearest, unknown


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def code_of(arguments: list[str]) -> object:
    """The exit code of a command, however it ends."""
    try:
        return main(arguments)
    except SystemExit as stop:
        return stop.code


@pytest.mark.parametrize(("arguments", "says"), [
    ("trian", "unknown command 'trian': did you mean 'train'?"),
    ("TRAIN", "did you mean 'train'?"),
    ("xyzzy", "choose from account, "),
    ("", "tacit needs COMMAND, one of new, train, "),
    ("data", "data needs ACTION, one of describe, check, schema"),
    ("data scheme init x.csv", "unknown action 'scheme': did you mean 'schema'?"),
    ("data schema innit x.csv", "unknown action 'innit': did you mean 'init'?"),
    ("train --epsilom 3", "train has no option '--epsilom': did you mean --epsilon?"),
    ("train --epsilom=3", "train has no option '--epsilom': did you mean --epsilon?"),
    ("train -epsilon 3", "did you mean --epsilon?"),
    ("train --zzzzzz", "tacit train --help lists the options."),
    ("train --rounds 3 --seeed 1", "did you mean --seed?"),
    ("train patients.csv", "did you mean --data 'patients.csv'?"),
    ("train --data mnist patients.csv", "train does not take 'patients.csv'"),
    ("predict --modle run --data x.csv", "predict has no option '--modle': did you mean --model?"),
    ("predict", "predict needs --model and --data"),
    ("data schema init x.csv --lable y", "did you mean --label-column?"),
    ("new there --data x.csv --lable y", "did you mean --label?"),
    ("--verson", "tacit has no option '--verson': did you mean --version?"),
    ("--json train", "options stand behind the command"),
    ("train --epsilon abc", "--epsilon: invalid float value: 'abc'"),
    ("train --rounds", "--rounds: expected one argument"),
    ("train --e 3", "--e could match --epsilon, --engine"),
    ("train --set clip=1", "did you mean 'privacy.clip'?"),
    ("train --set epsilon=1", "did you mean 'privacy.epsilon'?"),
    ("train --set zzzzzz=1", "tacit train --keys lists all keys."),
    ("train --algorithm ObjT", "unknown method 'ObjT': did you mean 'objt'?"),
    ("train --preset Sound", "did you mean 'sound'?"),
    ("train --data MNIST", "did you mean 'mnist'?"),
    ("train --data synthetic --features orientation", "did you mean 'orientations'?"),
    ("train --data t.csv --label-column outcom --classes 2", "did you mean 'outcome'?"),
])  # fmt: skip
def test_what_is_misspelt_is_answered_in_one_line(
    arguments: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("t.csv").write_text("a,outcome\n1,0\n2,1\n3,0\n")
    assert code_of(arguments.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert says in err
    assert err.startswith("tacit: ")
    assert err.count("\n") == 1
    assert [path.name for path in Path().iterdir()] == ["t.csv"]


@pytest.mark.parametrize("word", ["a\nb", "\x1b[31mred", "--a\nb", "--\x1b[2J=1"])
def test_a_hostile_word_is_shown_as_text(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([word], ["train", word], ["data", word], ["train", "--seed", word]):
        assert code_of(arguments) == 2
        err = capsys.readouterr().err
        assert err.count("\n") == 1
        assert "\x1b" not in err


def test_a_value_that_looks_like_a_flag_is_not_taken_for_one(capsys: pytest.CaptureFixture[str]) -> None:
    parser = Parser(prog="tacit try")
    parser.add_argument("--set")
    parser.add_argument("rest", nargs="*")
    assert parser.parse_args(["--set=--a=b"]).set == "--a=b"
    assert parser.parse_args(["--", "--unknown"]).rest == ["--unknown"]
    assert parser.parse_args(["--se", "1"]).set == "1"  # the beginning of a flag is enough
    with pytest.raises(SystemExit):
        parser.parse_args(["--sett", "1"])
    assert "did you mean --set?" in capsys.readouterr().err


def test_every_command_is_parsed_by_one_class() -> None:
    parser = Parser(prog="tacit")
    commands = parser.add_subparsers()
    assert isinstance(commands.add_parser("train"), Parser)
    assert isinstance(parser, argparse.ArgumentParser)
    assert nearest("qqq", COMMANDS) is None


def test_a_long_list_of_names_is_cut() -> None:
    many = [f"name{i:03}" for i in range(MOST_LISTED + 5)]
    assert str(unknown("thing", "qqq", many)).endswith(f"{many[MOST_LISTED - 1]} and 5 more.")
    assert str(unknown("thing", "qqq", many[:3])) == "unknown thing 'qqq': choose from name000, name001, name002."
