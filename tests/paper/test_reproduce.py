"""Artefacts plan, run once, survive, and say how far they are from the paper."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

import pytest

from tacit import record
from tacit.errors import DataError, RecordError, RunDirectoryError, SpecError
from tacit.paper import reproduce, tables
from tacit.paper.archive import Archive, spec_of
from tacit.paper.artefact import FOLDER, ORDER, Artefact, Scale, choose, read, read_all
from tacit.paper.reproduce import Reproduction
from tacit.run import sweep
from tacit.run.sources import Sources
from tacit.run.spec import keys

RECORDS = Path(__file__).parents[2] / "records"

TINY = """
title = "tiny"
about = "a grid of four"
[[grid]]
[grid.data]
source = "synthetic"
agents = 3
records = 90
features = 4
[grid.algorithm]
name = ["objt", "objp"]
[grid.run]
preset = "released"
rounds = 200
seed = [0, 1]
record_every = 50
[quick.run]
rounds = 8
record_every = 2
[[panels]]
title = "{} under the released preset"
x = "t"
y = "test_error"
where = { "algorithm.name" = ["objt", "objp"], "run.preset" = "released" }
lines_by = ["algorithm.name"]
[[printed]]
label = "objt"
where = { "algorithm.name" = "objt" }
y = "test_error"
paper = 0.5
tolerance = 0.5
"""
SYNTHETIC = 'source = "synthetic"\nagents = 3\nrecords = 90\nfeatures = 4'
OTHER = TINY.replace('name = ["objt", "objp"]', 'name = ["objp", "outp"]').replace('"tiny"', '"other"')

pytestmark = pytest.mark.filterwarnings("ignore::tacit.errors.TacitWarning")


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "artefacts"
    folder.mkdir()
    (folder / "tiny.toml").write_text(TINY)
    (folder / "other.toml").write_text(OTHER)
    return folder


@pytest.fixture
def plan(folder):
    return Reproduction(choose(["tiny"], read_all(folder)), Scale.QUICK)


def done(plan, path, out, sources=None, n_jobs=1):
    archive = Archive(path)
    reproduce.run(plan.waiting(archive), archive, out, sources or Sources(), n_jobs=n_jobs)
    return archive


def numbers(archive):
    """What a run computed, but not how long it took."""
    return {one["spec_hash"]: (one["objective"], one["curve"]["test_error"]) for one in archive}


@cache
def planned(name, scale):
    """Return the plan of one artefact of the paper. Thousands of specs: tests share them."""
    return Reproduction([read(FOLDER / f"{name}.toml")], scale)


@pytest.mark.parametrize("scale", list(Scale))
@pytest.mark.parametrize("name", ORDER)
def test_every_artefact_of_the_paper_plans(name, scale):
    plan = planned(name, scale)
    (artefact,) = plan.artefacts
    assert len(plan.runs) == len(artefact.members(scale))
    assert len({member.name for _, member in plan.runs.values()}) == len(plan.runs)
    assert artefact.grid or artefact.compute
    for panel in artefact.all_panels():
        assert {*panel.get("where", {}), *panel["lines_by"]} <= set(keys())
        assert "{" not in panel["title"]
    specs = [spec_of({"spec": m.spec.toml(), "name": m.name}) for _, m in plan.runs.values()]
    shown = artefact.all_panels() if scale is Scale.FULL else []  # the quick scale may do without some
    for one in (*shown, *artefact.claimed(scale).printed):
        assert any(all(spec[key] == value for key, value in one.get("where", {}).items()) for spec in specs)


def test_the_folder_holds_the_artefacts_of_the_paper_and_no_other():
    assert tuple(read_all()) == ORDER


@pytest.mark.parametrize("scale", list(Scale))
def test_runs_that_figures_share_are_counted_once(scale):
    known = read_all()
    one, two, five = (set(planned(name, scale).runs) for name in ("fig1", "fig2", "fig5"))
    assert one < two
    assert one < five
    assert set(Reproduction([known[name] for name in ("fig1", "fig2", "fig5")], scale).runs) == two | five
    three, six = (set(planned(name, scale).runs) for name in ("fig3", "fig6"))
    assert three < two
    assert three < six
    four, early = (set(planned(name, scale).runs) for name in ("fig4", "early"))
    assert (early < four | six) is (scale is Scale.QUICK)  # at the full scale it is shorter


def test_every_committed_record_is_whole_and_asked_for_by_an_artefact():
    asked = set().union(*(planned(name, Scale.FULL).runs for name in read_all()))
    assert set(Archive(RECORDS / "paper.jsonl").records) <= asked


def test_a_run_keeps_its_name_whichever_artefact_asks(folder):
    tiny, other = (Reproduction([one], Scale.QUICK).runs for one in read_all(folder).values())
    both = Reproduction(list(read_all(folder).values()), Scale.QUICK)
    assert len(both.runs) == 6
    shared = set(tiny) & set(other)
    assert len(shared) == 2
    for key in shared:
        assert tiny[key][1] == other[key][1]
        assert key.startswith(tiny[key][1].name.rpartition("-")[2])


def test_a_femnist_run_has_the_papers_rho_wherever_it_is_started():
    _, member = next(iter(planned("fig3", Scale.FULL).runs.values()))
    schedule = member.spec.schedule
    assert (schedule.rho_c1, schedule.rho_c2, schedule.rho_period) == (0.005, 0.05, 2e3)
    assert member.spec.data.source == "femnist"


def test_recorded_runs_are_never_done_again(plan, tmp_path, monkeypatch):
    first = done(plan, tmp_path / "records.jsonl", tmp_path / "out")
    assert len(list(first)) == 4
    before = (tmp_path / "records.jsonl").read_bytes()
    monkeypatch.setattr(sweep, "together", lambda *_: pytest.fail("it trains"))
    assert plan.waiting(Archive(tmp_path / "records.jsonl")) == []
    done(plan, tmp_path / "records.jsonl", tmp_path / "elsewhere")
    assert (tmp_path / "records.jsonl").read_bytes() == before


def test_what_is_recorded_of_another_artefact_is_not_done_again(folder, plan, tmp_path):
    done(plan, tmp_path / "records.jsonl", tmp_path / "out")
    both = Reproduction(list(read_all(folder).values()), Scale.QUICK)
    names = {member.spec.algorithm.name for _, member in both.waiting(Archive(tmp_path / "records.jsonl"))}
    assert names == {"outp"}


def test_two_processes_give_the_records_of_one(plan, tmp_path, monkeypatch):
    monkeypatch.setattr(sweep, "LANES", 2)
    alone = done(plan, tmp_path / "one.jsonl", tmp_path / "one")
    many = done(plan, tmp_path / "two.jsonl", tmp_path / "two", n_jobs=2)
    assert numbers(alone).keys() == numbers(many).keys()
    for key, (objective, _) in numbers(alone).items():
        assert numbers(many)[key][0] == pytest.approx(objective, rel=1e-6)


KILLED = """
import os, signal, sys, warnings
from pathlib import Path
warnings.simplefilter("ignore")
from tacit.paper import reproduce
from tacit.paper.archive import Archive
from tacit.paper.artefact import Scale, choose, read_all
from tacit.run import sweep
from tacit.run import train as run
from tacit.run.sources import Sources
run.CHECKPOINT_SECONDS, sweep.LANES = 0.0, 1
folder, path, out = map(Path, sys.argv[1:])
plan = reproduce.Reproduction(choose(["tiny"], read_all(folder)), Scale.FULL)

