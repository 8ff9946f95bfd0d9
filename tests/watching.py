"""A stream that is watched: a real store and gateway, a scripted model, a channel whose end is the test."""

import os
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

import weft
from weft.gateway.assistant import Assistant
from weft.gateway.dispatcher import Dispatcher
from weft.gateway.stream_settings import StreamSettings
from weft.gateway.streams import Stream, Submit
from weft.memory.base import Store
from weft.types.envelope import Inbound, Seen
from wired import Wire, gateway


@dataclass
class Watched:
    """A stream with all that is behind it. A test may put a `submit` of its own in place of the gateway's."""

    settings: StreamSettings
    submit: Submit
    gateway: Dispatcher
    app: Assistant
    model: weft.ScriptedProvider
    wire: Wire

    def __post_init__(self) -> None:
        self.stream = Stream(self.settings, self.app.store, self._submit)

    async def _submit(self, message: Inbound, seen: Sequence[Seen]) -> bool:
        return await self.submit(message, seen)

    async def look(self) -> list[str]:
        """Look once; the notices of that look, when all of them are answered."""
        before = len(self.wire.sent)
        count = await self.stream.look()
        await self.wait(before + count)
        return [told.current_message for told in self.model.requests[-count:]] if count else []

    @property
    def sent(self) -> list[str]:
        return [text for _, text in self.wire.sent]

    async def wait(self, count: int) -> list[str]:
        """What was sent, when it is so much."""
        return [text for _, text in await self.wire.wait(count)]

    async def store(self) -> Store:
        return await self.app.store.get()

    async def block(self, label: str) -> str | None:
        return await (await self.store()).memory.get_rendered_content("weft/telegram:7", label)


def watches(name: str = "notes", **more: Any) -> StreamSettings:
    return StreamSettings(name=name, channel="telegram", conversation="7", sender="7", **more)


@asynccontextmanager
async def watching(
    settings: StreamSettings, model: weft.ScriptedProvider | None = None, *, allowed: tuple[str, ...] = ("7",)
) -> AsyncIterator[Watched]:
    """One run of a server with one stream, in the home of the environment."""
    provider, wire = model or weft.ScriptedProvider(["noted"] * 50), Wire()
    async with gateway(provider, wire, allowed=allowed) as (made, app):
        yield Watched(settings, made.submit, made, app, provider, wire)


def notice(text: str, origin: str = "import") -> Inbound:
    return Inbound(channel="telegram", conversation="7", sender="7", text=text, kind="notice", origin=origin)


async def log(watched: Watched) -> list[tuple[str, str, str]]:
    store = await watched.store()
    [session] = await store.sessions.list()
    return [(m.role, m.origin, m.content) for m in await store.messages.all(session.id)]


def write(path: Path, text: str | bytes, *, at: int = 1_700_000_000) -> Path:
    """A file that was written at that time: tests do not wait for clocks to go on."""
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
    os.utime(path, (at, at))
    return path


@dataclass
class FeedServer:
    """A feed on loopback. `asked` are the headers of the requests that came."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    asked: list[dict[str, str]] = field(default_factory=list)
    port: int = 0

    def __enter__(self) -> Self:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.asked.append({name.lower(): value for name, value in self.headers.items()})
                tag = server.headers.get("etag")
                status = 304 if tag and self.headers.get("if-none-match") == tag else server.status
                moved = status == 302 and self.path != "/"
                self.send_response(200 if moved else status)
                for name, value in server.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                try:
                    self.wfile.write(b"" if status == 304 else server.body)
                except OSError:
                    return  # whoever asked has heard enough

            def log_message(self, *_: object) -> None:
                """Nothing is printed."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True

        self._server = Server(("127.0.0.1", self.port), Handler)
        self.port = int(self._server.server_address[1])
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.port}/"
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
