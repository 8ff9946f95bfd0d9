"""How layers and origins look: each has a color and, for those who see no colors, a mark or a name."""

from __future__ import annotations

from dataclasses import dataclass

LAYERS = (
    "tools",
    "instructions",
    "standing",
    "bootstrap",
    "blocks",
    "facts",
    "memory_file",
    "skills",
    "tool_docs",
    "tool_rules",
    "summaries",
    "history",
    "recall",
    "tasks",
    "activity",
    "changes",
    "message",
    "steps",
    "framing",
)
"""Layers with a color of their own in `weft.css`, as `.layer-NAME`."""


@dataclass(frozen=True, slots=True)
class OriginMark:
    """The mark of an origin, and what it says of a text."""

    mark: str
    says: str


_ORIGINS = {
    "operator": OriginMark("◆", "written by Weft or in its settings and files"),
    "user": OriginMark("●", "written by a person"),
    "agent": OriginMark("■", "written by the assistant"),
    "tool": OriginMark("▲", "a result of a tool"),
    "web": OriginMark("✱", "from a web page: text of strangers"),
    "feed": OriginMark("✱", "from a feed: text of strangers"),
    "import": OriginMark("✱", "imported: text of strangers"),
    "mcp": OriginMark("✱", "from an MCP server: text of strangers"),
}


def layer_class(layer: str) -> str:
    """Return the class that gives a layer its color; layers of plugins share one."""
    return f"layer-{layer}" if layer in LAYERS else "layer-other"


def origin_mark(origin: str) -> OriginMark:
    return _ORIGINS.get(origin, OriginMark("?", "of unknown origin"))
