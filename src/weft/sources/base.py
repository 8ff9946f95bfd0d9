"""The request that every source gets, and the parts from which sources make their offers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from functools import cached_property
from itertools import chain, repeat
from pathlib import Path
from typing import Any

from weft.errors import StoreError
from weft.store.backend import ContextStore
from weft.store.base import Activity, Blocks, MessageLog
from weft.tokens import Counter, counter
from weft.types.build import BuildSpec
from weft.types.context import ContextNeeds
from weft.types.epoch import EpochView
from weft.types.escape import one_line, printable
from weft.types.memory import ActivityEntry, RenderedBlock
from weft.types.person import OWNER_NAME, person_of
from weft.types.recipe import Recipe, Reload
from weft.types.rules import ToolRule
from weft.types.section import Offer, Origin, Piece, Stability, Withheld
from weft.types.session import Summarizer
from weft.workspace.files import FileReader, FileText, file_at
from weft.workspace.skills import SkillLoader, Skills


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """The workspace of a build: where it is, and the caches of its files."""

    reader: FileReader
    skills: SkillLoader
    workspace: Path | None = None
    own_skill_dirs: tuple[Path, ...] | None = None
    disabled_skills: frozenset[str] = frozenset()

    @property
    def skill_dirs(self) -> tuple[Path, ...]:
        """The folders of skills: those that the caller set, or the one in the workspace."""
        if self.own_skill_dirs is not None:
            return self.own_skill_dirs
        return (self.workspace / "skills",) if self.workspace else ()

    async def load_skills(self, recipe: Recipe) -> Skills:
        """Load all skills that can be used, as often as the recipe says."""
        return await self.skills.load(
            self.skill_dirs,
            reload=recipe.option("skills", "reload") or recipe.reload,
            ttl_seconds=recipe.ttl_seconds,
            disabled=self.disabled_skills,
            workspace=self.workspace,
        )


@dataclass(frozen=True, kw_only=True)
class BuildRequest(BuildSpec):
    """One message to build a context for, and everything that a source may read for it.

    A builder holds one without a message, and completes a copy for each build. `memory`, `messages` and
    `activity` are those of the store unless the caller set others. `view_from` is the first message of the
    session that is shown, where no epoch tells. `tool_kinds` are the optional tools that
    are enabled, and `notes` sentences about the settings for the receipt.
    """

    files: Files
    store: ContextStore | None = None
    memory: Blocks | None = None
    messages: MessageLog | None = None
    activity: Activity | Sequence[ActivityEntry] | None = None
    needs: ContextNeeds = ContextNeeds()
    agent_id: str = ""
    channel: str = ""
    sender_id: str = ""
    session_id: str = ""
    view_from: int = 0
    base_instructions: str | None = None
    tool_rules: tuple[ToolRule, ...] = ()
    batch_blocks: frozenset[str] = frozenset()
    tool_kinds: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    known_skills: Skills | None = None
    recipe_digest: str = ""
    summarizer: Summarizer | None = None
    clock: Callable[[], datetime] = lambda: datetime.now().astimezone()

    @cached_property
    def counter(self) -> Counter:
        return counter(self.recipe.tokens)

    @cached_property
    def now(self) -> datetime:
        """The time of this build: the clock is read once."""
        return self.clock()

    @cached_property
    def skills(self) -> Awaitable[Skills]:
        """The skills, loaded once for all layers that want them."""
        if self.known_skills is not None:
            loaded = asyncio.get_running_loop().create_future()
            loaded.set_result(self.known_skills)
            return loaded
        return asyncio.ensure_future(self.files.load_skills(self.recipe))

    @cached_property
    def blocks(self) -> Awaitable[Sequence[RenderedBlock]] | None:
        """The blocks that this build may show, read once for all layers of blocks."""
        if self.memory is None or self.recipe.layer("blocks") is None:
            return None
        return asyncio.ensure_future(self.memory.rendered_blocks(self.agent_id, named=self.batch_blocks))

    @property
    def has_epochs(self) -> bool:
        """Whether this build goes on in an epoch: the recipe has them, and the store has the history."""
        if self.recipe.stability != "epoch" or self.store is None or not self.session_id:
            return False
        return self.store.epochs is not None and self.messages is self.store.messages

    @cached_property
    def epoch_view(self) -> Awaitable[EpochView]:
        """The running epoch of the session, read once for the history and for all layers that want it."""
        if self.store is None or self.store.epochs is None:
            raise StoreError("There is no store with epochs: check `has_epochs` first.")
        return asyncio.ensure_future(self.store.epochs.view(self.session_id))

    @property
    def sender(self) -> str:
        """The person, as facts and tasks know them: `channel:sender_id`."""
        return f"{self.channel}:{self.sender_id}" if self.channel or self.sender_id else ""

    @property
    def is_for_owner(self) -> bool:
        """Whether the owner of the assistant speaks, or a program that names nobody."""
        return person_of(self.agent_id) in (None, OWNER_NAME)

    def local(self, moment: datetime) -> datetime:
        """Convert a time to the zone of this build; one without an offset is taken as UTC."""
        aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return aware.astimezone(self.now.tzinfo)

    async def read(self, *names: str, reload: Reload | None = None) -> list[FileText]:
        """Read files of the workspace, as often as the layer or the recipe says; none without a workspace."""
        workspace = self.files.workspace
        if workspace is None:
            return []
        places = [file_at(workspace, name) for name in names]
        often = reload or self.recipe.reload
        return await self.files.reader.read(places, reload=often, ttl_seconds=self.recipe.ttl_seconds)


SourceFunction = Callable[[BuildRequest, Any], Awaitable[Offer]]
"""A source of ours. Its second parameter is annotated with a dataclass: the options that its layers take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of a source that has none of its own, and the base of those that have some.

    A number below zero is refused.
    """

    def __post_init__(self) -> None:
        for option in fields(self):
            value = getattr(self, option.name)
            if isinstance(value, int) and value < 0:
                raise ValueError(f"`{option.name}` is {value}: use zero for none, or leave it out")


def title_of(text: str) -> str:
    """Return a text as the title of a section: one line, without control characters."""
    return printable(one_line(text))


def entries_beyond(limit: str, prices: Sequence[int]) -> tuple[Withheld, ...]:
    """Account for the entries beyond a limit as one, with the price of all."""
    if not prices:
        return ()
    return (Withheld(title=f"{len(prices)} entries", tokens=sum(prices), reason=limit, count=len(prices)),)


def pieces(
    texts: Iterable[tuple[str, str]],
    *,
    why: str,
    stability: Stability = Stability.SESSION,
    origin: Origin = Origin.OPERATOR,
    ids: Iterable[str] = (),
) -> tuple[Piece, ...]:
    """Make pieces from texts with their titles, and from as many ids if there are some."""
    return tuple(
        Piece(text=text, id=id_, title=title_of(title), why=why, stability=stability, origin=origin)
        for (text, title), id_ in zip(texts, chain(ids, repeat("")), strict=False)
    )
