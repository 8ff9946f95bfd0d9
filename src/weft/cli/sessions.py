"""`weft sessions`: the conversations that are kept."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from weft.app import Store
from weft.cli.memory import with_store
from weft.cli.options import AsJson, out, say
from weft.types.message import Message
from weft.types.neutral import printable

app = typer.Typer(no_args_is_help=True, help="List and read conversations, and begin new ones.")


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
