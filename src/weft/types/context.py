"""The context: everything that a model sees in one request, and the forms in which it can be written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from weft.types.codec import Json, dump_json, to_dict
from weft.types.epoch import EpochStep
from weft.types.escape import joined, without_labels, without_tags
from weft.types.memory import RenderedBlock
from weft.types.message import McpServer, Message, ToolDefinition
from weft.types.receipt import Receipt
from weft.types.section import Place, Section

ONE_SHOT_PROMPT = (
    "You are Weft, a personal AI assistant running on the user's own server. "
    "You are helpful, concise, and action-oriented."
)

Form = Literal["single", "parts", "messages"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextNeeds:
    """Which costly layers this message needs. It is used inside the program only and has no JSON form."""

    recall: bool = True
    pending_tasks: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Context(Json):
    """Everything that one request shows a model, before it is written for a vendor.

    `current_message` is the raw text; the recipe shows `turn_text` right before it, and its
    pictures are `parts`. `steps` are the calls and
    results of the turn so far, after the message. `tagged` means that sections have tags of ours: tags inside
    messages are then escaped in every form. The receipt, the visible `blocks`, the `step` of its epoch and
    the `cache_key`, by which a vendor finds the cache of the session, take no part in equality: they describe
    how the context came about. The last three have no JSON form.
    """

    system_prompt: str = field(default="", metadata={"always": True})
    history: tuple[Message, ...] = field(default=(), metadata={"always": True})
    current_message: str
    parts: tuple[Mapping[str, Any], ...] = ()
    steps: tuple[Message, ...] = ()
    mcp_servers: tuple[McpServer, ...] = field(default=(), metadata={"always": True})
    model: str | None = None
    sections: tuple[Section, ...] = ()
    tools: tuple[ToolDefinition, ...] = ()
    form: Form = "single"
    tagged: bool = False
    receipt: Receipt | None = field(default=None, compare=False)
    blocks: tuple[RenderedBlock, ...] = field(
        default=(), compare=False, repr=False, metadata={"private": True}
    )
    step: EpochStep | None = field(default=None, compare=False, repr=False, metadata={"private": True})
    cache_key: str = field(default="", compare=False, repr=False, metadata={"private": True})

    def __post_init__(self) -> None:
        for name in ("history", "parts", "steps", "mcp_servers", "sections", "tools"):
            if not isinstance(getattr(self, name), tuple):
                object.__setattr__(self, name, tuple(getattr(self, name)))

    @property
    def chars(self) -> int:
        """How many characters a request has at least: each of them is escaped, checked and encoded."""
        messages = sum(len(each.content) + len(each.attached) for each in (*self.history, *self.steps))
        return len(self.system_prompt) + messages + len(self.current_message)

    @staticmethod
    def new(message: str, recipe: str = "weft") -> Context:
        """Return a one-shot context: a recipe's short prompt, no history, the message.

        Raises:
            ConfigError: there is no such recipe.
        """
        from weft.types.recipe import Recipe  # noqa: PLC0415 - a recipe makes contexts itself

        return Recipe.load(recipe).one_shot(message)

    @property
    def turn_text(self) -> str:
        """The sections of this turn, which are shown with the message, separated by blank lines."""
        texts = [section.text for section in self.sections if section.place == Place.MESSAGE]
        return joined("\n\n", texts) if self.tagged else "\n\n".join(texts)

    def to_prompt_string(self) -> str:
        """Write flat text for programs that take one string: labeled parts with a blank line between.

        A role label at the start of a line is always ours: in content it gets a backslash.
        """
        parts = [("System", self.system_prompt)] if self.system_prompt else []
        parts += [("User" if m.role == "user" else "Assistant", m.content) for m in self._messages()]
        return "\n\n".join(f"[{label}]\n{without_labels(text)}" for label, text in parts)

    def to_api_messages(self) -> tuple[str, list[Message]]:
        """Return the system prompt, and apart from it the history, the message and the steps."""
        return self.system_prompt, self._messages()

    def to_messages(self) -> list[Message]:
        """Return one list: the system message (in form "messages" one per section), history, the message."""
        texts = [self.system_prompt]
        if self.form == "messages":
            texts = [s.text for s in self.sections if s.place == Place.SYSTEM] or texts
        system = [Message(role="system", content=text, origin="operator") for text in texts if text]
        return system + self._messages()

    def to_json(self, *, receipt: bool = False) -> str:
        """Write JSON with sections and tools, and on request with the receipt."""
        data = to_dict(self)
        if not receipt:
            data.pop("receipt", None)
        return dump_json(data)

    def _messages(self) -> list[Message]:
        """Return all messages as they are sent: tags escaped, the turn's sections in front of the message."""
        history, steps, text = list(self.history), list(self.steps), self.current_message
        if self.tagged:
            history, steps = list(map(_without_tags, history)), list(map(_without_tags, steps))
            text = without_tags(text)
        history = list(map(_with_attached, history))
        before = self.turn_text
        message = Message(role="user", content=f"{before}\n\n{text}" if before else text, parts=self.parts)
        return [*history, message, *steps]


def _without_tags(message: Message) -> Message:
    content, tool_name = without_tags(message.content), message.tool_name and without_tags(message.tool_name)
    if content is message.content and tool_name is message.tool_name:
        return message
    return replace(message, content=content, tool_name=tool_name)


def _with_attached(message: Message) -> Message:
    """Write what was attached to a message in front of its content, as it was sent the first time."""
    if not message.attached:
        return message
    return replace(message, content=f"{message.attached}\n\n{message.content}", attached="")
