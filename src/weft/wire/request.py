"""What every vendor's request starts from: a context with repaired messages and all its tools declared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.errors import EmptyMessage
from weft.types.context import Context
from weft.types.message import Message, ToolDefinition
from weft.types.section import Place, Stability
from weft.wire import clean
from weft.wire.vendor import Vendor, WireRequest
from weft.wire.vendors import find_model, find_vendor, repair

_GO_ON = "[Go on.]"


def to_wire(
    provider: str | Vendor,
    context: Context,
    *,
    model: str | None = None,
    max_output_tokens: int | None = None,
    stream: bool = False,
) -> dict[str, Any]:
    """Write the request of a vendor for a context. The vendor accepts it, whatever the history.

    Raises:
        EmptyMessage: there is nothing to answer.
        ConfigError: no vendor has this name.
    """
    vendor = find_vendor(provider)
    return vendor.to_wire(prepare(vendor, context, model, max_output_tokens=max_output_tokens, stream=stream))


def prepare(
    vendor: Vendor,
    context: Context,
    model: str | None,
    *,
    max_output_tokens: int | None = None,
    stream: bool = False,
    window: int | None = None,
) -> WireRequest:
    """Repair a context for a vendor.

    The window is the given one, else the one that the context was built for, else the one of the table. It
    never depends on the size of the request: Ollama loads a model anew whenever the number changes.

    Raises:
        EmptyMessage: there is nothing to answer.
    """
    if not clean.text(context.current_message).strip():
        raise EmptyMessage
    in_receipt = context.receipt.model if context.receipt else ""
    model = model or context.model or in_receipt or vendor.default_model
    family = find_model(model, vendor)
    system, history = context.to_api_messages()
    messages, notes = repair(vendor, history)
    if messages[-1].role not in ("user", "tool"):
        # Only steps can end so. Not every model continues its own text, or follows an instruction.
        messages.append(Message(role="user", content=_GO_ON, origin="operator"))
        notes.append("The turn so far ended without the user, so a line of the user's was put behind it.")
    return WireRequest(
        provider=vendor.name,
        model=model,
        family=family,
        system=_system_parts(context, clean.text(system)),
        messages=messages,
        tools=_declare(context.tools, messages),
        max_output_tokens=max_output_tokens,
        stream=stream,
        window=window or (context.receipt.window if context.receipt else 0) or family.window,
        notes=tuple(dict.fromkeys(notes)),
    )


def _system_parts(context: Context, system: str) -> tuple[str, ...]:
    """Cut the system text where the sections that never change end."""
    static = list[str]()
    for section in context.sections:
        if section.place == Place.SYSTEM:
            if section.stability != Stability.STATIC:
                break
            static.append(section.text)
    for joint in ("\n\n", ""):
        head = clean.text(joint.join(static))
        if head.strip() and system.startswith(head) and system[len(head) :].strip():
            return head, system[len(head) :]
    return (system,) if system.strip() else ()


def _declare(tools: Sequence[ToolDefinition], messages: Sequence[Message]) -> list[ToolDefinition]:
    """List the offered tools, each name once, and then those that the history calls besides."""
    by_name: dict[str, ToolDefinition] = {}
    for tool in tools:
        name = clean.name(tool.name)
        if name not in by_name:
            description = tool.description and clean.text(tool.description)
            schema = _object_schema(clean.plain(tool.parameters))
            by_name[name] = ToolDefinition(name=name, description=description, parameters=schema)
    called = {call.name for message in messages for call in message.tool_calls}
    for name in sorted(called - set(by_name)):
        by_name[name] = ToolDefinition(name=name, parameters=_object_schema({}))
    return list(by_name.values())


def _object_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema whose top is an object, as every vendor wants it."""
    if schema.get("type") == "object":
        return {**schema, "properties": schema.get("properties") or {}}
    return {"type": "object", "properties": {}}
