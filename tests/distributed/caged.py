"""Run a command with what its systemd unit allows it, where no systemd runs: python caged.py UNIT FOLDER COMMAND...

It applies the directives that can break a program: SystemCallFilter, RestrictAddressFamilies, MemoryDenyWriteExecute,
LimitCORE and, for root, the read-only file system of ProtectSystem=strict with ReadWritePaths (of /srv/tacit, which is
FOLDER here). The sets of system calls are those that `systemd-analyze syscall-filter` lists.
"""

import ctypes
import os
import resource
import socket
import subprocess
import sys
from pathlib import Path

NO_NEW_PRIVS, MDWE = 38, 65  # of prctl
ALLOW, REFUSE = 0x7FFF0000, 0x00050000  # of seccomp: the latter with an error number
EPERM, EAFNOSUPPORT = 1, 97
PRIVATE_MOUNTS = 0x00020000
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 32, 4096, 16384, 1 << 18
EQUAL = 4  # of libseccomp's comparisons
FAMILIES = 64  # of addresses, more than there are

libc = ctypes.CDLL(None, use_errno=True)


class Comparison(ctypes.Structure):
    _fields_ = (("arg", ctypes.c_uint), ("op", ctypes.c_int), ("a", ctypes.c_uint64), ("b", ctypes.c_uint64))


def directives(unit):
    """The values of each directive of a unit, in order."""
    found = {}
    for line in Path(unit).read_text().splitlines():
        if "=" in line and not line.startswith("#"):
            key, _, value = line.partition("=")
            found.setdefault(key, []).append(value)
    return found


def members(name):
    """The system calls of a set, and of the sets in it."""
    if not name.startswith("@"):
        return {name}
    lines = subprocess.run(["systemd-analyze", "--no-pager", "syscall-filter", name], capture_output=True, text=True,
                           check=True).stdout.splitlines()[1:]  # fmt: skip
    return set().union(*(members(line.strip()) for line in lines if line.strip() and not line.strip().startswith("#")))


def allowed(filters):
    """What a list of SystemCallFilter allows: the first is a list of what is allowed, ~ takes away from it."""
    calls = members("@default")
    for one in filters:
        named = set().union(*map(members, one.removeprefix("~").split()))
        calls = calls - named if one.startswith("~") else calls | named
    return calls


def closed(calls, families):
    """Let this process and its children make these system calls, and sockets of these families."""
    lib = ctypes.CDLL("libseccomp.so.2")
    lib.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(lib.seccomp_init(ctypes.c_uint32(REFUSE | EPERM)))
    for name in sorted(calls - {"socket"}):
        number = lib.seccomp_syscall_resolve_name(name.encode())
        if number >= 0:  # not of this machine otherwise
            assert lib.seccomp_rule_add_array(context, ctypes.c_uint32(ALLOW), number, 0, None) == 0, name
    number = lib.seccomp_syscall_resolve_name(b"socket")
    for family in range(FAMILIES):
        action = ALLOW if family in families else REFUSE | EAFNOSUPPORT
        only = (Comparison * 1)(Comparison(0, EQUAL, family, 0))  # the first argument equals it
        assert lib.seccomp_rule_add_array(context, ctypes.c_uint32(action), number, 1, only) == 0
    assert libc.prctl(NO_NEW_PRIVS, 1, 0, 0, 0) == 0
    assert libc.prctl(MDWE, 1, 0, 0, 0) == 0
    assert lib.seccomp_load(context) == 0


def mounted(source, target, flags):
    encoded = [None if one is None else str(one).encode() for one in (source, target)]
    if libc.mount(*encoded, None, ctypes.c_ulong(flags), None):
        raise OSError(ctypes.get_errno(), f"mount {target}")


def read_only(folder, writable):
    """Make a folder read-only for this process and its children, but for some folders in it."""
    assert libc.unshare(PRIVATE_MOUNTS) == 0
    mounted(None, "/", MS_REC | MS_PRIVATE)
    for path in writable:
        mounted(path, path, MS_BIND)
    mounted(folder, folder, MS_BIND | MS_REC)
    mounted(None, folder, MS_BIND | MS_REMOUNT | MS_RDONLY)


def main(unit, folder, *command):
    found = directives(unit)
    listed = " ".join(found.get("ReadWritePaths", [])).split()
    paths = [Path(one.removeprefix("-").replace("/srv/tacit", folder)) for one in listed]
    if os.getuid() == 0:
        read_only(folder, [one for one in paths if one.exists()])
    resource.setrlimit(resource.RLIMIT_CORE, (int(found["LimitCORE"][0]),) * 2)
    families = {getattr(socket, name) for name in found["RestrictAddressFamilies"][0].split()}
    closed(allowed(found["SystemCallFilter"]), families)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(*sys.argv[1:])
