"""Clients that are slow, idle or too many: each is cut off, and the others are answered."""

import asyncio
import errno
import json
import logging
import os
import resource
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

import weft
from weft.channels.http import HttpServer
from weft.channels.http_settings import HttpChannelSettings
from weft.channels.listener import Connections, LimitedProtocol, Seldom, _network, raise_file_limit
from weft.config import load_config

HEALTH = b"GET /api/health HTTP/1.1\r\nhost: localhost\r\n\r\n"
POST = b"POST /api/turns HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
NEVER = 1000.0


@asynccontextmanager
async def listening(provider: Any = None, **limits: Any) -> AsyncIterator[tuple[str, int]]:
    """A server on loopback whose limits never come, but for those that a test sets."""
    never = dict.fromkeys(("header_seconds", "body_seconds", "idle_seconds", "send_seconds"), NEVER)
    app = await weft.connect(load_config(), provider=provider or weft.ScriptedProvider(["Hi"] * 9))
    ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    stopped = asyncio.Event()
    server = HttpServer(HttpChannelSettings(port=0, **{**never, **limits}))
    running = asyncio.create_task(server.run(app, stopped, ready.set_result))
    try:
        url = httpx.URL((await ready).split()[-1])
        yield url.host, int(url.port or 0)
    finally:
        stopped.set()
        await asyncio.wait_for(running, 60)
        await app.close()


async def ended(reader: asyncio.StreamReader) -> bytes:
    """What the server sends until it closes the connection."""
    try:
        return await asyncio.wait_for(reader.read(), 60)
    except ConnectionResetError:
        return b"reset"


async def status(place: tuple[str, int]) -> bytes:
    reader, writer = await asyncio.open_connection(*place)
    writer.write(HEALTH)
    line = await asyncio.wait_for(reader.readline(), 60)
    writer.close()
    return line


@pytest.mark.parametrize("sent", [b"", b"GET /api/health HTTP/1.1\r\nhost: loc"])
async def test_a_client_that_does_not_finish_its_headers_is_cut_off(sent: bytes) -> None:
    async with listening(header_seconds=0.05) as place:
        reader, writer = await asyncio.open_connection(*place)
        writer.write(sent)
        answer = await ended(reader)
        writer.close()

    assert answer.startswith(b"HTTP/1.1 408 ")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["message"] == (
        "The request did not arrive in time: send it again."
    )


async def test_bytes_that_dribble_in_do_not_extend_the_time_for_headers() -> None:
    async with listening(header_seconds=0.2) as place:
        reader, writer = await asyncio.open_connection(*place)
        writer.write(b"GET / HTTP/1.1\r\n")
        reading = asyncio.create_task(ended(reader))
        while not reading.done():
            writer.write(b"x: y\r\n")
            await asyncio.wait({reading}, timeout=0.02)
        writer.close()

    assert reading.result().startswith((b"HTTP/1.1 408 ", b"reset"))


@pytest.mark.parametrize(
    ("head", "body"),
    [(b"content-length: 100\r\n\r\n", b'{"te'), (b"transfer-encoding: chunked\r\n\r\n", b"1\r\n{\r\n")],
)
async def test_a_client_that_does_not_finish_its_body_is_cut_off(head: bytes, body: bytes) -> None:
    async with listening(body_seconds=0.05) as place:
        reader, writer = await asyncio.open_connection(*place)
        writer.write(POST + head + body)
        answer = await ended(reader)
        writer.close()

    assert answer.startswith(b"HTTP/1.1 408 ")


async def test_the_time_for_headers_begins_again_with_each_request_of_a_connection() -> None:
    async with listening(header_seconds=0.05) as place:
        reader, writer = await asyncio.open_connection(*place)
        for _ in range(2):
            writer.write(HEALTH)
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)
            assert head.startswith(b"HTTP/1.1 200 ")
            await reader.readexactly(len(b'{"status": "ok"}'))
        writer.write(b"G")
        assert (await ended(reader)).startswith(b"HTTP/1.1 408 ")
        writer.close()


async def test_an_idle_connection_is_closed() -> None:
    async with listening(idle_seconds=0.05) as place:
        reader, writer = await asyncio.open_connection(*place)
        writer.write(HEALTH)
        answer = await ended(reader)
        writer.close()

    assert answer.startswith(b"HTTP/1.1 200 ")


