"""Memory blocks in a dict: enough to build a context without a database."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from weft.types.memory import RenderedBlock


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
