"""Open runs hold the budget that they may still use: a run that does not fit beside them is not admitted."""

import json
from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta

import pytest

from tacit.cli import main
from tacit.cli.train import show_result
from tacit.errors import BudgetExhausted, IncompatibleError, Interrupted, TermsChanged
from tacit.federation import ledger_files
from tacit.federation.coordinator import train
from tacit.federation.messages import Close, Closed, Refusal, Unjoined
from tacit.federation.service import Service
from tacit.federation.site import read as read_site
from tacit.privacy import ledger as ledgers
from tacit.privacy.history import Limit
from tacit.privacy.ledger import Ledger
from tacit.privacy.release import GaussianRelease, LaplaceRelease
from tacit.privacy.terms import ZERO_OUT, Terms
from tacit.run import deploy, deployment
from tests.federation import room as rooms
from tests.federation import sum_sites
from tests.federation.sites import ROUNDS, ask, join, make, service, told
from tests.federation.test_ledger_files import served, stopped
from tests.federation.test_listen import exchanged, folder, twin

__all__ = ["folder", "twin"]  # fixtures
ONE = {"privacy.epsilon": 1.0}  # of a limit that has room for one such run, and not for two
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@pytest.fixture
def later(monkeypatch):
    """Move the clock of all ledgers forward."""
    now, passed = ledgers._now, [timedelta()]
    monkeypatch.setattr(ledgers, "_now", lambda: now() + passed[0])

    def move(by):
        passed[0] += by

    return move


@pytest.fixture
def one(tmp_path):
    """A site with room for one run of epsilon 1, not for two."""
    with service(tmp_path, limit=1.2) as found:
        yield found


def fits(one, run, **values):
    return told(one, join(one, run, **ONE | values)).kind == "joined"


def entries(one):
    return one._ledgers["north"].history().tip[0]


def state(one, run):
    (found,) = [found for found in one._ledgers["north"].runs() if found.run == run]
    return found.state


# --- admission -----------------------------------------------------------------------------------------------------


def test_of_two_runs_that_do_not_fit_together_the_second_is_not_admitted_and_the_first_ends_well(one):
    first = join(one, "r1", **ONE)
    assert told(one, first).kind == "joined"
    before = entries(one)
    assert not fits(one, "r2")
    assert entries(one) == before
    for t in range(1, ROUNDS + 1):
        assert told(one, ask(one, first, t)).kind == "answer"
        assert not fits(one, f"r{2 + t}")
    assert state(one, "r1") == "finished"


def test_a_run_that_fits_beside_an_open_one_is_admitted_and_both_end_well(tmp_path):
    with service(tmp_path, limit=1.6) as one:
        runs = [join(one, name, **ONE) for name in ("r1", "r2")]
        assert [told(one, run).kind for run in runs] == ["joined", "joined"]
        assert not fits(one, "r3")
        for t in range(1, ROUNDS + 1):
            for run in runs:
                assert told(one, ask(one, run, t)).kind == "answer"


def test_a_refusal_says_to_the_owner_what_open_runs_hold_and_to_the_coordinator_nothing(tmp_path):
    lines = []
    with service(tmp_path, limit=1.2, log=lambda text, **_: lines.append(text)) as one:
        assert fits(one, "r1")
        assert told(one, join(one, "r2", **ONE)) == Refusal("r2")
        (said,) = [line for line in lines if line.startswith("refused")]
        assert "4 more releases of 'north 2024' in run 'r2', beside 4 that open runs hold, would bring" in said
        assert "close an open run (tacit ledger close " in said


def test_a_join_holds_its_budget_for_an_hour_and_an_answer_for_thirty_days(one, later):
    first = join(one, "r1", **ONE)
    assert told(one, first).kind == "joined"
    later(HOUR - timedelta(minutes=1))
    assert not fits(one, "r2")
    assert told(one, ask(one, first, 1)).kind == "answer"
    later(29 * DAY)
    assert not fits(one, "r2")
    assert told(one, ask(one, first, 2)).kind == "answer"
    later(29 * DAY)
    assert not fits(one, "r2")
    later(2 * DAY)
    assert state(one, "r1") == "lapsed"
    assert not fits(one, "r2")  # two answers were given: what is left of 1.2 is less than 1
    assert fits(one, "r3", **{"privacy.epsilon": 0.4})


