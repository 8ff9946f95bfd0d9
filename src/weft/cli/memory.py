"""`weft memory`: what agents remember, and its history."""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Sequence
from difflib import unified_diff
from functools import partial
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from weft.cli import blocks, sharing
from weft.cli.editor import edited
from weft.cli.options import PERSON, AsJson, Yes, confirm_loss, err, out, read_stdin, refuse_empty, safe, say
from weft.cli.stores import DEFAULT_AGENT, Agent, Label, with_store
from weft.errors import ConfigError, StoreError, UnknownName
from weft.memory.audit import secrets_of
from weft.memory.base import Store
from weft.types.escape import printable
from weft.types.memory import BlockType, RenderedBlock, Share
from weft.types.person import person_of
from weft.types.plural import counted
from weft.types.search import MemorySearchResult, SearchMode, SearchOptions
from weft.types.secret import fingerprint, masked

NOT_PURGED = (
    "Not overwritten are files outside of the database: backups{newest}, folders that `weft export` wrote, "
    "session files, logs, and your workspace. Delete or mend those that have the text. For a day the text is "
    "masked wherever something would write it back."
)
app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="See and change what agents remember, with all its history.",
)
app.registered_commands += [*blocks.app.registered_commands, *sharing.app.registered_commands]
Words = Annotated[str, typer.Argument(metavar="TEXT")]
Version = Annotated[int, typer.Argument(metavar="VERSION", help="As `weft memory history` lists it.")]
Person = Annotated[str, typer.Argument(metavar="PERSON", help="`channel:sender`, as in `telegram:42`.")]
_OWNER = f"{PERSON.channel}:{PERSON.sender_id}"
Mode = Annotated[SearchMode, typer.Option("--mode", help="By words, by meaning, or by both.")]


@app.command("list")
def list_blocks(agent: Agent = DEFAULT_AGENT, as_json: AsJson = False) -> None:
    """List the blocks of an agent, and those shared with it."""

    async def work(store: Store) -> tuple[Sequence[RenderedBlock], Sequence[Share]]:
        return await store.memory.rendered_blocks(agent), await store.memory.list_shares(agent)

    blocks, shares = with_store(work)
    readers = defaultdict[str, dict[str, str]](dict)
    for share in shares:
        readers[share.label][person_of(share.agent_id) or share.agent_id] = share.permission.value
    if as_json:
        rows = [
            {
                "label": block.label,
                "type": block.block_type,
                "permission": block.permission,
                "pinned": block.pinned,
                "shared_from": block.shared_from,
                "shared_with": {} if block.shared_from else readers[block.label],
                "characters": len(block.content),
            }
            for block in blocks
        ]
        typer.echo(json.dumps(rows, ensure_ascii=False))
        return
    table = Table(box=None, show_header=False, pad_edge=False)
    for block in blocks:
        marks = ", ".join(filter(None, (block.block_type, block.permission, "pinned" * block.pinned)))
        whose = f"from {person_of(block.shared_from) or block.shared_from}" if block.shared_from else ""
        if not block.shared_from and readers[block.label]:
            with_whom = ", ".join(f"{name} ({right})" for name, right in readers[block.label].items())
            whose = f"shared with {with_whom}"
        table.add_row(
            f"[bold]{safe(block.label)}[/]", marks, f"{len(block.content):,} characters", safe(whose)
        )
    out.print(
        table if table.row_count else "There are no blocks yet: `weft memory edit LABEL TEXT` makes one."
    )


@app.command()
def show(label: Label, agent: Agent = DEFAULT_AGENT) -> None:
    """Print a block."""
    text = with_store(lambda store: store.memory.get_rendered_content(agent, label))
    if text is None:
        raise _unknown(label, agent)
    say(text)


@app.command()
def edit(
    label: Label,
    text: Annotated[
        str | None,
        typer.Argument(metavar="TEXT", help="`-` reads standard input; without it your editor opens."),
    ] = None,
    agent: Agent = DEFAULT_AGENT,
    kind: Annotated[BlockType, typer.Option("--type", help="For a new block.")] = BlockType.WORKING,
    base: Annotated[
        str | None,
        typer.Option(
            "--base", metavar="VERSION", help="The version that TEXT is a change of; later changes stay."
        ),
    ] = None,
) -> None:
    """Make this the whole text of a block; a new label makes a new block."""
    if text is None:
        before, base = with_store(lambda store: _text_and_version(store, agent, label))
        text = edited(before)
        if text == before:
            out.print("Nothing was changed.")
            return
    elif text == "-":
        text = read_stdin()

    async def write(store: Store) -> None:
        if await store.memory.get_block(agent, label) is None:
            await store.memory.create_block(agent, label, block_type=kind, pinned=True)
        await store.memory.update_block_text(agent, label, text, base=base, is_system=True)

    with_store(write)


@app.command()
def append(label: Label, text: Words, agent: Agent = DEFAULT_AGENT) -> None:
    """Add text to the end of a block, on a line of its own."""
    with_store(lambda store: store.memory.append_to_block(agent, label, text, own_line=True, is_system=True))


