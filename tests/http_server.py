"""A real server on loopback, over a scripted model."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import httpx
import uvicorn

import weft
from weft.channels.bind import listen
from weft.channels.http import make_app
from weft.channels.http_settings import HttpChannelSettings
from weft.config import load_config
from weft.gateway.assistant import Assistant
from weft.gateway.settings import GatewaySettings
from weft.types.context import Context


class Slow(weft.ScriptedProvider):
    """Says one word, and no more until it is allowed to; `stopped` tells that it was not."""

    def __init__(self, script: Any = ("one two",)) -> None:
        super().__init__(script)
        self.began, self.go_on, self.stopped = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def stream(self, context: Context) -> Any:
        try:
            async for event in super().stream(context):
                yield event
                self.began.set()
                await self.go_on.wait()
        except (asyncio.CancelledError, GeneratorExit):
            self.stopped.set()
            raise


@dataclass(frozen=True, kw_only=True)
class Served:
    """A server that runs, and what is behind it."""

    url: str
    app: Assistant
    model: weft.ScriptedProvider

    async def store(self) -> Any:
        return await self.app.store.get()

    async def log(self) -> list[list[tuple[str, str]]]:
        """What is stored, session by session, the oldest first."""
        store = await self.store()
        sessions = reversed(await store.sessions.list())
        return [[(m.role, m.content) for m in await store.messages.all(s.id)] for s in sessions]

    def client(self, **more: Any) -> httpx.AsyncClient:
        return httpx.AsyncClient(base_url=self.url, **more)


class _Server(uvicorn.Server):
    """Stops at once when it is told to, and does not look every tenth of a second."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.stopping = asyncio.Event()

    async def main_loop(self) -> None:
        await self.stopping.wait()


@asynccontextmanager
async def listening(application: Any) -> AsyncIterator[str]:
    """The address of an application that runs; at the end it is stopped."""
    listener = listen("127.0.0.1", 0)
    config = uvicorn.Config(application, log_config=None, access_log=False, timeout_graceful_shutdown=5)
    server = _Server(config)
    running = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.stopping.set()
        await running
        listener.close()


@asynccontextmanager
async def serving(
    script: Any = (), *, token: str = "", model: Any = None, **settings: Any
) -> AsyncIterator[Served]:
    provider = model or weft.ScriptedProvider(script)
    desk = {name: settings.pop(name) for name in ("at_once", "max_waiting") if name in settings}
    config = replace(load_config(), gateway=GatewaySettings(**desk))
    app = await weft.connect(config, provider=provider)
    try:
        application = make_app(app, HttpChannelSettings(**settings), token=token)
        async with listening(application) as url:
            yield Served(url=url, app=app, model=provider)
    finally:
        await app.close()


def calling(*calls: weft.ToolCall, text: str = "") -> weft.Reply:
    return weft.Reply(text=text, tool_calls=calls, stop_reason="tools")
