"""The pages of skills and of health: what the assistant can do, and what is wrong here."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from weft.channels.pages.desk import Desk, Work
from weft.errors import PermissionDenied, ToolError
from weft.tools.descriptor import TOOLS_FILE, parse
from weft.types.version import VERSION
from weft.workspace.skills import Skill

_OWNER_ONLY = "Only the owner may look at how this server is."
_MOST_FILE_BYTES = 1_000_000


class SystemPages:
    """What stands around the conversations."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def all(self) -> list[tuple[str, str, Work]]:
        return [
            ("/skills", "GET", self.skills),
            ("/health", "GET", self.health),
            ("/health/checks", "GET", self.checks),
        ]

    async def skills(self, request: Request) -> Response:
        """List the skills that can be used, with their tools, and why others cannot."""
        builder = self._desk.assistant.engine.builder
        skills = await builder.files.load_skills(builder.recipe)
        rows = [(skill, *await asyncio.to_thread(_tools_of, skill)) for skill in skills.usable]
        return await self._desk.html(
            request, "skills", title="Skills", rows=rows, left_out=skills.left_out, warnings=skills.warnings
        )

    async def health(self, request: Request) -> Response:
        """Show the state of the store, of what waits, and of the model; the checks come after."""
        self._check_owner(request)
        store = await self._desk.store()
        engine = self._desk.assistant.engine
        return await self._desk.html(
            request,
            "health",
            title="Health",
            version=VERSION,
            info=engine.provider.info,
            why=engine.choice.why,
            recipe=engine.builder.recipe.name,
            backup=await store.backup_status() if store else None,
            waiting=await store.mailbox.list_waiting() if store else (),
            texts=await store.count_texts() if store else 0,
            embedder=store.meaning is not None if store else False,
            can_check=self._desk.settings.check_health is not None,
        )

    async def checks(self, request: Request) -> Response:
        """Run the checks of `weft doctor`, which takes a second or two."""
        self._check_owner(request)
        check = self._desk.settings.check_health
        findings: list[dict[str, Any]] = await check() if check is not None else []
        part = "checks" if request.query_params.get("part") else "checks_page"
        return await self._desk.html(request, part, title="Checks", findings=findings)

    def _check_owner(self, request: Request) -> None:
        if not self._desk.speaker(request).is_owner:
            raise PermissionDenied(_OWNER_ONLY)


def _tools_of(skill: Skill) -> tuple[tuple[tuple[str, str], ...], str]:
    """Return the tools of a skill with what they do, or what is wrong with their file."""
    path = Path(skill.directory) / TOOLS_FILE
    try:
        if not path.is_file() or path.stat().st_size > _MOST_FILE_BYTES:
            return (), ""
        tools = parse(path.read_text("utf-8"), path=str(path)).tools
    except (OSError, UnicodeDecodeError, ToolError) as error:
        return (), str(error)
    return tuple((tool.name, tool.description or "") for tool in tools), ""
