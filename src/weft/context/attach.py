"""Attachments: what a turn of an epoch shows beyond what the model can already see.

The system part of an epoch is frozen. What changed since, and what is new, goes with the message. It is shown
as a difference, because everything that was ever attached is sent again with each request of the epoch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import unified_diff
from itertools import islice

from weft.context.plan import ContextPlan, Materials
from weft.types.epoch import Attachment, Epoch, Ledger, SeenItem, digest_of
from weft.types.escape import one_line
from weft.types.recipe import HistoryRule, Layer, Recipe
from weft.types.section import ONCE, Keep, Offer, Origin, Piece, Stability

CHANGES = "changes"
"""The layer of what changed in the frozen part since the epoch began."""
_MOST_LINES = 2_000
"""Longer texts are shown whole: comparing them line by line takes too long."""
_ATTACHED_SHARE, _FIRST_SHARE, _ATTACHED_TOKENS = 0.01, 0.05, 48
"""How much a layer that is shown if there is room may attach in a turn, and in the first turn of a session: a
part of the room, and at least so many tokens. More of it would fill a small window in a few turns. Recall may
attach as much as in a first turn wherever the turns before attached less than they might have."""
_ONCE_SHARE = 0.25
"""The part of the limit that is protected for what one turn alone shows."""
_GONE = {"tasks": "No longer pending", "blocks": "No longer shown"}
_OPENING = re.compile(r"\A<block:(.*)>$", re.MULTILINE)
_CLOSING = re.compile(r"\n</block:[^\n]*>\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochMaterials:
    """Materials in which the system part is frozen, and the items that each piece would add to the ledger."""

    materials: Materials
    items: tuple[tuple[SeenItem, ...], ...]


def item_of(layer: str, piece: Piece, *, hidden: bool = False) -> SeenItem:
    """Return the entry of a piece in the ledger. The text of several lines is kept, to compare it later."""
    return SeenItem(
        layer=layer,
        id=piece.id or digest_of(piece.text),
        digest=digest_of(piece.text),
        origin=str(piece.origin),
        title=piece.title,
        text=piece.text if "\n" in piece.text else "",
        hidden=hidden,
    )


def once_apart(materials: Materials) -> Materials:
    """Return materials in which what this turn alone shows goes with the message, and is not frozen."""
    recipe = materials.spec.recipe
    layers, offers = list(recipe.layers), list(materials.offers)
    for at in range(recipe.history_at):
        once = [number for number, piece in enumerate(offers[at].pieces) if piece.id.startswith(ONCE)]
        if once:
            share = min(_ONCE_SHARE, 1 - sum(layer.share for layer in layers))  # the turn is about it
            layer = Layer(source=layers[at].source, keep=layers[at].keep, share=max(share, 0.0))
            layers.insert(len(layers) - 1, layer)
            offers.insert(len(offers) - 1, _only(offers[at], once))
            rest = [number for number in range(len(offers[at].pieces)) if number not in once]
            offers[at] = _only(offers[at], rest)
    if len(layers) == len(recipe.layers):
        return materials
    spec = replace(materials.spec, recipe=replace(recipe, layers=tuple(layers)))
    return replace(materials, spec=spec, offers=tuple(offers))


def first_capped(materials: Materials, *, is_first: bool) -> Materials:
    """Return materials in which each layer attaches to the first message of an epoch what its room allows.

    The first epoch of a session has nothing else to show yet.
    """
    share = _FIRST_SHARE if is_first else _ATTACHED_SHARE
    recipe, room = materials.spec.recipe, materials.spec.limits.ceiling
    layers = [
        _capped(layer, room, share) if at >= recipe.history_at else layer
        for at, layer in enumerate(recipe.layers)
    ]
    return replace(materials, spec=replace(materials.spec, recipe=replace(recipe, layers=tuple(layers))))


def _only(offer: Offer, numbers: Sequence[int]) -> Offer:
    """Return an offer with some of its pieces."""
    if len(numbers) == len(offer.pieces):
        return offer
    return replace(
        offer,
        pieces=tuple(offer.pieces[number] for number in numbers),
        worth=tuple(offer.worth[number] for number in numbers) if offer.worth else (),
    )


def statics_of(recipe: Recipe, offers: Sequence[Offer]) -> dict[str, str]:
    """Return a hash of the static text of each system layer. A change of one begins a new epoch."""
    statics: dict[str, str] = {}
    for at, (layer, offer) in enumerate(zip(recipe.layers[: recipe.history_at], offers, strict=False)):
        if _is_static(offer):
            statics[f"{at} {layer.source}"] = digest_of("\0".join(piece.text for piece in offer.pieces))
    return statics


def changed_statics(epoch: Epoch, recipe: Recipe, offers: Sequence[Offer]) -> list[str]:
    """Name the layers whose static text is no longer the one that the epoch froze."""
    now = statics_of(recipe, offers)
    keys = [key for key in {**epoch.statics, **now} if epoch.statics.get(key) != now.get(key)]
    return list(dict.fromkeys(key.partition(" ")[2] for key in keys))


def _is_static(offer: Offer) -> bool:
    """Check whether an offer lists everything there is, and none of it changes but by hand."""
    if offer.existing is None or not offer.pieces:
        return False
    return all(piece.stability == Stability.STATIC for piece in offer.pieces)


def frozen_items(materials: Materials, plan: ContextPlan) -> tuple[SeenItem, ...]:
    """Return what the system part of a new epoch shows, and what had no room there.

    The materials are those before the plan escaped the tags in them: the next turn compares with its own.
    """
    recipe, offers, items = materials.spec.recipe, materials.offers, list[SeenItem]()
    for at, (layer, offer) in enumerate(zip(recipe.layers[: recipe.history_at], offers, strict=False)):
        if not _is_static(offer):
            items += [
                item_of(layer.source, piece, hidden=number not in plan.visible[at])
                for number, piece in enumerate(offer.pieces)
            ]
    return tuple(items)


def attached_items(materials: Materials, plan: ContextPlan) -> tuple[SeenItem, ...]:
    """Return what the message of a new epoch's first turn shows beside itself."""
    recipe, items = materials.spec.recipe, list[SeenItem]()
    for at in range(recipe.history_at, len(recipe.layers)):
        layer, offer = recipe.layers[at], materials.offers[at]
        shown = [piece for number, piece in enumerate(offer.pieces) if number in plan.visible[at]]
        items += [item_of(layer.source, piece) for piece in shown if not piece.id.startswith(ONCE)]
    return tuple(items)


