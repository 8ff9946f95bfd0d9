"""Records of the inbox, the outbox, refusals and pairings."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from weft.types.envelope import Inbound, Outbound


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A message from the inbox, with its id there."""

    id: str
    message: Inbound


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A message from the outbox, its id there, and the number of attempts, this one included."""

    id: str
    message: Outbound
    attempts: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Denial:
    """Somebody who was refused: how often, why, and when they last tried. Their words are not stored."""

    channel: str
    sender: str
    why: str
    count: int
    last_at: datetime


TOKEN_START = "weft_"  # noqa: S105 - no secret
"""The first characters of every token that Weft makes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessToken:
    """A token for the server, by its name, and the sender that it speaks for. The secret is not stored."""

    name: str
    sender: str
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Paired:
    """Somebody who is let in on one channel."""

    channel: str
    sender: str
