"""What is known about the person."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from weft.sources.base import BuildRequest, Options, pieces
from weft.types.escape import one_line
from weft.types.memory import Fact
from weft.types.section import Offer, Origin


async def offer(request: BuildRequest, options: Options) -> Offer:
    """Offer the facts, sorted by key, on one line each so that none can pose as another."""
    if request.store is None or not request.sender:
        return Offer()
    facts = sorted(await request.store.facts.list(request.sender), key=lambda fact: fact.key)
    texts = [(f"- {one_line(fact.key)}: {one_line(fact.value)}", fact.key) for fact in facts]
    ids = [_id(facts, at) for at in range(len(facts))]
    offered = pieces(texts, why="known about this person", origin=Origin.USER, ids=ids)
    return Offer(
        pieces=tuple(
            replace(piece, origin=Origin.IMPORT) if fact.asked_by else piece
            for piece, fact in zip(offered, facts, strict=True)
        ),
        existing=frozenset(ids),
    )


def _id(facts: Sequence[Fact], at: int) -> str:
    """Return the id of a fact: its key. Linked people may have several values of one key: they add theirs."""
    fact = facts[at]
    return f"{fact.key}\n{fact.value}" if at and facts[at - 1].key == fact.key else fact.key
