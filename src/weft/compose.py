"""Builds everything from the settings: the only file that knows every concrete class."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from zoneinfo import available_timezones

from weft.config import Config, load_config
from weft.errors import ConfigError, ProviderError, StoreError
from weft.gateway.assistant import Assistant
from weft.gateway.channel import Channel, Server
from weft.gateway.engine import Engine
from weft.gateway.lazy_store import LazyStore
from weft.memory.base import Store
from weft.memory.store import MemoryStore
from weft.models import choose_model, find_vendor, make_provider, model_named
from weft.plugins import make_plugin
from weft.private_files import make_private_folder
from weft.providers.access import address_of, key_of, key_place, read_secret
from weft.providers.base import Provider
from weft.providers.choose import Choice
from weft.providers.scripted import ScriptedProvider
from weft.recall.conversation_recall import ConversationRecall
from weft.recall.embed import Embedder
from weft.recall.find import Finder
from weft.recall.meaning import Meaning
from weft.recall.minilm import MiniLmEmbedder
from weft.recall.searcher import Searcher
from weft.recall.wordllama import WordLlamaEmbedder
from weft.sources.catalogue import check_sources
from weft.store.backend import Backend
from weft.store.base import Scope
from weft.store.sqlite.backend import SqliteBackend
from weft.store.sqlite.backup import restore as restore_backup
from weft.tools.base import Tool, ToolSource
from weft.tools.builtin import memory_tools, result_tools
from weft.tools.facts import fact_tools
from weft.tools.fetch import fetch_tools
from weft.tools.files import file_tools
from weft.tools.history import history_tools
from weft.tools.mcp import McpTools
from weft.tools.registry import ToolRegistry
from weft.tools.tasks import task_tools
from weft.turn.build import ContextBuilder
from weft.turn.run import TurnSettings
from weft.types.context import Context
from weft.types.limits import ContextConfig, ModelInfo
from weft.types.message import ToolDefinition
from weft.types.recipe import Recipe
from weft.types.reply import Event
from weft.types.rules import ToolRule
from weft.types.search import MemorySearchResult, SearchQuery

if TYPE_CHECKING:
    from weft.channels.pages.desk import PageSettings
    from weft.memory.audit import Finding


_EXAMINE_SECONDS = 30.0


async def connect(  # noqa: PLR0913 - the public contract
    config_or_path: Config | str | Path | None = None,
    *,
    provider: Provider | str | None = None,
    tools: Iterable[Tool | ToolDefinition | Callable[..., Any]] = (),
    rules: Iterable[ToolRule] = (),
    store: Store | None = None,
    database: str | Path | None = None,
    context: ContextConfig | None = None,
) -> Assistant:
    """Connect the assistant that the settings describe. Close it when done.

    Tools given here stand before those of skills; a function becomes one by its signature and docstring. A
    program that should not use the personal store gives an open `store`, which stays open when the assistant
    is closed, or the path of a `database`. `context` overrides the limits of the settings.

    Raises:
        ConfigError: a setting, a recipe or a provider's name is wrong.
        ProviderError: no model can be reached.
        WorkspaceError: the workspace that is set does not exist.
    """
    config = config_or_path if isinstance(config_or_path, Config) else load_config(config_or_path)
    if provider is None or isinstance(provider, str):
        config, choice = choose_model(config if provider is None else replace(config, provider=provider))
        provider = make_provider(choice.provider, config)
    else:
        choice = Choice(provider=provider.info.provider, why="it was given by the program")
    builder = make_builder(config, context)
    limits = config.tool_limits(builder.recipe)
    engine = Engine(
        choice=choice,
        provider=provider,
        builder=builder,
        store=_lazy_store(config, store, database),
        tools=ToolRegistry((*tools, *_plugin_tools(config)), sources=tool_sources(config, builder)),
        builtin_tools=partial(builtin_tools, config=config),
        settings=TurnSettings(
            rules=(*rules, *config.tool_rules()),
            limits=limits,
            routing=config.route,
            windows=config.windows,
            prices=config.prices,
            cache_prices=config.cache_prices,
        ),
        find_provider=lambda name, current: model_named(name, current, config),
        find_builder=lambda recipe: make_builder(replace(config, recipe=recipe), context),
    )
    return Assistant(engine, config.gateway)


def _plugin_tools(config: Config) -> list[Tool | ToolDefinition | Callable[..., Any]]:
    return [tool for name in config.tools.plugins for tool in make_plugin("tools", name, config.plugins)]


def _lazy_store(config: Config, store: Store | None, database: str | Path | None) -> LazyStore:
    if store is not None:
        return LazyStore(None, partial(_return, store), is_ours=False)
    path = config.paths.database if database is None else Path(database).expanduser()
    is_file = str(path) != ":memory:"
    return LazyStore(path if is_file else None, partial(_open_at, path, config))


async def _return(store: Store) -> Store:
    return store


async def _open_at(path: Path, config: Config) -> Store:
    make_folder(path.parent)
    return await open(path, embedder=make_embedder(config))


async def connect_anyway(config: Config) -> Assistant:
    """Connect even where no model can be reached: only asking the model fails then, with the reason."""
    try:
        return await connect(config)
    except ProviderError as error:
        return await connect(config, provider=_NoModel(error))


async def connect_to_preview(config: Config) -> Assistant:
    """Connect to build contexts only: the model that would answer need not be reached, nor its key be set."""
    try:
        config, choice = choose_model(config)
    except ProviderError as error:
        return await connect(config, provider=_NoModel(error))
    assistant = await connect(config, provider=make_provider(choice.provider, config, needs_key=False))
    assistant.engine = replace(assistant.engine, choice=choice)
    return assistant


class _NoModel(ScriptedProvider):
    """Stands in for a model that cannot be reached."""

    def __init__(self, reason: ProviderError) -> None:
        super().__init__(info=ModelInfo())
        self._reason = reason

    async def stream(self, context: Context) -> AsyncGenerator[Event]:
        raise self._reason
        yield  # a generator, like every provider's stream


class BackendStore:
    """A backend with memory and recall over it: what `open` returns as a `Store`."""

    def __init__(self, backend: Backend, *, embedder: Embedder | None = None) -> None:
        self._backend = backend
        self.meaning = None if embedder is None else Meaning(backend.vectors, embedder)
        self.finder = Finder(backend.search, self.meaning)
        self.sessions, self.messages, self.turns = backend.sessions, backend.messages, backend.turns
        self.people, self.facts = backend.people, backend.facts
        self.instructions = backend.instructions
        self.summaries, self.tasks = backend.summaries, backend.tasks
        self.mailbox, self.streams, self.auth = backend.mailbox, backend.streams, backend.auth
        self.activity, self.epochs = backend.activity, backend.epochs
        self.memory = MemoryStore(backend.blocks, backend.archive, self.finder)
        self.recall = ConversationRecall(backend.lines, self.meaning)
        self.searcher = Searcher(backend.search, backend.lines, backend.people, self.finder, self.meaning)
        self.check, self.restore_export = backend.check, backend.restore_export
        self.check_file = backend.check_file
        self.backup, self.backup_status, self.close = backend.backup, backend.backup_status, backend.close

    async def audit(self) -> list[Finding]:
        from weft.memory.audit import audit  # noqa: PLC0415 - its patterns are for `weft memory audit` alone

        await self.memory.save_texts()
        return audit(await self._backend.list_remembered(), datetime.now(UTC))

    async def search(self, query: SearchQuery, scope: Scope) -> list[MemorySearchResult]:
        await self.memory.save_texts(None if scope.everyone else scope.owner)
        return await self.searcher.search(query, scope)

    async def count_texts(self) -> int:
        return await self._backend.vectors.count_texts()

    async def purge(self, text: str) -> int:
        if not text.strip():
            raise StoreError("There is nothing to purge: give the text.")
        await self._backend.begin_purge(text)
        return await self._backend.purge(text, await self.memory.masked(text))

    async def export(self, folder: str | Path) -> dict[str, int]:
        await self.memory.save_texts()
        return await self._backend.export(folder)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


async def open(  # noqa: A001 - `weft.open` reads as what it does
    path_or_url: str | Path, *, embedder: Embedder | None = None
) -> Store:
    """Open the store in a file, which is created if there is none; `":memory:"` lasts as long as it is open.

    With an embedder, searches go by meaning as well as by words.

    Raises:
        StoreError: the file cannot be used, and why.
    """
    path = str(path_or_url)
    if "://" in path:
        raise StoreError(f"This version keeps everything in a file, not at {path!r}: name a file.")
    where = path if path == ":memory:" else os.path.expanduser(path)  # noqa: ASYNC240 - reads a variable
    return BackendStore(await asyncio.to_thread(SqliteBackend, where), embedder=embedder)


async def restore(database: Path, backup: Path) -> Path | None:
    """Put a backup in the place of a database that nobody has open.

    Returns where the old database is now, if there was one.

    Raises:
        ConfigError: there is no such backup.
        StoreError: the backup is damaged, or the database is open in a program.
    """
    return await asyncio.to_thread(restore_backup, database, backup)


def make_folder(path: Path) -> None:
    """Make a folder that only its owner may enter. Raises StoreError if it cannot be made."""
    try:
        make_private_folder(path)
    except OSError as error:
        raise StoreError(
            f"{path} cannot be made ({error.strerror}): set WEFT_HOME to another place."
        ) from error


def tool_sources(config: Config, builder: ContextBuilder) -> list[ToolSource]:
    """Make the sources of skills' tools: programs that they list, and MCP servers that they declare."""
    programs = builder.skill_tools(config.execution(), enforce_read=config.skills.enforce_read)
    return [programs, McpTools(programs.load, config.mcp)]


