"""`weft token`: tokens for programs that ask over HTTP, each for one person."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from weft.cli.options import AsJson, out, safe, settings
from weft.cli.stores import with_store
from weft.errors import ConfigError, UnknownName, did_you_mean
from weft.memory.base import Store
from weft.types.delivery import AccessToken

app = typer.Typer(add_completion=False, no_args_is_help=True)
Person = Annotated[
    str, typer.Argument(metavar="PERSON", help="Who it speaks for: a name, CHANNEL:ID, or `owner`.")
]


@app.callback()
def token() -> None:
    """Make and revoke tokens for the server. Once there is one, every request needs one."""


@app.command()
def add(
    person: Person,
    name: Annotated[
        str, typer.Option("--name", metavar="NAME", help="What it is for; the person's name without it.")
    ] = "",
) -> None:
    """Make a token that speaks for a person, and print it. It is shown only this once."""

    async def work(store: Store) -> tuple[str, str]:
        whom, sender = await store.people.join(person, "http")
        called = name.strip() or whom
        if called in {one.name for one in await store.auth.list_tokens()}:
            raise ConfigError(f"There is a token {called!r} already: revoke it, or give this one a --name.")
        return whom, await store.auth.create_token(called, sender)

    whom, secret = with_store(work)
    typer.echo(secret)
    if sys.stdout.isatty():
        out.print(f"[dim]It speaks for {safe(whom)} and nobody else. Weft keeps only a hash of it.[/]")


@app.command("list")
def list_tokens(as_json: AsJson = False) -> None:
    """List the tokens, without their secrets."""

    async def work(store: Store) -> list[tuple[AccessToken, str]]:
        return [
            (one, await store.people.find(f"http:{one.sender}")) for one in await store.auth.list_tokens()
        ]

    tokens = with_store(work)
    if as_json:
        rows = [{"name": one.name, "person": who, "created_at": str(one.created_at)} for one, who in tokens]
        typer.echo(json.dumps(rows, ensure_ascii=False))
        return
    for one, who in tokens:
        since = f"{one.created_at.astimezone():%Y-%m-%d %H:%M}"
        out.print(f"[bold]{safe(one.name)}[/]  for {safe(who)}  [dim]since {since}[/]", soft_wrap=True)
    if not tokens:
        out.print("There are no tokens: on this machine, whoever asks the server is you.")


@app.command()
def revoke(
    name: Annotated[str, typer.Argument(metavar="NAME", help="As `weft token list` shows it.")],
) -> None:
    """Revoke a token: programs that use it are refused from now on."""

    async def work(store: Store) -> bool:
        is_known = await store.auth.revoke_token(name)
        names = [one.name for one in await store.auth.list_tokens()]
        if not is_known:
            raise UnknownName(f"There is no token {name!r}: {did_you_mean(name, names)}")
        return bool(names)

    are_more = with_store(work)
    out.print(f"The token {safe(name)} is revoked.")
    if not are_more and not settings().http.token:
        out.print("It was the last one: on this machine, whoever asks the server is you again.")
