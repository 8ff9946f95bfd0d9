"""`weft sessions`: the conversations that are kept."""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.markup import escape
from rich.table import Table

from weft.cli.options import CONVERSATION, PERSON, AsJson, Yes, confirm_loss, out, safe, say, write
from weft.cli.stores import with_store
from weft.errors import ConfigError, StoreError, WrongPath
from weft.memory.base import Store
from weft.types.escape import one_line, printable
from weft.types.message import Message
from weft.types.plural import counted
from weft.types.session import IMPORTED, Fold, Session
from weft.workspace.session_files import SessionFile, read_session, to_chai, to_lines, to_miniclaw

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="List, read, rename, delete, export and import conversations, and begin new ones.",
)
Id = Annotated[str, typer.Argument(metavar="ID", help="An id, or the first characters of one.")]
IdOrNewest = Annotated[
    str | None,
    typer.Argument(metavar="[ID]", help="An id, or its first characters; the newest without one."),
]
_MIN_PREFIX, _LISTED, _TITLE_CHARS, _ALL = 4, 5, 60, 10**9


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
                "title": one.title,
                "created_at": str(one.created_at),
                "active_at": str(one.active_at),
                "closed": one.closed_at is not None,
            }
            for one in sessions
        ]
        typer.echo(json.dumps(rows, ensure_ascii=False))
        return
    table = Table(box=None, show_header=False, pad_edge=False)
    for one in sessions:
        who = safe(f"{one.channel} {one.conversation} {one.sender}")
        state = "[dim]closed[/]" if one.closed_at else "[green]open[/]"
        title = safe(one_line(one.title)[:_TITLE_CHARS])
        table.add_row(f"[bold]{safe(one.id)}[/]", f"{one.active_at:%Y-%m-%d %H:%M}", state, who, title)
    out.print(table if table.row_count else "There are no conversations yet.")


async def named_session(store: Store, name: str | None) -> Session:
    """Return the session with an id, or with the only id that begins so; the newest one without a name.

    Raises:
        ConfigError: there is none, or several.
    """
    if name is None:
        newest = await store.sessions.list(limit=1)
        if not newest:
            raise ConfigError("There are no conversations yet: `weft chat` begins one.")
        return newest[0]
    if (session := await store.sessions.find(name)) is not None:
        return session
    if len(name) < _MIN_PREFIX:
        raise ConfigError(
            f"There is no session {name!r}: write at least {_MIN_PREFIX} characters of an id, "
            "as `weft sessions list` shows them."
        )
    sessions = await store.sessions.list(prefix=name, limit=_LISTED + 1)
    if not sessions:
        raise ConfigError(f"There is no session {name!r}: `weft sessions list` shows them.")
    if len(sessions) > 1:
        ids = ", ".join(one.id for one in sessions[:_LISTED]) + ", ..." * (len(sessions) > _LISTED)
        raise ConfigError(
            f"Several sessions begin with {name!r}: write more of the one that you mean, {ids}."
        )
    return sessions[0]


@app.command()
def show(
    session: Id,
    last: Annotated[int, typer.Option("--last", min=1, help="Only so many messages.")] = 100,
    as_json: AsJson = False,
) -> None:
    """Print the newest messages of a conversation, oldest first."""

    async def work(store: Store) -> list[Message]:
        return await store.messages.newest((await named_session(store, session)).id, last)

    messages = with_store(work)
    if as_json:
        typer.echo("[" + ", ".join(message.to_json() for message in messages) + "]")
        return
    say("\n\n".join(f"[{message.role}]\n{message.content}" for message in messages))


@app.command()
def rename(
    session: Id,
    title: Annotated[
        str, typer.Argument(metavar="TITLE", help="An empty one is made from the first message.")
    ],
) -> None:
    """Give a conversation a title."""

    async def work(store: Store) -> None:
        await store.sessions.rename((await named_session(store, session)).id, one_line(title))

    with_store(work)


