"""The demonstration of `tacit federate try` with methods made of queries, over a room in place of Flower."""

import tempfile
from pathlib import Path

import pytest

from tacit import toml
from tacit.cli import main
from tacit.errors import OwnerWarning
from tacit.federation import ledger_files, local_demo
from tacit.federation.plan import read_plan
from tacit.federation.service import Service
from tacit.federation.site import read
from tests.federation import room as rooms
from tests.federation.room import Room

ROUNDS = {"fedgd": local_demo.ROUNDS, "onemessage": 1}


@pytest.fixture
def demo():
    """A folder with a short path, because the path of a socket has a longest length."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder) / "demo"


def services(folder):
    found = {}
    for site in (one.name for one in read_plan(folder / "coordinator").sites):
        path = folder / site / "agent" / "site.toml"
        ledger_files.init(read(path, with_data=False))
        found[site] = Service(read(path))
    return found


@pytest.mark.parametrize("trust", [None, "sum"])
@pytest.mark.parametrize("name", ROUNDS)
@pytest.mark.filterwarnings(f"ignore::{OwnerWarning.__module__}.{OwnerWarning.__name__}")  # cells of one hospital
def test_a_demonstration_runs_the_method_that_it_is_made_for_and_its_ledgers_equal_the_account(demo, name, trust):
    """As `tacit federate init` writes the folders, rounds and faults included."""
    if trust:
        pytest.importorskip("cryptography")
    local_demo.make(demo, trust=trust, algorithm=name)
    assert local_demo.algorithm_of(demo) == name
    room = Room(services(demo))
    try:
        fields = rooms.go(demo / "coordinator", room).summary["guarantee_fields"]
        ((release, _),) = fields["each_round"]
        for ledger in (one for service in room.services.values() for one in service._ledgers.values()):
            (account,), (spent,) = ledger.show(), ledger.history().spent.values()
            assert {one.multiplier: count for one, count in spent.items()} == {release["multiplier"]: ROUNDS[name]}
            if trust:  # the agreement lists repetitions too, and nobody was missing
                assert account.epsilon < fields["epsilon"] <= 1
            else:
                assert account.epsilon == fields["epsilon"] <= 1
    finally:
        rooms.close(room)


def test_a_method_of_one_round_has_one_where_run_toml_names_none(tmp_path):
    folder = tmp_path / "c"
    opened = rooms.services(tmp_path, agree='"algorithm.name" = "onemessage"\n')
    rooms.folder(folder)
    (folder / "run.toml").write_text(toml.text({"algorithm.name": "onemessage"}))
    room = Room(opened)
    assert rooms.go(folder, room).summary["guarantee_fields"]["rounds"] == 1
    rooms.close(room)


@pytest.mark.parametrize(
    ("missing", "wanted"), [('missing = "reuse"\n', "reuse"), ('missing = "stop"\n', "stop"), ("", None)]
)
def test_what_is_done_about_missing_agents_is_read_as_it_is_written(tmp_path, missing, wanted):
    assert read_plan(rooms.folder(tmp_path, faults=missing)).faults.missing == wanted


def test_try_refuses_another_method_than_that_of_the_federation(demo, capsys):
    local_demo.make(demo, algorithm="fedgd")
    assert main(["federate", "try", str(demo), "--algorithm", "onemessage"]) == 2
    assert "holds a federation that runs fedgd" in capsys.readouterr().err
