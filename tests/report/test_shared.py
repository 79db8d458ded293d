"""A page that may be shared depends on releases and public facts: neighbours with the same answers give the same bytes.

Each case records the answers of one run with exact noise. Then it replays them over records that differ in one training
record or in one test record, and compares the shared pages byte for byte. The clock is frozen, and the draws of the
operating system (noise, keys, nonces) are replayed. Nothing else is normalised.
"""

from __future__ import annotations

import json
import re
import shutil
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import fields
from datetime import datetime, timezone
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import tacit
from tacit import PrivateFederatedClassifier, record
from tacit.agent import agent
from tacit.agent.masks.keys import RunKey
from tacit.cli import main
from tacit.errors import RecordError, RepeatedFitWarning, RunDirectoryError, TacitWarning
from tacit.privacy import ledger
from tacit.privacy.guarantee import FIELDS, Guarantee
from tacit.problem.loss import Loss
from tacit.report.audience import SHARED, TEST_RESULTS, Audience, Placeholders, settings, shared
from tacit.report.runs import Recorded
from tacit.run import asking, build, ranks, train
from tacit.run import run as running
from tacit.run.directory import RunDirectory
from tacit.run.model import Model
from tacit.run.spec import Spec, keys
from tests.report import made
from tests.run.test_numbers import command

HEAD = "hospital,age,sex,ill,days"
TRAIN = [HEAD, *(f"h{i % 3},{20 + i},{'fm'[i % 2]},{'ny'[i % 5 < 2]},{i % 9}" for i in range(45))]
TEST = [HEAD, *(f"h{i % 3},{30 + i},{'mf'[i % 2]},{'ny'[i % 3 < 1]},{i % 7}" for i in range(12))]
OTHER = {"train": "h1,64,m,y,8", "test": "h1,64,m,y,8"}  # instead of the fifth record
SCHEMA = """
[columns]
hospital = { kind = "agent" }
age = { kind = "numeric", lo = 18, hi = 90 }
sex = { kind = "categorical", values = ["f", "m"] }
"""
LABEL = {
    "classes": 'ill = { kind = "label", classes = ["n", "y"] }\ndays = { kind = "ignore" }\n',
    "number": 'days = { kind = "target", lo = 0, hi = 10 }\nill = { kind = "ignore" }\n',
}
GRID = """
[data]
source = "train.csv"
test = "test.csv"
schema = "schema.toml"
[privacy]
noise = "exact"
epsilon = [1.0, 2.0]
[run]
rounds = 3
"""


