"""`weft doctor`: what is wrong here, and what to do about it."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Literal

import typer

from weft.cli.models import Listing, list_models
from weft.cli.options import AsJson, Workspace, out, run, safe
from weft.cli.private_check import holds_keys, make_private_again, open_to_others
from weft.compose import make_embedder
from weft.compose import open as open_store
from weft.config import Config, find_paths, load_config
from weft.errors import WeftError, did_you_mean
from weft.models import choose_model
from weft.providers.choose import Choice
from weft.providers.discover import find_listed
from weft.providers.local import INSTALL, unavailable
from weft.recall import minilm, wordllama
from weft.sources.catalogue import check_sources
from weft.store.backend import BackupStatus
from weft.tools.skills import SkillTools
from weft.workspace.files import FileReader, file_at, open_workspace
from weft.workspace.skills import SkillLoader, Skills

app = typer.Typer(add_completion=False)
_MARKS = {"ok": "[green]ok[/]  ", "note": "[yellow]note[/]", "bad": "[red]bad[/] "}
_BACKUP_AGE = timedelta(days=7)
_FILES = ("SOUL.md", "AGENTS.md", "USER.md", "TOOLS.md", "memory/MEMORY.md")


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at. Whatever is not well has a remedy."""

    level: Literal["ok", "note", "bad"]
    what: str
    remedy: str = ""


@app.command()
def doctor(
    workspace: Workspace = None,
    as_json: AsJson = False,
    fix: Annotated[
        bool, typer.Option("--fix", help="Make Weft's own files private where they are not.")
    ] = False,
) -> None:
    """Check settings, workspace, model and terminal, with a remedy for each finding."""
    findings = list(examine(workspace, fix=fix))
    if as_json:
        typer.echo(json.dumps([asdict(finding) for finding in findings], ensure_ascii=False))
    else:
        for finding in findings:
            out.print(f"{_MARKS[finding.level]} {safe(finding.what)}", soft_wrap=True)
            if finding.remedy:
                out.print(f"     [dim]→ {safe(finding.remedy)}[/]", soft_wrap=True)
    if any(finding.level == "bad" for finding in findings):
        raise typer.Exit(1)


def examine(workspace: str | None, *, fix: bool = False) -> Iterator[Check]:
    """Look at everything; one bad finding does not hide the next."""
    file = find_paths().config_file
    try:
        config = load_config().with_overrides(workspace=workspace)
        known = "settings are read from" if file.exists() else "settings are the defaults; a file would be"
        yield Check("ok", f"{known} {file}")
    except WeftError as error:
        yield Check("bad", str(error), f"mend {file}, or move it away and run `weft init`")
        config = Config().with_overrides(workspace=workspace)
    yield from _recipe(config)
    yield from _workspace(config)
    yield from _store(config)
    yield from _private(config, fix=fix)
    yield from _model(config)
    yield from _extras(config)
    yield from _terminal()


def _recipe(config: Config) -> Iterator[Check]:
    try:
        recipe = config.chosen_recipe()
        check_sources(recipe)
        yield Check("ok", f"recipe {recipe.name}: {recipe.description}")
    except WeftError as error:
        yield Check("bad", str(error), "`weft recipes list` shows those that come with Weft")


def _workspace(config: Config) -> Iterator[Check]:
    path = Path(config.workspace).expanduser() if config.workspace else config.paths.workspace
    try:
        root = open_workspace(path)
    except WeftError as error:
        level: Literal["note", "bad"] = "bad" if config.workspace or path.exists() else "note"
        yield Check(level, str(error), "`weft init` makes one")
        return
    files = run(FileReader().read([file_at(root, name) for name in _FILES]))
    troubles = [file for file in files if file.warning and not file.missing]
    there = [name for name, file in zip(_FILES, files, strict=True) if file.text is not None]
    yield Check("ok", f"workspace {root} has {', '.join(there) or 'no files yet'}")
    for file in troubles:
        yield Check("bad", file.warning, "mend the file, or move it out of the workspace")
    skills = run(SkillLoader(FileReader()).load(config.skill_dirs(root)))
    count = len(skills.usable)
    yield Check("ok", f"{count} {'skill' if count == 1 else 'skills'} can be used")
    for skill in skills.usable:
        for warning in skill.warnings:
            yield Check("note", warning, f"edit {skill.directory}/SKILL.md")
    for left_out in skills.left_out:
        yield Check("note", f"skill {left_out.name} is not used: {left_out.reason}", "`weft skills validate`")
    for warning in run(_tool_warnings(skills, root)):
        yield Check("note", warning, "`weft skills validate`")


async def _tool_warnings(skills: Skills, root: Path) -> tuple[str, ...]:
    async def load() -> Skills:
        return skills

    tools = SkillTools(load=load, reader=FileReader(), workspace=root)
    await tools.tools("")
    return tools.warnings


