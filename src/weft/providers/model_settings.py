"""Settings of one model: its window, its limits and its prices."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """What the owner says of a model: how many of its own tokens it reads, and limits of its own.

    The limits are counted as those of `[context]` are, and bind only while this model answers. The prices are
    those of a million tokens, in any currency.
    """

    window: int | None = None
    max_tokens: int | None = None
    memory_tokens: int | None = None
    history_tokens: int | None = None
    reserved_response_tokens: int | None = None
    input_price: float | None = None
    output_price: float | None = None
