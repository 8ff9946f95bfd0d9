"""What sources offer, and the sections that are shown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from weft.types.codec import Json


class Keep(StrEnum):
    """How long a section stays when room is short."""

    ALWAYS = "always"
    PREFERRED = "preferred"
    IF_ROOM = "if_room"


class Stability(StrEnum):
    """How long a section stays the same, byte for byte."""

    STATIC = "static"
    SESSION = "session"
    TURN = "turn"


class Origin(StrEnum):
    """Who wrote a text. Set by code when it is written, never by the model."""

    OPERATOR = "operator"
    USER = "user"
    AGENT = "agent"
    TOOL = "tool"
    WEB = "web"
    FEED = "feed"
    IMPORT = "import"
    MCP = "mcp"


OUTSIDE = frozenset({Origin.WEB, Origin.FEED, Origin.IMPORT, Origin.MCP})
"""Origins of text that strangers wrote. A turn that reads such text needs consent before it acts."""


_TRUST = tuple(Origin(name) for name in "operator user agent tool mcp import feed web".split())


def least_trusted(origins: Iterable[str]) -> Origin:
    """Return the origin of a text that was put together from several: that of its least trusted part."""
    known = [Origin(name) if name in _TRUST else Origin.WEB for name in origins]
    return max(known, key=_TRUST.index, default=Origin.OPERATOR)


ONCE = "once:"
"""The start of the id of a piece that one turn alone shows: its absence later means nothing."""


class Place(StrEnum):
    """The part of a request that shows a section: the instructions, or the message."""

    SYSTEM = "system"
    MESSAGE = "message"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part(Json):
    """One of the pieces that were joined to a section, as a receipt accounts for it."""

    id: str = ""
    title: str = ""
    tokens: int = 0
    hash: str = ""
    origin: Origin = Origin.OPERATOR
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section(Json):
    """One titled piece of context from one source.

    A plain value: equal fields mean equal sections. Where its text is stored is the store's business;
    how it is written for a given model is the provider's. Its `parts` are the pieces that it was joined from.
    """

    layer: str
    source: str
    title: str = ""
    text: str
    tokens: int = 0
    keep: Keep = Keep.PREFERRED
    stability: Stability = Stability.SESSION
    origin: Origin = Origin.OPERATOR
    why: str = ""
    place: Place = Place.SYSTEM
    id: str = ""
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A text that a source offers. The engine shows it as a section, alone or joined with others.

    The defaults suit a text of which nothing is known: it is imported, and may differ in every turn. `id`
    names the piece within its layer from turn to turn: a fact's key, a block's id, a message's number. A
    piece without one is known by its text. `source` is set where a layer shows what another source offers.
    `heading` is a line above pieces that are joined: it stands once above those in a row that have the same.
    """

    text: str
    id: str = ""
    title: str = ""
    why: str = ""
    stability: Stability = Stability.TURN
    origin: Origin = Origin.IMPORT
    source: str = ""
    heading: str = ""
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Withheld:
    """Something a source has but does not offer, with its price: a memory beyond the limit, say."""

    title: str
    tokens: int
    reason: str
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What one source offers for one layer of a recipe.

    `pieces` are in the order in which they are shown. `worth` has one number per piece, and the piece worth
    least gives way first; without numbers the last one does. With `join` the pieces become one section
    under the layer's title and `title_end`, or under `intro` in their place. With `join=None` each piece is
    a section of its own. `has_tags` says that the tags in its texts are ours; in all others they are escaped.
    `files` is the number of files that it was made of, for the log. `existing` has the ids of all that there
    is, offered or not: a piece that the model saw and that is not among them no longer holds. Without it a
    piece that is not offered again may still hold.
    """

    pieces: tuple[Piece, ...] = ()
    worth: tuple[float, ...] = ()
    join: str | None = "\n"
    intro: str | None = None
    title_end: str = "\n"
    has_tags: bool = False
    files: int = 0
    existing: frozenset[str] | None = None
    withheld: tuple[Withheld, ...] = ()
    warnings: tuple[str, ...] = ()
