"""What a database must offer for people: what is known of them, their tasks, their mail, who is let in."""

from __future__ import annotations

import builtins
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from weft.types.delivery import Delivery, Denial, Paired, Waiting
from weft.types.envelope import Inbound, Outbound, Seen
from weft.types.memory import Fact, Summary, Task


class FactReader(Protocol):
    async def list(self, sender: str) -> Sequence[Fact]: ...


class Facts(FactReader, Protocol):
    """Facts about people, with their history. Linked senders are one person and share them."""

    async def find(self, sender: str, key: str) -> str | None: ...

    async def get(self, sender: str, key: str) -> str: ...

    async def history(self, sender: str, key: str) -> builtins.list[Fact]: ...

    async def set(
        self,
        sender: str,
        key: str,
        value: str,
        *,
        by_model: bool = False,
        source: tuple[str, int] | None = None,
    ) -> None:
        """Store a fact. `source` is the message it came from: a session, and the message's number in it."""
        ...

    async def delete(self, sender: str, key: str) -> bool: ...

    async def link(self, sender: str, person: str) -> None: ...


class SummaryReader(Protocol):
    async def recent(self, channel: str, sender: str, limit: int = 3) -> Sequence[Summary]: ...


class Summaries(SummaryReader, Protocol):
    """Summaries of earlier conversations."""

    async def add(self, channel: str, sender: str, text: str, *, session_id: str | None = None) -> None: ...

    async def delete(self, summary_id: int) -> bool: ...


class TaskReader(Protocol):
    async def list(self, sender: str) -> Sequence[Task]: ...


class Tasks(TaskReader, Protocol):
    """Tasks of people, which fire when they are due."""

    async def add(  # noqa: PLR0913 - the public contract, and where an answer goes
        self,
        sender: str,
        text: str,
        due: datetime | None = None,
        repeat: str = "once",
        *,
        action: str = "reminder",
        zone: str = "",
        channel: str = "",
        conversation: str = "",
    ) -> str: ...

    async def update(
        self,
        sender: str,
        id_prefix: str,
        *,
        text: str | None = None,
        due: datetime | None = None,
        repeat: str | None = None,
    ) -> Task: ...

    async def cancel(self, sender: str, id_prefix: str) -> str: ...

    async def next_due(self) -> float | None: ...

    async def fire(
        self, now: float, *, acting: Collection[str] = (), channels: Collection[str] | None = None
    ) -> Sequence[Task]:
        """Fire due tasks and reschedule them in one transaction."""
        ...


class Mailbox(Protocol):
    """Messages that came in and messages that must go out."""

    async def receive(self, message: Inbound, seen: Iterable[Seen] = ()) -> str | None: ...

    async def refuse(self, inbox_id: str, why: str) -> None: ...

    async def answer(self, inbox_id: str, text: str) -> None: ...

    async def waiting(self) -> Sequence[Waiting]: ...

    async def put(self, message: Outbound, *, task_id: str = "") -> None: ...

    async def due(
        self, now: float, channels: Collection[str], *, busy: Collection[tuple[str, str]] = ()
    ) -> Sequence[Delivery]: ...

    async def sent(self, delivery_id: str) -> None: ...

    async def again(self, delivery_id: str, at: float, *, arrived: int = 0) -> None: ...

    async def undeliverable(self, delivery_id: str, *, note: str = "") -> None: ...

    async def tidy(self, now: float) -> None: ...

    async def doubtful(self, channels: Collection[str], *, note: str = "") -> Sequence[Delivery]: ...


class Streams(Protocol):
    """What streams have seen already."""

    async def seen(self, stream: str, source: str) -> Mapping[str, Seen] | None: ...

    async def begin(self, stream: str, source: str, origin: str, seen: Iterable[Seen]) -> None: ...

    async def save(self, seen: Iterable[Seen]) -> None: ...

    async def is_waiting(self, stream: str) -> bool: ...

    async def oldest_blocks(self, stream: str, keep: int) -> Sequence[str]: ...

    async def forget_block(self, block_id: str) -> None: ...


class Auth(Protocol):
    """Who is let in. A secret is shown once and stored as a hash."""

    async def offer_pairing(self, channel: str, sender: str) -> str: ...

    async def confirm_pairing(self, code: str) -> Paired: ...

    async def is_paired(self, channel: str, sender: str) -> bool: ...

    async def paired(self) -> Sequence[Paired]: ...

    async def unpair(self, channel: str, sender: str) -> bool: ...

    async def denied(self, *, limit: int = 100) -> Sequence[Denial]: ...

    async def new_token(self, name: str) -> str: ...

    async def whose_token(self, token: str) -> str | None: ...

    async def end_token(self, name: str) -> bool: ...
