"""What the documents show: the example of a new method is like every other, and numbers are those of the records."""

import re
import subprocess
import sys
from collections import defaultdict
from dataclasses import fields, replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import tacit
from tacit import record, toml
from tacit.audit import methods as audit
from tacit.data.column_kinds import KINDS
from tacit.data.file_layout import FileLayout
from tacit.data.schema import parse
from tacit.errors import IncompatibleError
from tacit.features.map import FeatureSpec
from tacit.features.registry import FEATURES
from tacit.methods.registry import METHODS
from tacit.paper.archive import Archive
from tacit.paper.artefact import Scale, read_all
from tacit.paper.reproduce import Reproduction
from tacit.privacy.ledger import Ledger
from tacit.run.deployment import price
from tests.conformance import test_methods as suite

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "adding-a-method.md"


@pytest.fixture(scope="module")
def entry():
    (code, line) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert "heavy_ball:ENTRY" in line
    module = ModuleType("heavy_ball")
    sys.modules["heavy_ball"] = module  # dataclasses look their module up
    exec(compile(code, str(PAGE), "exec"), module.__dict__)
    return module.__dict__["ENTRY"]


def test_the_example_passes_the_conformance_suite(entry):
    suite.test_a_run_is_a_function_of_its_seed(entry)
    suite.test_a_promise_keeps_the_budget_whatever_the_choice(entry)
    suite.test_without_noise_nothing_is_promised(entry)
    suite.test_a_promise_reads_nothing_from_the_records(entry)
    suite.test_agents_asked_one_by_one_answer_as_they_do_together(entry, 0)
    suite.test_the_server_needs_no_record(entry, 0)
    suite.test_a_method_says_what_each_of_its_constants_is(entry)


def test_the_example_passes_the_audit(entry):
    assert audit.audit(entry, suite.BUDGET).verdict == "consistent"


SMALL = {"data": "synthetic", "agents": 3, "rounds": 3, "features": "none", "values": {"data.records": 120}}


@pytest.mark.parametrize("trust", ["nobody", "sum"])
def test_agents_of_the_example_are_deployed_with_nothing_added(entry, trust, monkeypatch, tmp_path):
    monkeypatch.setitem(METHODS, entry.name, entry)
    told = tacit.train(algorithm=entry.name, trust=trust, noise="exact", ledger=tmp_path, **SMALL)
    assert "exact noise from the operating system" in told.guarantee
    ledgers = sorted(tmp_path.glob("*.ledger"))
    assert len(ledgers) == SMALL["agents"]
    for file in ledgers:
        with Ledger.open(file, price=price, create=False) as ledger:
            assert sum(ledger.history().spent.popitem()[1].values()) == SMALL["rounds"]


@pytest.mark.parametrize("queries", [False, True])
def test_a_method_with_an_agents_half_is_not_deployed_whatever_its_entry_says_and_the_refusal_names_the_page(
    queries, monkeypatch, tmp_path
):
    monkeypatch.setitem(METHODS, "halves", replace(METHODS["cpsgd"], name="halves", queries=queries))
    assert tacit.train(algorithm="halves", seed=0, **SMALL).test_error is not None
    with pytest.raises(IncompatibleError, match=f"halves cannot be deployed.*docs/{PAGE.name} says"):
        tacit.train(algorithm="halves", noise="exact", out=tmp_path / "run", **SMALL)
    assert not (tmp_path / "run").exists()


def test_every_method_has_a_line_in_the_index():
    index = (PAGE.parent / "methods" / "README.md").read_text(encoding="utf-8")
    for name in METHODS:
        assert f"[{name}]({name}.md)" in index


@pytest.mark.parametrize("board", ["mnist", "mnist-pixels", "femnist", "adult", "heart"])
def test_the_leaderboard_page_says_what_the_records_say(board):
    page = (PAGE.parent / "leaderboard.md").read_text(encoding="utf-8")
    runs = defaultdict(list)
    for one in record.read(PAGE.parents[1] / "records" / f"leaderboard-{board}" / "records.jsonl"):
        if one["role"] == "run":
            runs[one["method"], one["budget_epsilon"]].append(one["error"])
    assert runs
    for (method, _), errors in runs.items():
        assert f"| {method} | {100 * np.mean(errors):.2f}% |" in page


