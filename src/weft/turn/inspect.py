"""Looking into turns that were answered: the exact request, its difference to another, a replay, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from weft.context.diff import RequestDiff, diff
from weft.errors import UnknownName
from weft.memory.base import Store
from weft.types.codec import Json
from weft.types.message import Message
from weft.types.plural import counted
from weft.types.receipt import Receipt, ReceiptItem
from weft.types.sent import StoredRequest
from weft.types.session import TurnInfo
from weft.wire.items import digest_of_bytes, encode, join, kinds

PURGED = "[purged:"


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnView:
    """A turn with its receipt and its requests. A turn that failed early has no receipt."""

    info: TurnInfo
    receipt: Receipt | None
    requests: Sequence[StoredRequest] = ()

    @property
    def first(self) -> StoredRequest:
        """The first request of the turn.

        Raises:
            UnknownName: none was stored.
        """
        if not self.requests:
            raise UnknownName(f"No request of turn {self.info.number} was stored: {_why_none(self.info)}")
        return self.requests[0]

    @property
    def predicted_cached(self) -> int:
        """How many of our tokens the provider should have read from its cache, by the bytes it had seen."""
        if self.receipt is None or not self.requests:
            return 0
        return round(self.receipt.total_tokens * self.requests[0].share)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay(Json):
    """A request that was put together again: whether it has the bytes that were sent, and what is missing."""

    turn: int
    round: int
    equal: bool
    digest: str
    sent_digest: str
    bytes: int
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason(Json):
    """Why a text was in a request or was not: where it stands, its price, and what it lost its place to."""

    shown: bool
    where: str
    tokens: int = 0
    reason: str = ""
    origin: str = ""
    parts: dict[str, str] = field(default_factory=dict)


def _why_none(info: TurnInfo) -> str:
    return f"it ended with {info.error!r}." if info.error else "it was made by an earlier version of Weft."


async def view(store: Store, info: TurnInfo) -> TurnView:
    """Read a turn."""
    receipt, requests = await store.turns.find(info.id), await store.turns.requests(info.id)
    return TurnView(info=info, receipt=receipt, requests=requests)


async def view_before(store: Store, info: TurnInfo) -> TurnView | None:
    """Read the newest turn before another one that has a stored request."""
    for one in await store.turns.page(info.session_id, before=info.number, limit=20):
        if requests := await store.turns.requests(one.id):
            return TurnView(info=one, receipt=await store.turns.find(one.id), requests=requests)
    return None


def compare(before: TurnView, after: TurnView) -> RequestDiff:
    """Compare the first request of a turn with the last request of an earlier one."""
    return diff(
        before.requests[-1].request if before.requests else before.first.request,
        after.first.request,
        receipts=(before.receipt, after.receipt),
    )


def replays(turn: TurnView) -> Iterator[Replay]:
    """Put every request of a turn together again, and compare its bytes with those that were sent."""
    _ = turn.first
    for stored in turn.requests:
        body = encode(join(stored.request))
        digest = digest_of_bytes(body)
        missing = [
            f"{part} {at}"
            for at, (part, item) in enumerate(zip(kinds(stored.request), stored.request.items, strict=True))
            if PURGED in item
        ]
        yield Replay(
            turn=turn.info.number,
            round=stored.round,
            equal=digest == stored.request.digest,
            digest=digest,
            sent_digest=stored.request.digest,
            bytes=len(body),
            missing=tuple(missing),
        )


async def why(store: Store, turn: TurnView, text: str) -> list[Reason]:
    """Say of everything that has a text in it whether the model saw it in a turn, and why or why not."""
    wanted = text.casefold().strip()
    reasons = [
        _reason(item)
        for item in (turn.receipt.items if turn.receipt else ())
        if wanted in item.title.casefold() or wanted == item.id.casefold()
    ]
    hits = await store.messages.find_text(turn.info.session_id, text)
    reasons += [
        reason
        for number, message in hits
        if number < (turn.info.first or number + 1) and (reason := _of_message(turn, number, message))
    ]
    if turn.requests:
        reasons += _in_request(turn.first, wanted)
    return reasons


def _reason(item: ReceiptItem) -> Reason:
    return Reason(
        shown=item.kept,
        where=f"{item.source}: {item.title}",
        tokens=item.tokens,
        reason=item.reason,
        origin=item.origin,
    )


def _of_message(turn: TurnView, number: int, message: Message) -> Reason | None:
    """Return whether a message of the log was in the window of a turn, by the stretches of its receipt."""
    for item in turn.receipt.items if turn.receipt else ():
        if item.span and item.span[0] <= number <= item.span[-1] and not item.title.startswith("summary"):
            return Reason(
                shown=item.kept,
                where=f"message {number} ({message.role})",
                reason=item.reason,
                origin=message.origin,
            )
    return None


def _in_request(stored: StoredRequest, wanted: str) -> Iterator[Reason]:
    """Yield the items of a request that have the text in them."""
    parts = kinds(stored.request)
    for at, (part, item) in enumerate(zip(parts, stored.request.items, strict=True)):
        if wanted in item.casefold():
            how = "the request before had it too" if at < stored.shared_items else "new in this request"
            number = at - parts.index(part) + 1
            yield Reason(shown=True, where=f"{part}, item {number}", reason=how)


def summary_line(turn: TurnView) -> str:
    """Describe a turn in a few words: its tokens, what of them was cached, and its epoch."""
    receipt = turn.receipt
    if receipt is None:
        return f"{turn.info.state}: {turn.info.error}" if turn.info.error else turn.info.state
    rounds = counted(len(turn.requests), "request")
    return f"{receipt.total_tokens:,} tokens, epoch {receipt.epoch or '-'}, {rounds}"
