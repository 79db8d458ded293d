"""What `tacit federate` does without Flower: it reads words, writes site files, and says what is not installed."""

from __future__ import annotations

import pytest

from tacit import toml
from tacit.cli import main
from tacit.data.spec import GIVEN
from tacit.errors import SpecError
from tacit.federation import certificates, folders, local_demo
from tacit.federation.asked import read_run
from tacit.federation.plan import Faults, read_plan
from tacit.federation.site import read
from tacit.federation.site_policy import spec_of
from tacit.run.presets import preset
from tests.federation.sites import records, write_table


def test_a_site_has_the_agents_that_were_given_or_one_of_its_own_name():
    found = folders.parsed_sites("north, south,east", "north = a, b ; east=c")
    assert found == {"north": ("a", "b"), "south": ("south",), "east": ("c",)}


@pytest.mark.parametrize(
    ("sites", "agents"),
    [("", None), ("a,", None), ("../a", None), ("a", "a="), ("a", "a=x;a=y"), ("a", "b=x"), ("a,b", "a=b")],
)
def test_sites_that_cannot_be_are_refused(sites, agents):
    with pytest.raises(SpecError):
        folders.parsed_sites(sites, agents)


def test_a_site_file_agrees_to_the_run_that_it_was_written_for_and_to_no_larger_one(tmp_path):
    values = folders.DEFAULTS | {"data.class_names": "no,yes", "data.low": 0.0, "data.high": 1.0, "run.rounds": 7}
    (tmp_path / "records").mkdir()
    write_table(tmp_path / "records" / "north__.csv", *records("north"))
    (tmp_path / "site.toml").write_text(folders.site_text("n", ["north 🏥"], values))
    site = read(tmp_path / "site.toml")
    assert [one.name for one in site.agents] == ["north 🏥"]
    assert (site.limit.epsilon, site.limit.dp_delta) == (1.0, 1e-6)
    assert site.data.bounds == (0.0, 1.0)
    chosen = {"privacy.noise": "exact", "run.name": "r", "run.rounds": 7}
    asked = preset("sound", "objt", GIVEN + "t").with_values(chosen)
    assert spec_of(asked.toml()) == asked
    assert site.agree.values["run.rounds"] == (7,)
    assert site.agree.values["privacy.epsilon"] == (1.0,)


def test_node_ids_are_written_beside_their_sites_and_the_rest_stays(tmp_path):
    sites = {"north": ("a", "b"), "south": ("c",)}
    first = folders.plan_text("study", sites, {})
    path = tmp_path / "federation.toml"
    path.write_text(first.replace("deadline = 120.0", "deadline = 33.0"))
    kept = path.read_text().partition("[[site]]")[0]
    path.write_text(folders.plan_text("study", sites, {"south": 2**64 - 1}, kept))
    plan = read_plan(tmp_path)
    assert plan.faults.deadline == 33.0
    assert [site.node for site in plan.sites] == [None, 2**64 - 1]


def test_without_cryptography_init_says_what_to_install_and_leaves_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(certificates, "x509", None)
    assert main(["federate", "init", str(tmp_path / "f"), "--sites", "a"]) == 2
    assert "the extra 'flower'" in capsys.readouterr().err
    assert not (tmp_path / "f").exists()


def test_the_shipped_app_is_the_courier_as_it_is_here(tmp_path):
    folders.ship(tmp_path)
    here = folders.resources.files("tacit.federation")
    for name in ("courier.py", "wire.py"):
        assert (tmp_path / folders.MODULE / name).read_bytes() == here.joinpath(name).read_bytes()


def test_a_run_with_a_seed_is_refused_and_leaves_nothing(tmp_path):
    with pytest.raises(SpecError, match="follows no seed"):
        folders.make(tmp_path / "study", folders.FolderLayout("study", {"north": ("north",)}, values={"run.seed": 0}))
    assert not (tmp_path / "study").exists()


def test_init_for_a_secure_sum_leaves_keys_to_the_sites(tmp_path, capsys):
    pytest.importorskip("cryptography")
    words = ["federate", "init", str(tmp_path / "f"), "--sites", "a,b,c,d", "--agents", "d=d1,d 2", "--trust", "sum"]
    assert main([*words, "--colluding", "2"]) == 0
    out = capsys.readouterr().out
    assert "draws the signing keys of its agents itself" in out
    assert "A sum needs 4 agents (colluding + 2): of 5 agents, 1 may be missing in a round" in out
    text = (tmp_path / "f" / "a" / "agent" / "site.toml").read_text()
    assert "threshold = 4" in text
    assert "colluding = 2" in text
    assert "Take no key from the coordinator" in text
    for name in ("b", "c", "d1", "d 2"):
        assert f'# "{name}" = ""' in text
    assert '# "a" = ""' not in text
    assert '"privacy.trust" = "sum"' in text.partition("[agree]")[2]
    assert '"privacy.colluding"' not in text  # [sum] says it
    assert not list((tmp_path / "f").rglob("agent/keys"))
    assert "tacit agent key" in (tmp_path / "f" / "a" / "README.md").read_text()
    assert "colluding = 2" in (tmp_path / "f" / "coordinator" / "run.toml").read_text()


