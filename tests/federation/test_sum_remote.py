"""A coordinator behind a secure sum: agents that drop out and come back, storms, kills, forged words."""

import random
import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tacit import toml
from tacit.errors import IncompatibleError, Suspended
from tacit.federation import status
from tacit.federation.messages import REPLIES, Given, Refusal, Unjoined, read, written
from tacit.federation.opening import KEYS
from tacit.federation.sum_remote import SumRemote
from tacit.privacy.summed import Attempt
from tacit.run.spec import Spec
from tacit.run.train import train as train_here
from tacit.types import Shard
from tests.federation.room import QUICK, Room, close, go
from tests.federation.summing import SITES, SIZES, folder, paid, seeded, services

FAULTS = "deadline = 60.0\nresend = 10.0\nstart_deadline = 1000.0\nmost_missed = 100\n"
ROUNDS = 6
EVERYBODY = sorted(SIZES)


@pytest.fixture
def quick():
    """A place that is quick to sync."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as place:
        yield Path(place)


@pytest.fixture
def run(quick):
    """What starts or resumes a run over a room; services end with the test."""
    rooms = []

    def start(fate=None, change=None, rounds=ROUNDS, faults=FAULTS, repetitions=2, name="c", room=None, said=None):
        if room is None:
            room = Room(services(quick / name), **({"fate": fate} if fate else {}), change=change)
            rooms.append(room)
        where = folder(quick / name / "c", rounds, faults, repetitions)
        room.where = where
        start.room = room
        return go(where, room, lambda text, **_: (said if said is not None else []).append(text)), room

    yield start
    for room in rooms:
        close(room)


def down(site, rounds):
    """A fate: the site hears nothing and says nothing while these rounds are asked, but Joins and Meets at any time."""

    def fate(_way, who, header):
        return [] if who == site and header.get("t") in rounds else [QUICK]

    return fate


def spec_of(where):
    (path,) = (where / "runs").glob("*/spec.toml")
    return Spec().with_values(toml.read(path))


def test_a_sum_over_a_federation_is_bit_for_bit_one_in_one_process(run, monkeypatch):
    monkeypatch.setattr(Attempt, "share", seeded)
    result, room = run()
    own = [service.own for service in room.services.values()]
    names = tuple(name for one in own for name in one.agents)
    nothing = Shard(np.zeros((0, 3)), np.zeros(0, int))
    whole = replace(own[0], shards=tuple(s for one in own for s in one.shards), agents=names, name="trial", test=nothing)
    here = train_here(spec_of(room.where), whole)
    np.testing.assert_array_equal(result.w, here.w)
    np.testing.assert_array_equal(result.w_average, here.w_average)
    for ours, theirs in zip(result.rounds, here.rounds, strict=True):
        for key in ("t", "step", "rho", "noise_scale", "noise_gradient_units"):
            assert ours[key] == theirs[key], key
    assert result.summary["guarantee"] == here.summary["guarantee"]
