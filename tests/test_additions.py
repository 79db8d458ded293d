"""A new member of a family is one new file and one line: each addition is made in a copy of src/, counted, and trained.

An addition to another family is one more Addition below. Someone outside the repository adds a member in Python.
"""

import difflib
import json
import os
import shutil
import subprocess
import sys
import warnings
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

import tacit
from tacit.engine.plain import PlainEngine
from tacit.engine.registry import ENGINES, Builder
from tacit.errors import IncompatibleError, SpecError, TacitWarning
from tacit.problem.domain import DOMAINS
from tacit.problem.loss import LOSSES, one_hot
from tacit.problem.regularizer import REGULARIZERS
from tacit.registry import Registry
from tacit.run.build import setup
from tacit.run.spec import keys
from tacit.types import Norm
from tests.conftest import federation

SRC = Path(tacit.__file__).parent.parent

SMALL = {"data.source": "synthetic", "data.records": 120, "data.agents": 3, "run.rounds": 4}


@dataclass(frozen=True)
class Addition:
    """What a contributor writes: a file, a line in a registry (below `after`), and a spec that uses both.

    `told` are words that the engine's path must hold, for an engine; `claim` is true of the trained model w.
    """

    file: str
    text: str
    registry: str
    after: str
    line: str
    values: dict[str, object]
    told: str = ""
    claim: str = "numpy.abs(w).max() > 0"
    engines: tuple[str, str] = ("fast", "plain")
    method: tuple[str, str] = ("paper", "objt")  # the preset, and the name of the method
    files: dict[str, str] = field(default_factory=dict)  # what lies in the working directory


DISTANCE = '''"""A loss of the distance to one-hot labels."""

import math
from dataclasses import dataclass

import numpy as np

from tacit.problem.loss import one_hot
from tacit.types import Norm


@dataclass(frozen=True)
class Distance:
    """l = h(|s - e_y|), h(d) = d^2 / 2 up to 1 and d - 1/2 beyond; a = (s - e_y) / max(1, |s - e_y|)."""

    curvature: float = 1.0
    for_classes: bool = True
    for_numbers: bool = False

    def value(self, score, y):
        distance = self.distance(score, y)[1]
        return float(np.where(distance <= 1, distance**2 / 2, distance - 0.5).sum())

    def residual(self, score, y):
        difference, distance = self.distance(score, y)
        return (difference / np.maximum(1, distance)[:, None]).astype(score.dtype)

    def residual_bound(self, norm):
        return math.inf if norm is Norm.L1 else 1.0

    def distance(self, score, y):
        difference = score - one_hot(y, score.shape[1], score.dtype)
        return difference, Norm.L2.of_rows(difference)
'''

ANCHORED = '''"""A pull towards a model that is not zero."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Anchored:
    """r(w) = |w - 1|_F^2."""

    curvature: float = 2.0
    convexity: float = 2.0

    def value(self, w):
        return float(np.square(w - 1).sum())

    def gradient(self, w):
        return 2 * (w - 1)
'''

ORTHANT = '''"""A box that is not symmetric."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Orthant:
    """W = {u : 0 <= u_jk <= radius}."""

    radius: float

    def project(self, c):
        return np.clip(c, 0, self.radius)

    def contains(self, u, tolerance=1e-9):
        return bool(u.min() >= -tolerance and u.max() <= self.radius * (1 + tolerance))
'''

COUNTING = '''"""The plain engine, which counts its rounds."""

from tacit.engine.plain import PlainEngine
from tacit.engine.registry import Builder


class Counting:
    def __init__(self, runs, shape):
        self.plain, self.rounds = PlainEngine(runs, shape), 0
        self.save, self.load = self.plain.save, self.plain.load

    @property
    def path(self):
        return f"plain, {self.rounds} rounds"

    def exchange_all(self, msgs):
        self.rounds += 1
        return self.plain.exchange_all(msgs)


BUILDER = Builder(lambda runs, shape, _device: Counting(runs, shape))
'''

