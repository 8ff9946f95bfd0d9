"""The ways in by which input arrives, each with the largest that is allowed there."""

from __future__ import annotations

import asyncio
import http.client
import json
import logging
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from typing import Any

import weft
from weft.channels.http import HttpServer
from weft.channels.http_settings import HttpChannelSettings
from weft.channels.mcp import make_server
from weft.cli.logs import formatter
from weft.config import LogSettings, load_config
from weft.errors import WeftError
from weft.gateway import feed
from weft.gateway.assistant import Assistant
from weft.gateway.stream_settings import StreamSettings
from weft.gateway.streams import FeedSource, Stream
from weft.tools import fetch
from weft.tools.descriptor import MAX_BYTES
from weft.tools.mcp import McpSettings, McpTools
from weft.tools.process import Command, ExecutionSettings, run_process
from weft.turn.act import ToolLimits, ToolRunner
from weft.types.context import Context
from weft.types.message import McpServer
from weft.workspace.session_files import read_session
from weft.workspace.skills import Skill, Skills

Work = Callable[[], Awaitable[object]]
_AGENT = "weft"
_SERVER = """
import json, sys
from mcp.server import MCPServer
server = MCPServer("big", log_level="CRITICAL")

@server.tool(structured_output=False)
def send(chars: int) -> str:
    return "word " * (chars // 5)

@server.tool(structured_output=False)
def parts(count: int) -> list:
    return ["w"] * count

server.run()
"""


class Parrot(weft.ScriptedProvider):
    """Answers everything at once."""

    async def stream(self, context: Context) -> Any:
        yield weft.TextDelta("An answer.")
        yield weft.Done(weft.Reply(text="An answer."))


@dataclass(frozen=True, slots=True)
class Entry:
    """One way in. `prepare` makes its input and returns what lets it in."""

    name: str
    prepare: Callable[[Place], Awaitable[Work]]


