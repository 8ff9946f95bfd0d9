"""A kind of memory block of your own, in one file: a tally of votes that many writers can add to.

Importing this file registers the kind. Import it in every program that opens the database:

    python examples/plugins/tally_block.py
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import weft
from weft.memory.containers import Containers
from weft.memory.permission import Action
from weft.memory.schemas.base import Kind
from weft.memory.schemas.editor import Editor, Section, exclusive
from weft.memory.schemas.registry import content_of, register
from weft.types.schema import BlockSchema
from weft.types.value import as_count


@dataclass(frozen=True, slots=True, kw_only=True)
class TallySchema(BlockSchema):
    """Votes for some options."""

    kind = "tally"
    options: tuple[str, ...]


class TallyKind(Kind[TallySchema]):
    """A tally. The content is a dict of the votes for each option."""

    operations = "using(TallyEditor).vote"

    def content(self, schema: TallySchema, block: Containers, place: str) -> dict[str, int]:
        return {option: int(block.count(_root(place, option))) for option in schema.options}

    def render(self, schema: TallySchema, content: Any, *, bare: bool) -> str:
        ranked = sorted(schema.options, key=lambda option: -content[option])
        return "\n".join(f"{option}: {content[option]}" for option in ranked)

    def check(self, schema: TallySchema, value: Any, where: str) -> dict[str, int]:
        if not isinstance(value, Mapping) or not value.keys() <= set(schema.options):
            raise weft.StoreError(f"{where} must be votes for {', '.join(schema.options)}.")
        return {option: int(as_count(value.get(option, 0), where)) for option in schema.options}


class TallyEditor(Editor):
    """The operations on a tally."""

    @exclusive
    def vote(
        self, option: str, by: int = 1, is_system: bool = False, *, section: Section | None = None
    ) -> None:
        """Add votes for an option."""
        part = self._open(TallySchema, Action.APPEND, section, is_system)
        content = content_of(self._block, part.schema, part.place)
        if option not in content:
            raise weft.StoreError(f"{part.name} has no option {option!r}: vote for one of {list(content)}.")
        self._fit(part, {**content, option: content[option] + by})
        self._block.add_to_counter(_root(part.place, option), by)


def _root(place: str, option: str) -> str:
    return f"{place}tally:{quote(option, safe='')}"


register(TallySchema, TallyKind())


async def main() -> None:
    async with await weft.open(":memory:") as store:
        schema = TallySchema(options=("tea", "rum"))
        await store.memory.create_block("iris", "drinks", schema=schema, pinned=True)
        document = await store.memory.get_block("iris", "drinks")
        document.using(TallyEditor).vote("rum", 2)
        document.using(TallyEditor).vote("tea")
        await store.memory.persist_block("iris", "drinks")
        print(await store.memory.get_rendered_content("iris", "drinks"))


if __name__ == "__main__":
    asyncio.run(main())
