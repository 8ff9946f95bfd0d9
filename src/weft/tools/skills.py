"""The tools of skills: what their `tools.json` offer, and `read_skill` where skills are read on demand."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from weft.errors import ConfigError, ToolError
from weft.tools.base import Tool
from weft.tools.descriptor import TOOLS_FILE, Descriptor, parse
from weft.tools.execute import ToolEnvironment, run
from weft.tools.process import ExecutionSettings
from weft.types.escape import one_line
from weft.types.message import Message, ToolDefinition
from weft.types.recipe import Reload
from weft.types.redacted import Redacted
from weft.types.request import Caller
from weft.types.rules import ToolRule
from weft.workspace.files import FEW_FILES, FileAt, FileReader, FileText, file_at
from weft.workspace.skills import Skill, Skills

READ_SKILL = ToolDefinition(
    name="read_skill",
    description="Load the full documentation of a skill. Call it before you use that skill's tools.",
    parameters={
        "type": "object",
        "properties": {
            "skill_name": {"type": "string", "description": "The name of the skill, as it is listed."}
        },
        "required": ["skill_name"],
    },
)
_log = logging.getLogger(__name__)
_WITHOUT_TOOLS = "The skill %r is used without its tools: %s"

LoadSkills = Callable[[], Awaitable[Skills]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Freshness:
    """How often the files of tools are looked at: the recipe's rule."""

    reload: Reload = "per_turn"
    ttl_seconds: float = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Offered:
    """The tools that came of some skills, and when their files were looked at."""

    skills: Skills
    at: float
    places: tuple[tuple[Skill, FileAt], ...] = ()
    files: tuple[FileText, ...] = ()
    tools: tuple[Tool, ...] = ()
    rules: tuple[ToolRule, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class SkillTools:
    """Offers the tools of all loaded skills. While no file changes, the same tools come back.

    A skill whose `tools.json` is wrong is used as text, without tools: `warnings` says why. Where skills are
    read on demand, `enforce_read` makes a tool answer only once the model has read its skill.
    """

    load: LoadSkills
    reader: FileReader
    workspace: Path | None = None
    settings: ExecutionSettings = ExecutionSettings()
    read_on_demand: bool = False
    enforce_read: bool = False
    freshness: Freshness = Freshness()
    monotonic: Callable[[], float] = time.monotonic
    _offered: _Offered | None = field(default=None, init=False)
    _parsed: dict[str, tuple[FileText, Descriptor | str]] = field(default_factory=dict, init=False)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is wrong with the descriptors that were last looked at, a sentence each."""
        return self._offered.warnings if self._offered else ()

    @property
    def rules(self) -> tuple[ToolRule, ...]:
        """The rules that skills set for their own tools."""
        return self._offered.rules if self._offered else ()

    async def close(self) -> None:
        """Do nothing: no process runs between calls."""

    async def tools(self, message: str) -> Sequence[Tool]:
        return await self.tools_of(await self.load())

    async def tools_of(self, skills: Skills) -> Sequence[Tool]:
        """Return the tools of skills that were just loaded."""
        known = self._offered
        if known is None or not self._is_fresh(known, skills):
            known = self._offered = await self._look(skills, known)
        return known.tools

    def _is_fresh(self, known: _Offered, skills: Skills) -> bool:
        """Return whether the reload rule wants no look at the disk."""
        if known.skills is not skills or self.freshness.reload == "per_turn":
            return False
        age = self.monotonic() - known.at
        return self.freshness.reload == "startup" or age < self.freshness.ttl_seconds

    async def _look(self, skills: Skills, known: _Offered | None) -> _Offered:
        at = self.monotonic()
        same = known is not None and known.skills is skills
        places = known.places if known is not None and same else self._places(skills)
        there: list[bool] = []
        if places:
            look = partial(_are_there, [file.path for _, file in places])
            there = look() if len(places) <= FEW_FILES else await self.reader.together(look)
        found = [place for place, is_there in zip(places, there, strict=True) if is_there]
        files = tuple(await self.reader.read([file for _, file in found]))
        if known is not None and same and known.files == files:
            return replace(known, at=at)
        tools: list[Tool] = [_read_skill(skills)] if self.read_on_demand and skills.usable else []
        rules: list[ToolRule] = []
        warnings: list[str] = []
        for (skill, _), file in zip(found, files, strict=True):
            descriptor = await self._descriptor(skill, file)
            if isinstance(descriptor, Descriptor):
                tools += self._tools_of(skill, descriptor)
                own, wrong = _rules_of(skill, descriptor)
                rules += own
                warnings += wrong
            else:
                warnings.append(descriptor)
        return _Offered(
            skills=skills,
            at=at,
            places=places,
            files=files,
            tools=tuple(tools),
            rules=tuple(rules),
            warnings=tuple(warnings),
        )

    def _places(self, skills: Skills) -> tuple[tuple[Skill, FileAt], ...]:
        return tuple((skill, self._file(skill)) for skill in skills.usable if skill.directory)

    def _file(self, skill: Skill) -> FileAt:
        """Return the place of a skill's tools. Below the workspace a link may not lead out of it."""
        folder = Path(skill.directory)
        if self.workspace is None or not folder.is_relative_to(self.workspace):
            return file_at(folder, TOOLS_FILE)
        return file_at(self.workspace, (folder.relative_to(self.workspace) / TOOLS_FILE).as_posix())

    async def _descriptor(self, skill: Skill, file: FileText) -> Descriptor | str:
        """Read a file, or its warning, once as long as it does not change."""
        known = self._parsed.get(file.path)
        if known is None or known[0] != file:
            # In a thread, since the file may be a megabyte long.
            said = await asyncio.to_thread(_parse, file)
            if isinstance(said, str):
                extra = {"layer": "skills", "path": file.path}
                _log.warning(_WITHOUT_TOOLS, skill.name, Redacted(said), extra=extra)
                said = _WITHOUT_TOOLS % (skill.name, said)
            known = self._parsed[file.path] = (file, said)
        return known[1]

    def _tools_of(self, skill: Skill, descriptor: Descriptor) -> list[Tool]:
        bench = ToolEnvironment(
            descriptor=descriptor,
            directory=skill.directory,
            workspace=str(self.workspace) if self.workspace else None,
            settings=self.settings,
        )
        runner = partial(_run_if_read, skill.name) if self.enforce_read and self.read_on_demand else _run
        return [
            Tool(
                definition=definition,
                run=partial(runner, definition.name, bench),
                source=f"the skill {skill.name!r}",
                origin="web" if definition.name in descriptor.untrusted else "tool",
                kind="programs",
            )
            for definition in descriptor.tools
        ]


def _are_there(paths: Sequence[str]) -> list[bool]:
    return [os.path.lexists(path) for path in paths]


def _parse(file: FileText) -> Descriptor | str:
    """Read a file, or say why it cannot be used."""
    reason = file.warning
    if file.text is not None:
        try:
            descriptor = parse(file.text, path=file.path)
        except ToolError as error:
            reason = str(error)
        else:
            # A name that was mended where it is not UTF-8 is no longer the name that was meant.
            if not file.warning:
                return descriptor
    return reason


async def _run(tool: str, bench: ToolEnvironment, arguments: Mapping[str, Any], caller: Caller) -> str:
    return await run(tool, arguments, bench)


async def _run_if_read(
    skill: str, tool: str, bench: ToolEnvironment, arguments: Mapping[str, Any], caller: Caller
) -> str:
    """Run a tool whose skill the model has read.

    Raises:
        ToolError: it has not.
    """
    if one_line(skill) not in caller.read_skills:
        raise ToolError(f'read the skill first: call read_skill with skill_name "{one_line(skill)}"')
    return await run(tool, arguments, bench)


def _rules_of(skill: Skill, descriptor: Descriptor) -> tuple[list[ToolRule], list[str]]:
    """Return the rules that a skill sets for its own tools, and a warning for each that is wrong."""
    own, rules, warnings = {tool.name for tool in descriptor.tools}, list[ToolRule](), list[str]()
    for number, table in enumerate(skill.tool_rules, 1):
        where = f"rule {number} of the skill {skill.name!r}"
        try:
            rule = ToolRule.from_table(table, where=where)
        except ConfigError as error:
            warnings.append(str(error))
            continue
        if rule.tool in own:
            rules.append(rule)
        else:
            warnings.append(f"{where} is not used: the skill has no tool {rule.tool!r}.")
    return rules, warnings


def skills_read(history: Sequence[Message]) -> set[str]:
    """Return the names of the skills whose documentation is in a history."""
    failed = {message.tool_call_id for message in history if message.content.startswith("error:")}
    return {
        one_line(str(call.arguments.get("skill_name", "")))
        for message in history
        for call in message.tool_calls
        if call.name == READ_SKILL.name and call.id not in failed
    }


def _read_skill(skills: Skills) -> Tool:
    """Make the tool that answers with a skill's text."""
    bodies = {one_line(skill.name): skill.body for skill in skills.usable}

    async def read(arguments: Mapping[str, Any], caller: Caller) -> str:
        name = arguments.get("skill_name")
        if name is None:
            raise ToolError("missing parameter: skill_name")
        if one_line(str(name)) not in bodies:
            raise ToolError(f"unknown skill: {name}")
        caller.read_skills.add(one_line(str(name)))
        return bodies[one_line(str(name))]

    return Tool(definition=READ_SKILL, run=read, source="Weft", leads=True, kind="read")
