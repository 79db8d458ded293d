"""Every method of the registry is trained, resumed, swept and reported alike: one registry, one run directory."""

import json
import math
import re
import warnings

import numpy as np
import pytest

from tacit import toml
from tacit.cli import main
from tacit.errors import IncompatibleError, Interrupted, NotPrivateWarning, SpecError
from tacit.methods.registry import METHODS, key_of
from tacit.privacy.budget import any_guess
from tacit.privacy.summed import gap
from tacit.run import build, sweep
from tacit.run.noise import deployable
from tacit.run.presets import preset
from tacit.run.spec import Spec
from tacit.run.train import resume, train
from tests.run.test_train import quiet_train

SMALL = {"data.source": "synthetic", "data.agents": 3, "data.records": 90, "data.features": 4}
BEHIND_SUMS = ("secure-sum", "onemessage-sum")  # by name: a simulation, unless exact noise is asked for
OTHERS = [name for name, entry in METHODS.items() if not entry.is_admm]


def spec_of(name, **values):
    """A short run of a method on small data."""
    rounds = {"run.rounds": 4} if METHODS[name].is_admm or "rounds" in METHODS[name].grid[0] else {}
    return preset("sound", name, "synthetic").with_values(SMALL | rounds | values)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_writes_the_same_run_directory_and_a_page(name, tmp_path, capsys):
    out = tmp_path / "run"
    spec = spec_of(name)
    flags = [f"--set={key}={value}" for key, value in SMALL.items() if key != "data.source"]
    arguments = ["train", "--algorithm", name, "--data", "synthetic", *flags, "--out", str(out), "-q", "--json"]
    assert main([*arguments, *(["--rounds", str(spec.run.rounds)] if spec.run.rounds != 1 else [])]) == 0
    told = json.loads(capsys.readouterr().out)
    files = {"spec.toml", "rounds.jsonl", "result.json", "model.npz", "report.html"}
    exact = deployable(spec) and name not in BEHIND_SUMS
    assert {path.name for path in out.iterdir()} == (files | {"ledgers"} if exact else files)
    assert (told["seed"] is None) == (told["ledger_heads"] is not None) == exact
    assert told["algorithm"] == name
    assert told["guarantee"].startswith(("not private: ", "(1, 1e-06)-DP", "(0.9"))
    assert (told["epsilon"] is None) == told["guarantee"].startswith("not private")
    assert told["epsilon"] is None or 0.5 < told["epsilon"] <= 1
    assert (told["best_guess"] is None) == (told["epsilon"] is None)
    assert told["epsilon"] is None or 0.5 < told["best_guess"] <= any_guess(told["epsilon"], told["dp_delta"])
    assert told["sent_bytes"] >= 0
    assert told["guarantee"].split(":")[0] in (out / "report.html").read_text()


@pytest.mark.parametrize("name", OTHERS)
def test_a_run_that_is_stopped_ends_where_an_uninterrupted_one_does(name, tmp_path):
    spec = spec_of(name, **{"run.seed": 0})
    if spec.run.rounds == 1:
        pytest.skip("a run of one round is not stopped between rounds")
    whole = quiet_train(spec)

    def stop(done, _row):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted):
        quiet_train(spec, out=tmp_path / "run", listener=stop)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        again = resume(tmp_path / "run")
    np.testing.assert_array_equal(again.w, whole.w)
    assert again.summary["sent_bytes"] == whole.summary["sent_bytes"]


def test_a_sweep_takes_every_method_and_runs_equal_ones_together(tmp_path):
    grid = tmp_path / "grid.toml"
    grid.write_text(
        '[data]\nsource = "synthetic"\nagents = 3\nrecords = 90\nfeatures = 4\n[algorithm]\n'
        'name = ["objt", "fedgd", "secure-sum"]\n[run]\nrounds = 4\nseed = [0, 1]\n'
    )
    members = sweep.read(grid)
    records = sweep.run(members, tmp_path / "out")
    assert [one["algorithm"] for one in records] == ["objt", "objt", "fedgd", "fedgd", "secure-sum", "secure-sum"]
    alone = quiet_train(members[3].spec)
    assert records[3]["test_error"] == alone.test_error
    batches = [len(batch) for batch in sweep.batches(members, build.federation, sweep.fresh)]
    assert sorted(batches) == [2, 2, 2]


@pytest.mark.parametrize("name", OTHERS)
def test_the_constants_of_a_method_are_keys_of_its_spec(name):
    spec, entry = spec_of(name), METHODS[name]
    values = spec.values()
    for constant, value in entry.grid[0].items():
        if constant != "rounds":
            assert values[key_of(constant)] == value
    assert build.setup(spec, build.federation(spec)).hosted.method.rounds == spec.run.rounds


