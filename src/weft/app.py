"""Builds everything from the settings: the only file that knows every concrete class."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from weft.config import Config, load_config
from weft.errors import ConfigError, StoreError
from weft.gateway.clean import clean
from weft.memory.audit import Finding, audit
from weft.memory.store import MemoryStore
from weft.providers.base import Provider, collected
from weft.providers.choose import Choice, Surroundings, choose, ollama_runs
from weft.providers.local import LocalProvider, unavailable
from weft.providers.scripted import ScriptedProvider
from weft.providers.vendors import VENDORS, Vendor, address
from weft.recall.embed import Embedder
from weft.recall.find import Finder
from weft.recall.past import Past
from weft.recall.wordllama import WordLlamaEmbedder
from weft.store.plain import PlainMessages
from weft.store.sqlite.store import SqliteStore
from weft.turn.build import ContextBuilder
from weft.turn.run import Turn, run_turn, with_provider
from weft.types.context import Context
from weft.types.limits import ModelInfo
from weft.types.message import Message
from weft.types.reply import Event, Reply
from weft.wire.models import DEFAULT, known

BUILT_IN = ("local", "scripted", *VENDORS)


@dataclass(frozen=True, slots=True, kw_only=True)
class App:
    """An assistant as an object. Sessions last as long as it does."""

    config: Config
    choice: Choice
    provider: Provider
    builder: ContextBuilder
    messages: PlainMessages

    async def ask(self, text: str, session: str | None = None) -> Reply:
        """The reply to a message. With a session it has the history of that session."""
        return await collected(self.stream(text, session=session))

    async def stream(
        self, text: str, session: str | None = None, *, history: Sequence[Message] = ()
    ) -> AsyncGenerator[Event]:
        """The reply as it comes; the last event is `Done`. A given history is shown but not kept."""
        async with aclosing(run_turn(self._turn(session, history), clean(text).text)) as events:
            async for event in events:
                yield event

    async def context(
        self, text: str, session: str | None = None, *, history: Sequence[Message] = ()
    ) -> Context:
        """What the model would see. No model is asked."""
        turn = self._turn(session, history)
        return with_provider(await turn.builder.build(clean(text).text), turn)

    async def close(self) -> None:
        await self.provider.close()

    def _turn(self, session: str | None, history: Sequence[Message]) -> Turn:
        builder = self.builder
        if history:
            builder = builder.with_messages(history)
        elif session:
            builder = builder.with_messages(self.messages).with_session(session)
        return Turn(
            builder=builder,
            provider=self.provider,
            provider_reason=self.choice.reason,
            log=self.messages,
            session_id=session or "",
        )


async def connect(
    config_or_path: Config | str | Path | None = None, *, provider: Provider | str | None = None
) -> App:
    """The assistant that the settings describe. Close it when done.

    Raises:
        ConfigError: a setting, a recipe or a provider's name is wrong.
        ProviderError: no model can be reached.
        WorkspaceError: the workspace that is set does not exist.
    """
    config = config_or_path if isinstance(config_or_path, Config) else load_config(config_or_path)
    if provider is None or isinstance(provider, str):
        choice = choose_provider(config.with_overrides(provider=provider))
        provider = make_provider(choice.provider, config)
    else:
        choice = Choice(provider=provider.info.provider, why="it was given by the program")
    return App(
        config=config,
        choice=choice,
        provider=provider,
        builder=make_builder(config).with_model_info(provider.info),
        messages=PlainMessages(),
    )


class Store:
    """Everything that lasts, from one open file. Close it when done, or use it with `async with`."""

    def __init__(self, kept: SqliteStore, *, embedder: Embedder | None = None) -> None:
        self._kept = kept
        self.finder = Finder(kept.search, kept.vectors, embedder)
        self.sessions, self.messages = kept.sessions, kept.messages
        self.facts, self.summaries, self.tasks = kept.facts, kept.summaries, kept.tasks
        self.turns, self.auth, self.activity = kept.turns, kept.auth, kept.activity
        self.memory = MemoryStore(kept.blocks, kept.archive, self.finder)
        self.recall = Past(kept.search)

    async def check(self) -> list[str]:
        """What is wrong with the file; nothing, if all is well."""
        return await self._kept.check()

    async def audit(self) -> list[Finding]:
        """What is wrong with what is remembered, each with the command that mends it. Changes nothing."""
        await self.memory.keep_texts()
        return audit(await self._kept.remembered.all(), datetime.now(UTC))

    async def purge(self, text: str) -> int:
        """Forget a text for good: in the log, the index, blocks with their history, facts, notes, receipts.

        In how many places it was. Its fingerprint stays there.

        Raises:
            StoreError: there is no text, or it cannot be taken out of a block.
        """
        if not text.strip():
            raise StoreError("There is nothing to purge: give the text.")
        return await self._kept.purge.purge(text, await self.memory.masked(text))

    async def export(self, folder: str | Path) -> dict[str, int]:
        """Write everything into a new folder that people can read; how many rows of each kind."""
        await self.memory.keep_texts()
        return await self._kept.dump.export(Path(folder))

    async def restore(self, folder: str | Path) -> dict[str, int]:
        """Read such a folder into this store, which must be empty: all of it, or nothing."""
        return await self._kept.dump.restore(Path(folder))

    async def close(self) -> None:
        await self._kept.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


async def open(  # noqa: A001 - `weft.open` reads as what it does
    path_or_url: str | Path, *, embedder: Embedder | None = None
) -> Store:
    """The store in a file, which is made if there is none; `":memory:"` lasts as long as it is open.

    With an embedder, searches look for meaning as well as for words.

    Raises:
        StoreError: the file cannot be used, and why.
    """
    path = str(path_or_url)
    if "://" in path:
        raise StoreError(f"This version keeps everything in a file, not at {path!r}: name a file.")
    where = path if path == ":memory:" else os.path.expanduser(path)  # noqa: ASYNC240 - reads a variable
    return Store(await asyncio.to_thread(SqliteStore, where), embedder=embedder)


def make_embedder(config: Config) -> Embedder | None:
    """The embedder of the settings, if one is set."""
    return WordLlamaEmbedder() if config.search.embedder == "wordllama" else None


def choose_provider(config: Config, environ: Mapping[str, str] = os.environ) -> Choice:
    """Which provider the settings and the machine lead to."""
    around = Surroundings(
        built_in=BUILT_IN,
        environ=environ,
        ollama_runs=lambda: ollama_runs(environ),
        embedded_lacks=lambda: unavailable(config.local),
    )
    return choose(config.provider, around)


def make_provider(name: str, config: Config, environ: Mapping[str, str] = os.environ) -> Provider:
    """The provider of that name, with its settings."""
    if name == "scripted":
        info = ModelInfo(id=config.model or "scripted", provider="scripted")
        return ScriptedProvider(config.scripted.replies, info=info)
    if name in VENDORS:
        return _over_http(VENDORS[name], config, environ)
    provider = LocalProvider(config.local)
    if config.model not in (None, provider.info.id):
        raise ConfigError(
            f"The local provider has the model {provider.info.id!r}, not {config.model!r}: "
            "leave the model out, or set `local.model_path` to another file."
        )
    return provider


def _over_http(vendor: Vendor, config: Config, environ: Mapping[str, str]) -> Provider:
    from weft.providers.http import HttpProvider  # noqa: PLC0415 - most runs on one machine need no HTTP

    key = environ.get(vendor.key, "") if vendor.key else ""
    if vendor.key and not key:
        raise ConfigError(f"{vendor.name} needs a key: set {vendor.key} in the environment.")
    info, url = vendor_model(vendor.name, config), address(vendor, environ)
    return HttpProvider(vendor, info=info, url=url, key=key, settings=config.http)


def vendor_model(vendor: str, config: Config) -> ModelInfo:
    """The model of a vendor that is asked: the one that is set, or its usual one."""
    model = config.model or DEFAULT[vendor]
    return ModelInfo(id=model, provider=vendor, max_tokens=known(model).window)


def make_builder(config: Config) -> ContextBuilder:
    """A builder for the settings' recipe and workspace; the usual workspace need not exist yet."""
    recipe = config.chosen_recipe()
    builder = ContextBuilder(recipe=recipe, config=config.context_config(recipe))
    workspace = Path(config.workspace).expanduser() if config.workspace else config.paths.workspace
    if config.workspace or workspace.is_dir():
        builder = builder.with_workspace(workspace)
        return builder.with_skill_dirs(config.skill_dirs(workspace), disabled=config.skills.disabled)
    return builder.with_skill_dirs(config.skill_dirs(None), disabled=config.skills.disabled)
