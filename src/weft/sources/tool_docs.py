"""How tools are used: TOOLS.md, or a short text made from the tools that are offered."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from weft.sources.base import BuildRequest, Options, pieces
from weft.types.escape import one_line
from weft.types.message import ToolDefinition
from weft.types.recipe import Reload
from weft.types.section import Offer, Stability

_EXAMPLES: dict[str, Any] = {
    "string": "text",
    "integer": 1,
    "number": 1.5,
    "boolean": True,
    "array": [],
    "object": {},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDocsOptions(Options):
    path: str = ""
    default_docs: bool = True
    fallback: str = ""
    reload: Reload | None = None


async def offer(request: BuildRequest, options: ToolDocsOptions) -> Offer:
    files = await request.read(options.path, reload=options.reload) if options.path else []
    text, title = (files[0].text or "").strip() if files else "", options.path
    if not text and options.default_docs:
        text, title = "\n".join(map(describe, request.tools)) or options.fallback, "built-in text"
    return Offer(
        pieces=pieces([(text, title)] if text else [], why="how tools are used", stability=Stability.STATIC),
        existing=frozenset((title,)),
        warnings=tuple(file.warning for file in files if file.warning),
        files=sum(file.text is not None for file in files),
    )


def describe(tool: ToolDefinition) -> str:
    """Describe a tool in a few lines: what it does, its parameters, and a call of it."""
    about = f": {one_line(tool.description)}" if tool.description else ""
    lines = [f"- {one_line(tool.name)}{about}"]
    properties = tool.parameters.get("properties")
    required = tool.parameters.get("required")
    required = required if isinstance(required, list | tuple) else ()
    properties = properties if isinstance(properties, Mapping) else {}
    for name, value in properties.items():
        schema = value if isinstance(value, Mapping) else {}
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