def test_init_for_a_sum_of_three_sites_says_that_nobody_may_be_missing(tmp_path, capsys):
    """The report's fault 6."""
    pytest.importorskip("cryptography")
    assert main(["federate", "init", str(tmp_path / "f"), "--sites", "a,b,c", "--trust", "sum"]) == 0
    said = "A sum needs 3 agents (colluding + 2): all 3 agents have to answer every round, and the run stops"
    assert said in capsys.readouterr().out
    assert "one that is missing stops the run" in (tmp_path / "f" / "a" / "agent" / "site.toml").read_text()


def test_init_for_a_sum_over_too_few_agents_is_refused_and_leaves_nothing(tmp_path, capsys):
    assert main(["federate", "init", str(tmp_path / "f"), "--sites", "a,b", "--trust", "sum"]) == 2
    assert "a sum shows a single honest agent whole" in capsys.readouterr().err
    assert not (tmp_path / "f").exists()


def test_init_counts_on_all_agents_of_a_site_to_collude(tmp_path, capsys):
    """Two agents of one institution know what both know: a run that expects one of them alone promises too much."""
    pytest.importorskip("cryptography")
    words = ["federate", "init", str(tmp_path / "f"), "--sites", "a,b,c,d", "--agents", "d=d1,d2", "--trust", "sum"]
    assert main([*words, "--colluding", "1"]) == 2
    assert "site d has 2 agents, which know all of each other" in capsys.readouterr().err
    assert not (tmp_path / "f").exists()
    assert main(words) == 0
    assert "colluding = 2" in (tmp_path / "f" / "coordinator" / "run.toml").read_text()
    assert "colluding = 2" in (tmp_path / "f" / "a" / "agent" / "site.toml").read_text()
    told = (tmp_path / "f" / "coordinator" / "federation.toml").read_text()
    assert "noisy gradient" not in told
    assert "a round is asked again of the others" in told
    assert read_plan(tmp_path / "f" / "coordinator").faults == Faults()  # other words, and the same numbers
    assert main([*words[:2], str(tmp_path / "g"), *words[3:5], "--trust", "sum"]) == 0
    assert "colluding = 1" in (tmp_path / "g" / "coordinator" / "run.toml").read_text()


def test_init_takes_a_run_name_and_proposes_to_each_site_to_join_that_run_only(tmp_path):
    """The report, item 9: [agree] could restrict names, and init refused to give the run one."""
    pytest.importorskip("cryptography")
    (tmp_path / "run.toml").write_text("[run]\nname = 'first \"study\" \u00e9'\n")
    words = ["federate", "init", str(tmp_path / "f"), "--sites", "a,b", "--config", str(tmp_path / "run.toml")]
    assert main(words) == 0
    name = 'first "study" \u00e9'
    assert toml.read(tmp_path / "f" / "coordinator" / "run.toml")["run.name"] == name
    for site in ("a", "b"):
        assert read(tmp_path / "f" / site / "agent" / "site.toml", with_data=False).agree.runs == (name,)


@pytest.mark.parametrize("name", ['""', "3", '"a\\nb"', '"a\\u001b[2J"', f'"{"x" * 201}"', "['a']"])
def test_a_run_name_that_no_site_would_read_is_refused_by_init_and_by_the_coordinator(tmp_path, capsys, name):
    (tmp_path / "run.toml").write_text(f"[run]\nname = {name}\n")
    words = ["federate", "init", str(tmp_path / "f"), "--sites", "a,b", "--config", str(tmp_path / "run.toml")]
    assert main(words) == 2
    assert not (tmp_path / "f").exists()
    (said,) = capsys.readouterr().err.splitlines()
    assert "run.name" in said
    with pytest.raises(SpecError, match=r"run\.name is a text"):
        read_run(tmp_path)


def test_a_site_without_a_sum_has_no_section_of_it():
    text = folders.site_text("n", ["north"], folders.DEFAULTS, ["south"])
    assert "sum" not in toml.loads(text, "the site file")
    assert "\n# [sum]\n" in text


def test_a_demonstration_of_a_secure_sum_pins_at_every_site_the_keys_of_all_others(tmp_path):
    pytest.importorskip("cryptography")
    from tacit.agent.masks import files

    local_demo.make(tmp_path / "f", 3, "sum")
    listed = local_demo.sites_of("sum")
    assert {len(agents) for agents in listed.values()} == {1}  # of which colluding = 1 says the truth
    sites = {name: read(tmp_path / "f" / name / "agent" / "site.toml") for name in listed}
    drawn = {
        agent: files.signing_key(sites[name].sum.key_file(agent)).public
        for name, agents in listed.items() for agent in agents
    }  # fmt: skip
    assert len(drawn) == 4
    for name, agents in listed.items():
        assert sites[name].sum.colluding == 1
        assert sites[name].sum.peers == {agent: key for agent, key in drawn.items() if agent not in agents}