DESCENT = '''"""Gradient descent over agents with a fixed step and no noise."""

from dataclasses import dataclass

from tacit.methods.method import SILENT, Entry, Stateless, grid
from tacit.methods.promise import no_privacy
from tacit.problem.sensitivity import Clipped
from tacit.types import Norm


@dataclass(frozen=True)
class Descent(Stateless):
    rounds: int
    step: float

    def promise(self, facts):
        return no_privacy()

    def answer(self, agents, own, msg):
        return own, {"slope": agents.gradients(msg.w, Clipped(Norm.L2, 1.0))}

    def conclude(self, facts, state, msg, answers):
        return state.next(state.w - self.step * answers["slope"].sum(0))


def build(facts, budget, choice):
    return Descent(int(choice["rounds"]), choice["step"])


ENTRY = Entry("descent", "gradient descent", build, grid(rounds=9, step=(1.0, 2.0, 4.0, 8.0)), values=SILENT)
'''

TOY = '''"""A source of four records an agent."""

import numpy as np

from tacit.types import Federation, Shard


def load(spec):
    shard = Shard(np.eye(4), np.arange(4) % 2)
    return Federation((shard,) * spec.n_agents, shard, 2, name="toy", bounds=(0.0, 1.0))
'''

BACKWARDS = '''"""The last records go to the first agent."""

import numpy as np


def backwards(y, n_agents, rng, alpha):
    return np.array_split(np.arange(len(y)), n_agents)[::-1]
'''

PIPES = '''"""Tables with a bar between two cells."""

import numpy as np

from tacit.data.table import RawTable


def read(path):
    head, *rows = (line.split("|") for line in path.read_text().splitlines())
    yield RawTable(str(path), {name: np.array(cells) for name, *cells in zip(head, *rows)})
'''

TABLE = "\n".join(["agent|u|v|label", *(f"{n % 3}|0.{n % 7}|0.{n % 5}|{n % 2}" for n in range(60))]) + "\n"

ADDITIONS = {
    "method": Addition(
        "tacit/methods/descent.py", DESCENT, "tacit/methods/registry.py", '"secure-sum": ',
        '"descent": "tacit.methods.descent:ENTRY",', {"method.step": 3.0}, told="hosted", engines=("fast", "fast"),
        method=("sound", "descent"),
    ),
    "source": Addition(
        "tacit/data/toy.py", TOY, "tacit/data/sources.py", '"synthetic": ',
        '"toy": DataSource("toys", "tacit.data.toy:load"),', {"data.source": "toy"},
    ),
    "partition": Addition(
        "tacit/data/backwards.py", BACKWARDS, "tacit/data/partition.py", '"unequal": ',
        '"backwards": "tacit.data.backwards:backwards",', {"data.partition": "backwards"},
    ),
    "format": Addition(
        "tacit/data/formats/pipes.py", PIPES, "tacit/data/formats/__init__.py", '".npz": ',
        '".pipes": "tacit.data.formats.pipes:read",',
        {"data.source": "table.pipes", "data.agents": None, "data.class_names": "2", "privacy.sensitivity": "clip"},
        files={"table.pipes": TABLE},
    ),
    "loss": Addition(
        "tacit/problem/distance.py", DISTANCE, "tacit/problem/loss.py", '"squared": ',
        '"distance": "tacit.problem.distance:Distance",',
        {"problem.loss": "distance", "privacy.mechanism": "gaussian", "privacy.sensitivity": "feature_bounds"},
    ),
    "regulariser": Addition(
        "tacit/problem/anchored.py", ANCHORED, "tacit/problem/regularizer.py", '"none": ',
        '"anchored": "tacit.problem.anchored:Anchored",',
        {"problem.regularizer": "anchored", "problem.beta": 1e6, "privacy.epsilon": float("inf")},
        claim="(w > 0).all()",
    ),
    "domain with a box for the trust region": Addition(
        "tacit/problem/orthant.py", ORTHANT, "tacit/problem/domain.py", '"ball": ',
        '"orthant": "tacit.problem.orthant:Orthant",',
        {"problem.domain": "orthant", "problem.domain_radius": 0.3},
        claim="0 <= w.min() and 0 < w.max() <= 0.3",
    ),
    "domain with a ball for the trust region": Addition(
        "tacit/problem/orthant.py", ORTHANT, "tacit/problem/domain.py", '"ball": ',
        '"orthant": "tacit.problem.orthant:Orthant",',
        {"problem.domain": "orthant", "problem.domain_radius": 0.3, "algorithm.trust_norm": "l2"},
        claim="-1e-6 <= w.min() and 0 < w.max() <= 0.3 + 1e-6",
    ),
    "engine": Addition(
        "tacit/engine/counting.py", COUNTING, "tacit/engine/registry.py", '"torch": ',
        '"counting": "tacit.engine.counting:BUILDER",', {}, told="4 rounds", engines=("counting", "plain"),
    ),
}  # fmt: skip

