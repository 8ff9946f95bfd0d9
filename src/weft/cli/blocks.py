"""Commands of `weft memory` that make blocks, change what they are, and edit them by their schema's verbs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from weft.cli.options import read_stdin, say
from weft.cli.stores import DEFAULT_AGENT, Agent, Label, with_store
from weft.errors import ConfigError, StoreError, did_you_mean
from weft.memory.edits import BlockEdit
from weft.types.memory import BlockType, Permission
from weft.types.schema import BlockSchema, make_schema, schema_from_dict

app = typer.Typer(add_completion=False)
KINDS = ("text", "map", "list", "log", "composite")

Value = Annotated[str, typer.Argument(metavar="VALUE", help="Text, or JSON; `-` reads standard input.")]
Field = Annotated[str, typer.Argument(metavar="FIELD", help="The name of the value.")]
Number = Annotated[int, typer.Argument(metavar="NUMBER", min=1, help="The item's number, as it is shown.")]
Section = Annotated[str, typer.Option("--section", "-s", metavar="NAME", help="The section of a composite.")]
ListField = Annotated[str, typer.Option("--field", "-f", metavar="NAME", help="The list, inside of a map.")]
SchemaName = Annotated[
    str,
    typer.Option("--schema", metavar="|".join((*KINDS, "FILE")), help="What it holds; a file is JSON."),
]
Parts = Annotated[
    list[str] | None,
    typer.Option(
        "--field",
        "-f",
        metavar="NAME[:TYPE]",
        help="A field of a map, of a list's items or a log's entries; for a composite a section.",
    ),
]
PermissionName = Annotated[str, typer.Option("--permission", help="What the assistant may do with it.")]
Kind = Annotated[BlockType, typer.Option("--type", help="When it is shown.")]


@app.command()
def create(
    label: Label,
    schema: SchemaName = "text",
    parts: Parts = None,
    kind: Kind = BlockType.WORKING,
    description: Annotated[str, typer.Option("--description", "-d", help="What belongs into it.")] = "",
    permission: PermissionName = Permission.READ_WRITE.value,
    limit: Annotated[int, typer.Option("--limit", min=1, help="The most characters it holds.")] = 5000,
    pinned: Annotated[bool, typer.Option("--pinned/--unpinned", help="Show it in every context.")] = True,
    agent: Agent = DEFAULT_AGENT,
) -> None:
    """Make a block of any kind: a text, a map of values, a list, a log, or sections of these."""
    chosen, allowed = read_schema(schema, parts or ()), permission_named(permission)

    def work(store: Any) -> Any:
        return store.memory.create_block(
            agent,
            label,
            description=description,
            block_type=kind,
            schema=chosen,
            permission=allowed,
            char_limit=limit,
            pinned=pinned,
            is_system=True,
        )

    with_store(work)


@app.command("set-type")
def set_type(
    label: Label, kind: Annotated[BlockType, typer.Argument(metavar="TYPE")], agent: Agent = DEFAULT_AGENT
) -> None:
    """Change when a block is shown: core, working, archival or log."""
    with_store(lambda store: store.memory.set_block_type(agent, label, kind, is_system=True))


@app.command("set-permission")
def set_permission(
    label: Label,
    permission: Annotated[str, typer.Argument(metavar="PERMISSION")],
    agent: Agent = DEFAULT_AGENT,
) -> None:
    """Change what the assistant may do with a block."""
    allowed = permission_named(permission)
    with_store(lambda store: store.memory.set_block_permission(agent, label, allowed, is_system=True))


@app.command("set-description")
def set_description(
    label: Label, text: Annotated[str, typer.Argument(metavar="TEXT")], agent: Agent = DEFAULT_AGENT
) -> None:
    """Change what the assistant is told that belongs into a block."""
    with_store(lambda store: store.memory.set_block_description(agent, label, text, is_system=True))


@app.command("set-schema")
def set_schema(
    label: Label,
    schema: Annotated[str, typer.Argument(metavar="KIND|FILE")],
    parts: Parts = None,
    agent: Agent = DEFAULT_AGENT,
) -> None:
    """Change the fields, sections or limits of a block; its kind stays."""
    chosen = read_schema(schema, parts or ())
    with_store(lambda store: store.memory.update_block_schema(agent, label, chosen, is_system=True))


@app.command()
def rename(
    label: Label, new: Annotated[str, typer.Argument(metavar="NEW")], agent: Agent = DEFAULT_AGENT
) -> None:
    """Give a block another label."""
    with_store(lambda store: store.memory.rename_block(agent, label, new, is_system=True))


@app.command()
def push(
    label: Label, value: Value, section: Section = "", field: ListField = "", agent: Agent = DEFAULT_AGENT
) -> None:
    """Add an item to the end of a list."""
    _edit(agent, label, BlockEdit(verb="push", value=_read(value), section=section, field=field))


@app.command()
def insert(
    label: Label, number: Number, value: Value, section: Section = "", agent: Agent = DEFAULT_AGENT
) -> None:
    """Add an item to a list, before the one with this number."""
    _edit(agent, label, BlockEdit(verb="insert", value=_read(value), index=number, section=section))


@app.command()
def remove(label: Label, number: Number, section: Section = "", agent: Agent = DEFAULT_AGENT) -> None:
    """Remove an item from a list."""
    _edit(agent, label, BlockEdit(verb="remove", index=number, section=section))


@app.command("set")
def set_value(
    label: Label,
    field: Annotated[
        str, typer.Argument(metavar="FIELD|NUMBER", help="A field's name, or an item's number.")
    ],
    value: Value,
    section: Section = "",
    agent: Agent = DEFAULT_AGENT,
) -> None:
    """Set a value of a map, or an item of a list."""
    index = int(field) if field.isdecimal() else None
    _edit(agent, label, BlockEdit(verb="set", value=_read(value), field=field, index=index, section=section))


@app.command(context_settings={"ignore_unknown_options": True})  # a number below zero is no option
def increment(
    label: Label,
    field: Field,
    by: Annotated[float, typer.Argument(metavar="BY", help="How much; below zero takes away.")] = 1,
    section: Section = "",
    agent: Agent = DEFAULT_AGENT,
) -> None:
    """Add to a counter of a map, and print what it counts then."""
    count = _edit(agent, label, BlockEdit(verb="increment", value=by, field=field, section=section))
    say(f"{count:g}")


@app.command()
def log(label: Label, value: Value, section: Section = "", agent: Agent = DEFAULT_AGENT) -> None:
    """Add an entry to a log."""
    _edit(agent, label, BlockEdit(verb="log", value=_read(value), section=section))


def permission_named(name: str) -> Permission:
    """Return a permission by its name, in any case.

    Raises:
        ConfigError: there is none of that name.
    """
    by_name = {one.value.lower(): one for one in Permission}
    if name.lower() not in by_name:
        known = did_you_mean(name, [one.value for one in Permission])
        raise ConfigError(f"There is no permission {name!r}: {known}")
    return by_name[name.lower()]


def read_schema(name: str, parts: Sequence[str] = ()) -> BlockSchema:
    """Return a schema by its kind and the names of its parts, or from a JSON file.

    Raises:
        ConfigError: the file cannot be read, or the schema is wrong.
    """
    try:
        if name in KINDS:
            return make_schema(name, parts)
        path = Path(name).expanduser()
        if not path.is_file():
            raise ConfigError(f"There is no kind and no file {name!r}: {did_you_mean(name, KINDS)}")
        return schema_from_dict(json.loads(path.read_text("utf-8")))
    except (OSError, ValueError) as error:
        raise ConfigError(f"The schema {name!r} cannot be read: {error}.") from error
    except StoreError as error:
        raise ConfigError(str(error)) from error


def _read(value: str) -> str:
    return read_stdin().rstrip("\n") if value == "-" else value


def _edit(agent: str, label: str, edit: BlockEdit) -> Any:
    typed = replace(edit, is_typed=True)
    return with_store(lambda store: store.memory.edit_block(agent, label, typed, is_system=True))