@pytest.mark.parametrize(("there", "asked", "says"), [
    ("", "sum", "holds a federation that trusts nobody: name a new folder"),
    ('[privacy]\ntrust = "sum"\n', "nobody", "holds a federation that trusts sum: name a new folder"),
    ('[privacy]\ntrust = "sum"\n', "sum", None),
    ("", "nobody", None),
])  # fmt: skip
def test_try_does_not_change_the_trust_of_a_federation_that_is_there(tmp_path, capsys, monkeypatch, there, asked, says):
    (tmp_path / "coordinator").mkdir()
    (tmp_path / "coordinator" / "run.toml").write_text(there)

    class Begun(SpecError):
        pass

    def begin(_folder):
        raise Begun("it begins")

    monkeypatch.setattr("tacit.federation.local_demo.LocalFederation", begin)
    assert main(["federate", "try", str(tmp_path), "--trust", asked]) == 2
    assert (says or "it begins") in capsys.readouterr().err


ORDER = ("federate link", "federate door", "federate register", "agent init", "agent check", "agent serve",
         "federate node", "federate run")  # fmt: skip


def test_init_prints_the_start_of_all_parties_in_an_order_that_works(tmp_path, capsys):
    """A node whose key is not registered is refused, so that register stands before it."""
    pytest.importorskip("cryptography")
    assert main(["federate", "init", str(tmp_path / "f"), "--sites", "a,b"]) == 0
    told = capsys.readouterr().out
    places = [told.index(f"tacit {command} ") for command in ORDER]
    assert places == sorted(places)
    assert "two accounts" in told[: places[3]]
    of_coordinator = (tmp_path / "f" / "coordinator" / "README.md").read_text()
    of_site = (tmp_path / "f" / "a" / "README.md").read_text()
    for text, commands in ((of_coordinator, [*ORDER[:3], ORDER[-1]]), (of_site, ORDER[3:-1])):
        places = [text.index(f"venv/bin/tacit {command} ") for command in commands]
        assert places == sorted(places)
    assert of_site.index("useradd") < of_site.index("venv/bin/tacit agent")


@pytest.mark.parametrize("names", [["north", "south"], ["north"], []])
def test_register_says_what_comes_next(tmp_path, capsys, monkeypatch, names):
    (tmp_path / "federation.toml").write_text("")
    monkeypatch.setattr("tacit.federation.nodes.register", lambda *_: names)
    assert main(["federate", "register", str(tmp_path)]) == 0
    first, then = capsys.readouterr().out.splitlines()
    assert first == f"registered: {', '.join(names) or 'none (every site already has a node id)'}"
    assert then.endswith(f"then tacit federate run {tmp_path}")


@pytest.mark.parametrize("action", ["link", "node"])
def test_what_becomes_flower_says_before_what_to_expect(tmp_path, capsys, monkeypatch, action):
    (tmp_path / "federation.toml").write_text("")
    (tmp_path / "flower.toml").write_text('[flower]\naddress = "localhost"\nport = 9092\ncontrol = 8123\n')
    (tmp_path / "node.toml").write_text('[node]\nsuperlink = "localhost:9092"\nsocket = "s"\nport = 9094\n')
    monkeypatch.setattr("tacit.federation.commands.Command.run_here", lambda _: print("flower"))
    monkeypatch.setattr("tacit.federation.doctor.await_ready", lambda *_: None)
    assert main(["federate", action, str(tmp_path)]) == 0
    told = capsys.readouterr()
    assert told.out == "flower\n"
    assert {"link": "Uvicorn running", "node": "SuperNode ID"}[action] in told.err
    assert main(["federate", action, "--quiet", str(tmp_path)]) == 0
    assert capsys.readouterr().err == ""


def test_a_door_says_which_port_it_opens_and_what_comes_next(tmp_path, capsys, monkeypatch):
    door = pytest.importorskip("tacit.federation.door")
    (tmp_path / "federation.toml").write_text("")
    (tmp_path / "flower.toml").write_text('[flower]\naddress = "localhost"\nport = 9123\ncontrol = 8123\n')
    monkeypatch.setattr(door, "serve", lambda *_: print("served"))
    assert main(["federate", "door", str(tmp_path)]) == 0
    first, then = capsys.readouterr().out.splitlines()
    assert first.startswith("door: on port 9123, before the SuperLink at https://127.0.0.1:8123. Next: ")
    assert then == "served"