LABELLED = '''"""How many records have a label."""

from dataclasses import dataclass

import numpy as np

from tacit.errors import SpecError
from tacit.message import Form
from tacit.problem.sensitivity import Adjacency
from tacit.query.query import Evaluator, check_rows
from tacit.query.records import Reads, View


@dataclass(frozen=True)
class Labelled:
    """value = how many records have the label `which`: a record that is present or absent moves it by 1."""

    shape: tuple[int, int]
    which: int

    reads = Reads(View.ROWS)
    size, additive, parameters = 1, True, Form({})

    def __post_init__(self):
        if not 0 <= self.which < self.shape[1]:
            raise SpecError("which is a label from 0 to K - 1.")

    def bound(self, norm, adjacency):
        return 1.0

    def check(self, reader):
        check_rows(reader, self.shape)

    @property
    def evaluator(self):
        return Evaluator(counted, lambda query, n: 1 + 2.0**-52)


def counted(query, reader):
    return lambda asked: np.array([float(sum((b.present & (b.y == query.which)).sum() for b in reader.blocks()))])
'''

PREVALENCE = '''"""The share of records with label zero, from noisy counts: w_j0 = share - 1/2, and zero elsewhere."""

from dataclasses import dataclass

import numpy as np

from tacit.methods import behind_sum
from tacit.methods.method import Entry, grid
from tacit.methods.queried import QueryMethod
from tacit.privacy.summed import InSum
from tacit.query.labelled import Labelled


@dataclass(frozen=True)
class Prevalence(QueryMethod):
    rounds: int
    multiplier: float
    in_sum: InSum | None = None

    def query(self, facts):
        return Labelled(facts.shape, 0)

    def parameters(self, facts, msg, p):
        return {}

    def conclude(self, facts, state, msg, answers):
        w = np.zeros(facts.shape)
        w[:, 0] = self.total(facts, answers)[0] / facts.n_records - 0.5
        return state.next(((msg.t - 1) * state.w + w) / msg.t)


def build(facts, budget, choice):
    rounds = int(choice["rounds"])
    return Prevalence(rounds, budget.multiplier(behind_sum.counted(rounds, budget.in_sum)), budget.in_sum)


ENTRY = Entry("prevalence", "noisy counts of a label", build, grid(rounds=4), sums=True, queries=True)
'''

RUN = """
import json
from pathlib import Path
import numpy, tacit
from tacit.cli import main
from tacit.privacy.ledger import Ledger
from tacit.run.build import federation, setup
from tacit.run.deployment import price
from tacit.toml import read

told = {"home": tacit.__file__}
how = {"simulated": ["--seed", "0"], "alone": ["--noise", "exact", "--ledger", "alone"],
       "sum": ["--noise", "exact", "--ledger", "sum", "--trust", "sum"]}
for name, flags in how.items():
    run = ["train", "--algorithm", "prevalence", "--data", "synthetic", "--agents", "3", "--epsilon", "8", "-qq"]
    assert main([*run, *flags, "--out", f"out-{name}"]) == 0
    spec = tacit.Spec().with_values(read(Path(f"out-{name}/spec.toml")))
    over = federation(spec)
    y = numpy.concatenate([shard.y for shard in over.shards])
    w, made = numpy.load(f"out-{name}/model.npz")["w"], setup(spec, over)
    told[name] = {
        "off": abs(w[0, 0] - (numpy.mean(y == 0) - 0.5)), "rest": float(numpy.abs(w[:, 1:]).max()),
        "noise": spec.privacy.noise, "ledgers": {},
        "claimed": json.loads(Path(f"out-{name}/result.json").read_text())["guarantee_fields"]["epsilon"],
    }
    for path in sorted(Path(name).glob("*.ledger")):
        with Ledger.open(path, price=price) as ledger:
            ((data, spent),) = ledger.history().spent.items()
            (account,) = ledger.show()
            assert spent == dict(made.promise.events(spec.run.rounds)) == dict(made.deployment.first_agreement.events)
            told[name]["ledgers"][data] = account.epsilon
print(json.dumps(told))
"""

