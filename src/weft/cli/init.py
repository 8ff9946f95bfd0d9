"""`weft init`: a workspace and a config file to start from."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from weft.cli.options import Workspace, out, write
from weft.cli.stores import with_store
from weft.config import find_paths
from weft.errors import WorkspaceError
from weft.memory.starter import create_starter_blocks
from weft.types.person import ASSISTANT

app = typer.Typer(add_completion=False)
STARTER = Path(__file__).parent / "starter"


@app.command()
def init(
    workspace: Workspace = None,
    force: Annotated[
        bool, typer.Option("--force", help="Ask about each file that would be replaced.")
    ] = False,
) -> None:
    """Make a workspace and a config file; nothing is overwritten."""
    paths = find_paths()
    target = Path(workspace).expanduser() if workspace else paths.workspace
    if target.exists() and not target.is_dir():
        raise WorkspaceError(f"{str(target)!r} is a file: name a folder for the workspace.")
    plan = {target / file: (STARTER / "workspace" / file).read_text("utf-8") for file in starter_files()}
    if workspace is None:
        plan[paths.config_file] = (STARTER / "config.toml").read_text("utf-8")
    created = existing = 0
    for path, text in plan.items():
        if path.exists() and not (force and _may_replace(path)):
            out.print(f"[dim]kept    {escape(str(path))}[/]", soft_wrap=True)
            existing += 1
            continue
        write(path, text)
        out.print(f"[green]made[/]    {escape(str(path))}", soft_wrap=True)
        created += 1
    if workspace is None:
        for label in with_store(lambda store: create_starter_blocks(store.memory, ASSISTANT)):
            out.print(f"[green]made[/]    the memory block {label}")
    out.print(
        f"{created} files made, {existing} kept. Edit SOUL.md and USER.md, then talk: `weft chat`. "
        'Say "remember that I live in Lisbon" to see it remember.',
        soft_wrap=True,
    )


def starter_files() -> list[Path]:
    """Return the files of a new workspace by their paths inside it."""
    root = STARTER / "workspace"
    return sorted(path.relative_to(root) for path in root.rglob("*.md"))


def _may_replace(path: Path) -> bool:
    if not sys.stdin.isatty():
        return False
    return typer.confirm(f"Replace {path}?", default=False)
