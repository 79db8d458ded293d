"""What `tacit agent check` says of a limit is what a service decides when a run is joined."""

import json
import shlex
import subprocess
import sys

import pytest

from tacit.cli import main
from tacit.federation.headroom import HALVINGS, headroom, largest, refusal
from tacit.federation.messages import Refusal
from tacit.federation.site import read as read_site
from tacit.privacy.ledger import Ledger
from tacit.privacy.release import GaussianRelease, GeneralRelease, LaplaceRelease
from tacit.run import deployment
from tests.federation import sum_sites
from tests.federation.sites import ask, join, make, service, told
from tests.federation.test_ledger_files import served, stopped
from tests.federation.test_listen import exchanged, folder

__all__ = ["folder"]  # a fixture
DATA = "north 2024"
ROUNDS = '"run.rounds" = 4'


def agreeing(epsilon, *more):
    return "\n".join([ROUNDS, f'"privacy.epsilon" = {epsilon}', *more])


def charged(path, releases):
    with Ledger.open(read_site(path).ledger / "north.ledger", deployment.price, create=False) as ledger:
        if releases:
            ledger.charge(DATA, releases, "before")


def joins(one, run, **values):
    """Whether a service admits a run, which ends at once."""
    reply = told(one, join(one, run, **values))
    if reply.kind == "joined":
        one._ledgers["north"].end(DATA, run, "of a test")
        return True
    assert reply == Refusal(run)
    return False


BEFORE = {
    "nothing": (),
    "a Gaussian release": (GaussianRelease(8.0),) * 3,
    "a Laplace release": (LaplaceRelease(0.2),) * 2,
    "a charge of its owner": (GeneralRelease(0.4, 1e-7),),
    "two kinds": (GaussianRelease(8.0), GeneralRelease(0.3, 0.0)),
}
FACTORS = (0.5, 0.99, 0.999, 0.9999, 1.0, 1.0001, 1.001, 1.01, 2.0)


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("algorithm", ["objt", "objp"])
def test_check_admits_the_runs_that_a_service_admits_and_no_others(tmp_path, before, algorithm):
    path = make(tmp_path, agree=agreeing(50.0), limit=1.5)
    charged(path, BEFORE[before])
    with service(tmp_path, agree=agreeing(50.0), limit=1.5, ledgers=False) as one:
        ledger, agent = one._ledgers["north"], one.site.agents[0]
        edge = headroom(one.site, agent, ledger, largest(one.site, one.own), one.own).room
        assert 0 < edge <= 1.5
        low, high, decided = edge, 1.6, set()
        for n in range(20):  # the edge as the service has it, to more digits than check shows
            middle = (low + high) / 2
            admitted = joins(one, f"{n}", **{"privacy.epsilon": middle}, algorithm=algorithm)
            low, high = (middle, high) if admitted else (low, middle)
        for n, factor in enumerate(FACTORS):
            epsilon = round(low * factor, 9)
            agree = agreeing(epsilon, f'"algorithm.name" = "{algorithm}"')
            site = read_site(make(tmp_path, agree=agree, limit=1.5, ledgers=False))
            why = refusal(agent, ledger, largest(site, one.own))
            admitted = joins(one, f"at {n}", **{"privacy.epsilon": epsilon}, algorithm=algorithm)
            assert admitted == (why == ""), (factor, why)
            decided.add(admitted)
        assert decided == {True, False}


@pytest.mark.parametrize("limit", [0.9999, 1.0001])
def test_check_counts_the_repetitions_of_a_secure_sum_as_a_service_does(tmp_path, limit):
    agree = f'{sum_sites.TRUST}{agreeing(1.0)}\n"privacy.repetitions" = 1\n'
    party = sum_sites.services(tmp_path, agree=agree, limit=limit)
    try:
        for one in party.values():
            run = largest(one.site, one.own)
            assert (run.terms.rounds, run.terms.repetitions) == (4, 1)
            fits = {who.name: not refusal(who, one._ledgers[who.name], run) for who in one.site.agents}
            counts = (("north", 24), ("south", 17), ("east", 30))
            chosen = sum_sites.spec(**{"privacy.epsilon": 1.0})
            assert set(fits.values()) == {told(one, join(one, chosen=chosen, agents=counts)).kind == "joined"}
            assert set(fits.values()) == {limit > 1}
    finally:
        for one in party.values():
            one.close()


