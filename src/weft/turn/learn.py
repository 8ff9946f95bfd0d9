"""Learning from a conversation that is over: its summary, and facts about the person.

Each is one question to a model in a context of its own. Only the words of the person and of the assistant are
read: text that was recalled, returned by a tool or read from a file never becomes a fact.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from weft.errors import ProviderError
from weft.providers.base import Provider
from weft.turn.fold import transcript
from weft.turn.trace import complete
from weft.types.escape import without_fenced
from weft.types.facts import problem_with
from weft.types.message import Message
from weft.types.recipe import Recipe
from weft.types.session import SideCall
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
_NO_ANSWER = "The model answered nothing when it was asked for a summary."
_KEY = re.compile(r"[^\W_]{1,20}(?:_[^\W_]{1,20}){0,3}")
"""A key of up to four words, so that no sentence hides in it."""
_LINE = re.compile(r"^[-*\s]*([^:\n]{1,80}?)\s*:\s*(\S.*?)\s*$")


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedFact:
    """A fact that a person said about themselves; `message` is the position of their message, from 0."""

    key: str
    value: str
    message: int


async def summarize(
    provider: Provider, recipe: Recipe, messages: Sequence[Message], calls: list[SideCall] | None = None
) -> str:
    """Summarize a conversation. What that cost is added to `calls`.

    Raises:
        ProviderError: the model could not be asked, or answered nothing.
    """
    lines = _spoken(messages, recipe)
    if not lines:
        return EMPTY
    reply = await complete(provider, recipe.one_shot(f"{SUMMARY_PROMPT}\n\n{lines}"), calls)
    text = " ".join(reply.text.split())
    if not text:
        raise ProviderError(_NO_ANSWER, log_text=_NO_ANSWER)
    return text


def no_summary(messages: Sequence[Message]) -> str:
    """Return what stands for a summary that could not be made for a week. No model is shown it."""
    return f"({len(messages)} messages, summary unavailable)"


async def learn_facts(
    provider: Provider, recipe: Recipe, messages: Sequence[Message], calls: list[SideCall] | None = None
) -> list[LearnedFact]:
    """Ask a model for what a person said about themselves, and keep the facts that they really said.

    A file or a pipe that came with a message stands in a fence, and is nothing that they said.

    Raises:
        ProviderError: the model could not be asked.
    """
    messages = [replace(message, content=without_fenced(message.content)) for message in messages]
    lines = _spoken(messages, recipe)
    if not lines:
        return []
    reply = await complete(provider, recipe.one_shot(f"{FACTS_PROMPT}\n\n{lines}"), calls)
    facts: dict[str, LearnedFact] = {}
    for line in reply.text.splitlines():
        match = _LINE.match(line)
        if match is None:
            continue
        key, value = match[1].strip("`* ").lower().replace(" ", "_"), match[2].strip("`* ")
        source = _source(value, messages)
        if source is not None and _KEY.fullmatch(key) and problem_with(key, value, by_model=True) is None:
            facts[key] = LearnedFact(key=key, value=value, message=source)
    return list(facts.values())


def summary_origin(messages: Sequence[Message], recipe: Recipe) -> str:
    """Return the origin of a summary: that of strangers, if it was made from what they may have said."""
    if _leaves_strangers_out(recipe):
        return "agent"
    return (
        "import" if any(message.role == "assistant" and message.outside for message in messages) else "agent"
    )


def _leaves_strangers_out(recipe: Recipe) -> bool:
    """Check whether what the assistant said from text of strangers is left out when something is learned.

    The recipes of other systems summarize everything that was said, as those systems do.
    """
    return recipe.stability == "epoch"


def _spoken(messages: Sequence[Message], recipe: Recipe) -> str:
    """Write a transcript of what the two sides said: no calls, no results, no files, no notes of ours."""
    is_strict = _leaves_strangers_out(recipe)
    return transcript(
        [
            replace(message, content=content, tool_calls=())
            for message in messages
            if message.role in ("user", "assistant")
            and message.origin in ("user", "agent")
            and not (is_strict and message.role == "assistant" and message.outside)
            and (content := without_fenced(message.content)).strip()
        ]
    )


def _source(value: str, messages: Sequence[Message]) -> int | None:
    """Find the newest message of the person with the most words of a value, at least half of them."""
    wanted = set(words(value))
    best, where = 0, None
    for at, message in enumerate(messages):
        if message.role != "user" or message.origin != "user":
            continue
        shared = len(wanted & set(words(message.content)))
        if shared and shared * 2 >= len(wanted) and shared >= best:
            best, where = shared, at
    return where