def make_channels(config: Config, environ: Mapping[str, str] = os.environ) -> list[Channel]:
    """Open the channels of the settings: our own where they have a token, and plugins by their names."""
    channels: list[Channel] = [make_plugin("channels", name, config.plugins) for name in config.channels]
    secret = environ.get("TELEGRAM_BOT_TOKEN") or config.telegram.token
    if token := read_secret(secret, "telegram.token", environ):
        from weft.channels.telegram import Telegram  # noqa: PLC0415 - only `weft serve` needs it

        channels.append(Telegram(token, config.telegram))
    return channels


def make_servers(config: Config) -> list[Server]:
    """Make the servers of the settings. They do not listen yet.

    Raises:
        ConfigError: a server must not listen where the settings say.
    """
    if not config.http.enabled:
        return []
    from weft.channels.http import HttpServer  # noqa: PLC0415 - half a second that only `weft serve` needs

    return [HttpServer(config.http, http_token(config), pages=page_settings(config))]


def page_settings(config: Config) -> PageSettings:
    """Return what the pages of a server need to know of the settings."""
    from weft.channels.pages.desk import PageSettings  # noqa: PLC0415 - as above

    return PageSettings(
        check_health=_examined,
        recipes=config.paths.config_file.parent / "recipes",
        max_attachment_bytes=config.context.max_attachment_bytes,
    )