@app.command()
def folds(session: IdOrNewest = None, as_json: AsJson = False) -> None:
    """List the summaries that stand for older parts of a conversation, with what they saved and cost."""

    async def work(store: Store) -> list[Fold]:
        return await store.messages.list_folds((await named_session(store, session)).id)

    rows = with_store(work)
    if as_json:
        typer.echo(json.dumps([asdict(fold) for fold in rows], ensure_ascii=False, default=str))
        return
    for fold in rows:
        state = f", opened again {fold.removed_at:%Y-%m-%d %H:%M}" if fold.removed_at else ""
        cost = f"{fold.input_tokens:,} tokens read, {fold.cached_tokens:,} from the cache"
        made = f"{fold.at:%Y-%m-%d %H:%M} by {fold.model or 'no model'}" if fold.at else ""
        say(
            f"messages 1-{fold.last}: {fold.tokens_before:,} tokens became {fold.tokens_after:,} "
            f"({made}, {cost}{state})\n  {one_line(fold.text)}"
        )
    if not rows:
        out.print("Nothing of this conversation is folded.")


@app.command()
def unfold(session: IdOrNewest = None) -> None:
    """Open all folds of a conversation again: its messages are shown as far as there is room."""

    async def work(store: Store) -> tuple[str, int]:
        opened = (await named_session(store, session)).id
        return opened, await store.messages.remove_folds(opened)

    name, number = with_store(work)
    if number:
        say(
            f"Opened {counted(number, 'fold')} of {name}. The next turn shows its messages word for word, as "
            "far as there is room; what has none is out of view until it is summarized again."
        )
    else:
        out.print("Nothing of this conversation is folded.")


@app.command()
def delete(session: Id, yes: Yes = False) -> None:
    """Delete a conversation for good: its messages, their receipts, its summary and the index."""
    one = with_store(lambda store: named_session(store, session))
    title = one_line(one.title)[:_TITLE_CHARS] or "without a title"
    confirm_loss(f"Delete the conversation {one.id} ({title}) for good?", yes=yes)
    messages = with_store(lambda store: store.sessions.delete(one.id))
    out.print(f"Deleted, with {counted(messages, 'message')}.")


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
    session: Id,
    file: Annotated[str, typer.Argument(metavar="FILE", help="`-` is standard output.")] = "-",
    form: Annotated[
        Literal["weft", "miniclaw", "chai"],
        typer.Option("--format", help="JSON Lines, miniclaw's file of the newest 50, or Chai's file."),
    ] = "weft",
) -> None:
    """Write a conversation to a file that `weft sessions import` reads."""

    async def work(store: Store) -> tuple[Session, list[Message]]:
        one = await named_session(store, session)
        return one, await store.messages.all(one.id)

    held = with_store(work)
    text = {"weft": to_lines, "miniclaw": to_miniclaw, "chai": to_chai}[form](*held)
    if file == "-":
        typer.echo(text, nl=False)
        return
    if Path(file).exists():
        raise WrongPath(f"There is a file {file} already: name another one.")
    write(Path(file), text)


@app.command("import")
def import_sessions(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Files of Weft, miniclaw or Chai.")],
) -> None:
    """Read conversations from files; one that is damaged is left as it is and named.

    They are yours to read and to continue by their ids. What a file says about its channel and its sender
    counts for nothing, and its system messages become notes.
    """
    codes: list[int] = []
    for file in files:
        try:
            session = read_session(_text(Path(file)), Path(file).stem)
            session_id = with_store(partial(_import, session))
            out.print(f"{escape(printable(session_id))}: {counted(len(session.messages), 'message')}")
            for note in session.notes:
                typer.echo(f"weft: {printable(note)}", err=True)
        except StoreError as error:
            typer.echo(f"weft: {printable(str(error))}", err=True)
            codes.append(error.exit_code)
    if codes:
        raise typer.Exit(min(codes))  # the call was wrong only if all these files were


async def _import(file: SessionFile, store: Store) -> str:
    """Store a conversation as one of the owner's that no channel leads to. Returns the id of its session.

    An id that is the name of a conversation already would lead that conversation's messages here.
    """
    existing = await store.sessions.find(file.id)
    if existing is not None and existing.channel == IMPORTED:
        raise StoreError(f"There is a session {file.id!r} already: nothing of it was imported.")
    names = {session.conversation for session in await store.sessions.list(limit=_ALL)} | {CONVERSATION}
    session_id = f"{IMPORTED}-{file.id}" if file.id in names else file.id
    place = (IMPORTED, f"{file.channel}:{file.conversation}", PERSON.sender_id)
    session = await store.sessions.new(*place, agent_id=PERSON.agent_id, session_id=session_id)
    await store.messages.append(session.id, *file.messages)
    return session.id


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise WrongPath(f"{file} cannot be read: {reason}.") from error
