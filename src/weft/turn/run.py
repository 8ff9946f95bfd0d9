"""READ THIS FIRST: one turn, from the message to what is remembered.

Collect, plan and render happen in `build`; asking is the provider's, acting is `act`'s, and `journal` keeps
what happens, so that nothing is lost and nothing is answered twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from weft.context.receipt import settle
from weft.context.steps import with_steps
from weft.errors import EmptyMessage, ProviderError
from weft.providers.base import Provider
from weft.store.base import Turns
from weft.tools.base import Caller
from weft.tools.registry import Offered, ToolRegistry
from weft.turn.act import ToolLimits, ToolRunner
from weft.turn.build import ContextBuilder
from weft.turn.classify import RouteSettings, chosen_model, route
from weft.turn.journal import Journal, said
from weft.turn.trace import TurnTrace
from weft.types.context import Context
from weft.types.delivery import Waiting
from weft.types.limits import ModelInfo
from weft.types.message import Message
from weft.types.receipt import Receipt
from weft.types.recipe import Recipe
from weft.types.reply import Done, Event, Reply, TextDelta
from weft.types.rules import ToolRule

_ENOUGH = "[That was round {rounds} of tool calls, and no more are allowed: answer now with what you have.]"
_NO_ANSWER = "[The limit of {rounds} rounds of tool calls was reached before there was an answer.]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What one turn works with.

    `model` is what is known of the model that answers, if that is more than its provider tells. Without
    `turns` nothing is remembered. `steps` is what the caller did for this message before, such as calls of
    its own tools; `logged` of the message and these are in the log already. `steering` gives what the person
    wrote meanwhile and is not answered yet: the model reads it before its next round.
    A message that nobody said has another `origin`.
    """

    builder: ContextBuilder
    provider: Provider
    provider_reason: str = ""
    model: ModelInfo | None = None
    routing: RouteSettings = RouteSettings()
    tools: ToolRegistry = field(default_factory=ToolRegistry)
    rules: tuple[ToolRule, ...] = ()
    limits: ToolLimits = ToolLimits()
    caller: Caller = Caller()
    turns: Turns | None = None
    steps: tuple[Message, ...] = ()
    logged: int = 0
    inbox_id: str = ""
    steering: Callable[[], Sequence[Waiting]] | None = None
    origin: str = "user"


async def run_turn(turn: Turn, message: str) -> AsyncGenerator[Event]:
    """Answer one message; the last event holds the reply with its receipt."""
    if not message.strip():
        raise EmptyMessage
    journal = Journal(
        turns=turn.turns,
        session_id=turn.caller.session_id,
        inbox_id=turn.inbox_id,
        origin=turn.origin,
        brought=turn.steps,
        logged=turn.logged,
    )
    with TurnTrace(turn.caller, turn.model or turn.provider.info, journal) as trace:
        try:
            await journal.begin(message)
            trace.begun()
            async with aclosing(_answer(turn, message, journal, trace)) as events:
                async for event in events:
                    if isinstance(event, TextDelta):
                        journal.unfinished.append(event.text)
                    yield event
        except (asyncio.CancelledError, GeneratorExit):
            await journal.cancel()
            raise
        except Exception as error:
            await journal.fail(str(error))
            raise


