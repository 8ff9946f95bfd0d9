"""`weft turns`: every request that was ever made, what was in it and why, and how it differs from another."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.table import Table

from weft.channels.terminal import show_receipt
from weft.channels.turn_views import cache_lines, diff_lines, item_rows, reason_line, replay_line
from weft.cli.options import AsJson, out, safe, say
from weft.cli.sessions import named_session
from weft.cli.stores import with_store
from weft.errors import UnknownName
from weft.memory.base import Store
from weft.turn.inspect import Reason, TurnView, compare, replays, summary_line, view, view_before, why
from weft.types.codec import dump_json, to_dict
from weft.types.escape import one_line
from weft.types.session import TurnInfo
from weft.wire.items import join

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Show the exact request of every turn, what was in it and why, and what changed.",
)
_TEXT_CHARS = 60
Number = Annotated[
    str, typer.Argument(metavar="N", help="The turn's number in its session, from 1, or its id.")
]
InSession = Annotated[
    str | None, typer.Option("--session", "-s", metavar="ID", help="Another session than the newest.")
]


@app.command("list")
def list_turns(
    session: InSession = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Only so many, the newest.")] = 100,
    as_json: AsJson = False,
) -> None:
    """List the turns of a session, the oldest first."""

    async def work(store: Store) -> list[TurnView]:
        infos = await store.turns.page(await _session_id(store, session), limit=limit)
        return [await view(store, info) for info in reversed(infos)]

    turns = with_store(work)
    if as_json:
        typer.echo(dump_json([{**to_dict(one.info), "about": summary_line(one)} for one in turns]))
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("n", "when", "same bytes", "what", "message"):
        table.add_column(name, no_wrap=name != "message")
    for one in turns:
        when = f"{one.info.at:%Y-%m-%d %H:%M}" if one.info.at else ""
        share = f"{one.requests[0].share:.0%}" if one.requests else "-"
        text = safe(one_line(one.info.text)[:_TEXT_CHARS])
        table.add_row(str(one.info.number), when, share, safe(summary_line(one)), text)
    out.print(table if turns else "Nothing was answered in this session yet.")


@app.command()
def show(
    turn: Number,
    session: InSession = None,
    request: Annotated[
        bool, typer.Option("--request", help="Print its requests as they were sent, as a JSON list.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show what the model saw: every item with its tokens and origin, what was left out, what was cached."""
    one = with_store(lambda store: _view(store, turn, session))
    if request:
        _ = one.first
        payloads = [join(stored.request) for stored in one.requests]
        say(json.dumps(payloads, ensure_ascii=False, indent=2))
        return
    if as_json:
        typer.echo(
            dump_json({**to_dict(one.info), "receipt": to_dict(one.receipt), "cache": cache_lines(one)})
        )
        return
    out.print(f"turn {one.info.number} of session {safe(one.info.session_id)}: {safe(one.info.state)}")
    if one.receipt is None:
        out.print(safe(one.info.error))
        return
    show_receipt(one.receipt, out)
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("layer", "item", "tokens", "origin", "zone", "why"):
        table.add_column(name, justify="right" if name == "tokens" else "left")
    for row in item_rows(one.receipt):
        table.add_row(*map(safe, row))
    out.print(table)
    for line in cache_lines(one):
        out.print(f"[dim]{safe(line)}[/]", soft_wrap=True)


@app.command()
def diff(
    turn: Number,
    other: Annotated[
        str | None, typer.Argument(metavar="[M]", help="Compare with this turn; else with the one before.")
    ] = None,
    session: InSession = None,
    as_json: AsJson = False,
) -> None:
    """Show how a turn's request differs from another: the first byte, what changed it, and the text."""

    async def work(store: Store) -> tuple[TurnView, TurnView]:
        after = await _view(store, turn, session)
        before = await (view_before(store, after.info) if other is None else _view(store, other, session))
        if before is None:
            raise UnknownName(
                f"There is no turn before turn {after.info.number}: nothing to compare it with."
            )
        return before, after

    before, after = with_store(work)
    found = compare(before, after)
    if as_json:
        typer.echo(dump_json({"before": before.info.number, "after": after.info.number, **to_dict(found)}))
        return
    for line in diff_lines(before.info, after.info, found):
        say(line)


@app.command()
def replay(turn: Number, session: InSession = None, as_json: AsJson = False) -> None:
    """Put the requests of a turn together again, and prove that they have the bytes that were sent."""
    one = with_store(lambda store: _view(store, turn, session))
    made = list(replays(one))
    if as_json:
        typer.echo(dump_json(to_dict(made)))
    else:
        for each in made:
            say(replay_line(each))
    if not all(each.equal for each in made):
        raise typer.Exit(1)


@app.command("why")
def why_shown(
    turn: Number,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="Words of a memory, fact, message or skill.")],
    session: InSession = None,
    as_json: AsJson = False,
) -> None:
    """Say whether the model saw something in a turn, and why or why not."""

    async def work(store: Store) -> tuple[TurnView, list[Reason]]:
        one = await _view(store, turn, session)
        return one, await why(store, one, text)

    one, reasons = with_store(work)
    if as_json:
        typer.echo(dump_json(to_dict(reasons)))
        return
    for reason in reasons:
        say(reason_line(reason))
    if not reasons:
        say(f"Nothing in turn {one.info.number} has {text!r} in it, shown or left out.")


async def _session_id(store: Store, name: str | None) -> str:
    if name is not None:
        return (await named_session(store, name)).id
    newest = await store.sessions.list(limit=1)
    if not newest:
        raise UnknownName("There are no conversations yet: `weft chat` begins one.")
    return newest[0].id


async def _view(store: Store, turn: str, session: str | None) -> TurnView:
    """Read a turn by its number in a session, or by its id.

    Raises:
        UnknownName: there is none.
    """
    info: TurnInfo | None = None
    if turn.isdecimal() and len(turn) <= 9:
        session_id = await _session_id(store, session)
        info = await store.turns.find_info(session_id, int(turn))
        if info is None:
            count = next((one.number for one in await store.turns.page(session_id, limit=1)), 0)
            what = f"it has {count}" if count else "nothing was answered there yet"
            raise UnknownName(f"There is no turn {turn} in session {session_id}: {what}.")
    else:
        info = await store.turns.number(turn)
    if info is None:
        raise UnknownName(f"There is no turn {turn!r}: `weft turns list` shows them.")
    return await view(store, info)