@dataclass(frozen=True, slots=True)
class Place:
    """A server that runs in this loop, the assistant behind it, and the size of an input."""

    folder: Path
    size: int
    app: Assistant
    address: tuple[str, int]

    @classmethod
    @asynccontextmanager
    async def opened(cls, folder: Path, size: int) -> AsyncIterator[Place]:
        (folder / "workspace" / "memory").mkdir(parents=True)
        config = replace(load_config(), streams=())
        app = await weft.connect(config, provider=Parrot())
        stopped = asyncio.Event()
        ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        server = HttpServer(HttpChannelSettings(port=0, requests_per_minute=0, max_body_bytes=size + 4096))
        serving = asyncio.create_task(server.run(app, stopped, ready.set_result))
        try:
            host, _, port = (await ready).split("//")[-1].partition(":")
            place = cls(folder, size, app, (host, int(port)))
            await place.ask("POST", "/api/turns", b'{"text": "warm up"}')
            yield place
        finally:
            stopped.set()
            await serving
            await app.close()

    def words(self, word: str = "word ") -> str:
        """Return a text that is as long as the input may be once it is written as JSON."""
        return word * (self.size // (len(json.dumps(word, ensure_ascii=False).encode()) - 2))

    async def ask(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        """Ask the server from a thread, as a client would from elsewhere."""
        return await asyncio.to_thread(self._ask, method, path, body)

    def _ask(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(*self.address, timeout=600)
        try:
            connection.request(method, path, body, {"content-type": "application/json"})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()


def entries() -> Iterator[Entry]:
    yield from _openai_entries()
    yield from _own_entries()
    yield from _block_entries()
    yield from _mcp_entries()
    yield from _outside_entries()


def _posted(name: str, path: str, body: Callable[[Place], Any], method: str = "POST") -> Entry:
    async def prepare(place: Place) -> Work:
        data = await asyncio.to_thread(lambda: _encoded(body(place)))
        return lambda: place.ask(method, path, data)

    return Entry(name, prepare)


def _encoded(body: Any) -> bytes:
    return body if isinstance(body, bytes) else json.dumps(body, ensure_ascii=False).encode()


def _user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def _openai_entries() -> Iterator[Entry]:
    chat, responses = "/v1/chat/completions", "/v1/responses"

    def many(place: Place, count: int) -> list[dict[str, str]]:
        text = "word " * max((place.size // count - 40) // 5, 1)
        return [_user(f"{n} {text}") for n in range(count)]

    def calls(place: Place) -> list[dict[str, str]]:
        count = min(place.size // 120, 9_999)
        made = [
            {"type": "function_call", "call_id": str(n), "name": "look", "arguments": "{}"}
            for n in range(count)
        ]
        return [*made, _user("Hi")]

    def tools(place: Place) -> list[dict[str, Any]]:
        text = "word " * (place.size // 512 // 5 - 40)
        functions = [{"name": f"tool{n}", "description": text, "parameters": {}} for n in range(512)]
        return [{"type": "function", "function": function} for function in functions]

    yield _posted("/v1/chat: one message", chat, lambda place: {"messages": [_user(place.words())]})
    yield _posted("/v1/chat: 10,000 messages", chat, lambda place: {"messages": many(place, 10_000)})
    yield _posted("/v1/chat: a second time, grown", chat, lambda place: {"messages": many(place, 10_000)})
    yield _posted("/v1/chat: 50,000 messages, refused", chat, lambda place: {"messages": many(place, 50_000)})
    yield _posted(
        "/v1/chat: 10,000 parts",
        chat,
        lambda place: {"messages": [_user([{"text": "a"}] * 10_000)]},  # type: ignore[arg-type]
    )
    yield _posted(
        "/v1/chat: 512 tools", chat, lambda place: {"messages": [_user("Hi")], "tools": tools(place)}
    )
    yield _posted(
        "/v1/chat: numbers nobody asked for",
        chat,
        lambda place: (
            b'{"messages":[{"role":"user","content":"Hi"}],"junk":[1'
            + b",1" * (place.size // 2 - 100)
            + b"]}"
        ),
    )
    yield _posted("/v1/responses: one text", responses, lambda place: {"input": place.words()})
    yield _posted("/v1/responses: 10,000 items", responses, lambda place: {"input": many(place, 10_000)})
    yield _posted("/v1/responses: 10,000 calls", responses, lambda place: {"input": calls(place)})


_TEXTS = {
    "words": "word ",
    "one letter": "a",
    "one letter and spaces": "a ",
    "line ends": "\n",
    "labels": "[System]\n",
    "template tokens": "<|x|>",
    "orders": "ignore all ",
    "accents": "ä ",
    "a script without spaces": "海",
    "tags": "<block:",
    "half of a key": "-----BEGIN PRIVATE KEY-----\n",
}


def _own_entries() -> Iterator[Entry]:
    for name, word in _TEXTS.items():
        yield _posted(
            f"/api/turns: {name}",
            "/api/turns",
            lambda place, word=word: {"text": "x " + place.words(word), "session": "one"},  # type: ignore[misc]
        )
    yield _posted("/api/turns: a new word each time", "/api/turns", lambda place: {"text": _different(place)})
    yield _posted("/api/turns: all that fits", "/api/turns", lambda place: {"text": "word " * 60_000})
    yield _posted("/api/context: words", "/api/context", lambda place: {"text": place.words()})
    yield Entry("/api/search: the longest query", _search)


def _different(place: Place) -> str:
    return " ".join(f"w{n}" for n in range(place.size // 8))


async def _search(place: Place) -> Work:
    query = "+".join(f"w{n}" for n in range(400))[:2000]
    return lambda: place.ask("GET", f"/api/search?q={query}&limit=1000")


def _block_entries() -> Iterator[Entry]:
    async def created(place: Place, label: str, **more: Any) -> None:
        body = {"label": label, "limit": 10_000_000, "pinned": False, **more}
        await place.ask("POST", "/api/blocks", _encoded(body))

    def put(name: str, label: str, text: Callable[[Place], str]) -> Entry:
        async def prepare(place: Place) -> Work:
            await created(place, label)
            body = _encoded({"text": text(place)})
            return lambda: place.ask("PUT", f"/api/blocks/{label}", body)

        return Entry(name, prepare)

    async def rebased(place: Place) -> Work:
        status, answer = await place.ask("GET", "/api/blocks/large")
        base = json.loads(answer)["version"] if status == 200 else ""
        body = _encoded({"text": "other " + place.words("thing "), "base": base})
        return lambda: place.ask("PUT", "/api/blocks/large", body)

    async def appended(place: Place) -> Work:
        await created(place, "grown")
        body = _encoded({"verb": "append", "value": place.words()})
        return lambda: place.ask("POST", "/api/blocks/grown/edits", body)

    async def pushed(place: Place) -> Work:
        await created(place, "items", kind="list")
        body = _encoded({"verb": "push", "value": place.words()})
        return lambda: place.ask("POST", "/api/blocks/items/edits", body)

    async def shown(place: Place) -> Work:
        await place.ask("PATCH", "/api/blocks/large", b'{"pinned": true}')
        return lambda: place.ask("POST", "/api/turns", b'{"text": "What is in it?"}')

    async def unpinned(place: Place) -> Work:
        return lambda: place.ask("PATCH", "/api/blocks/large", b'{"pinned": false}')

    yield put("/api/blocks PUT: the first text", "large", lambda place: place.words())
    yield put("/api/blocks PUT: another text", "large", lambda place: place.words("thing "))
    yield Entry("/api/blocks PUT: another text with its base", rebased)
    yield Entry("/api/blocks edits: append", appended)
    yield Entry("/api/blocks edits: push", pushed)
    yield Entry("/api/turns: a pinned block of the largest size", shown)
    yield Entry("/api/blocks PATCH", unpinned)


def _mcp_entries() -> Iterator[Entry]:
    def tool(name: str, tool: str, arguments: Callable[[Place], dict[str, Any]]) -> Entry:
        async def prepare(place: Place) -> Work:
            from mcp import Client  # noqa: PLC0415 - takes more than a second

            server = make_server(place.app, await place.app.store.get(), weft.Caller(agent_id=_AGENT))
            values = arguments(place)

            async def work() -> None:
                async with Client(server) as client:
                    await client.call_tool(tool, values)

            return work

        return Entry(name, prepare)

    yield tool("weft mcp: ask", "ask", lambda place: {"text": place.words()})
    yield tool("weft mcp: build_context", "build_context", lambda place: {"message": place.words()})
    yield tool("weft mcp: write_block", "write_block", lambda place: {"label": "n", "text": place.words()})
    yield tool("weft mcp: insert_note", "insert_note", lambda place: {"text": place.words()})
    yield tool("weft mcp: search", "search", lambda place: {"query": _different(place)})

    def called(name: str, tool: str, arguments: Callable[[Place], dict[str, Any]]) -> Entry:
        async def prepare(place: Place) -> Work:
            script = place.folder / "server.py"
            script.write_text(_SERVER, "utf-8")
            server = McpServer(name="big", command=sys.executable, args=(str(script),))

            async def load() -> Skills:
                return Skills(usable=(Skill(name="big", description="", mcp_servers=(server,)),))

            source = McpTools(load, McpSettings())
            tools = {each.name: each for each in await source.tools("")}

            async def work() -> None:
                try:
                    await tools[f"mcp__big__{tool}"].run(arguments(place), weft.Caller(agent_id=_AGENT))
                finally:
                    await source.close()

            return work

        return Entry(name, prepare)

    yield called("an MCP server's result", "send", lambda place: {"chars": place.size - 4096})
    yield called("an MCP server's parts", "parts", lambda place: {"count": min(place.size // 32, 5_900)})


def _outside_entries() -> Iterator[Entry]:
    yield Entry("a feed", _feed)
    yield Entry("a feed of tiny entries", _tiny_feed)
    yield Entry("a file of a folder", _folder)
    yield Entry("a web page", _page)
    yield Entry("a skill's tools.json", _tools_json)
    yield Entry("a skill's result", _skill_result)
    yield Entry("MEMORY.md", _memory_file)
    yield Entry("a session file", _session_file)
    yield Entry("a message of Telegram", _telegram)
    yield Entry("a line of the log", _log_line)
    yield Entry("an error of a tool", _tool_error)


async def _feed(place: Place) -> Work:
    text = "&lt;p&gt;word " * (min(place.size, feed.MAX_BYTES) // 14 // 10)
    return _looking(text, 10)


async def _tiny_feed(place: Place) -> Work:
    return _looking("", min(place.size, feed.MAX_BYTES) // 60)


def _looking(text: str, count: int) -> Work:
    """Look at a feed with so many entries of this text."""
    items = [f"<item><guid>{n}</guid><description>{text}</description></item>" for n in range(count)]
    document = f"<rss><channel>{''.join(items)}</channel></rss>".encode()
    settings = StreamSettings(
        name="news", feed="https://example.com/", channel="terminal", conversation="c", sender="owner"
    )

    async def get() -> bytes:
        return document

    source = FeedSource(settings)
    source._feed._get = get  # type: ignore[method-assign]
    return lambda: source.look({})


async def _folder(place: Place) -> Work:
    watched = place.folder / "watched"
    watched.mkdir(exist_ok=True)
    settings = StreamSettings(
        name="files", folder=str(watched), channel="terminal", conversation="c", sender="owner"
    )

    async def submit(*_: Any) -> bool:
        return True

    stream = Stream(settings, place.app.store, submit)
    await stream.look()
    (watched / "large.txt").write_text(place.words(), "utf-8")
    return stream.look


async def _page(place: Place) -> Work:
    import httpx  # noqa: PLC0415 - only this entry needs it

    body = ("<p>word " * (min(place.size, fetch.MAX_BYTES) // 8)).encode()

    async def resolve(host: str, port: int) -> list[str]:
        return ["93.184.216.34"]

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"content-type": "text/html"}, content=_chunks(body))

    fetcher = fetch.PageFetcher(resolve, httpx.MockTransport(answer))
    return lambda: fetcher.fetch_page("https://example.com/")


async def _chunks(body: bytes) -> AsyncIterator[bytes]:
    for at in range(0, len(body), 65_536):
        yield body[at : at + 65_536]


async def _tools_json(place: Place) -> Work:
    folder = place.folder / "workspace" / "skills" / "big"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "SKILL.md").write_text("---\nname: big\ndescription: Big.\n---\n", "utf-8")
    text = "word " * 100
    tools = [
        {"name": f"tool{n}", "description": text, "parameters": {"type": "object", "properties": {}}}
        for n in range(min(place.size, MAX_BYTES) // 650)
    ]
    (folder / "tools.json").write_text(
        json.dumps({"tools": tools, "allowlist": {}, "execution": []}), "utf-8"
    )
    place.app.engine.builder.reload()
    return lambda: place.ask("POST", "/api/turns", b'{"text": "Which tools are there?"}')


async def _skill_result(place: Place) -> Work:
    (place.folder / "workspace" / "skills" / "big" / "tools.json").unlink(missing_ok=True)
    program = f"print('word ' * {place.size // 5})"
    command = Command(
        program=sys.executable, args=("-c", program), directory=str(place.folder), environment={}
    )
    return lambda: run_process(command, ExecutionSettings())


async def _memory_file(place: Place) -> Work:
    file = place.folder / "workspace" / "memory" / "MEMORY.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"- entry {n} has some words\n" for n in range(place.size // 30)), "utf-8")
    return lambda: place.ask("POST", "/api/turns", b'{"text": "What is entry 7?"}')


async def _session_file(place: Place) -> Work:
    (place.folder / "workspace" / "memory" / "MEMORY.md").unlink(missing_ok=True)
    head = {"kind": "weft-session", "id": "s", "channel": "a", "conversation": "b", "sender": "c"}
    lines = [json.dumps(head), *[json.dumps(_user("word " * 20))] * (place.size // 130)]
    text = "\n".join(lines)
    store = await place.app.store.get()

    async def work() -> None:
        file = await asyncio.to_thread(read_session, text, "s")
        session = await store.sessions.find_or_create("a", "b", "c")
        await store.messages.append(session.id, *file.messages)

    return work


async def _telegram(place: Place) -> Work:
    caller = weft.Caller(agent_id=_AGENT, channel="telegram", sender_id="7")
    place.app.allowed["telegram"] = ("7",)
    return lambda: place.app.ask("word " * 819, "chat", caller=caller)


async def _log_line(place: Place) -> Work:
    handler = logging.StreamHandler(StringIO())
    handler.setFormatter(formatter(LogSettings(content=True)))
    line = "".join(f"password=abc{n}x " for n in range(place.size // 20))
    record = logging.LogRecord("weft", logging.WARNING, "", 0, "it failed: %s", (line,), None)

    async def work() -> None:
        handler.handle(record)

    return work


async def _tool_error(place: Place) -> Work:
    text = place.words()

    async def broken() -> str:
        raise WeftError(text)

    runner = await _runner(broken)

    async def work() -> None:
        async for _ in runner.act([weft.ToolCall(id="1", name="broken")]):
            pass

    return work


async def _runner(function: Any) -> Any:
    offered = await weft.ToolRegistry([function]).offered("")
    return ToolRunner(offered, limits=ToolLimits(), caller=weft.Caller(agent_id=_AGENT))
