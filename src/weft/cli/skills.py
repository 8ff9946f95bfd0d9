"""`weft skills`: what the assistant can do, and whether a skill that you wrote is valid."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from weft.cli.options import AsJson, Workspace, out, run, say, settings
from weft.errors import ConfigError, WorkspaceError, did_you_mean
from weft.workspace.files import FileReader, open_workspace
from weft.workspace.skills import SKILL_FILE, LeftOut, SkillLoader, Skills

app = typer.Typer(no_args_is_help=True, help="List, show and check skills.")


def _load(workspace: str | None) -> Skills:
    config = settings(workspace=workspace)
    folder = open_workspace(config.workspace) if config.workspace else config.paths.workspace
    loader = SkillLoader(FileReader())
    return run(loader.load(config.skill_dirs(folder), disabled=frozenset(config.skills.disabled)))


@app.command("list")
def list_skills(workspace: Workspace = None, as_json: AsJson = False) -> None:
    """List the skills that can be used, and why others cannot."""
    skills = _load(workspace)
    if as_json:
        used = [{"name": s.name, "description": s.description, "trigger": s.trigger} for s in skills.found]
        left_out = [{"name": s.name, "reason": s.reason} for s in skills.left_out]
        typer.echo(json.dumps({"skills": used, "left_out": left_out}, ensure_ascii=False))
        return
    table = Table(box=None, show_header=False, pad_edge=False)
    for skill in skills.found:
        table.add_row(f"[bold]{escape(skill.name)}[/]", escape(skill.description or "(no description)"))
    for unused in skills.left_out:
        table.add_row(f"[dim]{escape(unused.name)}[/]", f"[yellow]{escape(unused.reason)}[/]")
    if table.row_count:
        out.print(table)
    else:
        out.print("There are no skills: make a folder with a SKILL.md below the workspace's skills/.")


@app.command()
def show(name: str, workspace: Workspace = None) -> None:
    """Print a skill's whole text."""
    found = {skill.name: skill for skill in _load(workspace).found}
    if name not in found:
        raise ConfigError(f"There is no skill {name!r}: {did_you_mean(name, found)}")
    say(found[name].content.rstrip())


@app.command()
def validate(path: Annotated[Path, typer.Argument(metavar="FOLDER")]) -> None:
    """Check a skill's folder before you install it."""
    folder = path.parent if path.name == SKILL_FILE else path
    if not (folder / SKILL_FILE).exists():
        raise WorkspaceError(f"There is no {SKILL_FILE} in {str(folder)!r}: name the skill's folder.")
    skill = run(SkillLoader(FileReader()).load_one(folder.resolve()))
    if isinstance(skill, LeftOut):
        raise ConfigError(f"The skill cannot be used: {skill.reason}")
    for warning in skill.warnings:
        out.print(f"[yellow]warning[/] {escape(warning)}")
    out.print(f"[green]valid[/] {escape(skill.name)}: {escape(skill.description or '(no description)')}")