@app.command()
def replace(
    label: Label,
    old: Annotated[str, typer.Argument(metavar="OLD")],
    new: Annotated[str, typer.Argument(metavar="NEW")],
    agent: Agent = DEFAULT_AGENT,
) -> None:
    """Replace the first occurrence of a text."""
    if not with_store(lambda store: store.memory.replace_in_block(agent, label, old, new, is_system=True)):
        raise StoreError(f"{old!r} is not in the block {label!r}: `weft memory show` prints it.")


@app.command()
def history(label: Label, agent: Agent = DEFAULT_AGENT, as_json: AsJson = False) -> None:
    """List every change of a block."""
    versions = with_store(lambda store: store.memory.block_history(agent, label))
    if as_json:
        rows = [{"version": v.version, "kind": v.kind, "author": v.author, "at": str(v.at)} for v in versions]
        typer.echo(json.dumps(rows, ensure_ascii=False))
        return
    for version in versions:
        author = escape(printable(version.author))
        out.print(f"{version.version:>6}  {version.at:%Y-%m-%d %H:%M:%S}  {version.kind:<9} {author}")


@app.command()
def at(label: Label, version: Version, agent: Agent = DEFAULT_AGENT) -> None:
    """Print a block as it was after a change."""
    say(with_store(lambda store: store.memory.block_at(agent, label, version)))


@app.command()
def diff(label: Label, version: Version, agent: Agent = DEFAULT_AGENT) -> None:
    """Show what changed in a block since a version."""

    async def work(store: Store) -> tuple[str, str]:
        now = await store.memory.get_rendered_content(agent, label)
        return await store.memory.block_at(agent, label, version), now or ""

    before, now = with_store(work)
    lines = unified_diff(before.splitlines(), now.splitlines(), f"version {version}", "now", lineterm="")
    say("\n".join(lines))


@app.command()
def undo(label: Label, agent: Agent = DEFAULT_AGENT) -> None:
    """Take back the newest change."""
    if not with_store(lambda store: store.memory.undo_block(agent, label, is_system=True)):
        raise StoreError(f"There is nothing to take back in the block {label!r}.")


@app.command()
def redo(label: Label, agent: Agent = DEFAULT_AGENT) -> None:
    """Bring back what was undone last."""
    if not with_store(lambda store: store.memory.redo_block(agent, label, is_system=True)):
        raise StoreError(f"There is nothing to bring back in the block {label!r}.")


@app.command()
def pin(
    label: Label,
    off: Annotated[bool, typer.Option("--off", help="Unpin it.")] = False,
    agent: Agent = DEFAULT_AGENT,
) -> None:
    """Show a block in every context, or no longer."""
    with_store(lambda store: store.memory.set_block_pinned(agent, label, not off, is_system=True))


@app.command()
def archive(text: Words, agent: Agent = DEFAULT_AGENT) -> None:
    """Keep a note in the archive, and print its id."""
    say(with_store(lambda store: store.memory.insert_archival(agent, text)))


@app.command()
def unarchive(note: Annotated[str, typer.Argument(metavar="ID")], agent: Agent = DEFAULT_AGENT) -> None:
    """Take a note out of the archive."""
    if not with_store(lambda store: store.memory.delete_archival(note, is_system=True)):
        raise UnknownName(f"There is no note {note!r}: `weft memory search` shows ids with --json.")


@app.command()
def delete(label: Label, agent: Agent = DEFAULT_AGENT, yes: Yes = False) -> None:
    """Delete a block with all its history."""
    text = with_store(lambda store: store.memory.get_rendered_content(agent, label))
    if text is None:
        raise _unknown(label, agent)
    size = counted(len(text), "character")
    confirm_loss(f"Delete the block {label!r} ({size}) with all its history?", yes=yes)
    with_store(lambda store: store.memory.delete_block(agent, label, is_system=True))
    out.print(f"Deleted the block {safe(label)} with its history.")


@app.command()
def limit(
    label: Label,
    characters: Annotated[int, typer.Argument(metavar="CHARACTERS", min=1)],
    agent: Agent = DEFAULT_AGENT,
) -> None:
    """Let a block hold so many characters."""

    async def work(store: Store) -> None:
        size = len(await store.memory.get_rendered_content(agent, label) or "")
        if size > characters:
            raise ConfigError(f"The block {label!r} has {size} characters: shorten it first.")
        await store.memory.set_block_limit(agent, label, characters, is_system=True)

    with_store(work)


@app.command()
def facts(person: Person = _OWNER, as_json: AsJson = False) -> None:
    """List what is known about a person, with the date since when."""
    if not person.strip():
        raise ConfigError("Say whose facts: give a person as `channel:sender`, as in `telegram:42`.")
    known = with_store(lambda store: store.facts.list(person))
    if as_json:
        rows = [{"key": one.key, "value": one.value, "since": str(one.created_at)} for one in known]
        typer.echo(json.dumps(rows, ensure_ascii=False))
        return
    for one in known:
        out.print(f"[bold]{escape(printable(one.key))}[/]: {escape(printable(one.value))}", soft_wrap=True)
    if not known:
        out.print(f"Nothing is known of {escape(printable(person))}.")


