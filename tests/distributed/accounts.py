"""Processes under accounts of their own, where root runs the tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.distributed import conftest

AGENT, NODE, LINK = 10001, 10002, 10004  # accounts of a site and of the coordinator, by number
GROUP = 10000  # of the socket


def as_user(user, words, spare):
    """A command under another account. Python may lie in a home that others cannot enter (pyenv): then the command gets
    mounts of its own, in which that home holds what Python needs and nothing else.
    """
    needed = {Path(sys.base_prefix), Path(sys.prefix), conftest.ROOT}
    closed = {path: [one for one in (path, *path.parents) if not one.stat().st_mode & 0o001] for path in needed}
    script = ["set -e"]
    for n, path in enumerate(sorted(needed)):
        script += [f"mkdir -p {spare}/{n}", f"mount --bind {path} {spare}/{n}"] if closed[path] else []
    for home in {homes[-1] for homes in closed.values() if homes}:
        script.append(f"mount -t tmpfs -o mode=755 none {home}")
    for n, path in enumerate(sorted(needed)):
        script += [f"mkdir -p {path}", f"mount --bind {spare}/{n} {path}"] if closed[path] else []
    script.append(f'exec setpriv --reuid {user} --regid {user} --groups {GROUP} "$@"')
    return ["unshare", "--mount", "sh", "-c", "; ".join(script), "sh", *words]


def accounts_differ(spare):
    """Whether this machine lets the test run Python under two accounts."""
    if os.getuid() != 0 or not all(map(shutil.which, ("unshare", "setpriv", "mount"))):
        return False
    for user in (AGENT, NODE, LINK):
        words = as_user(user, [sys.executable, "-c", "import flwr, tacit.federation.listen"], spare)
        if subprocess.run(words, capture_output=True, check=False).returncode:
            return False
    return True


def give(folder, user, group):
    """Give a folder and all in it to an account and a group."""
    for path in (folder, *folder.rglob("*")):
        os.chown(path, user, group)
