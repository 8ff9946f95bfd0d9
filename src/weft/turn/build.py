"""Building a context: ask every source of the recipe, load the history, let the engine decide."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from weft.context.plan import Materials, plan
from weft.context.receipt import account
from weft.context.render import render
from weft.context.roles import with_known_roles
from weft.errors import ContextError, EmptyMessage
from weft.sources.base import Files, Kept, Request, title_of
from weft.sources.catalogue import SOURCES
from weft.store.backend import ContextStore
from weft.store.base import Activity, Blocks, MessageLog
from weft.store.in_memory import RecentLogs
from weft.tokens import counter
from weft.tools.registry import ToolRegistry
from weft.turn.fold import Summarizer
from weft.turn.history import Conversation, History, history_rule, read_history
from weft.types.context import Context, ContextNeeds
from weft.types.limits import ContextConfig, ModelContextLimits, ModelInfo
from weft.types.memory import ActivityEntry, RenderedBlock
from weft.types.message import Message, ToolDefinition
from weft.types.receipt import Receipt
from weft.types.recipe import HistoryRule, Recipe
from weft.types.redacted import Redacted
from weft.types.rules import ToolRule
from weft.types.section import Offer
from weft.workspace.files import FileReader, open_workspace
from weft.workspace.skills import SkillLoader, Skills

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Settings:
    """All that the steps of a builder have set so far."""

    recipe: Recipe
    config: ContextConfig
    files: Files
    kept: Kept
    messages: MessageLog | None = None
    session_id: str = ""
    agent_id: str = ""
    channel: str = ""
    sender_id: str = ""
    base_instructions: str | None = None
    tools: ToolRegistry | tuple[ToolDefinition, ...] = ()
    tool_rules: tuple[ToolRule, ...] = ()
    model: ModelInfo | None = None
    batch_blocks: frozenset[str] = frozenset()
    needs: ContextNeeds = ContextNeeds()
    summarizer: Summarizer | None = None
    clock: Callable[[], datetime] = lambda: datetime.now().astimezone()

    def chosen_limits(self) -> ModelContextLimits:
        """The limits that were asked for, before the model's window lowers them."""
        return self.config.chosen_limits(self.recipe.limits, self.model)


class ContextBuilder:
    """Builds contexts after a recipe.

    Every step returns a new builder and leaves the old one as it was, so that one builder can be shared
    between sessions. They share what was read from disk.
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
        self._settings = _Settings(
            recipe=chosen,
            config=config or ContextConfig(),
            files=Files(reader=reader, skills=SkillLoader(reader)),
            kept=Kept(blocks=memory),
        )
        if chosen.workspace_path:
            self._settings = self.with_workspace(chosen.workspace_path)._settings

    def _with(self, **changes: Any) -> Self:
        builder = copy(self)
        builder._settings = replace(self._settings, **changes)
        return builder

    @property
    def recipe(self) -> Recipe:
        return self._settings.recipe

    @property
    def files(self) -> Files:
        """The workspace, and what remembers its files."""
        return self._settings.files

    def with_workspace(self, path: str | Path) -> Self:
        """Read instructions, memory, skills and tool docs from this folder.

        Raises:
            WorkspaceError: it is missing, or not a folder.
        """
        return self._with(files=replace(self._settings.files, workspace=open_workspace(path)))

    def with_skill_dirs(self, dirs: Iterable[str | Path], *, disabled: Iterable[str] = ()) -> Self:
        """Take skills from these folders, and only these; a later one replaces an earlier by name."""
        folders = tuple(Path(folder).expanduser() for folder in dirs)
        files = replace(self._settings.files, own_skill_dirs=folders, disabled_skills=frozenset(disabled))
        return self._with(files=files)

    def with_store(self, store: ContextStore) -> Self:
        """Take memory, messages, facts, summaries, recall and tasks from one store."""
        kept = replace(
            self._settings.kept,
            blocks=store.memory,
            facts=store.facts,
            summaries=store.summaries,
            recall=store.recall,
            tasks=store.tasks,
        )
        return self._with(kept=kept, messages=store.messages)

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

    def with_tools(self, tools: ToolRegistry | Iterable[ToolDefinition]) -> Self:
        return self._with(tools=tools if isinstance(tools, ToolRegistry) else tuple(tools))

    def with_base_instructions(self, text: str) -> Self:
        """Begin with this text in place of the recipe's own."""
        return self._with(base_instructions=text)

    def with_tool_rules(self, rules: Iterable[ToolRule]) -> Self:
        return self._with(tool_rules=tuple(rules))

    def with_model_info(self, model: ModelInfo) -> Self:
        return self._with(model=model)

    def with_activity(self, activity: Activity | Sequence[ActivityEntry]) -> Self:
        return self._with(kept=replace(self._settings.kept, activity=activity))

    def with_batch_blocks(self, ids: Iterable[str]) -> Self:
        """Show these blocks this time, whatever their type."""
        return self._with(batch_blocks=frozenset(ids))

    def with_needs(self, needs: ContextNeeds) -> Self:
        return self._with(needs=needs)

    def with_summarizer(self, summarizer: Summarizer) -> Self:
        """Who writes the summary of a history that is too long, where the strategy is to summarise."""
        return self._with(summarizer=summarizer)

    def at(self, now: datetime) -> Self:
        """Fix the clock. A time without an offset is taken as UTC."""
        fixed = now if now.tzinfo else now.replace(tzinfo=UTC)
        return self._with(clock=lambda: fixed)

    def reload(self) -> None:
        """Forget what was read from disk, for every builder that shares it."""
        self._settings.files.reader.forget()
        self._settings.files.skills.forget()

    async def build(self, message: str) -> Context:
        """The context for a message, with its receipt.

        Raises:
            EmptyMessage: there is nothing to answer.
            BudgetExceeded: what must be shown is larger than the limit.
            ContextError: something could not be read, or the history has a role that the recipe rejects.
        """
        if not message.strip():
            raise EmptyMessage
        settings = self._settings
        limits = settings.config.limits(settings.recipe.limits, settings.model)
        rule = history_rule(settings.recipe.history, settings.config)
        try:
            loading = asyncio.ensure_future(settings.files.load_skills(settings.recipe))
            request = replace(_request(settings, message, loading), blocks=_blocks(settings))
            *offers, history, skills = await asyncio.gather(
                *_offers(request), self._history(rule, limits), loading
            )
        except OSError as error:
            raise ContextError(f"IO error: {error}") from error
        known, changed = with_known_roles(history.tail, settings.recipe)
        materials = Materials(
            recipe=settings.recipe,
            limits=limits,
            message=message,
            offers=tuple(offers),
            tail=known,
            tools=_definitions(settings.tools),
            mcp_servers=skills.active_servers(message),
            history_rule=rule,
            fold=history.fold,
            window_of_model=limits.max_tokens < settings.chosen_limits().max_tokens,
        )
        decided = plan(materials)
        notes = (*_notes(settings, limits, changed), *history.notes)
        receipt = account(decided, warnings=notes)
        _report(receipt)
        context = render(decided, receipt)
        return replace(context, blocks=await _visible_blocks(request, context))

    async def _history(self, rule: HistoryRule, limits: ModelContextLimits) -> History:
        settings = self._settings
        if settings.messages is None:
            return History()
        place = Conversation(
            log=settings.messages,
            session_id=settings.session_id,
            counter=counter(settings.recipe.tokens),
            rule=rule,
            limits=limits,
            summarizer=settings.summarizer,
        )
        return await read_history(place)


