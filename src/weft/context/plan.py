"""The plan of a build: which offers are shown, decided purely from values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import accumulate

from weft.context.fit import Fitted, Shelf, everything, fit, price
from weft.context.window import Window, open_window
from weft.errors import BudgetExceeded
from weft.tokens import PART_TOKENS, Counter, counter
from weft.types.build import BuildSpec
from weft.types.epoch import digest_of
from weft.types.escape import has_tags, without_tags
from weft.types.message import McpServer, Message
from weft.types.recipe import Layer
from weft.types.section import Offer, Origin, Part, Piece, Place, Section, least_trusted
from weft.types.session import Fold, Tail

_FEW_NAMES = 48
"""The longest title, in characters, that lists the names of a joined section's pieces."""


@dataclass(frozen=True, kw_only=True)
class Materials:
    """Everything that a plan is made from. There is one offer for each layer of the recipe.

    `tail_starts_epoch` says that the tail is the history of an epoch: what is before it had no room there.
    """

    spec: BuildSpec
    offers: tuple[Offer, ...] = ()
    tail: Tail = Tail()
    fold: Fold | None = None
    mcp_servers: tuple[McpServer, ...] = ()
    tail_starts_epoch: bool = False

    @cached_property
    def counter(self) -> Counter:
        return counter(self.spec.recipe.tokens)

    @cached_property
    def tool_tokens(self) -> tuple[int, ...]:
        return tuple(self.counter.tool(tool) for tool in self.spec.tools)

    @cached_property
    def summary(self) -> Message | None:
        """The message in place of those that were folded."""
        return summary_message(self.fold) if self.fold else None

    @cached_property
    def summary_tokens(self) -> int:
        return self.counter.message(self.summary) if self.summary else 0

    @cached_property
    def sent_message(self) -> str:
        """The message as the model gets it: a recipe with tags makes those in the message harmless."""
        return without_tags(self.spec.message) if self.spec.recipe.tagged else self.spec.message

    @cached_property
    def message_tokens(self) -> int:
        return self.counter.text(self.sent_message)

    @cached_property
    def picture_tokens(self) -> int:
        """The price of the pictures that go with the message."""
        return len(self.spec.parts) * PART_TOKENS


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPlan:
    """What is shown, decided and priced.

    `visible` and `excluded` name the pieces of each layer by their position: those that are shown, and those
    that a limit of the layer keeps out, with the reason. `written` has the sections of each layer.
    """

    materials: Materials
    window: Window
    cut: int
    visible: tuple[frozenset[int], ...]
    excluded: tuple[Mapping[int, str], ...]
    written: tuple[tuple[Section, ...], ...]
    framing_tokens: int
    total: int

    @property
    def sections(self) -> tuple[Section, ...]:
        """All sections in the order of the recipe."""
        return tuple(section for layer in self.written for section in layer)

    @property
    def over(self) -> int:
        """The tokens above the ceiling; below zero if there is room."""
        return self.total - self.materials.spec.limits.ceiling


def plan(materials: Materials) -> ContextPlan:
    """Decide what is shown within the limits.

    Raises:
        BudgetExceeded: what must be shown is too large, and the recipe does not send it even so.
    """
    spec = materials.spec
    recipe, limits = spec.recipe, spec.limits
    if recipe.tagged:
        materials = replace(materials, offers=tuple(map(_without_tags, materials.offers)))
    window = open_window(
        materials.tail,
        spec.history_rule,
        history_tokens=limits.history_tokens,
        per_message=materials.counter.per_message,
    )
    shelves = _within_memory_limit([_shelf(materials, at) for at in range(len(materials.offers))], materials)
    order, history_at = recipe.order_of_giving_way(), recipe.history_at
    fitted = everything(shelves, window)
    draft = _draft(materials, window, shelves, fitted)
    # Joined texts do not cost exactly the sum of their parts. So a draft is measured, what it costs beyond
    # the sum is reserved, and where that was not enough the next fit gets that much less room.
    room = limits.ceiling - (draft.total - price(shelves, window, fitted))
    while draft.over > 0:
        if not _can_give(shelves, fitted, window):
            # A summary that a larger model was shown must not end the conversation with a smaller one.
            return plan(replace(materials, fold=None)) if materials.fold else _overflowing(draft)
        fitted = fit(shelves, window, room, order=order, history_at=history_at)
        draft = _draft(materials, window, shelves, fitted, draft)
        room -= max(draft.over, 0)
    return draft


def _without_tags(offer: Offer) -> Offer:
    """Escape the tags in an offer, unless they are ours."""
    if offer.has_tags or not any(map(has_tags, _texts(offer))):
        return offer
    return replace(
        offer,
        pieces=tuple(
            replace(piece, text=without_tags(piece.text), heading=without_tags(piece.heading))
            for piece in offer.pieces
        ),
        intro=offer.intro and without_tags(offer.intro),
        join=offer.join and without_tags(offer.join),
    )


def _texts(offer: Offer) -> Iterator[str]:
    yield from (text for piece in offer.pieces for text in (piece.text, piece.heading))
    yield from (offer.intro or "", offer.join or "")


