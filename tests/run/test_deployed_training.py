"""Methods made of queries, deployed: they train, their ledgers equal the account, and they go on where they stopped."""

import warnings
from dataclasses import dataclass, field

import numpy as np
import pytest

import tacit
from tacit.cli import main
from tacit.errors import IncompatibleError, Interrupted, TacitWarning
from tacit.methods.method import Budget, Entry, grid
from tacit.methods.registry import METHODS
from tacit.privacy import lattice, summed
from tacit.privacy.ledger import Ledger
from tacit.registry import Registry
from tacit.run import build, deployment
from tacit.run.presets import preset
from tests.conftest import federation
from tests.methods.tasks import task

ALONE = ["objp", "objt", "objt-laplace", "outp", "fedgd", "onemessage", "outp-huang", "outp-plus"]
SUMMED = ["objp", "objt", "fedgd", "onemessage", "secure-sum", "onemessage-sum"]
RUNS = [(name, "nobody") for name in ALONE] + [(name, "sum") for name in SUMMED]
OVER = federation(4)


def spec_of(name, trust, **values):
    if trust == "sum":
        pytest.importorskip("cryptography")
    rounds = {} if name.startswith("onemessage") else {"run.rounds": 5}
    own = {"data.source": "x", "features.map": "none", "privacy.noise": "exact"} | rounds
    own |= {"privacy.trust": "sum"} if trust == "sum" else {}
    return preset("sound", name).with_values(own | values)


def train(spec, over=OVER, **where):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TacitWarning)
        return tacit.train(spec, over, **where)


def accounts(ledgers):
    found = []
    for p in range(4):
        with Ledger.open(ledgers / f"{p}.ledger", deployment.price, create=False) as ledger:
            found += ledger.show()
            ledger.verify()
    return found


@pytest.mark.parametrize(("name", "trust"), RUNS)
def test_ledgers_equal_the_account_of_the_run(name, trust, tmp_path):
    spec = spec_of(name, trust, **{"privacy.ledger": str(tmp_path / "ledgers")})
    told = train(spec, out=tmp_path / "run").summary
    assert told["noise"] == "exact noise from the operating system"
    assert told["epsilon"] == pytest.approx(1.0, rel=0.02)
    assert told["epsilon"] <= 1.0
    for account in accounts(tmp_path / "ledgers"):
        assert account.releases == spec.run.rounds
        assert account.epsilon == pytest.approx(told["epsilon"], rel=1e-3)
        assert account.adjacency == spec.privacy.adjacency


@pytest.mark.parametrize(("name", "trust"), [one for one in RUNS if "onemessage" not in one[0]])
def test_a_run_that_was_stopped_goes_on_and_pays_for_each_round_once(name, trust, tmp_path):
    def stop(done, _row):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted):
        train(spec_of(name, trust), out=tmp_path / "run", listener=stop)
    assert {one.releases for one in accounts(tmp_path / "run" / "ledgers")} == {2}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TacitWarning)
        assert tacit.resume(tmp_path / "run", OVER).summary["rounds"] == 5
    assert {one.releases for one in accounts(tmp_path / "run" / "ledgers")} == {5}


@pytest.mark.parametrize(("name", "trust"), [one for one in RUNS if not METHODS[one[0]].is_admm])
def test_the_model_is_that_of_the_simulation(name, trust, monkeypatch):
    """Both without noise, and but for the grid of exact noise and the float32 sums of a simulation."""
    for module in (lattice, summed):
        monkeypatch.setattr(module, "sample", lambda _law, _t, shape, _bits=None: np.zeros(shape, np.int64))
    monkeypatch.setattr(build, "normals", lambda: lambda _key, _t, _step, shape: np.zeros(shape, np.float32))
    spec = spec_of(name, trust)
    deployed, simulated = (train(one) for one in (spec, spec.with_values({"privacy.noise": None, "run.seed": 0})))
    assert not deployed.summary["simulated_noise"]
    assert simulated.summary["simulated_noise"]
    assert np.abs(deployed.w).max() > 1e-3
    np.testing.assert_allclose(deployed.w, simulated.w, rtol=0, atol=1e-5 * np.abs(simulated.w).max())
    assert deployed.summary["sent_bytes"] == simulated.summary["sent_bytes"]


@pytest.mark.parametrize("name", ["outp", "outp-huang", "outp-plus"])
def test_noise_on_a_step_is_deployed_in_a_plain_run_only(name, tmp_path, capsys):
    words = ["train", "--data", "synthetic", "--agents", "4", "--algorithm", name, "--noise", "exact", "--rounds", "3"]
    assert main([*words, "-q", "--out", str(tmp_path / "run")]) == 0
    capsys.readouterr()
    for more in (["--trust", "sum"], ["--set", "problem.domain=box"]):
        assert main([*words, *more, "-q", "--out", str(tmp_path / "refused")]) == 2
        (line,) = capsys.readouterr().err.strip().splitlines()
        assert name in line or "Noise on a step" in line
        assert not (tmp_path / "refused").exists()


# --- methods of another version


@dataclass(frozen=True)
class OldEntry:
    """An entry as it was when a method was written in two halves, and the ADMM family had a type of its own."""

    name: str
    about: str
    build: object
    grid: tuple
    values: dict = field(default_factory=dict)
    ranked: bool = True
    sets: bool = False
    sums: bool = False
    constants: dict = field(default_factory=dict)


class OldMethod:
    """A method with all the parts that there were then, and no word on secure sums."""

    rounds = 3

    def promise(self, facts): ...
    def carried(self, agents): ...
    def answer(self, agents, own, msg): ...
    def start(self, facts): ...
    def ask(self, facts, state): ...
    def share(self, facts): ...
    def conclude(self, facts, state, msg, answers): ...


OLD = OldEntry("old", "a method of another version", lambda *_: OldMethod(), grid(rounds=3))


def test_an_entry_of_another_version_is_refused_with_the_page_that_says_what_to_do():
    with pytest.raises(IncompatibleError, match=r"the method old was written .*see docs/adding-a-method\.md"):
        METHODS["old"] = OLD
    assert "old" not in METHODS


def test_an_entry_of_another_version_that_is_named_in_a_text_is_refused_when_it_is_looked_up():
    registry = Registry("method", {"old": f"{__name__}:OLD"}, METHODS.check)
    with pytest.raises(IncompatibleError, match=r"its entry is not .*docs/adding-a-method\.md"):
        registry["old"]


def test_a_method_that_lacks_a_part_is_refused_with_the_name_of_the_part():
    entry = Entry("old", "", lambda *_: OldMethod(), grid(rounds=3))
    with pytest.raises(IncompatibleError, match=r"it lacks behind\(\): see docs/adding-a-method\.md"):
        entry.built(task().facts, Budget(1.0), entry.grid[0])