ASK = """
import json, numpy, tacit
from tacit.errors import SpecError
from tacit.problem.sensitivity import Adjacency
from tacit.query.query import AgentQuery, fingerprint
from tacit.query.records import InMemory
from tacit.query.registry import QUERIES
from tacit.types import Norm, Shard
query = QUERIES["labelled"]((4, 2), 1)
shard = Shard(numpy.eye(4) * [[1], [1], [0], [1]], [1, 0, 1, 1], present=numpy.array([True, True, False, True]))
asked = AgentQuery(query, InMemory.of(shard), query.evaluator)
try:
    QUERIES["labelled"]((4, 2), 2)
except SpecError as error:
    refused = str(error)
print(json.dumps({
    "home": tacit.__file__, "names": list(QUERIES), "value": asked.answer({}).tolist(), "refused": refused,
    "sensitivity": asked.sensitivity(Norm.L2, Adjacency.ZERO_OUT), "fingerprint": fingerprint(query),
}))
"""

TRAIN = """
import json, sys, warnings
import numpy, tacit
warnings.simplefilter("ignore")
spec = tacit.preset(*json.loads(sys.argv[3])).with_values(json.loads(sys.argv[1]))
results = [tacit.train(spec.with_values({"run.engine": engine})) for engine in json.loads(sys.argv[2])]
w, other = (result.w for result in results)
numpy.testing.assert_allclose(w, other, atol=1e-4 * numpy.abs(other).max())
print(json.dumps({"home": tacit.__file__, "path": results[0].summary["path"], "claim": bool(CLAIM)}))
"""


@pytest.fixture(scope="module")
def untouched(tmp_path_factory):
    """A copy of src/ without the bundled images."""
    copy = tmp_path_factory.mktemp("house") / "src"
    shutil.copytree(SRC, copy, ignore=shutil.ignore_patterns("_mnist", "__pycache__", "*.egg-info"))
    return copy


def contents(src):
    return {path.relative_to(src): path.read_bytes() for path in src.rglob("*") if path.is_file()}


def insert(path, after, line):
    """Write the line below the only line of the file that starts with `after`."""
    lines = path.read_text().splitlines(keepends=True)
    (at,) = (n for n, text in enumerate(lines) if text.strip().startswith(after))
    lines.insert(at + 1, lines[at][: -len(lines[at].lstrip())] + line + "\n")
    path.write_text("".join(lines))


def added(untouched, tmp_path, addition):
    """A copy of src/ with the addition: one file is new, and one line of another one."""
    copy = tmp_path / "src"
    shutil.copytree(untouched, copy)
    (copy / addition.file).write_text(addition.text)
    insert(copy / addition.registry, addition.after, addition.line)

    before, after = contents(untouched), contents(copy)
    assert after.keys() - before.keys() == {Path(addition.file)}
    (changed,) = (path for path in before if before[path] != after[path])
    lines = difflib.ndiff(before[changed].decode().splitlines(), after[changed].decode().splitlines())
    assert [line[0] for line in lines if line[0] in "+-"] == ["+"]
    return copy


def told_by(copy, tmp_path, code, *arguments):
    """What a process with the tacit of the copy prints."""
    environment = os.environ | {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], env=environment, cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])  # after what a command has printed
    assert Path(told["home"]).is_relative_to(copy)
    return told


QUERY = Addition(
    "tacit/query/labelled.py", LABELLED, "tacit/query/registry.py", '"counts": ',
    '"labelled": "tacit.query.labelled:Labelled",', {},
)  # fmt: skip
QUERY_METHOD = Addition(
    "tacit/methods/prevalence.py", PREVALENCE, "tacit/methods/registry.py", '"secure-sum": ',
    '"prevalence": "tacit.methods.prevalence:ENTRY",', {},
)  # fmt: skip


