"""Logs and spans of a turn: its ids in each line of the log, a line at its end, and spans."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import AbstractContextManager, aclosing, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from weft.errors import WeftError
from weft.offload import offloaded
from weft.providers.base import Provider
from weft.spans import NOTHING, Span, Value, begin
from weft.turn.journal import Journal
from weft.types.context import Context
from weft.types.limits import ModelInfo
from weft.types.message import ToolCall
from weft.types.receipt import Usage
from weft.types.redacted import Content
from weft.types.reply import Done, Event, Reply, RequestSent
from weft.types.request import Caller
from weft.types.sent import SentRequest
from weft.types.session import SideCall
from weft.wire.items import plain_payload, split

_log = logging.getLogger(__name__)

_PROVIDERS = {"gemini": "gcp.gemini", "openai_responses": "openai"}
_REASONS = {"end": "stop", "max_tokens": "length", "tools": "tool_call"}


@dataclass(slots=True)
class _Ids:
    """The ids of a turn. Small, because what a turn leaves behind (a connection, a timer) holds on to it."""

    session: str = ""
    turn: str = ""


_now: ContextVar[_Ids | None] = ContextVar("weft_turn", default=None)


def ids() -> dict[str, str]:
    """Return the session and the turn of the current task, if there are any."""
    current = _now.get()
    known = {} if current is None else {"session": current.session, "turn": current.turn}
    return {name: value for name, value in known.items() if value}


class TurnTrace:
    """One turn, from its message to its end.

    A turn is a generator that may be closed from any task, so nothing here depends on being left in the
    context in which it was entered.
    """

    def __init__(self, caller: Caller, model: ModelInfo, journal: Journal) -> None:
        self._caller, self._info, self._model, self._journal = caller, model, model.id, journal
        self._ids = _Ids(session=caller.session_id)
        self._before: _Ids | None = None
        self._began = 0.0
        self._rounds, self._used = 0, Usage(input_tokens=0, output_tokens=0)
        self._reply: Reply | None = None
        self.span: Span = NOTHING

    def __enter__(self) -> Self:
        self._before, self._began = _now.get(), time.monotonic()
        _now.set(self._ids)
        agent = self._caller.agent_id or "weft"
        self.span = begin(
            f"invoke_agent {agent}",
            {
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.name": agent,
                "gen_ai.conversation.id": self._caller.session_id,
                **_asked(self._info, self._model),
            },
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.begun()
        stopped = isinstance(error, asyncio.CancelledError | GeneratorExit)
        failed = error is not None and not stopped
        answered = not failed and self._reply is not None
        outcome = "answered" if answered else "cancelled" if stopped else "failed"
        self.span.set({"weft.turn.outcome": outcome, **_cost(self._used)})
        if failed:
            self.span.fail(type(error).__name__)
        self.span.end()
        _log.info("turn ended", extra=self._fields(outcome, error if failed else None))
        _now.set(self._before)

    def begun(self) -> None:
        """Note that the turn is stored and has an id."""
        self._ids.turn = self._journal.turn_id
        self.span.set({"weft.turn.id": self._journal.turn_id})

    def answered(self, reply: Reply) -> None:
        """Note the answer. A client that disconnects now does not cancel the turn."""
        self._reply = reply

    def current(self) -> AbstractContextManager[Any]:
        """Make the turn's span current around plain awaits. Never yield inside."""
        return self.span.current()

    async def chat(self, provider: Provider, context: Context) -> AsyncGenerator[Event]:
        """Yield the answer to one request of the turn, as it comes."""
        self._rounds += 1
        self._info, self._model = provider.info, context.model or provider.info.id
        more: dict[str, Value] = {
            "gen_ai.conversation.id": self._caller.session_id,
            "gen_ai.request.stream": True,
        }
        with _chat(self._info, self._model, more, parent=self.span) as asked:
            splits: list[asyncio.Task[SentRequest]] = []
            try:
                async with aclosing(provider.stream(context)) as events:
                    while True:
                        try:
                            with asked.current():
                                event = await anext(events)
                        except StopAsyncIteration:
                            return
                        if isinstance(event, RequestSent):
                            splits.append(_splitting(context, event))
                            continue
                        if not splits:  # a provider that does not say what it sends
                            splits.append(_splitting(context))
                        if isinstance(event, Done):
                            self._heard(event.reply)
                            asked.set(_answer(event.reply))
                        yield event
            finally:
                self._journal.requests += [await split for split in splits]

    def _heard(self, reply: Reply) -> None:
        if reply.usage is not None:
            self._used += reply.usage

    def _fields(self, outcome: str, error: BaseException | None) -> dict[str, Any]:
        fields: dict[str, Any] = {
            "outcome": outcome,
            "ms": _since(self._began),
            "provider": self._info.provider,
            "model": self._model,
            "rounds": self._rounds,
            "input_tokens": self._used.input_tokens,
            "output_tokens": self._used.output_tokens,
            "cached_tokens": self._used.cached_tokens,
            "written_tokens": self._used.written_tokens,
            "text": Content(self._journal.message.content),
        }
        if error is not None:
            quotes_nobody = isinstance(error, WeftError) and error.log_text
            reason = error if quotes_nobody else Content(str(error))
            fields |= {"error": type(error).__name__, "reason": reason}
        if self._reply is not None:
            fields["reply"] = Content(self._reply.text)
        return fields