def test_a_coordinator_that_disappears_before_the_first_round_blocks_nobody_after_an_hour(one, later):
    first = join(one, "r1", **ONE)
    assert told(one, first).kind == "joined"
    later(HOUR)
    assert fits(one, "r2")
    assert told(one, ask(one, first, 1)) == Refusal("r1")  # it comes back: no room is left
    one.close()
    with Service(one.site) as again:
        assert told(again, first) == Refusal("r1")


def test_a_run_that_lapsed_is_admitted_anew_at_its_next_question_and_holds_its_budget_again(one, later):
    first = join(one, "r1", **ONE)
    assert told(one, first).kind == "joined"
    later(2 * HOUR)
    assert told(one, ask(one, first, 1)).kind == "answer"
    assert state(one, "r1") == "open"
    assert not fits(one, "r2")


def test_a_run_that_lapsed_is_joined_again_by_an_entry_and_one_that_holds_its_budget_without(one, later):
    first = join(one, "r1", **ONE)
    assert told(one, first).kind == "joined"
    before = entries(one)
    ledger, place = one._ledgers["north"], one._ledgers["north"].history().place("north 2024", "r1")
    ledger.join("north 2024", place.terms)
    assert entries(one) == before
    later(2 * HOUR)
    ledger.join("north 2024", place.terms)
    assert entries(one) == before + 1
    assert state(one, "r1") == "open"


def test_a_laplace_run_beside_an_open_gaussian_run_is_composed_with_all_that_both_may_release(tmp_path):
    gauss = Terms("gauss", "spec", 4, GaussianRelease(10.0), ZERO_OUT, 1.0, 1e-6, 1.0)
    laplace = replace(gauss, run="laplace", rounds=5, release=LaplaceRelease(0.1))
    both = deployment.price([(gauss.release, 4), (laplace.release, 5)], 1e-6)
    apart = deployment.price([(gauss.release, 4)], 1e-6) + deployment.price([(laplace.release, 5)], 1e-6)
    assert both < 0.99 * apart
    for limit, room in ((both * (1 + 1e-9), True), (both * (1 - 1e-9), False)):
        with Ledger.open(tmp_path / f"{room}.ledger", deployment.price, Limit(limit, 1e-6)) as ledger:
            ledger.join("data", gauss)
            with nullcontext() if room else pytest.raises(BudgetExhausted, match="beside 4 that open runs hold"):
                ledger.join("data", laplace)


def test_a_run_joined_with_an_earlier_version_holds_nothing_and_goes_on_if_there_is_room(one):
    first = join(one, "r1", **ONE)
    assert told(one, first).kind == "joined"
    ledger = one._ledgers["north"]
    place = ledger.history().place("north 2024", "r1")
    with ledger._chain.transaction():  # an entry as version 0.2 wrote it
        at = "2026-01-01T00:00:00+00:00"
        body = {"kind": "run", "data": "north 2024", "terms": place.terms.described(), "at": at}
        ledger._chain.append("run as of 0.2", body)
    assert state(one, "r1") == "unreserved"
    assert fits(one, "r2")
    assert told(one, ask(one, first, 1)).kind == "answer"  # 1.2 has room for five answers
    assert told(one, ask(one, first, 2)) == Refusal("r1")  # and what r2 holds is not taken from it
    assert told(one, Close("r2", join(one, "r2", **ONE).agreed)) == Closed("r2")
    assert told(one, ask(one, first, 2)).kind == "answer"


def test_the_gap_of_exact_noise_counts_what_open_runs_hold(tmp_path, monkeypatch):
    counted = []
    monkeypatch.setattr(deploy, "_check_gap", lambda _own, _records, _agents, _e, releases, _: counted.append(releases))
    with service(tmp_path, limit=3.0) as one:
        assert fits(one, "r1")
        assert fits(one, "r2")
    assert counted == [ROUNDS, 2 * ROUNDS]


# --- the end of a run ----------------------------------------------------------------------------------------------


def test_a_close_ends_a_plain_run_frees_its_budget_and_later_questions_are_refused(one):
    first = join(one, "r1", **ONE)
    told(one, first)
    assert told(one, ask(one, first, 1)).kind == "answer"
    question = ask(one, first, 2)
    assert told(one, Close("r1", "0" * 64)) == Refusal("r1")  # not its coordinator
    assert told(one, Close("r1", first.agreed)) == Closed("r1")
    assert told(one, Close("r1", first.agreed)) == Closed("r1")
    assert state(one, "r1") == "ended"
    assert told(one, question) == Unjoined("r1")
    assert told(one, first) == Refusal("r1")
    assert fits(one, "r2", **{"privacy.epsilon": 0.8})


