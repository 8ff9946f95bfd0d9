"""The history of a build: the newest messages, and the summary of those that were folded before them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from weft.errors import ConfigError, ProviderError
from weft.store.base import MessageLog
from weft.tokens import Counter
from weft.turn.fold import Summarizer, fold, nobody, shortened, to_fold, transcript
from weft.types.limits import ContextConfig, ModelContextLimits, RecursiveSummarization, Truncate
from weft.types.message import Message
from weft.types.recipe import HistoryRule
from weft.types.session import Fold, Tail


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """Whose history is read, and how much of it could be shown."""

    log: MessageLog
    session_id: str
    counter: Counter
    rule: HistoryRule
    limits: ModelContextLimits
    summarizer: Summarizer | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The newest messages, the summary of those before them, and what happened on the way."""

    tail: Tail = Tail()
    fold: Fold | None = None
    notes: tuple[str, ...] = ()


def history_rule(rule: HistoryRule, config: ContextConfig) -> HistoryRule:
    """The recipe's rule with what the caller set over it."""
    if config.max_messages_cap is not None:
        rule = replace(rule, max_messages=config.max_messages_cap)
    match config.compression_strategy:
        case None:
            return rule
        case Truncate(keep_recent=keep_recent):
            return replace(rule, strategy="truncate", keep_recent=keep_recent)
        case RecursiveSummarization(chunk_size=chunk_size, summarization_model=model):
            return replace(rule, strategy="summarize", chunk_size=chunk_size, summarization_model=model)


async def read_history(talk: Conversation) -> History:
    """The history as far as it could be shown; folded if it is too long and that is the strategy.

    Raises:
        ConfigError: it must be folded, and there is no model to do so.
    """
    if talk.rule.strategy != "summarize":
        return History(tail=await _tail(talk, None))
    before = await talk.log.fold(talk.session_id)
    tail = await _tail(talk, before)
    last = to_fold(tail, talk.rule, talk.limits, per_message=talk.counter.per_message, before=before)
    if last <= (before.last if before else 0):
        return History(tail=tail, fold=before)
    if talk.summarizer is None:
        raise ConfigError(
            "This history is long enough to be summarised, and that needs a model: "
            "use Truncate, or give the app a provider."
        )
    if talk.summarizer is nobody:
        note = "The next message has the older part of the history summarised; a look at it asks no model."
        return History(tail=tail, fold=before, notes=(note,))
    by = _shrinking(talk.summarizer, talk)
    notes: tuple[str, ...] = ()
    try:
        await fold(talk.log, talk.session_id, before=before, last=last, rule=talk.rule, by=by)
    except ProviderError as error:
        notes = (f"The history could not be summarised, so its older part is left out this time: {error}",)
    newest = await talk.log.fold(talk.session_id)
    if not notes and newest is not None and newest.last < last:
        notes = (f"The history is folded bit by bit: up to message {newest.last} of {last} by now.",)
    return History(tail=await _tail(talk, newest), fold=newest, notes=notes)


def _shrinking(by: Summarizer, talk: Conversation) -> Summarizer:
    """Summaries that are never longer than what they stand for, nor than a third of the history's room.

    Folding leaves two thirds of that room to the messages; and a model may answer with more than it was told.
    """
    limits = (talk.rule.max_tokens, talk.limits.history_tokens, talk.limits.ceiling)
    most = min(limit for limit in limits if limit is not None) // 3
    price = talk.counter.text

    async def shrunk(before: str, messages: Sequence[Message]) -> str:
        text = (await by(before, messages)).strip()
        told = price(before) + price(transcript(messages))
        return shortened(text, min(most, told), price=price)

    return shrunk


async def _tail(talk: Conversation, folded: Fold | None) -> Tail:
    """The newest messages, no more than could be shown."""
    shortened = talk.rule.strategy in ("truncate", "summarize")
    return await talk.log.tail(
        talk.session_id,
        talk.counter,
        max_tokens=None if talk.rule.strategy == "none" else talk.limits.ceiling,
        max_messages=None if shortened else talk.rule.max_messages,
        after=folded.last if folded else 0,
    )
