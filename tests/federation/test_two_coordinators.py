"""Two coordinators of one run, such as a copy of the first: they learn no more together than one of them does."""

from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pytest

from tacit.errors import Suspended
from tacit.federation.messages import Refusal
from tacit.federation.service import Service
from tacit.privacy import lattice
from tacit.privacy.summed import Peers, attempt_of
from tests.federation import room as rooms
from tests.federation import sites as small
from tests.federation import sum_sites
from tests.federation.sites import agreement_of, told
from tests.federation.sum_sites import FOUR, PEERS


@pytest.fixture
def silent(monkeypatch):
    """No noise, so that words are masks and values alone."""
    monkeypatch.setattr("tacit.privacy.summed.sample", lambda _law, _steps, shape, _bits: np.zeros(shape, np.int64))


def words(one: Service, question) -> np.ndarray:
    """What the agents of a site give together."""
    return np.add.reduce(told(one, question).words, dtype=np.uint64)


def attempt_among(one: Service, present: int):
    return attempt_of(agreement_of(one).summed(0), Peers(present, 1))


def test_sites_that_were_asked_at_different_points_add_up_to_nothing(tmp_path):
    """Round, attempt and peers are the same; masks cancel between answers to one question alone."""
    with sum_sites.begun(tmp_path) as party:
        attempt, shape = attempt_among(party["alone"], 3), small.shape_of(party["alone"])
        points = {"alone": np.full(shape, 0.01), "pair": np.full(shape, -0.01)}
        for t, asked in ((1, {"alone": "alone", "pair": "alone"}), (2, {"alone": "pair", "pair": "pair"})):
            found = [words(one, party.ask(t, site=site, w=points[asked[site]])) for site, one in party.services.items()]
            assert attempt.holds(found[0] + found[1])
        found = [words(one, party.ask(3, site=site, w=points[site])) for site, one in party.services.items()]
        assert not attempt.holds(found[0] + found[1])


@pytest.mark.parametrize("other", ["w", "attempt", "peers", "round", "nothing"])
@pytest.mark.usefixtures("silent")
def test_a_site_whose_ledger_was_put_back_masks_another_question_with_other_masks(tmp_path, other):
    """The difference of two answers shows no difference of values, unless the question is the same to the bit."""
    everybody = (*PEERS, "west")
    with sum_sites.begun(tmp_path, sites=FOUR) as party:
        site, kept = party["alone"].site, tmp_path / "kept"
        for name in ("ledger", "witness"):
            shutil.copytree(getattr(site, name), kept / name)
        w = np.full(small.shape_of(party["alone"]), 0.01)
        question = party.ask(1, peers=everybody, w=w)
        first = words(party["alone"], question)
        party["alone"].close()
        for name in ("ledger", "witness"):
            shutil.copytree(kept / name, getattr(site, name), dirs_exist_ok=True)
        party.services["alone"] = Service(site)
        assert told(party["alone"], party.join).kind == "joined"
        assert told(party["alone"], party.meet()).kind == "met"
        changed = {
            "w": {"parameters": small.at(np.nextafter(w, 1.0))}, "attempt": {"attempt": 1}, "peers": {"peers": PEERS},
            "round": {"t": 2}, "nothing": {},
        }[other]  # fmt: skip
        second = words(party["alone"], replace(question, **changed))
        attempt = attempt_among(party["alone"], 4)
        assert attempt.holds(second - first) == (other == "nothing")
        assert (second == first).all() == (other == "nothing")


def test_an_agent_answers_one_question_of_a_round_whichever_coordinator_asks_first(tmp_path, monkeypatch):
    monkeypatch.setattr(lattice, "release", rooms.seeded)
    one, join = small.begun(tmp_path)
    with one:
        first = told(one, small.ask(one, join, 1, w=np.full(small.shape_of(one), 0.5)))
        assert told(one, small.ask(one, join, 1, w=np.full(small.shape_of(one), -0.5))) == Refusal("r1")
        again = told(one, small.ask(one, join, 1, w=np.full(small.shape_of(one), 0.5)))
        np.testing.assert_array_equal(first.words, again.words)
        assert len(one._ledgers["north"].history().answers) == 1


def test_a_copy_of_a_coordinator_that_begins_again_causes_no_release(tmp_path):
    services = rooms.services(tmp_path)
    room = rooms.Room(services)
    try:
        rooms.go(rooms.folder(tmp_path / "c", 4, run='name = "same"\n'), room)
        before = {site: rooms.spent(service) for site, service in services.items()}
        room.events.clear()
        with pytest.raises(Suspended, match="no agent has answered"):
            rooms.go(rooms.folder(tmp_path / "d", 4, run='name = "same"\n'), room)
        assert {site: rooms.spent(service) for site, service in services.items()} == before
    finally:
        rooms.close(room)
