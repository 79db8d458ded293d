"""tacit ledger: an agent's owner sees what was spent, and whether the record is whole."""

import json
import math
import sqlite3

import pytest

from tacit.cli import main
from tacit.errors import BudgetExhausted
from tacit.privacy.budget import multiplier_of, upward
from tacit.privacy.ledger import Key, Ledger, Limit
from tacit.privacy.release import GaussianRelease, GeneralRelease, LaplaceRelease
from tacit.privacy.risk import percent
from tacit.run.deployment import price

from .rounds import asked, noisy


@pytest.fixture
def path(tmp_path):
    with Ledger.open(tmp_path / "agent.ledger", price, Limit(3.0, 1e-6)) as ledger:
        for run, rounds in (("monday", 3), ("tuesday", 2)):
            for t in range(1, rounds + 1):
                ledger.release(Key("hospital", run, t), asked(t), GaussianRelease(20.0), noisy)
    return tmp_path / "agent.ledger"


def test_show_prints_runs_their_total_and_the_limit(capsys, path):
    assert main(["ledger", "show", str(path)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    total = price([(GaussianRelease(20.0), 5)], 1e-6)
    assert "limit       (3, 1e-06)" in out
    assert f"hospital: spent ({upward(total)}, 1e-06) of (3, 1e-06)" in out
    assert [line.split()[:3] for line in out.splitlines() if "gaussian" in line] == [
        ["monday", "3", "3"],
        ["tuesday", "2", "2"],
    ]


def test_show_says_what_all_runs_together_mean_for_a_record(capsys, path):
    assert main(["ledger", "show", str(path)]) == 0
    shown = percent((1 + math.erf(math.sqrt(5) / 20 / math.sqrt(8)) + 1e-10) / 2)  # five releases of 20 sensitivities
    assert f"risk: a guess whether one given record was used is right at most {shown} of" in capsys.readouterr().out
    with Ledger.open(path, price) as ledger:
        ledger.set_limit(None)
        ledger.release(Key("hospital", "wednesday", 1), asked(1), LaplaceRelease(math.inf, 1.0), noisy)
    assert main(["ledger", "show", str(path)]) == 0
    mu = math.sqrt(5 / 400 + 1 + 2 / 3)  # of Laplace noise the residue counts too
    out = capsys.readouterr().out
    assert f"right at most {percent((1 + math.erf(mu / math.sqrt(8))) / 2)} of" in out
    assert "protection is weak: a total epsilon of " in out


def test_show_as_json_is_one_object_without_infinities(capsys, path):
    with Ledger.open(path, price) as ledger:
        ledger.set_limit(None)
        ledger.release(Key("bare", "run", 1), asked(1), LaplaceRelease(float("inf")), noisy)
    assert main(["ledger", "show", str(path), "--json", "--dp-delta", "1e-5"]) == 0
    shown = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert shown["limit"] is None
    hospital, bare = shown["data"]
    assert hospital["epsilon"] == pytest.approx(price([(GaussianRelease(20.0), 5)], 1e-5))
    assert [run["rounds"] for run in hospital["runs"]] == [3, 2]
    assert bare["epsilon"] is None
    assert (hospital["best_guess"] < 0.53, bare["best_guess"]) == (True, 1.0)


def test_a_run_that_is_not_in_the_ledger_is_charged_by_its_owner_and_composed(capsys, path):
    before = path.read_bytes()
    assert main(["ledger", "charge", str(path), "--epsilon", "2.5"]) == 2  # the account would be infinite for good
    assert "If it drew Gaussian noise, as all methods but objt-laplace do under" in capsys.readouterr().err
    assert path.read_bytes() == before
    assert main(["ledger", "charge", str(path), "--epsilon", "2.5", "--law", "gaussian"]) == 0
    assert "charged     (2.5, 1e-06) to hospital" in capsys.readouterr().out
    with Ledger.open(path, price) as ledger:
        (account,) = ledger.show()
        alone = multiplier_of(2.5, 1e-6)
        assert account.epsilon == pytest.approx(price([(GaussianRelease(20.0), 5), (GaussianRelease(alone), 1)], 1e-6))
        assert 2.5 < account.epsilon < 2.7
        ledger.charge("other", [GeneralRelease(1.0, 0.0)], "a test")
    for bad in (["--epsilon", "nan"], ["--epsilon", "0"], ["--epsilon", "inf"], ["--epsilon", "1", "--dp-delta", "1"]):
        assert main(["ledger", "charge", str(path), "--data-id", "hospital", *bad]) == 2
        assert "a lost run has a positive epsilon and a delta in [0, 1)" in capsys.readouterr().err
    assert main(["ledger", "charge", str(path), "--epsilon", "1"]) == 2
    assert "has the data sets 'hospital', 'other': name the one of the run" in capsys.readouterr().err
    assert main(["ledger", "charge", str(path), "--epsilon", "1", "--data-id", "hosptial", "--law", "any"]) == 2
    assert "has the data sets 'hospital', 'other'" in capsys.readouterr().err
    own = ["--data-id", "other", "--epsilon", "9"]
    assert main(["ledger", "charge", str(path), *own, "--dp-delta", "0", "--law", "gaussian"]) == 2
    assert "Gaussian noise has a delta above 0" in capsys.readouterr().err
    assert main(["ledger", "charge", str(path), *own, "--law", "any", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["charged"] == "other"
    with Ledger.open(path, price) as ledger, pytest.raises(BudgetExhausted):
        ledger.release(Key("other", "thursday", 1), asked(1), GaussianRelease(20.0), noisy)


def test_verify_prints_the_head_and_takes_it_back(capsys, path):
    assert main(["ledger", "verify", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["whole"], found["entries"], found["releases"]) == (True, 6, 5)
    assert main(["ledger", "verify", str(path), "--head", found["head"]]) == 0
    assert found["head"] in capsys.readouterr().out
    assert main(["ledger", "verify", str(path), "--head", "0" * 64]) == 1
    assert "noted earlier" in capsys.readouterr().err


def test_a_ledger_that_is_not_whole_is_exit_code_1_and_a_missing_one_2(capsys, path):
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM entry WHERE n = 3")
    connection.close()
    for action in ("show", "verify"):
        assert main(["ledger", action, str(path)]) == 1
        out, err = capsys.readouterr()
        assert out == ""
        assert "entry 3 is missing" in err
        assert main(["ledger", action, str(path.with_name("absent"))]) == 2
        assert "does not exist" in capsys.readouterr().err
    assert not path.with_name("absent").exists()


def test_an_empty_ledger_and_a_bad_delta(capsys, tmp_path):
    Ledger.open(tmp_path / "new", price).close()
    assert main(["ledger", "show", str(tmp_path / "new")]) == 0
    assert "nothing has been released" in capsys.readouterr().out
    assert main(["ledger", "show", str(tmp_path / "new"), "--dp-delta", "2"]) == 2
    assert "probability" in capsys.readouterr().err