@pytest.mark.parametrize(("values", "says"), [
    ({"method.local_stepz": 2}, "did you mean 'local_steps'"),
    ({"method.local_steps": "many"}, "takes a number"),
    ({"schedule.rho": "static"}, "does not read schedule.rho"),
    ({"algorithm.order": "zwd"}, "does not read algorithm.order"),
    ({"privacy.adjacency": "replace_one"}, "not for replace_one"),
    ({"run.engine": "plain"}, "no plain engine"),
    ({"data.row_norm": "none"}, "bounded in l2"),
    ({"method.local_steps": 0}, "above 0"),
    ({"method.local_steps": 1.5}, "whole number"),
    ({"method.local_steps": math.inf}, "finite"),
    ({"method.share": 1.5}, "at most 0.999"),
    ({"method.share": -0.5}, "at least 0"),
    ({"privacy.noise": "exact"}, r"cannot be deployed, .*docs/adding-a-method\.md"),
])  # fmt: skip
def test_what_a_method_does_not_read_is_refused(values, says):
    with pytest.raises((IncompatibleError, SpecError), match=says):
        train(spec_of("objp-local", **values))


def test_exact_noise_is_refused_for_a_method_that_draws_none_when_it_is_set_up():
    spec = spec_of("objp-local", **{"privacy.noise": "exact"})
    with pytest.raises(IncompatibleError, match="cannot be deployed"):
        build.setup(spec, build.federation(spec))


