"""From what is offered to what is shown: the decisions of one build, purely."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate

from weft.context.fit import Fitted, Shelf, everything, fit, price
from weft.context.window import Window, open_window
from weft.errors import BudgetExceeded
from weft.tokens import Counter, counter
from weft.types.escape import without_tags
from weft.types.limits import ModelContextLimits
from weft.types.message import McpServer, Message, ToolDefinition
from weft.types.recipe import HistoryRule, Recipe
from weft.types.section import Offer, Place, Section
from weft.types.session import Fold, Tail

_FEW_NAMES = 48
"""Up to so many characters a joined section is titled by the names of its pieces."""


@dataclass(frozen=True, kw_only=True)
class Materials:
    """All that a plan is made from. `offers` stand beside the recipe's layers, one for each.

    `window_of_model` says that the model's window is what limits, and not a setting.
    """

    recipe: Recipe
    limits: ModelContextLimits
    message: str
    offers: tuple[Offer, ...] = ()
    tail: Tail = Tail()
    tools: tuple[ToolDefinition, ...] = ()
    mcp_servers: tuple[McpServer, ...] = ()
    history_rule: HistoryRule | None = None
    fold: Fold | None = None
    window_of_model: bool = False

    @cached_property
    def counter(self) -> Counter:
        return counter(self.recipe.tokens)

    @cached_property
    def places(self) -> tuple[Place, ...]:
        return self.recipe.places

    @cached_property
    def tool_tokens(self) -> tuple[int, ...]:
        return tuple(self.counter.tool(tool) for tool in self.tools)

    @cached_property
    def summary(self) -> Message | None:
        """What is shown in place of the messages that were folded."""
        return summary_message(self.fold) if self.fold else None

    @cached_property
    def sent_message(self) -> str:
        """The message as the model gets it: a recipe with tags makes those in the message harmless."""
        return without_tags(self.message) if self.recipe.tagged else self.message


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is shown, decided and priced.

    `kept` and `excluded` speak of the pieces of each layer by their position: those that are shown, and
    those that a limit of their own kept out, with the reason. `over` tells how far the whole is above
    the ceiling.
    """

    materials: Materials
    window: Window
    cut: int
    kept: tuple[frozenset[int], ...]
    excluded: tuple[Mapping[int, str], ...]
    written: tuple[tuple[Section, ...], ...]
    tool_tokens: tuple[int, ...]
    message_tokens: int
    summary_tokens: int
    framing_tokens: int
    total: int
    over: int

    @property
    def sections(self) -> tuple[Section, ...]:
        """All sections in the order of the recipe; `written` has them layer by layer."""
        return tuple(section for layer in self.written for section in layer)


def plan(materials: Materials) -> Plan:
    """Decide what is shown within the limits.

    Raises:
        BudgetExceeded: what must be shown is too large, and the recipe does not send it all the same.
    """
    recipe, limits = materials.recipe, materials.limits
    window = open_window(
        materials.tail,
        materials.history_rule or recipe.history,
        history_tokens=limits.history_tokens,
        per_message=materials.counter.per_message,
    )
    shelves = _within_memory_limit([_shelf(materials, at) for at in range(len(materials.offers))], materials)
    order, history_at = recipe.order_of_giving_way(), recipe.history_at
    fitted = everything(shelves, window)
    drafted = _draft(materials, window, shelves, fitted)
    # Joined texts do not cost exactly the sum of their parts. So a draft is measured, what it costs beyond
    # the sum is kept free, and where that was not enough the next fit gets so much less room.
    room = limits.ceiling - (drafted.total - price(shelves, window, fitted))
    while drafted.over > 0:
        if not _can_give(shelves, fitted, window):
            # A summary that a larger model was shown must not end the conversation with a smaller one.
            return plan(replace(materials, fold=None)) if materials.fold else _overflowing(drafted)
        fitted = fit(shelves, window, room, order=order, history_at=history_at)
        drafted = _draft(materials, window, shelves, fitted, drafted)
        room -= max(drafted.over, 0)
    return drafted