class Replay:
    """Draw on the first run what the operating system gives, and the same on every later one."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.answers: dict[tuple[str, ledger.Key], np.ndarray] = {}
        self.drawn: list[str] = []
        self.keys: list[RunKey] = []
        self.next_draw, self.next_key = 0, 0
        release, draw, new = ledger.Ledger.release, ledger.secrets.token_hex, RunKey.new

        def answered(own, key, asked, priced, make, *rest):
            place = (own._chain.path.parent.parent.name + own._chain.path.name, key)

            def again():
                if place not in self.answers:
                    self.answers[place] = make()
                return self.answers[place]

            return release(own, key, asked, priced, again, *rest)

        def token(size: int) -> str:
            self.next_draw += 1
            if self.next_draw > len(self.drawn):
                self.drawn.append(draw(size))
            return self.drawn[self.next_draw - 1]

        def run_key(_cls=None) -> RunKey:
            self.next_key += 1
            if self.next_key > len(self.keys):
                self.keys.append(new())
            return self.keys[self.next_key - 1]

        monkeypatch.setattr(ledger.Ledger, "release", answered)
        monkeypatch.setattr(ledger.secrets, "token_hex", token)
        monkeypatch.setattr(ledger, "_now", lambda: datetime(2026, 11, 18, 12, tzinfo=timezone.utc))
        monkeypatch.setattr(RunKey, "new", run_key)

    def again(self) -> None:
        self.next_draw = self.next_key = 0


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


Pages = dict[str, bytes]


def tables(label: str, *more: str) -> Callable[[list[str]], None]:
    def run(flags: list[str]) -> None:
        Path("schema.toml").write_text(SCHEMA + LABEL[label])
        words = ["--data", "train.csv", "--test", "test.csv", "--schema", "schema.toml", "--rounds", "3", *more]
        assert command("train", *words, "--out", "run", "-qq", *flags) == 0

    return run


def several(flags: list[str]) -> None:
    tables("classes")(flags)
    Path("run").rename("first")
    tables("classes", "--epsilon", "2")(flags)


def grid(flags: list[str]) -> None:
    Path("schema.toml").write_text(SCHEMA + LABEL["classes"])
    Path("grid.toml").write_text(GRID + ("measure_training = true\n" if flags else ""))
    assert command("sweep", "--config", "grid.toml", "--out", "run", "-qq") == 0


def fitted(flags: list[str]) -> None:
    rows = [line.split(",") for line in Path("train.csv").read_text().splitlines()[1:]]
    x, y = np.array([[float(age), float(sex == "m")] for _, age, sex, *_ in rows]), [row[3] for row in rows]
    model = PrivateFederatedClassifier(
        epsilon=1.0, rounds=3, classes=["n", "y"], feature_bounds={0: (18, 90), 1: (0, 1)}, out="run"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RepeatedFitWarning)
        model.fit(x, y, agents=[row[0] for row in rows])
    assert not flags


def from_python(flags: list[str]) -> None:
    Path("schema.toml").write_text(SCHEMA + LABEL["classes"])
    federation = tacit.load("train.csv", schema="schema.toml", test="test.csv")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TacitWarning)
        tacit.train(data=federation, rounds=3, measure_training=bool(flags), out="run")


CASES: dict[str, tuple[Callable[[list[str]], None], list[str]]] = {
    "classes": (tables("classes"), ["run"]),
    "number": (tables("number"), ["run"]),
    "sum": (tables("classes", "--trust", "sum"), ["run"]),
    "several": (several, ["first", "run"]),
    "sweep": (grid, ["run"]),
    "python": (from_python, ["run"]),
    "estimator": (fitted, ["run"]),
}


CARDS = ("classes", "number", "python", "estimator")  # of one run, whose pages say who is trusted


def pages(case: str, changed: str, measured: bool, *share: str) -> Pages:
    """Train on records of which one is `changed`, and return the pages by name."""
    for name, lines in (("train", TRAIN), ("test", TEST)):
        told = [*lines[:5], OTHER[name], *lines[6:]] if changed == name else lines
        Path(f"{name}.csv").write_text("\n".join(told) + "\n")
    run, directories = CASES[case]
    run(["--measure-training"] if measured else [])
    Path("pages").mkdir()
    with Path("pages/report.json").open("w") as file, redirect_stdout(file):  # the comparison and the model's shapes
        assert main(["report", *directories, "--out", "pages/report.html", "--json", *share]) == 0
    for directory in directories if case != "sweep" else []:
        assert main(["card", directory, "--out", f"pages/{directory}", *share]) == 0
    found = {str(path.relative_to("pages")): path.read_bytes() for path in Path("pages").rglob("*.*")}
    results = sorted(path for directory in directories for path in Path(directory).rglob("result.json"))
    stated = [json.loads(path.read_text())[FIELDS] for path in results]
    found["guarantee_fields.json"] = json.dumps(stated).encode()  # all of which a shared page may show
    for place in ("pages", *directories):
        shutil.rmtree(place)
    return found


def over_neighbours(monkeypatch: pytest.MonkeyPatch, case: str, measured: bool, *share: str) -> dict[str, Pages]:
    """Return the pages of the records as they are and of two neighbours, all made from the same answers."""
    replay = Replay(monkeypatch)
    pages(case, "", measured, *share)  # which records the answers
    found = {}
    for changed in ("", "train", "test"):
        replay.again()
        found[changed] = pages(case, changed, measured, *share)
    return found


@pytest.mark.parametrize(("case", "measured"), [
    (case, measured) for case in CASES for measured in (False, True) if not (case == "estimator" and measured)
])  # fmt: skip
def test_a_shared_page_is_the_same_for_neighbours(monkeypatch, case, measured):
    found = over_neighbours(monkeypatch, case, measured, "--share")
    assert len(found[""]) == {"sweep": 3, "several": 7}.get(case, 5)
    whom = "A secure sum" if case == "sum" else "Nobody" if case in CARDS else ""
    assert all(whom.encode() in page for name, page in found[""].items() if not name.endswith(".json"))
    assert found["train"] == found[""]
    assert found["test"] == found[""]
    assert all(b"may be shared" in page for name, page in found[""].items() if not name.endswith(".json"))


@pytest.mark.parametrize("case", ["classes", "number", "sum", "several", "sweep"])
def test_declared_test_records_are_shown_and_training_records_still_leave_no_trace(monkeypatch, case):
    found = over_neighbours(monkeypatch, case, True, "--share", "--test-is-public")
    assert found["train"] == found[""]
    for name, page in found[""].items():
        assert name.endswith(".json") or b"have declared the test records public" in page
        # the other record has another label, so a confusion matrix differs whatever the model predicts
        assert name.endswith(".json") or case in ("several", "sweep") or found["test"][name] != page


def test_only_the_pages_of_owners_depend_on_records(monkeypatch):
    """So that the tests above compare something, with the objective on the page and without it."""
    monkeypatch.setattr(train, "time", SimpleNamespace(monotonic=lambda: 0.0))
    for module in (running, agent, asking):
        monkeypatch.setattr(module, "perf_counter", lambda: 0.0)
    for measured in (True, False):
        found = over_neighbours(monkeypatch, "classes", measured)
        assert (found["train"]["report.html"] != found[""]["report.html"]) == measured
        assert found["test"]["report.html"] != found[""]["report.html"]
        for name, page in found[""].items():
            assert name.endswith(".json") or (b"For the owners of the data" in page and b"may be shared" not in page)


def test_a_run_with_exact_noise_keeps_no_number_of_training_records(monkeypatch):
    """All that it stores is the same for neighbours, but for seconds; `--measure-training` adds the objective."""
    replay = Replay(monkeypatch)
    stored = []
    for turn, (changed, flags) in enumerate([("", []), ("", []), ("train", []), ("train", ["--measure-training"])]):
        replay.again()
        lines = [*TRAIN[:5], OTHER["train"], *TRAIN[6:]] if changed else TRAIN
        Path("train.csv").write_text("\n".join(lines) + "\n")
        Path("test.csv").write_text("\n".join(TEST) + "\n")
        tables("classes")(flags)
        result = json.loads(Path("run/result.json").read_text())
        rows = [json.loads(line) for line in Path("run/rounds.jsonl").read_text().splitlines()]
        stored.append([{key: value for key, value in one.items() if "seconds" not in key} for one in (result, *rows)])
        assert sorted(path.name for path in Path("run").iterdir()) == [
            "ledgers", "model.npz", "report.html", "result.json", "rounds.jsonl", "spec.toml",
        ]  # fmt: skip
        shutil.rmtree("run") if turn < 3 else None
    _, first, neighbour, asked = stored
    for one in (first[0], neighbour[0]):
        one.pop("seal"), one.pop("rounds_hash")  # digests of what is compared here, and of seconds
    assert first == neighbour
    assert all(one["objective"] is None for one in first)
    assert all(one["objective"] is not None for one in asked)
    assert any("training objective" in line for line in asked[0]["not_covered"])
    assert not any("training objective" in line for line in first[0]["not_covered"])


def test_with_the_model_the_objective_on_a_page_tells_whether_any_record_of_heart_was_used():
    """The attacker knows all other records, and takes the nearer of the objectives with and without the record."""
    words = ("--data", "heart", "--rounds", 20, "--out")
    assert command("train", *words, "asked", "--measure-training", "-qq") == 0
    assert command("train", *words, "usual", "-qq") == 0
    curves = {}
    for run in ("asked", "usual"):
        page = (Path(run) / "report.html").read_text()
        charts = map(json.loads, re.findall(r'<script type="application/json">(.*?)</script>', page, re.S))
        curves[run] = [chart["lines"][0]["y"] for chart in charts if chart.get("key") == "objective"]
    assert curves["usual"] == []
    shown = curves["asked"][0][-1]
    directory = RunDirectory.open(Path("asked"))
    federation, model = ranks.federation(directory.spec()), Model.read(Path("asked"))
    problem = build.setup(directory.spec(), federation).problem
    each = np.concatenate([per_record(problem.loss, shard.x @ model.w, shard.y) for shard in federation.shards])
    penalty = federation.n_agents * problem.regularization * problem.regularizer.value(model.w)
    known = problem.weight * each.sum() + penalty
    right = abs(shown - known) < abs(shown - (known - problem.weight * each))
    assert (right.sum(), len(right)) == (735, 735)


def per_record(loss: Loss, scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    return np.array([loss.value(scores[i : i + 1], labels[i : i + 1]) for i in range(len(scores))])


def test_the_live_page_has_the_line_of_a_page_for_owners():
    page = files("tacit.ui").joinpath("ui.html").read_text()
    (line,) = re.findall(r'<p class="notice owners">(.*?)</p>', page, re.S)
    assert " ".join(re.sub(r"</?code>", "", line).split()) == Audience.OWNERS.notice()


def test_only_what_may_be_released_can_be_shared(capsys):
    Path("train.csv").write_text("\n".join(TRAIN) + "\n")
    Path("test.csv").write_text("\n".join(TEST) + "\n")
    tables("classes", "--seed", "0")([])
    for words in (["report", "run"], ["card", "run"]):
        assert main([*words, "--share"]) == 2
        assert "run cannot be shared, because its noise is simulated" in capsys.readouterr().err
        assert main([*words, "--test-is-public"]) == 2
        assert "add --share" in capsys.readouterr().err
    assert not list(Path().glob("**/*shared*"))


def test_a_shared_card_takes_no_audit(capsys):
    Path("train.csv").write_text("\n".join(TRAIN) + "\n")
    Path("test.csv").write_text("\n".join(TEST) + "\n")
    tables("classes")([])
    audit = {"passed": True, "findings": [{
        "attack": "run", "name": "x", "claimed": 1.0, "dp_delta": 1e-6, "measured": 0.1, "samples": 9,
        "verdict": "consistent",
    }], "controls": []}  # fmt: skip
    Path("audit.json").write_text(json.dumps(audit))
    assert main(["card", "run", "--share", "--audit", "audit.json"]) == 2
    assert "drop --audit, or --share" in capsys.readouterr().err


def test_what_a_later_version_stores_stays_out_of_a_shared_page():
    """The list names what may be seen, and not what must be hidden."""
    told = made.one(0.1, made.spec(), "run", simulated_noise=False, seal="s", rounds_hash="r", secret=0.123456)
    told |= {"ledger_totals": {"a": {"epsilon": 1.0, "secret": 2}}, "took_part": {"a": {"released": 1, "secret": 2}}}
    run = Recorded("mine", told["spec"], told, told["curve"] | {"secret": [0.1] * 3})
    seen = shared(run, Audience.PUBLIC, "run 1", Placeholders())
    assert seen.name == "run 1"
    assert "secret" not in repr(seen)
    assert set(seen.summary) <= set(SHARED)
    assert set(seen.curve) == {"t"}
    tested = shared(run, Audience.PUBLIC_WITH_TESTS, "run 1", Placeholders())
    assert set(tested.summary) <= {*SHARED, *TEST_RESULTS}
    hidden = {"objective", "consensus_violation", "seconds", "seal", "rounds_hash", "secret"}
    assert not hidden & {*seen.summary, *tested.summary, *tested.curve}
    assert record.FILES.keys() - {*SHARED} == {"rounds_hash"}


@pytest.mark.parametrize("field", [one.name for one in fields(Guarantee)])
def test_every_field_of_a_guarantee_is_shared_as_it_is_and_none_that_this_version_does_not_know(field):
    told = made.one(0.1, made.spec(), "run")
    run = Recorded("mine", told["spec"], told, told["curve"])
    seen = shared(run, Audience.PUBLIC, "run 1", Placeholders())
    assert seen.summary[FIELDS][field] == told[FIELDS][field]
    assert seen.privacy == run.privacy
    for changed in (told[FIELDS] | {"secret": 0.123456}, {**told[FIELDS], field: {"secret": 0.123456}}):
        later = Recorded("mine", told["spec"], told | {FIELDS: changed}, told["curve"])
        with pytest.raises(RecordError, match="makes no sense"):
            shared(later, Audience.PUBLIC, "run 1", Placeholders())


def test_settings_hold_no_path():
    paths = {key for key, field in keys().items() if field.metadata["path"]}
    assert paths == {"data.source", "data.test", "data.schema", "problem.domain_file", "privacy.ledger"}
    values = Spec().values() | dict.fromkeys(paths, "/home/me/secret.csv") | {
        "data.unknown": "/home/me", "privacy.data_id": "/home/me/a", "run.name": "C:\\home\\me", "method.x": "/home/me",
    }  # fmt: skip
    seen = settings(values, Placeholders())
    assert "home" not in str(seen)
    assert "data.unknown" not in seen
    assert (seen["data.source"], seen["privacy.ledger"], seen["method.x"]) == ("source-1.csv", "ledger-1.csv", "x-1")
    assert settings(values | {"data.source": "mnist"}, Placeholders())["data.source"] == "mnist"
    given = settings({"data.source": "given in Python: /home/me/hearts"}, Placeholders())
    assert given == {"data.source": "given in Python: hearts"}


def test_a_shared_page_names_no_directory_and_keeps_runs_on_different_data_apart(capsys):
    """A sweep over files names its runs by them, and a mean over different data is no mean over seeds."""
    for place in ("north-secret", "south-secret"):
        Path(place).mkdir()
        Path(place, "train.csv").write_text("\n".join(TRAIN) + "\n")
    Path("schema.toml").write_text(SCHEMA + LABEL["classes"])
    source = json.dumps([f"{Path.cwd()}/{place}/train.csv" for place in ("north-secret", "south-secret")])
    grid = f'[data]\nsource = {source}\nschema = "schema.toml"\n[privacy]\nnoise = "exact"\n[run]\nrounds = 2\n'
    Path("grid.toml").write_text(grid)
    assert command("sweep", "--config", "grid.toml", "--out", "grid-secret", "-qq") == 0
    capsys.readouterr()
    words = ["--share", "--test-is-public", "--out", "page.html", "--figures", "drawn", "--json"]
    assert main(["report", "grid-secret", *words]) == 0
    rows = json.loads(capsys.readouterr().out)["comparison"]
    assert [(row["seeds"], row["runs"]) for row in rows] == [(1, "source-1.csv"), (1, "source-2.csv")]
    shown = Path("page.html").read_text() + json.dumps(rows) + " ".join(map(str, Path("drawn").iterdir()))
    assert "secret" not in shown
    assert str(Path.cwd()) not in shown
    (member, *_) = (one for one in Path("grid-secret").iterdir() if one.is_dir())
    assert main(["report", str(member), "--share", "--out", "one.html"]) == 0
    assert "secret" not in Path("one.html").read_text()


def test_a_model_that_cannot_be_read_is_an_error_for_the_owner_and_no_text_of_a_shared_page(capsys, monkeypatch):
    Path("train.csv").write_text("\n".join(TRAIN) + "\n")
    Path("test.csv").write_text("\n".join(TEST) + "\n")
    tables("number")([])
    Path("run").rename("secret-place")
    monkeypatch.setattr(Model, "read", lambda path: (_ for _ in ()).throw(RunDirectoryError(f"{path} is damaged.")))
    assert main(["card", "secret-place", "--share"]) == 2
    assert "secret-place is damaged." in capsys.readouterr().err
    assert main(["report", "secret-place", "--share", "--out", "page.html"]) == 0
    assert "secret-place" not in Path("page.html").read_text()
    assert not list(Path("secret-place").glob("*shared*"))


def test_a_resumed_run_of_an_earlier_version_loses_its_training_objective(monkeypatch):
    words = ("--data", "heart", "--rounds", 6, "--record-every", 1, "--out", "run")
    with monkeypatch.context() as earlier:
        earlier.setattr(running, "measures_training", lambda _spec: True)
        earlier.setattr(train, "KEPT_ROUNDS", 1)  # a checkpoint after every round
        earlier.setattr(train.StopRequests, "found", lambda *_: True)  # and a stop after the first
        assert command("train", *words, "-qq") != 0
        assert json.loads(Path("run/rounds.jsonl").read_text().splitlines()[0])["objective"] is not None
    assert command("train", "--resume", "run", "-qq") == 0
    rows = [json.loads(line) for line in Path("run/rounds.jsonl").read_text().splitlines()]
    assert [row["objective"] for row in rows] == [None] * 6
