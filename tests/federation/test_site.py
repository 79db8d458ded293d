"""A site file is checked before anything is loaded, and one sentence says what is wrong with it."""

import json

import numpy as np
import pytest

from tacit.cli import main
from tacit.errors import DataError, IncompatibleError, InputError, SpecError
from tacit.federation.site import load, read
from tests.federation.sites import SIZES, make, records, site_text, write_table


def test_a_site_file_names_everything_and_its_paths_are_taken_from_its_folder(tmp_path, monkeypatch):
    path = make(tmp_path / "site", ("north", "south"), agree='"run.rounds" = 50')
    monkeypatch.chdir(tmp_path)
    site = read("site/site.toml")
    assert (site.name, site.pace) == ("north-south", 0.01)
    assert site.socket == path.parent / "agent.sock"
    assert site.ledger == path.parent / "ledgers"
    assert [(one.name, one.data_id) for one in site.agents] == [("north", "north 2024"), ("south", "south 2024")]
    assert site.agree.values == {"run.rounds": (50,)}


def test_all_records_of_all_agents_are_loaded_in_their_order_and_none_is_held_out(tmp_path):
    found = load(read(make(tmp_path, ("north", "south"))))
    assert found.agents == ("north", "south")
    assert len(found.test) == 0
    for who, shard in zip(found.agents, found.shards, strict=True):
        x, y = records(who)
        np.testing.assert_array_equal(shard.x, x.astype(np.float32))
        np.testing.assert_array_equal(shard.y, y)
        assert len(shard) == SIZES[who]


GOOD = site_text("s", ("north",))


