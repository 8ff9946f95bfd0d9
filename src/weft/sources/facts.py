"""What is known about the person, and what it was before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from weft.sources.base import BuildRequest, Options, pieces
from weft.types.escape import one_line
from weft.types.memory import Fact
from weft.types.section import Offer, Origin


@dataclass(frozen=True, slots=True, kw_only=True)
class FactOptions(Options):
    """Whether a fact also says what it was before."""

    was: bool = False


async def offer(request: BuildRequest, options: FactOptions) -> Offer:
    """Offer the facts, sorted by key, on one line each so that none can pose as another."""
    if request.store is None or not request.sender:
        return Offer()
    facts = sorted(await request.store.facts.list(request.sender), key=lambda fact: fact.key)
    before: dict[str, Fact] = {}
    for fact in await request.store.facts.list_replaced(request.sender) if options.was and facts else ():
        before.setdefault(fact.key, fact)
    texts = [
        (f"- {one_line(fact.key)}: {one_line(fact.value)}{_was(before.get(fact.key), request)}", fact.key)
        for fact in facts
    ]
    ids = [_id(facts, at) for at in range(len(facts))]
    offered = pieces(texts, why="known about this person", origin=Origin.USER, ids=ids)
    return Offer(
        pieces=tuple(
            replace(piece, origin=Origin.IMPORT) if _has_strangers(fact, before.get(fact.key)) else piece
            for piece, fact in zip(offered, facts, strict=True)
        ),
        existing=frozenset(ids),
    )


def _was(before: Fact | None, request: BuildRequest) -> str:
    if before is None or before.ended_at is None:
        return ""
    return f" (was: {one_line(before.value)}, until {request.local(before.ended_at):%Y-%m-%d})"


def _has_strangers(fact: Fact, before: Fact | None) -> bool:
    return bool(fact.asked_by or (before is not None and before.asked_by))


def _id(facts: Sequence[Fact], at: int) -> str:
    """Return the id of a fact: its key. Linked people may have several values of one key: they add theirs."""
    fact = facts[at]
    return f"{fact.key}\n{fact.value}" if at and facts[at - 1].key == fact.key else fact.key
