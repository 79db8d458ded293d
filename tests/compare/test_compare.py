"""A comparison gives every method the same rule, says what each one guarantees, and never runs a job twice."""

import json
import shutil
import signal
import threading
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

import tacit
from tacit import record
from tacit.cli import main
from tacit.compare import comparison
from tacit.compare.comparison import held_out
from tacit.compare.job import Job, guarantee
from tacit.compare.plan import plan, read
from tacit.errors import SpecError
from tacit.leaderboard import table
from tacit.leaderboard.table import markdown
from tacit.methods.method import TRIALS, Budget, Curated, Entry
from tacit.methods.promise import Promise, Trusted, Unit, gaussian_releases, no_privacy
from tacit.methods.registry import METHODS
from tacit.privacy.budget import any_guess, best_guess, total
from tacit.privacy.release import GaussianRelease, GeneralRelease
from tacit.problem.sensitivity import Clipped
from tacit.run import build, sweep
from tacit.run.presets import preset
from tacit.run.train import GracefulInterrupt
from tacit.types import Norm

DATA = {"data": "synthetic", "agents": 4, "data.records": 240, "data.features": 6}
FLAGS = ["--data", "synthetic", "--agents", "4", "--set", "data.records=240", "--set", "data.features=6"]
ROUNDS = []  # one entry a round that a fake ran


@dataclass(frozen=True)
class Fake(Curated):
    """Steps along -sign times the pooled gradient: a sign below zero unlearns."""

    sign: float
    multiplier: float = 0.0
    rounds: int = 2
    bound: object = Clipped(Norm.L2, 0.5)

    def promise(self, _task):
        events = gaussian_releases(self.multiplier).each_round
        return Promise(Unit.CLIENT, Trusted.SERVER, events) if events else no_privacy()

    def train(self, records, msg):
        ROUNDS.append(records.seed)
        return msg.w - 50 * self.sign * records.gradients(msg.w, self.bound).sum(0)


def faked(_facts, budget, choice):
    return Fake(choice["sign"], budget.multiplier(2))


def entry(make=faked, signs=(-1.0, -2.0, 1.0, -3.0), rounds=2):
    return Entry("fake", "a method of the tests", make, tuple({"sign": sign, "rounds": rounds} for sign in signs))