def saved_share(epoch: Epoch, *, attached: int, turns: int, room: int) -> float:
    """Return which part of the room recall may attach to the next message of an epoch.

    Every turn earns a share, and what it does not attach is left for later ones, up to that of a first turn.
    """
    earned = (_FIRST_SHARE if epoch.number == 1 else 0.0) + _ATTACHED_SHARE * (turns + 1)
    return min(max(earned - attached / max(room, 1), _ATTACHED_SHARE), _FIRST_SHARE)


def freeze(
    materials: Materials, epoch: Epoch, ledger: Ledger, *, attached: int = 0, turns: int = 0
) -> EpochMaterials:
    """Return materials that show the epoch's system part as it is, and attach only what is new or changed.

    The `turns` of the epoch before this one `attached` so many tokens.
    """
    recipe = materials.spec.recipe
    layers = [Layer(source=section.layer, keep=Keep.ALWAYS) for section in epoch.sections]
    offers = [_frozen_offer(epoch, at) for at in range(len(epoch.sections))]
    items: list[tuple[SeenItem, ...]] = [()] * len(layers)
    changes, changed = _changes(materials, ledger)
    room = materials.spec.limits.ceiling - sum(section.tokens for section in epoch.sections)
    saved = saved_share(epoch, attached=attached, turns=turns, room=room)
    for at in range(recipe.history_at, len(recipe.layers)):
        layer, offer = recipe.layers[at], materials.offers[at]
        if layer.source == "message" and changes:
            layers.append(Layer(source=CHANGES, tag=CHANGES, keep=Keep.ALWAYS))
            offers.append(Offer(pieces=tuple(changes)))
            items.append(tuple(changed))
        news = _unseen(layer.source, offer, ledger)
        layers.append(_capped(layer, room, saved if layer.source == "recall" else _ATTACHED_SHARE))
        offers.append(news)
        items.append(tuple(item_of(layer.source, piece) for piece in news.pieces))
    whole = HistoryRule(strategy="none", roles=recipe.history.roles)
    soft = {layer.source for layer in layers if layer.gives_way}
    give_way = tuple(source for source in recipe.give_way if source in soft)
    frozen = replace(recipe, stability="live", layers=tuple(layers), history=whole, give_way=give_way)
    config = replace(materials.spec.config, compression_strategy=None, max_messages_cap=None)
    spec = replace(materials.spec, recipe=frozen, config=config, tools=epoch.tools)
    return EpochMaterials(materials=replace(materials, spec=spec, offers=tuple(offers)), items=tuple(items))