def _shelf(materials: Materials, at: int) -> Shelf:
    """Price every number of pieces that a layer could show, within the layer's own limit."""
    layer, offer = materials.recipe.layers[at], materials.offers[at]
    if not offer.pieces:
        return Shelf(order=(), costs=(0,), soft=layer.gives_way)
    worth = offer.worth or tuple(-float(n) for n in range(len(offer.pieces)))
    order = tuple(sorted(range(len(offer.pieces)), key=lambda n: (-worth[n], n)))
    shelf = Shelf(
        order=order,
        costs=_costs(materials, offer, order),
        soft=layer.gives_way,
        floor=int(layer.share * materials.limits.ceiling),
    )
    if layer.max_tokens is None:
        return shelf
    reason = f"over the {layer.max_tokens} tokens for this layer"
    return _shortened(materials, at, shelf, layer.max_tokens, reason)


def _costs(materials: Materials, offer: Offer, order: Sequence[int]) -> tuple[int, ...]:
    """What the first so many pieces cost: one section together, or each a section of its own."""
    count = materials.counter
    weights = [count.weight(offer.pieces[n].text) for n in order]
    if offer.join is None:
        return (0, *accumulate(count.tokens(weight) for weight in weights))
    frame, joint = count.weight(offer.head) + count.weight(offer.tail), count.weight(offer.join)
    sums = accumulate(weights, lambda total, weight: total + joint + weight)
    return (0, *(count.tokens(frame + total) for total in sums))


def _shortened(materials: Materials, at: int, shelf: Shelf, budget: int, reason: str) -> Shelf:
    """The shelf within a budget of its own: without what is too large alone, then the most valuable."""
    offer = materials.offers[at]
    possible = [n for n in shelf.order if _costs(materials, offer, (n,))[-1] <= budget]
    costs = _costs(materials, offer, possible)
    most = max(number for number, cost in enumerate(costs) if cost <= budget or not number)
    kept = tuple(possible[:most])
    excluded = {**shelf.excluded, **{n: reason for n in shelf.order if n not in kept}}
    return replace(shelf, order=kept, costs=costs[: most + 1], excluded=excluded)


def _within_memory_limit(shelves: list[Shelf], materials: Materials) -> list[Shelf]:
    """Hold all blocks together within `memory_tokens`; those that must be shown come first.

    Raises:
        BudgetExceeded: the blocks that must be shown are larger than that.
    """
    limit = materials.limits.memory_tokens
    if limit is None:
        return shelves
    left = limit
    blocks = [at for at, layer in enumerate(materials.recipe.layers) if layer.source == "blocks"]
    for at in sorted(blocks, key=lambda n: shelves[n].soft):
        shelf = shelves[at]
        if shelf.soft:
            reason = f"over the {limit} tokens for memory blocks"
            shelves[at] = _shortened(materials, at, shelf, left, reason)
        elif shelf.costs[-1] > left and materials.recipe.overflow == "error":
            pieces = materials.offers[at].pieces
            largest = max(pieces, key=lambda piece: materials.counter.text(piece.text))
            needed = limit - left + shelf.costs[-1]
            remedy = "raise `context.memory_tokens`"
            raise BudgetExceeded(needed=needed, budget=limit, largest=largest.title, remedy=remedy)
        left -= shelves[at].costs[-1]
    return shelves


def _draft(
    materials: Materials, window: Window, shelves: Sequence[Shelf], fitted: Fitted, before: Plan | None = None
) -> Plan:
    """Write the sections out and add up what they really cost; what an earlier draft wrote is taken over."""
    kept = tuple(frozenset(shelf.order[:number]) for shelf, number in zip(shelves, fitted.kept, strict=True))
    written = tuple(
        before.written[at] if before and before.kept[at] == shown else _written(materials, at, shown)
        for at, shown in enumerate(kept)
    )
    sections = [section for layer in written for section in layer]
    count = materials.counter
    tool_tokens = materials.tool_tokens
    message_tokens = count.text(materials.sent_message)
    history_tokens = window.costs[fitted.cut]
    history_length = window.length(fitted.cut)
    summary_tokens = count.message(materials.summary) if materials.summary else 0
    framing = _framing(materials, sections, history_length + bool(materials.summary))
    # The window's costs hold the framing of its messages already.
    total = (
        sum(tool_tokens)
        + sum(section.tokens for section in sections)
        + history_tokens
        - history_length * count.per_message
        + message_tokens
        + summary_tokens
        + framing
    )
    return Plan(
        materials=materials,
        window=window,
        cut=fitted.cut,
        kept=kept,
        excluded=tuple(shelf.excluded for shelf in shelves),
        written=written,
        tool_tokens=tool_tokens,
        message_tokens=message_tokens,
        summary_tokens=summary_tokens,
        framing_tokens=framing,
        total=total,
        over=total - materials.limits.ceiling,
    )


