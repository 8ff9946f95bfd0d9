"""`weft tools`: the optional tools, which are off until the owner enables them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, get_args

import tomlkit
import typer

from weft.cli.options import AsJson, out, safe, say, settings
from weft.cli.settings_file import edit_table
from weft.config import OptionalTools
from weft.errors import ConfigError, did_you_mean

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="List, enable and disable the optional tools: files and web pages.",
)
_ABOUT = {
    "files": "read, list and search files in folders that you name, and write them after you agree",
    "fetch": "read a public web page as text, over https",
}
Name = Annotated[
    str, typer.Argument(metavar="NAME", help="files or fetch.", autocompletion=lambda: list(_ABOUT))
]


@app.command("list")
def list_tools(as_json: AsJson = False) -> None:
    """List the optional tools, and which of them are enabled."""
    tools = settings().tools
    if as_json:
        rows = [
            {"name": name, "enabled": name in tools.enabled, "about": about} for name, about in _ABOUT.items()
        ]
        typer.echo(json.dumps(rows))
        return
    for name, about in _ABOUT.items():
        out.print(f"[bold]{name}[/]  {'on ' if name in tools.enabled else 'off'}  {about}", soft_wrap=True)
        for folder in tools.files.folders if name == "files" and name in tools.enabled else ():
            out.print(f"       in {safe(folder)}", soft_wrap=True)


@app.command()
def enable(
    name: Name,
    folder: Annotated[
        list[Path] | None, typer.Option("--in", metavar="DIR", help="For files: a folder to use; repeatable.")
    ] = None,
) -> None:
    """Let the assistant use a tool from the next conversation on."""
    _check(name)
    folders = [str(path.expanduser().resolve()) for path in folder or ()]
    if missing := [path for path in folders if not Path(path).is_dir()]:
        raise ConfigError(f"There is no folder {missing[0]!r}: make it first, or name another.")
    if folders and name != "files":
        raise ConfigError("Only `files` works in folders: leave `--in` out.")
    if name == "files" and not folders and not settings().tools.files.folders:
        raise ConfigError("Say which folder may be used: `weft tools enable files --in DIR`.")

    def change(tools: Any) -> None:
        tools["enabled"] = list(dict.fromkeys([*tools.get("enabled", []), name]))
        if folders:
            files = tools.setdefault("files", tomlkit.table())
            files["folders"] = list(dict.fromkeys([*files.get("folders", []), *folders]))

    edit_table("tools", change)
    say(f"{name} is on: {_ABOUT[name]}.")


@app.command()
def disable(name: Name) -> None:
    """Let the assistant use a tool no longer."""
    _check(name)
    if name not in settings().tools.enabled:
        say(f"{name} is off already.")
        return

    def change(tools: Any) -> None:
        tools["enabled"] = [each for each in tools["enabled"] if each != name]

    edit_table("tools", change)
    say(f"{name} is off.")


def _check(name: str) -> None:
    if name not in get_args(OptionalTools):
        raise ConfigError(
            f"There is no optional tool {name!r}: {did_you_mean(name, get_args(OptionalTools))}"
        )
