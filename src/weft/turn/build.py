"""The context builder: it asks every source of the recipe, reads the history and plans the context."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Self

from weft.context.epoch import continued
from weft.context.plan import Materials
from weft.context.receipt import account
from weft.context.render import render
from weft.errors import ConfigError, ContextError, EmptyMessage
from weft.offload import offloaded
from weft.sources.base import BuildRequest, Files, title_of
from weft.sources.catalogue import SOURCES, OpenLayer, open_layers, require_sources
from weft.sources.foreign import ForeignSource
from weft.store.backend import ContextStore
from weft.store.base import Activity, Blocks, MessageLog
from weft.store.in_memory import RecentLogs
from weft.tools.process import ExecutionSettings
from weft.tools.registry import ToolRegistry
from weft.tools.skills import Freshness, SkillTools
from weft.turn.decide import decide, live_unless_stored, report, size_of
from weft.turn.history import History, read_history
from weft.types.context import Context, ContextNeeds
from weft.types.epoch import digest_of
from weft.types.limits import ContextConfig, ModelInfo
from weft.types.memory import ActivityEntry, RenderedBlock
from weft.types.message import Message, ToolDefinition
from weft.types.recipe import HistoryRule, Recipe
from weft.types.rules import ToolRule
from weft.types.section import Offer
from weft.types.session import Summarizer
from weft.workspace.files import FileReader, open_workspace
from weft.workspace.skills import SkillLoader

_log = logging.getLogger(__name__)


class ContextBuilder:
    """A builder of contexts after a recipe.

    Every step returns a new builder and leaves the old one as it was, so that one builder can serve many
    sessions. They share the caches of files.
    """

    def __init__(
        self,
        memory: Blocks | None = None,
        config: ContextConfig | None = None,
        recipe: str | Recipe = "weft",
    ) -> None:
        chosen = recipe if isinstance(recipe, Recipe) else Recipe.load(recipe)
        reader = FileReader()
        self._logs = RecentLogs()
        self._sources: dict[str, ForeignSource] = {}
        self._layers = open_layers(chosen, self._sources)
        self._tools: Callable[[], tuple[ToolDefinition, ...]] = tuple
        self._request = BuildRequest(
            recipe=chosen,
            config=config or ContextConfig(),
            files=Files(reader=reader, skills=SkillLoader(reader)),
            memory=memory,
            recipe_digest=digest_of(chosen.to_json()),
        )
        self._skill_tools: SkillTools | None = None
        if chosen.workspace_path:
            builder = self.with_workspace(chosen.workspace_path)
            self._request, self._skill_tools = builder._request, builder._skill_tools

    def skill_tools(
        self, settings: ExecutionSettings | None = None, *, enforce_read: bool = False
    ) -> SkillTools:
        """Make the source of the tools that the skills of this builder offer."""
        recipe, files = self.recipe, self.files
        return SkillTools(
            load=partial(files.load_skills, recipe),
            reader=files.reader,
            workspace=files.workspace,
            settings=settings or ExecutionSettings(),
            read_on_demand=recipe.option("skills", "mode") == "readOnDemand",
            enforce_read=enforce_read,
            freshness=Freshness(
                reload=recipe.option("skills", "reload") or recipe.reload, ttl_seconds=recipe.ttl_seconds
            ),
        )

    async def _with_offered_tools(self, request: BuildRequest) -> BuildRequest:
        """Return the request with all tools: `read_skill`, those that were given, those of skills."""
        given, model = self._tools(), request.model
        if self._skill_tools is None or (model is not None and not model.calls_tools):
            return replace(request, tools=given)
        skills, names = await self._skill_tools.load(), {tool.name for tool in given}
        offered = [tool for tool in await self._skill_tools.tools_of(skills) if tool.name not in names]
        first = [tool.definition for tool in offered if tool.leads]
        rest = [tool.definition for tool in offered if not tool.leads]
        return replace(request, tools=(*first, *given, *rest), known_skills=skills)

    def _with_files(self, files: Files) -> Self:
        builder = self._with(files=files)
        builder._skill_tools = builder.skill_tools()
        return builder

    def _with(self, **changes: Any) -> Self:
        builder = copy(self)
        builder._request = replace(self._request, **changes)
        return builder

    @property
    def recipe(self) -> Recipe:
        return self._request.recipe

    @property
    def history_rule(self) -> HistoryRule:
        """The recipe's rule for the history, with what the caller set over it."""
        return self._request.history_rule

    @property
    def files(self) -> Files:
        """The workspace, and the caches of its files."""
        return self._request.files

    def with_workspace(self, path: str | Path) -> Self:
        """Read instructions, memory, skills and tool docs from this folder.

        Raises:
            WorkspaceError: it is missing, or not a folder.
        """
        return self._with_files(replace(self.files, workspace=open_workspace(path)))

    def with_skill_dirs(self, dirs: Iterable[str | Path], *, disabled: Iterable[str] = ()) -> Self:
        """Take skills from these folders only; a later one replaces an earlier one of the same name."""
        folders = tuple(Path(folder).expanduser() for folder in dirs)
        return self._with_files(
            replace(self.files, own_skill_dirs=folders, disabled_skills=frozenset(disabled))
        )

    def with_store(self, store: ContextStore) -> Self:
        """Take memory, messages, facts, summaries, recall and tasks from one store."""
        return self._with(store=store, memory=store.memory, messages=store.messages)

    def for_agent(self, agent_id: str) -> Self:
        return self._with(agent_id=agent_id)

    def for_sender(self, channel: str, sender_id: str) -> Self:
        return self._with(channel=channel, sender_id=sender_id)

    def with_session(self, session_id: str) -> Self:
        return self._with(session_id=session_id)

    def with_messages(self, messages: MessageLog | Iterable[Message]) -> Self:
        """Take the history from a log, or from messages the caller holds, oldest first.

        A list is counted once and remembered, so that the next call with the same list is cheap.
        """
        if not isinstance(messages, Iterable):
            return self._with(messages=messages)
        return self._with(messages=self._logs.over(messages))

    def with_parts(self, parts: Iterable[Mapping[str, Any]]) -> Self:
        """Send these pictures with the message."""
        return self._with(parts=tuple(parts))

    def with_tools(self, tools: ToolRegistry | Iterable[ToolDefinition]) -> Self:
        """Offer these tools. Those that are added to a registry later are offered too.

        With a workspace the tools of its skills are offered besides.
        """
        fixed = () if isinstance(tools, ToolRegistry) else tuple(tools)
        builder = copy(self)
        builder._tools = tools.definitions if isinstance(tools, ToolRegistry) else lambda: fixed
        return builder

    def with_all_tools(self, tools: Iterable[ToolDefinition]) -> Self:
        """Offer these tools and no others, not even those of skills."""
        builder = self.with_tools(tools)
        builder._skill_tools = None
        return builder

    def with_tool_kinds(self, kinds: Iterable[str]) -> Self:
        """Name the optional tools that are enabled, for the model."""
        return self._with(tool_kinds=tuple(kinds))

    def with_note(self, note: str) -> Self:
        """Add a sentence to the receipt's warnings."""
        return self._with(notes=(*self._request.notes, note))

    def with_base_instructions(self, text: str) -> Self:
        """Begin with this text in place of the recipe's own."""
        return self._with(base_instructions=text)

    def with_tool_rules(self, rules: Iterable[ToolRule]) -> Self:
        return self._with(tool_rules=tuple(rules))

    def with_model_info(self, model: ModelInfo) -> Self:
        return self._with(model=model)

    def with_activity(self, activity: Activity | Sequence[ActivityEntry]) -> Self:
        return self._with(activity=activity)

    def with_batch_blocks(self, ids: Iterable[str]) -> Self:
        """Show these blocks this time, whatever their type."""
        return self._with(batch_blocks=frozenset(ids))

    def with_needs(self, needs: ContextNeeds) -> Self:
        return self._with(needs=needs)

    def with_source(self, name: str, function: ForeignSource) -> Self:
        """Add a source of your own: the recipe's layers with this name call it.

        The function gets the request and the layer's options. It returns a text, several texts, or an
        `Offer`; an async function may do so too.

        Raises:
            ConfigError: Weft has a source of this name, or an option of a layer is wrong.
        """
        if name in SOURCES or name in ("history", "message"):
            raise ConfigError(f"Weft has a source {name!r} of its own: choose another name.")
        builder = copy(self)
        builder._sources = {**self._sources, name: function}
        builder._layers = open_layers(self.recipe, builder._sources)
        return builder

    def with_summarizer(self, summarizer: Summarizer) -> Self:
        """Let this function write the summary of a long history, where the strategy is to summarize."""
        return self._with(summarizer=summarizer)

    def at(self, now: datetime) -> Self:
        """Fix the clock. A time without an offset is taken as UTC."""
        fixed = now if now.tzinfo else now.replace(tzinfo=UTC)
        return self._with(clock=lambda: fixed)

    def reload(self) -> None:
        """Clear the caches of files, for every builder that shares them."""
        self.files.reader.forget()
        self.files.skills.forget()

    async def build(self, message: str) -> Context:
        """Build the context for a message, with its receipt.

        Raises:
            EmptyMessage: there is nothing to answer.
            BudgetExceeded: what must be shown is larger than the limit.
            ConfigError: nobody has the source of a layer, or a history must be summarized without a model.
            ContextError: something could not be read, or the history has a role that the recipe rejects.
        """
        if not message.strip():
            raise EmptyMessage
        require_sources(self._layers)
        _ = self._request.limits  # wrong limits are refused before anything is read
        request = await self._with_offered_tools(replace(live_unless_stored(self._request), message=message))
        try:
            offers, history = await self._ask_sources(request)
            skills = await request.skills
        except OSError as error:
            raise ContextError(f"IO error: {error}") from error
        materials = Materials(
            spec=request,
            offers=tuple(offers),
            tail=history.tail,
            fold=history.fold,
            mcp_servers=skills.active_servers(message),
        )
        context = await decide(request, materials, history)
        if first := _late_start(history, context):
            late = await self._recalled_again(replace(request, view_from=first), materials)
            context = context if late == materials else await decide(request, late, history)
        sources = [layer.source for layer in request.recipe.layers]
        report(context.receipt, dict(zip(sources, [offer.files for offer in offers], strict=True)))
        model = request.model.id if request.model else ""
        return replace(context, model=model or None, blocks=await _visible_blocks(request, context))

    async def _ask_sources(self, request: BuildRequest) -> tuple[list[Offer], History]:
        """Ask every source, and read the history.

        What waits for a search or for a program runs beside the rest. The others look up a few rows each, and
        a task for each of them would take longer than that.
        """
        running = {
            at: asyncio.create_task(_offer(layer, request))
            for at, layer in enumerate(self._layers)
            if layer.waits
        }
        try:
            history = await read_history(request)
            offers = [
                await (running.pop(at) if layer.waits else _offer(layer, request))
                for at, layer in enumerate(self._layers)
            ]
        finally:
            for task in running.values():
                task.cancel()
        return offers, history

    async def _recalled_again(self, request: BuildRequest, materials: Materials) -> Materials:
        """Return materials in which recall also offers the messages of this session that had no room."""
        offers = list(materials.offers)
        for at, layer in enumerate(self._layers):
            if request.recipe.layers[at].source == "recall":
                offers[at] = await layer.source(request, layer.options)
        return replace(materials, offers=tuple(offers))

    async def frozen_tools(self) -> Mapping[str, ToolDefinition]:
        """Return the tools that the running epoch of the session froze, by their names."""
        request = replace(self._request)  # what it has read lasts as long as one build
        epoch = (await request.epoch_view).epoch if request.has_epochs else None
        return {tool.name: tool for tool in epoch.tools} if epoch else {}

    async def build_on_prefix(self, message: str, *, first: int) -> Context | None:
        """Build a request that begins with the bytes of the last one of its session, for a side call.

        Returns None if there is no running epoch that shows the messages from `first` on, or no room.
        """
        request = replace(self._request, message=message)
        history = await read_history(request) if request.has_epochs else History()
        epoch = history.view.epoch if history.view else None
        if history.view is None or epoch is None or epoch.first > first:
            return None
        empty = (Offer(),) * len(request.recipe.layers)
        materials = Materials(spec=request, offers=empty, tail=history.tail, fold=history.fold)
        decided = await offloaded(size_of(materials), continued, materials, history.view)
        return None if decided is None else render(decided.plan, account(decided.plan))


async def _offer(layer: OpenLayer, request: BuildRequest) -> Offer:
    return await layer.source(request, layer.options)


def _late_start(history: History, context: Context) -> int:
    """Return the first message that is shown, if this build alone knows of it: there is no epoch yet."""
    is_new = history.view is not None and history.view.epoch is None
    return context.step.epoch.first if is_new and context.step and context.step.epoch.first > 1 else 0


async def _visible_blocks(request: BuildRequest, context: Context) -> tuple[RenderedBlock, ...]:
    if request.blocks is None:
        return ()
    if context.step is not None:  # a block that is new in its epoch is shown with an earlier message
        hidden = {id_ for layer, id_ in context.step.hidden if layer == "blocks"}
        return tuple(block for block in await request.blocks if block.id not in hidden)
    titles = {section.title for section in context.sections if section.source == "blocks"}
    return tuple(block for block in await request.blocks if title_of(block.label) in titles)
