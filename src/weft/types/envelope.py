"""Messages that channels carry, and items that streams have seen."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from weft.types.codec import Json

Kind = Literal["text", "edit", "unsupported", "notice"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inbound(Json):
    """A message from somebody, in a conversation of a channel.

    `external_id` is the channel's own id for it, by which a message that comes twice is recognized. `kind`
    says whether it is a message, an edit of an earlier one, something that is not text, or a notice of a
    stream; `origin` is where its text came from. `blocks` are the ids of memory blocks that are shown with
    this message only.
    """

    channel: str
    conversation: str
    sender: str
    text: str
    external_id: str = ""
    name: str = ""
    kind: Kind = "text"
    at: datetime | None = None
    origin: str = "user"
    blocks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outbound(Json):
    """A message to a conversation of a channel, in Markdown.

    `arrived`: number of parts that were delivered by an earlier attempt.
    """

    channel: str
    conversation: str
    text: str
    arrived: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen(Json):
    """An item that a stream has seen, such as a file.

    `item` is a digest of its name and `digest` one of its text. While `signature` stays the same the item is
    not read again. It was told `times` times, and its text is in the block `block_id`.
    """

    stream: str
    item: str
    signature: str = ""
    digest: str = ""
    times: int = 0
    block_id: str = ""


def notice_id(stream: str, rest: str) -> str:
    """Return the `external_id` of a notice: each thing that a stream tells has one, so it is told once."""
    return f"stream:{stream}:{rest}"


def place_of(message: Inbound) -> str:
    """Return where a text of strangers comes from: `feed NAME`, `folder NAME`, or a forwarded message.

    It is an empty text for what a person wrote, and for tasks.
    """
    kind, _, rest = message.external_id.partition(":")
    if message.kind == "text" and message.origin != "user":
        return "forwarded message"
    if message.kind != "notice" or kind != "stream":
        return ""
    return f"{'folder' if message.origin == 'import' else 'feed'} {rest.partition(':')[0]}"
