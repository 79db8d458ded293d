"""How a coordinator treats a site that sends what no honest agent sends, or declares more records than it may."""

import json
import tempfile
from pathlib import Path

import numpy as np
import pytest

from tacit.errors import DataError, SpecError, Suspended
from tacit.federation import folders, individual_rounds, status
from tacit.federation.plan import read_plan
from tacit.run import plausible
from tests.federation.room import Room, close, folder, go, services

ROUNDS = 5
FAULTS = "deadline = 60.0\nresend = 10.0\nstart_deadline = 1000.0\nmost_missed = 100\n"
SIZES = {"north": 24, "south": 17, "east": 30}


@pytest.fixture
def quick():
    """A place that is quick to sync."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as place:
        yield Path(place)


@pytest.fixture
def checked(monkeypatch):
    """The deployments of the answers that were checked, and whose they were."""
    seen = []

    def check(deployment, p, t, answer):
        seen.append((deployment, p, t))
        return plausible.why_implausible(deployment, p, t, answer)

    monkeypatch.setattr(individual_rounds, "why_implausible", check)
    return seen


def scaled(checked, share, since):
    """The site `pair`, whose agent south sends its answer with a share of the threshold as its norm."""

    def change(site, header, reply):
        header, body = reply
        if site == "pair" and header["kind"] == "answer" and header["t"] >= since:
            of, (_, size) = checked[0][0], header["arrays"]["words"]
            p = list(SIZES).index("south")
            own = of.first_agreement
            most = plausible.threshold(own.at(1), own.adjacency, of.records[p], len(SIZES) * ROUNDS)
            rows = np.frombuffer(body, "<f8").reshape(-1, size).copy()
            (k,) = [k for k, one in enumerate(header["given"]) if one["agent"] == "south"]
            rows[k] *= share * most / np.linalg.norm(rows[k])
            body = rows.tobytes()
        yield header, body

    return change


def trained(quick, checked, share, since=2, faults=FAULTS):
    room, said = Room(services(quick), change=scaled(checked, share, since)), []
    try:
        where = folder(quick / "c", ROUNDS, faults)
        return go(where, room, lambda text, **_: said.append(text)), room, said, where
    finally:
        close(room)


def test_an_answer_beyond_the_threshold_is_missing_and_log_and_status_name_the_agent(quick, checked):
    result, room, said, where = trained(quick, checked, 1.01)
    why = "the norm of its answer is 1.01 times the largest that 17 records and their noise can give"
    for t in range(2, ROUNDS + 1):
        assert f"round {t}: agent south: {why}" in said
        assert f"round {t} goes on without agent south: {why}" in said
    assert status.read(where)["sites"]["pair"]["agents"]["south"]["reason"] == why
    told = result.summary["took_part"]
    assert (told["south"]["answered"], told["south"]["missed"], told["south"]["refused"]) == (1, 4, 4)
    assert all(told[name]["answered"] == ROUNDS for name in ("north", "east"))
    assert room.paid["south"] == list(range(1, ROUNDS + 1))  # each answer has been paid for
    assert told["south"]["epsilon_at_most"] > told["south"]["epsilon"]


def test_an_answer_below_the_threshold_is_taken(quick, checked):
    result, _, said, _ = trained(quick, checked, 0.99)
    assert result.summary["took_part"]["south"]["answered"] == ROUNDS
    assert not any("can give" in line for line in said)
    assert {(p, t) for _, p, t in checked} == {(p, t) for p in range(3) for t in range(1, ROUNDS + 1)}


def test_where_no_agent_may_be_missing_the_run_stops_and_names_the_agent(quick, checked):
    with pytest.raises(Suspended, match=r"round 2: missing = .stop., and no answer came from south \(the norm of its"):
        trained(quick, checked, 1e9, faults=FAULTS + 'missing = "stop"\n')


# --- the number of records -------------------------------------------------------------------------------------------


def plan(quick, most, faults=FAULTS):
    where = folder(quick / "c", 2, faults)
    path = where / "federation.toml"
    path.write_text(path.read_text().replace("[faults]", f"most_records = {most}\n[faults]"))
    return where


@pytest.mark.parametrize(
    ("most", "who", "count", "allowed"),
    [(29, "east", 30, 29), (16, "north", 24, 16), ("{ south = 16 }", "south", 17, 16),
     ("{ north = 24, east = 3 }", "east", 30, 3)],
)  # fmt: skip
def test_an_agent_that_declares_more_records_than_it_may_is_named_before_anybody_joins(
    quick, most, who, count, allowed
):
    room, where = Room(services(quick)), plan(quick, most)
    site = "alone" if who == "north" else "pair"
    said = f"agent {who} of site {site} declares {count} records, and federation.most_records allows {allowed}: "
    with pytest.raises(DataError, match=f"^{said}"):
        go(where, room)
    assert not list(where.glob("runs/*"))
    close(room)
    assert not any(room.paid.values())


@pytest.mark.parametrize("most", [30, "{ north = 24 }", json.dumps({}), "{ north = 24, south = 17, east = 30 }"])
def test_agents_with_as_many_records_as_they_may_have_take_part(quick, most):
    room = Room(services(quick))
    assert go(plan(quick, most), room).summary["rounds"] == 2
    close(room)


def test_a_run_is_not_resumed_with_more_records_than_are_allowed_by_then(quick):
    room = Room(services(quick), lambda _way, _site, header: [] if header.get("t") == 2 else [0.1])
    where = folder(quick / "c", 2, FAULTS)
    with pytest.raises(Suspended):
        go(where, room)
    plan(quick, 29)
    with pytest.raises(DataError, match="agent east of site pair declares 30 records"):
        go(where, room)
    assert list(where.glob("runs/*/checkpoint.npz"))
    close(room)


@pytest.mark.parametrize("most", [0, -3, 1.5, "true", '"30"', "[30]", "{ north = 0 }", "{ north = true }"])
def test_a_limit_that_is_no_number_of_records_is_refused(quick, most):
    with pytest.raises(SpecError, match="most_records is a whole number of at least 1"):
        read_plan(plan(quick, most))


def test_a_limit_of_an_agent_that_is_not_listed_is_refused(quick):
    with pytest.raises(SpecError, match="did you mean 'south'"):
        read_plan(plan(quick, "{ suoth = 30 }"))


def test_limits_stay_where_node_ids_are_written(quick):
    where = plan(quick, "{ south = 30 }")
    kept = (where / "federation.toml").read_text().partition("[[site]]")[0]
    sites = {one.name: one.agents for one in read_plan(where).sites}
    (where / "federation.toml").write_text(folders.plan_text("trial", sites, {"pair": 7}, kept))
    assert read_plan(where).most_records == {"south": 30}
    assert read_plan(where).sites[1].node == 7