@pytest.mark.parametrize(("agree", "says"), [
    ("", "left 0.5: a run of epsilon 1 would be refused, one of 0.5 would fit"),
    ('"privacy.epsilon" = 0.25', "left 0.5: a run of epsilon 0.25 fits"),
    ('"privacy.dp_delta" = 1e-5', "left 0.5: a run of (1, 1e-05) would be refused, one of 0."),
    ('"privacy.covers" = ["run", "round"]', "left 0.5: a run of epsilon 10.26 would be refused, one of 0."),
    ('"algorithm.name" = "objt-laplace"\n"privacy.mechanism" = "laplace"', "a run of epsilon 1 would be refused, one"),
    ('"privacy.epsilon" = inf', "none of these runs can be run on these records: without noise there"),
    ('"privacy.adjacency" = "replace_one"', "left 0.5: a run of epsilon 1 would be refused, one of 0.5 would fit"),
    ('runs = ["one", "two"]\nfewest_agents = 3', "runs: one, two"),
    ("runs = []", "runs: none"),
])  # fmt: skip
def test_check_says_what_fits_with_and_without_a_ledger(tmp_path, capsys, agree, says):
    """The report's fault 11: limit 0.5 and a run of 1.0 stood side by side, and check said nothing."""
    for ledgers in (False, True):
        path = make(tmp_path, agree=agree, limit=0.5, ledgers=ledgers)
        assert main(["agent", "check", str(path)]) == 0
        out = capsys.readouterr().out
        assert says in out
        assert ("no ledger yet" in out) != ledgers


def test_check_as_json_has_the_same_for_programs(tmp_path, capsys):
    path = make(tmp_path, ("north", "south"), limit=1.2)
    charged(path, BEFORE["two kinds"])
    assert main(["agent", "check", "--json", str(path)]) == 0
    found = json.loads(capsys.readouterr().out)["headroom"]
    assert found["south"] | {"limit": 0} == {
        "spent": 0.0, "held": 0.0, "left": 1.2, "limit": 0, "asked": 1.0, "dp_delta": 1e-6, "why": "", "room": 1.0,
        "fits": True,
    }  # fmt: skip
    north = found["north"]
    assert not north["fits"]
    assert north["left"] == pytest.approx(1.2 - north["spent"])
    assert north["left"] <= north["room"] + 2**-HALVINGS  # epsilons do not add up
    assert north["room"] < 1
    assert "beyond the limit of 1.2" in north["why"]


def test_an_earlier_name_of_other_data_is_shown_beside_what_is_left(tmp_path, capsys):
    path = make(tmp_path)
    charged(path, BEFORE["two kinds"])
    path.write_text(path.read_text().replace(f'"{DATA}"', f'"north 2025"\nshares_no_record_with = ["{DATA}"]'))
    assert main(["agent", "check", str(path)]) == 0
    assert "'north 2024' spent 0." in (out := capsys.readouterr().out)
    assert "left 3: a run of epsilon 1 fits" in out


# --- with real processes -------------------------------------------------------------------------------------------


def command(*words):
    return subprocess.run([sys.executable, "-m", "tacit", *words], capture_output=True, text=True, check=False)


def knowing(folder):
    """A service in this process, whose joined run tells what an honest coordinator asks."""
    return service(folder / "twin", agree=ROUNDS)