def _written(materials: Materials, at: int, shown: frozenset[int]) -> tuple[Section, ...]:
    """The sections of one layer: its pieces as one text, or each on its own."""
    offer, place, count = materials.offers[at], materials.places[at], materials.counter
    pieces = [piece for at, piece in enumerate(offer.pieces) if at in shown]
    if not pieces:
        return ()
    if offer.join is not None:
        text = offer.head + offer.join.join(piece.text for piece in pieces) + offer.tail
        pieces = [replace(pieces[0], title=_title(pieces, offer), text=text)]
    return tuple(replace(piece, tokens=count.text(piece.text), place=place) for piece in pieces)


def _title(pieces: Sequence[Section], offer: Offer) -> str:
    """What a joined section holds: the names of a few, the number of many."""
    of_all = len(offer.pieces) + sum(withheld.count for withheld in offer.withheld)
    names = ", ".join(piece.title for piece in pieces)
    few = len(pieces) == of_all and len(names) <= _FEW_NAMES
    return names if few else f"{len(pieces)} of {of_all} entries"


def _framing(materials: Materials, sections: Sequence[Section], history_length: int) -> int:
    """What the request costs beyond its parts: joints, rounding, and the marks around each message."""
    count, recipe = materials.counter, materials.recipe
    system = [s for s in sections if s.place == Place.SYSTEM]
    turn = [s for s in sections if s.place == Place.MESSAGE]
    one_message = recipe.form != "messages"
    if not count.chars_per_token:
        system_messages = min(len(system), 1) if one_message else len(system)
        joints = len(turn) + (max(len(system) - 1, 0) if one_message else 0)
        return count.per_message * (system_messages + history_length + 1) + count.per_joint * joints
    whole = 0
    if one_message and system:
        joined = sum(len(s.text) for s in system) + len(recipe.join) * (len(system) - 1)
        whole += count.tokens(joined) - sum(s.tokens for s in system)
    if turn:
        last = sum(len(s.text) + 2 for s in turn) + len(materials.sent_message)
        whole += count.tokens(last) - sum(s.tokens for s in turn) - count.text(materials.sent_message)
    return whole


def _can_give(shelves: Sequence[Shelf], fitted: Fitted, window: Window) -> bool:
    if fitted.cut < len(window.cuts) - 1:
        return True
    return any(shelf.soft and kept for shelf, kept in zip(shelves, fitted.kept, strict=True))


def _overflowing(drafted: Plan) -> Plan:
    """Nothing more can give way: send it flagged, or refuse and name the largest part."""
    materials = drafted.materials
    if materials.recipe.overflow == "send":
        return drafted
    parts = [(s.title or s.layer, s.tokens) for s in drafted.sections]
    parts += [("message", drafted.message_tokens), ("history", drafted.window.costs[drafted.cut])]
    parts += [
        (f"tool {tool.name}", cost) for tool, cost in zip(materials.tools, drafted.tool_tokens, strict=True)
    ]
    largest = max(parts, key=lambda part: part[1])[0]
    remedy = "ask a model that reads more" if materials.window_of_model else "raise `context.max_tokens`"
    raise BudgetExceeded(
        needed=drafted.total, budget=materials.limits.ceiling, largest=largest, remedy=remedy
    )


def shown_history(drafted: Plan) -> tuple[Message, ...]:
    """The messages of the window, behind the summary of those that were folded."""
    summary = drafted.materials.summary
    return (*((summary,) if summary else ()), *drafted.window.messages(drafted.cut))


def summary_message(fold: Fold) -> Message:
    """A summary as a message. A model wrote it from what others said: it has no more weight than that."""
    text = f"[Summary of messages {fold.first}-{fold.last} of this conversation]\n{fold.text}"
    return Message(role="user", content=text, origin="agent")
