"""Turns in words: the lines that the command line and the conversation show of a stored turn."""

from __future__ import annotations

from collections.abc import Iterator

from weft.context.diff import RequestDiff
from weft.turn.inspect import Reason, Replay, TurnView
from weft.types.plural import counted
from weft.types.receipt import Receipt
from weft.types.session import TurnInfo


def item_rows(receipt: Receipt) -> Iterator[tuple[str, str, str, str, str, str]]:
    """Yield a row for each item that was shown: layer, title, tokens, origin, zone, and why."""
    for item in receipt.kept:
        layer = item.layer if item.source == item.layer else f"{item.layer} ({item.source})"
        yield layer, item.title, f"{item.tokens:,}", item.origin, item.zone, item.reason


def cache_lines(turn: TurnView) -> list[str]:
    """Say where the cache boundary of a turn lies, and what was cached, as predicted and as reported."""
    lines = list[str]()
    receipt = turn.receipt
    if receipt is None:
        return lines
    if receipt.epoch:
        why = f", which begins with this turn ({receipt.epoch_why})" if receipt.epoch_why else ""
        lines.append(f"epoch {receipt.epoch}{why}; the history is folded above {receipt.fold_at:,} tokens")
    if turn.requests:
        first = turn.requests[0]
        lines.append(
            f"whole parts at its beginning, {first.shared_bytes:,} of {first.request.size:,} bytes "
            f"({first.share:.0%}), are those of the request before: "
            f"about {turn.predicted_cached:,} of {receipt.total_tokens:,} tokens"
        )
    if usage := receipt.usage:
        lines.append(
            f"the provider read {usage.input_tokens:,} tokens, {usage.cached_tokens:,} of them from its cache"
        )
    return lines


def diff_lines(before: TurnInfo, after: TurnInfo, found: RequestDiff) -> Iterator[str]:
    """Yield the lines that describe a difference."""
    if found.grew:
        yield (
            f"Turn {after.number} begins with all {found.shared_bytes:,} bytes of turn {before.number}; "
            f"{found.bytes - found.shared_bytes:,} bytes are new."
        )
    elif not found.part:
        yield f"Turn {before.number} begins with all {found.bytes:,} bytes of turn {after.number}."
    else:
        yield (
            f"Turn {after.number} is the same as turn {before.number} for {found.shared_bytes:,} of "
            f"{found.bytes:,} bytes ({found.share:.0%}). The first changed byte is in "
            f"{found.part}, item {found.item + 1}."
        )
    if found.causes:
        yield f"Changed by: {', '.join(cause.text for cause in found.causes)}."
    yield ""
    yield from found.lines


def replay_line(replay: Replay) -> str:
    """Describe the outcome of a replay."""
    name = f"turn {replay.turn}, request {replay.round}"
    if replay.equal:
        return f"{name}: {replay.bytes:,} bytes, the same that were sent (SHA-256 {replay.digest[:16]}...)"
    if replay.missing:
        places = ", ".join(replay.missing)
        return f"{name}: not the bytes that were sent: a text was purged in {places}"
    return (
        f"{name}: NOT the bytes that were sent (SHA-256 {replay.digest[:16]}... in place of "
        f"{replay.sent_digest[:16]}...): the database may be damaged, run `weft doctor`"
    )


def reason_line(reason: Reason) -> str:
    """Describe whether something was shown, and why."""
    tokens = f" ({counted(reason.tokens, 'token')})" if reason.tokens else ""
    state = "shown" if reason.shown else "left out"
    origin = f" [{reason.origin}]" if reason.origin else ""
    return f"{state}: {reason.where}{tokens}{origin}: {reason.reason}"
