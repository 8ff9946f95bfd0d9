"""MCP servers in Claude Code's settings file, which are there only while a call runs.

Our servers are merged into the user's settings. Afterwards the file has its former bytes again. If another
program changed the file meanwhile, only our servers are removed.
"""

from __future__ import annotations

import json
import logging
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

from weft.private_files import make_private_folder

_log = logging.getLogger(__name__)

SETTINGS_FILE = Path(".claude") / "settings.local.json"
_KEY = "mcpServers"
Servers = Mapping[str, Mapping[str, Any]]


@dataclass(slots=True)
class _Loan:
    """A settings file in use: its former bytes, the bytes we wrote last, and the servers of each call."""

    before: bytes | None
    is_new_folder: bool
    written: bytes | None = None
    servers: list[Servers] = field(default_factory=list)


_loans: dict[Path, _Loan] = {}
_lock = Lock()


@contextmanager
def lent_servers(folder: Path, servers: Servers) -> Iterator[None]:
    """Put servers into the settings file of a folder for a while. Calls at the same time share the file.

    A file that cannot be read or written is left alone, with a warning: the command line has the servers too.
    """
    if not servers:
        yield
        return
    path = Path(os.path.realpath(folder / SETTINGS_FILE))
    with _lock:
        loan = _begin(path, servers)
    try:
        yield
    finally:
        if loan is not None:
            with _lock:
                _end(path, loan, servers)


def _begin(path: Path, servers: Servers) -> _Loan | None:
    try:
        loan = _loans.get(path)
        if loan is None:
            is_new = not path.parent.exists()
            make_private_folder(path.parent)
            loan = _Loan(before=_read(path), is_new_folder=is_new)
        loan.written = _write(path, _merged(_read(path), servers))
    except (OSError, ValueError, RecursionError) as error:
        _log.warning("%s is left as it is (%s): mend it to let Claude Code see our servers.", path, error)
        return None
    loan.servers.append(servers)
    return _loans.setdefault(path, loan)


def _end(path: Path, loan: _Loan, servers: Servers) -> None:
    # By identity: two calls may have equal servers.
    loan.servers = [other for other in loan.servers if other is not servers]
    if not loan.servers:
        del _loans[path]
    try:
        current = _read(path)
        if current is None:
            return
        if not loan.servers and current == loan.written:
            _put(path, loan, loan.before)
        else:
            in_use = {name for other in loan.servers for name in other}
            ours = {name: value for name, value in servers.items() if name not in in_use}
            _put(path, loan, _without(current, ours, loan.before))
    except (OSError, ValueError, RecursionError) as error:
        _log.warning("%s may still hold servers of ours (%s): look at its %r.", path, error, _KEY)


def _put(path: Path, loan: _Loan, data: bytes | None) -> None:
    """Write the data, or remove the file where there is none."""
    if data is not None:
        loan.written = _write(path, data)
        return
    path.unlink()
    if loan.is_new_folder:
        with suppress(OSError):  # another program put something there
            path.parent.rmdir()


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _merged(current: bytes | None, servers: Servers) -> bytes:
    settings = _parsed(current) if current is not None else {}
    return _dumped({**settings, _KEY: {**_table(settings.get(_KEY, {})), **servers}})


def _without(current: bytes, servers: Servers, before: bytes | None) -> bytes | None:
    """Return the settings with the user's servers in place of ours, or None if no setting is left."""
    settings = _parsed(current)
    users = _table(_parsed(before or b"{}").get(_KEY, {}))
    rest: dict[str, Any] = {}
    for name, value in _table(settings.pop(_KEY, {})).items():
        if servers.get(name) != value:
            rest[name] = value
        elif name in users:
            rest[name] = users[name]
    if rest:
        settings[_KEY] = rest
    return _dumped(settings) if settings else None


def _parsed(data: bytes) -> dict[str, Any]:
    return _table(json.loads(data or b"{}"))


def _table(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("it holds something else than a table")
    return value


def _dumped(settings: Mapping[str, Any]) -> bytes:
    return json.dumps(settings, indent=2, ensure_ascii=False).encode()


def _write(path: Path, data: bytes) -> bytes:
    """Replace the file at once. Nobody may read it who could not read it before."""
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(name, mode)
        os.replace(name, path)
    except OSError:
        os.unlink(name)
        raise
    return data
