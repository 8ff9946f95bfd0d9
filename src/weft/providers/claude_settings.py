"""MCP servers in Claude Code's settings file, there only while a call runs.

What the user has in that file is kept: our servers are merged in, and afterwards the very bytes of before
come back. If somebody else changed the file meanwhile, only our servers are taken out again.
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

_log = logging.getLogger(__name__)

SETTINGS_FILE = Path(".claude") / "settings.local.json"
_KEY = "mcpServers"
Servers = Mapping[str, Mapping[str, Any]]


@dataclass(slots=True)
class _Loan:
    """One file that calls have written to: what it was, what we wrote last, and who needs what."""

    before: bytes | None
    made_folder: bool
    written: bytes | None = None
    lent: list[Servers] = field(default_factory=list)


_loans: dict[Path, _Loan] = {}
_lock = Lock()


@contextmanager
def lent_servers(folder: Path, servers: Servers) -> Iterator[None]:
    """The servers in the settings file of a folder. Calls at the same time share the file.

    A file that cannot be read or written stays as it is, with a warning: the servers are on the command
    line as well.
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
            made = not path.parent.exists()
            path.parent.mkdir(parents=True, exist_ok=True)
            loan = _Loan(before=_read(path), made_folder=made)
        loan.written = _write(path, _merged(_read(path), servers))
    except (OSError, ValueError, RecursionError) as error:
        _log.warning("%s is left as it is (%s): mend it to let Claude Code see our servers.", path, error)
        return None
    loan.lent.append(servers)
    return _loans.setdefault(path, loan)


def _end(path: Path, loan: _Loan, servers: Servers) -> None:
    # By identity: two calls may have lent the same servers.
    loan.lent = [other for other in loan.lent if other is not servers]
    if not loan.lent:
        del _loans[path]
    try:
        current = _read(path)
        if current is None:
            return
        if not loan.lent and current == loan.written:
            _put(path, loan, loan.before)
        else:
            needed = {name for other in loan.lent for name in other}
            ours = {name: value for name, value in servers.items() if name not in needed}
            _put(path, loan, _without(current, ours, loan.before))
    except (OSError, ValueError, RecursionError) as error:
        _log.warning("%s may still hold servers of ours (%s): look at its %r.", path, error, _KEY)


def _put(path: Path, loan: _Loan, data: bytes | None) -> None:
    """Leave this in the file; nothing at all means that there was no file."""
    if data is not None:
        loan.written = _write(path, data)
        return
    path.unlink()
    if loan.made_folder:
        with suppress(OSError):  # somebody else put something there
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
    """The settings with the user's servers in place of ours; None if nothing is left of them."""
    settings = _parsed(current)
    users = _table(_parsed(before or b"{}").get(_KEY, {}))
    kept: dict[str, Any] = {}
    for name, value in _table(settings.pop(_KEY, {})).items():
        if servers.get(name) != value:
            kept[name] = value
        elif name in users:
            kept[name] = users[name]
    if kept:
        settings[_KEY] = kept
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
    """Put the whole file in place at once, readable for nobody who could not read it before."""
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
