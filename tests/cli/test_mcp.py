"""`weft mcp` as other programs start it: over stdio, and over HTTP on loopback."""

import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

import weft

TOKEN = "-".join(["known", "to", "both"])
ASKED = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
HEADERS = {"accept": "application/json, text/event-stream"}


def environment(home: Path, **more: str) -> dict[str, str]:
    return {"WEFT_HOME": str(home), "PATH": "/usr/bin:/bin", "PYTHONPATH": ":".join(sys.path), **more}


@contextmanager
def served(home: Path, *args: str, **environ: str) -> Iterator[str]:
    """The address of a running `weft mcp --http`."""
    process = subprocess.Popen(
        [sys.executable, "-m", "weft", "mcp", "--http", "--port", "0", *args],
        env=environment(home, **environ),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            assert process.stderr is not None
            said = process.stderr.readline()
            assert said.startswith("weft: serving 'weft' at http://"), said + process.stderr.read()
            yield said.split()[-1]
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def urls(home: Path) -> Iterator[Callable[[bool], str]]:
    """Two servers for all tests of this file: one for everybody here, one that wants its token."""
    with ExitStack() as stack:
        plain = stack.enter_context(served(home))
        guarded = stack.enter_context(served(home, WEFT_TOKEN=TOKEN))
        yield lambda token: guarded if token else plain


def text(result: Any) -> str:
    return str(result.content[0].text)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_program_that_starts_it_reads_and_writes_over_stdio(home: Path, mode: str) -> None:
    label = f"boat-{mode}"
    server = StdioServerParameters(command=sys.executable, args=["-m", "weft", "mcp"], env=environment(home))
    async with Client(server, mode=mode) as client:
        assert len((await client.list_tools()).tools) == 14
        await client.call_tool("write_block", {"label": label, "text": f"The boat is Marlin {mode}."})
        await client.call_tool("append_block", {"label": label, "text": "It is blue."})
        found = await client.call_tool("search", {"query": f"marlin {mode}"})
        refused = await client.call_tool("read_block", {"label": "gone"})

    assert "It is blue." in text(found)
    assert refused.is_error
    assert "no block 'gone'" in text(refused)
    async with await weft.open(home / "weft.db") as store:
        assert len(await store.memory.block_history("weft", label)) == 3


def test_nothing_but_the_protocol_goes_to_stdout(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "weft", "--verbose", "mcp"],
        env=environment(tmp_path),
        input="this is no protocol\n",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 0
    assert all(line.startswith('{"jsonrpc"') for line in done.stdout.splitlines())


async def test_the_same_tools_are_there_over_http(urls: Callable[[bool], str]) -> None:
    async with Client(urls(False)) as client:
        await client.call_tool("insert_note", {"text": "The tanks hold 12 litres."})
        found = await client.call_tool("search", {"query": "tanks"})

    assert "12 litres" in text(found)


async def test_with_a_token_only_who_knows_it_is_served(urls: Callable[[bool], str]) -> None:
    known = {"Authorization": f"Bearer {TOKEN}"}
    async with (
        httpx2.AsyncClient(headers=known) as http,
        Client(streamable_http_client(urls(True), http_client=http)) as client,
    ):
        assert len((await client.list_tools()).tools) == 14

    wrong: list[dict[str, str]] = [
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": f"Basic {TOKEN}"},
        {"Authorization": TOKEN},
        {"Authorization": "Bearer"},
        {"Authorization": f"Bearer {TOKEN}x"},
    ]
    async with httpx.AsyncClient() as http_client:
        for headers in wrong:
            answer = await http_client.post(urls(True), json=ASKED, headers=HEADERS | headers)
            assert answer.status_code == 401, headers
            assert "Authorization: Bearer TOKEN" in answer.json()["error"]
            assert answer.headers["www-authenticate"] == "Bearer"


async def test_a_page_of_somebody_else_gets_nothing(urls: Callable[[bool], str]) -> None:
    async with httpx.AsyncClient() as client:
        for headers, status in (({"host": "evil.example"}, 421), ({"origin": "http://evil.example"}, 403)):
            answer = await client.post(urls(False), json=ASKED, headers=HEADERS | headers)
            assert answer.status_code == status


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (("--http", "--host", "0.0.0.0"), 2, "set WEFT_TOKEN to a secret"),  # noqa: S104 - it is refused
        (("--http", "--host", "192.0.2.1"), 2, "set WEFT_TOKEN to a secret"),
        (("--recipe", "non"), 2, "non"),
    ],
)
def test_what_is_wrong_is_one_sentence(tmp_path: Path, args: tuple[str, ...], code: int, says: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "weft", "mcp", *args],
        env=environment(tmp_path),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (done.returncode, done.stdout) == (code, "")
    assert says in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_port_that_is_taken_is_told_with_a_remedy(tmp_path: Path, urls: Callable[[bool], str]) -> None:
    taken = urls(False).rsplit(":", 1)[1].split("/")[0]
    done = subprocess.run(
        [sys.executable, "-m", "weft", "mcp", "--http", "--port", taken],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 1
    assert f"Nothing can listen at 127.0.0.1 on port {taken} (address already in use)" in done.stderr


def test_a_server_that_is_told_to_end_does_so_without_a_word(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "weft", "mcp", "--http", "--port", "0"]
    with subprocess.Popen(command, env=environment(tmp_path), stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert "serving" in process.stderr.readline()
        process.terminate()

        assert process.stderr.read() == ""
        assert process.wait(timeout=30) == -signal.SIGTERM


def test_a_slow_client_and_a_large_body_are_refused_over_http_as_well(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[http]\nheader_seconds = 0.05\nmax_body_bytes = 100\n", "utf-8")
    with served(tmp_path) as url:
        place = httpx.URL(url)
        with socket.create_connection((place.host, place.port or 0), timeout=60) as client:
            client.sendall(b"POST /mcp HT")
            assert client.recv(1000).startswith(b"HTTP/1.1 408 ")
        answer = httpx.post(url, json={**ASKED, "params": {"x": "y" * 200}}, headers=HEADERS)

    assert answer.status_code == 413


def test_sigterm_ends_a_server_over_http_with_a_client_that_does_not_finish_its_request(
    tmp_path: Path,
) -> None:
    with socket.socket() as client:
        client.settimeout(60)
        with served(tmp_path) as url:
            place = httpx.URL(url)
            client.connect((place.host, place.port or 0))
            client.sendall(b"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 100\r\n\r\n{")
        with pytest.raises(httpx.ConnectError):
            httpx.get(url)