def test_a_query_is_one_new_file_and_one_line_and_is_asked(untouched, tmp_path):
    told = told_by(added(untouched, tmp_path, QUERY), tmp_path, ASK)
    assert told["names"][-1] == "labelled"
    assert told["value"] == [2.0]  # an absent record has the label too
    assert 1 <= told["sensitivity"] < 1 + 1e-9
    assert len(told["fingerprint"]) == 64
    assert told["refused"] == "which is a label from 0 to K - 1."


def test_a_method_that_asks_a_new_query_is_one_more_file_and_line_and_runs_simulated_and_deployed(untouched, tmp_path):
    """Alone and behind a secure sum, with ledgers that equal its account."""
    pytest.importorskip("cryptography")
    with_query = added(untouched, tmp_path / "query", QUERY)
    told = told_by(added(with_query, tmp_path / "method", QUERY_METHOD), tmp_path, RUN)
    assert told["simulated"]["noise"] == "simulated"
    assert not told["simulated"]["ledgers"]
    for name in ("alone", "sum"):
        assert told[name]["noise"] == "exact"
        assert list(told[name]["ledgers"]) == [f"synthetic: {p}" for p in range(3)]
        assert list(told[name]["ledgers"].values()) == 3 * [told[name]["claimed"]]
    for name in ("simulated", "alone", "sum"):
        assert told[name]["off"] < 0.02  # the noise of a count is that of a few records of 2000
        assert told[name]["rest"] == 0


@pytest.mark.parametrize("addition", ADDITIONS.values(), ids=ADDITIONS)
def test_an_addition_is_one_new_file_and_one_line_and_trains(untouched, tmp_path, addition):
    copy = added(untouched, tmp_path, addition)
    code = TRAIN.replace("CLAIM", addition.claim)
    arguments = [json.dumps(SMALL | addition.values), json.dumps(addition.engines), json.dumps(addition.method)]
    for name, text in addition.files.items():
        (tmp_path / name).write_text(text)
    told = told_by(copy, tmp_path, code, *arguments)
    assert addition.told in told["path"]
    assert told["claim"], "the model is not what the addition asks for"


FACT = {  # a fact of the guarantee, below the line that starts so: its field and what it says, and its value in a run
    "tacit/privacy/guarantee.py": {
        "claim: str | None": "published: int",
        '("covers", self': '("publishes", f"the models of all {self.published} rounds"),',
    },
    "tacit/run/guarantee.py": {"claim=_claim(": "published=spec.run.rounds,"},
}
PAGES = """
import json, sys
import tacit
from pathlib import Path
from tacit.cli import main
from tacit.ui.place import Place
from tacit.ui.views import Views
assert main(["train", "--data", "heart", "--rounds", "2", "--out", "runs/one", "-qq"]) == 0
assert main(["card", "runs/one"]) == 0
assert main(["report", "runs/one", "--share", "--out", "shared.html"]) == 0
views = Views(Place(Path("runs")))
(row,) = views.listing("", "", "updated", 0)["rows"]
told = {"live": json.dumps(views.shown(row["id"])), "shared": Path("shared.html").read_text()}
told |= {path.name: path.read_text() for end in ("html", "json", "md") for path in Path("runs/one").glob(f"*.{end}")}
print(json.dumps({"home": tacit.__file__, "told": told}))
"""


def test_a_fact_of_the_guarantee_is_two_files_and_every_page_shows_it(untouched, tmp_path):
    copy = tmp_path / "src"
    shutil.copytree(untouched, copy)
    for file, lines in FACT.items():
        for after, line in lines.items():
            insert(copy / file, after, line)
    before, after = contents(untouched), contents(copy)
    assert {str(path) for path in before if before[path] != after[path]} == FACT.keys()

    environment = os.environ | {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, "-c", PAGES], env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert Path(found["home"]).is_relative_to(copy)
    pages = found["told"]
    assert json.loads(pages.pop("result.json"))["guarantee_fields"]["published"] == 2
    assert pages.keys() == {"live", "shared", "report.html", "card.html", "card.md"}
    assert all("the models of all 2 rounds" in page for page in pages.values())


