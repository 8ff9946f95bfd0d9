"""From what is offered to what is shown: the decisions of one build, purely."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from weft.context.fit import Fitted, Shelf, fit
from weft.context.window import Window, open_window
from weft.errors import BudgetExceeded
from weft.tokens import Counter, counter
from weft.types.limits import ModelContextLimits
from weft.types.message import Message, ToolDefinition
from weft.types.neutral import without_tags
from weft.types.recipe import HistoryRule, Recipe
from weft.types.records import Tail
from weft.types.section import Keep, Offer, Place, Section

_FEW_NAMES = 48
"""Up to so many characters a joined section is titled by the names of its pieces."""


@dataclass(frozen=True, kw_only=True)
class Materials:
    """All that a plan is made from. `offers` stand beside the recipe's layers, one for each."""

    recipe: Recipe
    limits: ModelContextLimits
    message: str
    offers: tuple[Offer, ...] = ()
    tail: Tail = Tail()
    tools: tuple[ToolDefinition, ...] = ()
    history_rule: HistoryRule | None = None

    @cached_property
    def counter(self) -> Counter:
        return counter(self.recipe.tokens)

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
    recipe, limits, count = materials.recipe, materials.limits, materials.counter
    window = open_window(
        materials.tail,
        materials.history_rule or recipe.history,
        history_tokens=limits.history_tokens,
        per_message=count.per_message,
    )
    shelves = _within_memory_limit([_shelf(materials, at) for at in range(len(materials.offers))], materials)
    history_layer = recipe.layer("history")
    history_floor = int((history_layer.share if history_layer else 0) * limits.ceiling)
    fixed = sum(_tool_tokens(materials)) + count.text(materials.sent_message)
    fixed += 2 * count.per_message + len(shelves) * count.per_joint
    room = limits.ceiling - fixed
    while True:
        fitted = fit(shelves, window, room, order=recipe.order_of_giving_way(), history_floor=history_floor)
        drafted = _draft(materials, window, shelves, fitted)
        if drafted.over <= 0:
            return drafted
        if not _can_give(shelves, fitted, window):
            return _overflowing(drafted)
        # Joined texts do not cost exactly the sum of their parts: take the difference off and try again.
        room -= drafted.over


def _shelf(materials: Materials, at: int) -> Shelf:
    """Price every number of pieces that a layer could show."""
    layer, offer = materials.recipe.layers[at], materials.offers[at]
    count = materials.counter
    worth = offer.worth or tuple(-float(n) for n in range(len(offer.pieces)))
    order = tuple(sorted(range(len(offer.pieces)), key=lambda n: (-worth[n], n)))
    weights = [count.weight(offer.pieces[n].text) for n in order]
    if offer.join is None:
        costs = [0]
        for weight in weights:
            costs.append(costs[-1] + count.tokens(weight))
    else:
        frame, joint = count.weight(offer.head) + count.weight(offer.tail), count.weight(offer.join)
        costs, sum_of_weights = [0], frame - joint
        for weight in weights:
            sum_of_weights += weight + joint
            costs.append(count.tokens(sum_of_weights))
    soft = layer.keep != Keep.ALWAYS
    shelf = Shelf(
        source=layer.source,
        order=order,
        costs=tuple(costs),
        soft=soft,
        floor=int(layer.share * materials.limits.ceiling),
    )
    if layer.max_tokens is not None and soft:
        return _shortened(shelf, layer.max_tokens, f"over the {layer.max_tokens} tokens for this layer")
    return shelf


def _shortened(shelf: Shelf, budget: int, reason: str) -> Shelf:
    most = shelf.most_within(budget)
    excluded = {**shelf.excluded, **dict.fromkeys(shelf.order[most:], reason)}
    return replace(shelf, order=shelf.order[:most], costs=shelf.costs[: most + 1], excluded=excluded)


def _within_memory_limit(shelves: list[Shelf], materials: Materials) -> list[Shelf]:
    """Hold all blocks together within `memory_tokens`; those that must be shown come first.

    Raises:
        BudgetExceeded: the blocks that must be shown are larger than that.
    """
    limit = materials.limits.memory_tokens
    if limit is None:
        return shelves
    left = limit
    for at in sorted(range(len(shelves)), key=lambda n: shelves[n].soft):
        shelf = shelves[at]
        if shelf.source != "blocks":
            continue
        if shelf.soft:
            shelves[at] = _shortened(shelf, left, f"over the {limit} tokens for memory blocks")
        elif shelf.costs[-1] > left and materials.recipe.overflow == "error":
            pieces = materials.offers[at].pieces
            largest = max(pieces, key=lambda piece: materials.counter.text(piece.text))
            needed = limit - left + shelf.costs[-1]
            setting = "context.memory_tokens"
            raise BudgetExceeded(needed=needed, budget=limit, largest=largest.title, setting=setting)
        left -= shelves[at].costs[-1]
    return shelves


def _draft(materials: Materials, window: Window, shelves: Sequence[Shelf], fitted: Fitted) -> Plan:
    """Write the sections out and add up what they really cost."""
    kept = tuple(frozenset(shelf.order[:number]) for shelf, number in zip(shelves, fitted.kept, strict=True))
    written = tuple(
        _written(offer, shown, place, materials.counter)
        for offer, shown, place in zip(materials.offers, kept, materials.recipe.places, strict=True)
    )
    sections = [section for layer in written for section in layer]
    count = materials.counter
    tool_tokens = _tool_tokens(materials)
    message_tokens = count.text(materials.sent_message)
    history_tokens = window.costs[fitted.cut]
    history_length = len(window.tail.entries) - window.cuts[fitted.cut]
    framing = _framing(materials, sections, history_length)
    # The window's costs hold the framing of its messages already.
    total = (
        sum(tool_tokens)
        + sum(section.tokens for section in sections)
        + history_tokens
        - history_length * count.per_message
        + message_tokens
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
        framing_tokens=framing,
        total=total,
        over=total - materials.limits.ceiling,
    )


def _written(offer: Offer, shown: frozenset[int], place: Place, count: Counter) -> tuple[Section, ...]:
    """The sections of one layer: its pieces as one text, or each on its own."""
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


def _tool_tokens(materials: Materials) -> tuple[int, ...]:
    return tuple(materials.counter.text(tool.to_json()) for tool in materials.tools)


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
    parts += [("message", drafted.message_tokens)]
    parts += [
        (f"tool {tool.name}", cost) for tool, cost in zip(materials.tools, drafted.tool_tokens, strict=True)
    ]
    largest = max(parts, key=lambda part: part[1])[0]
    raise BudgetExceeded(needed=drafted.total, budget=materials.limits.ceiling, largest=largest)


def shown_history(drafted: Plan) -> tuple[Message, ...]:
    """The messages of the window."""
    return drafted.window.messages(drafted.cut)