def _splitting(context: Context, sent: RequestSent | None = None) -> asyncio.Task[SentRequest]:
    """Take a request apart while its answer is awaited, so that neither waits for the other."""

    def work() -> SentRequest:
        return split(plain_payload(context)) if sent is None else split(sent.payload, sent.body)

    return asyncio.create_task(offloaded(context.chars, work))


async def complete(provider: Provider, context: Context, calls: list[SideCall] | None = None) -> Reply:
    """Ask a side request of a turn: to route a message, or to write a summary.

    What it cost is added to `calls`.
    """
    with _chat(provider.info, context.model or provider.info.id, {}) as asked, asked.current():
        reply = await provider.complete(context)
        asked.set(_answer(reply))
        if calls is not None:
            calls.append(_side_call(provider, context, reply.usage or Usage(input_tokens=0, output_tokens=0)))
        return reply


def _side_call(provider: Provider, context: Context, usage: Usage) -> SideCall:
    return SideCall(
        kind="",
        provider=provider.info.provider,
        model=context.model or provider.info.id,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cached_tokens=usage.cached_tokens,
        written_tokens=usage.written_tokens,
    )


@dataclass(slots=True)
class Called:
    """The outcome of a call. It counts as cancelled until it is known."""

    error: str = "cancelled"
    result: str = ""


@contextmanager
def calling(call: ToolCall, name: str, parent: Span = NOTHING) -> Iterator[Called]:
    """Log and trace a tool call under a name of ours: a model may call anything by any name."""
    began, called = time.monotonic(), Called()
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        "gen_ai.tool.call.id": call.id,
        "gen_ai.tool.type": "function",
    }
    with begin(f"execute_tool {name}", attributes, parent=parent) as running, running.current():
        try:
            yield called
        finally:
            fields = {"tool": name, "ms": _since(began), "failed": bool(called.error)}
            if called.error:
                running.fail(called.error)
                fields["error"] = called.error
            content = {"arguments": Content(call.arguments), "result": Content(called.result)}
            _log.info("tool called", extra=fields | content)


def _chat(info: ModelInfo, model: str, more: Mapping[str, Value], parent: Span = NOTHING) -> Span:
    attributes = {"gen_ai.operation.name": "chat", **_asked(info, model), **more}
    return begin(f"chat {model}".strip(), attributes, parent=parent, client=True)


def _asked(info: ModelInfo, model: str) -> dict[str, Value]:
    name = _PROVIDERS.get(info.provider, info.provider)
    return {"gen_ai.provider.name": name, "gen_ai.request.model": model}


def _answer(reply: Reply) -> dict[str, Value]:
    return {
        "gen_ai.response.model": reply.model,
        "gen_ai.response.finish_reasons": (_REASONS.get(reply.stop_reason, reply.stop_reason),),
        **(_cost(reply.usage) if reply.usage is not None else {}),
    }


def _cost(usage: Usage) -> dict[str, Value]:
    return {
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
        "gen_ai.usage.cache_creation.input_tokens": usage.written_tokens,
    }


def _since(began: float) -> int:
    return round((time.monotonic() - began) * 1000)
