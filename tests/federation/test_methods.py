"""Methods made of queries over a federation: the model is that of one process, and ledgers equal the account."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from tacit.errors import IncompatibleError
from tacit.privacy import lattice
from tacit.privacy.summed import Attempt
from tacit.run import asking, build
from tests.federation import room as rooms
from tests.federation import summing
from tests.federation.one_process import trained

NAME = '"algorithm.name" = "{method}"\n'
ROUNDS = 5
ALONE = ("fedgd", "onemessage", "outp-huang", "outp", "objt-laplace")
IN_SUM = ("fedgd", "secure-sum", "onemessage", "onemessage-sum")
SETTLED = ("onemessage", "onemessage-sum")  # in one round


@pytest.fixture
def injected(monkeypatch):
    """Noise that follows from the values, and random numbers of the server that are the same in every process."""
    monkeypatch.setattr(lattice, "release", rooms.seeded)
    monkeypatch.setattr(Attempt, "share", summing.seeded)
    monkeypatch.setattr(build, "secrets", SimpleNamespace(randbits=lambda _: 7))


@pytest.fixture
def opened(tmp_path):
    """What makes a coordinator's folder and a room for a method; the services end with the test."""
    made = []

    def start(method, in_sum=False, agree=NAME, faults="", fate=rooms.fate, rounds=ROUNDS, run=""):
        run += f'[algorithm]\nname = "{method}"\n'
        agree = agree.format(method=method)
        if in_sum:
            services = summing.services(tmp_path, agree=agree + summing.AGREE)
            where = summing.folder(tmp_path / "c", rounds, faults, repetitions=0, run=run)
        else:
            services = rooms.services(tmp_path, agree=agree)
            where = rooms.folder(tmp_path / "c", rounds, faults, run)
        if method in SETTLED:
            asked = (where / "run.toml").read_text()
            (where / "run.toml").write_text(asked.replace(f"rounds = {rounds}\n", ""))
        made.append(rooms.Room(services, fate))
        return where, made[-1]

    yield start
    for room in made:
        rooms.close(room)


EVERY = pytest.mark.parametrize(
    ("method", "in_sum"), [(name, False) for name in ALONE] + [(name, True) for name in IN_SUM]
)


@EVERY
@pytest.mark.usefixtures("injected")
def test_a_method_of_queries_trains_over_a_federation_what_it_trains_in_one_process(
    opened, monkeypatch, method, in_sum
):
    where, room = opened(method, in_sum)
    result = rooms.go(where, room)
    assert result.summary["rounds"] == (1 if method in SETTLED else ROUNDS)
    assert np.abs(result.w).max() > 0
    beside = trained(where, room)
    monkeypatch.setattr(asking, "THREADS", 1)
    monkeypatch.setattr(asking, "cores", lambda: 1)
    for here in (beside, trained(where, room)):
        np.testing.assert_array_equal(result.w, here.w)
        np.testing.assert_array_equal(result.w_average, here.w_average)
        assert result.summary["guarantee"] == here.summary["guarantee"]


@EVERY
def test_every_ledger_of_a_site_has_the_cost_that_the_run_states(opened, method, in_sum):
    where, room = opened(method, in_sum)
    result = rooms.go(where, room)
    rounds, agents = result.summary["rounds"], 0
    for service in room.services.values():
        for name, ledger in service._ledgers.items():
            told, (account,) = result.summary["took_part"][name], ledger.show()
            assert account.releases == told["released"] == told["asked"] == rounds
            assert account.epsilon == told["epsilon"] == told["epsilon_at_most"] == result.summary["epsilon"] <= 1.0
            ledger.verify(result.summary["ledger_heads"][name])
            agents += 1
    assert agents == len(result.summary["took_part"])


@pytest.mark.parametrize("method", ALONE)
def test_a_site_file_that_names_no_method_allows_steps_of_admm_with_gaussian_noise_alone(opened, method):
    where, room = opened(method, agree="")
    with pytest.raises(IncompatibleError, match="does not join the run"):
        rooms.go(where, room)
    assert not any(rounds for service in room.services.values() for rounds in rooms.spent(service).values())


@pytest.mark.parametrize("method", ["cpsgd", "dpsgd", "fedavg", "outp-released"])
def test_a_method_that_is_not_made_of_queries_is_refused_before_any_site_is_asked_to_join(opened, method):
    asked = []

    def fate(way, _site, header):
        asked.append(header["kind"])
        return rooms.fate(way, _site, header)

    where, room = opened(method, fate=fate)
    with pytest.raises(IncompatibleError, match="cannot be deployed"):
        rooms.go(where, room)
    assert "join" not in asked