def _notes(settings: _Settings, limits: ModelContextLimits, changed: int) -> Iterator[str]:
    """What was adapted on the way, for the receipt."""
    if changed:
        yield f"The recipe does not know the roles or calls of some messages: {changed} became plain text."
    wanted = settings.chosen_limits().reserved_response_tokens
    if limits.reserved_response_tokens < wanted:
        yield (
            f"The model reads {limits.max_tokens} tokens, so {limits.reserved_response_tokens} "
            f"are kept for its answer instead of {wanted}."
        )


def _request(settings: _Settings, message: str, skills: Awaitable[Skills]) -> Request:
    return Request(
        message=message,
        recipe=settings.recipe,
        counter=counter(settings.recipe.tokens),
        now=settings.clock(),
        files=settings.files,
        kept=settings.kept,
        needs=settings.needs,
        agent_id=settings.agent_id,
        channel=settings.channel,
        sender_id=settings.sender_id,
        session_id=settings.session_id,
        base_instructions=settings.base_instructions,
        tools=_definitions(settings.tools),
        tool_rules=settings.tool_rules,
        skills=skills,
        calls_tools=settings.model is None or settings.model.calls_tools,
        batch_blocks=settings.batch_blocks,
        include_descriptions=settings.config.include_descriptions,
        include_schemas=settings.config.include_schemas,
        activity_limit=settings.config.activity_entries_limit,
    )


def _blocks(settings: _Settings) -> Awaitable[Sequence[RenderedBlock]] | None:
    """The blocks that this build shows, read once for all layers that show some."""
    memory, named = settings.kept.blocks, settings.batch_blocks
    if memory is None or settings.recipe.layer("blocks") is None:
        return None
    return asyncio.ensure_future(memory.rendered_blocks(settings.agent_id, named=named))


async def _visible_blocks(request: Request, context: Context) -> tuple[RenderedBlock, ...]:
    if request.blocks is None:
        return ()
    titles = {section.title for section in context.sections if section.source == "blocks"}
    return tuple(block for block in await request.blocks if title_of(block.label) in titles)


def _offers(request: Request) -> list[Any]:
    """One question to a source for every layer; history and message are not asked for."""
    return [
        SOURCES[layer.source](request, layer) if layer.source in SOURCES else _no_offer(layer.source)
        for layer in request.recipe.layers
    ]


async def _no_offer(source: str) -> Offer:
    return Offer(layer=source)


def _definitions(tools: ToolRegistry | tuple[ToolDefinition, ...]) -> tuple[ToolDefinition, ...]:
    return tools.definitions() if isinstance(tools, ToolRegistry) else tools


def _report(receipt: Receipt) -> None:
    """Tell the log what was built: its size, and everything that lost its place."""
    _log.info(
        "context built: %d of %d tokens",
        receipt.total_tokens,
        receipt.limit,
        extra={"recipe": receipt.recipe, "layers": receipt.by_layer},
    )
    for item in receipt.dropped:
        _log.info(
            "left out %s, %d tokens: %s",
            Redacted(item.title),
            item.tokens,
            Redacted(item.reason),
            extra={"layer": item.layer, "tokens": item.tokens},
        )
    if receipt.over_limit:
        _log.warning("the context has %d tokens and the limit is %d", receipt.total_tokens, receipt.limit)
