"""`weft people`: who writes to the assistant, and which senders are one human."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated

import typer

from weft.cli.options import AsJson, out, safe
from weft.cli.stores import with_store
from weft.errors import ConfigError
from weft.memory.base import Store
from weft.types.memory import Fact
from weft.types.person import OWNER_NAME, Person
from weft.types.plural import counted

app = typer.Typer(add_completion=False, no_args_is_help=True)
Sender = Annotated[str, typer.Argument(metavar="SENDER", help="CHANNEL:ID, such as telegram:123.")]
Name = Annotated[str, typer.Argument(metavar="PERSON", help="A person's name; `owner` is you.")]


@app.callback()
def people() -> None:
    """See who writes to the assistant, and make several senders one person."""


@app.command("list")
def list_people(as_json: AsJson = False) -> None:
    """List everybody who is known, with the senders that they write as."""

    async def work(store: Store) -> tuple[list[Person], dict[str, int]]:
        people = await store.people.list()
        counts = {
            person.name: len(await store.facts.list(person.senders[0])) for person in people if person.senders
        }
        return people, counts

    people, counts = with_store(work)
    if as_json:
        rows = [
            {"name": person.name, "senders": person.senders, "facts": counts.get(person.name, 0)}
            for person in people
        ]
        typer.echo(json.dumps(rows, ensure_ascii=False))
        return
    for person in people:
        is_owner = " [dim](you)[/]" if person.name == OWNER_NAME else ""
        senders = ", ".join(person.senders) or "has not written yet"
        facts = counted(counts.get(person.name, 0), "fact")
        line = f"[bold]{safe(person.name)}[/]{is_owner}  {safe(senders)}  [dim]{facts}[/]"
        out.print(line, soft_wrap=True, emoji=False)


@app.command()
def link(sender: Sender, person: Name) -> None:
    """Make a sender one of a person's own: they share facts, memory, recall and tasks from now on."""
    facts = with_store(lambda store: store.people.link(sender, person))
    out.print(f"{safe(sender)} is {safe(person)} now, with all that is known about both.", soft_wrap=True)
    _show_disagreeing(facts)


@app.command()
def unlink(sender: Sender) -> None:
    """Make a sender a person of their own again. What was learned stays with the person."""
    if with_store(lambda store: store.people.unlink(sender)):
        out.print(f"{safe(sender)} is a person of their own again.", soft_wrap=True)
        return
    raise ConfigError(f"{sender!r} is not linked to anybody: `weft people list` shows who is.")


@app.command()
def rename(person: Name, name: Annotated[str, typer.Argument(metavar="NAME", help="The new name.")]) -> None:
    """Give a person another name."""
    with_store(lambda store: store.people.rename(person, name))
    out.print(f"{safe(person)} is called {safe(name)} now.", soft_wrap=True)


def _show_disagreeing(facts: Sequence[Fact]) -> None:
    if not facts:
        return
    out.print("These facts disagree. All are kept, and the newest stands first:")
    for fact in facts:
        when = f"{fact.created_at:%Y-%m-%d}" if fact.created_at else "some time ago"
        out.print(f"  {safe(fact.key)}: {safe(fact.value)}  [dim]{when}[/]", soft_wrap=True)
    out.print("[dim]`weft memory facts` and `/forget KEY` settle them; so does telling the assistant.[/]")
