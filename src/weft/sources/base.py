"""What every source is given and gives back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from weft.store.base import Activity, Blocks, Recall
from weft.store.people import FactReader, SummaryReader, TaskReader
from weft.tokens import Counter
from weft.types.context import ContextNeeds
from weft.types.escape import inert, one_line, printable
from weft.types.memory import RenderedBlock
from weft.types.message import ToolDefinition
from weft.types.recipe import Layer, Recipe, Reload
from weft.types.rules import ToolRule
from weft.types.section import Offer, Origin, Section, Stability, Withheld
from weft.workspace.files import FileReader, FileText, file_at
from weft.workspace.skills import SkillLoader, Skills


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """The workspace of a build: where it is, and what remembers its files."""

    reader: FileReader
    skills: SkillLoader
    workspace: Path | None = None
    own_skill_dirs: tuple[Path, ...] | None = None
    disabled_skills: frozenset[str] = frozenset()

    @property
    def skill_dirs(self) -> tuple[Path, ...]:
        """Where skills are looked for: where the caller said, or below the workspace."""
        if self.own_skill_dirs is not None:
            return self.own_skill_dirs
        return (self.workspace / "skills",) if self.workspace else ()

    async def load_skills(self, recipe: Recipe) -> Skills:
        """All skills that can be used, looked at as often as the recipe wants."""
        layer = recipe.layer("skills")
        return await self.skills.load(
            self.skill_dirs,
            reload=(layer.reload if layer else None) or recipe.reload,
            ttl_seconds=recipe.ttl_seconds,
            disabled=self.disabled_skills,
            workspace=self.workspace,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What lasts, as far as this build can reach it."""

    blocks: Blocks | None = None
    facts: FactReader | None = None
    summaries: SummaryReader | None = None
    recall: Recall | None = None
    tasks: TaskReader | None = None
    activity: Activity | Sequence[object] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One message to build a context for, and all that a source may ask about it."""

    message: str
    recipe: Recipe
    counter: Counter
    now: datetime
    files: Files
    kept: Kept = Kept()
    needs: ContextNeeds = ContextNeeds()
    agent_id: str = ""
    channel: str = ""
    sender_id: str = ""
    session_id: str = ""
    base_instructions: str | None = None
    tools: tuple[ToolDefinition, ...] = ()
    tool_rules: tuple[ToolRule, ...] = ()
    skills: Awaitable[Skills] | None = None
    blocks: Awaitable[Sequence[RenderedBlock]] | None = None
    calls_tools: bool = True
    batch_blocks: frozenset[str] = field(default=frozenset())
    include_descriptions: bool | None = None
    include_schemas: bool | None = None
    activity_limit: int | None = None

    @property
    def sender(self) -> str:
        """The person, as facts and tasks know them: `channel:sender_id`."""
        return f"{self.channel}:{self.sender_id}" if self.channel or self.sender_id else ""

    def local(self, moment: datetime) -> datetime:
        """A time on this build's clock; one without an offset is taken as UTC."""
        aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return aware.astimezone(self.now.tzinfo)

    async def read(self, layer: Layer, *names: str) -> list[FileText]:
        """Files of the workspace, as often as the recipe wants them read; none without a workspace."""
        workspace = self.files.workspace
        if workspace is None:
            return []
        places = [file_at(workspace, name) for name in names]
        reload: Reload = layer.reload or self.recipe.reload
        return await self.files.reader.read(places, reload=reload, ttl_seconds=self.recipe.ttl_seconds)


Source = Callable[[Request, Layer], Awaitable[Offer]]


def nothing(layer: Layer, *, warnings: tuple[str, ...] = (), withheld: tuple[Withheld, ...] = ()) -> Offer:
    """An offer of no pieces."""
    return Offer(layer=layer.source, warnings=warnings, withheld=withheld)


def title_of(text: str) -> str:
    """Return a text as the title of a section: one line, without control characters."""
    return printable(one_line(text))


def piece(
    layer: Layer,
    text: str,
    *,
    title: str,
    why: str,
    stability: Stability = Stability.SESSION,
    origin: Origin = Origin.OPERATOR,
) -> Section:
    """A piece of a layer. Its text comes from outside, so no tag in it survives."""
    return Section(
        layer=layer.source,
        source=layer.source,
        title=title_of(title),
        text=inert(text),
        keep=layer.keep,
        stability=stability,
        origin=origin,
        why=why,
    )


def under_title(
    layer: Layer, pieces: Sequence[Section], *, intro: str | None = None, join: str = "\n", **more: Any
) -> Offer:
    """Pieces as one section between the layer's tags, under its title or an intro in its place."""
    head = f"<context:{layer.tag}>\n" if layer.tag else ""
    head += intro if intro is not None else f"{layer.title}\n" if layer.title else ""
    tail = f"\n</context:{layer.tag}>" if layer.tag else ""
    return Offer(layer=layer.source, pieces=tuple(pieces), head=head, join=join, tail=tail, **more)
