"""What the person told the assistant to always do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from weft.sources.base import BuildRequest, Options, entries_beyond, title_of
from weft.store.instruction_limits import MAX_INSTRUCTION_TOKENS, MAX_INSTRUCTIONS, split_by_limits
from weft.types.escape import one_line
from weft.types.instruction import ENDED, StandingInstruction, instruction_key
from weft.types.section import Offer, Origin, Piece, Stability, Withheld

_BEYOND = (
    f"beyond {MAX_INSTRUCTIONS} instructions or {MAX_INSTRUCTION_TOKENS:,} tokens: the oldest give way; "
    "`/always` pins one"
)
_HEARD, _TITLE_CHARS = "recognized in a message", 48
_NAMED = 10
"""How many withheld instructions a receipt names; the older ones are one entry."""
_ENDED_MARK = "(taken back)"
_ENDED, _ENDED_CHARS = 5, 200
"""How many instructions that no longer hold are shown, and how much of each."""


async def offer(request: BuildRequest, options: Options) -> Offer:
    """Offer the standing instructions verbatim, oldest first, on one line each.

    Those that have ended in this session follow: the message that gave one may still be in the history.
    """
    if request.store is None or not request.sender:
        return Offer()
    active = await request.store.instructions.list(request.sender)
    ended = await request.store.instructions.list_ended(request.sender, request.session_id, _ENDED)
    active_keys = {instruction_key(one.text) for one in active}
    shown, beyond = split_by_limits(active)
    pieces = [_piece(one, _line(one, request), "pinned" if one.pinned else _HEARD) for one in shown]
    pieces += [
        _ended_piece(one, request) for one in reversed(ended) if instruction_key(one.text) not in active_keys
    ]
    return Offer(
        pieces=tuple(pieces),
        withheld=_withheld(beyond, request),
        existing=frozenset((*(one.id for one in active), *map(_ended_id, ended))),
    )


def _piece(one: StandingInstruction, line: str, why: str) -> Piece:
    return Piece(
        text=line, id=one.id, title=_title(one), why=why, stability=Stability.SESSION, origin=Origin.USER
    )


def _ended_piece(one: StandingInstruction, request: BuildRequest) -> Piece:
    piece = _piece(one, _ended_line(one, request), "taken back or removed")
    return replace(piece, id=_ended_id(one), title=f"{piece.title} {_ENDED_MARK}")


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


def _ended_line(one: StandingInstruction, request: BuildRequest) -> str:
    at = f", since {request.local(one.ended_at):%Y-%m-%d}" if one.ended_at else ""
    return f"- (no longer holds{at}: “{one_line(one.text[:_ENDED_CHARS])}”)"


def _ended_id(one: StandingInstruction) -> str:
    return f"{ENDED}{one.id}"


def _title(one: StandingInstruction) -> str:
    line = title_of(one.text)
    return line if len(line) <= _TITLE_CHARS else f"{line[: _TITLE_CHARS - 1]}…"
