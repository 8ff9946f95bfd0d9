"""The store of the settings, for commands that work on it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar

import typer

from weft.cli.options import run, settings
from weft.compose import make_embedder
from weft.compose import open as open_store
from weft.memory.base import Store
from weft.types.person import ASSISTANT, OWNER_NAME

T = TypeVar("T")
DEFAULT_AGENT = ASSISTANT

Label = Annotated[str, typer.Argument(metavar="LABEL", help="The block's label.")]
Agent = Annotated[str, typer.Option("--agent", "-a", metavar="ID", help="Whose memory.")]


def with_store(work: Callable[[Store], Awaitable[T]]) -> T:
    """Run work with the store of the settings, and close it."""
    config = settings()

    async def opened() -> T:
        async with await open_store(config.paths.database, embedder=make_embedder(config)) as store:
            store.memory = store.memory.by(OWNER_NAME, "command line")
            return await work(store)

    return run(opened())
