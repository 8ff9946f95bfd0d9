"""Lines of the person's conversations that bear on the message and are not in view."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime

from weft.recall.fuse import excerpt
from weft.recall.question import asked_days, is_question
from weft.sources.base import BuildRequest, Options, pieces
from weft.types.escape import one_line
from weft.types.search import Recalled
from weft.types.section import OUTSIDE, Offer, Origin, Piece, Stability, least_trusted

_MOST_LINES = 100
_SURE, _LEAST_UNSURE, _MOST_UNSURE, _MOST_SAID = 0.5, 0.1, 8, 3
"""From which relevance on a line surely bears on a question; else how relevant and how many are shown, and
how many for a message that asks nothing."""
_KEYWORDS_CHARS = 60
"""A message that is no longer may be a few words to look for."""
_MOST_SPANS, _MOST_KNOWN, _KNOWN_WORTH = 4, 20, 100.0
_EPOCH, _DAY = date(1970, 1, 1), 86_400.0
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallOptions(Options):
    """How much is recalled, and when nothing is."""

    limit: int = _MOST_LINES
    max_chars: int = 200
    """How much of a long line is shown: its beginning, or with `around` what stands around the words."""
    around: bool = False
    grouped: bool = False
    """Whether the time stands once above the lines of a conversation, or before each line."""
    enough: float = 0.0
    """How relevant the best line must be, from 0 to 1; else nothing is recalled."""
    least: float = 0.0
    """The lowest relevance of a line, relative to that of the best one."""


@dataclass(frozen=True, slots=True)
class _Shown:
    """A hit, and the line that shows it."""

    hit: Recalled
    text: str


async def offer(request: BuildRequest, options: RecallOptions) -> Offer:
    """Offer the best lines, conversation by conversation in the order of time, and what was known then.

    Nothing is looked up if the message does not need it.
    """
    if request.store is None or not request.needs.recall or not request.sender:
        return Offer()
    epoch = (await request.epoch_view).epoch if request.has_epochs else None
    hits = await request.store.recall.recall(
        request.message,
        sender=request.sender,
        session_id=request.session_id,
        limit=options.limit,
        view_from=epoch.first if epoch else request.view_from,
        now=request.now,
    )
    lines = [_Shown(hit, _line(hit, request, options)) for hit in _relevant(hits, request, options)]
    began = _beginnings(lines)
    first = dict[str, datetime]()
    for (session, _), at in began.items():
        first[session] = min(at, first.get(session, at))
    lines.sort(key=lambda line: (first[line.hit.session_id], line.hit.session_id, line.hit.place))
    offered = pieces(
        [(line.text, _title(line.hit, request)) for line in lines],
        why="recalled for this message",
        stability=Stability.TURN,
        origin=Origin.USER,
        ids=[line.hit.id for line in lines],
    )
    known = await _known_then(request) if options.grouped else []
    return Offer(
        pieces=tuple(
            replace(
                piece,
                origin=least_trusted((line.hit.origin,)),
                heading=_time(began[_group(line.hit)], request) if options.grouped else "",
            )
            for piece, line in zip(offered, lines, strict=True)
        )
        + tuple(known),
        worth=(*(line.hit.score for line in lines), *(_KNOWN_WORTH for _ in known)),
    )


async def _known_then(request: BuildRequest) -> list[Piece]:
    """Return what was known about the person at the times that a question names, where that has changed."""
    past = [span for span in asked_days(request.message, request.now) if span.first <= request.now.date()]
    if request.store is None or not past:
        return []
    known = dict[str, Piece]()
    for span in past[:_MOST_SPANS]:
        first, last = _seconds(span.first), _seconds(span.last) + _DAY
        for fact in await request.store.facts.list_replaced(request.sender, first=first, last=last):
            until = f"{request.local(fact.ended_at):%Y-%m-%d}" if fact.ended_at else ""
            text = f"- {one_line(fact.key)}: {one_line(fact.value)} (until {until})"
            piece = Piece(
                text=text,
                id=f"was {fact.key} {until}",
                title=f"{fact.key} until {until}",
                why="known about this person at the time that the message names",
                origin=Origin.IMPORT if fact.asked_by else Origin.USER,
                heading="Known then",
            )
            known.setdefault(piece.id, piece)
    return list(known.values())[:_MOST_KNOWN]


def _seconds(day: date) -> float:
    return (day - _EPOCH).total_seconds()


def _group(hit: Recalled) -> tuple[str, int]:
    """Return what stands under one time: the stretch of a conversation without a pause."""
    return hit.session_id, hit.episode


def _beginnings(lines: Sequence[_Shown]) -> dict[tuple[str, int], datetime]:
    """Return when the first line of each group was said."""
    began: dict[tuple[str, int], datetime] = {}
    for line in lines:
        said = line.hit.timestamp or _LONG_AGO
        group = _group(line.hit)
        began[group] = min(said, began.get(group, said))
    return began


def _time(at: datetime | None, request: BuildRequest) -> str:
    return f"{request.local(at):%Y-%m-%d %H:%M}" if at and at != _LONG_AGO else "some time ago"


def _title(hit: Recalled, request: BuildRequest) -> str:
    """Return the day, the speaker and the beginning of a line, as receipts name it."""
    at = hit.timestamp
    day = f"{request.local(at):%Y-%m-%d} " if at and at != _LONG_AGO else ""
    return f"{day}{hit.speaker}: {one_line(hit.text[:200])[:40]}"


def _relevant(hits: Sequence[Recalled], request: BuildRequest, options: RecallOptions) -> list[Recalled]:
    """Return the hits that are relevant enough, best first; of equal texts only the best one.

    Where none is surely relevant, or the message is no question, only the few best are returned: they may be
    what is meant, and cost little.
    A line in which text of strangers may stand is recalled for its own words only, not for those beside it:
    whatever is in view taints what the model does.
    """
    best = max((hit.relevance for hit in hits), default=0.0)
    if not best or best < options.enough:
        return []
    asks = is_question(request.message) or len(request.message) <= _KEYWORDS_CHARS
    is_sure = best >= _SURE and asks
    least = options.least if is_sure else max(options.least, _LEAST_UNSURE)
    seen = dict[str, Recalled]()
    for hit in hits:
        is_own = hit.origin not in OUTSIDE or hit.reasons.get("words", 1.0) > 0
        if is_own and hit.relevance and hit.relevance >= best * least:
            seen.setdefault(" ".join(hit.text.lower().split()), hit)
    most = None if is_sure else _MOST_UNSURE if asks else _MOST_SAID
    return list(seen.values())[:most]


def _line(hit: Recalled, request: BuildRequest, options: RecallOptions) -> str:
    text = hit.text[: options.max_chars]
    if options.around and len(hit.text) > options.max_chars:
        text = excerpt(request.message, hit.text, options.max_chars)
    when = "" if options.grouped else f"[{_time(hit.timestamp, request)}] "
    return f"- {when}{one_line(hit.speaker)}: {one_line(text)}"
