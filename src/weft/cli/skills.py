"""`weft skills`: what the assistant can do, and whether a skill that you wrote is valid."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from weft.cli.options import AsJson, Workspace, out, run, safe, say, settings
from weft.config import Config
from weft.errors import ConfigError, ToolError, WorkspaceError, did_you_mean
from weft.tools.descriptor import TOOLS_FILE, Descriptor, doubts, parse
from weft.tools.execute import ToolEnvironment, plan
from weft.tools.execute import run as run_tool
from weft.workspace.files import FileReader, file_at, open_workspace
from weft.workspace.skills import SKILL_FILE, LeftOut, Skill, SkillLoader, Skills

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="List, show and check skills, and try their tools."
)


def _load(workspace: str | None) -> Skills:
    config = settings(workspace=workspace)
    loader = SkillLoader(FileReader())
    dirs = config.skill_dirs(_workspace(config))
    return run(loader.load(dirs, disabled=frozenset(config.skills.disabled)))


def _workspace(config: Config) -> Path:
    return open_workspace(config.workspace) if config.workspace else config.paths.workspace


def _named(name: str, workspace: str | None) -> Skill:
    skills = {skill.name: skill for skill in _load(workspace).usable}
    if name not in skills:
        raise ConfigError(f"There is no skill {name!r}: {did_you_mean(name, skills)}")
    return skills[name]


@app.command("list")
def list_skills(workspace: Workspace = None, as_json: AsJson = False) -> None:
    """List the skills that can be used, and why others cannot."""
    skills = _load(workspace)
    if as_json:
        used = [{"name": s.name, "description": s.description, "trigger": s.trigger} for s in skills.usable]
        left_out = [{"name": s.name, "reason": s.reason} for s in skills.left_out]
        typer.echo(json.dumps({"skills": used, "left_out": left_out}, ensure_ascii=False))
        return
    table = Table(box=None, show_header=False, pad_edge=False)
    for skill in skills.usable:
        table.add_row(f"[bold]{safe(skill.name)}[/]", safe(skill.description or "(no description)"))
    for unused in skills.left_out:
        table.add_row(f"[dim]{safe(unused.name)}[/]", f"[yellow]{safe(unused.reason)}[/]")
    if table.row_count:
        out.print(table)
    else:
        out.print("There are no skills: make a folder with a SKILL.md below the workspace's skills/.")


@app.command()
def show(name: str, workspace: Workspace = None) -> None:
    """Print a skill's whole text."""
    say(_named(name, workspace).content.rstrip())


@app.command("try")
def try_tool(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The skill.")],
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="One of its tools.")],
    arguments: Annotated[str, typer.Argument(metavar="JSON", help="The arguments of the call.")] = "{}",
    really: Annotated[bool, typer.Option("--run", help="Run it, and print what it answers.")] = False,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Show the command that a call of a skill's tool would run, or run it."""
    config = settings(workspace=workspace)
    skill = _named(name, workspace)
    root = _workspace(config)
    bench = ToolEnvironment(
        descriptor=_descriptor(Path(skill.directory)),
        directory=skill.directory,
        workspace=str(root) if root.is_dir() else None,
        settings=config.execution(),
    )
    values = _arguments(arguments)
    try:
        planned = plan(tool, values, bench)
    except ToolError as error:
        raise ConfigError(str(error)) from None
    if really:
        say(run(run_tool(tool, values, bench)).rstrip("\n"))
        return
    if as_json:
        typer.echo(json.dumps(asdict(planned), ensure_ascii=False))
        return
    for first in planned.resolving:
        what = f"[yellow]not run:[/] {safe(first.refused)}" if first.refused else _words(first.argv)
        out.print(f"[dim]first, for {safe(first.param)}:[/] {what}", soft_wrap=True)
    out.print(_words(planned.argv), soft_wrap=True)
    out.print(f"[dim]{safe(planned.program)}, in {safe(planned.directory)}[/]", soft_wrap=True)


def _words(argv: Sequence[str]) -> str:
    """Return a command line as one would type it."""
    return safe(shlex.join(argv))


def _arguments(text: str) -> dict[str, Any]:
    try:
        values = json.loads(text)
    except RecursionError:
        raise ConfigError("The arguments are nested too deeply: write them as '{\"name\": 1}'.") from None
    except ValueError as error:
        raise ConfigError(f"The arguments are not JSON ({error}): write them as '{{\"name\": 1}}'.") from None
    if not isinstance(values, dict):
        raise ConfigError("The arguments are not a JSON object: write them as '{\"name\": 1}'.")
    return values


def _descriptor(folder: Path) -> Descriptor:
    """Load the tools of a skill.

    Raises:
        ConfigError: the skill has none, or its file is wrong.
    """
    (file,) = run(FileReader().read([file_at(folder, TOOLS_FILE)]))
    if file.text is None:
        raise ConfigError(f"The skill has no tools: there is no {TOOLS_FILE} to read in {str(folder)!r}.")
    try:
        return parse(file.text, path=file.path)
    except ToolError as error:
        raise ConfigError(str(error)) from None


@app.command()
def validate(path: Annotated[Path, typer.Argument(metavar="FOLDER")]) -> None:
    """Check a skill's folder before you install it."""
    folder = path.parent if path.name == SKILL_FILE else path
    if not (folder / SKILL_FILE).exists():
        raise WorkspaceError(f"There is no {SKILL_FILE} in {str(folder)!r}: name the skill's folder.")
    skill = run(SkillLoader(FileReader()).load_one(folder.resolve()))
    if isinstance(skill, LeftOut):
        raise ConfigError(f"The skill cannot be used: {skill.reason}")
    described = _descriptor(folder.resolve()) if (folder / TOOLS_FILE).exists() else Descriptor()
    for warning in (*skill.warnings, *doubts(described, allow_scripts=settings().skills.allow_scripts)):
        out.print(f"[yellow]warning[/] {safe(warning)}")
    for offered in described.tools:
        out.print(f"[green]tool[/]  {safe(offered.name)}: {safe(offered.description or '(no description)')}")
    out.print(f"[green]valid[/] {safe(skill.name)}: {safe(skill.description or '(no description)')}")
