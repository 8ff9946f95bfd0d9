"""What channels carry: a message that comes in, and one that goes out."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from weft.types.codec import Json

Kind = Literal["text", "edit", "unsupported"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inbound(Json):
    """A message from somebody, in some place of some channel.

    `external_id` is the channel's own name for it: a message that comes twice is recognised by that. `kind`
    says whether it is a plain message, a change of an earlier one, or something that is no text.
    """

    channel: str
    conversation: str
    sender: str
    text: str
    external_id: str = ""
    name: str = ""
    kind: Kind = "text"
    at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outbound(Json):
    """A message to a place of a channel, in Markdown."""

    channel: str
    conversation: str
    text: str