def die_in_a_later_run(_done, _row):
    if path.exists() and list(out.glob("runs/*/checkpoint.npz")):
        os.kill(os.getpid(), signal.SIGKILL)

archive = Archive(path)
reproduce.run(plan.waiting(archive), archive, out, Sources(), die_in_a_later_run)
"""


def test_a_killed_reproduction_goes_on_in_the_middle_of_a_run(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(sweep, "LANES", 1)
    plan = Reproduction(choose(["tiny"], read_all(folder)), Scale.FULL)
    whole = done(plan, tmp_path / "whole.jsonl", tmp_path / "whole")
    path, out = tmp_path / "cut.jsonl", tmp_path / "cut"
    ended = subprocess.run([sys.executable, "-c", KILLED, str(folder), str(path), str(out)], timeout=120)
    assert ended.returncode == -signal.SIGKILL
    before = Archive(path).records
    assert 1 <= len(before) < 4
    begun, together = [], sweep.together

    def see(runs, *others):
        begun.append(runs[0].directory.saved())
        return together(runs, *others)

    monkeypatch.setattr(sweep, "together", see)
    after = done(plan, path, out)
    assert any(saved is not None and int(saved["t"]) > 0 for saved in begun)
    assert {key: after.records[key] for key in before} == before
    assert numbers(after) == numbers(whole)


SPREAD = """
import os, sys, time
from pathlib import Path
from tacit.paper.artefact import Scale, read_all
from tacit.run import processes, sweep
from tacit.run.train import nobody
from tacit.run.sources import Sources

