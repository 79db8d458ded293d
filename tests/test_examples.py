"""The examples run as they are, and the paper on one page is the paper: the same noise gives tacit's trajectory."""

import ast
import importlib.util
import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest

import tacit
from tacit.privacy import noise
from tests.docs_blocks import ROOT

EXAMPLES = ROOT / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))
SAYS = {  # what a reader is promised to see
    "estimator.py": r"privacy_spent_",
    "own_csv.py": r"guarantee   \(1, 1e-06\)-DP for the whole run",
    "patients.py": r"^age,ward,admitted,hospital,readmitted\n(.*\n){4000}$",
    "paper_in_numpy.py": r"outp +numpy",
    "three_sites.py": r"3 sites, 4 agents(.|\n)*spent \(1, 1e-06\) of \(1, 1e-06\)",
}


@pytest.fixture
def environment():
    return {**os.environ, "PYTHONPATH": str(ROOT / "src"), "MPLBACKEND": "Agg"}


def cells(notebook):
    """The cells of a notebook: kind, and text."""
    return [(cell["cell_type"], "".join(cell["source"])) for cell in json.loads(notebook.read_text())["cells"]]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_script_runs_and_says_what_it_promises(script, environment, tmp_path):
    done = subprocess.run([sys.executable, str(script)], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert re.search(SAYS[script.name], done.stdout), done.stdout
    assert list(tmp_path.iterdir()) == []  # an example leaves nothing behind


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.name)
def test_the_cells_of_a_notebook_run_in_their_order(notebook, environment, tmp_path):
    code = "\n".join(text for kind, text in cells(notebook) if kind == "code")
    environment["TMPDIR"] = str(tmp_path)
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_holds_no_results_and_each_cell_is_plain_python(notebook):
    document = json.loads(notebook.read_text())
    assert (document["nbformat"], len({cell["id"] for cell in document["cells"]})) == (4, len(document["cells"]))
    for cell in document["cells"]:
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)
            ast.parse("".join(cell["source"]))  # no magic: any Python runs it


def test_there_are_examples_of_each_kind_and_the_index_names_them():
    assert len(NOTEBOOKS) == 2
    index = (EXAMPLES / "README.md").read_text()
    assert [path.name for path in [*SCRIPTS, *NOTEBOOKS] if f"[{path.name}]({path.name})" not in index] == []
    assert {path.name for path in SCRIPTS} <= set(SAYS)


@pytest.fixture(scope="module")
def page():
    spec = importlib.util.spec_from_file_location("paper_in_numpy", EXAMPLES / "paper_in_numpy.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def small():
    """Eight pixels in [0, 1], three classes, four agents."""
    rng = np.random.default_rng(1)
    shards = [tacit.Shard(rng.random((40, 8)).astype(np.float32), rng.integers(0, 3, 40)) for _ in range(5)]
    return tacit.Federation(shards[:4], shards[4], 3, bounds=(0.0, 1.0))


def test_the_page_of_numpy_imports_no_algorithm_of_tacit():
    tree = ast.parse((EXAMPLES / "paper_in_numpy.py").read_text())
    imported = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert {alias.name for node in imported for alias in node.names} == {"math", "numpy", "tacit"}
    attributes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    used = {node.attr for node in attributes if isinstance(node.value, ast.Name) and node.value.id == "tacit"}
    assert used == {"load", "preset", "train"}  # the digits, and the column beside
    assert len((EXAMPLES / "paper_in_numpy.py").read_text().splitlines()) <= 125  # one page


@pytest.mark.filterwarnings("ignore::tacit.errors.NotPrivateWarning", "ignore::tacit.errors.SummableRadiusWarning")
@pytest.mark.parametrize("name", ["iadmm-trust", "objt", "objp", "outp"])
@pytest.mark.parametrize("epsilon", [0.5, 5.0])
def test_the_same_noise_gives_the_trajectory_of_tacit(name, epsilon, page, small):
    rounds, laws = 12, {"laplace": noise.laplace, "normal": noise.gaussian}

    def draw(law, agent, t, shape):
        return laws[law]((7, agent), t, 0, shape)

    shards = [(shard.x, shard.y) for shard in small.shards]
    *_, w = page.train(name, shards, small.n_classes, rounds, epsilon, draw)
    values = {"run.rounds": rounds, "run.seed": 7} | ({} if name == "iadmm-trust" else {"privacy.epsilon": epsilon})
    theirs = tacit.train(tacit.preset("paper", name).with_values(values), small).w
    # tacit scales declared noise up for the rounding of float32 sums, by 1e-6 a record and 1e-5 (admm.agent)
    room = 1e-3 if name == "outp" else 2e-5
    assert np.abs(w - theirs).max() <= room * np.abs(theirs).max()
    assert np.abs(theirs).max() > 0.01  # they moved
