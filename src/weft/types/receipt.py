"""The receipt: what a context shows, what was left out, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from weft.types.codec import Json

MOST_NAMED = 3
"""How many left-out items of one layer with the same reason are named where people read."""
HEADING = "heading"
"""The title of the item for what a layer puts around its pieces."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiptItem(Json):
    """One decision: something is shown, or is not.

    The history is not listed message by message: a stretch of it is one item, whose `span` has the numbers of
    its first and last message, counted from 1. `id` names a piece within its source, and `hash` is that of
    its text.
    """

    layer: str
    source: str
    title: str = ""
    tokens: int
    kept: bool
    reason: str = ""
    origin: str = "operator"
    zone: str = "session"
    span: tuple[int, ...] = ()
    id: str = ""
    hash: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """What of one layer was left out for one reason: the items to name, and how many more there are."""

    items: tuple[ReceiptItem, ...]
    more: int = 0
    more_tokens: int = 0

    @property
    def rest(self) -> str:
        """The words for those that are not named; empty if all are."""
        return f"and {self.more:,} more of {self.items[0].layer}" if self.more else ""

    @property
    def reason(self) -> str:
        return self.items[0].reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage(Json):
    """The cost of a request as the provider counts it, in its own tokens.

    `cached_tokens` of the input were read from its cache, and `written_tokens` of it were added to the cache.
    """

    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    written_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        """Return the cost of both requests."""
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            written_tokens=self.written_tokens + other.written_tokens,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation(Json):
    """How many of the model's tokens one of ours was believed to be when the context was built.

    `script` is that of nearly all that is shown, and `script_ratio` the number for it alone. It is empty for
    a mixture. `sent_window` is the window that the request tells the server; 0, if it tells none.
    """

    ratio: float
    script: str = ""
    script_ratio: float = 0.0
    sent_window: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt(Json):
    """The account of every token of one context, and of everything that was left out.

    `total_tokens`, `by_layer` and `over_limit` are computed from the items, so they cannot disagree. Beside
    the `limit`, so many tokens are `reserved` for the answer. `errors` lists what went wrong with the
    request after it was built. `usage` adds up all requests that answered the message, without those that
    classified it or folded the history. `ratio` is the number of the model's tokens that one of ours in the
    request's `script` was, as far as the provider's count teaches that. `expected` is what was believed
    before. `window` is what the model reads, in its own tokens. `epoch` is the number of the epoch, and
    `epoch_why` why it began if it began with this request. Its history is folded above `fold_at` tokens,
    down to `fold_to`. `outside` names the places of text of strangers in view. `cost_tokens` is how many new
    tokens would have cost as much as the input, by the rules of the provider's cache, and `cost` the money
    for all, if prices are set. Where the price of what came from the cache is not known, both are None.
    """

    DERIVED: ClassVar = ("total_tokens", "by_layer", "over_limit")

    items: tuple[ReceiptItem, ...] = ()
    limit: int = 0
    reserved: int = 0
    recipe: str = ""
    counter: str = ""
    warnings: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    provider: str = ""
    model: str = ""
    provider_reason: str = ""
    address: str = ""
    window: int = 0
    usage: Usage | None = None
    ratio: float | None = None
    epoch: int = 0
    epoch_why: str = ""
    fold_at: int = 0
    fold_to: int = 0
    outside: tuple[str, ...] = ()
    cost_tokens: int | None = None
    cost: float | None = None
    expected: Expectation | None = None

    @property
    def script(self) -> str:
        """The script of nearly all that is shown; empty for a mixture."""
        return self.expected.script if self.expected else "plain"

    @property
    def total_tokens(self) -> int:
        return sum(item.tokens for item in self.items if item.kept)

    @property
    def by_layer(self) -> dict[str, int]:
        """Tokens shown per layer, in the order of the recipe."""
        totals: dict[str, int] = {}
        for item in self.items:
            if item.kept:
                totals[item.layer] = totals.get(item.layer, 0) + item.tokens
        return totals

    @property
    def over_limit(self) -> bool:
        return self.total_tokens > self.limit

    @property
    def is_cost_unknown(self) -> bool:
        """Whether tokens came from a cache whose price is not known."""
        return self.cost_tokens is None and self.usage is not None and self.usage.cached_tokens > 0

    @property
    def grown_tokens(self) -> int:
        """Tokens of the history, the message, all that went with it, and their framing: the next history."""
        grows = ("history", "framing")
        return sum(item.tokens for item in self.kept if item.layer in grows or item.zone == "turn")

    def titles(self, layer: str) -> str:
        """Return the titles of what a layer shows, without its heading."""
        items = [item for item in self.kept if item.layer == layer]
        return ", ".join(item.title for item in items if item.title != HEADING or len(items) == 1)

    @property
    def remarks(self) -> tuple[str, ...]:
        """Sentences about the epoch, what of the request was sent before, and text of strangers in view."""
        lines = list[str]()
        if self.epoch:
            why = f" begins here ({self.epoch_why})" if self.epoch_why else " goes on"
            lines.append(f"epoch {self.epoch}{why}; its history is folded above {self.fold_at:,} tokens")
        if self.epoch and not self.epoch_why:
            new = sum(item.tokens for item in self.kept if item.zone == "turn")
            lines.append(f"about {self.total_tokens - new:,} tokens stood in the last request too")
        if self.usage is not None and (self.cost_tokens or self.is_cost_unknown):
            lines.append(self._cost_of(self.usage))
        if self.outside:
            places = ", ".join(self.outside)
            lines.append(f"text of strangers is in view ({places}): tools that act need your consent")
        return tuple(lines)

    def _cost_of(self, usage: Usage) -> str:
        """Say what came from the cache, and what the input cost with it."""
        cached = f"{usage.cached_tokens:,} of {usage.input_tokens:,} tokens came from the cache"
        if self.is_cost_unknown:
            table = f'[models."{self.model}"]'
            return f"{cached}; the price of cached tokens is not known: set `cache_read` below `{table}`"
        money = f", and {self.cost:.4f} in money with the answer" if self.cost is not None else ""
        return f"{cached}; the input cost as much as {self.cost_tokens:,} new tokens{money}"

    @property
    def kept(self) -> tuple[ReceiptItem, ...]:
        return tuple(item for item in self.items if item.kept)

    @property
    def dropped(self) -> tuple[ReceiptItem, ...]:
        return tuple(item for item in self.items if not item.kept)

    def left_out(self, most: int | None = MOST_NAMED) -> list[LeftOut]:
        """Return what was left out by layer and reason, and name at most so many items of each."""
        groups: dict[tuple[str, str], list[ReceiptItem]] = {}
        for item in self.dropped:
            groups.setdefault((item.layer, item.reason), []).append(item)
        return [_shortened(items, most) for items in groups.values()]


def _shortened(items: Sequence[ReceiptItem], most: int | None) -> LeftOut:
    """Name the first items; one more than the limit is named too, since a line for it is no shorter."""
    if most is None or len(items) <= most + 1:
        return LeftOut(items=tuple(items))
    rest = items[most:]
    return LeftOut(items=tuple(items[:most]), more=len(rest), more_tokens=sum(item.tokens for item in rest))
