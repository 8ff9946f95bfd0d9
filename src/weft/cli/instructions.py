"""`weft instructions`: what the assistant is told to always do, by hand and without a model."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from weft.cli.options import PERSON, AsJson, out, safe
from weft.cli.stores import with_store
from weft.errors import ConfigError, UnknownName, did_you_mean
from weft.gateway.sanitize import clean
from weft.memory.base import Store
from weft.store.instruction_limits import split_by_limits
from weft.types.escape import one_line
from weft.types.instruction import StandingInstruction

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="List, add and remove what the assistant is told to always do.",
)

Person = Annotated[
    str, typer.Option("--person", metavar="PERSON", help="A name, `owner`, or CHANNEL:ID as in telegram:42.")
]
DEFAULT_PERSON = PERSON.sender


@app.command("list")
def list_instructions(person: Person = DEFAULT_PERSON, as_json: AsJson = False) -> None:
    """List what the assistant is told to always do, the oldest first."""

    async def work(store: Store) -> list[StandingInstruction]:
        await _check_person(store, person)
        return list(await store.instructions.list(person))

    every = with_store(work)
    withheld = {one.id for one in split_by_limits(every)[1]}
    if as_json:
        rows = [
            {
                "number": number,
                "id": one.id,
                "text": one.text,
                "pinned": one.pinned,
                "shown": one.id not in withheld,
                "since": None if one.created_at is None else one.created_at.isoformat(),
                "session": one.session_id or None,
                "message": one.message,
            }
            for number, one in enumerate(every, 1)
        ]
        typer.echo(json.dumps(rows, ensure_ascii=False))
        return
    for number, one in enumerate(every, 1):
        day = f"{one.created_at.astimezone():%Y-%m-%d}" if one.created_at else ""
        how = "pinned" if one.pinned else "recognized, not shown" if one.id in withheld else "recognized"
        out.print(
            f"{number:>3}  {safe(one_line(one.text))}  [dim]{how} {day} {one.id[:8]}[/]", soft_wrap=True
        )
    if not every:
        out.print("There are none yet: `weft instructions add TEXT` adds one.")


@app.command()
def add(text: Annotated[str, typer.Argument(metavar="TEXT")], person: Person = DEFAULT_PERSON) -> None:
    """Add an instruction that every conversation of the person shows: a pinned one."""
    if not text.strip():
        raise ConfigError("The instruction is empty: say what to do from now on.")

    async def work(store: Store) -> StandingInstruction:
        await _check_person(store, person)
        return await store.instructions.add(person, clean(text).text, pinned=True)

    added = with_store(work)
    out.print(f"From now on: {safe(one_line(added.text))}  [dim]{added.id[:8]}[/]", soft_wrap=True)


@app.command()
def remove(
    which: Annotated[str, typer.Argument(metavar="NUMBER|ID", help="As `weft instructions list` shows it.")],
    person: Person = DEFAULT_PERSON,
) -> None:
    """Remove an instruction by its number, or by the start of its id."""

    async def work(store: Store) -> StandingInstruction:
        await _check_person(store, person)
        return await store.instructions.remove(person, which)

    removed = with_store(work)
    out.print(f"Removed: {safe(one_line(removed.text))}", soft_wrap=True)


async def _check_person(store: Store, person: str) -> None:
    """Raise UnknownName for a name that nobody has. A sender may not have written yet."""
    people = await store.people.list()
    known = {name for one in people for name in (one.name, *one.senders)}
    if person not in known and ":" not in person:
        raise UnknownName(f"Nobody is called {person!r}: {did_you_mean(person, known)}")
