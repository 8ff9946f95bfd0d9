"""`weft memory share` and `unshare`: let other people use a block, and take it back."""

from __future__ import annotations

from typing import Annotated

import typer

from weft.cli.blocks import permission_named
from weft.cli.options import out, safe
from weft.cli.stores import DEFAULT_AGENT, Agent, Label, with_store
from weft.errors import ConfigError, StoreError
from weft.memory.base import Store
from weft.types.person import agent_of, person_of

app = typer.Typer(add_completion=False)
Sharer = Annotated[
    str,
    typer.Argument(metavar="PERSON", help="A name as `weft people list` has it, CHANNEL:ID, or an agent."),
]


@app.command()
def share(
    label: Label,
    person: Sharer,
    permission: Annotated[str, typer.Option("--permission", help="What they may do with it.")] = "ReadOnly",
    agent: Agent = DEFAULT_AGENT,
) -> None:
    """Let another person, or another agent, use a block."""
    allowed = permission_named(permission)

    async def work(store: Store) -> tuple[str, bool]:
        other, is_known = await _agent_named(store, person)
        if other == agent:
            raise ConfigError(f"The block {label!r} belongs to {person!r} already: name somebody else.")
        await store.memory.share_block(agent, label, other, allowed, is_system=True)
        return other, is_known

    other, is_known = with_store(work)
    out.print(f"{safe(label)} is shared with {safe(person_of(other) or other)}: {allowed.value}.")
    if not is_known:
        out.print("[dim]No person is called that, so an agent of that name may use it.[/]")


@app.command()
def unshare(label: Label, person: Sharer, agent: Agent = DEFAULT_AGENT) -> None:
    """Take a share back."""

    async def work(store: Store) -> bool:
        other, _ = await _agent_named(store, person)
        # A share that was made before the person was known went to an agent of that name.
        ended = [await store.memory.unshare_block(agent, label, name) for name in {other, person}]
        return any(ended)

    if not with_store(work):
        raise StoreError(f"The block {label!r} is not shared with {person!r}.")
    out.print(f"{safe(label)} is no longer shared with {safe(person)}.")


async def _agent_named(store: Store, name: str) -> tuple[str, bool]:
    """Return the agent with the memory of a person, by their name or a sender of theirs.

    Another name is that of an agent. Returns also whether it is a person.
    """
    person = await store.people.find(name) if ":" in name else name
    is_known = ":" in name or person in {one.name for one in await store.people.list()}
    return agent_of(person) if is_known else name, is_known
