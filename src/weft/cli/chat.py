"""`weft chat`: a conversation that is remembered."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from typing import Annotated

import typer
from rich.markup import escape

from weft.channels.chat import TerminalConsent, piped_lines, typed_lines
from weft.channels.chat import chat as converse
from weft.cli.options import PERSON, ModelName, ProviderName, RecipeName, Workspace, err, out, run, settings
from weft.compose import connect
from weft.gateway.commands import is_command, run_command
from weft.gateway.conversation import Conversation
from weft.types.escape import printable
from weft.types.reply import Event

app = typer.Typer()

_REMEMBERED_LINES = 200


class _Talk:
    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation

    def is_command(self, text: str) -> bool:
        return is_command(text)

    def say(self, text: str) -> AsyncGenerator[Event]:
        return self._conversation.say(text)

    async def news(self) -> Sequence[str]:
        return await self._conversation.reminders()

    async def command(self, text: str) -> str:
        told = await run_command(self._conversation, text)
        return f"{told}\n- `/quit` leaves; so does Ctrl-D." if text.strip().lower() == "/help" else told


@app.command()
def chat(
    recipe: RecipeName = None,
    provider: ProviderName = None,
    model: ModelName = None,
    workspace: Workspace = None,
    session: Annotated[
        str, typer.Option("--session", "-s", metavar="ID", help="Go on with this session.")
    ] = "",
    new: Annotated[bool, typer.Option("--new", help="Begin a new session.")] = False,
) -> None:
    """Talk in the terminal; what is said is remembered."""
    config = settings(recipe=recipe, provider=provider, model=model, workspace=workspace)

    async def work() -> int:
        assistant = await connect(config)
        try:
            is_typed = sys.stdin.isatty()
            consent = TerminalConsent(out) if is_typed else None
            person = replace(PERSON, ask=consent.ask) if consent else PERSON
            conversation = await Conversation.open(assistant, person, "chat", session_id=session)
            if new:
                await conversation.begin_anew()
            for turn in await conversation.interrupted():
                told = escape(printable(turn.text))
                err.print(f"[yellow]This was not answered, because the program ended:[/] {told}")
            lines = typed_lines(await _greet(conversation), out) if is_typed else piped_lines()
            return await converse(_Talk(conversation), lines, out, err, consent)
        finally:
            await assistant.close()

    failed = run(work())
    if failed and not sys.stdin.isatty():
        raise typer.Exit(1)


async def _greet(conversation: Conversation) -> list[str]:
    """Say where we are; what the person said before, for the arrow keys."""
    newest = await conversation.newest(_REMEMBERED_LINES)
    info = conversation.provider.info
    told = f"{len(newest)} messages so far" if newest else "a new session"
    line = f"{info.provider} ({info.id}) answers; {told}. `/help` lists the commands."
    out.print(f"[dim]{escape(printable(line))}[/]")
    return [message.content for message in newest if message.role == "user" and message.origin == "user"]