def test_a_run_beyond_the_limit_is_refused_as_check_said_and_the_message_says_how_the_limit_is_raised(folder):
    """The report's fault 11 and step 16, from the refusal to the first answer under the new limit."""
    path = make(folder, agree=ROUNDS, limit=0.5)
    checked = command("agent", "check", str(path))
    assert "left 0.5: a run of epsilon 1 would be refused, one of 0.5 would fit" in checked.stdout
    with knowing(folder) as twin:
        first = join(twin)
        assert told(twin, first).kind == "joined"
        process, _ = served(path)
        assert exchanged(read_site(path), first) == Refusal("r1")
        (refused,) = [line for line in stopped(process) if line["event"] == "refused"]
        assert "beyond the limit of 0.5" in refused["text"]
        assert refused["run"] == "r1"

        path.write_text(path.read_text().replace("epsilon = 0.5", "epsilon = 1.25"))
        process, lines = served(path)
        assert process.returncode == 2
        (line,) = "".join(lines).splitlines()
        assert "holds the limit (0.5, 1e-06) and (1.25, 1e-06) was given" in line
        assert "open it without" not in line
        words = shlex.split(line[line.index("tacit ledger limit") :])
        assert words[:2] == ["tacit", "ledger"]
        assert command("agent", "check", str(path)).returncode == 2
        assert command(*words[1:]).returncode == 0

        assert "left 1.25: a run of epsilon 1 fits" in command("agent", "check", str(path)).stdout
        process, _ = served(path)
        assert exchanged(read_site(path), first).kind == "joined"
        assert exchanged(read_site(path), ask(twin, first)).kind == "answer"
        stopped(process)


def test_a_service_does_not_start_under_a_new_data_id_until_its_owner_says_that_no_record_is_shared(folder):
    """The report's fault 22: another data_id had a budget of its own, with one line in the log."""
    path = make(folder, agree=ROUNDS)
    with knowing(folder) as twin:
        first = join(twin)
        assert told(twin, first).kind == "joined"
        process, _ = served(path)
        assert exchanged(read_site(path), first).kind == "joined"
        assert exchanged(read_site(path), ask(twin, first)).kind == "answer"
        stopped(process)
    before = {file: file.read_bytes() for file in sorted(read_site(path).ledger.iterdir())}
    text = path.read_text()
    path.write_text(text.replace(DATA, "north 2025"))
    process, lines = served(path)
    assert process.returncode == 78  # its unit leaves it: a person has to decide
    (line,) = "".join(lines).splitlines()
    assert "the ledger of agent north has answered for 'north 2024'" in line
    assert 'data_id = "north 2025", which would start with the whole limit' in line
    assert {file: file.read_bytes() for file in sorted(read_site(path).ledger.iterdir())} == before
    checked = command("agent", "check", str(path))
    assert (checked.returncode, checked.stdout) == (2, "")
    assert checked.stderr == line + "\n"

    said = line[line.index("shares_no_record_with") :]
    path.write_text(text.replace(DATA, f'north 2025"\n{said}\n#"'))
    process, lines = served(path)
    assert process.returncode is None
    assert "has a budget of its own, and must share no record with them" in "".join(lines)
    stopped(process)
    path.write_text(text.replace(DATA, 'north 2026"\nshares_no_record_with = ["north 2023"]\n#"'))
    process, lines = served(path)  # which names another one
    assert process.returncode == 78
    path.write_text(text)  # the earlier name needs no word
    process, lines = served(path)
    assert process.returncode is None
    stopped(process)


def test_another_ledger_directory_is_no_new_budget_either(folder):
    """The other half of the report's fault 22."""
    path = make(folder, agree=ROUNDS)
    path.write_text(path.read_text().replace('ledger = "ledgers"', 'ledger = "fresh"'))
    (folder / "fresh").mkdir()
    process, lines = served(path)
    assert process.returncode == 78
    assert "the ledger of agent north is not at" in "".join(lines)
    assert main(["agent", "init", str(path)]) == 2  # its witness knows of another one
    assert list((folder / "fresh").iterdir()) == []


def test_a_site_cannot_say_that_data_share_no_record_with_themselves(tmp_path):
    path = make(tmp_path)
    path.write_text(path.read_text().replace(f'"{DATA}"', f'"{DATA}"\nshares_no_record_with = ["{DATA}"]'))
    assert main(["agent", "check", str(path)]) == 2
    assert main(["agent", "serve", str(path)]) == 2