class Capped:
    """Huber's loss on each class; |a|_inf <= 1."""

    curvature = 1.0
    for_classes, for_numbers = True, False

    def value(self, score, y):
        size = np.abs(score - one_hot(y, score.shape[1]))
        return float(np.where(size <= 1, size**2 / 2, size - 0.5).sum())

    def residual(self, score, y):
        return np.clip(score - one_hot(y, score.shape[1], score.dtype), -1, 1)

    def residual_bound(self, norm):
        return 1.0 if norm is Norm.INF else float("inf")


@pytest.mark.parametrize("engine", ["fast", "plain"])
def test_a_loss_given_in_python_trains_by_its_name(monkeypatch, engine):
    monkeypatch.setitem(LOSSES, "capped", Capped)
    choice = {"problem.loss": "capped", "privacy.sensitivity": "clip", "run.engine": engine}
    spec = tacit.preset("paper", "objt").with_values(SMALL | choice)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TacitWarning)
        result = tacit.train(spec)
    assert np.isfinite(result.w).all()
    assert ("dense" if engine == "fast" else "plain") in result.summary["path"]


def test_an_engine_given_in_python_is_refused_the_devices_it_does_not_have(monkeypatch):
    monkeypatch.setitem(ENGINES, "mine", Builder(lambda runs, shape, _device: PlainEngine(runs, shape)))
    spec = tacit.preset("paper", "objt").with_values({"run.engine": "mine"})
    assert setup(spec, federation()).agents
    with pytest.raises(IncompatibleError, match="the mine engine runs on the cpu, not on 'cuda'"):
        setup(spec.with_values({"run.device": "cuda"}), federation())


REGISTRIES = {
    "problem.loss": LOSSES, "problem.regularizer": REGULARIZERS, "problem.domain": DOMAINS, "run.engine": ENGINES
}  # fmt: skip


@pytest.mark.parametrize("key", REGISTRIES)
def test_the_choices_of_a_key_are_the_names_of_its_registry_at_that_time(monkeypatch, key):
    with pytest.raises(SpecError, match=f"unknown value of {key} 'novel'"):
        tacit.Spec().with_values({key: "novel"})
    monkeypatch.setitem(REGISTRIES[key], "novel", object)
    assert list(keys()[key].metadata["choices"])[-1] == "novel"
    assert tacit.Spec().with_values({key: "novel"}).values()[key] == "novel"


@pytest.mark.parametrize("key", REGISTRIES)
@pytest.mark.parametrize("value", [["box"], 3, True])
def test_a_choice_that_is_no_name_is_refused(key, value):
    with pytest.raises(SpecError, match=f"{key} takes one of {', '.join(REGISTRIES[key])}, got"):
        tacit.Spec().with_values({key: value})


class Far:
    """W = {u >= 1}, which does not hold zero."""

    def project(self, c):
        return np.maximum(c, 1)

    def contains(self, u, tolerance=1e-9):
        return bool(u.min() >= 1 - tolerance)


@pytest.mark.parametrize("method", ["objp", "objt"])
def test_a_set_given_in_python_trains_and_its_run_starts_in_it(monkeypatch, method):
    monkeypatch.setitem(DOMAINS, "far", Far)
    spec = tacit.preset("sound", method).with_values(SMALL | {"problem.domain": "far", "run.seed": 0})
    np.testing.assert_array_equal(setup(spec, federation()).server.start().w, np.ones((4, 3)))
    assert Far().contains(tacit.train(spec).w)


def test_a_registry_imports_a_member_on_its_first_use_and_refuses_other_names():
    known = Registry("shape", {"square": 4, "ratio": "fractions:Fraction", "broken": "no.such.module:Name"})
    assert list(known) == ["square", "ratio", "broken"]
    assert "broken" in known
    assert known["square"] == 4
    assert known["ratio"](1, 2) == 0.5
    with pytest.raises(SpecError, match=r"^unknown shape 'sqare': did you mean 'square'"):
        known["sqare"]
    with pytest.raises(SpecError, match="choose from broken, ratio, square"):
        known["xyz"]
    assert known.get("xyz") is None
