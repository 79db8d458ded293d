"""A coordinator and the services of three agents, from Hello to the result."""

import json
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tacit.errors import DataError, IncompatibleError, Interrupted, RunDirectoryError, SpecError, Suspended
from tacit.federation import control, status, wire
from tacit.federation.coordinator import train, unfinished
from tacit.federation.join_phase import Participants
from tacit.federation.messages import Refusal
from tacit.federation.service import Service
from tacit.federation.site import read as read_site
from tacit.privacy import lattice
from tacit.run.compose import federated_rounds
from tacit.run.spec import Spec
from tacit.run.train import train as train_here
from tacit.types import Federation, Shard
from tests.federation import sites as small
from tests.federation.room import Room, close, folder, go, seeded, services, spent

FAULTS = "deadline = 60.0\nresend = 10.0\nstart_deadline = 100.0"


@pytest.fixture
def quick():
    """A place that is quick to sync."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as place:
        yield Path(place)


def whole(room: Room) -> Federation:
    """All records of the federation, as one process would have them."""
    own = [service.own for service in room.services.values()]
    shards = tuple(shard for one in own for shard in one.shards)
    names = tuple(name for one in own for name in one.agents)
    return replace(own[0], shards=shards, agents=names, name="trial", test=Shard(np.zeros((0, 3)), np.zeros(0, int)))


@pytest.mark.parametrize("algorithm", ["objt", "objp"])
def test_a_federation_in_which_nobody_is_missing_is_bit_for_bit_a_run_in_one_process(quick, monkeypatch, algorithm):
    monkeypatch.setattr(lattice, "release", seeded)
    where = folder(quick / "c", 6, FAULTS, f'[algorithm]\nname = "{algorithm}"\n')
    room = Room(services(quick))
    result = go(where, room)
    spec = Spec().with_values(_spec(where))
    here = train_here(spec.with_values({"privacy.noise": "exact"}), whole(room))
    np.testing.assert_array_equal(result.w, here.w)
    np.testing.assert_array_equal(result.w_average, here.w_average)
    for ours, theirs in zip(result.rounds, here.rounds, strict=True):
        for key in ("t", "step", "rho", "noise_scale", "noise_gradient_units", "consensus_violation"):
            assert ours[key] == theirs[key], key
        assert ours["objective"] is None
    close(room)


def _spec(where: Path):
    from tacit import toml

    (path,) = (where / "runs").glob("*/spec.toml")
    return toml.read(path)


def test_the_result_says_who_took_part_and_ledgers_hold_what_the_coordinator_counts(quick):
    room = Room(services(quick))
    result = go(folder(quick / "c", 4, FAULTS), room)
    assert set(result.summary["took_part"]) == {"north", "south", "east"}
    for site, service in room.services.items():
        for name, rounds in spent(service).items():
            told = result.summary["took_part"][name]
            assert rounds == [1, 2, 3, 4]
            assert (told["site"], told["answered"], told["missed"], told["late"], told["refused"]) == (site, 4, 0, 0, 0)
            assert told["epsilon"] == pytest.approx(service._ledgers[name].show()[0].epsilon)
            assert told["epsilon"] <= 1.0
            assert result.summary["ledger_heads"][name] == service._ledgers[name].head
    assert "keeps its own ledger; no server, agent or channel is trusted" in result.summary["trust"]
    assert any("a site can read its files" in one for one in result.summary["not_covered"])
    assert not any("ends the command" in one for one in result.summary["not_covered"])
    assert result.summary["objective"] is None
    assert result.summary["test_error"] is None
    close(room)


def test_test_records_of_the_coordinator_are_measured(quick):
    room = Room(services(quick))
    where = folder(quick / "c", 2, FAULTS, '[data]\ntest = "test.csv"\nclass_names = "no,yes"\nlow = 0.0\nhigh = 1.0\n')
    (where / "test.csv").write_text((quick / "alone" / "north.csv").read_text())
    assert 0 <= go(where, room).test_error <= 1
    assert status.read(where)["test_error"] is not None
    close(room)


def test_test_records_of_another_form_are_refused(quick):
    room = Room(services(quick))
    where = folder(quick / "c", 2, FAULTS, '[data]\ntest = "test.csv"\nclass_names = "no,yes"\nlow = 0.0\nhigh = 2.0\n')
    (where / "test.csv").write_text((quick / "alone" / "north.csv").read_text())
    with pytest.raises(DataError, match="test records"):
        go(where, room)
    assert all(not rounds for service in room.services.values() for rounds in spent(service).values())
    close(room)


def test_a_finished_run_is_followed_by_a_new_one(quick):
    room = Room(services(quick))
    where = folder(quick / "c", 2, FAULTS)
    first, second = go(where, room), go(where, room)
    assert (first.w != second.w).any()
    assert sorted(path.name for path in (where / "runs").iterdir()) == ["trial-1", "trial-2"]
    close(room)


def test_a_run_does_not_begin_without_a_site_and_says_which(quick):
    room = Room(services(quick) | {"pair": None})
    with pytest.raises(Suspended, match="pair"):
        go(folder(quick / "c", 2, FAULTS), room)
    assert room.now < 200
    assert "no word yet" in "\n".join(status.lines(status.read(quick / "c")))
    close(room)


def test_a_run_may_begin_with_those_who_are_present_and_says_who_took_part(quick):
    room = Room(services(quick) | {"pair": None})
    result = go(folder(quick / "c", 2, FAULTS + '\nstart = "present"'), room)
    assert set(result.summary["took_part"]) == {"north"}
    close(room)


def test_a_site_that_refuses_to_join_stops_the_run_before_anything_is_released(quick):
    strict = services(quick, {"pair": ("south", "east")}, agree='"run.rounds" = 3')
    room = Room(services(quick, {"alone": ("north",)}) | strict)
    where = folder(quick / "c", 4, FAULTS)
    with pytest.raises(IncompatibleError, match="site pair does not join"):
        go(where, room)
    assert all(not rounds for service in room.services.values() for rounds in spent(service).values())
    assert not list((where / "runs").iterdir())
    close(room)


def test_sites_of_two_forms_are_named(quick):
    path = small.make(quick / "pair", ("south", "east"), name="pair")
    path.write_text(path.read_text().replace("high = 1.0", "high = 2.0"))
    room = Room(services(quick, {"alone": ("north",)}) | {"pair": Service(read_site(path))})
    said = r"the bounds of all features are \[0.0, 2.0\] at site pair and \[0.0, 1.0\] at site alone. Give all sites"
    with pytest.raises(DataError, match=said):
        go(folder(quick / "c", 2, FAULTS), room)
    close(room)


def test_a_site_cannot_bring_the_agents_of_another(quick):
    room = Room({"alone": services(quick, {"alone": ("north",)})["alone"]})
    where = folder(quick / "c", 2, FAULTS, sites={"alone": ("south",)})
    with pytest.raises(DataError, match="site alone has the agents north"):
        go(where, room)
    close(room)


def test_a_run_is_not_resumed_by_another_config(quick):
    room = Room(services(quick))
    where = folder(quick / "c", 4, FAULTS)
    room.change = _nothing_after(2)
    with pytest.raises(Suspended):
        go(where, room)
    folder(where, 5, FAULTS)
    with pytest.raises(RunDirectoryError, match=r"run\.toml asks for another"):
        go(where, room)
    folder(where, 4, FAULTS, sites={"alone": ("north", "south", "east")})
    with pytest.raises(RunDirectoryError, match=r"federation\.toml lists others"):
        go(where, room)
    close(room)


def _nothing_after(t):
    def change(_site, header, reply):
        if header["kind"] != "ask" or header["t"] <= t:
            yield reply

    return change


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("federation.toml", "[federation]\n", "name"),
        ("federation.toml", '[federation]\nname = "../up"\n', "letters"),
        ("federation.toml", '[federation]\nname = "a"\n', "no site"),
        ("federation.toml", '[federation]\nname = "a"\n[[site]]\nname = "s"\nagents = []\n', "no agents"),
        ("federation.toml", '[federation]\nname = "a"\n[[site]]\nname = "s"\nagents = ["p", "p"]\n', "p twice"),
        ("federation.toml", '[federation]\nname = "a"\n[[site]]\nname = "s"\nagent = ["p"]\n', "agents"),
        ("federation.toml", '[federation]\nname = "a"\n[[site]]\nname = "s"\nagents = ["p"]\nnode = -1\n', "node"),
        ("federation.toml", '[federation]\nname = "a"\n[faults]\ndeadline = 0\n', "deadline"),
        ("federation.toml", '[federation]\nname = "a"\n[faults]\nmissing = "skip"\n', "reuse"),
        ("federation.toml", '[federation]\nname = "a"\n[faults]\nmost_missed = "5"\n', "most_missed"),
        ("federation.toml", '[federation]\nname = "a"\n[faults]\nlate = 1\n', "late"),
        ("run.toml", '[privacy]\nledger = "x"\n', "site.toml"),
        ("run.toml", '[privacy]\nnoise = "simulated"\n', "exact"),
        ("run.toml", "[run]\nseed = 7\n", "seed"),
        ("run.toml", '[data]\nsource = "mnist"\n', "sites"),
        ("run.toml", '[algorithm]\norder = "wzd"\nlinearize_at = "z"\nmomentum = 0\n', "reuse"),
        ("run.toml", '[algorithm]\nname = "fedavg"\n', "exact|deployed|ADMM"),
    ],
)  # fmt: skip
def test_a_bad_folder_is_refused_in_one_sentence(quick, file, text, said):
    where = folder(quick / "c", 2, FAULTS + '\nmissing = "reuse"\n')
    (where / file).write_text(text)
    room = Room(services(quick))
    with pytest.raises((SpecError, IncompatibleError), match=said) as error:
        go(where, room)
    assert "\n" not in str(error.value)
    assert not list((where / "runs").glob("*"))
    close(room)


def test_a_coordinator_that_is_killed_before_it_has_noted_who_is_there_begins_anew(quick, monkeypatch):
    room, where = Room(services(quick)), folder(quick / "c", 2, FAULTS)
    with monkeypatch.context() as patched:
        patched.setattr(Participants, "write", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            go(where, room)
    assert go(where, room).summary["rounds"] == 2
    assert [path.name for path in (where / "runs").iterdir()] == ["trial-1"]
    close(room)


def test_a_draft_that_a_killed_coordinator_left_is_no_run(quick):
    room, where = Room(services(quick)), folder(quick / "c", 2, FAULTS)
    (where / "runs" / ".tacit-draft").mkdir(parents=True)
    (where / "runs" / ".tacit-draft" / "spec.toml").write_text(small.spec().toml())
    assert unfinished(where) is None
    go(where, room)
    assert (where / "runs" / "trial-1" / "result.json").is_file()
    close(room)


def test_what_a_site_calls_itself_cannot_move_the_cursor_of_the_coordinator(quick):
    def change(_site, header, reply):
        yield ({**reply[0], "site": "\x1b[2Jalone"}, reply[1]) if header["kind"] == "hello" else reply

    said, room = [], Room(services(quick), change=change)
    with pytest.raises(Suspended):
        go(folder(quick / "c", 2, FAULTS), room, lambda text, **_: said.append(text))
    assert said
    assert all(line.isprintable() for line in said)
    close(room)


def test_the_name_of_a_finished_run_is_refused_before_any_site_is_asked(quick):
    room = Room(services(quick))
    where = folder(quick / "c", 2, FAULTS, run='name = "first"\n')
    go(where, room)
    room.services = dict.fromkeys(room.services)  # whoever asks them now waits in vain
    with pytest.raises(RunDirectoryError, match=r"'first' is the name .*trial-1, which is finished") as found:
        go(where, room)
    assert "agree.runs" in str(found.value)
    assert not room.events
    with pytest.raises(RunDirectoryError, match="which is finished"):  # nor is Flower
        control.run(where, lambda _: None)
    assert [path.name for path in (where / "runs").iterdir()] == ["trial-1"]


def test_another_name_in_run_toml_is_another_run_than_the_one_that_is_not_finished(quick):
    """Else the name that its sites agreed to would be passed over in silence."""
    room = Room(services(quick))
    where = folder(quick / "c", 3, FAULTS, run='name = "first"\n')
    def stop(done, _row):
        if done == 1:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted):
        train(where, room, stop, clock=room.clock)
    toml = (where / "run.toml").read_text()
    (where / "run.toml").write_text(toml.replace("first", "second"))
    with pytest.raises(RunDirectoryError, match="asks for another"):
        go(where, room)
    (where / "run.toml").write_text(toml)
    assert go(where, room).summary["rounds"] == 3
    close(room)


def test_status_tells_a_person_and_a_program(quick):
    room = Room(services(quick))
    where = folder(quick / "c", 2, FAULTS)
    with pytest.raises(RunDirectoryError, match="cannot be read"):
        status.read(where)
    result = go(where, room)
    told = json.loads((where / "status.json").read_text())
    assert (told["round"], told["of"], told["state"]) == (2, 2, "finished")
    assert told["sites"]["pair"]["agents"]["east"]["answered"] == 2
    said = "\n".join(status.lines(status.read(where)))
    assert "2 of 2 rounds" in said
    assert "answered 2, missed 0" in said
    assert result.summary["took_part"]["east"]["epsilon"] == told["sites"]["pair"]["agents"]["east"]["epsilon"]
    close(room)


def test_a_run_that_names_no_rounds_has_those_that_public_numbers_give(quick):
    room = Room(services(quick))
    where = folder(quick / "c", 2, FAULTS)
    (where / "run.toml").write_text("")
    result = go(where, room)
    spec = Spec().with_values(_spec(where))
    rounds = federated_rounds(spec, whole(room))
    assert result.summary["rounds"] == rounds == len(spent(room.services["alone"])["north"])
    close(room)


def test_a_run_whose_answers_could_not_arrive_is_refused_on_both_sides_before_anything_is_released(quick, monkeypatch):
    """They would be paid for, and their site would look absent for ever."""
    where, room = folder(quick / "c", 2, FAULTS), Room(services(quick))
    service = room.services["pair"]
    honest = small.join(service)
    small.told(service, honest)
    needed = wire.ITEM * 2 * small.agreement_of(service).queries[0].query.size
    service._runs.clear()
    monkeypatch.setattr(wire, "LARGEST_BODY", needed - 1)
    assert small.told(service, honest) == Refusal("r1")
    with pytest.raises(IncompatibleError, match="spread the agents over more sites"):
        go(where, room)
    assert spent(room.services["alone"]) == {"north": []}
    monkeypatch.setattr(wire, "LARGEST_BODY", needed)
    go(where, room)
    close(room)
