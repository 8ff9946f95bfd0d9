"""A message log over lists: for messages that a program holds itself."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter, is_
from threading import Lock

from weft.errors import StoreError
from weft.offload import offloaded
from weft.tokens import Counter
from weft.types.message import Message
from weft.types.session import Entry, Fold, Tail


@dataclass(slots=True)
class _Counted:
    """Entries of one conversation under one counter, and the running sum of their tokens."""

    entries: list[Entry] = field(default_factory=list)
    sums: list[int] = field(default_factory=lambda: [0])
    lock: Lock = field(default_factory=Lock)

    def catch_up(self, messages: Sequence[Message], counter: Counter) -> None:
        """Count the messages that are new."""
        if len(self.entries) > len(messages):
            self.start_over()
        for at in range(len(self.entries), len(messages)):
            entry = Entry(messages[at], counter.message(messages[at]))
            self.entries.append(entry)
            self.sums.append(self.sums[-1] + entry.tokens)

    def start_over(self) -> None:
        self.entries.clear()
        self.sums[1:] = []

    def tail(self, max_tokens: int | None, max_messages: int | None, after: int) -> Tail:
        first = after if max_messages is None else max(after, len(self.entries) - max_messages - 1)
        if max_tokens is not None:
            # Up to and including the entry with which the newest add up to more than that.
            first = max(first, bisect_left(self.sums, self.sums[-1] - max_tokens) - 1)
        folded = self.sums[min(after, len(self.entries))]
        return Tail(
            entries=self.entries[first:],
            messages_before=first,
            tokens_before=self.sums[first] - folded,
            messages_folded=after,
            tokens_folded=folded,
        )


class InMemoryMessages:
    """A message log in memory. Over a sequence, it serves that one conversation under every id."""

    def __init__(self, messages: Sequence[Message] | None = None) -> None:
        self._source = messages
        self._sessions: dict[str, list[Message]] = {}
        self._counted: dict[tuple[str, str], _Counted] = {}
        self._folds: dict[str, list[Fold]] = {}

    async def append(self, session_id: str, *messages: Message) -> None:
        """Append messages. Raises StoreError for a log over a sequence, which the program holds."""
        if self._source is not None:
            raise StoreError("This log shows a list that the program holds: append to that list.")
        self._sessions.setdefault(session_id, []).extend(messages)

    async def newest(self, session_id: str, n: int) -> list[Message]:
        return list(self._of(session_id)[-n:]) if n > 0 else []

    async def all(self, session_id: str) -> list[Message]:
        return list(self._of(session_id))

    async def between(self, session_id: str, first: int, last: int) -> list[Message]:
        return list(self._of(session_id)[first - 1 : last])

    async def find_text(self, session_id: str, text: str, *, limit: int = 20) -> list[tuple[int, Message]]:
        wanted, messages = text.casefold(), enumerate(self._of(session_id), 1)
        return [(number, one) for number, one in messages if wanted in one.content.casefold()][-limit:]

    async def fold(self, session_id: str) -> Fold | None:
        return max(self._folds.get(session_id, ()), key=lambda fold: fold.last, default=None)

    async def list_folds(self, session_id: str) -> list[Fold]:
        return sorted(self._folds.get(session_id, ()), key=lambda fold: fold.last)

    async def add_fold(self, session_id: str, fold: Fold) -> None:
        self._folds.setdefault(session_id, []).append(fold)

    async def remove_folds(self, session_id: str) -> int:
        return len(self._folds.pop(session_id, ()))

    async def tail(
        self,
        session_id: str,
        counter: Counter,
        *,
        max_tokens: int | None,
        max_messages: int | None,
        after: int = 0,
    ) -> Tail:
        counted = self._counted.setdefault((session_id, counter.name), _Counted())
        messages = self._of(session_id)

        def read() -> Tail:
            with counted.lock:
                counted.catch_up(messages, counter)
                tail = counted.tail(max_tokens, max_messages, after)
                if not _is_current(tail, messages):
                    counted.start_over()
                    counted.catch_up(messages, counter)
                    tail = counted.tail(max_tokens, max_messages, after)
                return tail

        new = messages[len(counted.entries) :]  # `islice` would step over all that is counted already
        return await offloaded(sum(len(message.content) for message in new), read)

    def _of(self, session_id: str) -> Sequence[Message]:
        return self._sessions.get(session_id, []) if self._source is None else self._source


class RecentLogs:
    """The logs over the lists that were used last, so that a list is counted once and not every turn."""

    def __init__(self, most: int = 8) -> None:
        self._logs: dict[int, tuple[Sequence[Message], InMemoryMessages]] = {}
        self._most = most

    def over(self, messages: Iterable[Message]) -> InMemoryMessages:
        if not isinstance(messages, Sequence):
            return InMemoryMessages(tuple(messages))
        known = self._logs.pop(id(messages), None)
        log = known[1] if known is not None and known[0] is messages else InMemoryMessages(messages)
        self._logs[id(messages)] = (messages, log)
        while len(self._logs) > self._most:
            self._logs.pop(next(iter(self._logs)))
        return log


def _is_current(tail: Tail, messages: Sequence[Message]) -> bool:
    """Check that the tail is what the list holds now: the program may have replaced a message."""
    return all(map(is_, map(attrgetter("message"), tail.entries), messages[tail.messages_before :]))