def _shelf(materials: Materials, at: int) -> Shelf:
    """Price every number of pieces that a layer could show, within the layer's own limit."""
    layer, offer = materials.spec.recipe.layers[at], materials.offers[at]
    worth = offer.worth or tuple(-float(n) for n in range(len(offer.pieces)))
    order = tuple(sorted(range(len(offer.pieces)), key=lambda n: (-worth[n], n)))
    shelf = Shelf(
        order=order,
        costs=_costs(materials, at, order),
        soft=layer.gives_way,
        floor=int(layer.share * materials.spec.limits.ceiling),
    )
    if layer.max_tokens is None:
        return shelf
    reason = f"over the {layer.max_tokens} tokens for this layer"
    return _shortened(materials, at, shelf, layer.max_tokens, reason)


def _costs(materials: Materials, at: int, order: Sequence[int]) -> tuple[int, ...]:
    """Price the first pieces of a layer, for each number of them: joined, or each as its own section."""
    offer, count = materials.offers[at], materials.counter
    weights = [count.weight(offer.pieces[n].text) for n in order]
    if offer.join is None:
        return (0, *accumulate(count.tokens(weight) for weight in weights))
    head, tail = _frame(materials.spec.recipe.layers[at], offer)
    frame, joint = count.weight(head) + count.weight(tail), count.weight(offer.join)
    headings = set[str]()
    for number, heading in enumerate(offer.pieces[n].heading for n in order):
        if heading and heading not in headings:
            headings.add(heading)
            weights[number] += count.weight(heading) + joint
    sums = accumulate(weights, lambda total, weight: total + joint + weight)
    return (0, *(count.tokens(frame + total) for total in sums))


def _frame(layer: Layer, offer: Offer) -> tuple[str, str]:
    """Return what stands before and after joined pieces: the layer's tags, and its title or an intro."""
    title = f"{layer.title}{offer.title_end}" if layer.title else ""
    title = title if offer.intro is None else offer.intro
    if not layer.tag:
        return title, ""
    return f"<context:{layer.tag}>\n{title}", f"\n</context:{layer.tag}>"


def _shortened(materials: Materials, at: int, shelf: Shelf, budget: int, reason: str) -> Shelf:
    """Shorten a shelf to a budget: drop what is too large alone, then keep the most valuable."""
    possible = [n for n in shelf.order if _costs(materials, at, (n,))[-1] <= budget]
    costs = _costs(materials, at, possible)
    most = max(number for number, cost in enumerate(costs) if cost <= budget or not number)
    order = tuple(possible[:most])
    excluded = {**shelf.excluded, **{n: reason for n in shelf.order if n not in order}}
    return replace(shelf, order=order, costs=costs[: most + 1], excluded=excluded)


def _within_memory_limit(shelves: list[Shelf], materials: Materials) -> list[Shelf]:
    """Limit all blocks together to `memory_tokens`; those that must be shown come first.

    Then come those that this turn alone shows, which go with the message.

    Raises:
        BudgetExceeded: the blocks that must be shown are larger than that.
    """
    spec = materials.spec
    limit = spec.limits.memory_tokens
    if limit is None:
        return shelves
    left = limit
    blocks = [at for at, layer in enumerate(spec.recipe.layers) if layer.source == "blocks"]
    places = spec.recipe.places
    for at in sorted(blocks, key=lambda n: (shelves[n].soft, places[n] == Place.SYSTEM)):
        shelf = shelves[at]
        if shelf.soft:
            reason = f"over the {limit} tokens for memory blocks"
            shelves[at] = _shortened(materials, at, shelf, left, reason)
        elif shelf.costs[-1] > left and spec.recipe.overflow == "error":
            pieces = materials.offers[at].pieces
            largest = max(pieces, key=lambda piece: materials.counter.text(piece.text))
            needed = limit - left + shelf.costs[-1]
            remedies = "shorten it", "raise `context.memory_tokens`"
            raise BudgetExceeded(needed=needed, budget=limit, largest=largest.title, remedies=remedies)
        left -= shelves[at].costs[-1]
    return shelves


def _draft(
    materials: Materials,
    window: Window,
    shelves: Sequence[Shelf],
    fitted: Fitted,
    before: ContextPlan | None = None,
) -> ContextPlan:
    """Write the sections out and add up their real costs. Layers that did not change are reused."""
    visible = tuple(
        frozenset(shelf.order[:number]) for shelf, number in zip(shelves, fitted.counts, strict=True)
    )
    written = tuple(
        before.written[at] if before and before.visible[at] == numbers else _written(materials, at, numbers)
        for at, numbers in enumerate(visible)
    )
    sections = [section for layer in written for section in layer]
    history_length = window.length(fitted.cut)
    framing = _framing(materials, sections, history_length + bool(materials.summary))
    # The window's costs include the framing of its messages already.
    total = (
        sum(materials.tool_tokens)
        + sum(section.tokens for section in sections)
        + window.costs[fitted.cut]
        - history_length * materials.counter.per_message
        + materials.message_tokens
        + materials.picture_tokens
        + materials.summary_tokens
        + framing
    )
    return ContextPlan(
        materials=materials,
        window=window,
        cut=fitted.cut,
        visible=visible,
        excluded=tuple(shelf.excluded for shelf in shelves),
        written=written,
        framing_tokens=framing,
        total=total,
    )