def test_a_question_that_is_under_way_when_its_run_is_closed_elsewhere_is_refused(one):
    first = join(one, "r1", **ONE)
    told(one, first)
    assert told(one, ask(one, first, 1)).kind == "answer"
    path = ledger_files.ledger_file(one.site, "north")
    assert main(["ledger", "close", str(path), "r1"]) == 0
    assert told(one, ask(one, first, 2)) == Refusal("r1")
    assert one._ledgers["north"].history().places["north 2024", "r1"].releases == 1


def test_a_run_that_ended_before_its_first_release_may_be_joined_again_by_its_name(one):
    first = join(one, "r1", **ONE)
    told(one, first)
    assert told(one, Close("r1", first.agreed)) == Closed("r1")
    assert told(one, first).kind == "joined"
    assert told(one, ask(one, first, 1)).kind == "answer"
    assert told(one, Close("r1", first.agreed)) == Closed("r1")
    with pytest.raises(TermsChanged, match="has ended here"):
        one._ledgers["north"].join("north 2024", one._ledgers["north"].history().place("north 2024", "r1").terms)


@pytest.mark.parametrize("withdrawn", [False, True])
def test_a_run_that_its_owner_has_closed_is_not_joined_again_whatever_the_coordinator_sends(one, withdrawn):
    first = join(one, "r1", **ONE)
    told(one, first)
    if withdrawn:
        assert told(one, Close("r1", first.agreed)) == Closed("r1")
    path = ledger_files.ledger_file(one.site, "north")
    assert main(["ledger", "close", str(path), "r1"]) == 0
    for message in (Close("r1", first.agreed), first, Close("r1", first.agreed), first):
        assert told(one, message) in (Closed("r1"), Refusal("r1"))
    assert state(one, "r1") == "ended"
    assert main(["ledger", "close", str(path), "r1"]) == 2


def test_a_secure_sum_that_was_withdrawn_may_begin_anew_with_a_new_key(tmp_path):
    with sum_sites.begun(tmp_path) as party:
        site = party["alone"]
        (before,) = [path.read_bytes() for path in site.site.ledger.glob("*.runkey")]
        assert told(site, party.close()) == Closed("r1")
        assert told(site, party.join).kind == "joined"
        (after,) = [path.read_bytes() for path in site.site.ledger.glob("*.runkey")]
        assert after != before


def test_a_plain_run_that_version_0_2_began_ends_well(tmp_path):
    """It has no closing.json."""

    def stop(done, _row):
        if done == 2:
            raise KeyboardInterrupt

    services = rooms.services(tmp_path)
    where = rooms.folder(tmp_path / "coordinator", rounds=ROUNDS)
    room = rooms.Room(services)
    try:
        with pytest.raises(Interrupted):
            train(where, room, stop, clock=room.clock)
        (path,) = (where / "runs").iterdir()
        (path / "closing.json").unlink()
        assert rooms.go(where, room).summary["rounds"] == ROUNDS
    finally:
        rooms.close(room)


def test_a_close_ends_a_secure_sum_with_repetitions_to_spare(tmp_path):
    with sum_sites.begun(tmp_path) as party:
        site = party["alone"]
        assert told(site, party.ask(1)).kind == "answer"
        assert site._ledgers["north"].runs()[0].state == "open"
        assert told(site, party.close()) == Closed("r1")
        assert site._ledgers["north"].runs()[0].state == "ended"
        assert not site._ledgers["north"].reserved("north 2024")


# --- the coordinator -----------------------------------------------------------------------------------------------


