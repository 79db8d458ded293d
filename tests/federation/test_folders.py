"""What `tacit federate` does without Flower: it reads words, writes site files, and says what is not installed."""

from __future__ import annotations

import pytest

from tacit.cli import main
from tacit.errors import SpecError
from tacit.federation import certificates, folders
from tacit.federation.agreement import spec_of
from tacit.federation.plan import read_plan
from tacit.federation.site import read
from tacit.run.presets import preset
from tacit.run.sources import GIVEN
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
    assert "pip install 'tacit[flower]'" in capsys.readouterr().err
    assert not (tmp_path / "f").exists()


def test_the_shipped_app_is_the_courier_as_it_is_here(tmp_path):
    folders.ship(tmp_path)
    here = folders.resources.files("tacit.federation")
    for name in ("courier.py", "wire.py"):
        assert (tmp_path / folders.MODULE / name).read_bytes() == here.joinpath(name).read_bytes()


def test_a_run_with_a_seed_is_refused_and_leaves_nothing(tmp_path):
    with pytest.raises(SpecError, match="follows no seed"):
        folders.make(tmp_path / "study", folders.Layout("study", {"north": ("north",)}, values={"run.seed": 0}))
    assert not (tmp_path / "study").exists()
