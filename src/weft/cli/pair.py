"""`weft pair`: let somebody in who was turned away with a code."""

from __future__ import annotations

from typing import Annotated

import typer

from weft.cli.memory import with_store
from weft.cli.options import out

app = typer.Typer()


@app.command()
def pair(
    code: Annotated[str, typer.Argument(metavar="CODE", help="The code that the person was given.")] = "",
    remove: Annotated[
        str, typer.Option("--remove", metavar="CHANNEL:SENDER", help="Let somebody in no longer.")
    ] = "",
) -> None:
    """Let in the person who was given this code; without a code, list who is in."""
    if remove:
        channel, _, sender = remove.partition(":")
        gone = with_store(lambda store: store.auth.unpair(channel, sender))
        out.print(f"{remove} may come in no longer." if gone else f"{remove} was not in.")
    elif code:
        paired = with_store(lambda store: store.auth.confirm_pairing(code))
        out.print(f"{paired.channel}:{paired.sender} may come in.")
    else:
        known = with_store(lambda store: store.auth.paired())
        lines = [f"{one.channel}:{one.sender}" for one in known]
        out.print("\n".join(lines) or "Nobody was let in yet.")
