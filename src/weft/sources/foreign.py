"""Sources from outside of Weft: those of a program, and those of an installed package."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from inspect import isawaitable
from typing import Any

from weft.errors import ContextError
from weft.sources.base import BuildRequest, SourceFunction, title_of
from weft.types.codec import kind_name
from weft.types.section import Offer, Piece

Answer = str | Sequence[str] | Offer | None
ForeignSource = Callable[[BuildRequest, Any], Answer | Awaitable[Answer]]
"""A function of the request and the layer's options. It returns a text, several texts, or an offer.

The options are a dictionary, or the dataclass by which the second parameter is annotated."""


def adapt(name: str, function: ForeignSource) -> SourceFunction:
    """Make a source of ours from a foreign function: its answer becomes an offer."""

    async def offer(request: BuildRequest, options: Any) -> Offer:
        answer = function(request, options)
        answer = await answer if isawaitable(answer) else answer
        if not isinstance(answer, Offer):
            answer = Offer(pieces=tuple(Piece(text=text) for text in _texts(name, answer)))
        if answer.worth and len(answer.worth) != len(answer.pieces):
            raise ContextError(f"The source {name!r} offers a `worth` that has not one number per piece.")
        return replace(
            answer,
            pieces=tuple(_safe(piece, name) for piece in answer.pieces),
            has_tags=False,
        )

    return offer


def _texts(name: str, answer: Any) -> list[str]:
    texts = [answer] if isinstance(answer, str) else [] if answer is None else answer
    if not isinstance(texts, Sequence) or not all(isinstance(text, str) for text in texts):
        raise ContextError(
            f"The source {name!r} returned {kind_name(answer)}: it must return a text, a list of texts or "
            "a `weft.Offer`."
        )
    return [text for text in texts if text.strip()]


def _safe(piece: Piece, name: str) -> Piece:
    title = title_of(piece.title or piece.text)
    return replace(
        piece,
        title=title if len(title) <= 48 else title[:47] + "…",
        why=piece.why or f"offered by the source {name}",
    )
