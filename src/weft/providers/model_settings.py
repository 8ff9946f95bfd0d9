"""Settings of one model: its window, its limits and its prices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from weft.errors import ConfigError

MOST_CACHE_PRICE = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """What the owner says of a model: how many of its own tokens it reads, and limits of its own.

    The limits are counted as those of `[context]` are, and bind only while this model answers. The prices are
    those of a million tokens, in any currency. `cache_read` and `cache_write` are the prices of a token that
    is read from the provider's cache or written to it, where a plain one costs 1.
    """

    window: int | None = None
    max_tokens: int | None = None
    memory_tokens: int | None = None
    history_tokens: int | None = None
    reserved_response_tokens: int | None = None
    input_price: float | None = None
    output_price: float | None = None
    cache_read: float | None = None
    cache_write: float | None = None


def check_cache_prices(models: Mapping[str, ModelSettings]) -> None:
    """Check the prices of cached tokens.

    Raises:
        ConfigError: one is not between 0 and 10.
    """
    for id_, model in models.items():
        for name in ("cache_read", "cache_write"):
            price = getattr(model, name)
            if price is not None and not 0 <= price <= MOST_CACHE_PRICE:
                raise ConfigError(
                    f"`models.{id_}.{name}` is {price}: it must be between 0 and {MOST_CACHE_PRICE}, "
                    "where a plain token costs 1."
                )
