"""READ THIS FIRST: one turn, from the message to what is remembered.

`build` collects, plans and renders the context; the provider answers; `act` runs tools; `journal` stores each
step, so that nothing is lost and nothing is answered twice.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from weft.context.outside import answer_places, attached, in_view, places_of
from weft.context.receipt import settle, with_cost
from weft.context.steps import with_steps
from weft.errors import EmptyMessage, ProviderError, RequestTooLong
from weft.providers.base import BROKE_OFF, Provider
from weft.store.base import Turns
from weft.tools.registry import Offered, ToolRegistry
from weft.tools.skills import skills_read
from weft.turn.act import ToolLimits, ToolRunner
from weft.turn.build import ContextBuilder
from weft.turn.classify import RouteSettings, chosen_model, route
from weft.turn.journal import Journal, assistant_message
from weft.turn.trace import TurnTrace
from weft.types.context import Context
from weft.types.limits import FROM_SERVER, FROM_SETTINGS, MIN_WINDOW, CachePrices, ModelInfo, Prices
from weft.types.message import Message
from weft.types.receipt import Receipt
from weft.types.recipe import Recipe
from weft.types.reply import Done, Event, Reply, TextDelta, ToolStarted, TurnStarted
from weft.types.request import TurnRequest
from weft.types.rules import ToolRule
from weft.types.section import OUTSIDE
from weft.types.session import SideCall

_log = logging.getLogger(__name__)

_LAST_ROUND = (
    "[That was round {rounds} of tool calls, and no more are allowed: answer now with what you have.]"
)
_NO_ANSWER = "[The limit of {rounds} rounds of tool calls was reached before there was an answer.]"

Steering = Callable[[], Sequence[TurnRequest]]
"""Returns the messages that the person sent since the last call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnSettings:
    """How tools are called, and whether messages are routed to another model.

    `windows`, `prices` and `cache_prices` are those that the settings name, by the model's id.
    """

    rules: tuple[ToolRule, ...] = ()
    limits: ToolLimits = ToolLimits()
    routing: RouteSettings = RouteSettings()
    windows: Mapping[str, int] = field(default_factory=dict)
    prices: Mapping[str, Prices] = field(default_factory=dict)
    cache_prices: Mapping[str, CachePrices] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A request, and the parts of the assistant that answer it.

    `model` overrides what the provider says of its model. Without `turns` nothing is stored. The log already
    has the first `logged` messages of the exchange. `steering` returns what the person wrote meanwhile: the
    model reads it before its next round. `notes` are added to the receipt's warnings. `changes` are what the
    desk changes in memory once the turn is answered, read at its end.
    """

    request: TurnRequest
    builder: ContextBuilder
    provider: Provider
    provider_reason: str = ""
    model: ModelInfo | None = None
    tools: ToolRegistry = field(default_factory=ToolRegistry)
    settings: TurnSettings = TurnSettings()
    turns: Turns | None = None
    logged: int = 0
    steering: Steering | None = None
    notes: tuple[str, ...] = ()
    changes: Sequence[str] = ()


async def run_turn(turn: Turn) -> AsyncGenerator[Event]:
    """Answer one message. The first event says that it is stored, the last one holds the reply."""
    request = turn.request
    if not request.text.strip():
        raise EmptyMessage
    journal = Journal(turns=turn.turns, request=request, logged=turn.logged)
    with TurnTrace(request.caller, turn.model or turn.provider.info, journal) as trace:
        try:
            await journal.begin()
            trace.begun()
            yield TurnStarted(request.caller.session_id, journal.turn_id)
            async with aclosing(_streamed(_answer(turn, journal, trace))) as events:
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


async def _streamed(events: AsyncGenerator[Event]) -> AsyncGenerator[Event]:
    """Yield the events, and before the last one the reply's text, unless a model streamed it.

    The text of a round limit, or of a tool that ends the turn, reaches every channel in this way.
    """
    is_streamed = False
    async with aclosing(events):
        async for event in events:
            if isinstance(event, ToolStarted):
                is_streamed = False
            elif isinstance(event, TextDelta):
                is_streamed |= bool(event.text.strip())
            elif isinstance(event, Done) and event.reply.text and not is_streamed:
                yield TextDelta(event.reply.text)
            yield event


async def _answer(turn: Turn, journal: Journal, trace: TurnTrace) -> AsyncGenerator[Event]:
    """Answer, and once more in a smaller window if the server refuses the first request for its length."""
    try:
        async with aclosing(_rounds(turn, journal, trace)) as events:
            async for event in events:
                yield event
    except RequestTooLong as error:
        smaller = _in_smaller_window(turn, error)
        if journal.steps or smaller is None:
            raise
        async with aclosing(_rounds(smaller, journal, trace)) as events:
            async for event in events:
                yield event


async def _rounds(turn: Turn, journal: Journal, trace: TurnTrace) -> AsyncGenerator[Event]:
    """Collect, plan, render; ask; while the model calls tools, act and ask again; remember."""
    with trace.current():
        turn = await _routed(turn)
        offered = await _offered(turn)
        first = await prepare(turn, offered)
    journal.epoch = first.step
    context = _grown(first, journal, turn.builder.recipe) if turn.request.steps else first
    runner = _tool_runner(turn, offered, first, trace)
    journal.outside = runner.read_now
    replies: list[Reply] = []
    while True:
        async with aclosing(trace.chat(turn.provider, context)) as events:
            async for event in events:
                if isinstance(event, Done):
                    replies.append(runner.understood(event.reply))
                else:
                    yield event
        if len(replies) == runner.rounds:
            raise ProviderError(BROKE_OFF, log_text=BROKE_OFF)
        calls = replies[-1].tool_calls
        ours = runner.ours(calls)
        if not ours or runner.exhausted:
            break
        await journal.step(assistant_message(replies[-1], journal.outside))
        try:
            async with aclosing(runner.act(ours)) as acts:
                async for event in acts:
                    yield event
        finally:
            await journal.step(*runner.results)
            journal.outside = runner.read_now
        if runner.ended or len(ours) < len(calls):
            break
        if turn.steering is not None:
            steering = turn.steering()
            runner.hear(request.text for request in steering)
            await journal.steered(steering)
        if runner.exhausted:
            await journal.step(_note(_LAST_ROUND.format(rounds=runner.rounds)))
        context = _grown(first, journal, turn.builder.recipe)
    reply = _reply(runner, replies[-1], journal, turn.changes)
    receipt = _receipt(turn, first, context, runner, replies)
    is_step = len(replies) == runner.rounds
    trace.answered(reply)
    outside = answer_places(reply.text, read=runner.read_now, in_view=runner.outside, history=first.history)
    message = None if is_step else assistant_message(reply, outside)
    await journal.finish(message, receipt, reply=reply.text_with_notice)
    yield Done(replace(reply, receipt=receipt))


def _in_smaller_window(turn: Turn, error: RequestTooLong) -> Turn | None:
    """Return the turn with the window that the server reads, or None if that is not smaller."""
    model = turn.model or turn.provider.info
    before = model.max_tokens or 0
    window = error.window or before // 2
    if not MIN_WINDOW <= window < before:
        return None
    note = f"The server reads {window:,} tokens and not {before:,}: the context was built anew."
    return replace(turn, model=replace(model, max_tokens=window, window_from=FROM_SERVER, note=note))


def _tool_runner(turn: Turn, offered: Offered, context: Context, trace: TurnTrace) -> ToolRunner:
    own_last = sorted(context.blocks, key=lambda block: not block.shared_from)
    visible = {block.label: block for block in own_last}
    return ToolRunner(
        offered,
        rules=(*turn.settings.rules, *offered.rules),
        limits=turn.settings.limits,
        caller=replace(
            turn.request.caller,
            visible_blocks=visible,
            changes=[],
            origin=turn.request.origin,
            words=turn.request.own_words,
            outside=_outside(turn.request, context),
            read_now=_read_now(turn.request, context),
            read_outside=[],
            read_skills=skills_read(context.history),
        ),
        turns=turn.turns,
        span=trace.span,
    )


def _read_now(request: TurnRequest, context: Context) -> tuple[str, ...]:
    """Return where text of strangers comes from that came with this turn: message, files, results, recall."""
    results = [place for step in request.steps for place in places_of(step)]
    is_named = bool(request.outside) or request.origin not in OUTSIDE
    own = () if is_named else (request.origin,)
    return tuple(dict.fromkeys((*request.outside, *own, *results, *attached(context))))


def _outside(request: TurnRequest, context: Context) -> tuple[str, ...]:
    """Return where all text of strangers in view comes from."""
    return tuple(dict.fromkeys((*_read_now(request, context), *in_view(context))))


def _grown(first: Context, journal: Journal, recipe: Recipe) -> Context:
    """Return the request of the next round, cut as the recipe says where it is too large."""
    cuttable, send = recipe.history.strategy != "none", recipe.overflow == "send"
    steps = (*journal.request.steps, *journal.steps)
    grown = with_steps(first, steps, cuttable=cuttable, send=send, sent=journal.sent_steps)
    journal.sent_steps = grown.steps
    if grown.step is None:
        journal.epoch = None  # the history was cut, so the next request cannot begin with this one
    return grown


async def prepare(turn: Turn, offered: Offered | None = None) -> Context:
    """Build the context of a turn. Its receipt names the model that would answer; no model is asked."""
    offered = offered or await _offered(turn)
    model = turn.model or turn.provider.info
    rules = (*turn.settings.rules, *offered.rules)
    builder = turn.builder.with_all_tools(offered.definitions).with_tool_rules(rules)
    notes = (*turn.request.notes, *turn.notes)
    if turn.request.parts and model.takes_pictures:
        builder = builder.with_parts(turn.request.parts)
    elif turn.request.parts:
        notes = (*notes, f"{model.provider} takes no pictures: {len(turn.request.parts)} left out")
    context = await builder.with_model_info(model).build(turn.request.text)
    # Only a model that is not the provider's own is named in the context; the receipt names every one.
    context = replace(context, model=model.id if model.id != turn.provider.info.id else None)
    if context.receipt is None:
        return context
    warnings = (*context.receipt.warnings, *notes)
    outside = _outside(turn.request, context)
    receipt = replace(
        context.receipt, provider_reason=turn.provider_reason, warnings=warnings, outside=outside
    )
    _report(model, turn.provider_reason)
    return replace(context, receipt=receipt)


def _report(model: ModelInfo, reason: str) -> None:
    """Log who answers and why, and how much of a context fits."""
    place = f" at {model.address}" if model.address else ""
    _log.info("%s answers (%s%s): %s", model.provider, model.id or "its own model", place, reason)
    if model.max_tokens:
        source = model.window_from or FROM_SETTINGS
        _log.info("its window of %d tokens comes from %s", model.max_tokens, source)
    else:
        _log.info("its window is not known: only the limit of the recipe or the settings counts")


async def _routed(turn: Turn) -> Turn:
    """Return the turn with the model that its message is routed to, where routing is on."""
    calls: list[SideCall] = []
    choice = await route(turn.provider, turn.request.text, turn.settings.routing, calls)
    if turn.turns is not None:
        for call in calls:
            session_id = turn.request.caller.session_id
            await turn.turns.add_call(replace(call, kind="classify", session_id=session_id))
    if not choice.model:
        return turn
    model = chosen_model(
        turn.model or turn.provider.info, choice.model, window=turn.settings.windows.get(choice.model)
    )
    model = model.with_cache_prices(turn.settings.cache_prices)
    counter = turn.builder.recipe.tokens
    learned = await turn.turns.find_ratios(model.id, counter) if turn.turns is not None else {}
    return replace(turn, model=model.with_learned(learned), provider_reason=choice.why)


async def _offered(turn: Turn) -> Offered:
    if not turn.provider.info.calls_tools:
        return Offered()
    return await turn.tools.offered(turn.request.text, turn.builder.frozen_tools)


def _reply(runner: ToolRunner, last: Reply, journal: Journal, desk_changes: Sequence[str]) -> Reply:
    """Return what the person reads: the last answer, or the result of the call that ended the turn."""
    session_id = journal.request.caller.session_id
    changes = tuple(dict.fromkeys((*runner.changes, *desk_changes)))
    not_done = tuple(dict.fromkeys(runner.not_done))
    reply = replace(last, turn_id=journal.turn_id, session_id=session_id, changes=changes, not_done=not_done)
    if journal.epoch is not None and journal.epoch.notice:
        reply = replace(reply, folds=(journal.epoch.notice,))
    if runner.ended:
        return replace(reply, text=last.text or runner.ending, tool_calls=())
    if theirs := runner.theirs(last.tool_calls):
        return replace(reply, tool_calls=theirs)
    if runner.exhausted:
        return replace(reply, text=last.text or _NO_ANSWER.format(rounds=runner.rounds), tool_calls=())
    return reply


def _receipt(
    turn: Turn, first: Context, last: Context, runner: ToolRunner, replies: Sequence[Reply]
) -> Receipt | None:
    """Return the receipt of the whole turn: that of its last request, with the cost of all."""
    if first.receipt is None or last.receipt is None:
        return None
    final = replace(last.receipt, warnings=(*last.receipt.warnings, *runner.warnings))
    model = turn.model or turn.provider.info
    settled = settle(final, replies, first_tokens=first.receipt.total_tokens, ratio=model.tokens_ratio)
    prices = turn.settings.prices
    return with_cost(settled, model, prices.get(f"{model.provider}:{model.id}") or prices.get(model.id))


def _note(text: str) -> Message:
    return Message(role="user", content=text, timestamp=datetime.now(UTC), origin="operator")