def finish(batch, out, _hear, _load):
    (out / f"{batch[0].spec.algorithm.name}.pid").write_text(str(os.getpid()))
    while batch[0].spec.algorithm.name == "objp" or not (out / "objp.pid").exists():
        time.sleep(0.01)
    return []  # and this worker has nothing left to do

if __name__ == "__main__":
    sweep.LANES = 2
    artefact = read_all(Path(sys.argv[1]))["tiny"]
    list(processes.spread(finish, 2)(artefact.members(Scale.QUICK), Path(sys.argv[2]), nobody, Sources()))
"""


def test_no_worker_outlives_a_killed_parent_idle_or_not(folder, tmp_path):
    script, out = tmp_path / "spread.py", tmp_path / "out"
    script.write_text(SPREAD)
    out.mkdir()
    arguments = [sys.executable, "-W", "ignore", str(script), str(folder), str(out)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE) as parent:
        try:
            until = time.monotonic() + 60
            while len([path for path in out.iterdir() if path.read_text()]) < 2:
                assert parent.poll() is None
                assert time.monotonic() < until
                time.sleep(0.05)
            parent.kill()
            parent.communicate(timeout=20)  # it ends when the last process that could write has ended
        finally:
            parent.kill()
            for path in out.iterdir():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(path.read_text()), signal.SIGKILL)
    assert len({path.read_text() for path in out.iterdir()}) == 2


@pytest.mark.parametrize(
    ("change", "says"),
    [({"test_error": 0.01}, "was changed"), ({"spec": "[run]\n"}, "not the record of the spec")],
)
def test_an_edited_record_is_refused_and_its_run_named(plan, tmp_path, change, says):
    path = tmp_path / "records.jsonl"
    archive = done(plan, path, tmp_path / "out")
    first, *rest = list(archive)
    path.write_text(record.lines([first | change, *rest]))
    with pytest.raises(RecordError, match=f"{first['name']} {'is ' if 'spec' in change else ''}{says}"):
        Archive(path)


def test_a_sealed_record_that_does_not_fit_its_spec_is_refused(plan, tmp_path):
    path = tmp_path / "records.jsonl"
    first, *_ = done(plan, path, tmp_path / "out")
    bare = [{"spec": text} for text in ("", "run = 3", "[run]\nrounds = 8", first["spec"].replace("seed =", "sead ="))]
    wrong = [{"rounds": 9}, {"seed": 7}, {"algorithm": "outp"}, {"test_error": 0.001}, {"test_error": None}]
    for change in (*wrong, {"curve": {"t": [1, 2]}}, {"curve": []}, *bare, *(one | {"diverged": "so"} for one in bare)):
        path.write_text(record.lines([record.sealed(first | change)]))
        with pytest.raises(RecordError, match=f"Run {first['name']} again"):
            Archive(path)
    path.write_text(record.lines([first, record.sealed(first | {"seconds": 0.0})]))
    with pytest.raises(RecordError, match=f"two records of {first['name']}"):
        Archive(path)


def test_a_record_from_before_a_key_is_that_of_its_default(plan, tmp_path):
    """Else a report would take runs that differ in nothing for runs that differ in that key."""
    archive = done(plan, tmp_path / "records.jsonl", tmp_path / "out")
    first, *rest = archive
    older = record.sealed(first | {"spec": first["spec"].replace("strangers = true\n", "")})
    assert older["spec"] != first["spec"]
    (tmp_path / "older.jsonl").write_text(record.lines([older, *rest]))
    assert Archive(tmp_path / "older.jsonl").records == archive.records


def test_a_run_over_other_data_is_not_adopted(plan, tmp_path):
    archive = done(plan, tmp_path / "records.jsonl", tmp_path / "out")
    kept = Archive(tmp_path / "kept.jsonl")
    first, *_ = archive
    kept.add([record.sealed(first | {"records": 91})])
    with pytest.raises(RecordError, match="is of other data than the runs recorded"):
        reproduce.adopt([tmp_path / "out"], plan, kept)
    mixed = Archive(tmp_path / "mixed.jsonl")
    mixed.add([*kept, *archive])
    with pytest.raises(RecordError, match="another run of the same data is not"):
        mixed.data  # noqa: B018


def test_records_of_another_process_on_the_same_file_are_kept(plan, tmp_path):
    a, b, c, d = done(plan, tmp_path / "records.jsonl", tmp_path / "out")
    path = tmp_path / "shared.jsonl"
    one, other = Archive(path), Archive(path)
    for archive, new in ((one, [a, b]), (other, [record.sealed(b | {"seconds": 0.0}), c]), (one, [d])):
        archive.add(new)
    assert list(Archive(path)) == list(one) == [a, b, c, d]


ADDS = """
import sys
from pathlib import Path
from tacit import record
from tacit.paper.archive import Archive
kept, path, n = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
own, read = Archive(path), record.RecordFile._read
print("ready", flush=True)
sys.stdin.readline()