@app.command()
def forget(person: Person, key: Annotated[str, typer.Argument(metavar="KEY")]) -> None:
    """Forget what is known about a person under a key; its history stays."""
    if not with_store(lambda store: store.facts.delete(person, key)):
        raise UnknownName(f"Nothing is known of {person!r} under {key!r}: `weft memory facts` lists it.")


@app.command("forget-summary")
def forget_summary(summary: Annotated[int, typer.Argument(metavar="ID")]) -> None:
    """Forget the summary of a conversation."""
    if not with_store(lambda store: store.summaries.delete(summary)):
        raise UnknownName(f"There is no summary {summary}: `weft memory audit` names them.")


@app.command()
def search(
    query: Annotated[str, typer.Argument(metavar="QUERY", callback=refuse_empty)],
    agent: Agent = DEFAULT_AGENT,
    mode: Mode = SearchMode.AUTO,
    as_json: AsJson = False,
) -> None:
    """Search messages, blocks and the archive of an agent."""
    options = SearchOptions(mode=mode)
    show_hits(with_store(lambda store: store.memory.search(agent, query, options)), as_json=as_json)


@app.command()
def audit(as_json: AsJson = False) -> None:
    """Look for secrets, orders of strangers, contradictions, old facts, copies and full blocks."""
    with err.status("Looking through what is remembered"):
        findings = with_store(lambda store: store.audit())
    if as_json:
        rows = [{"kind": one.kind, "what": one.what, "mend": one.mend} for one in findings]
        typer.echo(json.dumps(rows, ensure_ascii=False))
        return
    for one in findings:
        colour = "red" if one.kind in ("secret", "instruction") else "yellow"
        kind = one.kind.replace("_", " ")
        out.print(f"[{colour}]{kind}[/]  {escape(printable(one.what))}", soft_wrap=True)
        out.print(f"     [dim]→ {escape(printable(one.mend))}[/]", soft_wrap=True)
    if not findings:
        out.print("All is well: nothing was found.")


@app.command()
def purge(
    what: Annotated[
        str, typer.Argument(metavar="FINGERPRINT", help="As the audit names it; `-` reads the text itself.")
    ],
    yes: Yes = False,
) -> None:
    """Overwrite a text for good: in the log, the index, blocks and their history, facts, notes, receipts."""
    if not yes and (what == "-" or not sys.stdin.isatty()):
        raise ConfigError("Purging cannot be taken back: add --yes if that is what you want.")
    text = sys.stdin.read().strip("\n") if what == "-" else with_store(partial(_secret, what))
    if not yes:
        typer.confirm(f"Overwrite {masked(text)!r} for good, wherever it is kept?", abort=True)
    with err.status("Overwriting"):
        places, backup = with_store(partial(_purge, text))
    out.print(f"It was overwritten in {places} {'place' if places == 1 else 'places'}.")
    newest = f" (the newest is {backup})" if backup else ""
    out.print(escape(NOT_PURGED.format(newest=newest)), soft_wrap=True)


async def _purge(text: str, store: Store) -> tuple[int, str]:
    places = await store.purge(text)
    return places, (await store.backup_status()).path


async def _secret(name: str, store: Store) -> str:
    """Return the secret that the audit names so."""
    items = {item for finding in await store.audit() for item in finding.where}
    for secret in {secret for item in items for secret in secrets_of(item)}:
        if fingerprint(secret) == name:
            return secret
    raise UnknownName(f"There is no secret {name!r}: `weft memory audit` names them.")


async def _text_and_version(store: Store, agent: str, label: str) -> tuple[str, str | None]:
    document = await store.memory.get_block(agent, label)
    return ("", None) if document is None else (document.text(), document.version)


def show_hits(hits: Sequence[MemorySearchResult], *, as_json: bool) -> None:
    """Print search results, best first."""
    if as_json:
        rows = [
            {
                "source": h.source,
                "id": h.id,
                "score": h.score,
                "mode": h.mode,
                "at": None if h.at is None else h.at.isoformat(),
                "session": h.session_id,
                "content": h.content,
            }
            for h in hits
        ]
        typer.echo(json.dumps(rows, ensure_ascii=False))
        return
    for hit in hits:
        place = (f"{hit.at.astimezone():%Y-%m-%d %H:%M}" if hit.at else "", escape(printable(hit.session_id)))
        about = " ".join(filter(None, (f"{hit.score:.2f} {hit.source:<8}", *place)))
        out.print(f"[dim]{about}[/] {escape(printable(hit.snippet))}", soft_wrap=True)
    if not hits:
        out.print("Nothing was found.")


def _unknown(label: str, agent: str) -> UnknownName:
    return UnknownName(f"{agent!r} has no block {label!r}: `weft memory list` shows them.")