def test_a_service_logs_which_key_refused_a_join_and_replies_with_a_refusal_alone(folder):
    """The report's fault 29, with a real process."""
    strict = [ROUNDS, 'runs = ["study"]', 'agents = ["south", "east"]', "most_agents = 3", "fewest_records = 60"]
    path = make(folder, agree="\n".join(strict))
    generous = '"run.rounds" = 50\n"privacy.epsilon" = 9.0\n"problem.beta" = [1e-6, 0.5]'
    north, south, east, west = ("north", 24), ("south", 17), ("east", 30), ("west", 20)
    refused = {
        "agree.runs: 'other'": ("other", (north, south, east), {}),
        "the run has 4 agents: agree.fewest_agents and most_agents": ("study", (north, south, east, west), {}),
        "agent 'west' takes part in the run, and agree.agents": ("study", (north, south, west), {}),
        "fewer records than agree.fewest_records = 60": ("study", (north, south), {}),
        "agree.run.rounds would have to allow it": ("study", (north, south, east), {"run.rounds": 9}),
        "agree.privacy.epsilon would have to": ("study", (north, south, east), {"privacy.epsilon": 1.5}),
        "agree.problem.beta would have to": ("study", (north, south, east), {"problem.beta": 0.5}),
        "agree.algorithm.name would have to": ("study", (north, south, east), {"algorithm": "objt-laplace"}),
    }
    process, _ = served(path)
    with service(folder / "twin", agree=generous) as twin:
        for run, agents, values in refused.values():
            assert exchanged(read_site(path), join(twin, run, agents=agents, **values)) == Refusal(run)
        assert exchanged(read_site(path), join(twin, "study", agents=(north, south, east))).kind == "joined"
    logged = [line["text"] for line in stopped(process) if line["event"] == "refused"]
    for says, text in zip(refused, logged, strict=True):
        assert says in text


@pytest.mark.parametrize(("agree", "asked", "says"), [
    ('"run.rounds" = 3', {}, "run.rounds = 4 is more than 3: agree.run.rounds would have to allow it"),
    (agreeing(0.5), {}, "privacy.epsilon = 1.0 is more than 0.5: agree.privacy.epsilon would have to allow it"),
    (f'{ROUNDS}\n"algorithm.name" = "objp"', {}, "algorithm.name = 'objt' is not among 'objp'"),
    (ROUNDS, {"problem.beta": 0.5}, "problem.beta = 0.5 is not among 1e-06: agree.problem.beta would have to allow it"),
    (f"{ROUNDS}\nfewest_agents = 4", {}, "the run has 3 agents: agree.fewest_agents and most_agents say how many"),
    (f"{ROUNDS}\nmost_agents = 2", {}, "the run has 3 agents: agree.fewest_agents and most_agents say how many"),
    (f"{ROUNDS}\nfewest_records = 100", {}, "fewer records than agree.fewest_records = 100"),
    (f'{ROUNDS}\nagents = ["south"]', {}, "agent 'east' takes part in the run, and agree.agents does not name it"),
    (f'{ROUNDS}\nruns = ["study"]', {}, "a run of another name than those of agree.runs: 'r1'"),
])  # fmt: skip
def test_a_refused_join_says_at_the_site_which_key_refused_it_and_nowhere_else(tmp_path, agree, asked, says):
    """The report's fault 29."""
    log = []
    with service(tmp_path / "twin", agree=f'{agreeing(3.0)}\n"problem.beta" = [1e-6, 0.5]') as twin:
        first = join(twin, **asked)
    with service(tmp_path / "site", agree=agree, log=lambda text, **facts: log.append((text, facts))) as one:
        assert told(one, first) == Refusal("r1")
        assert one._ledgers["north"].history().places == {}
    ((text, facts),) = log
    assert text.startswith("refused a message: ")
    assert says in text
    assert facts == {"event": "refused", "run": "r1"}