async def _answer(turn: Turn, message: str, journal: Journal, trace: TurnTrace) -> AsyncGenerator[Event]:
    """Collect, plan, render; ask; while the model calls tools, act and ask again; remember."""
    with trace.current():
        turn = await _routed(turn, message)
        offered = await _offered(turn, message)
        first = await prepare(turn, message, offered)
    context = _grown(first, journal, turn.builder.recipe) if turn.steps else first
    actor = ToolRunner(
        offered,
        rules=turn.rules,
        limits=turn.limits,
        caller=replace(turn.caller, shown_blocks={b.label: b for b in first.blocks if not b.shared_from}),
        kept=turn.turns,
        span=trace.span,
    )
    replies: list[Reply] = []
    while True:
        async with aclosing(trace.chat(turn.provider, context)) as events:
            async for event in events:
                if isinstance(event, Done):
                    replies.append(actor.understood(event.reply))
                else:
                    yield event
        if len(replies) == actor.rounds:
            raise ProviderError("The answer broke off before its end: ask again.")
        calls = replies[-1].tool_calls
        ours = actor.ours(calls)
        if not ours or actor.exhausted:
            break
        await journal.step(said(replies[-1]))
        try:
            async with aclosing(actor.act(ours)) as acts:
                async for event in acts:
                    yield event
        finally:
            await journal.step(*actor.results)
        if actor.ended or len(ours) < len(calls):
            break
        if turn.steering is not None:
            await journal.steered(turn.steering())
        if actor.exhausted:
            await journal.step(_note(_ENOUGH.format(rounds=actor.rounds)))
        context = _grown(first, journal, turn.builder.recipe)
    reply = _reply(actor, replies[-1], journal)
    receipt = _receipt(turn, first, context, actor, replies)
    is_step = len(replies) == actor.rounds
    trace.answered(reply)
    await journal.finish(None if is_step else said(reply), receipt, reply=reply.text)
    yield Done(replace(reply, receipt=receipt))


def _grown(first: Context, journal: Journal, recipe: Recipe) -> Context:
    """The request of the next round, as the recipe deals with one that is too large."""
    cuttable, send = recipe.history.strategy != "none", recipe.overflow == "send"
    return with_steps(first, (*journal.brought, *journal.steps), cuttable=cuttable, send=send)


async def prepare(turn: Turn, message: str, offered: Offered | None = None) -> Context:
    """The context of a turn, with who will answer and why in its receipt. Nobody is asked."""
    found = offered or await _offered(turn, message)
    model = turn.model or turn.provider.info
    builder = turn.builder.with_tools(found.definitions).with_tool_rules(turn.rules).with_model_info(model)
    context = await builder.build(message)
    if model.id != turn.provider.info.id:
        context = replace(context, model=model.id)
    if context.receipt is None:
        return context
    receipt = replace(
        context.receipt, provider=model.provider, model=model.id, provider_reason=turn.provider_reason
    )
    return replace(context, receipt=receipt)


async def _routed(turn: Turn, message: str) -> Turn:
    """The turn with the model that the message is routed to, where that is switched on."""
    found = await route(turn.provider, message, turn.routing)
    if not found.model:
        return turn
    model = chosen_model(turn.model or turn.provider.info, found.model)
    learned = await turn.turns.ratio(model.id) if turn.turns is not None else None
    return replace(
        turn,
        model=replace(model, tokens_ratio=learned or model.tokens_ratio),
        provider_reason=found.why,
    )


async def _offered(turn: Turn, message: str) -> Offered:
    return await turn.tools.offered(message) if turn.provider.info.calls_tools else Offered()


def _reply(actor: ToolRunner, last: Reply, journal: Journal) -> Reply:
    """What the person reads: the last answer, or what came of the call that ended the turn."""
    reply = replace(last, turn_id=journal.turn_id)
    if actor.ended:
        return replace(reply, text=last.text or actor.ending, tool_calls=())
    if theirs := actor.theirs(last.tool_calls):
        return replace(reply, tool_calls=theirs)
    if actor.exhausted:
        return replace(reply, text=last.text or _NO_ANSWER.format(rounds=actor.rounds), tool_calls=())
    return reply


def _receipt(
    turn: Turn, first: Context, last: Context, actor: ToolRunner, replies: Sequence[Reply]
) -> Receipt | None:
    """The receipt of the whole turn: of its last request, with the cost of all."""
    if first.receipt is None or last.receipt is None:
        return None
    shown = replace(last.receipt, warnings=(*last.receipt.warnings, *actor.warnings))
    ratio = (turn.model or turn.provider.info).tokens_ratio
    return settle(shown, replies, first_tokens=first.receipt.total_tokens, ratio=ratio)


def _note(text: str) -> Message:
    return Message(role="user", content=text, timestamp=datetime.now(UTC), origin="operator")