def _store(config: Config) -> Iterator[Check]:
    """Check that the store, if there is one, can be opened and is whole."""
    path = config.paths.database
    if not path.exists():
        yield Check("ok", f"nothing is kept yet; it would be in {path}")
        return

    async def check() -> tuple[list[str], BackupStatus]:
        async with await open_store(path) as store:
            return await store.check(), await store.backup_status()

    try:
        troubles, status = run(check())
    except WeftError as error:
        yield Check("bad", str(error), "`weft restore PATH` puts a backup in its place")
        return
    if not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
        remedy = f"`chmod u+w {shlex.quote(str(path.parent))} {shlex.quote(str(path))}`"
        yield Check("bad", f"{path} cannot be written to: it is read, and nothing new is kept", remedy)
    for trouble in troubles:
        yield Check("bad", f"{path} is damaged: {trouble}", "`weft restore PATH` puts a backup in its place")
    if not troubles:
        yield Check("ok", f"{path} is whole ({path.stat().st_size / 1_000_000:.1f} MB)")
    yield from _backup(status, datetime.now(UTC))


def _private(config: Config, *, fix: bool) -> Iterator[Check]:
    """Check that nobody else may read what Weft keeps."""
    exposed = open_to_others(config.paths, _newest_backup(config))
    failed = make_private_again(exposed) if fix else exposed
    for path in exposed:
        if path not in failed:
            yield Check("ok", f"{path} is for its owner alone now")
            continue
        mode = "700" if path.is_dir() else "600"
        remedy = f"`weft doctor --fix`, or `chmod {mode} {shlex.quote(str(path))}`"
        has_keys = path == config.paths.config_file and holds_keys(path)
        what = f"others on this machine may read {path}" + (", with your keys in it" if has_keys else "")
        yield Check("bad" if has_keys else "note", what, remedy)
    if not exposed and config.paths.data_dir.is_dir():
        yield Check("ok", "Weft's files are for their owner alone")


def _newest_backup(config: Config) -> str:
    async def find() -> str:
        async with await open_store(config.paths.database) as store:
            return (await store.backup_status()).path

    if not config.paths.database.exists():
        return ""
    try:
        return run(find())
    except WeftError:
        return ""


def _backup(status: BackupStatus, now: datetime) -> Iterator[Check]:
    """Check that there is a recent backup, once there is something to lose."""
    remedy = "`weft backup PATH` makes one, also while `weft serve` runs"
    if status.at is None:
        if status.has_messages:
            yield Check("note", "there is no backup yet", remedy)
        return
    newest = f"the newest backup is {status.path} of {status.at:%Y-%m-%d}"
    if status.has_messages and now - status.at > _BACKUP_AGE:
        yield Check("note", f"{newest}, more than {_BACKUP_AGE.days} days old", remedy)
    else:
        yield Check("ok", newest)


def _model(config: Config) -> Iterator[Check]:
    try:
        config, choice = choose_model(config)
        yield _asked(choice, run(list_models(choice.provider, choice.why, config)), config)
    except WeftError as error:
        yield Check("bad", str(error), INSTALL)
        return
    lacks = unavailable(config.local)
    if lacks is None:
        yield Check("ok", "the embedded model is installed and needs no network")
    else:
        yield Check("note", f"no offline answers: {lacks}", INSTALL)


def _extras(config: Config) -> Iterator[Check]:
    """Check that the packages are installed which the settings need beyond the usual ones."""
    try:
        make_embedder(config)
    except WeftError as error:
        installs = {"wordllama": wordllama.INSTALL, "minilm": minilm.INSTALL}
        remedy = installs.get(config.search.embedder or "", "`weft recall setup` shows what is there")
        yield Check("bad", f"`search.embedder` is set: {error}", remedy)
    has_token = bool(os.environ.get("TELEGRAM_BOT_TOKEN") or config.telegram.token)
    if has_token and find_spec("markdown_it") is None:
        what = "`telegram.token` is set, and a package that Telegram needs is not installed"
        yield Check("bad", what, "pip install 'weft[telegram]'")


def _asked(choice: Choice, listing: Listing, config: Config) -> Check:
    """Say what the chosen provider answered when it was asked for its models."""
    place = f" at {listing.address}" if listing.address else ""
    if listing.problem:
        remedy = "check its address and key; `weft models` lists who else can answer"
        return Check(
            "bad", f"{choice.provider}{place} cannot be used: {listing.problem} ({choice.why})", remedy
        )
    ids = [model.id for model in listing.models]
    wanted = config.model
    if wanted and ids and not find_listed(listing.models, wanted):
        return Check("bad", f"{choice.provider}{place} has no model {wanted!r}", did_you_mean(wanted, ids))
    answers = f"answers in {listing.seconds * 1000:.0f} ms with " if place else "has "
    count = f"{len(ids)} {'model' if len(ids) == 1 else 'models'}"
    return Check("ok", f"{choice.provider}{place} {answers}{count}: {choice.why}")


def _terminal() -> Iterator[Check]:
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    if encoding != "utf8":
        yield Check("note", f"the terminal's encoding is {sys.stdout.encoding}", "set PYTHONUTF8=1")
    if not sys.stdout.isatty():
        yield Check("ok", "output goes to a program or file: no colours")
    elif os.environ.get("NO_COLOR"):
        yield Check("ok", "colours are switched off by NO_COLOR")
    else:
        yield Check("ok", f"terminal with {out.width} columns and colours")
