"""Every code block of README.md and docs/ is run in the order of its page; what is not run says why."""

import os
import subprocess
import sys

import pytest

from tacit.errors import SpecError
from tests.docs_blocks import ELSEWHERE, MARKS, ROOT, RUN, SHOWN, Block, Session, Wrong, blocks, pages, same, transcript

ALL = [block for page in pages() for block in blocks(page)]
PAGES = sorted({block.page for block in ALL if block.language in RUN and not block.marks.keys() & ELSEWHERE})
MOST_UNRUN = 25  # of about a hundred; each needs a reason, and a reader who trusts the page
SECONDS = 30  # a page that takes longer on a free machine wants shorter examples


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_blocks_of_a_page_run_in_their_order(page):
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    command = [sys.executable, "-m", "tests.docs_blocks", str(page)]
    before = os.times().children_user
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert os.times().children_user - before < SECONDS  # of processor: others may use this machine too


@pytest.mark.parametrize("block", ALL, ids=str)
def test_a_block_says_what_it_is(block):
    assert block.language in RUN + SHOWN, f"{block}: name the language; text for what is neither code nor output"
    assert "not run" not in block.marks or len(block.marks["not run"].split()) >= 4, f"{block}: give the reason"
    assert "output" not in block.marks or block.language == "text"
    if "run by" in block.marks:
        assert block.page.name in (ROOT / block.marks["run by"]).read_text()


def test_few_blocks_are_not_run():
    runnable = [block for block in ALL if block.language in RUN]
    assert len([block for block in runnable if "not run" in block.marks]) <= MOST_UNRUN < len(runnable) / 2


def test_no_mark_is_misspelt_or_lost():
    """A mark that the reader of blocks did not take would be a comment that nobody obeys."""
    for page in pages():
        taken = sum(len(block.marks) for block in blocks(page))
        text = page.read_text(encoding="utf-8")
        assert sum(text.count(f"<!-- {mark}") for mark in MARKS) == taken, page
        assert "\n ```" not in text  # an indented fence would not be found


def block(language, code, **marks):
    return Block(ROOT / "README.md", 1, language, code, marks)


@pytest.mark.parametrize(
    "wrong",
    [
        block("python", "1 / 0\n"),
        block("sh", "false\ntrue\n"),
        block("sh", "false | true\n"),
        block("sh", "true\n", exits="2"),
        block("sh", "tacit train --data nowhere.csv\n"),
        block("console", "$ echo two\none\n"),
        block("text", "something\n", output=""),
    ],
    ids=["python", "command", "pipe", "exit code", "tacit", "console", "output"],
)
def test_a_block_that_does_not_do_what_the_page_says_is_found(wrong, tmp_path):
    with pytest.raises(Wrong, match=r"README\.md:1"):
        Session(tmp_path).run(wrong)


def test_a_schema_with_a_mistake_is_found(tmp_path):
    with pytest.raises(SpecError, match="low"):
        Session(tmp_path).run(block("toml", '[columns.age]\nkind = "numeric"\nlow = 0\nhi = 1\n'))


def test_output_is_compared_line_by_line_and_dots_stand_for_anything():
    assert same("a\n...\nd\n", "a\nb\nc\nd\n")
    assert same("error  1...% last", "error  18.92% last")
    assert not same("a\nb\n", "a\nb\nc\n")
    assert not same("a.c\n", "abc\n")


def test_a_console_block_has_commands_and_what_they_print():
    assert transcript("$ one \\\n  --flag\nout\n$ two\n") == [("one \\\n  --flag", "out\n"), ("two", "")]