def slowly(*arguments):
    import time
    read(*arguments)
    time.sleep(0.2)  # between what was read and what is written

record.RecordFile._read = slowly
own.add([record.read(kept)[n]])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no fcntl")
def test_processes_that_add_at_the_same_time_lose_nothing(plan, tmp_path):
    kept, path = tmp_path / "records.jsonl", tmp_path / "shared.jsonl"
    expected = numbers(done(plan, kept, tmp_path / "out"))
    path.write_text('{"spec": "half a li')  # of a process that was killed
    adding = [
        subprocess.Popen([sys.executable, "-c", ADDS, str(kept), str(path), str(n)], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE)
        for n in range(2)
    ]  # fmt: skip
    for process in adding:
        process.stdout.readline()
    for process in adding:
        process.stdin.write(b"\n")
        process.stdin.flush()
    for process in adding:
        process.communicate(timeout=60)
        assert process.returncode == 0
    found = numbers(Archive(path))
    assert len(found) == 2
    assert found.items() <= expected.items()


def test_finished_runs_of_a_sweep_are_adopted_and_others_left(plan, tmp_path):
    grid = tmp_path / "grid.toml"
    grid.write_text("\n".join(line.replace("[grid.", "[") for line in TINY.splitlines()[4:16])
                    .replace("200", "8").replace("50", "2").replace("[0, 1]", "[1, 2]"))  # fmt: skip
    sweep.run(sweep.read(grid), tmp_path / "swept")
    (tmp_path / "swept" / "objp-seed1" / "result.json").unlink()
    archive = Archive(tmp_path / "records.jsonl")
    (adopted,), left = reproduce.adopt([tmp_path / "swept"], plan, archive)
    assert adopted["name"].rpartition("-")[0] == "synthetic-objt-epsilon0.05-seed1"
    assert left == {"recorded": 0, "unfinished": 1, "foreign": 2}
    assert len(plan.waiting(Archive(tmp_path / "records.jsonl"))) == 3
    assert reproduce.adopt([tmp_path / "swept"], plan, archive)[1]["recorded"] == 1
    whole = done(plan, tmp_path / "whole.jsonl", tmp_path / "out")
    assert numbers(whole)[adopted["spec_hash"]][0] == pytest.approx(adopted["objective"], rel=1e-6)


