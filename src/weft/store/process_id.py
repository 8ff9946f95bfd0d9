"""Which process holds something, and whether it still runs.

A file in which a turn was begun may be opened by another process, or by the same program after a crash. An id
that a later process was given again is told apart by when its process began.
"""

from __future__ import annotations

import os
import socket
from functools import cache
from pathlib import Path


def this_process() -> str:
    """This process, by a name that no other has, not even one that was forked from it."""
    return _named(os.getpid())


@cache
def _named(pid: int) -> str:
    return f"{_place()}/{pid}/{_began(pid)}"


def is_running(owner: str) -> bool | None:
    """Whether that process runs; None if it cannot be seen from here."""
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
    """The machine, and on Linux the container: process ids mean nothing outside of it."""
    try:
        inside = os.readlink("/proc/self/ns/pid")
    except OSError:
        inside = ""
    return f"{socket.gethostname()}/{inside}"


def _began(pid: int) -> str:
    """When a process began, as the kernel tells it; nothing where it does not."""
    try:
        told = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return ""
    return told.rpartition(")")[2].split()[19]
