"""`weft mcp`: the memory of an agent for other programs, over the Model Context Protocol."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from dataclasses import replace
from typing import Annotated, NamedTuple

import typer

from weft.channels.bind import check_place
from weft.channels.http_settings import HttpChannelSettings
from weft.channels.mcp import make_server
from weft.channels.mcp_http import serve
from weft.cli.options import PERSON, RecipeName, Workspace, run, settings
from weft.cli.stores import Agent
from weft.compose import connect_anyway
from weft.config import Config
from weft.memory.base import Store
from weft.types.person import OWNER_NAME
from weft.types.request import Caller

app = typer.Typer(add_completion=False)
_CHANNEL = "mcp"


@app.command()
def mcp(
    agent: Agent = "",
    person: Annotated[
        str,
        typer.Option(
            "--person", "-p", metavar="PERSON", help="Who the programs speak for: a name or CHANNEL:ID."
        ),
    ] = OWNER_NAME,
    http: Annotated[bool, typer.Option("--http", help="Serve over HTTP in place of stdio.")] = False,
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="With --http: where to listen.")
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option("--port", metavar="N", min=0, max=65535, help="With --http: the port; 0: a free one."),
    ] = 8714,
    name: Annotated[
        list[str] | None,
        typer.Option("--name", metavar="HOST", help="With --http: another name of this machine."),
    ] = None,
    recipe: RecipeName = None,
    workspace: Workspace = None,
) -> None:
    """Serve the assistant and one person's memory to other programs, over MCP."""
    config = settings(recipe=recipe, workspace=workspace)
    token = os.environ.get("WEFT_TOKEN", "")
    if http:
        check_place(host, token)
    place = replace(config.http, host=host, port=port, names=tuple(name or ()), token=token)
    run(_serve(config, _Speaker(person, agent), place if http else None))


class _Speaker(NamedTuple):
    """The person that programs speak for, and the agent whose memory they use, if it is not theirs."""

    person: str
    agent: str


async def _serve(config: Config, speaker: _Speaker, place: HttpChannelSettings | None) -> None:
    for number in (signal.SIGTERM, signal.SIGHUP):
        # The server over HTTP has its own way to end, and nothing of ours runs beside it.
        asyncio.get_running_loop().remove_signal_handler(number)
    assistant = await connect_anyway(config)
    try:
        store = await assistant.store.get()
        caller = await _caller(store, speaker)
        server = make_server(assistant, store, caller)
        if place is None:
            # A thread waits for standard input and cannot be interrupted: Ctrl-C ends the process at once.
            # What was written is safe; nothing else needs an orderly end.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            if sys.stdin.isatty():
                typer.echo("weft: waiting for a program that speaks MCP; Ctrl-C ends it.", err=True)
            await server.run_stdio_async()
            return
        await serve(
            server,
            place,
            token=place.token,
            ready=lambda url: typer.echo(f"weft: serving {caller.agent_id!r} at {url}", err=True),
        )
    finally:
        await assistant.close()


async def _caller(store: Store, speaker: _Speaker) -> Caller:
    """Return the caller that every program of this server is. A person is reached here by their name."""
    person, sender_id = await store.people.join(speaker.person, _CHANNEL)
    sender = PERSON if person == OWNER_NAME else Caller(channel=_CHANNEL, sender_id=sender_id)
    return replace(sender, agent_id=speaker.agent).known_as(person)