def _written(materials: Materials, at: int, visible: frozenset[int]) -> tuple[Section, ...]:
    """Write the sections of one layer: its pieces as one text, or each on its own."""
    recipe, offer = materials.spec.recipe, materials.offers[at]
    layer, place = recipe.layers[at], recipe.places[at]
    pieces = [piece for number, piece in enumerate(offer.pieces) if number in visible]
    if pieces and offer.join is not None:
        head, tail = _frame(layer, offer)
        body = offer.join.join(_with_headings(pieces))
        text = head + (without_tags(body) if recipe.tagged else body) + tail
        origin = least_trusted(piece.origin for piece in pieces)
        price = materials.counter.text
        parts = tuple([_part(p.id, p.title, p.text, price(p.text), p.origin, p.source) for p in pieces])
        pieces = [
            replace(pieces[0], id="", title=_title(pieces, offer), text=text, origin=origin, parts=parts)
        ]
    return tuple(
        Section(
            layer=layer.source,
            source=layer.source,
            id=piece.id,
            parts=piece.parts,
            title=piece.title,
            text=piece.text,
            tokens=materials.counter.text(piece.text),
            keep=layer.keep,
            stability=piece.stability,
            origin=piece.origin,
            why=piece.why,
            place=place,
        )
        for piece in pieces
    )


def _with_headings(pieces: Sequence[Piece]) -> Iterator[str]:
    """Yield the texts of pieces, each heading once above those that have it."""
    before = ""
    for piece in pieces:
        if piece.heading and piece.heading != before:
            yield piece.heading
        before = piece.heading
        yield piece.text


@lru_cache(maxsize=1024)
def _part(id_: str, title: str, text: str, tokens: int, origin: Origin, source: str) -> Part:
    return Part(id=id_, title=title, tokens=tokens, hash=digest_of(text), origin=origin, source=source)


def _title(pieces: Sequence[Piece], offer: Offer) -> str:
    """Title a joined section: by the names of a few pieces, by the number of many."""
    of_all = len(offer.pieces) + sum(withheld.count for withheld in offer.withheld)
    names = ", ".join(piece.title for piece in pieces)
    few = len(pieces) == of_all and len(names) <= _FEW_NAMES
    return names if few else f"{len(pieces)} of {of_all} entries"


def _framing(materials: Materials, sections: Sequence[Section], history_length: int) -> int:
    """Price the request beyond its parts: joints, rounding, and the marks around each message."""
    count, recipe = materials.counter, materials.spec.recipe
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
        whole += count.tokens(last) - sum(s.tokens for s in turn) - materials.message_tokens
    return whole


def _can_give(shelves: Sequence[Shelf], fitted: Fitted, window: Window) -> bool:
    if fitted.cut < len(window.cuts) - 1:
        return True
    return any(shelf.soft and count for shelf, count in zip(shelves, fitted.counts, strict=True))


def _overflowing(draft: ContextPlan) -> ContextPlan:
    """Return the plan that is too large if the recipe sends it all the same.

    Raises:
        BudgetExceeded: the recipe does not. The error names the largest part.
    """
    if draft.materials.spec.recipe.overflow == "send":
        return draft
    raise _too_large(draft)


def _too_large(draft: ContextPlan) -> BudgetExceeded:
    materials, spec = draft.materials, draft.materials.spec
    parts = [(s.title or s.layer, s.tokens) for s in draft.sections]
    parts += [("message", materials.message_tokens), ("pictures", materials.picture_tokens)]
    parts += [("history", draft.window.costs[draft.cut])]
    tools = zip(spec.tools, materials.tool_tokens, strict=True)
    parts += [(f"tool {tool.name}", cost) for tool, cost in tools]
    largest = max(range(len(parts)), key=lambda at: parts[at][1])
    limited_by_model = spec.limits.max_tokens < spec.wanted_limits.max_tokens
    remedy = "ask a model that reads more" if limited_by_model else "raise `context.max_tokens`"
    return BudgetExceeded(
        needed=draft.total,
        budget=spec.limits.ceiling,
        largest=parts[largest][0],
        remedies=(remedy,) if largest >= len(parts) - len(spec.tools) else ("shorten it", remedy),
        reserved=spec.limits.reserved_response_tokens,
    )


def summary_message(fold: Fold) -> Message:
    """Write a summary as a message. A model wrote it from what others said, so its origin is the agent.

    What was made from text of strangers stands apart, under the names of its places.
    """
    text = f"[Summary of messages {fold.first}-{fold.last} of this conversation]\n{fold.text}"
    if fold.outside_text:
        text += f"\n\n[From text of strangers: {', '.join(fold.outside)}]\n{fold.outside_text}"
    return Message(role="user", content=text, origin="agent", outside=fold.outside)