def _capped(layer: Layer, room: int, share: float) -> Layer:
    """Limit what a layer may attach in one turn: all of it is sent again with every later request."""
    if layer.keep != Keep.IF_ROOM or layer.source in ("history", "message"):
        return layer
    most = max(int(room * share), _ATTACHED_TOKENS)
    return replace(layer, max_tokens=most if layer.max_tokens is None else min(most, layer.max_tokens))


def attachment_of(frozen: EpochMaterials, plan: ContextPlan) -> Attachment:
    """Return the entries that a turn adds to the ledger. Its text is known once it is rendered."""
    seen = [
        item
        for at, items in enumerate(frozen.items)
        for number, item in enumerate(items)
        if number in plan.visible[at] and not item.id.startswith(ONCE)
    ]
    return Attachment(seen=tuple(seen))


def _frozen_offer(epoch: Epoch, at: int) -> Offer:
    section = epoch.sections[at]
    piece = Piece(
        text=section.text,
        id=section.id,
        title=section.title,
        why=section.why,
        stability=section.stability,
        origin=section.origin,
        parts=section.parts,
    )
    return Offer(pieces=(piece,), join=None, has_tags=True)


def _unseen(layer: str, offer: Offer, ledger: Ledger) -> Offer:
    """Return an offer without the pieces that the model can see already."""
    fresh = [at for at, piece in enumerate(offer.pieces) if not _is_seen(layer, piece, ledger)]
    return _only(offer, fresh)


def _is_seen(layer: str, piece: Piece, ledger: Ledger) -> bool:
    seen = ledger.find(layer, piece.id or digest_of(piece.text))
    return seen is not None and seen.digest == digest_of(piece.text)


def _changes(materials: Materials, ledger: Ledger) -> tuple[list[Piece], list[SeenItem]]:
    """Return what changed in the system part, and everything the model saw that no longer holds."""
    recipe, pieces, items = materials.spec.recipe, list[Piece](), list[SeenItem]()
    existing: dict[str, set[str]] = {}
    history_at = recipe.history_at
    for at, (layer, offer) in enumerate(zip(recipe.layers, materials.offers, strict=True)):
        if offer.existing is not None:
            existing.setdefault(layer.source, set()).update(offer.existing)
        if at >= history_at or _is_static(offer):
            continue
        for piece in _unseen(layer.source, offer, ledger).pieces:
            before = ledger.find(layer.source, piece.id)
            text = _changed_text(layer.source, piece, before)
            pieces.append(replace(piece, text=text, why=_why(before), source=layer.source))
            items.append(item_of(layer.source, piece))
    for source, ids in existing.items():
        for item, _ in ledger.of_layer(source):
            if not (item.hidden or item.id in ids or item.id.startswith(ONCE)):
                pieces.append(_gone(item))
                items.append(replace(item, digest="", text=""))
    return pieces, items


def _why(before: SeenItem | None) -> str:
    return "changed since the epoch began" if before and not before.hidden else "new since the epoch began"


def _gone(item: SeenItem) -> Piece:
    text = f"[{item.layer}] {_GONE.get(item.layer, 'No longer true')}: {one_line(item.title)}"
    return Piece(
        text=text,
        id=item.id,
        title=f"without {item.title}",
        why="no longer holds",
        origin=Origin(item.origin),
        source=item.layer,
    )


def _changed_text(layer: str, piece: Piece, before: SeenItem | None) -> str:
    """Write a changed piece: its changed lines, or all of it if that is shorter."""
    if "\n" not in piece.text:
        return f"[{layer}] {piece.text.removeprefix('- ')}"
    whole = _without_block_tags(piece.text)
    if before is None or before.hidden or not before.text:
        return whole
    changed = "\n".join(_changed_lines(before.text, piece.text))
    return changed if changed and len(changed) < len(whole) else whole


def _changed_lines(before: str, after: str) -> Iterator[str]:
    """Yield the lines that were removed and added, under the name of the block they are in."""
    old, new = before.split("\n"), after.split("\n")
    if max(len(old), len(new)) > _MOST_LINES:
        return
    opening = _OPENING.match(after)
    yield f"[changed lines of {'block ' + opening[1] if opening else 'the text above'}]"
    for line in islice(unified_diff(old, new, n=0, lineterm=""), 2, None):
        if not line.startswith("@@") and line[1:].strip():
            yield f"{line[0]} {line[1:]}"


def _without_block_tags(text: str) -> str:
    """Write the tags of a whole block as plain lines: inside another tag of ours they would be escaped."""
    return _CLOSING.sub("\n[end of block]", _OPENING.sub(r"[block \1]", text, count=1))
