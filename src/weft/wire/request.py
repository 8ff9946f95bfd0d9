"""What every dialect starts from: a context whose messages are repaired and whose tools are all declared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from weft.errors import EmptyMessage
from weft.types.context import Context
from weft.types.message import Message, ToolDefinition
from weft.types.section import Place, Stability
from weft.wire import clean
from weft.wire.models import DEFAULT, Model, known
from weft.wire.repair import repair

GO_ON = "[Go on.]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A context, ready to be written in a provider's dialect."""

    provider: str
    model: str
    system: tuple[str, ...]
    """The system text in parts: after each but the last, what came so far is stable."""
    messages: Sequence[Message]
    tools: Sequence[ToolDefinition]
    max_output_tokens: int | None
    stream: bool
    window: int
    notes: tuple[str, ...] = ()
    """What was mended, each thing once."""

    @property
    def row(self) -> Model:
        return known(self.model)

    @property
    def system_text(self) -> str:
        return "".join(self.system)


def request(
    provider: str, context: Context, *, model: str | None, max_output_tokens: int | None, stream: bool
) -> Request:
    """The context, repaired for a provider.

    Raises:
        EmptyMessage: there is nothing to answer.
    """
    if not clean.text(context.current_message).strip():
        raise EmptyMessage
    chosen = model or context.model or (context.receipt.model if context.receipt else "") or DEFAULT[provider]
    system, said = context.to_api_messages()
    messages, notes = repair(provider, said)
    if messages[-1].role not in ("user", "tool"):
        # Only steps can end so. Not every model goes on with its own words, or with an instruction.
        messages.append(Message(role="user", content=GO_ON, origin="operator"))
        notes.append("The turn so far ended without the user, so a line of the user's was put behind it.")
    return Request(
        provider=provider,
        model=chosen,
        system=_parts(context, clean.text(system)),
        messages=messages,
        tools=_declared(context.tools, messages),
        max_output_tokens=max_output_tokens,
        stream=stream,
        window=_window(context, known(chosen), max_output_tokens or 0),
        notes=tuple(dict.fromkeys(notes)),
    )


def _window(context: Context, model: Model, answer: int) -> int:
    """How much the model must be able to read: the limit, or what this request takes in its own tokens."""
    if context.receipt is None or not context.receipt.limit:
        return model.window
    return max(context.receipt.limit, int(context.receipt.total_tokens * model.ratio) + answer)


def _parts(context: Context, system: str) -> tuple[str, ...]:
    """The system text, cut where what never changes ends and what lasts for a session begins."""
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


def _declared(tools: Sequence[ToolDefinition], messages: Sequence[Message]) -> list[ToolDefinition]:
    """The tools that are offered, each name once; and those that were called and are offered no longer."""
    found: dict[str, ToolDefinition] = {}
    for tool in tools:
        name = clean.name(tool.name)
        found.setdefault(
            name,
            ToolDefinition(
                name=name,
                description=tool.description and clean.text(tool.description),
                parameters=_schema(clean.plain(tool.parameters)),
            ),
        )
    called = {call.name for message in messages for call in message.tool_calls}
    for name in sorted(called - set(found)):
        found[name] = ToolDefinition(name=name, parameters=_schema({}))
    return list(found.values())


def _schema(parameters: dict[str, Any]) -> dict[str, Any]:
    """A schema whose top is an object, as every provider wants it."""
    if parameters.get("type") == "object":
        return {**parameters, "properties": parameters.get("properties") or {}}
    return {"type": "object", "properties": {}}


def own_data(message: Message, request: Request) -> Mapping[str, Any]:
    """What the provider signed in a message, if it came from this very model: no other may see it."""
    data = message.provider_data
    same = data.get("provider") == request.provider and data.get("model") == request.model
    return data if same else {}


def picture(part: Mapping[str, Any]) -> tuple[str, str]:
    """The kind and the Base64 data of a picture; of anything else what it is, and no data."""
    data = part.get("data")
    if part.get("type") == "image" and isinstance(data, str) and data:
        return str(part.get("media_type") or "image/png"), data
    return f"a part of the kind {str(part.get('type') or 'unknown')!r}", ""
