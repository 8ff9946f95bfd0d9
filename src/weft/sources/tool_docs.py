"""How tools are used: TOOLS.md, or a short text made from the tools that are offered."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from weft.sources.base import Request, nothing, piece, under_title
from weft.types.escape import one_line
from weft.types.message import ToolDefinition
from weft.types.recipe import Layer
from weft.types.section import Offer, Stability

_EXAMPLES: dict[str, Any] = {
    "string": "text",
    "integer": 1,
    "number": 1.5,
    "boolean": True,
    "array": [],
    "object": {},
}


async def offer(request: Request, layer: Layer) -> Offer:
    files = await request.read(layer, layer.path) if layer.path else []
    warnings = tuple(file.warning for file in files if file.warning)
    text = (files[0].text or "").strip() if files else ""
    title = layer.path
    if not text and layer.default_docs:
        title = "built-in text"
        text = "\n".join(map(describe, request.tools)) or layer.fallback
    if not text:
        return nothing(layer, warnings=warnings)
    section = piece(layer, text, title=title, why="how tools are used", stability=Stability.STATIC)
    return under_title(layer, [section], warnings=warnings)


def describe(tool: ToolDefinition) -> str:
    """One tool in a few lines: what it does, its parameters, and a call of it."""
    about = f": {one_line(tool.description)}" if tool.description else ""
    lines = [f"- {one_line(tool.name)}{about}"]
    properties = tool.parameters.get("properties")
    required = tool.parameters.get("required")
    required = required if isinstance(required, list | tuple) else ()
    properties = properties if isinstance(properties, Mapping) else {}
    for name, given in properties.items():
        schema = given if isinstance(given, Mapping) else {}
        need = "required" if name in required else "optional"
        meaning = f": {one_line(str(schema['description']))}" if schema.get("description") else ""
        lines.append(f"  - {one_line(str(name))} ({_type(schema)}, {need}){meaning}")
    example = {name: _example(schema) for name, schema in properties.items() if name in required}
    call = json.dumps({"name": tool.name, "arguments": example}, ensure_ascii=False)
    lines.append(f"  - example: {call}")
    return "\n".join(lines)


def _type(schema: Mapping[str, Any]) -> str:
    kind = schema.get("type", "any")
    return one_line(" or ".join(map(str, kind)) if isinstance(kind, list | tuple) else str(kind))


def _example(schema: Any) -> Any:
    if not isinstance(schema, Mapping):
        return "text"
    options = schema.get("enum")
    if isinstance(options, list | tuple) and options:
        return options[0]
    kind = schema.get("type")
    return _EXAMPLES.get(kind, "text") if isinstance(kind, str) else "text"