def test_a_third_site_that_refuses_costs_the_others_nothing_and_a_retry_is_admitted(tmp_path):
    sites = {"a": ("north",), "b": ("south",), "c": ("east",)}
    services = rooms.services(tmp_path, sites, limit=1.2)
    where = rooms.folder(tmp_path / "coordinator", sites=sites, rounds=ROUNDS, run="[privacy]\nepsilon = 1.0\n")
    room = rooms.Room(services)
    try:
        services["c"].site.agree.values["run.rounds"] = (1,)
        with pytest.raises(IncompatibleError, match="site c does not join the run"):
            rooms.go(where, room)
        for who in ("a", "b"):
            (ledger,) = services[who]._ledgers.values()
            (run,) = ledger.runs()
            assert (run.state, run.releases) == ("ended", 0)
        services["c"].site.agree.values["run.rounds"] = (ROUNDS,)
        room.events.clear()
        assert rooms.go(where, room).summary["rounds"] == ROUNDS  # under a new name, on the same budget
        for service in services.values():
            (ledger,) = service._ledgers.values()
            assert [run.state for run in ledger.runs()][-1] == "finished"
    finally:
        rooms.close(room)


def test_a_site_that_missed_the_last_round_is_asked_to_close_the_run_and_the_closing_lines_name_it(tmp_path, capsys):
    closes = []

    def fate(way, site, header):
        if way == "to" and header["kind"] == "close":
            closes.append(site)
        gone = site == "pair" and way == "to" and header["kind"] == "ask" and header["t"] >= ROUNDS
        return [] if gone else [rooms.QUICK]

    services = rooms.services(tmp_path)
    where = rooms.folder(tmp_path / "coordinator", rounds=ROUNDS, faults="deadline = 5.0\n")
    room = rooms.Room(services, fate)
    try:
        result = rooms.go(where, room)
        assert set(closes) == {"pair"}
        assert [run.state for run in services["pair"]._ledgers["south"].runs()] == ["ended"]
        assert [run.state for run in services["alone"]._ledgers["north"].runs()] == ["finished"]
        (path,) = (where / "runs").iterdir()
        show_result(result.summary, path, as_json=False)
        missed = f"answered {ROUNDS - 1} of {ROUNDS} rounds"
        assert f"took part   south {missed}; east {missed}" in capsys.readouterr().out
    finally:
        rooms.close(room)


# --- commands ------------------------------------------------------------------------------------------------------


def test_status_and_close_work_beside_a_running_service(folder, twin, capsys):
    path = make(folder, ("north", "south"), limit=1.2)
    site, first, second = read_site(path), join(twin, "r1", **ONE), join(twin, "r2", **ONE)
    for run in (first, second):
        assert told(twin, run).kind == "joined"  # the twin, without a limit, knows what to ask
    process, _ = served(path)
    try:
        assert exchanged(site, first).kind == "joined"
        assert exchanged(site, ask(twin, first, 1)).kind == "answer"
        assert exchanged(site, second) == Refusal("r2")
        assert main(["agent", "status", "--json", str(path)]) == 0
        north = json.loads(capsys.readouterr().out)["agents"]["north"]
        (run,) = north["runs"]
        assert (run["run"], run["state"], run["round"], run["remaining"]) == ("r1", "open", 1, ROUNDS - 1)
        assert 0 < north["spent"] < north["held"] <= 1.0
        assert north["left"] == pytest.approx(1.2 - north["held"])
        assert main(["agent", "status", str(path)]) == 0
        shown = " ".join(capsys.readouterr().out.split())
        assert "run r1: open, round 1 of 4, 1 release; holds budget for 3 more until 20" in shown
        assert main(["ledger", "show", str(ledger_files.ledger_file(site, "north"))]) == 0
        assert "open run r1 of north 2024: open, round 1 of 4" in " ".join(capsys.readouterr().out.split())
        assert main(["agent", "check", str(path)]) == 0
        assert ", left 0.2: a run of epsilon 1 would be refused, one of " in capsys.readouterr().out
        assert main(["agent", "close", str(path), "r2"]) == 2
        assert "run 'r2' was never joined, so that there is nothing to close. Open runs: r1." in capsys.readouterr().err
        assert main(["agent", "close", str(path), "r1"]) == 0
        assert "closed      run r1 at north, south" in capsys.readouterr().out
        assert exchanged(site, ask(twin, first, 2)) == Refusal("r1")
        assert exchanged(site, join(twin, "r3", **{"privacy.epsilon": 0.8})).kind == "joined"
        assert main(["agent", "close", str(path), "r1"]) == 2
        assert "run 'r1' is ended" in capsys.readouterr().err
    finally:
        stopped(process)
    with Service(site) as again:  # the witness is behind the two entries of `close`, and has caught up
        assert [run.state for run in again._ledgers["north"].runs()] == ["ended", "open"]
