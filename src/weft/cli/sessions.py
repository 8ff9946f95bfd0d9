"""`weft sessions`: the conversations that are kept."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.markup import escape
from rich.table import Table

from weft.cli.memory import with_store
from weft.cli.options import AsJson, out, say, write
from weft.errors import StoreError
from weft.memory.base import Store
from weft.types.escape import printable
from weft.types.message import Message
from weft.types.session import Session
from weft.workspace.session_files import SessionFile, read_session, to_lines, to_miniclaw

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="List, read, export and import conversations, and begin new ones.",
)


@app.command("list")
def list_sessions(as_json: AsJson = False) -> None:
    """List conversations, the one last used first."""
    sessions = with_store(lambda store: store.sessions.list())
    if as_json:
        rows = [
            {
                "id": one.id,
                "channel": one.channel,
                "conversation": one.conversation,
                "sender": one.sender,
                "active_at": str(one.active_at),
                "closed": one.closed_at is not None,
            }
            for one in sessions
        ]
        typer.echo(json.dumps(rows, ensure_ascii=False))
        return
    table = Table(box=None, show_header=False, pad_edge=False)
    for one in sessions:
        who = escape(printable(f"{one.channel} {one.conversation} {one.sender}"))
        state = "[dim]closed[/]" if one.closed_at else "[green]open[/]"
        table.add_row(f"[bold]{escape(one.id)}[/]", who, f"{one.active_at:%Y-%m-%d %H:%M}", state)
    out.print(table if table.row_count else "There are no conversations yet.")


@app.command()
def show(
    session: Annotated[str, typer.Argument(metavar="ID")],
    last: Annotated[int, typer.Option("--last", min=1, help="Only so many messages.")] = 100,
    as_json: AsJson = False,
) -> None:
    """Print the newest messages of a conversation, oldest first."""

    async def work(store: Store) -> list[Message]:
        await store.sessions.get(session)
        return await store.messages.newest(session, last)

    messages = with_store(work)
    if as_json:
        typer.echo("[" + ", ".join(message.to_json() for message in messages) + "]")
        return
    say("\n\n".join(f"[{message.role}]\n{message.content}" for message in messages))


@app.command()
def new(
    channel: Annotated[str, typer.Option("--channel")] = "terminal",
    conversation: Annotated[str, typer.Option("--conversation")] = "main",
    sender: Annotated[str, typer.Option("--sender")] = "owner",
) -> None:
    """Begin a conversation anew, and print its id."""
    say(with_store(lambda store: store.sessions.new(channel, conversation, sender)).id)


@app.command()
def export(
    session: Annotated[str, typer.Argument(metavar="ID")],
    file: Annotated[str, typer.Argument(metavar="FILE", help="`-` is standard output.")] = "-",
    form: Annotated[
        Literal["weft", "miniclaw"],
        typer.Option("--format", help="All messages as JSON Lines, or miniclaw's file of the newest 50."),
    ] = "weft",
) -> None:
    """Write a conversation to a file that `weft sessions import` reads."""

    async def work(store: Store) -> tuple[Session, list[Message]]:
        return await store.sessions.get(session), await store.messages.all(session)

    held = with_store(work)
    text = (to_lines if form == "weft" else to_miniclaw)(*held)
    if file == "-":
        typer.echo(text, nl=False)
        return
    if Path(file).exists():
        raise StoreError(f"There is a file {file} already: name another one.")
    write(Path(file), text)


@app.command("import")
def import_sessions(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Files of Weft or of miniclaw.")],
) -> None:
    """Read conversations from files; one that is damaged is left as it is and named."""
    troubles = 0
    for file in files:
        try:
            session = read_session(_text(Path(file)), Path(file).stem)
            with_store(partial(_import, session))
            out.print(f"{escape(printable(session.id))}: {len(session.messages)} messages")
        except StoreError as error:
            typer.echo(f"weft: {printable(str(error))}", err=True)
            troubles += 1
    if troubles:
        raise typer.Exit(1)


async def _import(file: SessionFile, store: Store) -> None:
    if await store.sessions.find(file.id) is not None:
        raise StoreError(f"There is a session {file.id!r} already: nothing of it was imported.")
    session = await store.sessions.new(
        file.channel, file.conversation, file.sender, agent_id=file.agent_id, session_id=file.id
    )
    await store.messages.append(session.id, *file.messages)


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise StoreError(f"{file} cannot be read: {reason}.") from error