@pytest.mark.parametrize("algorithm", ["objt", "objp", "outp"])
@pytest.mark.parametrize("data", ["mnist", "femnist"])
def test_the_reproduction_page_says_what_the_records_say(data, algorithm):
    page = (PAGE.parent / "reproduction.md").read_text(encoding="utf-8")
    errors, figure = defaultdict(list), read_all()["fig2"]
    archive = Archive(PAGE.parents[1] / "records" / "paper.jsonl")
    for one in Reproduction([figure], Scale.FULL).records(figure, archive):
        if (one["dataset"], one["algorithm"]) == (data, algorithm):
            errors[one["privacy.epsilon"]].append(100 * one["test_error"])
    cells = [f"{np.mean(errors[epsilon]):.2f} ({len(errors[epsilon])})" for epsilon in (0.05, 0.1, 1.0, 3.0, 5.0)]
    assert f"| {data} | {algorithm} | {' | '.join(cells)} |" in page


def test_the_example_trains(entry):
    own, method = suite.small(entry)
    state, _ = suite.trained(method, own)
    assert state.t == method.rounds


def test_the_picture_of_the_house_is_the_contract_that_is_checked():
    contracts = toml.loads((ROOT / "pyproject.toml").read_text(), "pyproject.toml")["tool"]["importlinter"]["contracts"]
    (layers,) = (one["layers"] for one in contracts if one["type"] == "layers")
    text = (ROOT / "CONTRIBUTING.md").read_text()
    picture = text[text.index("```\ncli ") + 4 :].split("```")[0]
    assert [line[:38].strip() for line in picture.splitlines()] == layers


WALK = """
import os, sys, threading
import tacit
from tacit.cli import main
files, done = set(), []
ours = os.path.dirname(tacit.__file__) + "/"  # the folder of a clone may be called tacit too

def entered(frame, event, _):
    code = frame.f_code
    if event != "call" or done or not code.co_flags & 1 or not code.co_filename.startswith(ours):  # 1: not a class body
        return
    above = frame
    while above is not None:  # what runs while a module is imported is no hop
        if above.f_code.co_name == "<module>" and above.f_code.co_filename.startswith(ours):
            return
        above = above.f_back
    done.extend(["report"] if "/tacit/report/" in code.co_filename else [])  # the page comes after result.json
    files.update([] if done else [code.co_filename.rpartition("/tacit/")[2]])

threading.setprofile(entered)
sys.setprofile(entered)
main([*sys.argv[1:], "-q"])
sys.setprofile(None)
print("files", *sorted(files))
"""


@pytest.mark.parametrize(("without", "most"), [("", 66), (" --seed 0", 83)], ids=["simulated", "exact"])
def test_the_walk_through_one_round_names_every_file_that_its_command_enters(without, most, tmp_path):
    page = (ROOT / "docs" / "walk.md").read_text()
    (shown,) = re.findall(r"`tacit (train [^`]* --seed 0)`", page)
    words = shown.replace(without, "").split()
    command = [sys.executable, "-c", WALK, *words, "--out", str(tmp_path / "run")]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1]
    files = told.split()[1:]
    assert len(files) <= most
    assert [file for file in files if f"`{file}`" not in page] == []
    named = set(re.findall(r"`([\w/]+\.py)`", page)) - {"tests/test_docs.py"}
    assert [file for file in named if not (ROOT / "src" / "tacit" / file).exists()] == []


def test_the_page_of_schemas_lists_every_kind_and_key_and_its_example_is_that_of_heart():
    page = (ROOT / "docs" / "schema.md").read_text(encoding="utf-8")
    example = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)[0]
    shipped = (ROOT / "src" / "tacit" / "data" / "_heart" / "schema.toml").read_text(encoding="utf-8")
    assert [column for column in example.split("\n\n") if column not in shipped] == []
    assert {column.kind for column in parse(example).columns.values()} <= set(KINDS)
    for kind, column in KINDS.items():
        (row,) = re.findall(rf'^\| `"{kind}"` .*$', page, re.MULTILINE)
        for key in fields(column):
            assert f"`{key.name}`" in row
    for key in fields(FileLayout):
        assert re.search(rf"^\| `{key.name}` ", page, re.MULTILINE)


def test_the_page_of_features_lists_every_map_and_key_and_its_example_is_a_schema():
    page = (ROOT / "docs" / "features.md").read_text(encoding="utf-8")
    for name in set(FEATURES) - {"own"}:
        assert re.search(rf"^### `{name}`", page, re.MULTILINE)
    for key in fields(FeatureSpec):
        assert re.search(rf"^\| `{key.name}` ", page, re.MULTILINE)
    (example,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    assert parse(example).label == "outcome"
    for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        compile(code, "features.md", "exec")
