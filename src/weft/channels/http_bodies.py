"""What requests over HTTP hold. Those of OpenAI's shape may hold more than we know; our own may not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, FailFast, Field

_DEEPEST = 100


def _shallow(value: dict[str, Any]) -> dict[str, Any]:
    """Refuse what is nested so deep that writing it again would fail."""
    level: list[Any] = [value]
    for _ in range(_DEEPEST):
        inner = [list(one.values()) if isinstance(one, dict) else one for one in level]
        level = [item for items in inner for item in items if isinstance(item, dict | list)]
        if not level:
            return value
    raise ValueError(f"It is nested deeper than {_DEEPEST} levels")


Schema = Annotated[dict[str, Any], AfterValidator(_shallow)]
Name = Annotated[str, Field(max_length=200)]


class _Known(BaseModel):
    """Of OpenAI's shape: what we do not know is passed over, as OpenAI does."""

    model_config = ConfigDict(extra="ignore")


class Part(_Known):
    type: str = "text"
    text: str | None = None


Content = str | list[Part] | None


class Function(_Known):
    name: str = Field(min_length=1, max_length=200)
    description: str | None = None
    parameters: Schema | None = None


class CalledFunction(_Known):
    name: str
    arguments: str = ""


class Call(_Known):
    id: str
    function: CalledFunction


class ChatTool(_Known):
    type: str = "function"
    function: Function | None = None


class ChatMessage(_Known):
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: Content = None
    tool_calls: list[Call] | None = None
    tool_call_id: str | None = None
    name: str | None = None


class StreamOptions(_Known):
    include_usage: bool | None = None


class AskedBody(_Known):
    """What both of OpenAI's requests have."""

    model: str = ""
    stream: bool | None = None
    user: Name | None = None
    tool_choice: Literal["none", "auto", "required"] | dict[str, Any] | None = None
    metadata: dict[str, Annotated[str, Field(max_length=512)]] | None = None

    conversation: ClassVar[str] = "messages"

    @classmethod
    def counts(cls, data: Mapping[str, Any]) -> Iterator[tuple[str, str, int]]:
        """Count what a request holds before anything is done with it: its key, what it is, and how many."""
        messages = _list(data.get(cls.conversation))
        inner = (_list(one.get(key)) for one in messages if isinstance(one, dict) for key in _INNER)
        yield cls.conversation, "messages", len(messages)
        yield cls.conversation, "parts", sum(map(len, inner))
        yield "tools", "tools", len(_list(data.get("tools")))
        yield "metadata", "metadata", len(data["metadata"]) if isinstance(data.get("metadata"), dict) else 0

    def plain(self) -> dict[str, Any]:
        return self.model_dump(exclude_none=True)


_INNER = ("content", "tool_calls", "output")


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


class ChatBody(AskedBody):
    """A request of Chat Completions."""

    messages: Annotated[list[ChatMessage], FailFast()] = Field(min_length=1)
    tools: list[ChatTool] | None = None
    stream_options: StreamOptions | None = None
    n: Literal[1] | None = None


class Item(_Known):
    """A message, a call or a result, by its type."""

    type: str = "message"
    role: Literal["system", "developer", "user", "assistant"] | None = None
    content: Content = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None
    output: Content = None


class ResponsesTool(_Known):
    type: str = "function"
    name: str | None = Field(default=None, max_length=200)
    description: str | None = None
    parameters: Schema | None = None


class ResponsesBody(AskedBody):
    """A request of Responses."""

    conversation: ClassVar[str] = "input"

    input: str | list[Item]
    instructions: str | None = None
    tools: list[ResponsesTool] | None = None
    previous_response_id: str | None = None


class _Ours(BaseModel):
    model_config = ConfigDict(extra="forbid")

    text: str = Field(min_length=1)
    session: Name = ""
    sender: Name = ""


class TurnBody(_Ours):
    """A message to answer. Without a session it begins a new one; the answer names it."""


class ContextBody(_Ours):
    """A message to look at: what would the model see?"""

    recipe: str = Field(default="", pattern="^[A-Za-z0-9_-]*$", max_length=100)


class Problem(BaseModel):
    message: str
    type: str
    param: str | None
    code: str | None


class ProblemBody(BaseModel):
    """What went wrong."""

    error: Problem