@pytest.mark.parametrize(("name", "values", "says"), [
    ("secure-sum", {"privacy.colluding": 0}, "at least 1"),
    ("secure-sum", {"method.colluding": 0}, "privacy.colluding must be at least 1"),  # its name in earlier versions
    ("secure-sum", {"privacy.colluding": 2}, "with 2 that may collude it needs 4 agents, and there are 3"),
    ("secure-sum", {"data.agents": 2}, "needs 3 agents"),
    ("secure-sum", {"privacy.trust": "nobody"}, "secure-sum is behind a secure sum by name"),
    ("fedgd", {"privacy.colluding": 1}, "privacy.colluding is of a secure sum"),
    ("fedgd", {"privacy.trust": "sum", "privacy.repetitions": -1}, "at least 0"),
    ("cpsgd", {"privacy.noise": "exact"}, r"cpsgd cannot be deployed, .*docs/adding-a-method\.md"),
    ("fedgd", {"privacy.trust": "sum", "privacy.adjacency": "replace_one"}, "not for replace_one"),
    ("dpsgd", {"privacy.trust": "nobody"}, "dpsgd does not read privacy.trust"),
    ("onemessage", {"method.balance": 0}, "above 0"),
    ("onemessage", {"method.balance": 1e4}, "from 0.001 to 1000"),
    ("onemessage", {"data.features": 5000}, "use fewer features"),
    ("onemessage", {"run.rounds": 3}, "takes 1 round"),
    ("onemessage", {"privacy.clip": 0.1}, "does not read privacy.clip"),
    ("onemessage", {"privacy.adjacency": "replace_one"}, "not for replace_one"),
    ("onemessage-sum", {"privacy.colluding": 0}, "at least 1"),
    ("onemessage-sum", {"privacy.colluding": 50}, "needs 52 agents"),
    ("dp-fedavg", {"privacy.adjacency": "replace_one"}, "not for replace_one"),
    ("fedavg", {"privacy.epsilon": 1.0}, "adds no noise"),
    ("fedgd", {"problem.domain": "ball"}, "drop problem.domain"),
    ("fedgd", {"method.foo": 1}, "no constants of its own"),
    ("pvp", {"problem.loss": "squared"}, "bounded gradients"),
    ("outp-huang", {"problem.loss": "squared"}, "bounded gradients"),
    ("amp", {"method.jacobian": 1.5}, "at most 0.999"),
    ("fedprox", {"method.step": 0}, "above 0"),
    ("outp-released", {"privacy.noise": "exact"}, "outp-released cannot be deployed"),
    ("dpsgd", {"privacy.noise": "exact"}, "dpsgd cannot be deployed"),
    ("fedgd", {"privacy.noise": "exact", "privacy.epsilon": math.inf}, "without noise there is nothing to deploy"),
    ("outp", {"privacy.noise": "exact", "problem.domain": "box"}, "the prox rule with the domain everywhere"),
    ("outp", {"privacy.noise": "exact", "algorithm.rule": "trust"}, "Noise on a step"),
    ("outp", {"privacy.noise": "exact", "privacy.trust": "sum"}, "outp cannot go behind a secure sum"),
    ("outp-huang", {"privacy.noise": "exact", "problem.domain": "box"}, "drop problem.domain"),
    ("outp-plus", {"privacy.noise": "exact", "privacy.trust": "sum"}, "outp-plus cannot go behind a secure sum"),
])  # fmt: skip
def test_what_a_method_cannot_do_is_refused_before_anything_is_written(name, values, says, tmp_path):
    with pytest.raises((IncompatibleError, SpecError), match=says):
        train(spec_of(name, **values), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


CANNOT = [name for name, entry in METHODS.items() if not entry.sums]
CAN = "objp, objt, fedgd or onemessage"


@pytest.mark.parametrize("name", CANNOT)
def test_a_method_that_needs_more_than_sums_is_refused_a_secure_sum_with_the_reason(name, capsys, tmp_path):
    out = tmp_path / "run"
    assert main(["train", "--algorithm", name, "--data", "synthetic", "--trust", "sum", "--out", str(out)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert f"{name} cannot go behind a secure sum" in said
    assert "because" in said
    assert CAN in said or METHODS[name].is_admm
    assert not out.exists()


@pytest.mark.parametrize("name", [name for name in METHODS if name not in CANNOT])
def test_a_method_that_says_it_takes_a_sum_has_one(name):
    spec = spec_of(name, **{"privacy.trust": "sum", "run.seed": 0})
    told = quiet_train(spec).summary
    assert "trusts a secure sum: it holds against the server and any 1 of the 3 agents together" in told["guarantee"]
    assert 0.99 < told["epsilon"] <= 1


@pytest.mark.parametrize(("name", "plain"), [("secure-sum", "fedgd"), ("onemessage-sum", "onemessage")])
def test_a_method_told_to_trust_a_sum_is_the_one_whose_name_says_so(name, plain):
    seeded = {"run.seed": 0}
    by_name, by_trust = (
        quiet_train(spec) for spec in (spec_of(name, **seeded), spec_of(plain, **seeded, **{"privacy.trust": "sum"}))
    )
    np.testing.assert_array_equal(by_name.w, by_trust.w)
    assert by_name.guarantee == by_trust.guarantee
    assert by_name.summary["sent_bytes"] == by_trust.summary["sent_bytes"]
    assert (by_name.w != quiet_train(spec_of(plain, **seeded)).w).any()


@pytest.mark.parametrize("name", ["secure-sum", "onemessage-sum"])
def test_a_spec_of_an_earlier_version_names_its_colluding_agents_elsewhere_and_no_trust(name):
    spec = spec_of(name, **{"data.agents": 5, "privacy.colluding": 2})
    old = spec.toml().replace('trust = "sum"\n', "").replace("colluding = 2\n", "")
    assert old.count("\n") == spec.toml().count("\n") - 2
    read = Spec().with_values(toml.parsed(old, "old") | {"method.colluding": 2.0})
    assert read == spec.with_values({"privacy.trust": None})
    then, now = quiet_train(read), quiet_train(spec)
    np.testing.assert_array_equal(then.w, now.w)
    assert then.guarantee == now.guarantee


def test_delta_is_kept_back_for_the_integers_of_a_sum_and_covers_them():
    spec = spec_of("fedgd", **{"privacy.trust": "sum"})
    setup = build.setup(spec, build.federation(spec))
    told = quiet_train(spec).summary
    sum_ = setup.hosted.method.behind(setup.hosted.task.facts)
    assert 0 < sum_.cost(1.0) < told["dp_delta"] - told["accounted_delta"] < told["dp_delta"]
    assert sum_.cost(1.0) == pytest.approx((1 + math.e) * 4 * gap(sum_.attempt.share_steps, 2, 12))
    assert setup.promise.total(4, told["accounted_delta"]).epsilon <= 1
    with pytest.raises(IncompatibleError, match=r"the integers of a secure sum cost .* of delta at epsilon 30"):
        train(spec.with_values({"privacy.epsilon": 30.0}))


def test_repetitions_cost_noise_and_are_said():
    plain, again = (
        quiet_train(spec_of("fedgd", **{"privacy.trust": "sum", "privacy.repetitions": r})) for r in (0, 4)
    )
    assert "the whole run of 4 rounds and up to 4 repetitions" in again.guarantee
    assert "repetitions" not in plain.guarantee
    multipliers = [float(re.search(r"noise of ([\d.]+) sensitivities", one.guarantee)[1]) for one in (plain, again)]
    assert multipliers[1] == pytest.approx(multipliers[0] * math.sqrt(2), rel=1e-3)  # twice the releases


def test_without_noise_a_sum_is_run_and_promises_nothing():
    values = {"privacy.epsilon": math.inf}
    hidden = quiet_train(spec_of("fedgd", **{"privacy.trust": "sum"} | values))
    assert hidden.guarantee.startswith("not private: no noise is added")
    np.testing.assert_allclose(hidden.w, quiet_train(spec_of("fedgd", **values)).w, rtol=1e-9)


def test_a_sweep_compares_trust_in_nobody_with_trust_in_a_sum(tmp_path):
    grid = tmp_path / "grid.toml"
    grid.write_text(
        '[data]\nsource = "synthetic"\nagents = 3\nrecords = 90\nfeatures = 4\n[algorithm]\n'
        'name = ["fedgd", "objt"]\n[privacy]\ntrust = ["nobody", "sum"]\n[run]\nrounds = 4\nseed = [0, 1]\n'
    )
    members = sweep.read(grid)
    records = {one["name"]: one for one in sweep.run(members, tmp_path / "out")}
    assert len(records) == 8
    for member in members:
        one = records[member.name]
        assert ("trusts a secure sum" in one["guarantee"]) == (member.spec.privacy.trust == "sum")
        assert one["test_error"] == quiet_train(member.spec).test_error


def test_a_constant_that_a_spec_leaves_out_has_its_default():
    spec = preset("sound", "dpsgd", "synthetic").with_values(SMALL | {"algorithm.name": "dpsgd-local", "run.rounds": 4})
    steps = build.setup(spec, build.federation(spec)).hosted.method.local_steps
    assert steps == METHODS["dpsgd-local"].grid[0]["local_steps"]


def test_a_guarantee_for_a_whole_agent_does_not_call_what_tells_of_agents_public():
    told = quiet_train(spec_of("dp-fedavg")).summary
    assert told["adjacency"] == "client"
    assert not any("which are taken to be public" in line and "names of agents" in line for line in told["not_covered"])
    assert any("tell who took part" in line for line in told["not_covered"])
    assert "1 round" in quiet_train(spec_of("kifer")).guarantee


def test_the_server_of_a_run_holds_no_record():
    setup = build.setup(spec_of("fedgd"), build.federation(spec_of("fedgd")))
    assert not hasattr(setup.server.facts, "shards")


def test_a_sweep_with_a_run_that_is_refused_leaves_nothing(tmp_path):
    grid = tmp_path / "grid.toml"
    grid.write_text('[data]\nsource = "synthetic"\n[algorithm]\nname = ["fedgd", "amp"]\n[run]\nrounds = 4\n')
    assert main(["sweep", "--config", str(grid), "--out", str(tmp_path / "out"), "-q"]) == 2
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("arguments", "code"), [
    (["--algorithm", "fedgd", "--draws", "200"], 0),
    (["--algorithm", "fedgd", "--trust", "sum", "--draws", "200"], 0),
    (["--algorithm", "onemessage", "--trust", "sum", "--colluding", "5", "--draws", "200"], 0),
    (["--algorithm", "dpsgd", "--trust", "sum"], 2),
    (["--algorithm", "dp-fedavg", "--set", "method.rate=0.3", "--draws", "200"], 0),
    (["--algorithm", "onemessage", "--set", "method.balance=2", "--draws", "200"], 0),
    (["--algorithm", "onemessage", "--adjacency", "replace_one"], 2),
    (["--algorithm", "fedgd", "--adjacency", "replace_one"], 2),
    (["--algorithm", "fedgd", "--noise", "exact"], 2),
    (["--algorithm", "dpsgd", "--preset", "paper"], 2),
    (["--algorithm", "fedgd", "--what", "run"], 2),
])  # fmt: skip
def test_an_audit_takes_the_spec_of_every_method_and_refuses_what_training_refuses(arguments, code, capsys):
    assert main(["audit", *arguments]) == code
    assert capsys.readouterr().err.count("\n") == (code == 2)


def test_a_preset_of_the_paper_is_refused_for_other_methods(capsys):
    assert main(["train", "--preset", "paper", "--algorithm", "fedgd"]) == 2
    assert "use sound" in capsys.readouterr().err


def test_a_method_that_nobody_knows_is_refused_by_name(capsys):
    assert main(["train", "--algorithm", "fedgg"]) == 2
    assert "did you mean 'fedgd'" in capsys.readouterr().err


def test_a_constant_of_one_method_does_not_follow_to_another():
    spec = spec_of("objp-local").with_values({"algorithm.name": "fedgd"})
    assert not any(key.startswith("method.") for key in spec.values())
