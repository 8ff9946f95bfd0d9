"""READ THIS FIRST: one turn, from the message to what is remembered.

Collect, plan and render happen in `build`; asking is the provider's. Tools and folding join here.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from weft.providers.base import Provider
from weft.store.base import MessageLog
from weft.turn.build import ContextBuilder
from weft.types.context import Context
from weft.types.message import Message
from weft.types.reply import Done, Event, Reply


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What one turn works with. Without a session nothing is remembered."""

    builder: ContextBuilder
    provider: Provider
    provider_reason: str = ""
    log: MessageLog | None = None
    session_id: str = ""


async def run_turn(turn: Turn, message: str) -> AsyncGenerator[Event]:
    """Answer one message; the last event holds the reply with its receipt."""
    context = with_provider(await turn.builder.build(message), turn)
    async with aclosing(turn.provider.stream(context)) as events:
        async for event in events:
            if isinstance(event, Done):
                reply = _with_receipt(event.reply, context)
                await _remember(turn, message, reply)
                yield Done(reply)
            else:
                yield event


def with_provider(context: Context, turn: Turn) -> Context:
    """The context, with who will answer and why in its receipt."""
    if context.receipt is None:
        return context
    info = turn.provider.info
    receipt = replace(
        context.receipt, provider=info.provider, model=info.id, provider_reason=turn.provider_reason
    )
    return replace(context, receipt=receipt)


def _with_receipt(reply: Reply, context: Context) -> Reply:
    receipt = replace(context.receipt, usage=reply.usage) if context.receipt else None
    return replace(reply, receipt=receipt)


async def _remember(turn: Turn, message: str, reply: Reply) -> None:
    """Both sides of the exchange at once, so that no half turn is ever seen."""
    if turn.log is not None and turn.session_id:
        now = datetime.now(UTC)
        asked = Message(role="user", content=message, timestamp=now)
        answered = Message(
            role="assistant",
            content=reply.text,
            timestamp=now,
            tool_calls=reply.tool_calls,
            origin="agent",
            provider_data=reply.provider_data,
        )
        await turn.log.append(turn.session_id, asked, answered)
