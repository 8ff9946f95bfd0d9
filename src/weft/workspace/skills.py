"""Skills: folders with a SKILL.md that tells a model how to do something."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import shlex
import shutil
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

from weft.types.message import McpServer
from weft.types.recipe import Reload
from weft.types.tokenize import query_part
from weft.workspace.files import FileAt, FileReader, FileText, file_at

SKILL_FILE = "SKILL.md"
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_FRONT_MATTER = re.compile(r"\A---[ \t]*\r?\n(?P<front>.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_MAX_NAME, _MAX_DESCRIPTION, _MAX_FRONT_MATTER = 64, 1024, 65_536
_log = logging.getLogger(__name__)
_QUICK_SECONDS = 0.001
"""Folders that took no longer than this to look at are looked at in the event loop the next time."""
_UNREADABLE = "%s has front matter that cannot be read: %s."


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """One skill as its file says. `content` is the whole file, `body` is it without front matter."""

    name: str
    description: str = ""
    body: str = ""
    content: str = ""
    directory: str = ""
    trigger: str = ""
    mcp_servers: tuple[McpServer, ...] = ()
    requires_bins: tuple[str, ...] = ()
    fields: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def tool_rules(self) -> list[Mapping[str, Any]]:
        """The rules for the skill's tools, as its front matter has them under `tool-rules`."""
        rules = self.fields.get("tool-rules", self.fields.get("tool_rules"))
        return [rule for rule in rules if isinstance(rule, Mapping)] if isinstance(rules, list) else []

    def is_triggered_by(self, message: str) -> bool:
        """Return whether one of the trigger's words begins a word of the message."""
        words = [word.strip() for word in self.trigger.split("|") if word.strip()]
        part = query_part(message)
        return any(re.search(rf"(?<!\w){re.escape(word)}", part, re.IGNORECASE) for word in words)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A skill that is there but not used."""

    name: str
    reason: str
    broken: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class Skills:
    """The skills that can be used, and why the others cannot. The same object means: nothing changed."""

    usable: tuple[Skill, ...] = ()
    left_out: tuple[LeftOut, ...] = ()

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What the owner of the skills should know."""
        broken = [out.reason for out in self.left_out if out.broken]
        own = [warning for skill in self.usable for warning in skill.warnings]
        return (*broken, *own, *_contested(self.usable))

    def active_servers(self, message: str) -> tuple[McpServer, ...]:
        """Return the MCP servers of the skills that a message triggers.

        A skill without a trigger has its servers always. Of two with the same name the first counts.
        """
        by_name: dict[str, McpServer] = {}
        for skill in self.usable:
            if skill.mcp_servers and (not skill.trigger or skill.is_triggered_by(message)):
                for server in skill.mcp_servers:
                    by_name.setdefault(server.name, server)
        return tuple(by_name.values())


def _contested(skills: Sequence[Skill]) -> Iterator[str]:
    """Warn of names that stand for different MCP servers in different skills."""
    first: dict[str, tuple[str, McpServer]] = {}
    for skill in skills:
        for server in skill.mcp_servers:
            owner, known = first.setdefault(server.name, (skill.name, server))
            if known != server:
                yield (
                    f"skill {skill.name!r}: the MCP server {server.name!r} is another one in the skill "
                    f"{owner!r}, which comes first: give this one a name of its own"
                )


@dataclass(slots=True)
class _Listing:
    """What a look at the folders found, when, how long it took, and the skills that came of it.

    `bins` are the programs that skills need, and `absent` those of them that are missing.
    """

    at: float
    files: list[FileAt]
    seconds: float
    texts: tuple[FileText | None, ...] = ()
    bins: frozenset[str] = frozenset()
    absent: tuple[str, ...] = ()
    skills: Skills | None = None


