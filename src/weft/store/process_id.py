"""The id of a process that stays unique, and whether that process still runs.

A database in which a turn began may be opened by another process, or by the same program after a crash. The
system uses process ids again; two processes with the same id differ in their start time.
"""

from __future__ import annotations

import os
import socket
from functools import cache
from pathlib import Path


def this_process() -> str:
    """Return a name of this process that no other has, not even one that was forked from it."""
    return _named(os.getpid())


@cache
def _named(pid: int) -> str:
    return f"{_place()}/{pid}/{_began(pid)}"


def is_running(owner: str) -> bool | None:
    """Check whether a process runs; None if this process cannot see it."""
    place, _, rest = owner.rpartition("/")
    place, _, pid = place.rpartition("/")
    if place != _place() or not pid.isdigit():
        return None
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return _began(int(pid)) == rest


@cache
def _place() -> str:
    """Return the machine, and on Linux the container: process ids mean nothing outside of it."""
    try:
        inside = os.readlink("/proc/self/ns/pid")
    except OSError:
        inside = ""
    return f"{socket.gethostname()}/{inside}"


def _began(pid: int) -> str:
    """Return the start time of a process as the kernel has it; empty where it has none."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return ""
    return status.rpartition(")")[2].split()[19]
