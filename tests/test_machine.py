"""What this machine gives a process."""

import pytest

from tacit.machine import allowed_cores, cores, under_mpi


@pytest.mark.parametrize(("said", "threads"), [("3", 3), ("0", None), ("", None), ("many", None), ("-1", None)])
def test_a_user_may_say_how_many_threads_a_process_takes(monkeypatch, said, threads):
    monkeypatch.setenv("TACIT_THREADS", said)
    assert cores() == (threads or allowed_cores())


@pytest.mark.parametrize("name", ["OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"])
def test_a_rank_of_mpiexec_is_known_by_its_environment(monkeypatch, name):
    for known in ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"):
        monkeypatch.delenv(known, raising=False)
    assert not under_mpi()
    monkeypatch.setenv(name, "0")
    assert under_mpi()
