"""What every vendor's request starts from: a context with repaired messages and its tools declared."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

from weft.errors import EmptyMessage
from weft.types.context import Context
from weft.types.memo import Memo
from weft.types.message import Message, ToolCall, ToolDefinition
from weft.types.section import Place, Stability
from weft.wire import clean
from weft.wire.vendor import Vendor, WireRequest, text_of
from weft.wire.vendors import ASSUMED_WINDOW, find_model, find_vendor, repair

_GO_ON = "[Go on.]"
_CALL, _RESULT = "[Called {name} with {arguments}]", "[Result of {name}]\n{text}"


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
    tools = _declare(context.tools)
    if vendor.rule.declared_calls:
        messages = list(_with_declared_calls(messages, {tool.name for tool in tools}))
    parts = _system_parts(context, clean.text(system))
    if messages[-1].role not in ("user", "tool"):
        # Only steps can end so. Not every model continues its own text, or follows an instruction.
        messages.append(Message(role="user", content=_GO_ON, origin="operator"))
        notes.append("The turn so far ended without the user, so a line of the user's was put behind it.")
    return WireRequest(
        provider=vendor.name,
        model=model,
        family=family,
        system=parts.texts,
        stable_parts=parts.stable,
        is_separate=parts.are_separate,
        messages=messages,
        tools=tools,
        max_output_tokens=max_output_tokens,
        stream=stream,
        window=window
        or (context.receipt.window if context.receipt else 0)
        or family.window
        or ASSUMED_WINDOW,
        cache_key=clean.text(context.cache_key) if vendor.takes_cache_key else "",
        notes=tuple(dict.fromkeys(notes)),
    )


@dataclass(frozen=True, slots=True)
class _SystemParts:
    """The system text in parts: how many of the first never change, and whether each is a message."""

    texts: tuple[str, ...] = ()
    stable: int = 0
    are_separate: bool = False


def _system_parts(context: Context, system: str) -> _SystemParts:
    """Cut the system text as the recipe's form says: into its sections, or where the stable ones end."""
    sections = [section for section in context.sections if section.place == Place.SYSTEM]
    static = [
        section.text for section in takewhile(lambda each: each.stability == Stability.STATIC, sections)
    ]
    if context.form == "messages":
        texts = tuple(filter(str.strip, (clean.text(section.text) for section in sections)))
        if len(texts) > 1:
            return _SystemParts(texts, sum(bool(text.strip()) for text in static), are_separate=True)
    for joint in ("\n\n", ""):
        head = clean.text(joint.join(static))
        if head.strip() and system.startswith(head) and system[len(head) :].strip():
            return _SystemParts((head, system[len(head) :]), 1)
    return _SystemParts((system,)) if system.strip() else _SystemParts()


def _with_declared_calls(messages: Sequence[Message], tools: Collection[str]) -> Iterator[Message]:
    """Write the calls of tools that are not declared, and their results, as text.

    The results that stay calls' results follow their message at once, so the text of others comes after them.
    """
    as_text = dict[str, ToolCall]()
    results = list[str]()
    for message in messages:
        if message.role == "tool" and (call := as_text.pop(message.tool_call_id or "", None)):
            results.append(_RESULT.format(name=call.name, text=text_of(message)))
            continue
        if message.role != "tool" and results:
            yield Message(role="user", content="\n\n".join(results), origin="tool")
            results = []
        calls = message.tool_calls if message.role == "assistant" else ()
        others = [call for call in calls if call.name not in tools]
        as_text |= {call.id: call for call in others}
        yield _without_calls(message, others) if others else message
    if results:
        yield Message(role="user", content="\n\n".join(results), origin="tool")


def _without_calls(message: Message, calls: Sequence[ToolCall]) -> Message:
    lines = [_CALL.format(name=call.name, arguments=clean.compact(dict(call.arguments))) for call in calls]
    content = "\n\n".join(filter(str.strip, (message.content, *lines)))
    return replace(
        message, content=content, tool_calls=tuple(call for call in message.tool_calls if call not in calls)
    )


def _declare(tools: Sequence[ToolDefinition]) -> list[ToolDefinition]:
    """List the offered tools, each name once."""
    by_name: dict[str, ToolDefinition] = {}
    for tool in tools:
        declared = _declared(tool)
        by_name.setdefault(declared.name, declared)
    return list(by_name.values())


def _object_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema whose top is an object, as every vendor wants it."""
    if schema.get("type") == "object":
        return {**schema, "properties": schema.get("properties") or {}}
    return {"type": "object", "properties": {}}


def _clean(tool: ToolDefinition) -> ToolDefinition:
    return ToolDefinition(
        name=clean.name(tool.name),
        description=tool.description and clean.text(tool.description),
        parameters=_object_schema(clean.plain(tool.parameters)),
    )


_declared = Memo[ToolDefinition, ToolDefinition](_clean)