def test_a_run_whose_result_is_not_its_last_round_is_not_adopted(plan, tmp_path):
    done(plan, tmp_path / "records.jsonl", tmp_path / "out")
    result = next((tmp_path / "out" / "runs").glob("*/result.json"))
    result.write_text(json.dumps(json.loads(result.read_text()) | {"test_error": 0.001}))
    with pytest.raises(RunDirectoryError, match=f"run {result.parent.name} again"):
        reproduce.adopt([tmp_path / "out"], plan, Archive(tmp_path / "new.jsonl"))
    with pytest.raises(RunDirectoryError, match="is no directory"):
        reproduce.adopt([tmp_path / "none"], plan, Archive(tmp_path / "new.jsonl"))


def test_what_is_written_is_what_the_report_reads(plan, tmp_path):
    archive = done(plan, tmp_path / "records.jsonl", tmp_path / "out")
    (written,) = reproduce.write(plan, archive, tmp_path / "out", Sources())
    shown = json.loads((written / "artefact.json").read_text())
    assert [panel["title"].partition(" ")[0] for panel in shown["panels"]] == ["objt", "objp"]
    assert shown["panels"][0]["where"] == {"algorithm.name": "objt", "run.preset": "released"}
    assert shown["scale"] == "quick"
    assert shown["printed"][0]["tolerance"] is None  # short runs claim nothing
    assert shown["table"] is None
    assert record.read(written / "records.jsonl") == list(archive)


def test_an_artefact_says_how_many_of_its_runs_are_missing_and_how_many_writers_there_were(plan, tmp_path):
    archive = done(plan, tmp_path / "records.jsonl", tmp_path / "out")
    part = Archive(tmp_path / "part.jsonl")
    part.add(list(archive)[:3])
    (written,) = reproduce.write(plan, part, tmp_path / "out", Sources())
    assert json.loads((written / "artefact.json").read_text())["notes"] == ["1 of 4 runs are not recorded."]
    figure = read_all()["fig3"]
    shown = reproduce.describe(figure, Scale.FULL, [one | {"dataset": "femnist"} for one in archive])
    assert shown["notes"][0].startswith("3 of the paper's 195 writers")
    assert reproduce.describe(figure, Scale.FULL, list(archive))["notes"] == []  # no run of FEMNIST: nothing to say


def test_an_artefact_without_records_is_not_written(plan, tmp_path):
    assert reproduce.write(plan, Archive(tmp_path / "none.jsonl"), tmp_path / "out", Sources()) == []


def test_the_cost_grows_with_the_rounds(folder):
    artefact = read_all(folder)["tiny"]
    short, long = (reproduce.cost(artefact.members(scale), Sources()) for scale in Scale)
    assert 0 < short < long
    assert reproduce.cost([], Sources()) == 0


def test_the_cost_is_that_of_the_largest_batch(folder, monkeypatch):
    short, long = (read_all(folder)["tiny"].members(scale) for scale in Scale)
    timed = []

    def pace(batch):
        timed.append([run.spec for run in batch])
        return 1.0 * len(batch), 0.0  # a second a run

    monkeypatch.setattr(reproduce, "pace", pace)
    for few, many in ((short[:1], long), (long[:1], short)):  # either length comes first in the order of texts
        rounds = sum(member.spec.run.rounds for member in [*few, *many])
        assert reproduce.cost([*few, *many], Sources()) == pytest.approx(rounds)
        expected = [member.spec for member in many]
        (found,) = timed
        timed.clear()
        assert len(found) == len(expected)
        assert all(spec in expected for spec in found)


@pytest.fixture
def leaf(tmp_path):
    """Two writers in LEAF's form, under a name of its own."""
    for part in ("train", "test"):
        (tmp_path / "digits" / part).mkdir(parents=True)
        users = {u: {"x": [[0.1 * n, 1 - 0.1 * n] for n in range(9)], "y": [n % 2 for n in range(9)]} for u in "ab"}
        text = json.dumps({"users": list("ab"), "num_samples": [9, 9], "user_data": users})
        (tmp_path / "digits" / part / "one.json").write_text(text)
    return tmp_path / "digits"


