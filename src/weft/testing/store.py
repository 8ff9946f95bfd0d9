"""A store without a database, for tests of what a context shows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from weft.store.in_memory import InMemoryMessages
from weft.types.instruction import StandingInstruction
from weft.types.memory import Fact, RenderedBlock, Summary, Task
from weft.types.search import Recalled


class InMemoryBlocks:
    """Blocks of several agents, already rendered. Shared ones follow an agent's own."""

    def __init__(self, blocks: dict[str, Iterable[RenderedBlock]] | None = None) -> None:
        self._blocks = {agent: list(own) for agent, own in (blocks or {}).items()}

    def put(self, agent_id: str, *blocks: RenderedBlock) -> None:
        self._blocks.setdefault(agent_id, []).extend(blocks)

    async def rendered_blocks(
        self, agent_id: str, *, named: Collection[str] | None = None
    ) -> Sequence[RenderedBlock]:
        blocks = [
            block
            for block in self._blocks.get(agent_id, ())
            if named is None or block.id in named or block.is_always_shown
        ]
        return sorted(blocks, key=lambda block: bool(block.shared_from))


@dataclass(frozen=True, slots=True)
class InMemoryFacts:
    """Facts by sender, such as `telegram:42`. Those with an end were replaced."""

    by_sender: Mapping[str, Sequence[Fact]] = field(default_factory=dict)

    async def list(self, sender: str) -> Sequence[Fact]:
        return [fact for fact in self.by_sender.get(sender, ()) if fact.ended_at is None]

    async def list_replaced(
        self, sender: str, *, first: float | None = None, last: float | None = None
    ) -> Sequence[Fact]:
        return [fact for fact in self.by_sender.get(sender, ()) if fact.ended_at is not None]


@dataclass(frozen=True, slots=True)
class InMemoryInstructions:
    """Standing instructions by sender, oldest first."""

    by_sender: Mapping[str, Sequence[StandingInstruction]] = field(default_factory=dict)

    async def list(self, sender: str) -> Sequence[StandingInstruction]:
        return [one for one in self.by_sender.get(sender, ()) if one.ended_at is None]

    async def list_ended(self, sender: str, session_id: str, limit: int) -> Sequence[StandingInstruction]:
        every = reversed(self.by_sender.get(sender, ()))
        return [one for one in every if one.ended_at and session_id and one.session_id == session_id][:limit]


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

    async def recall(
        self,
        query: str,
        *,
        sender: str,
        session_id: str,
        limit: int,
        view_from: int = 0,
        now: datetime | None = None,
    ) -> Sequence[Recalled]:
        return self.by_sender.get(sender, ())[:limit]


@dataclass(frozen=True, slots=True, kw_only=True)
class InMemoryStore:
    """A store as `ContextBuilder.with_store` takes it, with what a test puts into it."""

    memory: InMemoryBlocks = field(default_factory=InMemoryBlocks)
    messages: InMemoryMessages = field(default_factory=InMemoryMessages)
    facts: InMemoryFacts = field(default_factory=InMemoryFacts)
    instructions: InMemoryInstructions = field(default_factory=InMemoryInstructions)
    summaries: InMemorySummaries = field(default_factory=InMemorySummaries)
    tasks: InMemoryTasks = field(default_factory=InMemoryTasks)
    recall: InMemoryRecall = field(default_factory=InMemoryRecall)
    epochs: None = None
