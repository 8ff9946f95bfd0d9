"""`weft tasks`: what is to be done, by hand and without a model."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import datetime
from typing import Annotated

import typer

from weft.cli.options import PERSON, AsJson, out, settings
from weft.cli.stores import with_store
from weft.errors import ConfigError
from weft.tools.tasks import line

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="List, add, change and cancel tasks, without a model."
)

Person = Annotated[
    str, typer.Option("--for", "-f", metavar="CHANNEL:SENDER", help="Whose tasks, as facts know them.")
]
DEFAULT_PERSON = PERSON.sender


@app.command("list")
def list_tasks(person: Person = DEFAULT_PERSON, as_json: AsJson = False) -> None:
    """List what is pending, the one due first before the others."""
    tasks = with_store(lambda store: store.tasks.list(person))
    if as_json:
        typer.echo(json.dumps([asdict(task) for task in tasks], ensure_ascii=False, default=str))
        return
    for task in tasks:
        out.print(line(task), markup=False)
    if not tasks:
        out.print("Nothing is pending.")


@app.command()
def add(
    text: Annotated[str, typer.Argument(metavar="TEXT")],
    due: Annotated[str, typer.Option("--due", help="When: YYYY-MM-DD HH:MM, on your clock.")] = "",
    repeat: Annotated[
        str, typer.Option("--repeat", help="once, daily, weekdays, weekly, monthly, or cron's five fields.")
    ] = "once",
    do: Annotated[
        bool, typer.Option("--do", help="The assistant does it itself then, and tells what came of it.")
    ] = False,
    person: Person = DEFAULT_PERSON,
) -> None:
    """Add a task. The person is reminded where they talk with the assistant."""
    if do and not due:
        raise ConfigError("What the assistant is to do needs a time: give --due.")
    if not text.strip():
        raise ConfigError("The task is empty: say what is to be done.")
    channel, _, sender = person.partition(":")
    if not channel or not sender:
        raise ConfigError(f"{person!r} is nobody: write `channel:sender`, as in `telegram:42`.")
    place = "chat" if channel == "terminal" else sender
    if channel == "http":  # no reminder can reach an app: the task stays pending, and every turn shows it
        channel = place = ""
    config = settings()
    task_id = with_store(
        lambda store: store.tasks.add(
            person,
            text,
            _time(due),
            repeat,
            action="action" if do else "reminder",
            zone=config.time_zone,
            channel=channel,
            conversation=place,
            limits=config.tasks,
        )
    )
    out.print(f"kept as {task_id[:8]}")


@app.command()
def change(
    task_id: Annotated[str, typer.Argument(metavar="ID")],
    text: Annotated[str | None, typer.Option("--text", help="What to do.")] = None,
    due: Annotated[str, typer.Option("--due", help="When: YYYY-MM-DD HH:MM.")] = "",
    repeat: Annotated[str | None, typer.Option("--repeat", help="How it repeats.")] = None,
    person: Person = DEFAULT_PERSON,
) -> None:
    """Change a task by the start of its id."""
    changed = with_store(
        lambda store: store.tasks.update(person, task_id, text=text, due=_time(due), repeat=repeat)
    )
    out.print(line(changed), markup=False)


@app.command()
def cancel(task_id: Annotated[str, typer.Argument(metavar="ID")], person: Person = DEFAULT_PERSON) -> None:
    """Cancel a task by the start of its id."""
    gone = with_store(lambda store: store.tasks.cancel(person, task_id))
    out.print(f"cancelled {gone[:8]}")


def _time(text: str) -> datetime | None:
    if not text:
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(f"{text!r} is no time: write it as YYYY-MM-DD HH:MM.") from None