def test_femnist_is_found_by_name_and_no_path_enters_a_spec(folder, tmp_path, leaf):
    (folder / "tiny.toml").write_text(TINY.replace(SYNTHETIC, 'source = "femnist"\nclass_count = 62'))
    plan = Reproduction(choose(["tiny"], read_all(folder)), Scale.QUICK)
    waiting = plan.waiting(Archive(tmp_path / "r.jsonl"))
    assert waiting
    assert not any(Sources().has(member.spec) for _, member in waiting)
    archive = done(plan, tmp_path / "r.jsonl", tmp_path / "out", Sources(leaf))
    for one in archive:
        assert 'source = "femnist"' in one["spec"]
        assert str(tmp_path) not in json.dumps(one)
        assert one["dataset"] == "femnist"
        assert one["changed"] == {}
    with pytest.raises(DataError, match="no LEAF directory"):
        Sources(tmp_path)


def test_other_data_of_a_recorded_name_are_refused(folder, tmp_path, leaf):
    (folder / "tiny.toml").write_text(TINY.replace(SYNTHETIC, 'source = "femnist"\nclass_count = 62'))
    plan = Reproduction(choose(["tiny"], read_all(folder)), Scale.QUICK)
    archive = done(plan, tmp_path / "r.jsonl", tmp_path / "out", Sources(leaf))
    spec = next(iter(plan.runs.values()))[1].spec
    assert Sources(leaf, archive.data)(spec).n_agents == 2
    for part in ("train", "test"):
        text = (leaf / part / "one.json").read_text()
        (leaf / part / "one.json").write_text(text.replace('["a", "b"]', '["a"]').replace("[9, 9]", "[9]"))
    with pytest.raises(RecordError, match="femnist has 1 agents with 9 records here, and had 2 with 18 in the runs"):
        Sources(leaf, archive.data)(spec)
    assert Sources(leaf, archive.data).load(spec).n_agents == 1  # to count them


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [('about = "a grid of four"', "", "no about"), ("[[panels]]", "[[panelz]]", "did you mean 'panels'")],
)
def test_a_bad_artefact_is_refused(folder, old, new, says):
    (folder / "tiny.toml").write_text(TINY.replace(old, new))
    with pytest.raises(SpecError, match=says):
        read_all(folder)


def test_the_audit_table_refutes_what_reads_the_data_and_released_outp_and_not_a_declared_bound():
    given = tables.Given(read_all()["privacy"], [], [], Sources())
    found = tables.audited(given, draws=1000)["table"]["rows"]
    verdicts = {(row[0], row[2], row[3]): row[-1] for row in found}
    assert len(verdicts) == 10
    for (name, about, claim), verdict in verdicts.items():
        if about == "a declared bound":
            assert verdict == "consistent"
        elif about == "a bound read from the data" or claim.startswith("(5"):
            assert verdict == "refuted", name


def test_the_register_says_what_each_way_gives(plan, tmp_path, mnist):
    records = list(done(plan, tmp_path / "records.jsonl", tmp_path / "out"))
    side = {"label": "ObjT", "y": "test_error", "where": {"algorithm.name": "objt"}}
    entry = {"finding": "f", "one": side, "other": side | {"y": "rho"}}
    artefact = Artefact("r", "r", "r", compare=(entry,))
    rows = tables.register(tables.Given(artefact, records, [], Sources()))["table"]["rows"]
    compared, composed, beyond, *steps, read, twice = rows
    errors = [one["test_error"] for one in records if one["algorithm"] == "objt"]
    assert compared == ["f", "ObjT", f"{50 * sum(errors):.2f} %", "ObjT", f"{records[0]['curve']['rho'][-1]:.3g}"]
    assert (composed[2], composed[4]) == ("57.14", "6.809")  # the totals of the accountant's own tests
    assert (beyond[2], beyond[4]) == ("2.585", "4.575")  # below what is stated: the formula happens to hold
    assert [(row[2], row[4]) for row in steps] == [("1.2", "5.8"), ("3.3", "4.3"), ("3.6", "3.8")]
    largest = sorted(mnist.shards[6].x.astype(float).sum(axis=1))
    assert (read[2], read[4]) == (f"{largest[-1]:.1f}", f"{largest[-2]:.1f}")
    assert "--femnist DIR" in twice[2]
