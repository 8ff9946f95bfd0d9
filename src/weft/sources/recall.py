"""Lines of the person's conversations that bear on the message and are not in view."""

from __future__ import annotations

from dataclasses import dataclass, replace

from weft.sources.base import BuildRequest, Options, pieces
from weft.types.escape import one_line
from weft.types.search import Recalled
from weft.types.section import Offer, Origin, Stability, least_trusted


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallOptions(Options):
    limit: int = 5
    max_chars: int = 200
    least: float = 0.0
    """The lowest score of a line, relative to that of the best one."""


async def offer(request: BuildRequest, options: RecallOptions) -> Offer:
    """Offer the best few lines. Nothing is looked up if the message does not need it."""
    if request.store is None or not request.needs.recall or not request.sender:
        return Offer()
    epoch = (await request.epoch_view).epoch if request.has_epochs else None
    hits = await request.store.recall.recall(
        request.message,
        sender=request.sender,
        session_id=request.session_id,
        limit=options.limit,
        view_from=epoch.first if epoch else 0,
    )
    best = max((hit.score for hit in hits), default=0.0)
    hits = [hit for hit in hits if hit.score >= best * options.least]
    texts = [
        (_line(hit, request, options.max_chars), f"{hit.speaker}: {one_line(hit.text[:200])[:40]}")
        for hit in hits
    ]
    offered = pieces(
        texts,
        why="recalled for this message",
        stability=Stability.TURN,
        origin=Origin.USER,
        ids=[hit.id for hit in hits],
    )
    return Offer(
        pieces=tuple(
            replace(piece, origin=least_trusted((hit.origin,)))
            for piece, hit in zip(offered, hits, strict=True)
        )
    )


def _line(hit: Recalled, request: BuildRequest, max_chars: int) -> str:
    when = f"{request.local(hit.timestamp):%Y-%m-%d %H:%M}" if hit.timestamp else "some time ago"
    return f"- [{when}] {one_line(hit.speaker)}: {one_line(hit.text[:max_chars])}"
