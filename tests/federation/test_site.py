"""A site file is checked before anything is loaded, and one sentence says what is wrong with it."""

import json
import stat
import subprocess
import sys

import numpy as np
import pytest

from tacit.agent.masks.files import signing_key
from tacit.cli import main
from tacit.errors import DataError, IncompatibleError, InputError, SpecError
from tacit.federation.site import load, read
from tacit.machine import name_conflict
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
    (GOOD + '"problem.domain_file" = "set.npz"', "problem.domain_file is not for a run to ask"),
    (GOOD + '"privacy.ledger" = "elsewhere"', "privacy.ledger is not for a run to ask"),
    (GOOD + "most_agents = 0", "agree.most_agents is a whole number"),
    (GOOD + "runs = 3", "agree.runs is a list of names"),
    (GOOD + "agents = [1]", "agree.agents is a list of names"),
    (GOOD + "values = 1", "agree.values is no key"),
    (GOOD + '"privacy.trust" = "sum"', "allows secure sums, and nobody is pinned: add a section \\[sum\\]"),
    (GOOD + '"privacy.trust" = "everybody"', "unknown value of privacy.trust"),
    (GOOD + '"privacy.colluding" = 1', "set sum.colluding, not agree.privacy.colluding"),
    (GOOD + '"privacy.repetitions" = [1, 2]', "agree.privacy.repetitions takes the largest value"),
    ("sum = 1\n" + GOOD, "sum is a section"),
    (GOOD + "[sum]", "sum.threshold is a whole number of at least 1"),
    (GOOD + "[sum]\nthreshold = 3.0", "sum.threshold is a whole number"),
    (GOOD + "[sum]\nthreshold = true", "sum.threshold is a whole number"),
    (GOOD + "[sum]\nthreshold = 2", "sum.threshold = 2 would show an honest agent whole, .*: set it to 3 or more"),
    (GOOD + "[sum]\nthreshold = 3\ncolluding = 2", "set it to 4 or more"),
    (GOOD + "[sum]\nthreshold = 3\ncolluding = 0", "sum.colluding is a whole number of at least 1"),
    (GOOD + "[sum]\nthreshold = 3\ncolluding = -1", "sum.colluding is a whole number"),
    (GOOD + "[sum]\nthreshold = 3\nkeys = ''", "sum.keys is the folder"),
    (GOOD + "[sum]\nthreshold = 3\nkeys = 3", "sum.keys is the folder"),
    (GOOD + "[sum]\nthreshhold = 3", "unknown key of \\[sum\\] 'threshhold': did you mean 'threshold'"),
    (GOOD + "[sum]\nthreshold = 3\npeers = ['south']", "sum.peers is a section"),
    (GOOD + f"[sum]\nthreshold = 3\n[sum.peers]\nsouth = '{'0' * 63}'", "key of agent south in 64 hexadecimal digits"),
    (GOOD + f"[sum]\nthreshold = 3\n[sum.peers]\nsouth = '{'0' * 65}'", "key of agent south in 64 hexadecimal digits"),
    (GOOD + f"[sum]\nthreshold = 3\n[sum.peers]\nsouth = '{'g' * 64}'", "64 hexadecimal digits"),
    (GOOD + f"[sum]\nthreshold = 3\n[sum.peers]\nsouth = '{' ' * 64}'", "64 hexadecimal digits"),
    (GOOD + f"[sum]\nthreshold = 3\n[sum.peers]\nsouth = {'1' * 18}", "64 hexadecimal digits"),
    (GOOD + f"[sum]\nthreshold = 3\n[sum.peers]\nsouth.x = '{'0' * 64}'", "a name with a dot stands in quotes too"),
    (GOOD + f"[sum]\nthreshold = 3\n[sum.peers]\n'' = '{'0' * 64}'", "sum.peers names an agent"),
    (GOOD + f"[sum]\nthreshold = 3\n[sum.peers]\n\"a\\nb\" = '{'0' * 64}'", "sum.peers names an agent"),
    (GOOD + f"[sum]\nthreshold = 3\n[sum.peers]\nsouth = '{'aA' * 32}'\neast = '{'Aa' * 32}'",
     "south and east are pinned to one key, so that one agent would count for two"),
])  # fmt: skip
def test_what_is_wrong_with_a_site_file_is_one_sentence_and_exit_code_2(tmp_path, capsys, text, says):
    path = make(tmp_path, ledgers=False)
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
    path = make(tmp_path, ("north", "south"), agree='"run.rounds" = 50', ledgers=False)
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