@pytest.fixture(autouse=True)
def _in_an_empty_folder_with_a_fake(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(METHODS, "fake", entry())
    ROUNDS.clear()


def compare(out="out", **changes):
    return comparison.run(plan(DATA | {"methods": ["fake"], "seeds": 3} | changes), Path(out))


def records():
    return build.federation(plan(DATA).base)


def test_the_choice_with_the_least_error_on_held_out_records_is_run():
    (standing,) = compare()
    errors = [trial["error"] for trial in standing.trials]
    assert len(errors) == TRIALS
    assert min(errors) == errors[2] < errors[0]
    assert {run["choice"]["sign"] for run in standing.runs} == {1.0}
    assert comparison.best([{"error": None}, {"error": 0.3}, {"error": 0.2}, {"error": 0.2}]) == 2
    assert comparison.best([{"error": None}]) is None


def test_trials_and_runs_share_no_seed_and_runs_have_the_first_ones():
    (standing,) = compare()
    assert [trial["seed"] for trial in standing.trials] == [1000] * TRIALS
    assert [run["seed"] for run in standing.runs] == [0, 1, 2]


def test_tuning_holds_out_a_random_sixth_of_each_agent_and_no_test_record():
    whole = records()
    split = held_out(whole)
    for shard, kept in zip(whole.shards, split.shards, strict=True):
        assert len(kept) == len(shard) - len(shard) // 6
        ours, theirs = ({row.tobytes() for row in part.x} for part in (kept, shard))
        assert ours < theirs
        judging = {row.tobytes() for row in split.test.x} & theirs
        assert ours | judging == theirs
        assert not ours & judging
        assert judging != {row.tobytes() for row in shard.x[-len(judging) :]}  # a file may be sorted by label
    assert len(split.test) == sum(len(shard) // 6 for shard in whole.shards)


def test_the_noise_of_a_trial_is_that_of_the_records_it_has():
    whole, spec = records(), Job(plan(DATA).base, "fedgd", METHODS["fedgd"].grid[0], Budget(1.0), 0, "run").run_spec
    part = build.setup(spec, held_out(whole))
    assert part.problem.weight == pytest.approx(build.setup(spec, whole).problem.weight * 6 / 5)


def test_a_row_has_the_mean_and_the_percentiles_of_its_seeds():
    (standing,) = compare(seeds=5)
    for run, error in zip(standing.runs, (0.5, 0.1, 0.3, 0.2, 0.4), strict=True):
        run["error"] = error
    (row,) = table.rows([standing])
    assert (row["error_mean"], row["error_20"], row["error_80"]) == pytest.approx((0.3, 0.18, 0.42))
    assert row["sent_bytes"] == 0.0  # a curator has the records
    assert "30.00% | 18.00-42.00" in markdown([row])


def test_the_guarantee_is_the_accountants_total_of_the_method_as_built():
    rows = {row["method"]: row for row in table.rows(compare(methods=["fake", "fedgd", "objt"], epsilon=2.0, seeds=1))}
    fake = total([(GaussianRelease(Budget(2.0).multiplier(2)), 2)], 1e-6)
    assert rows["fake"]["epsilon"] == fake.epsilon
    assert rows["fake"]["guarantee"].endswith("one agent with all of its records added or removed")
    assert rows["fake"]["trusted"] == "server"
    fedgd = total([(GaussianRelease(Budget(2.0).multiplier(100)), 100)], 1e-6)
    assert rows["fedgd"]["epsilon"] == fedgd.epsilon <= 2.0
    assert rows["fedgd"]["best_guess"] == best_guess(fedgd, 1e-6) < any_guess(2.0, 1e-6) - 0.2
    values = {"data.records": 240, "privacy.epsilon": 2.0, "run.seed": 0}
    spec = preset("sound", "objt", "synthetic").with_values(values)
    assert rows["objt"]["epsilon"] == tacit.train(spec).summary["epsilon"]


def test_what_gives_no_guarantee_is_labelled_and_stands_below_what_does(monkeypatch, capsys):
    bare = entry(lambda _task, _budget, choice: Fake(choice["sign"]))
    monkeypatch.setitem(METHODS, "bare", Entry("bare", "", bare.build, bare.grid))
    assert main(["compare", *FLAGS, "--methods", "bare,fake", "--seeds", "2", "--out", "o", "-q"]) == 0
    out = capsys.readouterr().out
    assert out.index("\nfake ") < out.index("\nbare ")
    assert "not private: no noise is added." in out
    assert "tuning: each method tries up to 4 choices" in out
    assert "tuning looked at the data as they are" in out
    figure = Path("o/error-epsilon1.svg").read_text()
    assert "bare (not private)" in figure
    assert "fake (client, server)" in figure


def test_a_promise_without_a_release_or_beyond_the_budget_is_no_guarantee_of_it():
    empty = guarantee(Promise(Unit.RECORD, Trusted.NOBODY), 3, Budget(1.0))
    assert (empty["private"], empty["guarantee"]) == (False, "not private: it declares no release.")
    dear = guarantee(gaussian_releases(1.0), 3, Budget(1.0))
    assert dear["guarantee"].endswith("more than the budget")


def test_epsilons_added_up_are_shown_with_the_deltas_that_go_with_them():
    told = guarantee(Promise(Unit.RECORD, Trusted.NOBODY, ((GeneralRelease(0.5, 1e-7), 1),)), 1, Budget(1.0, 1e-7))
    assert told["guarantee"].startswith("(0.5, 1e-07)-DP in all (basic)")
    assert told["best_guess"] == pytest.approx(any_guess(0.5, 1e-7))


def test_without_noise_nothing_is_private(capsys):
    assert main(["compare", *FLAGS, "--methods", "fake,objp", "--epsilon", "inf", "--seeds", "1", "-q", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert [row["private"] for row in said["rows"]] == [False, False]
    assert {row["guarantee"] for row in said["rows"]} == {"not private: no noise is added."}
    assert Path("runs/compare-synthetic/error-epsiloninf.svg").exists()


OWN = [name for name, one in METHODS.items() if one.is_admm and one.ranked]


@pytest.mark.parametrize("name", [*OWN, "fedgd", "secure-sum"])
def test_a_job_gives_what_train_gives_under_the_sound_preset(name):
    grid = METHODS[name].grid
    jobs = [Job(plan(DATA).base, name, grid[0], Budget(3.0), seed, "run") for seed in (0, 1)]
    values = {"data.agents": 4, "data.records": 240, "data.features": 6, "privacy.epsilon": 3.0}
    ended = list(comparison.run_jobs(jobs, records()))
    assert [job.seed for job, _ in ended] == [0, 1]
    for job, outcome in ended:
        spec = preset("sound", name, "synthetic").with_values(values | {"run.seed": job.seed})
        result = tacit.train(spec)
        assert outcome.error == result.test_error
        assert guarantee(outcome.promise, 100, job.budget)["epsilon"] == result.summary["epsilon"]
        width = 8 if name == "secure-sum" else 4  # bytes of a number
        assert outcome.sent == 100 * width * records().n_features * 3


def test_a_finished_comparison_is_read_and_a_cut_one_goes_on():
    first = compare()
    path = Path("out/records.jsonl")
    lines = path.read_text().splitlines(keepends=True)
    assert len(lines) == TRIALS + 3
    ROUNDS.clear()
    assert compare() == first
    assert ROUNDS == []
    path.write_text("".join(lines[:-2]) + lines[-2][:40])  # killed while it wrote
    again = compare()
    assert len(ROUNDS) == 2 * 2
    assert [run["error"] for run in again[0].runs] == [run["error"] for run in first[0].runs]
    ROUNDS.clear()
    compare(seeds=4)
    assert ROUNDS == [3, 3]


def test_each_record_is_sealed_and_holds_its_complete_spec():
    compare()
    records = record.read(Path("out/records.jsonl"))
    assert [one["role"] for one in records] == ["trial"] * TRIALS + ["run"] * 3
    assert len({one["spec_hash"] for one in records}) == TRIALS + 3
    for key in ('source = "synthetic"', 'name = "fake"', "sign = 1.0", "epsilon = 1.0", "seed = 0", 'row_norm = "l2"'):
        assert sum(key in one["spec"] for one in records) >= 1


def test_an_edited_record_is_refused(capsys):
    compare()
    path = Path("out/records.jsonl")
    path.write_text(path.read_text().replace('"error": 0.', '"error": 0.0', 1))
    assert main(["compare", *FLAGS, "--methods", "fake", "--out", "out", "-q"]) == 2
    assert "was changed after it was written" in capsys.readouterr().err


def test_a_place_that_cannot_be_written_is_refused_before_anything_runs(capsys):
    Path("file").touch()
    for out in ("file", "file/deeper"):
        assert main(["compare", *FLAGS, "--methods", "fake", "--out", out, "-q"]) == 2
        assert "cannot write into file" in capsys.readouterr().err
    assert ROUNDS == []


def test_a_file_of_something_else_keeps_its_unfinished_line():
    Path("o").mkdir()
    Path("o/records.jsonl").write_text('{"spec": "x"}\nhalf a li')
    assert main(["compare", *FLAGS, "--methods", "fake", "--out", "o", "--plan"]) == 2
    assert Path("o/records.jsonl").read_text().endswith("half a li")


def test_records_of_something_else_are_refused(capsys):
    Path("out").mkdir()
    Path("out/records.jsonl").write_text(record.lines([record.sealed({"name": "objt", "spec": "[run]\n"})]))
    assert main(["compare", *FLAGS, "--methods", "fake", "--out", "out", "-q"]) == 2
    assert "name another --out" in capsys.readouterr().err


@pytest.mark.parametrize(("rounds", "recorded"), [(400, TRIALS), (1, TRIALS + 2)])
def test_an_interruption_waits_for_the_round_and_the_rest_goes_on(rounds, recorded, monkeypatch, capsys):
    """In one of 400 rounds it ends the two runs; in the last round they are done, and the third does not begin."""
    heard, interrupted = threading.Event(), []

    def hear(self, _number, _frame):
        self.asked = True
        heard.set()

    class Stopping(Fake):
        def train(self, records, msg):
            if records.seed == 1 and not interrupted:
                interrupted.append(msg.t)
                signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
                assert heard.wait(60)
            return super().train(records, msg)

    def stopping(_task, budget, choice):
        return Stopping(choice["sign"], budget.multiplier(rounds), rounds)

    monkeypatch.setattr(GracefulInterrupt, "_hear", hear)
    monkeypatch.setattr(sweep, "LANES", 2)  # the first two seeds together, then the third
    monkeypatch.setitem(METHODS, "fake", entry(stopping, rounds=rounds))
    arguments = ["compare", *FLAGS, "--methods", "fake", "--seeds", "3", "--out", "o", "-q"]
    assert main(arguments) == 130
    assert "again to go on" in capsys.readouterr().err
    assert len(record.read(Path("o/records.jsonl"))) == recorded
    assert main(arguments) == 0
    assert len(record.read(Path("o/records.jsonl"))) == TRIALS + 3


def test_a_choice_that_diverges_or_is_refused_is_recorded_and_the_others_go_on(monkeypatch):
    def make(_task, budget, choice):
        if choice["sign"] == 0:
            raise tacit.errors.SpecError("no such sign.")
        return Fake(choice["sign"], budget.multiplier(2))

    monkeypatch.setitem(METHODS, "fake", entry(make, (0.0, 1e308, 1.0, -1.0)))
    (standing,) = compare()
    assert standing.trials[0]["failed"] == "no such sign."
    assert standing.trials[1]["failed"].startswith("diverged in round")
    assert standing.runs[0]["choice"]["sign"] == 1.0
    monkeypatch.setitem(METHODS, "fake", entry(make, (0.0, 1e308, -1e308, 1.7e308)))
    (row,) = table.rows(compare("other"))
    assert row["error_mean"] is None
    assert "no model, 4 of 4: " in markdown([row])


@pytest.mark.parametrize(("arguments", "says"), [
    (["--methods", "fedgg"], "did you mean 'fedgd'"),
    (["--methods", "fake,fake"], "names one twice"),
    (["--epsilon", "0"], "epsilon is a total budget"),
    (["--epsilon", "-1"], "epsilon is a total budget"),
    (["--epsilon", "nan"], "epsilon is a total budget"),
    (["--epsilon", "1,1"], "several that differ"),
    (["--epsilon", "one"], "--epsilon takes numbers"),
    (["--dp-delta", "0"], "dp_delta must lie between"),
    (["--dp-delta", "1"], "dp_delta must lie between"),
    (["--seeds", "0"], "from 1 to 1000"),
    (["--seeds", "1001"], "from 1 to 1000"),
    (["--set", "problem.beta=1"], "takes no problem.beta"),
    (["--set", "data.recods=1"], "did you mean 'data.records'"),
    (["--set", "data.row_norm=none"], "bounded in l2"),
    (["--data", "mnits"], "did you mean 'mnist'"),
    (["--agents", "120"], "held out for tuning"),
    (["--config", "absent.toml"], "cannot read absent.toml"),
    (["--trust", "everybody"], "trust takes sum"),
    (["--trust", "nobody"], "trust takes sum"),
    (["--trust", "sum", "--methods", "fedgd,dpsgd"], "dpsgd cannot go behind a secure sum, because"),
    (["--trust", "sum", "--methods", "objt-laplace"], "use objp, objt, fedgd or onemessage"),
])  # fmt: skip
def test_bad_input_is_one_line_exit_code_2_and_nothing_left_behind(capsys, tmp_path, arguments, says):
    assert main(["compare", *FLAGS, "--methods", "fake", "--out", "o", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert says in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


CONFIG = """
[compare]
data = "synthetic"
agents = 4
epsilon = [1, inf]
methods = ["fake"]
seeds = 2
[data]
records = 240
features = 6
"""


def test_a_file_says_it_all_and_epsilon_may_be_a_list(capsys):
    Path("board.toml").write_text(CONFIG)
    assert main(["compare", "--config", "board.toml", "--plan"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "epsilon 1  fake: 4 trials (0 done), 2 runs", "epsilon inf  fake: 4 trials (0 done), 2 runs",
    ]  # fmt: skip
    assert main(["compare", "--config", "board.toml", "-q", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [(row["budget_epsilon"], row["private"]) for row in rows] == [(1.0, True), (None, False)]
    assert len(record.read(Path("runs/board/records.jsonl"))) == 2 * (TRIALS + 2)


@pytest.mark.parametrize(("old", "new", "says"), [
    ("seeds = 2", "seedz = 2", "did you mean 'seeds'"),
    ("seeds = 2", 'seeds = "2"', "from 1 to 1000"),
    ('["fake"]', "[]", "methods takes a list"),
    ('["fake"]', '["fak"]', "did you mean 'fake'"),
    ("[1, inf]", "[]", "one value, or several"),
    ("[data]", "[privacy]", "not [privacy]"),
    ('"synthetic"', "3", "a name or a path"),
])  # fmt: skip
def test_a_bad_file_is_refused(capsys, old, new, says):
    Path("board.toml").write_text(CONFIG.replace(old, new))
    assert main(["compare", "--config", "board.toml"]) == 2
    assert says in capsys.readouterr().err


def test_the_list_has_every_method_with_all_that_it_declares(capsys, monkeypatch):
    monkeypatch.delitem(METHODS, "fake")
    assert main(["compare", "--list", "--json"]) == 0
    listed = {one["name"]: one for one in json.loads(capsys.readouterr().out)}
    assert list(listed) == list(METHODS)
    root = Path(__file__).parents[2]
    for one in listed.values():
        assert one.keys() >= {"about", "unit", "trusted", "events", "guarantee", "docs", "grid"}
        assert len(one["grid"]) == TRIALS
        assert one["epsilon"] <= 1 if one["private"] else one["guarantee"].startswith("not private: ")
        assert (root / one["docs"]).is_file()
    assert listed["fedgd"]["events"] == "each round: 1 Gaussian"
    assert main(["compare", "--list"]) == 0
    assert "objt-laplace" in capsys.readouterr().out


def test_trust_in_a_sum_takes_every_method_that_needs_sums_alone_and_the_page_says_whom_it_trusts(capsys):
    asked = plan(DATA | {"trust": "sum"})
    assert asked.methods == ("objp", "objt", "fedgd", "onemessage")
    flags = ["--methods", "fedgd,secure-sum,objt", "--seeds", "1", "--rounds", "3", "--out", "o", "-q"]
    assert main(["compare", *FLAGS, *flags, "--trust", "sum"]) == 0
    told = capsys.readouterr().out
    assert "trusts a secure sum: it holds against the server and any 1 of the 4 agents together" in told
    assert "trusts nobody" not in told
    kept = record.read(Path("o/records.jsonl"))
    assert {one["trusted"] for one in kept} == {"sum"}
    assert all('trust = "sum"' in one["spec"] for one in kept)
    fedgd, by_name = ([one["error"] for one in kept if one["method"] == name] for name in ("fedgd", "secure-sum"))
    assert fedgd == by_name
    assert main(["compare", *FLAGS, *flags, "--json"]) == 0  # without trust: other runs, under hashes of their own
    rows = {row["method"]: row for row in json.loads(capsys.readouterr().out)["rows"]}
    assert [rows[name]["trusted"] for name in ("fedgd", "secure-sum", "objt")] == ["nobody", "sum", "nobody"]
    assert len(record.read(Path("o/records.jsonl"))) == 2 * len(kept)


def test_without_noise_a_sum_is_no_guarantee_and_methods_that_are_deployed_refuse_it(capsys):
    flags = ["--methods", "fedgd,objt", "--seeds", "1", "--rounds", "3", "--epsilon", "inf", "-q", "--json"]
    assert main(["compare", *FLAGS, *flags, "--trust", "sum"]) == 0
    fedgd, objt = json.loads(capsys.readouterr().out)["rows"]
    assert (fedgd["method"], fedgd["guarantee"]) == ("fedgd", "not private: no noise is added.")
    assert fedgd["error_mean"] is not None
    assert "a finite epsilon" in objt["failed"]


def test_trust_is_a_key_of_a_file(capsys):
    Path("board.toml").write_text(CONFIG.replace('methods = ["fake"]', 'methods = ["fedgd"]\ntrust = "sum"'))
    assert plan(read(Path("board.toml"))).trust == "sum"
    Path("board.toml").write_text(CONFIG.replace("seeds = 2", 'seeds = 2\ntrust = "sum"'))
    assert main(["compare", "--config", "board.toml"]) == 2
    assert "fake cannot go behind a secure sum" in capsys.readouterr().err


def test_a_job_that_names_no_trust_keeps_the_hash_of_its_spec():
    job = Job(plan(DATA).base, "fedgd", METHODS["fedgd"].grid[0], Budget(1.0), 0, "run")
    assert "trust" not in job.spec
    assert replace(job, trust="sum").spec.count('trust = "sum"') == 1


def test_a_cap_on_rounds_holds_for_every_choice_and_equal_choices_run_once(tmp_path):
    capped = plan(DATA | {"methods": ["objt", "outp-huang"], "seeds": 1, "rounds": 2})
    for standing in comparison.run(capped, tmp_path):
        assert {one["rounds"] for one in (*standing.trials, *standing.runs)} == {2}
    lines = (tmp_path / "records.jsonl").read_text().splitlines()
    assert len(lines) == (4 + 1) + (2 + 1)  # two of outp's four choices differ in rounds alone


@pytest.mark.parametrize("rounds", [0, -1, 1.5, True])
def test_a_cap_that_is_no_number_of_rounds_is_refused(rounds):
    with pytest.raises(SpecError, match="at least 1"):
        plan({"rounds": rounds})


@pytest.mark.parametrize("board", ["leaderboard-mnist", "leaderboard-mnist-pixels", "leaderboard-heart"])
def test_committed_records_are_found_again_though_specs_have_more_keys_by_now(board, tmp_path, capsys):
    folder = Path(__file__).parents[2] / "records"
    shutil.copytree(folder / board, tmp_path / board)
    assert main(["compare", "--config", str(folder / f"{board}.toml"), "--out", str(tmp_path / board), "--plan"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines
    assert all("(4 done)" in line for line in lines)


@pytest.mark.parametrize("data", ["mnist", "femnist", "adult", "heart"])
def test_the_leaderboards_with_features_are_plans_of_five_seeds_at_four_budgets(data, monkeypatch):
    monkeypatch.chdir(Path(__file__).parents[2])  # where the schema of Adult is found
    found = plan(read(Path("records") / f"leaderboard-{data}.toml"))
    assert found.base.features.map == "auto"
    assert sorted(found.epsilons) == [0.5, 1.0, 3.0, 8.0]
    assert found.seeds == 5
