"""What is known of models, as data that is easy to correct: windows, longest answers, how they cache.

The first row whose start fits a model's id counts. Numbers move: what a provider reports is believed first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """One family of models. `cache` is how the end of a stable part is marked, if it can be."""

    start: str
    window: int
    max_output: int
    cache: Literal["", "block", "breakpoint"] = ""
    ratio: float = 1.0
    """How many of its tokens one of o200k may be, to be safe until it says so itself."""


TABLE = (
    Model(start="claude-haiku-4", window=200_000, max_output=32_000, cache="block", ratio=1.35),
    Model(start="claude-opus-4", window=200_000, max_output=32_000, cache="block", ratio=1.35),
    Model(start="claude-opus-5", window=1_000_000, max_output=64_000, cache="block", ratio=1.6),
    Model(start="claude-sonnet-4", window=200_000, max_output=64_000, cache="block", ratio=1.35),
    Model(start="claude-sonnet-5", window=1_000_000, max_output=64_000, cache="block", ratio=1.6),
    Model(start="claude-", window=200_000, max_output=8_192, cache="block", ratio=1.35),
    Model(start="gpt-5.6", window=400_000, max_output=64_000, cache="breakpoint"),
    Model(start="gpt-5", window=400_000, max_output=64_000),
    Model(start="gpt-4o", window=128_000, max_output=16_384),
    Model(start="gpt-4.1", window=1_000_000, max_output=32_768),
    Model(start="gemini-3", window=1_000_000, max_output=65_536, ratio=1.2),
    Model(start="gemini-2.5", window=1_000_000, max_output=65_536, ratio=1.2),
    Model(start="llama3", window=8_192, max_output=4_096, ratio=1.3),
)
UNKNOWN = Model(start="", window=8_192, max_output=4_096, ratio=1.5)
DEFAULT = {
    "anthropic": "claude-sonnet-5",
    "openai": "gpt-5.6",
    "openai_responses": "gpt-5.6",
    "openrouter": "anthropic/claude-sonnet-5",
    "ollama": "llama3.2",
    "gemini": "gemini-3-flash",
}
"""The model that is asked if none is named."""


def known(model: str) -> Model:
    """The family of a model; the vendor's name before a slash does not count."""
    id_ = model.rpartition("/")[2]
    return next((row for row in TABLE if id_.startswith(row.start)), UNKNOWN)