def test_check_reports_another_distribution_called_tacit(tmp_path, capsys, monkeypatch):
    path = make(tmp_path)
    assert main(["agent", "check", "--json", str(path)]) == 0
    assert json.loads(capsys.readouterr().out)["conflict"] is None
    (tmp_path / "packages" / "tacit-0.3.0.dist-info").mkdir(parents=True)
    monkeypatch.syspath_prepend(tmp_path / "packages")
    assert main(["agent", "check", str(path)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"conflict    {name_conflict()}"


def test_a_table_that_does_not_load_leaves_the_ledger_as_it_was(tmp_path):
    path = make(tmp_path)
    (file,) = (tmp_path / "ledgers").glob("*.ledger")
    before = file.read_bytes()
    write_table(tmp_path / "north.csv", np.zeros((0, 3)), [])
    assert main(["agent", "serve", str(path)]) == 2
    assert file.read_bytes() == before


def test_keys_of_agree_may_stand_in_sections_of_their_own(tmp_path):
    path = make(tmp_path, agree='run.rounds = 7\nproblem.loss = ["softmax", "squared"]\nruns = "*"\nagents = ["south"]')
    agree = read(path).agree
    assert agree.values == {"run.rounds": (7,), "problem.loss": ("softmax", "squared")}
    assert (agree.runs, agree.agents) == (None, ("south",))
    with pytest.raises(SpecError, match="unknown key"):
        read(make(tmp_path, agree="run.rouns = 7"))


# --- secure sums ---------------------------------------------------------------------------------------------------


def test_what_a_site_asks_of_secure_sums(tmp_path):
    assert read(make(tmp_path / "none")).sum is None
    room = read(make(tmp_path, agree=f"[sum]\nthreshold = 4\n[sum.peers]\n'a.b' = '{'aA' * 32}'")).sum
    assert (room.keys, room.threshold, room.colluding) == (tmp_path / "keys", 4, 1)
    assert room.peers == {"a.b": b"\xaa" * 32}
    assert room.key_file("../north/1") == tmp_path / "keys" / "..%2Fnorth%2F1.key"
    assert room.key_file("a.b") != room.key_file("a")


SUMMING = '"privacy.trust" = "sum"\n[sum]\nthreshold = 3\n'


def test_keys_are_drawn_once_for_their_owner_alone_and_the_public_halves_can_be_pasted(tmp_path, capsys):
    path = make(tmp_path / "site", ("north", "south"), agree=SUMMING, ledgers=False)
    assert main(["agent", "key", str(path)]) == 0
    out, err = capsys.readouterr()
    found = {file.name: file.read_text() for file in (tmp_path / "site" / "keys").iterdir()}
    assert set(found) == {"north.key", "south.key"}
    assert not any(secret.strip() in out + err for secret in found.values())
    assert len(err.splitlines()) == 2
    for file in (tmp_path / "site" / "keys").iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "site" / "keys").stat().st_mode) == 0o700
    pasted = read(make(tmp_path / "other", ("east",), agree=f"{SUMMING}[sum.peers]\n{out}")).sum.peers
    keys = {name: signing_key(tmp_path / "site" / "keys" / f"{name}.key").public for name in ("north", "south")}
    assert pasted == keys
    assert main(["agent", "key", str(path)]) == 0  # again: the same, and nothing is drawn
    assert capsys.readouterr() == (out, "")
    (tmp_path / "site" / "keys" / "south.key").unlink()
    assert main(["agent", "key", "--json", str(path)]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["north"] == keys["north"].hex()
    assert told["south"] != keys["south"].hex()
    assert (tmp_path / "site" / "keys" / "north.key").read_text() == found["north.key"]


def test_names_that_need_quotes_are_pasted_as_they_are(tmp_path, capsys):
    path = make(tmp_path)
    name = "St. Mary's \"old\" \\ wing/3 \u00e9"
    text = path.read_text().replace('name = "north"\ndata', f"name = {json.dumps(name)}\ndata")
    path.write_text(text + SUMMING)
    assert main(["agent", "key", str(path)]) == 0
    line = capsys.readouterr().out
    assert list(read(make(tmp_path / "b", ("south",), agree=f"{SUMMING}[sum.peers]\n{line}")).sum.peers) == [name]


@pytest.mark.parametrize(("agree", "damage", "says"), [
    ("", None, "has no section [sum]"),
    (SUMMING, lambda key: key.chmod(0o644), "others may read it: chmod 600"),
    (SUMMING, lambda key: key.chmod(0o640), "others may read it: chmod 600"),
    (SUMMING, lambda key: key.write_text("ssh-ed25519 AAAA"), "holds no key, which has 64 hexadecimal digits"),
    (SUMMING, lambda key: key.write_text(""), "holds no key"),
])  # fmt: skip
def test_a_key_that_is_no_secret_is_one_sentence_and_exit_code_2(tmp_path, capsys, agree, damage, says):
    path = make(tmp_path, agree=agree)
    if damage is not None:
        assert main(["agent", "key", str(path)]) == 0
        damage(tmp_path / "keys" / "north.key")
        capsys.readouterr()
        assert main(["agent", "check", str(path)]) == 2
        assert main(["agent", "serve", str(path)]) == 2
        out, err = capsys.readouterr()
        assert (out, len(err.splitlines())) == ("", 2)
        assert err.count(says) == 2
    assert main(["agent", "key", str(path)]) == 2
    out, err = capsys.readouterr()
    assert (out, len(err.splitlines())) == ("", 1)
    assert says in err


def test_check_says_who_is_pinned_and_what_is_missing(tmp_path, capsys):
    peers = f"[sum.peers]\neast = '{'0a' * 32}'\n"
    path = make(tmp_path, ("north", "south"), agree=SUMMING + peers, ledgers=False)
    before = sorted(tmp_path.rglob("*"))
    assert main(["agent", "check", str(path)]) == 0
    text = capsys.readouterr().out
    assert "no sum over fewer than 3 agents; 1 key known, so that no run can be joined" in text
    assert "a run expects at least 1 agent to collude" in text
    assert "repetitions: at most one for every 10 rounds" in text
    assert "own agent north has no key yet: tacit agent key draws it" in text
    assert f'pinned "east" = "{"0a" * 32}"' in text
    assert sorted(tmp_path.rglob("*")) == before
    assert main(["agent", "key", str(path)]) == 0
    own = capsys.readouterr().out.splitlines()
    assert main(["agent", "check", str(path)]) == 0
    text = capsys.readouterr().out
    assert "no sum over fewer than 3 agents\n" in text
    assert "sum         all 3 agents have to answer every round, and the run stops while one is missing\n" in text
    assert all(f"own key {line}, in {tmp_path / 'keys'}" in text for line in own)
    assert main(["agent", "check", "--json", str(path)]) == 0
    told = json.loads(capsys.readouterr().out)["sum"]
    assert (told["threshold"], told["colluding"], told["agreed"]) == (3, 1, True)
    assert told["peers"] == {"east": "0a" * 32}
    assert [f'"{name}" = "{key}"' for name, key in told["own"].items()] == own
    path = make(tmp_path, ("north", "south"), agree=f'"privacy.repetitions" = 2\n[sum]\nthreshold = 3\n{peers}')
    assert main(["agent", "check", str(path)]) == 0
    text = capsys.readouterr().out
    assert 'no run is agreed to: [agree] would have to list "privacy.trust" = "sum"' in text
    assert "privacy.repetitions: at most 2" in text
    assert "repetitions: at most one" not in text


def test_check_refuses_a_peer_with_a_key_of_this_site(tmp_path, capsys):
    path = make(tmp_path, agree=SUMMING)
    assert main(["agent", "key", str(path)]) == 0
    own = capsys.readouterr().out.split('"')[3]
    path = make(tmp_path, agree=f"{SUMMING}[sum.peers]\neast = '{own}'\n")
    for action in ("check", "key", "serve"):
        assert main(["agent", action, str(path)]) == 2
    assert capsys.readouterr().err.count(f"{path}: sum.peers: east and north are pinned to one key") == 3


def test_keys_are_drawn_before_the_records_are_there(tmp_path, capsys):
    path = make(tmp_path, agree=SUMMING)
    (tmp_path / "north.csv").unlink()
    assert main(["agent", "check", str(path)]) == 2
    assert "the data of agent north are not at" in capsys.readouterr().err
    assert main(["agent", "key", str(path)]) == 0
    assert (tmp_path / "keys" / "north.key").exists()


def test_without_cryptography_a_site_that_adds_up_says_what_to_install_and_others_need_none(tmp_path):
    code = "import sys; sys.modules['cryptography'] = None; from tacit.cli import main; sys.exit(main(sys.argv[1:]))"
    path, plain = make(tmp_path / "a", agree=SUMMING), make(tmp_path / "b")
    for action, file, fails in (("key", path, True), ("serve", path, True), ("check", plain, False)):
        command = [sys.executable, "-c", code, "agent", action, str(file)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == (2 if fails else 0), done.stderr
        assert ("the extra 'secure'" in done.stderr) == fails
        assert len(done.stderr.splitlines()) == int(fails)
