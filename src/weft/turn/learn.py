"""Learning from a conversation that is over: what it was about, and what it told about the person.

Each is one question to a model in a throwaway context. Only what the person and the assistant said is read:
what was recalled, what a tool returned or what a file held never becomes a fact.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from weft.errors import ProviderError
from weft.providers.base import Provider
from weft.turn.fold import transcript
from weft.turn.trace import complete
from weft.types.facts import problem_with
from weft.types.message import Message
from weft.types.recipe import Recipe
from weft.types.tokenize import words

SUMMARY_PROMPT = (
    "Summarize this conversation in 1-2 sentences. Be factual and concise. Do not add commentary."
)
FACTS_PROMPT = (
    "List what the user says about themselves in this conversation that will still be true in a month: name, "
    "where they live, people, work, preferences, plans. One per line as `key: value`, with a short key in "
    "lower case. Leave out what the assistant says, what was only asked, numbers and prices without meaning. "
    "If there is nothing, answer with the one word none."
)
EMPTY = "(empty conversation)"
_LINE = re.compile(r"^[-*\s]*([^:\n]{1,80}?)\s*:\s*(\S.*?)\s*$")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedFact:
    """Something a person said about themselves; `message` is its place among the messages, from 0."""

    key: str
    value: str
    message: int


async def summarise(provider: Provider, recipe: Recipe, messages: Sequence[Message]) -> str:
    """What a conversation was about. It never fails: without a model it says how long it was."""
    said = spoken(messages)
    if not said:
        return EMPTY
    try:
        reply = await complete(provider, recipe.one_shot(f"{SUMMARY_PROMPT}\n\n{said}"))
    except ProviderError as error:
        _log.warning("a conversation could not be summarised: %s", error)
        return unavailable(messages)
    return " ".join(reply.text.split()) or unavailable(messages)


async def learn_facts(provider: Provider, recipe: Recipe, messages: Sequence[Message]) -> list[LearnedFact]:
    """What a person said about themselves, each with the message in which they did.

    Raises:
        ProviderError: the model could not be asked.
    """
    said = spoken(messages)
    if not said:
        return []
    reply = await complete(provider, recipe.one_shot(f"{FACTS_PROMPT}\n\n{said}"))
    return facts_in(reply.text, messages)


def facts_in(text: str, messages: Sequence[Message]) -> list[LearnedFact]:
    """The facts of an answer that are worth keeping and that the person really said."""
    found: dict[str, LearnedFact] = {}
    for line in text.splitlines():
        match = _LINE.match(line)
        if match is None:
            continue
        key, value = match[1].strip("`* ").lower().replace(" ", "_"), match[2].strip("`* ")
        source = _source(value, messages)
        if source is not None and problem_with(key, value, by_model=True) is None:
            found[key] = LearnedFact(key=key, value=value, message=source)
    return list(found.values())


def spoken(messages: Sequence[Message]) -> str:
    """What the two sides said themselves, a line each: no calls, no results, nothing of ours."""
    return transcript(
        [
            replace(message, tool_calls=())
            for message in messages
            if message.role in ("user", "assistant")
            and message.content.strip()
            and message.origin in ("user", "agent")
        ]
    )


def unavailable(messages: Sequence[Message]) -> str:
    return f"({len(messages)} messages, summary unavailable)"


def _source(value: str, messages: Sequence[Message]) -> int | None:
    """The newest message of the person that holds most of the value's words, and at least half of them."""
    wanted = set(words(value))
    best, where = 0, None
    for at, message in enumerate(messages):
        if message.role != "user" or message.origin != "user":
            continue
        shared = len(wanted & set(words(message.content)))
        if shared and shared * 2 >= len(wanted) and shared >= best:
            best, where = shared, at
    return where
