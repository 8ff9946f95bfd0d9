"""One answer on its way to a browser: its events, and questions for consent in the middle of it."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import Any

from weft.types.codec import to_dict
from weft.types.escape import printable
from weft.types.reply import Done, Event, Reading, TextDelta, ToolFinished, ToolStarted, TurnStarted
from weft.types.request import TurnRequest
from weft.web.markdown import drawn

Handle = Callable[[TurnRequest], AsyncGenerator[Event]]
_MOST_CHARS = 20_000
"""How much of a tool's result a browser gets; the turn's page has all of it."""


class Questions:
    """Questions that wait for a person at a browser. A question counts as refused after a while."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._waiting: dict[str, tuple[str, asyncio.Future[bool]]] = {}

    async def ask(self, person: str, question: str, show: Callable[[dict[str, Any]], None]) -> bool:
        """Show a question to a person, and wait for the answer."""
        key = secrets.token_urlsafe(16)
        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting[key] = person, answer
        show({"type": "question", "id": key, "text": printable(question)})
        try:
            return await asyncio.wait_for(answer, self._seconds)
        except TimeoutError:
            return False
        finally:
            del self._waiting[key]
            show({"type": "answered", "id": key})

    def answer(self, person: str, key: str, *, agrees: bool) -> bool:
        """Answer a question. Returns whether it still waited for this person."""
        whose, answer = self._waiting.get(key, ("", None))
        if answer is None or whose != person or answer.done():
            return False
        answer.set_result(agrees)
        return True


async def answer_events(
    handle: Handle, request: TurnRequest, questions: Questions, person: str
) -> AsyncGenerator[bytes]:
    """Yield an answer as events for a browser. A turn ends with the browser that waits for it."""
    queue = asyncio.Queue[dict[str, Any] | None]()

    async def ask(question: str) -> bool:
        return await questions.ask(person, question, queue.put_nowait)

    async def work() -> None:
        try:
            asked = replace(request, caller=replace(request.caller, ask=ask))
            async with aclosing(handle(asked)) as events:
                async for event in events:
                    if (data := described(event)) is not None:
                        queue.put_nowait(data)
        finally:
            queue.put_nowait(None)

    working = asyncio.create_task(work())
    try:
        while (data := await queue.get()) is not None:
            yield encoded(data)
        await working
    finally:
        working.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await working


def encoded(data: dict[str, Any]) -> bytes:
    text = json.dumps(data, ensure_ascii=False)
    return f"data: {text}\n\n".encode("utf-8", "replace")


def described(event: Event) -> dict[str, Any] | None:
    """Return an event as a browser reads it; None for one that it need not know."""
    match event:
        case TurnStarted(session_id, turn_id):
            return {"type": "started", "session": session_id, "turn": turn_id}
        case Reading(done, total):
            return {"type": "reading", "done": done, "total": total}
        case TextDelta(text):
            return {"type": "text", "text": printable(text)}
        case ToolStarted(call):
            arguments = json.dumps(to_dict(call.arguments), ensure_ascii=False, indent=2, default=str)
            return {"type": "call", "id": call.id, "name": call.name, "arguments": printable(arguments)}
        case ToolFinished(call, result, failed):
            shown = printable(result[:_MOST_CHARS])
            return {"type": "result", "id": call.id, "text": shown, "failed": failed}
        case Done(reply):
            return {
                "type": "done",
                "html": str(drawn(reply.text)) if reply.text.strip() else "",
                "notice": printable(reply.notice),
                "session": reply.session_id,
                "turn": reply.turn_id,
            }
        case _:
            return None
