"""An answer as it comes, in the events of OpenAI's two APIs."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from weft.channels.openai_api import (
    call_item,
    chat_chunk,
    chat_cost,
    chat_end,
    new_id,
    response,
    text_item,
)
from weft.types.message import ToolCall
from weft.types.reply import Done, Event, Reply, TextDelta, ToolStarted

_BETWEEN = "\n\n"


def encoded(data: Mapping[str, Any]) -> bytes:
    """Encode one event of a stream."""
    name = f"event: {data['type']}\n" if "type" in data else ""
    return f"{name}data: {json.dumps(data, ensure_ascii=False)}\n\n".encode("utf-8", "replace")


async def pieces(events: AsyncGenerator[Event]) -> AsyncGenerator[str | Reply]:
    """Yield the text as it comes, and at last the reply with all of it.

    What the model says before and after it calls our tools is parted by a blank line.
    """
    texts, is_parted = list[str](), False
    async with aclosing(events):
        async for event in events:
            if isinstance(event, ToolStarted):
                is_parted = bool(texts)
            elif isinstance(event, TextDelta) and event.text:
                texts.append(f"{_BETWEEN}{event.text}" if is_parted else event.text)
                is_parted = False
                yield texts[-1]
            elif isinstance(event, Done):
                yield replace(event.reply, text="".join(texts))


async def chat_stream(
    events: AsyncGenerator[Event], model: str, *, include_usage: bool
) -> AsyncGenerator[bytes]:
    """Yield the chunks of Chat Completions, up to `[DONE]`."""
    answer_id, begun = new_id("chatcmpl"), False
    async with aclosing(pieces(events)) as parts:
        async for piece in parts:
            if not begun:
                begun = True
                yield encoded(chat_chunk(answer_id, model, {"role": "assistant", "content": ""}))
            if isinstance(piece, str):
                yield encoded(chat_chunk(answer_id, model, {"content": piece}))
                continue
            for chunk in chat_end(answer_id, model, piece):
                yield encoded(chunk)
            if include_usage:
                yield encoded(chat_cost(answer_id, model, piece))
    yield b"data: [DONE]\n\n"


async def response_stream(events: AsyncGenerator[Event], model: str) -> AsyncGenerator[bytes]:
    """Yield the events of Responses, from `response.created` to `response.completed`."""
    growing = _Responding(model)
    async with aclosing(pieces(events)) as parts:
        async for piece in parts:
            for event in growing.text(piece) if isinstance(piece, str) else growing.end(piece):
                yield encoded(event)


class _Responding:
    """One response as it grows: its open items, and the number of its events."""

    def __init__(self, model: str) -> None:
        self._model, self._id, self._item = model, new_id("resp"), new_id("msg")
        self._count = 0
        self._begun = self._in_text = False

    def text(self, delta: str) -> Iterator[dict[str, Any]]:
        yield from self._begin()
        if not self._in_text:
            self._in_text = True
            item = text_item(self._item, "", "in_progress")
            yield self._event("output_item.added", output_index=0, item=item)
            yield self._in_item("content_part.added", part=_part(""))
        yield self._in_item("output_text.delta", delta=delta, logprobs=[])

    def end(self, reply: Reply) -> Iterator[dict[str, Any]]:
        if not self._in_text and not reply.tool_calls:
            yield from self.text("")
        yield from self._begin()
        if self._in_text:
            yield self._in_item("output_text.done", text=reply.text, logprobs=[])
            yield self._in_item("content_part.done", part=_part(reply.text))
            item = text_item(self._item, reply.text, "completed")
            yield self._event("output_item.done", output_index=0, item=item)
        for at, call in enumerate(reply.tool_calls):
            yield from self._call(call, at)
        whole = response(self._id, self._model, reply, item_id=self._item)
        yield self._event("incomplete" if whole["status"] == "incomplete" else "completed", response=whole)

    def _begin(self) -> Iterator[dict[str, Any]]:
        if not self._begun:
            self._begun = True
            empty = response(self._id, self._model, None, item_id=self._item, status="in_progress")
            yield self._event("created", response=empty)
            yield self._event("in_progress", response=empty)

    def _call(self, call: ToolCall, at: int) -> Iterator[dict[str, Any]]:
        item = call_item(call, f"fc_{self._item}_{at}")
        place = {"item_id": item["id"], "output_index": at + int(self._in_text)}
        begun = item | {"arguments": "", "status": "in_progress"}
        yield self._event("output_item.added", output_index=place["output_index"], item=begun)
        yield self._event("function_call_arguments.delta", **place, delta=item["arguments"])
        yield self._event(
            "function_call_arguments.done", **place, arguments=item["arguments"], name=call.name
        )
        yield self._event("output_item.done", output_index=place["output_index"], item=item)

    def _in_item(self, kind: str, **more: Any) -> dict[str, Any]:
        return self._event(kind, item_id=self._item, output_index=0, content_index=0, **more)

    def _event(self, kind: str, **more: Any) -> dict[str, Any]:
        self._count += 1
        return {"type": f"response.{kind}", "sequence_number": self._count - 1, **more}


def _part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
