"""`weft turns`: every request that was ever made, what was in it and why, and how it differs from another."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from weft.channels.terminal import show_receipt
from weft.channels.turn_views import cache_lines, diff_lines, item_rows, reason_line, replay_line
from weft.cli.options import AsJson, out, refuse_empty, safe, say
from weft.cli.sessions import named_session
from weft.cli.stores import with_store
from weft.errors import ConfigError, UnknownName
from weft.memory.base import Store
from weft.turn.inspect import Reason, TurnView, compare, replays, summary_line, view, view_before, why
from weft.types.codec import dump_json, to_dict
from weft.types.escape import one_line, printable
from weft.types.receipt import MOST_NAMED
from weft.types.session import TurnInfo
from weft.wire.items import join

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Show the exact request of every turn, what was in it and why, and what changed.",
)
_TEXT_CHARS = 60
_MIN_PREFIX, _LISTED_CHARS, _LISTED = 4, 8, 5
_MOST_DIGITS = 9
"""A longer number is an id."""
_GAP, _NARROW, _UNCUT = "  ", 80, 4
"""Below the width `_NARROW` a list has shorter heads and times. Its first `_UNCUT` columns are never cut."""
Number = Annotated[
    str,
    typer.Argument(metavar="N", help="Its number in its session, from 1, or the first characters of its id."),
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
    if not turns:
        out.print("Nothing was answered in this session yet.")
        return
    lines = _lines(_listed(turns, out.width), out.width)
    lines[0].stylize("dim")
    out.print(Text("\n").join(lines), no_wrap=True, overflow="crop")


@app.command()
def show(
    turn: Number,
    session: InSession = None,
    request: Annotated[
        bool, typer.Option("--request", help="Print its requests as they were sent, as a JSON list.")
    ] = False,
    every: Annotated[bool, typer.Option("--all", help="Name everything that was left out.")] = False,
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
    name = f"turn {one.info.number} ({safe(one.info.id)}) of session {safe(one.info.session_id)}"
    out.print(f"{name}: {safe(one.info.state)}", soft_wrap=True)
    if one.receipt is None:
        out.print(safe(one.info.error))
        return
    show_receipt(one.receipt, out, most=None if every else MOST_NAMED)
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
    text: Annotated[
        str,
        typer.Argument(
            metavar="TEXT", help="Words of a memory, fact, message or skill.", callback=refuse_empty
        ),
    ],
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


def _listed(turns: Sequence[TurnView], width: int) -> Sequence[Sequence[str]]:
    """Return the rows of a list of turns, its heads first."""
    ids = [one.info.id for one in turns]
    chars = _LISTED_CHARS
    while len({name[:chars] for name in ids}) < len(ids):
        chars += 1
    head, time = ("same bytes", "%Y-%m-%d %H:%M") if width >= _NARROW else ("same", "%m-%d %H:%M")
    rows: list[Sequence[str]] = [("n", "id", "when", head, "what", "message")]
    for one in turns:
        when = one.info.at.strftime(time) if one.info.at else ""
        share = f"{one.requests[0].share:.0%}" if one.requests else "-"
        texts = (summary_line(one), one.info.text[:_TEXT_CHARS])
        rows.append((str(one.info.number), one.info.id[:chars], when, share, *map(_plain, texts)))
    return rows


def _plain(text: str) -> str:
    return printable(one_line(text))


def _lines(rows: Sequence[Sequence[str]], width: int) -> list[Text]:
    """Lay rows out, one line each. The last two columns are cut to what fits, the others are never cut."""
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    room = max(width - sum(widths[:_UNCUT]) - len(_GAP) * (len(widths) - 1), 2)
    widths[-1] = min(widths[-1], max(room - room // 2, room - widths[-2]))
    widths[-2] = min(widths[-2], room - widths[-1])
    lines = []
    for row in rows:
        cells = [Text(cell) for cell in row]
        for number, (cell, cells_wide) in enumerate(zip(cells, widths, strict=True), 1):
            cell.truncate(cells_wide, overflow="ellipsis", pad=number < len(cells))
        lines.append(Text(_GAP).join(cells))
    return lines


async def _session_id(store: Store, name: str | None) -> str:
    return (await named_session(store, name)).id


async def _view(store: Store, turn: str, session: str | None) -> TurnView:
    """Read a turn by its number in a session, or by its id or the only id that begins so.

    Raises:
        ConfigError: several turns have such an id, or the turn is one of another session than the named one.
        UnknownName: there is none.
    """
    is_number = turn.isdecimal() and len(turn) <= _MOST_DIGITS
    session_id = await _session_id(store, session) if is_number or session is not None else None
    if is_number and session_id is not None:
        info = await store.turns.find_info(session_id, int(turn))
        if info is not None:
            return await view(store, info)
    info = await store.turns.number(turn) or await _with_prefix(store, turn, session_id)
    if info is None and is_number and session_id is not None:
        count = next((one.number for one in await store.turns.page(session_id, limit=1)), 0)
        what = f"it has {count}" if count else "nothing was answered there yet"
        raise UnknownName(f"There is no turn {turn} in session {session_id}: {what}.")
    if info is None:
        raise UnknownName(f"There is no turn {turn!r}: `weft turns list` shows them.")
    if session is not None and info.session_id != session_id:
        raise ConfigError(
            f"The turn {info.id} is one of session {info.session_id}, not of {session_id}: leave `-s` out."
        )
    return await view(store, info)


async def _with_prefix(store: Store, prefix: str, session_id: str | None) -> TurnInfo | None:
    """Return the only turn with an id that begins so, of the named session rather than of another one.

    Raises:
        ConfigError: there are several.
    """
    if len(prefix) < _MIN_PREFIX:
        return None
    limit = _LISTED + 1
    turns = await store.turns.find_prefix(prefix, session_id=session_id, limit=limit)
    turns = turns or await store.turns.find_prefix(prefix, limit=limit)
    if len(turns) > 1:
        ids = ", ".join(one.id for one in turns[:_LISTED]) + ", ..." * (len(turns) > _LISTED)
        raise ConfigError(f"Several turns begin with {prefix!r}: write more of the one that you mean, {ids}.")
    return next(iter(turns), None)
