"""The situation: the time, the version, how many tools there are, where the workspace is."""

from __future__ import annotations

from datetime import datetime

from weft.sources.base import BuildRequest, Options, pieces
from weft.types.escape import one_line
from weft.types.section import Offer, Stability
from weft.types.version import VERSION


async def offer(request: BuildRequest, options: Options) -> Offer:
    lines = [
        f"Current date and time: {clock(request.now)}",
        f"Agent version: weft {VERSION}",
        f"Available tools: {len(request.tools)}",
    ]
    if request.files.workspace is not None:
        lines.append(f"Workspace: {one_line(str(request.files.workspace))}")
    texts = [("\n".join(lines), "time, version, workspace")]
    return Offer(pieces=pieces(texts, why="changes", stability=Stability.TURN))


def clock(now: datetime) -> str:
    """Write a time as a person would, with the weekday and the offset."""
    offset = now.strftime("%z") or "+0000"
    return f"{now:%Y-%m-%d %H:%M} ({now:%A}) UTC{offset[:3]}:{offset[3:5]}"
