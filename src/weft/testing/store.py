"""A store without a database, for tests of what a context shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from weft.memory.in_memory import InMemoryBlocks
from weft.store.in_memory import InMemoryMessages
from weft.types.memory import Fact, Summary, Task
from weft.types.search import Recalled


@dataclass(frozen=True, slots=True)
class InMemoryFacts:
    """Facts by sender, such as `telegram:42`."""

    by_sender: Mapping[str, Sequence[Fact]] = field(default_factory=dict)

    async def list(self, sender: str) -> Sequence[Fact]:
        return self.by_sender.get(sender, ())


@dataclass(frozen=True, slots=True)
class InMemorySummaries:
    """Summaries by (channel, sender), newest first."""

    by_sender: Mapping[tuple[str, str], Sequence[Summary]] = field(default_factory=dict)

    async def recent(self, channel: str, sender: str, limit: int = 3) -> Sequence[Summary]:
        return self.by_sender.get((channel, sender), ())[:limit]


@dataclass(frozen=True, slots=True)
class InMemoryTasks:
    """Tasks by sender."""

    by_sender: Mapping[str, Sequence[Task]] = field(default_factory=dict)

    async def list(self, sender: str) -> Sequence[Task]:
        return self.by_sender.get(sender, ())


@dataclass(frozen=True, slots=True)
class InMemoryRecall:
    """Lines by sender, best first, which are recalled whatever the query is."""

    by_sender: Mapping[str, Sequence[Recalled]] = field(default_factory=dict)

    async def recall(self, query: str, *, sender: str, session_id: str, limit: int) -> Sequence[Recalled]:
        return self.by_sender.get(sender, ())[:limit]


@dataclass(frozen=True, slots=True, kw_only=True)
class InMemoryStore:
    """A store as `ContextBuilder.with_store` takes it, with what a test puts into it."""

    memory: InMemoryBlocks = field(default_factory=InMemoryBlocks)
    messages: InMemoryMessages = field(default_factory=InMemoryMessages)
    facts: InMemoryFacts = field(default_factory=InMemoryFacts)
    summaries: InMemorySummaries = field(default_factory=InMemorySummaries)
    tasks: InMemoryTasks = field(default_factory=InMemoryTasks)
    recall: InMemoryRecall = field(default_factory=InMemoryRecall)
