"""Folding: the older part of a long conversation is shown as a summary.

A summary names the range of messages that it stands for. The log keeps every message: without the summary
they are shown again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from weft.context.outside import is_from_outside, places_of
from weft.context.window import is_complete, open_window
from weft.errors import ProviderError
from weft.providers.base import Provider
from weft.store.base import MessageLog
from weft.tokens import count
from weft.turn.classify import chosen_model
from weft.turn.trace import complete
from weft.types.context import Context
from weft.types.limits import ModelContextLimits
from weft.types.message import Message
from weft.types.recipe import HistoryRule
from weft.types.section import least_trusted
from weft.types.session import Fold, Summarizer, Tail

_MOST_CHUNKS = 10
"""The most chunks in one turn. After a change to a small model, a long history takes several turns."""
FOLD_TASK = (
    "Write one summary, in the order in which things came up. Keep names, numbers, dates, decisions, "
    "promises, open questions, and instructions that still hold, in the words in which they were given. "
    "Leave out greetings and repetition. Answer with only the summary."
)
_TASK = f"You keep the record of a conversation. Below is a part of it. {FOLD_TASK}"


def to_fold(
    tail: Tail, rule: HistoryRule, limits: ModelContextLimits, *, per_message: int, before: Fold | None
) -> int:
    """Return the number of the last message that should be in the summary.

    A history within its limits needs no more than the last fold. Otherwise two thirds of the limits are left
    to the messages, so that the next turns have room to grow. Without a limit of its own the history may fill
    the window.
    """
    most = limits.ceiling if limits.history_tokens is None else limits.history_tokens
    recent = len(tail.entries) if rule.max_messages is None else max(1, rule.max_messages * 2 // 3)
    rule = replace(rule, strategy="truncate", keep_recent=recent)
    window = open_window(tail, rule, history_tokens=most, per_message=per_message)
    if not window.limited_by:
        return before.last if before else 0
    return tail.messages_before + window.cuts[window.first]


async def fold(
    log: MessageLog, session_id: str, *, before: Fold | None, last: int, rule: HistoryRule, by: Summarizer
) -> None:
    """Fold the messages up to `last` into the summary, a chunk of whole exchanges at a time.

    The person waits for an answer, so a turn folds a few chunks only. Each is stored at once: a summary that
    was paid for is not asked for again.

    Raises:
        ProviderError: the model gave no summary. Earlier chunks stay folded.
    """
    newest = before or Fold(last=0, text="")
    for _ in range(_MOST_CHUNKS):
        if newest.last >= last:
            break
        end, chunk = await _chunk(log, session_id, newest.last, last, rule.chunk_size)
        text = newest.text
        ended = [message for exchange in exchanges_of(chunk) if is_complete(exchange) for message in exchange]
        if ended:
            text = (await by(text, ended)).strip()
            if not text:
                raise ProviderError("The model gave an empty summary: the history is cut this time.")
        places = tuple(dict.fromkeys((*newest.outside, *outside_places(ended))))
        origin = least_trusted(("agent", newest.origin, *(message.origin for message in ended)))
        newest = Fold(last=end, text=text, outside=places, origin=origin)
        await log.add_fold(session_id, newest)


async def _chunk(
    log: MessageLog, session_id: str, start: int, last: int, size: int
) -> tuple[int, list[Message]]:
    """Return about `size` messages after `start`, up to the end of an exchange, and the last one's number."""
    chunk = await log.between(session_id, start + 1, min(start + size, last))
    end = start + len(chunk)
    while end < last:
        (following,) = await log.between(session_id, end + 1, end + 1)
        if following.role == "user":
            break
        chunk.append(following)
        end += 1
    return end, chunk


def exchanges_of(messages: Sequence[Message]) -> list[list[Message]]:
    exchanges: list[list[Message]] = []
    for message in messages:
        if message.role == "user" or not exchanges:
            exchanges.append([])
        exchanges[-1].append(message)
    return exchanges


async def nobody(before: str, messages: Sequence[Message]) -> str:
    """Refuse to summarize: a preview of a context asks no model and writes nothing."""
    raise ProviderError("a look at the context asks no model.")


def summarizer(provider: Provider, *, model: str = "") -> Summarizer:
    """Return a summarizer by a model: the provider's own, or another of the same provider."""
    window = chosen_model(provider.info, model).window

    async def by(before: str, messages: Sequence[Message]) -> str:
        lines = transcript(messages, max_tokens=window and window // 2)
        context = fold_context(_within(before, window and window // 4), lines, model)
        return (await complete(provider, context)).text

    return by


def fold_context(before: str, lines: str, model: str = "") -> Context:
    """Return the request for a summary of an earlier summary and of the lines of a transcript after it."""
    parts = [f"The summary so far:\n{before}"] if before else []
    parts.append("What was said" + (" after it:" if before else ":") + "\n" + lines)
    return Context(system_prompt=_TASK, current_message="\n\n".join(parts), model=model or None)


def has_outside(exchange: Sequence[Message]) -> bool:
    """Check whether an exchange has text of strangers in it."""
    return any(map(is_from_outside, exchange))


def outside_places(messages: Sequence[Message]) -> tuple[str, ...]:
    """Name where the text of strangers in messages comes from."""
    return tuple(dict.fromkeys(place for message in messages for place in places_of(message)))


def transcript(messages: Sequence[Message], *, max_tokens: int | None = None) -> str:
    """Write messages as a transcript, a line each, with calls and results.

    Where that is more than `max_tokens`, long lines are cut, so that the model reads something of each.
    """
    lines = []
    for message in messages:
        speaker = _speaker(message)
        calls = "".join(f" [called {call.name} {dict(call.arguments)}]" for call in message.tool_calls)
        lines.append(f"{speaker}: {' '.join(message.content.split())}{calls}")
    if max_tokens is not None and sum(map(count, lines)) > max_tokens:
        lines = [_within(line, max_tokens // len(lines)) for line in lines]
    return "\n".join(lines)


def _speaker(message: Message) -> str:
    """Return who says a line of a transcript. Only a person's own message is the user's."""
    if message.role == "user" and message.origin != "user":
        return f"{message.origin.capitalize()} (not the user)"
    return {"user": "User", "assistant": "Assistant"}.get(message.role, message.tool_name or message.role)


def _within(text: str, max_tokens: int | None) -> str:
    return text if max_tokens is None else shortened(text, max_tokens, price=count)


def shortened(text: str, most: int, *, price: Callable[[str], int]) -> str:
    """Return the longest beginning of a text that costs no more than `most`, about."""
    while text and (cost := price(text)) > most:
        text = text[: min(len(text) * most // cost, len(text) - 1)]
    return text
