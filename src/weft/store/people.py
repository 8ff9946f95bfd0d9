"""What a store must be able to do for people: who may come in, what is known of them, their post."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from weft.store.base import Facts, Summaries, Tasks
from weft.types.delivery import Delivery, Denial, Paired, Waiting
from weft.types.envelope import Inbound, Outbound, Seen
from weft.types.memory import Task


class PeopleFacts(Facts, Protocol):
    """Facts that can also be written. Each may name the message it came from."""

    async def find(self, sender: str, key: str) -> str | None: ...

    async def set(
        self,
        sender: str,
        key: str,
        value: str,
        *,
        by_model: bool = False,
        source: tuple[str, int] | None = None,
    ) -> None: ...

    async def delete(self, sender: str, key: str) -> bool: ...


class PeopleTasks(Tasks, Protocol):
    """Tasks that can also be written, and told when they are due."""

    async def add(  # noqa: PLR0913 - as the store has it
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

    async def list(self, sender: str) -> list[Task]: ...

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
    ) -> Sequence[Task]: ...


class Mailbox(Protocol):
    """What came in and what must go out."""

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
    """Who may come in. Secrets go out once and are kept as hashes."""

    async def offer_pairing(self, channel: str, sender: str) -> str: ...

    async def confirm_pairing(self, code: str) -> Paired: ...

    async def is_paired(self, channel: str, sender: str) -> bool: ...

    async def paired(self) -> Sequence[Paired]: ...

    async def unpair(self, channel: str, sender: str) -> bool: ...

    async def denied(self, *, limit: int = 100) -> Sequence[Denial]: ...

    async def new_token(self, name: str) -> str: ...

    async def whose_token(self, token: str) -> str | None: ...

    async def end_token(self, name: str) -> bool: ...


class PeopleSummaries(Summaries, Protocol):
    """Summaries that can also be written."""

    async def add(self, channel: str, sender: str, text: str, *, session_id: str | None = None) -> None: ...
