"""The history of a build: the newest messages, and the summary of those that were folded before them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from weft.errors import ConfigError, ProviderError
from weft.sources.base import BuildRequest
from weft.store.base import MessageLog
from weft.turn.fold import fold, nobody, shortened, to_fold, transcript
from weft.types.epoch import EpochView
from weft.types.message import Message
from weft.types.session import Fold, Summarizer, Tail


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The newest messages, the summary of those before them, and notes for the receipt.

    `view` is the running epoch, in a recipe that has epochs, and `folds` are all summaries, oldest first.
    """

    tail: Tail = Tail()
    fold: Fold | None = None
    notes: tuple[str, ...] = ()
    view: EpochView | None = None
    folds: tuple[Fold, ...] = ()


async def read_history(request: BuildRequest) -> History:
    """Read the history as far as it could be shown, and fold it first if it is too long.

    Raises:
        ConfigError: it must be folded, and there is no model to do so.
    """
    log, session_id, rule = request.messages, request.session_id, request.history_rule
    if log is None:
        return History()
    if request.has_epochs:
        return await read_epoch(request)
    if rule.strategy != "summarize":
        return History(tail=await _tail(log, request, None))
    before = await log.fold(session_id)
    tail = await _tail(log, request, before)
    last = to_fold(tail, rule, request.limits, per_message=request.counter.per_message, before=before)
    if last <= (before.last if before else 0):
        return History(tail=tail, fold=before)
    if request.summarizer is None:
        raise ConfigError(
            "This history is long enough to be summarised, and that needs a model: "
            "use Truncate, or give the app a provider."
        )
    if request.summarizer is nobody:
        note = "The next message has the older part of the history summarised; a look at it asks no model."
        return History(tail=tail, fold=before, notes=(note,))
    by = _shrinking(request.summarizer, request)
    notes: tuple[str, ...] = ()
    try:
        await fold(log, session_id, before=before, last=last, rule=rule, by=by)
    except ProviderError as error:
        notes = (f"The history could not be summarised, so its older part is left out this time: {error}",)
    newest = await log.fold(session_id)
    if not notes and newest is not None and newest.last < last:
        notes = (f"The history is folded bit by bit: up to message {newest.last} of {last} by now.",)
    return History(tail=await _tail(log, request, newest), fold=newest, notes=notes)


async def read_epoch(request: BuildRequest) -> History:
    """Read the running epoch of a session, and the messages that it shows.

    Without one, the messages behind the newest summary are read.
    """
    if request.messages is None:
        return History()
    view, folds = await asyncio.gather(request.epoch_view, request.messages.list_folds(request.session_id))
    current = [fold for fold in folds if fold.removed_at is None]
    epoch = view.epoch
    if epoch is not None:
        fold = next((one for one in current if one.last == epoch.folded), None)
        if not has_newer_fold(current, view) and (fold is not None or not epoch.folded):
            tail = await _after(request, epoch.first - 1)
            return History(tail=tail, fold=fold, view=view, folds=tuple(current))
        view = replace(view, epoch=None, ended_why="fold")
    opened = await read_unfolded(request, current[-1] if current else None)
    return replace(opened, view=view, folds=tuple(current))


def has_newer_fold(folds: Sequence[Fold], view: EpochView) -> bool:
    """Check whether something was folded since the running epoch began, so that the next message ends it.

    Where the one before was full, the history was cut with the message `cut_at`. A summary of what was said
    before that comes too late: it waits until the next epoch begins.
    """
    epoch = view.epoch
    if epoch is None:
        return False
    began = epoch.began_at
    can_wait = epoch.why.startswith("full")
    oldest = max(epoch.first, view.cut_at) if can_wait else epoch.folded + 1
    newer = [one for one in folds if one.last >= oldest]
    return any(began is None or fold.at is None or fold.at >= began for fold in newer)


async def read_unfolded(request: BuildRequest, fold: Fold | None) -> History:
    """Read the messages behind a summary, as far as they could be shown."""
    return History(tail=await _after(request, fold.last if fold else 0), fold=fold)


async def _after(request: BuildRequest, number: int) -> Tail:
    if request.messages is None:
        return Tail()
    return await request.messages.tail(
        request.session_id,
        request.counter,
        max_tokens=request.limits.ceiling,
        max_messages=None,
        after=number,
    )


def _shrinking(by: Summarizer, request: BuildRequest) -> Summarizer:
    """Limit summaries to the length of what they stand for, and to a third of the history's room.

    Folding leaves two thirds of that room to the messages, and a model may answer with more than it read.
    """
    limits = (request.history_rule.max_tokens, request.limits.history_tokens, request.limits.ceiling)
    most = min(limit for limit in limits if limit is not None) // 3
    price = request.counter.text

    async def shrunk(before: str, messages: Sequence[Message]) -> str:
        text = (await by(before, messages)).strip()
        return shortened(text, min(most, price(before) + price(transcript(messages))), price=price)

    return shrunk


async def _tail(log: MessageLog, request: BuildRequest, folded: Fold | None) -> Tail:
    """Read the newest messages, no more than could be shown."""
    rule = request.history_rule
    return await log.tail(
        request.session_id,
        request.counter,
        max_tokens=None if rule.strategy == "none" else request.limits.ceiling,
        max_messages=None if rule.strategy in ("truncate", "summarize") else rule.max_messages,
        after=folded.last if folded else 0,
    )
