"""`tacit train` deploys methods made of queries, alone and behind a secure sum, and their ledgers equal the account."""

import json

import pytest

from tacit.agent.agreement import DELTA_FOR_THE_GRID
from tacit.cli import main

RUN = ["train", "--data", "synthetic", "--agents", "3", "--set", "data.records=300", "-qq", "--json"]
ROUNDS = {"fedgd": 3, "onemessage": 1}
TRUST = pytest.mark.parametrize("trust", ["nobody", "sum"])


def told(capsys, *arguments):
    """What a command prints with --json."""
    assert main([*arguments]) == 0
    return json.loads(capsys.readouterr().out)


def trained(capsys, folder, name, trust, *more, out="run"):
    if trust == "sum":
        pytest.importorskip("cryptography")
    rounds = [] if ROUNDS[name] == 1 else ["--rounds", str(ROUNDS[name])]
    how = ["--noise", "exact", "--ledger", str(folder / "ledgers"), "--trust", trust, *rounds, *more]
    told(capsys, *RUN, "--algorithm", name, *how, "--out", str(folder / out))
    return json.loads((folder / out / "result.json").read_text())


@TRUST
@pytest.mark.parametrize("name", ROUNDS)
def test_the_ledgers_of_a_deployed_method_equal_its_account(tmp_path, capsys, name, trust):
    result, rounds = trained(capsys, tmp_path, name, trust), ROUNDS[name]
    fields = result["guarantee_fields"]
    ((release, each),) = fields["each_round"]
    assert (fields["private"], fields["noise"], fields["rounds"], each) == (True, "exact", rounds, 1)
    assert fields["trusted"] == trust
    kept_back = fields["dp_delta"] * (1 - DELTA_FOR_THE_GRID)
    account = told(capsys, "account", "--mechanism", "gaussian", "--multiplier", repr(release["multiplier"]),
                   "--rounds", str(rounds), "--dp-delta", repr(kept_back), "--json")  # fmt: skip
    assert account["epsilon"] == fields["epsilon"] <= 1
    for n in range(3):
        ledger = str(tmp_path / "ledgers" / f"{n}.ledger")
        (data,) = told(capsys, "ledger", "show", ledger, "--json")["data"]
        assert data["data_id"] == f"synthetic: {n}"
        assert (data["releases"], data["epsilon"]) == (rounds, account["epsilon"])
        told(capsys, "ledger", "verify", ledger, "--json")
    assert not list((tmp_path / "ledgers").glob("*.runkey"))  # the masks of a sum end with the run


@TRUST
@pytest.mark.parametrize("name", ROUNDS)
def test_a_second_run_of_a_deployed_method_adds_to_the_ledgers_until_their_limit(tmp_path, capsys, name, trust):
    limit, ledger = ["--limit", "1.2", "--epsilon", "0.6"], tmp_path / "ledgers" / "0.ledger"
    first = trained(capsys, tmp_path, name, trust, *limit)["guarantee_fields"]["epsilon"]
    trained(capsys, tmp_path, name, trust, *limit, out="again")
    (data,) = told(capsys, "ledger", "show", str(ledger), "--json")["data"]
    assert data["releases"] == 2 * ROUNDS[name]
    assert first < data["epsilon"] <= 1.2
    before = ledger.read_bytes()
    third = ["--algorithm", name, "--noise", "exact", "--ledger", str(ledger.parent), "--trust", trust]
    assert main([*RUN, *third, "--limit", "1.2", "--epsilon", "1.1", "--out", str(tmp_path / "third")]) == 2
    assert "limit" in capsys.readouterr().err
    assert ledger.read_bytes() == before


@pytest.mark.parametrize("name", ["fedgd", "onemessage", "outp", "outp-huang", "outp-plus"])
def test_without_a_seed_a_method_made_of_queries_draws_exact_noise_and_with_one_it_is_simulated(tmp_path, capsys, name):
    rounds = [] if name == "onemessage" else ["--rounds", "2"]
    for seed, noise in (([], "exact"), (["--seed", "0"], "simulated")):
        out = tmp_path / noise
        told(capsys, *RUN, "--algorithm", name, *rounds, *seed, "--out", str(out))
        assert json.loads((out / "result.json").read_text())["guarantee_fields"]["noise"] == noise


@pytest.mark.parametrize("name", ["secure-sum", "onemessage-sum"])
def test_a_name_that_stands_for_a_sum_is_simulated_unless_exact_noise_is_asked_for(tmp_path, capsys, name):
    pytest.importorskip("cryptography")
    rounds = [] if name == "onemessage-sum" else ["--rounds", "2"]
    for flags, noise in (([], "simulated"), (["--noise", "exact"], "exact")):
        out = tmp_path / noise
        told(capsys, *RUN, "--algorithm", name, *rounds, *flags, "--out", str(out))
        assert json.loads((out / "result.json").read_text())["guarantee_fields"]["noise"] == noise