class SkillLoader:
    """Loads skills from folders; while no file changes, the same `Skills` come back."""

    def __init__(self, reader: FileReader, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._reader = reader
        self._monotonic = monotonic
        self._listings: dict[tuple[tuple[str, ...], frozenset[str]], _Listing] = {}
        self._parsed: dict[str, tuple[FileText, Skill | LeftOut]] = {}

    def forget(self) -> None:
        """Look at every folder and file anew next time."""
        self._listings.clear()
        self._parsed.clear()

    async def load(
        self,
        folders: Sequence[Path],
        *,
        reload: Reload = "per_turn",
        ttl_seconds: float = 30.0,
        disabled: frozenset[str] = frozenset(),
        workspace: Path | None = None,
    ) -> Skills:
        """Load all skills of the folders. A later one replaces an earlier one of the same name.

        A folder below the workspace must really be there: a link that leads out of it is not followed.
        """
        key = (tuple(map(str, folders)), disabled)
        known = self._listings.get(key)
        if known is not None and known.skills is not None:
            age = self._monotonic() - known.at
            if reload == "startup" or (reload == "ttl" and age < ttl_seconds):
                return known.skills
        was_quick = known is not None and known.seconds <= _QUICK_SECONDS
        look = partial(self._look, folders, workspace)
        listed, seconds = look() if was_quick else await self._reader.together(look)
        looked = await self._reader.refresh(listed)
        listing = _Listing(self._monotonic(), list(looked), seconds, tuple(looked.values()))
        is_same = known is not None and (known.files, known.texts) == (listing.files, listing.texts)
        listing.bins = known.bins if known is not None and is_same else await self._bins_of(looked)
        listing.absent = tuple(sorted(name for name in listing.bins if shutil.which(name) is None))
        if known is not None and is_same and known.absent == listing.absent:
            listing.skills = known.skills
        else:
            parsed = await self._parse_all(looked)
            listing.skills = _choose(parsed, disabled, frozenset(listing.absent))
            _log.info("skills loaded", extra={"layer": "skills", "file_count": len(parsed)})
        self._listings[key] = listing
        return listing.skills or Skills()

    def _look(
        self, folders: Sequence[Path], workspace: Path | None
    ) -> tuple[dict[FileAt, FileText | None], float]:
        """Look at the folders and their files. Returns how many seconds that took, too. This blocks."""
        began = time.perf_counter()
        looked = self._reader.look(_list_skills(folders, workspace))
        # A file that is known and unchanged is there: only for the others it has to be asked.
        there = {
            file: text
            for file, text in looked.items()
            if (text is not None and not text.missing) or os.path.lexists(file.path)
        }
        return there, time.perf_counter() - began

    async def load_one(self, folder: Path) -> Skill | LeftOut:
        """Read the skill of one folder, or say why it cannot be used."""
        (text,) = await self._reader.read([file_at(folder, SKILL_FILE)])
        skill = _skill_or_left_out(text, folder.name)
        return _usable(skill, frozenset(), frozenset(name for name in _bins(skill) if not shutil.which(name)))

    async def _bins_of(self, looked: Mapping[FileAt, FileText | None]) -> frozenset[str]:
        return frozenset(name for skill in await self._parse_all(looked) for name in _bins(skill))

    async def _parse_all(self, looked: Mapping[FileAt, FileText | None]) -> list[Skill | LeftOut]:
        """Parse the skills, in a thread where one is new, since front matter may be long."""
        texts = [(file, text) for file, text in looked.items() if text is not None]
        known = all(self._parsed.get(file.path, (None,))[0] is text for file, text in texts)
        if known:
            return [self._parse(file, text) for file, text in texts]
        return await asyncio.to_thread(lambda: [self._parse(file, text) for file, text in texts])

    def _parse(self, file: FileAt, text: FileText) -> Skill | LeftOut:
        known = self._parsed.get(file.path)
        if known is None or known[0] is not text:
            known = self._parsed[file.path] = (
                text,
                _skill_or_left_out(text, os.path.basename(os.path.dirname(file.name))),
            )
        return known[1]


def _choose(parsed: Sequence[Skill | LeftOut], disabled: frozenset[str], absent: frozenset[str]) -> Skills:
    by_name: dict[str, Skill] = {}
    left_out: list[LeftOut] = []
    for one in parsed:
        skill = _usable(one, disabled, absent)
        if isinstance(skill, LeftOut):
            left_out.append(skill)
            continue
        if skill.name in by_name:
            reason = f"replaced by the one of the same name in {skill.directory}"
            left_out.append(LeftOut(name=skill.name, reason=reason))
        by_name[skill.name] = skill
    return Skills(usable=tuple(by_name.values()), left_out=tuple(left_out))


def _bins(skill: Skill | LeftOut) -> tuple[str, ...]:
    return skill.requires_bins if isinstance(skill, Skill) else ()


def _list_skills(folders: Sequence[Path], workspace: Path | None) -> list[FileAt]:
    """List where each sub-folder would have its SKILL.md, by name within each folder."""
    files: list[FileAt] = []
    for folder in folders:
        try:
            with os.scandir(folder) as entries:
                names = tuple(sorted([entry.name for entry in entries]))
        except (OSError, ValueError):
            continue
        files += _files_of(folder, workspace, names)
    return files


@lru_cache(maxsize=32)
def _files_of(folder: Path, workspace: Path | None, names: tuple[str, ...]) -> tuple[FileAt, ...]:
    """Return where these sub-folders would have their SKILL.md."""
    root = workspace if workspace is not None and folder.is_relative_to(workspace) else folder
    prefix = "" if root == folder else f"{folder.relative_to(root).as_posix()}/"
    return tuple(
        FileAt(str(root), f"{prefix}{name}/{SKILL_FILE}", f"{folder}/{name}/{SKILL_FILE}") for name in names
    )


def _skill_or_left_out(file: FileText, directory: str) -> Skill | LeftOut:
    if file.text is None:
        return LeftOut(name=directory, reason=file.warning, broken=True)
    try:
        return parse_skill(file.text, directory=directory, path=file.path)
    except ValueError as error:
        _log.warning(_UNREADABLE, file.path, error, extra={"layer": "skills", "path": file.path})
        return LeftOut(name=directory, reason=_UNREADABLE % (file.path, error), broken=True)


def _usable(skill: Skill | LeftOut, disabled: frozenset[str], absent: frozenset[str]) -> Skill | LeftOut:
    """Return the skill, unless it is disabled or needs a program that is not there."""
    if isinstance(skill, LeftOut):
        return skill
    if skill.name in disabled:
        return LeftOut(name=skill.name, reason="switched off by `skills.disabled`")
    if lacking := [name for name in skill.requires_bins if name in absent]:
        return LeftOut(name=skill.name, reason=f"needs {', '.join(lacking)} on the PATH")
    return skill


def parse_skill(text: str, *, directory: str, path: str = "") -> Skill:
    """Read a skill from the text of its file; the name falls back to the directory's.

    Raises:
        ValueError: the front matter is neither YAML nor TOML.
    """
    front, body = split_front_matter(text)
    data = _front_matter(front) if front is not None else {}
    name = _plain(data.get("name")) or directory
    description = _plain(data.get("description"))
    return Skill(
        name=name,
        description=description,
        body=body,
        content=text,
        directory=os.path.dirname(path),
        trigger="|".join(_texts(data.get("trigger"))),
        mcp_servers=tuple(_mcp_servers(data)),
        requires_bins=_texts(_inner(data, "metadata", "requires", "bins")),
        fields=data,
        warnings=tuple(_limits(name, description, directory)),
    )


def split_front_matter(text: str) -> tuple[str | None, str]:
    """Split a text into its front matter and the trimmed rest.

    There is some only if the file begins with a line `---`; without a closing one the text is unchanged.
    """
    match = _FRONT_MATTER.match(text)
    return (match["front"], text[match.end() :].strip()) if match else (None, text)


def _front_matter(text: str) -> dict[str, Any]:
    """Parse TOML or YAML to text, lists and tables; YAML's other types stay as they are written.

    Raises:
        ValueError: it is neither.
    """
    if len(text) > _MAX_FRONT_MATTER:
        raise ValueError(f"it has {len(text)} characters, and {_MAX_FRONT_MATTER} are allowed")
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        pass
    data = _from_yaml(text)
    if not isinstance(data, dict):
        raise ValueError("it is neither YAML nor TOML")
    return {str(key): value for key, value in data.items()}


def _from_yaml(text: str) -> Any:
    import yaml  # noqa: PLC0415 - it takes 15 ms, and most runs read no front matter

    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        return yaml.load(text, Loader=loader)  # noqa: S506 - it makes nothing but text
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(" ".join(str(error).split())) from None


def _mcp_servers(data: Mapping[str, Any]) -> Iterator[McpServer]:
    """Read servers from a table `mcp`, and from keys `mcp-NAME: command args`."""
    table = data.get("mcp")
    for name, server in table.items() if isinstance(table, dict) else ():
        if isinstance(server, dict) and server.get("command"):
            yield McpServer(
                name=str(name), command=_plain(server["command"]), args=_texts(server.get("args"))
            )
    for key, value in data.items():
        if key.startswith("mcp-") and (words := shlex.split(_plain(value))):
            yield McpServer(name=key.removeprefix("mcp-"), command=words[0], args=tuple(words[1:]))


def _plain(value: Any) -> str:
    """Return a text of the front matter; a list, a table or YAML's null counts as none."""
    text = str(value).strip() if isinstance(value, str | int | float) else ""
    return "" if text in ("null", "~") else text


def _texts(value: Any) -> tuple[str, ...]:
    """Return a list of texts; one text alone stands for a list of one."""
    if isinstance(value, list):
        return tuple(text for item in value if (text := _plain(item)))
    return (text,) if (text := _plain(value)) else ()


def _inner(data: Any, *keys: str) -> Any:
    for key in keys:
        data = data.get(key) if isinstance(data, Mapping) else None
    return data


def _limits(name: str, description: str, directory: str) -> Iterator[str]:
    """Warn where a skill exceeds the limits of the Agent Skills format. It is used all the same."""
    if not _NAME.fullmatch(name) or len(name) > _MAX_NAME:
        yield f"skill {name!r}: a name has 1-{_MAX_NAME} characters of a-z, 0-9 and single hyphens"
    if name != directory:
        yield f"skill {name!r}: the name differs from its directory {directory!r}"
    if not description:
        yield f"skill {name!r}: a description is missing, so a model cannot tell when to use it"
    if len(description) > _MAX_DESCRIPTION:
        yield f"skill {name!r}: the description has {len(description)} characters of {_MAX_DESCRIPTION}"
