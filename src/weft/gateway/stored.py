"""What the assistant needs of a store."""

from __future__ import annotations

from typing import Protocol

from weft.memory.store import MemoryStore
from weft.store.base import Activity, Sessions, Store, Turns
from weft.store.people import Auth, Mailbox, PeopleFacts, PeopleSummaries, PeopleTasks, Streams


class Stored(Store, Protocol):
    """A store with all that turns need of it."""

    @property
    def memory(self) -> MemoryStore: ...

    @property
    def sessions(self) -> Sessions: ...

    @property
    def turns(self) -> Turns: ...

    @property
    def activity(self) -> Activity: ...

    @property
    def facts(self) -> PeopleFacts: ...

    @property
    def tasks(self) -> PeopleTasks: ...

    @property
    def summaries(self) -> PeopleSummaries: ...

    @property
    def mailbox(self) -> Mailbox: ...

    @property
    def streams(self) -> Streams: ...

    @property
    def auth(self) -> Auth: ...

    async def close(self) -> None: ...