async def test_a_client_that_does_not_read_its_answer_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    lost = asyncio.Event()
    connection_lost = LimitedProtocol.connection_lost

    def noted(protocol: LimitedProtocol, error: Exception | None) -> None:
        connection_lost(protocol, error)
        lost.set()

    monkeypatch.setattr(LimitedProtocol, "connection_lost", noted)
    async with listening(weft.ScriptedProvider(["x" * 20_000_000]), send_seconds=0.05) as place:
        with socket.create_connection(place) as client:
            client.sendall(POST + b'content-length: 13\r\n\r\n{"text":"Hi"}')
            await asyncio.wait_for(lost.wait(), 60)


async def test_more_connections_than_allowed_are_refused_and_come_back_when_others_end() -> None:
    async with listening(max_connections=2) as place:
        first = [await asyncio.open_connection(*place) for _ in range(2)]
        reader, writer = await asyncio.open_connection(*place)
        refusal = await ended(reader)
        writer.close()
        for _, one in first:
            one.close()
            await one.wait_closed()
        while not (line := await status(place)).startswith(b"HTTP/1.1 200 "):
            assert line.startswith(b"HTTP/1.1 503 ")

    assert refusal.startswith(b"HTTP/1.1 503 ")
    assert b"Too many clients are connected" in refusal


def test_one_address_has_only_its_share_of_the_connections() -> None:
    settings = HttpChannelSettings(max_connections=3, max_connections_per_address=2)
    connections = Connections(settings, files=1000)

    assert [connections.admit("a") for _ in range(3)] == [True, True, False]
    assert [connections.admit("b"), connections.admit("c")] == [True, False]
    connections.release("a")
    assert connections.admit("c")


def test_there_are_never_more_connections_than_files() -> None:
    connections = Connections(HttpChannelSettings(), files=66)
    assert [connections.admit(str(n)) for n in range(10)] == [True] * 8 + [False] * 2


def test_a_household_of_ipv6_counts_as_one_address() -> None:
    assert _network(("2001:db8::1", 1, 0, 0)) == _network(("2001:db8::ffff:2", 2, 0, 0))
    assert _network(("2001:db8:1::1", 1, 0, 0)) != _network(("2001:db8:2::1", 1, 0, 0))
    assert (_network(("10.0.0.1", 1)), _network(None)) == ("10.0.0.1", "")


def test_the_limit_of_open_files_is_raised_to_what_the_system_allows() -> None:
    before = soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 512), hard))
    try:
        files = raise_file_limit()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (files, hard)
        assert files == min(hard, 65_536)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


async def test_without_files_for_connections_the_log_has_one_line_and_no_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with listening() as place:
        loop = asyncio.get_running_loop()
        with caplog.at_level(logging.WARNING), socket.socket() as listener:
            for _ in range(50):
                error = OSError(errno.EMFILE, os.strerror(errno.EMFILE))
                loop.call_exception_handler(
                    {"message": "out of system resource", "exception": error, "socket": listener}
                )
            loop.call_exception_handler({"message": "another failure"})
        assert (await status(place)).startswith(b"HTTP/1.1 200 ")

    lines = [(record.getMessage(), bool(record.exc_info)) for record in caplog.records]
    assert lines == [
        (
            "no connection can be accepted (too many open files): raise the limit of open files, or lower "
            "`http.max_connections`",
            False,
        ),
        ("another failure", False),
    ]


def test_a_line_that_is_reported_often_is_written_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    seldom = Seldom(lambda: now[0])
    for seconds in (0, 1, 59, 61, 62, 122):
        now[0] = seconds
        seldom.warn("at %d", seconds)

    assert [record.getMessage() for record in caplog.records] == ["at 0", "at 61", "at 122"]


async def test_a_body_in_tiny_chunks_is_read_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    received = LimitedProtocol.__mro__[1].data_received  # type: ignore[attr-defined]

    def noted(protocol: Any, data: bytes) -> None:
        sizes.append(len(data))
        received(protocol, data)

    monkeypatch.setattr(LimitedProtocol.__mro__[1], "data_received", noted)
    body = json.dumps({"text": "x" * 50_000}).encode()
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
    async with listening() as place:
        reader, writer = await asyncio.open_connection(*place)
        writer.write(POST + b"transfer-encoding: chunked\r\n\r\n" + chunks)
        line = await asyncio.wait_for(reader.readline(), 60)
        writer.close()

    assert line.startswith(b"HTTP/1.1 200 ")
    assert max(sizes) <= 4096
    assert sum(sizes) >= len(chunks)


async def test_a_large_body_arrives_whole() -> None:
    async with listening() as place, httpx.AsyncClient(timeout=60) as http:
        answer = await http.post(f"http://{place[0]}:{place[1]}/api/turns", json={"text": "word " * 200_000})
        assert answer.status_code == 400
        assert answer.json()["error"]["code"] == "context_length_exceeded"
