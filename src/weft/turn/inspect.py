"""Looking into turns that were answered: the exact request, its difference to another, a replay, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace

from weft.context.diff import RequestDiff, diff, readable
from weft.errors import UnknownName
from weft.memory.base import Store
from weft.tokens import count
from weft.turn.unseen import place_of, unseen
from weft.types.codec import Json
from weft.types.epoch import Attachment, Epoch, digest_of
from weft.types.message import Message
from weft.types.plural import counted
from weft.types.receipt import Receipt, ReceiptItem
from weft.types.search import MemorySearchResult
from weft.types.sent import StoredRequest
from weft.types.session import Session, TurnInfo
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


def _why_none(info: TurnInfo) -> str:
    return f"it ended with {info.error!r}." if info.error else "it was made by an earlier version of Weft."


async def view(store: Store, info: TurnInfo) -> TurnView:
    """Read a turn."""
    receipt, requests = await store.turns.find(info.id), await store.turns.requests(info.id)
    return TurnView(info=info, receipt=receipt, requests=requests)


async def view_before(store: Store, info: TurnInfo) -> TurnView | None:
    """Read the newest turn before another one that has a stored request."""
    found: TurnView | None = None
    for one in await store.turns.page(info.session_id, before=info.number, limit=20):
        requests, receipt = await store.turns.requests(one.id), await store.turns.find(one.id)
        if found is None and requests:
            found = TurnView(info=one, receipt=receipt, requests=requests)
        elif found is not None and receipt is not None:  # one that failed has none: nothing changed in it
            found = replace(found, receipt=receipt)
        if found is not None and found.receipt is not None:
            break
    return found


def compare(before: TurnView, after: TurnView) -> RequestDiff:
    """Compare the first request of a turn with the last request of an earlier one."""
    _ = before.first
    receipts = (before.receipt, after.receipt)
    return diff(before.requests[-1].request, after.first.request, receipts=receipts)


def replays(turn: TurnView) -> Iterator[Replay]:
    """Put every request of a turn together again, and compare its bytes with those that were sent."""
    _ = turn.first
    for stored in turn.requests:
        body = encode(join(stored.request))
        digest = digest_of_bytes(body)
        equal = digest == stored.request.digest
        pairs = enumerate(zip(kinds(stored.request), stored.request.items, strict=True))
        missing = [f"{part} {at}" for at, (part, item) in pairs if not equal and PURGED in item]
        yield Replay(
            turn=turn.info.number,
            round=stored.round,
            equal=equal,
            digest=digest,
            sent_digest=stored.request.digest,
            bytes=len(body),
            missing=tuple(missing),
        )


async def why(store: Store, turn: TurnView, text: str) -> list[Reason]:
    """Say of everything that has a text in it whether the model saw it in a turn, and why or why not."""
    wanted = text.casefold().strip()
    session = await store.sessions.find(turn.info.session_id)
    items, keys = turn.receipt.items if turn.receipt else (), await _keys_of(store, session, wanted)
    epoch = await _epoch_of(store, turn)
    listed = [
        item
        for item in items
        if wanted in item.title.casefold() or wanted == item.id.casefold() or item.id in keys
    ]
    reasons, explained, seen = [_reason(item) for item in listed], list[str](), set[str]()
    named = {reason.where for reason in reasons}
    reasons += [one for one in _frozen(epoch, wanted) if one.where not in named]
    if epoch is not None:
        reasons += _hidden(epoch, keys, named)
        attachments = await store.epochs.attachments(epoch.id)
        last = turn.info.first or max(attachments, default=0)
        for number in (number for number in attachments if number <= last):
            attached = list(_attached(number, attachments[number], wanted, is_newest=number == last))
            reasons += [one for one in attached if number < last or one.where not in named]
            explained += [attachments[number].text] if attached else []
            seen |= {item.id for item in attachments[number].seen}
    for number, message in await store.messages.find_text(turn.info.session_id, text):
        if reason := _of_message(turn, number, message):
            reasons.append(reason)
            explained.append(message.content)
    if turn.requests:
        before = await view_before(store, turn.info)
        reasons += _in_request(turn, before, wanted, _Explained(reasons, explained))
    elif not reasons and wanted in turn.info.text.casefold():
        reasons.append(Reason(shown=False, where="the message of this turn", reason=_why_none(turn.info)))
    if session is not None:
        known = seen | {one.where.partition(": ")[2] for one in reasons}
        rest = [item for item in items if item not in listed]
        reasons += _elsewhere(await unseen(store, turn.info, session, text), rest, known)
    return reasons


def _elsewhere(
    hits: Sequence[tuple[MemorySearchResult, str]], items: Sequence[ReceiptItem], known: Set[str]
) -> Iterator[Reason]:
    """Yield what the memory has of a text: as the receipt lists it, or with the reason why it does not.

    What the receipt shows, and what has one of the `known` names, is accounted for already.
    """
    by_name = {name: item for item in items for name in (item.id, item.title)}
    for hit, why_not in hits:
        names = {hit.id, hit.label} - {""}
        listed = [by_name[name] for name in sorted(names) if name in by_name]
        if lost := [item for item in listed if not item.kept]:
            yield _reason(lost[0])
        elif not listed and not names & known:
            tokens = count(hit.content)
            yield Reason(shown=False, where=place_of(hit), tokens=tokens, reason=why_not)


async def _keys_of(store: Store, session: Session | None, wanted: str) -> set[str]:
    """Return the keys of facts about the person that have a text in their value."""
    if session is None:
        return set()
    facts = await store.facts.list(f"{session.channel}:{session.sender}")
    return {fact.key for fact in facts if wanted in fact.value.casefold()}


async def _epoch_of(store: Store, turn: TurnView) -> Epoch | None:
    number = turn.receipt.epoch if turn.receipt else 0
    epochs = await store.epochs.list(turn.info.session_id) if number else ()
    return next((epoch for epoch in epochs if epoch.number == number), None)


def _frozen(epoch: Epoch | None, wanted: str) -> Iterator[Reason]:
    """Yield the parts of the frozen sections that have a text in them."""
    for section in epoch.sections if epoch else ():
        if wanted not in section.text.casefold():
            continue
        parts = {part.hash: part for part in section.parts}
        lines = [line for line in section.text.split("\n") if wanted in line.casefold()]
        hits = [parts[digest] for line in lines if (digest := digest_of(line)) in parts]
        for part in hits:
            where = f"{section.source}: {part.title}"
            yield Reason(
                shown=True, where=where, tokens=part.tokens, reason=section.why, origin=str(part.origin)
            )
        if not hits:
            where = f"{section.source}: {section.title}"
            yield Reason(
                shown=True, where=where, tokens=section.tokens, reason=section.why, origin=str(section.origin)
            )


def _hidden(epoch: Epoch, keys: set[str], named: set[str]) -> Iterator[Reason]:
    """Yield what had no room when the epoch began."""
    for item in epoch.seen:
        where = f"{item.layer}: {item.title}"
        if item.hidden and item.id in keys and where not in named:
            yield Reason(
                shown=False, where=where, reason="had no room when the epoch began", origin=item.origin
            )


def _attached(number: int, attachment: Attachment, wanted: str, *, is_newest: bool) -> Iterator[Reason]:
    """Yield what was attached to a message of the epoch and has a text in it."""
    if wanted not in attachment.text.casefold():
        return
    lines = {digest_of(line): line for line in attachment.text.split("\n") if wanted in line.casefold()}
    where = "the message of this turn" if is_newest else f"message {number}, which is in view"
    for item in attachment.seen:
        if item.digest in lines or wanted in item.text.casefold():
            yield Reason(
                shown=True,
                where=f"{item.layer}: {item.title}",
                tokens=count(item.text or lines[item.digest]),
                reason=f"attached to {where}",
                origin=item.origin,
            )


def _reason(item: ReceiptItem) -> Reason:
    return Reason(
        shown=item.kept,
        where=f"{item.source}: {item.title}",
        tokens=item.tokens,
        reason=item.reason,
        origin=item.origin,
    )


def _of_message(turn: TurnView, number: int, message: Message) -> Reason | None:
    """Return whether a message of the log was in the window of a turn, by the stretches of its receipt.

    What was said after the message of the turn is not in its first request.
    """
    if turn.info.first and number > turn.info.first:
        return None
    if number == turn.info.first:
        return Reason(
            shown=bool(turn.requests),
            where=f"message {number} ({message.role})",
            tokens=count(message.content),
            reason="the message of this turn",
            origin=message.origin,
        )
    for item in turn.receipt.items if turn.receipt else ():
        if item.span and item.span[0] <= number <= item.span[-1] and not item.title.startswith("summary"):
            return Reason(
                shown=item.kept,
                where=f"message {number} ({message.role})",
                tokens=count(message.content),
                reason=item.reason,
                origin=message.origin,
            )
    return None


@dataclass(frozen=True, slots=True)
class _Explained:
    """What is accounted for already: the reasons, and the texts of messages and attachments in them."""

    reasons: Sequence[Reason]
    texts: Sequence[str]

    def covers(self, part: str, text: str) -> bool:
        """Return whether a part of a request has the text for a reason that is known."""
        if part == "messages":
            return any(one.strip() and one.strip() in text for one in self.texts)
        is_tool = part == "tools"
        return any(one.shown and one.where.startswith("tools:") == is_tool for one in self.reasons)


def _in_request(
    turn: TurnView, before: TurnView | None, wanted: str, explained: _Explained
) -> Iterator[Reason]:
    """Yield the items of a request that have the text in them for no reason that is known already."""
    stored = turn.first
    known = set(before.requests[-1].request.items) if before is not None else set[str]()
    parts = kinds(stored.request)
    for at, (part, item) in enumerate(zip(parts, stored.request.items, strict=True)):
        text = "\n".join(readable(item))
        if wanted not in text.casefold() or explained.covers(part, text):
            continue
        how = "new in this request"
        if at < stored.shared_items:
            how = "the request before had it too"
        elif item in known:
            how = "the request before had it too, behind what is the first change of this one"
        number = at - parts.index(part) + 1
        yield Reason(shown=True, where=f"{part}, item {number}", reason=how)


def summary_line(turn: TurnView) -> str:
    """Describe a turn in a few words: its tokens, what of them was cached, and its epoch."""
    receipt = turn.receipt
    if receipt is None:
        return f"{turn.info.state}: {turn.info.error}" if turn.info.error else turn.info.state
    rounds = counted(len(turn.requests), "request")
    return f"{receipt.total_tokens:,} tokens, epoch {receipt.epoch or '-'}, {rounds}"
