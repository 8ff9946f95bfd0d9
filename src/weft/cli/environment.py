"""The environment of this process, hidden from the programs that it starts.

On Linux /proc/PID/environ shows the block of variables with which a process was started, whatever it does to
its variables later. A program of a skill gets no keys; it could read them there. So the block is overwritten
at the very start: only what a program gets anyway stays in it. The values live on in `os.environ`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress

_SHOWN = frozenset(
    "HOME LANG LANGUAGE LOGNAME PATH SSL_CERT_DIR SSL_CERT_FILE TMPDIR TZ USER WEFT_CALL "
    "XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME".split()
)
"""What programs get too (`tools/process.py`). By WEFT_CALL the processes of a call are found and ended."""
_SECRET_ENDS = ("_KEY", "_TOKEN", "_SECRET", "_PASSWORD", "_CREDENTIALS")
_PR_SET_DUMPABLE = 4


def hide_environment() -> None:
    """Overwrite the block of variables of this process. Nothing happens where there is no /proc.

    A library in C still finds its variables, in a copy; it does not find keys, and neither does a program
    that is started without an environment of its own.
    """
    for name, value in os.environ.items():
        if name.upper().endswith(_SECRET_ENDS):
            os.unsetenv(name)
        elif not _is_shown(name):
            os.putenv(name, value)  # a copy, outside of the block
    with suppress(OSError):
        memory = os.open("/proc/self/mem", os.O_RDWR)
        try:
            for at, length in _hidden(memory):
                os.pwrite(memory, b"\0" * length, at)
        finally:
            os.close(memory)


def _is_shown(name: str) -> bool:
    return name in _SHOWN or name.startswith("LC_")


def _hidden(memory: int) -> Iterator[tuple[int, int]]:
    """Yield the place and the length of each variable that nobody else may read."""
    with open("/proc/self/stat", "rb") as file:
        numbers = file.read().rpartition(b") ")[2].split()
    start, end = int(numbers[47]), int(numbers[48])
    at = start
    for variable in os.pread(memory, end - start, start).split(b"\0"):
        name = os.fsdecode(variable.partition(b"=")[0])
        if variable and not _is_shown(name):
            yield at, len(variable)
        at += len(variable) + 1


def refuse_inspection() -> None:
    """Keep other processes of this user from reading the memory of this one, keys among it. Root still can.

    Within a call of another Weft the processes of that call must be found by their environment.
    """
    if "WEFT_CALL" in os.environ:
        return
    import ctypes  # noqa: PLC0415 - 5 ms that only commands which run programs need

    try:
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    except (OSError, AttributeError):
        return  # no Linux
