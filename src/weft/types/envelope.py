"""What channels carry: a message that comes in, and one that goes out."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from weft.types.codec import Json

Kind = Literal["text", "edit", "unsupported", "notice"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inbound(Json):
    """A message from somebody, in some place of some channel.

    `external_id` is the channel's own name for it: a message that comes twice is recognised by that. `kind`
    says whether it is a plain message, a change of an earlier one, something that is no text, or a notice,
    which nobody said: a stream tells it, and `origin` is where that has it from. `blocks` are the ids of
    memory blocks that are shown with this message, and with no later one.
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
    """A message to a place of a channel, in Markdown.

    A channel that carries it in several parts was told before that so many of them have `arrived`.
    """

    channel: str
    conversation: str
    text: str
    arrived: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen(Json):
    """What a stream knows of one thing that it saw, such as a file.

    `item` stands for its name and `digest` for its text; neither tells them. While `signature` stays the same
    there is no need to look closer. It was told `times` times, and its text is in the block `block_id`.
    """

    stream: str
    item: str
    signature: str = ""
    digest: str = ""
    times: int = 0
    block_id: str = ""


def notice_id(stream: str, rest: str) -> str:
    """The `external_id` of a notice: a stream tells each thing under a name of its own, and so only once."""
    return f"stream:{stream}:{rest}"
