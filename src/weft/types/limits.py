"""Limits and options of a build, as a caller may set them over a recipe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from weft.errors import ConfigError
from weft.types.codec import Json
from weft.types.script import WESTERN, Script

MIN_WINDOW = 1_024
"""The smallest window that a model may be said to have, in its own tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelContextLimits(Json):
    """The window of a model and how it may be spent. A part limit of None means: only the window binds."""

    max_tokens: int
    memory_tokens: int | None = None
    history_tokens: int | None = None
    reserved_response_tokens: int = 0

    @property
    def ceiling(self) -> int:
        """What a request may take: the window without the room kept for the answer."""
        return self.max_tokens - self.reserved_response_tokens

    def check(self) -> ModelContextLimits:
        """Return the limits as they are.

        Raises:
            ConfigError: they leave no room for a request.
        """
        if self.max_tokens <= 0:
            raise ConfigError(f"`max_tokens` is {self.max_tokens}: it must be above zero.")
        if not 0 <= self.reserved_response_tokens < self.max_tokens:
            raise ConfigError(
                f"`reserved_response_tokens` is {self.reserved_response_tokens} of {self.max_tokens} tokens: "
                "it must leave room for a request."
            )
        if any(part is not None and part < 0 for part in (self.memory_tokens, self.history_tokens)):
            raise ConfigError("`memory_tokens` or `history_tokens` is below zero: use zero for none.")
        return self

    def resized(self, window: int) -> ModelContextLimits:
        """Return the limits for another window; a reserve that would not fit becomes a quarter of it."""
        fits = self.reserved_response_tokens < window
        reserve = self.reserved_response_tokens if fits else max(window, 0) // 4
        return replace(self, max_tokens=window, reserved_response_tokens=reserve)

    def lowered_to(self, window: int | None) -> ModelContextLimits:
        """Return the limits in a smaller window; a larger one changes nothing.

        Where the reserve would take more than half of it, a quarter is reserved instead: a limit made
        for a large model must not leave a small one without room to read.
        """
        if window is None or window >= self.max_tokens:
            return self
        reserve = self.reserved_response_tokens
        return replace(
            self,
            max_tokens=window,
            reserved_response_tokens=window // 4 if reserve > window // 2 else reserve,
        )


ASSUMPTION, FROM_SERVER = "an assumption", "its server"
FROM_SETTINGS, FROM_TABLE = "the settings", "the table of known models"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelInfo(Json):
    """Which model will read the context, as far as building it depends on that.

    `max_tokens` is its window in its own tokens, and `tokens_ratio` how many of those one of ours is in plain
    text. `ratios` has the number for other scripts. While nothing was learned of a script that is not Latin,
    a token is believed to hold at most `bytes_per_token` of it, where that is set. `learned` are the numbers
    that its provider reported, by script. A server that `takes_window` reads as much as a request says.
    `window_from` says who names the window: the settings, a table, the server, or nobody, so that it is
    assumed. `note` is a sentence about the window for the receipt. A model that does not call tools is not
    told of any, and one that takes no pictures gets none.

    Its cache keeps the beginning of a request for `cache_seconds` after its last use (0: not known), unless
    that has fewer than `cache_min` tokens. `cache_read` and `cache_write` are the prices of a token that is
    read from it and of one that is written to it, where a plain one costs 1; None: not known.
    """

    id: str = ""
    provider: str = ""
    max_tokens: int | None = None
    tokens_ratio: float = 1.0
    ratios: Mapping[str, float] = field(default_factory=dict)
    bytes_per_token: float = 0.0
    learned: Mapping[str, float] = field(default_factory=dict)
    takes_window: bool = False
    calls_tools: bool = True
    takes_pictures: bool = True
    window_from: str = ""
    note: str = ""
    address: str = ""
    cache_seconds: int = 0
    cache_read: float | None = None
    cache_write: float = 1.0
    cache_min: int = 0

    def ratio_of(self, script: Script) -> float:
        """Return how many of its tokens one of ours is in a script."""
        return self.learned.get(script) or self.ratios.get(script) or self.tokens_ratio

    def least_tokens(self, script: Script, size: float) -> float:
        """Return how many tokens so many bytes of a script are at least believed to be."""
        if not self.bytes_per_token or script in WESTERN or script in self.learned:
            return 0.0
        return size / self.bytes_per_token

    def with_learned(self, ratios: Mapping[str, float]) -> ModelInfo:
        """Return the model with what was learned of its tokens, by script."""
        return replace(self, learned=dict(ratios), tokens_ratio=ratios.get("plain", self.tokens_ratio))

    def with_cache_prices(self, prices: Mapping[str, CachePrices]) -> ModelInfo:
        """Return the model with prices of its cache that are set, by its id or `PROVIDER:ID`."""
        own = [prices[name] for name in (self.id, f"{self.provider}:{self.id}") if name in prices]
        if not own:
            return self
        reads = [price.read for price in own if price.read is not None]
        writes = [price.write for price in own if price.write is not None]
        return replace(
            self,
            cache_read=reads[-1] if reads else self.cache_read,
            cache_write=writes[-1] if writes else self.cache_write,
        )

    @property
    def is_assumed(self) -> bool:
        """Whether the window is assumed."""
        return self.window_from == ASSUMPTION

    @property
    def window(self) -> int | None:
        """Its window in our tokens."""
        return None if self.max_tokens is None else int(self.max_tokens / max(self.tokens_ratio, 0.1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """What a million tokens of a model cost, in the currency of whoever says so."""

    input: float
    output: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CachePrices:
    """What a token that is read from a model's cache, or written to it, costs where a plain one costs 1."""

    read: float | None = None
    write: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncate(Json):
    """Shorten a long history to its newest messages, in whole exchanges."""

    keep_recent: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class RecursiveSummarization(Json):
    """Shorten a long history by summaries of its older parts."""

    chunk_size: int = 20
    summarization_model: str = ""


CompressionStrategy = Truncate | RecursiveSummarization


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextConfig:
    """What a caller sets over the recipe. None leaves the recipe's value."""

    default_limits: ModelContextLimits | None = None
    model_overrides: Mapping[str, ModelContextLimits] = field(default_factory=dict)
    include_descriptions: bool | None = None
    include_schemas: bool | None = None
    activity_entries_limit: int | None = None
    compression_strategy: CompressionStrategy | None = None
    max_messages_cap: int | None = None

    def __post_init__(self) -> None:
        for name in ("max_messages_cap", "activity_entries_limit"):
            if (getattr(self, name) or 0) < 0:
                raise ConfigError(f"`{name}` is {getattr(self, name)}: use zero for none.")

    def chosen_limits(self, recipe: ModelContextLimits, model: ModelInfo | None) -> ModelContextLimits:
        """Return the limits as configured: the recipe's, the explicit ones, or the model's override.

        An override is named by the model's id, or by its provider, a colon and the id.
        """
        limits, own = self.default_limits or recipe, self.model_overrides
        if model is not None:
            limits = own.get(f"{model.provider}:{model.id}") or own.get(model.id, limits)
        return limits.check()

    def limits(self, recipe: ModelContextLimits, model: ModelInfo | None) -> ModelContextLimits:
        """Return the limits that bind: those that were asked for, within what the model can read."""
        limits = self.chosen_limits(recipe, model)
        return limits.lowered_to(model.window).check() if model else limits
