"""What the person told the assistant to always do."""

from __future__ import annotations

from collections.abc import Sequence

from weft.sources.base import BuildRequest, Options, entries_beyond, title_of
from weft.store.instruction_limits import MAX_INSTRUCTION_TOKENS, MAX_INSTRUCTIONS, split_by_limits
from weft.types.escape import one_line
from weft.types.instruction import StandingInstruction
from weft.types.section import Offer, Origin, Piece, Stability, Withheld

_BEYOND = (
    f"beyond {MAX_INSTRUCTIONS} instructions or {MAX_INSTRUCTION_TOKENS:,} tokens: the oldest give way; "
    "`/always` pins one"
)
_TITLE_CHARS = 48
_NAMED = 10
"""How many withheld instructions a receipt names; the older ones are one entry."""


async def offer(request: BuildRequest, options: Options) -> Offer:
    """Offer the standing instructions verbatim, oldest first, on one line each."""
    if request.store is None or not request.sender:
        return Offer()
    shown, beyond = split_by_limits(await request.store.instructions.list(request.sender))
    return Offer(
        pieces=tuple(
            Piece(
                text=_line(one, request),
                id=one.id,
                title=_title(one),
                why="pinned" if one.pinned else "recognized in a message",
                stability=Stability.SESSION,
                origin=Origin.USER,
            )
            for one in shown
        ),
        withheld=_withheld(beyond, request),
        existing=frozenset(one.id for one in (*shown, *beyond)),
    )


def _withheld(beyond: Sequence[StandingInstruction], request: BuildRequest) -> tuple[Withheld, ...]:
    prices = [request.counter.text(_line(one, request)) for one in beyond]
    named = [
        Withheld(title=_title(one), tokens=price, reason=_BEYOND)
        for one, price in list(zip(beyond, prices, strict=True))[-_NAMED:]
    ]
    return (*entries_beyond(_BEYOND, prices[:-_NAMED]), *named)


def _line(one: StandingInstruction, request: BuildRequest) -> str:
    since = f" (since {request.local(one.created_at):%Y-%m-%d})" if one.created_at else ""
    return f"- {one_line(one.text)}{since}"


def _title(one: StandingInstruction) -> str:
    line = title_of(one.text)
    return line if len(line) <= _TITLE_CHARS else f"{line[: _TITLE_CHARS - 1]}…"