@pytest.mark.parametrize(("text", "says"), [
    ("= 3", "is not TOML"),
    ("", "site.socket is a text"),
    (GOOD.replace("pace", "pase"), "unknown key of \\[site\\] 'pase': did you mean 'pace'"),
    (GOOD + "[more]\nx = 1", "unknown section 'more'"),
    (GOOD.replace("pace = 0.01", "pace = 0"), "site.pace is a positive number, at most 60"),
    (GOOD.replace("pace = 0.01", "pace = 61.0"), "site.pace is a positive number"),
    (GOOD.replace("pace = 0.01", "pace = nan"), "site.pace is a positive number"),
    (GOOD.replace("pace = 0.01", "pace = true"), "site.pace is a positive number"),
    (GOOD.replace('name = "s"', 'name = ""'), "site.name is a text of 1 to 200"),
    (GOOD.replace('name = "s"', "name = 3"), "site.name is a text"),
    (GOOD.replace('name = "s"', 'name = "a\\nb"'), "site.name is a text"),
    (GOOD.replace('ledger = "ledgers"', ""), "site.ledger is a text"),
    (GOOD.replace('socket = "agent.sock"', f'socket = "{"s" * 150}"'), "longer than the 100 bytes"),
    (GOOD.replace("pace = 0.01", "pace = 1.0\ncallers = []"), "site.callers is a list of names"),
    (GOOD.replace("pace = 0.01", 'pace = 1.0\ncallers = "root"'), "site.callers is a list"),
    (GOOD.replace("epsilon = 3.0", ""), "limit.epsilon is a positive number"),
    (GOOD.replace("epsilon = 3.0", "epsilon = inf"), "positive, finite epsilon"),
    (GOOD.replace("dp_delta = 1e-6", "dp_delta = 1.0"), "dp_delta in"),
    (GOOD.replace("[data]", "[data]\nsource = 'mnist'"), "unknown key of \\[data\\] 'source'"),
    (GOOD.replace("low = 0.0", "low = 'x'"), "data.low takes a value of type float"),
    (GOOD.replace("high = 1.0", ""), "data.low and data.high go together"),
    (GOOD.replace("low = 0.0", "low = 0.0\nschema = 'nowhere.toml'"), "data.schema is not at"),
    (GOOD.replace("[[agent]]", "[agent]"), "needs one section \\[\\[agent\\]\\]"),
    (GOOD.partition("[[agent]]")[0], "needs one section \\[\\[agent\\]\\]"),
    (GOOD.replace("data_id", "id"), "unknown key of \\[\\[agent\\]\\] 'id'"),
    (GOOD.replace('data_id = "north 2024"', ""), "agent.data_id is a text"),
    (GOOD.replace("north.csv", "mnist"), "the data of agent north are not at"),
    ("limit = 3\n" + GOOD.replace("[limit]\nepsilon = 3.0\ndp_delta = 1e-6", ""), "limit is a section"),
    (GOOD + '"run.roundz" = 3', "unknown key 'run.roundz'"),
    (GOOD + '"run.rounds" = 0', "run.rounds must be at least 1"),
    (GOOD + '"run.rounds" = [3, 4]', "agree.run.rounds takes the largest value"),
    (GOOD + '"problem.loss" = []', "agree.problem.loss takes a value, or several"),
    (GOOD + '"problem.loss" = "hingee"', "unknown value of problem.loss"),
    (GOOD + '"privacy.noise" = "simulated"', "privacy.noise is not for a run to ask"),
    (GOOD + '"data.source" = "mnist"', "data.source is not for a run to ask"),
    (GOOD + '"privacy.ledger" = "elsewhere"', "privacy.ledger is not for a run to ask"),
    (GOOD + "most_agents = 0", "agree.most_agents is a whole number"),
    (GOOD + "runs = 3", "agree.runs is a list of names"),
    (GOOD + "agents = [1]", "agree.agents is a list of names"),
    (GOOD + "values = 1", "agree.values is no key"),
])  # fmt: skip
def test_what_is_wrong_with_a_site_file_is_one_sentence_and_exit_code_2(tmp_path, capsys, text, says):
    path = make(tmp_path)
    path.write_text(text)
    with pytest.raises(InputError, match=says):
        read(path)
    assert main(["agent", "check", str(path)]) == 2
    assert main(["agent", "serve", str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 2
    assert not (tmp_path / "ledgers").exists()
    assert not (tmp_path / "agent.sock").exists()


@pytest.mark.parametrize(("old", "new", "says"), [
    ('name = "south"', 'name = "north"', "the same name"),
    ('data_id = "south 2024"', 'data_id = "north 2024"', "the same data_id"),
    ('data = "south.csv"', 'data = "./north.csv"', "the same data"),
])  # fmt: skip
def test_no_data_set_has_two_ledgers_at_a_site(tmp_path, old, new, says):
    """Two ledgers are two budgets for the same records."""
    path = make(tmp_path, ("north", "south"))
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(IncompatibleError, match=says):
        read(path)


def test_two_agents_with_other_columns_are_refused(tmp_path):
    path = make(tmp_path, ("north", "south"))
    (tmp_path / "south.csv").write_text((tmp_path / "south.csv").read_text().replace("a,b,c", "a,b,d"))
    with pytest.raises(DataError, match="differ in columns"):
        load(read(path))


def test_a_site_that_would_tell_its_labels_is_refused(tmp_path):
    path = make(tmp_path)
    path.write_text(path.read_text().replace('class_names = "no,yes"', ""))
    with pytest.raises(DataError, match="declare them"):
        load(read(path))


def test_a_file_of_several_agents_is_refused_and_a_file_of_one_is_taken(tmp_path):
    path = make(tmp_path)
    path.write_text(path.read_text().replace("[data]", '[data]\nagent_column = "clinic"'))
    rows = (tmp_path / "north.csv").read_text().splitlines()

    def clinics(name):
        named = [f"{row},{name(k)}" for k, row in enumerate(rows[1:])]
        (tmp_path / "north.csv").write_text("\n".join([f"{rows[0]},clinic", *named]))

    clinics(lambda k: f"c{k % 2}")
    with pytest.raises(DataError, match="names 2 agents"):
        load(read(path))
    clinics(lambda _: "c")
    assert load(read(path)).agents == ("north",)


def test_a_bad_file_is_told_with_the_name_of_its_agent(tmp_path):
    path = make(tmp_path)
    (tmp_path / "north.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match=r"^agent north: "):
        load(read(path))


def test_check_says_what_would_be_answered_and_makes_nothing(tmp_path, capsys):
    path = make(tmp_path, ("north", "south"), agree='"run.rounds" = 50')
    before = sorted(tmp_path.rglob("*"))
    assert main(["agent", "check", str(path)]) == 0
    text = capsys.readouterr().out
    assert "north: 24 records, no ledger yet" in text
    assert "run.rounds: at most 50" in text
    assert main(["agent", "check", "--json", str(path)]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["agents"] == {"north": 24, "south": 17}
    assert told["public"]["classes"] == ["no", "yes"]
    assert sorted(tmp_path.rglob("*")) == before


def test_an_account_that_is_not_there_is_named(tmp_path):
    path = make(tmp_path, extra='callers = ["nobody-of-this-name"]')
    assert main(["agent", "check", str(path)]) == 2
    assert main(["agent", "serve", str(path)]) == 2


def test_a_table_that_does_not_load_leaves_no_ledger(tmp_path):
    path = make(tmp_path)
    write_table(tmp_path / "north.csv", np.zeros((0, 3)), [])
    assert main(["agent", "serve", str(path)]) == 2
    assert not list((tmp_path / "ledgers").glob("*.ledger"))


def test_keys_of_agree_may_stand_in_sections_of_their_own(tmp_path):
    path = make(tmp_path, agree='run.rounds = 7\nproblem.loss = ["softmax", "squared"]\nruns = "*"\nagents = ["south"]')
    agree = read(path).agree
    assert agree.values == {"run.rounds": (7,), "problem.loss": ("softmax", "squared")}
    assert (agree.runs, agree.agents) == (None, ("south",))
    with pytest.raises(SpecError, match="unknown key"):
        read(make(tmp_path, agree="run.rouns = 7"))
