"""Records of the inbox, the outbox, refusals and pairings."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from weft.types.envelope import Inbound, Outbound


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A message that was taken over from a channel, and its number here."""

    id: str
    message: Inbound


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A message that must go out, its number here, and how often that was tried, this time included."""

    id: str
    message: Outbound
    attempts: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Denial:
    """Somebody who was turned away: how often, why, and when they last tried. What they said is not kept."""

    channel: str
    sender: str
    why: str
    count: int
    last_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Paired:
    """Somebody who may come in, on one channel."""

    channel: str
    sender: str