async def _examined() -> list[dict[str, Any]]:
    """Return the findings of `weft doctor`, which looks at everything in a process of its own."""
    command = (sys.executable, "-m", "weft", "doctor", "--json")
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=asyncio.subprocess.DEVNULL)
    try:
        output, _ = await asyncio.wait_for(process.communicate(), _EXAMINE_SECONDS)
        findings: list[dict[str, Any]] = json.loads(output)
    except (TimeoutError, ValueError):
        findings = []
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return findings


def http_token(config: Config, environ: Mapping[str, str] = os.environ) -> str:
    """Return the token that requests must carry: that of the environment, or of the settings."""
    return environ.get("WEFT_TOKEN") or read_secret(config.http.token, "http.token", environ)


def builtin_tools(store: Store, recipe: Recipe, *, config: Config) -> list[Tool]:
    """Make those of Weft's own tools that a recipe wants, and the optional ones that are enabled."""

    async def zone_of(sender: str) -> str:
        """Return the time zone that the person named, if it exists; else that of the settings."""
        zone = await store.facts.find(sender, "timezone")
        return zone if zone in available_timezones() else config.time_zone

    makers = {
        "memory": lambda: memory_tools(store.memory, store.recall),
        "facts": lambda: fact_tools(store.facts),
        "tasks": lambda: task_tools(store.tasks, zone_of, config.tasks),
        "results": lambda: result_tools(store.turns, max_chars=config.tools.max_chars),
        "history": lambda: history_tools(store.messages),
        "files": lambda: file_tools(config.tools.files, (config.paths.config_file, config.paths.database)),
        "fetch": fetch_tools,
    }
    wanted = (*recipe.tools.builtin, *config.tools.enabled) if recipe.tools.builtin else ()
    return [tool for kind in wanted for tool in makers[kind]()]


def make_embedder(config: Config, environ: Mapping[str, str] = os.environ) -> Embedder | None:
    """Make the embedder of the settings, if one is set: our own, one behind an address, or a plugin.

    Raises:
        ConfigError: it is not installed, or lacks its model.
    """
    settings = config.search
    if settings.embedder is None:
        return None
    if settings.embedder == "wordllama":
        return WordLlamaEmbedder()
    if settings.embedder == "minilm":
        return MiniLmEmbedder()
    if settings.embedder in ("ollama", "openai"):
        return _http_embedder(settings.embedder, config, environ)
    embedder: Embedder = make_plugin("embedders", settings.embedder, config.plugins)
    return embedder


def _http_embedder(name: str, config: Config, environ: Mapping[str, str]) -> Embedder:
    from weft.recall.http_embed import HttpEmbedder  # noqa: PLC0415 - most runs on one machine need no HTTP

    model, vendor = config.search.model, find_vendor(name, config)
    if model is None or vendor is None:
        raise ConfigError(
            f"The embedder {name} needs a model: set `search.model`, or run `weft recall setup {name}`."
        )
    keys = config.keys
    key = key_of(vendor, keys, environ) if key_place(vendor, keys, environ) else ""
    url = config.search.url or address_of(vendor, environ)
    return HttpEmbedder(kind=name, url=url, model=model, key=key)


def make_builder(config: Config, context: ContextConfig | None = None) -> ContextBuilder:
    """Make a builder for the settings' recipe and workspace; the usual workspace need not exist yet."""
    recipe = config.chosen_recipe()
    check_sources(recipe)
    builder = ContextBuilder(recipe=recipe, config=context or config.context_config(recipe))
    if config.prompts.system:
        builder = builder.with_base_instructions(config.prompts.system)
    if recipe.tools.builtin:
        builder = builder.with_tool_kinds(config.tools.enabled)
    home = Path(recipe.home).expanduser() if recipe.home and not config.workspace else None
    if home is not None and home.is_dir():
        builder = builder.with_note(f"The workspace is {home}, the folder of {recipe.name} itself.")
        workspace = home
    else:
        workspace = Path(config.workspace).expanduser() if config.workspace else config.paths.workspace
    if config.workspace or workspace.is_dir():
        builder = builder.with_workspace(workspace)
    folders = config.skill_dirs(workspace if config.workspace or workspace.is_dir() else None)
    return builder.with_skill_dirs(folders, disabled=config.skills.disabled)
