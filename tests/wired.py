"""A gateway with a channel whose other end is the test."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import weft
from weft.config import load_config
from weft.gateway.dispatcher import Dispatcher
from weft.gateway.settings import GatewaySettings
from weft.types.envelope import Inbound, Outbound
from weft.types.reply import Event


class Wire:
    """A channel whose other end is the test."""

    name = "telegram"

    def __init__(self, allowed: tuple[str, ...] = ()) -> None:
        self.allowed = allowed
        self.sent: list[tuple[str, str]] = []
        self.typed: list[str] = []
        self.came = asyncio.Condition()
        self.trouble: list[weft.ChannelError] = []
        self.questions: asyncio.Queue[tuple[str, str, str]] = asyncio.Queue()

    async def send(self, message: Outbound) -> None:
        if self.trouble:
            raise self.trouble.pop(0)
        async with self.came:
            self.sent.append((message.conversation, message.text))
            self.came.notify_all()

    async def run(self, submit: object) -> None:
        """The test submits messages itself."""

    async def stop(self) -> None:
        """There is nothing to stop."""

    async def close(self) -> None:
        """There is nothing to close."""

    async def typing(self, conversation: str) -> None:
        self.typed.append(conversation)

    async def ask(self, conversation: str, question: str, *, yes: str, no: str) -> None:
        if self.trouble:
            raise self.trouble.pop(0)
        self.questions.put_nowait((question, yes, no))

    async def wait(self, count: int) -> list[tuple[str, str]]:
        async with asyncio.timeout(30), self.came:
            await self.came.wait_for(lambda: len(self.sent) >= count)
            return list(self.sent)


def said(text: str, number: int = 1, sender: str = "7", **more: str) -> Inbound:
    return Inbound(
        channel="telegram",
        conversation=sender,
        sender=sender,
        text=text,
        external_id=f"{sender}-{number}",
        **more,  # type: ignore[arg-type]
    )


def calling(name: str, number: int = 1, **arguments: str) -> weft.Reply:
    """Make a reply that calls one tool."""
    call = weft.ToolCall(id=f"c{number}", name=name, arguments=arguments)
    return weft.Reply(text="", tool_calls=(call,), stop_reason="tools")


class Gated(weft.ScriptedProvider):
    """Waits before its first word while `gate` is closed; `asked` says that it was asked."""

    def __init__(self, script: Iterable[str | weft.Reply | BaseException] = ()) -> None:
        super().__init__(script)
        self.asked, self.gate = asyncio.Event(), asyncio.Event()
        self.gate.set()

    async def stream(self, context: weft.Context) -> AsyncGenerator[Event]:
        self.asked.set()
        await self.gate.wait()
        async for event in super().stream(context):
            yield event


class Echo(Gated):
    """Answers with the message. It waits while `gate` is closed."""

    async def stream(self, context: weft.Context) -> AsyncGenerator[Event]:
        self.requests.append(context)
        self.asked.set()
        await self.gate.wait()
        if "fail" in context.current_message:
            raise weft.ProviderError("the network is down.")
        yield weft.Done(weft.Reply(text=f"echo {context.current_message}"))


@asynccontextmanager
async def gateway(
    provider: weft.ScriptedProvider, wire: Wire, *, allowed: tuple[str, ...] = ("7", "8"), **settings: Any
) -> AsyncIterator[tuple[Dispatcher, weft.Assistant]]:
    config = replace(load_config(), gateway=GatewaySettings(**settings))
    app = await weft.connect(config, provider=provider)
    wire.allowed = allowed
    made = Dispatcher(app, [wire])
    await made.resume()
    sending = asyncio.create_task(made.deliver())
    try:
        yield made, app
    finally:
        await made.stop()
        await sending
        await app.close()
