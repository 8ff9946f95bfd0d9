"""Folding in epochs: after an answer, the older part of a long session becomes a summary.

Nobody waits for it: the session goes on in its epoch until the summary is there. The request for it begins
with the bytes of the last one, so that the provider reads them from its cache. A model that fails is not
asked again for an hour. Until there is a summary, the oldest exchanges leave the view when room is short.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from weft.context.epoch import fold_until
from weft.context.pace import depth_of, marks_of, pace_of, price_from, summary_room
from weft.context.plan import summary_message
from weft.errors import ProviderError
from weft.memory.base import Store
from weft.providers.base import Provider
from weft.tokens import count, counter
from weft.turn.build import ContextBuilder
from weft.turn.fold import (
    FOLD_TASK,
    exchanges_of,
    fold_context,
    has_outside,
    outside_places,
    shortened,
    transcript,
)
from weft.turn.history import has_newer_fold
from weft.turn.trace import complete
from weft.types.context import Context
from weft.types.epoch import EpochView
from weft.types.message import Message
from weft.types.receipt import Receipt, ReceiptItem, Usage
from weft.types.recipe import HistoryRule
from weft.types.section import least_trusted
from weft.types.session import Fold, SideCall, Tail

_log = logging.getLogger(__name__)
PAUSE = timedelta(hours=1)
"""How long a model that failed to summarize is not asked again."""
_KIND = "fold"
_MOST_CHUNKS = 10
_ASK = (
    "[This is Weft, not the user.] The conversation above gets too long to be shown whole. {task} Cover it "
    "from its beginning to before the message that starts with “{start}”. Call no tool."
)
_EXCERPT = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Folding:
    """A session to fold, by the builder and the model of its last turn.

    One that is not long only has messages that left the view without a summary.
    """

    session_id: str
    builder: ContextBuilder
    provider: Provider
    store: Store
    receipt: Receipt
    clock: Callable[[], datetime]
    is_long: bool = True

    @property
    def rule(self) -> HistoryRule:
        return self.builder.history_rule

    @property
    def may_summarize(self) -> bool:
        """Whether a model may be asked: the recipe says so, and it is not the small embedded one."""
        is_small = self.provider.info.provider == "local" and not self.rule.summarization_model
        return self.rule.strategy == "summarize" and not is_small

    @property
    def model(self) -> str:
        return self.rule.summarization_model or self.provider.info.id


def is_due(receipt: Receipt | None, answer: str, rule: HistoryRule) -> bool:
    """Check whether something of a session should be folded now that it was answered."""
    if receipt is None or not receipt.fold_at:
        return False
    has_gap = rule.strategy == "summarize" and bool(_without_summary(receipt))
    return has_gap or is_long(receipt, answer, rule)


def is_long(receipt: Receipt, answer: str, rule: HistoryRule) -> bool:
    """Check whether the history of a session is above its high mark."""
    messages = sum(item.span[1] - item.span[0] + 1 for item in receipt.kept if item.span) + 2
    too_many = rule.max_messages is not None and messages > rule.max_messages * rule.fold_at
    return too_many or receipt.grown_tokens + count(answer) > receipt.fold_at


async def without_waiting(folding: Folding) -> Folding | None:
    """Return what is still to fold, where a summary may wait for the next message. None if that is nothing.

    A summary that was made while an answer was given is not in its receipt, which is above its mark yet. So
    only messages that left the view and that no summary has are folded then.
    """
    store, session_id = folding.store, folding.session_id
    folds = [one for one in await store.messages.list_folds(session_id) if one.removed_at is None]
    if not has_newer_fold(folds, await store.epochs.view(session_id)):
        return folding
    return replace(folding, is_long=False) if _gap(folding.receipt) > folds[-1].last else None


def _gap(receipt: Receipt) -> int:
    """Return the last message that left the view without being in a summary."""
    return max((item.span[-1] for item in _without_summary(receipt)), default=0)


def _without_summary(receipt: Receipt) -> list[ReceiptItem]:
    """Return the stretches of the history that left the view without being in a summary."""
    left_out = [item for item in receipt.dropped if item.layer == "history" and item.span]
    return [item for item in left_out if not item.reason.startswith(("folded", "the exchange never"))]


async def fold_session(folding: Folding) -> Fold | None:
    """Fold the older part of a session. Returns the new fold, if there is one.

    A history that is only long because of what was attached to it needs no summary: its epoch ends. So it
    does where no model may be asked; the next one shows fewer messages then.
    """
    log, session_id = folding.store.messages, folding.session_id
    before = await log.fold(session_id)
    tail = await _tail(folding, before)
    depth = await _depth(folding, tail)
    last = _last(folding, tail, depth.kept) if folding.is_long else 0
    if folding.is_long and (last <= tail.messages_before or not folding.may_summarize):
        await folding.store.epochs.end("full", session_id)
        return None
    # What left the view before it was summarized is summarized too. What is shown stays, in this epoch.
    last = max(last, _gap(folding.receipt))
    if last <= (before.last if before else 0) or not folding.may_summarize or not await may_ask(folding):
        return None
    most = depth.summary_beside(_price_after(folding, tail, last)) if folding.is_long else depth.summary
    folds = _Summary(folding, before, last, most)
    try:
        fold = await folds.make()
    except ProviderError as error:
        _log.warning("a session was not folded: %s", error, extra={"session": session_id})
        await _record(folding, folds.usage, error=str(error))
        return None
    await _record(folding, folds.usage)
    await log.add_fold(session_id, fold)
    return fold


async def _tail(folding: Folding, before: Fold | None) -> Tail:
    return await folding.store.messages.tail(
        folding.session_id,
        counter(folding.receipt.counter),
        max_tokens=folding.receipt.limit,
        max_messages=None,
        after=before.last if before else 0,
    )


@dataclass(frozen=True, slots=True)
class _Depth:
    """The tokens of what stays word for word when a history is folded, and the most for its summary.

    Both together must stay below `low`.
    """

    kept: int
    summary: int
    low: int

    def summary_beside(self, kept: int) -> int:
        """Return how long a summary may be beside so many tokens that stay word for word."""
        return max(min(self.summary, self.low - kept), self.summary // 2)


async def _depth(folding: Folding, tail: Tail) -> _Depth:
    """Return how deep to fold: to the low mark, or deeper where ten turns as the last ones would not fit."""
    view = await folding.store.epochs.view(folding.session_id)
    return await asyncio.to_thread(_depth_in, folding, tail, view)


def _depth_in(folding: Folding, tail: Tail, view: EpochView) -> _Depth:
    receipt, rule = folding.receipt, folding.rule
    price, room = counter(receipt.counter), round(receipt.fold_to / rule.fold_to)
    pace = pace_of(tail, view, price, room=room)
    marks = marks_of(rule, room, pace)
    summary = summary_room(marks)
    turn = sum(item.tokens for item in receipt.kept if item.zone == "turn" and item.layer != "steps")
    longer = max(2 * pace.tokens - turn, 0)  # the next message may be longer, and leave less room
    frame = price.message(summary_message(Fold(last=tail.messages_before, text="")))
    low = marks_of(rule, room - longer, pace).low - frame
    kept = min(depth_of(marks, pace, summary=summary) - summary, low - summary // 2)
    if pace.newest + summary // 2 <= marks.low - frame:
        kept = max(kept, pace.newest)
    return _Depth(kept=max(kept, 0), summary=summary, low=low)


def _last(folding: Folding, tail: Tail, kept: int) -> int:
    """Return the last message to fold, so that so many tokens stay word for word."""
    last = fold_until(tail, kept, counter(folding.receipt.counter))
    most = folding.rule.max_messages
    if most is None:
        return last
    entries = tail.entries[last - tail.messages_before :]
    beyond = len(entries) - max(int(most * folding.rule.fold_to), 2)
    starts = [at for at, entry in enumerate(entries) if entry.message.role == "user" and at >= beyond]
    return last + (starts[0] if starts and beyond > 0 else 0)


def _price_after(folding: Folding, tail: Tail, last: int) -> int:
    """Return the tokens of the messages after one."""
    return price_from(tail, last - tail.messages_before, counter(folding.receipt.counter))


async def may_ask(folding: Folding) -> bool:
    """Check that the model did not fail to summarize a short time ago."""
    failed_at = await folding.store.turns.failed_at(_KIND, folding.model)
    return failed_at is None or folding.clock() - failed_at >= PAUSE


async def _record(folding: Folding, usage: Usage, *, error: str = "") -> None:
    call = SideCall(
        kind=_KIND,
        session_id=folding.session_id,
        provider=folding.provider.info.provider,
        model=folding.model,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cached_tokens=usage.cached_tokens,
        written_tokens=usage.written_tokens,
        error=error,
        at=folding.clock(),
    )
    await folding.store.turns.add_call(call)


class _Summary:
    """The making of one summary, and what it costs."""

    def __init__(self, folding: Folding, before: Fold | None, last: int, most: int) -> None:
        self._folding, self._before, self._last, self._most = folding, before, last, most
        self.usage = Usage(input_tokens=0, output_tokens=0)

    async def make(self) -> Fold:
        """Ask a model for the summary.

        What was made from text of strangers stays apart, so that it keeps its mark. Then two plain requests
        are made in place of one on the cached prefix, in which both stand together.

        Raises:
            ProviderError: the model gave none.
        """
        folding, before = self._folding, self._before
        first = before.last + 1 if before else 1
        messages = await folding.store.messages.between(folding.session_id, first, self._last)
        exchanges = exchanges_of(messages)
        theirs = [message for one in exchanges if has_outside(one) for message in one]
        own = [message for one in exchanges if not has_outside(one) for message in one]
        is_mixed = bool(theirs) or bool(before and before.outside)
        text = before.text if before else ""
        if own:
            text = await self._own(text, own, plain=is_mixed)
        outside_text = before.outside_text if before else ""
        if theirs:
            outside_text = await self._plain(outside_text, theirs)
        most = self._most
        text = shortened(text, most // 2 if outside_text else most, price=count)
        outside_text = shortened(outside_text, most // 2, price=count)
        origins = [message.origin for message in messages]
        return Fold(
            last=self._last,
            text=text,
            model=folding.model,
            origin=least_trusted(("agent", *origins, *((before.origin,) if before else ()))),
            outside=tuple(dict.fromkeys((*(before.outside if before else ()), *outside_places(theirs)))),
            outside_text=outside_text,
            tokens_before=(before.tokens_before if before else 0)
            + sum(counter(folding.receipt.counter).message(message) for message in messages),
            tokens_after=count(text) + count(outside_text),
            input_tokens=self.usage.input_tokens,
            output_tokens=self.usage.output_tokens,
            cached_tokens=self.usage.cached_tokens,
        )

    async def _own(self, before: str, messages: Sequence[Message], *, plain: bool) -> str:
        """Summarize what was said between the person and the assistant."""
        context = None if plain or self._folding.rule.summarization_model else await self._on_prefix()
        return await (self._plain(before, messages) if context is None else self._ask(context))

    async def _on_prefix(self) -> Context | None:
        """Return a request that begins as the last one did, if all that is to be folded is in it."""
        following = await self._folding.store.messages.between(
            self._folding.session_id, self._last + 1, self._last + 1
        )
        start = " ".join(following[0].content.split())[:_EXCERPT] if following else "(the end)"
        asked = _ASK.format(task=FOLD_TASK, start=start)
        return await self._folding.builder.build_on_prefix(asked, first=(self._before or _NO_FOLD).last + 1)

    async def _plain(self, before: str, messages: Sequence[Message]) -> str:
        """Summarize a transcript in chunks, each with the summary so far."""
        window = self._folding.provider.info.window or self._folding.receipt.limit
        size, text = self._folding.rule.chunk_size, before
        chunks = [messages[at : at + size] for at in range(0, len(messages), size)]
        if len(chunks) > _MOST_CHUNKS:
            chunks = [*chunks[: _MOST_CHUNKS - 1], messages[size * (_MOST_CHUNKS - 1) :]]
        for chunk in chunks:
            lines = transcript(chunk, max_tokens=window // 2)
            before = shortened(text, window // 4, price=count)
            text = await self._ask(fold_context(before, lines, self._folding.rule.summarization_model))
        return text

    async def _ask(self, context: Context) -> str:
        reply = await complete(self._folding.provider, context)
        if reply.usage is not None:
            self.usage += reply.usage
        if not reply.text.strip():
            raise ProviderError("The model gave an empty summary.")
        return reply.text.strip()


_NO_FOLD = Fold(last=0, text="")
