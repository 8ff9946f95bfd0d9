"""`weft pair`: let somebody in who was turned away with a code."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import Annotated

import typer

from weft.cli.options import AsJson, out, safe
from weft.cli.stores import with_store
from weft.types.escape import printable
from weft.types.person import OWNER_NAME

app = typer.Typer(add_completion=False)


@app.command()
def pair(
    code: Annotated[str, typer.Argument(metavar="CODE", help="The code that the person was given.")] = "",
    remove: Annotated[
        str, typer.Option("--remove", metavar="CHANNEL:SENDER", help="Let somebody in no longer.")
    ] = "",
    me: Annotated[
        bool | None, typer.Option("--me/--not-me", help="Whether this is your own account, with your memory.")
    ] = None,
    denied: Annotated[bool, typer.Option("--denied", help="List who was turned away.")] = False,
    as_json: AsJson = False,
) -> None:
    """Let in the person who was given this code; without a code, list who is in."""
    if denied:
        _show_denied(as_json=as_json)
    elif remove:
        channel, _, sender = remove.partition(":")
        gone = with_store(lambda store: store.auth.unpair(channel, sender))
        out.print(f"{remove} may come in no longer." if gone else f"{remove} was not in.")
    elif code:
        paired = with_store(lambda store: store.auth.confirm_pairing(code))
        sender = f"{paired.channel}:{paired.sender}"
        out.print(f"{safe(sender)} may come in.")
        if me is None and sys.stdin.isatty():
            me = typer.confirm("Is this your own account? Then it shares your memory", default=False)
        if me:
            with_store(lambda store: store.people.link(sender, OWNER_NAME))
            out.print(f"{safe(sender)} is you: facts, memory, recall and tasks are the same everywhere.")
        elif me is None:
            out.print(f"[dim]If this is you: weft people link {safe(sender)} owner[/]")
    else:
        known = with_store(lambda store: store.auth.list_paired())
        if as_json:
            typer.echo(json.dumps([asdict(one) for one in known], ensure_ascii=False))
            return
        lines = [f"{one.channel}:{one.sender}" for one in known]
        out.print("\n".join(lines) or "Nobody was let in yet.")


def _show_denied(*, as_json: bool) -> None:
    rows = with_store(lambda store: store.auth.list_denied())
    if as_json:
        typer.echo(json.dumps([asdict(row) for row in rows], ensure_ascii=False, default=str))
        return
    for row in rows:
        times = "once" if row.count == 1 else f"{row.count} times"
        at = f"{row.last_at.astimezone():%Y-%m-%d %H:%M}"
        out.print(printable(f"{row.channel}:{row.sender} {times}, last {at}: {row.why}"), markup=False)
    if not rows:
        out.print("Nobody was turned away.")
