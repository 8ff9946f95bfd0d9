"""Fixtures for every test: no network, a home of its own, a store, and the database behind it."""

import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

import weft
from fake_telegram import FakeTelegram

_connect = socket.socket.connect

# A shell makes what it runs in the background deaf to Ctrl-C, and so every program that a test starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _guarded(self: socket.socket, address: Any) -> None:
    host = address[0] if isinstance(address, tuple) else ""
    if self.family != socket.AF_UNIX and host not in ("127.0.0.1", "::1", "localhost"):
        raise AssertionError(f"A test tried to reach {address!r}: only loopback is allowed.")
    _connect(self, address)


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket.socket, "connect", _guarded)


@pytest.fixture
def sql(tmp_path: Path) -> Callable[..., list[tuple[Any, ...]]]:
    """Run SQL in a connection of its own to the `weft.db` below the folder of the test."""

    def run(query: str, *values: Any) -> list[tuple[Any, ...]]:
        [path] = tmp_path.rglob("weft.db")
        db = apsw.Connection(str(path))
        db.set_busy_timeout(30_000)
        rows = list(db.execute(query, values))
        db.close()
        return rows

    return run


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give every test a home of its own, so that none touches the home of the person who runs it."""
    monkeypatch.setenv("WEFT_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[weft.Store]:
    """Open a store in a file of its own."""
    async with await weft.open(tmp_path / "weft.db") as opened:
        yield opened


@pytest.fixture
def fake() -> Iterator[FakeTelegram]:
    """Run a Bot API on loopback."""
    with FakeTelegram() as server:
        yield server


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Any:
    """Reports go from one process to another as UTF-8, and some tests log half a surrogate pair."""
    return _encodable((yield))


def _encodable(data: Any) -> Any:
    if isinstance(data, str):
        return data.encode("utf-8", "backslashreplace").decode()
    if isinstance(data, dict):
        return {_encodable(key): _encodable(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return type(data)(map(_encodable, data))
    return data
