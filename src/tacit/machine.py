"""What this machine gives a process: cores, this installation and its compiled extensions, and names that last."""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import IO, Any


def cores() -> int:
    """The number of threads for this process: TACIT_THREADS, or the cores that it may use.

    taskset or a cpuset may allow fewer cores than the machine has.
    """
    said = os.environ.get("TACIT_THREADS", "")
    return int(said) if said.isdecimal() and int(said) else allowed_cores()


def allowed_cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def under_mpi() -> bool:
    """Whether mpiexec, or a batch system in its place, started this process as one of several ranks.

    srun names the rank of its only process too. Who starts ranks inside a job of Slurm says how many itself.
    """
    sizes = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS")
    size = next((os.environ[name] for name in sizes if name in os.environ), "")
    ranked = any(name in os.environ for name in ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"))
    return ranked and size != "1"


def extension(name: str) -> ModuleType | None:
    """The extension module of this name; None where it was not built, or TACIT_NO_KERNELS is set."""
    if os.environ.get("TACIT_NO_KERNELS") or importlib.util.find_spec(name) is None:
        return None
    return importlib.import_module(name)


def name_conflict() -> str | None:
    """Return what to do about distributions called `tacit` that are installed here; None if there are none.

    Ours is tacit-dp. `tacit` is another project on PyPI, and was our own name before. The advice is the same for both:
    two distributions own files of one package, so that uninstalling either takes files away from the other.
    """
    import importlib.metadata  # slow to load, and `tacit --version` does without

    folders = dict.fromkeys(Path(str(one.locate_file(""))) for one in importlib.metadata.distributions(name="tacit"))
    if not folders:
        return None
    remains = [str(path) for folder in folders if (path := folder / "tacit.egg-info").is_dir()]  # of an old checkout
    return (
        f"a distribution called tacit is in {' and '.join(map(str, folders))}: another project on PyPI, or this one "
        "before it was renamed to tacit-dp. Its files may have replaced ours: run pip uninstall tacit tacit-dp"
        f"{', delete ' + ' and '.join(remains) if remains else ''} and install again "
        "(docs/quick-start.md#the-name-on-pypi)."
    )


def open_files(count: int) -> int:
    """Raise the number of files that this process may have open to `count`, or as near as the system lets it.

    Return the number that it may have open now.
    """
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return count
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= count:
        return count if soft == resource.RLIM_INFINITY else soft
    allowed = count if hard == resource.RLIM_INFINITY else min(count, hard)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    except (ValueError, OSError):  # macOS allows fewer than its hard limit says
        return soft
    return allowed


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk, so that a file which was made or renamed there is there for good."""
    if os.name == "posix":  # elsewhere a directory cannot be opened, nor synced
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def write_whole(path: Path, write: Callable[[IO[bytes]], Any]) -> None:
    """Write a draft beside the file, flush the draft to disk, rename it: a crash leaves the old file or the new one.

    On return the new one is there for good: ledgers then forget what only the old one would have asked for.
    """
    draft = path.with_name(f".{path.name}.draft")
    with draft.open("wb") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    sync_folder(path.parent)
