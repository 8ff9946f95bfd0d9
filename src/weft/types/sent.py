"""Requests as they were sent, and what a turn adds to the store beside its messages."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from weft.types.epoch import EpochStep
from weft.types.receipt import Receipt
from weft.types.session import TurnInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class SentRequest:
    """A request in items: tools, then the system part, then the messages, each as its JSON.

    `head` is the rest of the request, with the number of items in the place of each list. `marks` are the
    cache marks, which are no part of an item: each stands at an item and a block in it. `digest` is the
    SHA-256 of the bytes that were sent.
    """

    head: str
    items: tuple[str, ...]
    marks: str = "[]"
    digest: str = ""

    @property
    def size(self) -> int:
        return sum(len(item.encode("utf-8", "surrogatepass")) for item in self.items)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRequest:
    """A stored request, and how many of its first items and bytes are also the first of the one before."""

    turn_id: str
    round: int
    request: SentRequest
    shared_items: int = 0
    shared_bytes: int = 0
    at: datetime | None = None

    @property
    def share(self) -> float:
        """The part of its bytes with which the request before began, too."""
        return self.shared_bytes / (self.request.size or 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnBrief:
    """A turn with its receipt, and the sizes of its first request, but without the texts that were sent."""

    info: TurnInfo
    receipt: Receipt | None = None
    rounds: int = 0
    bytes: int = 0
    shared_bytes: int = 0

    @property
    def share(self) -> float:
        """The part of the first request's bytes with which the request before began, too."""
        return self.shared_bytes / (self.bytes or 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRecord:
    """What is stored of a turn beside its messages: the step of its epoch, and its requests in order."""

    step: EpochStep | None = None
    requests: tuple[SentRequest, ...] = ()


NO_RECORD = TurnRecord()
