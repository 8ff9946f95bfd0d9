"""The situation: the time, the version, the tools, the workspace, what the assistant can do, and where."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from datetime import datetime
from functools import cache

from weft.sources.base import BuildRequest, Options, pieces
from weft.types.escape import one_line
from weft.types.section import Offer, Stability
from weft.types.version import VERSION
from weft.workspace.skills import Skills


async def offer(request: BuildRequest, options: Options) -> Offer:
    lines = [
        f"Agent version: weft {VERSION}",
        f"Available tools: {len(request.tools)}",
    ]
    if request.files.workspace is not None:
        lines.append(f"Workspace: {one_line(str(request.files.workspace))}")
    capabilities = [*_capabilities(request, await request.skills), *request.tool_kinds]
    if capabilities:
        lines.append(f"Capabilities: {', '.join(dict.fromkeys(capabilities))}")
    lines.append(f"Environment: {', '.join(filter(None, (_system(), one_line(request.channel))))}")
    now = f"Current date and time: {clock(request.now)}"
    texts = [(now, "time"), ("\n".join(lines), "version, workspace")]
    ids = ("clock", "situation")
    return Offer(pieces=pieces(texts, why="changes", stability=Stability.TURN, ids=ids))


def _capabilities(request: BuildRequest, skills: Skills) -> Iterator[str]:
    """Yield what the assistant can do by its recipe and its skills."""
    sources = {layer.source for layer in request.recipe.layers}
    if sources & {"blocks", "memory_file"}:
        yield "memory"
    if "tasks" in sources:
        yield "tasks"
    if "skills" in sources and skills.usable:
        yield "skills"
    if any(skill.mcp_servers for skill in skills.usable):
        yield "MCP"


@cache
def _system() -> str:
    return f"{platform.system()}, Python {'.'.join(platform.python_version_tuple()[:2])}"


def clock(now: datetime) -> str:
    """Write a time as a person would, with the weekday and the offset."""
    offset = now.strftime("%z") or "+0000"
    return f"{now:%Y-%m-%d %H:%M} ({now:%A}) UTC{offset[:3]}:{offset[3:5]}"
