"""One message on its way to an answer: who sent it, from where, and what came with it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from weft.types.memory import RenderedBlock
from weft.types.message import Message, ToolDefinition
from weft.types.person import ASSISTANT, OWNER_NAME, agent_of, author_of, default_person

Address = tuple[str, str, str]
AskConsent = Callable[[str], Awaitable[bool]]
"""Puts a question to a person. Returns whether they agree."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The person for whom a turn and its tools run. Programs set it, never a model.

    `person` is the human behind the sender, and `agent_id` whose memory the turn reads and writes; the desk
    fills both in. `conversation` is the place in the channel, such as a chat. `ask` puts a question to the
    person there, and `ask_owner` to the owner of the assistant, wherever they are; without it nobody can be
    asked, which counts as a refusal. `visible_blocks` has the caller's blocks as the model last saw them in
    this turn: a tool that shows or changes one puts the new state there. A tool that changes memory adds a
    few words for the person to `changes`. `read_skills` names the skills whose documentation the model was
    shown in this conversation.

    `origin` says who wrote the message of the turn, and `words` is what the person wrote themselves in it.
    `outside` names the places that text of strangers in view comes from, such as `feed news`, and `read_now`
    those of what came with this turn. A tool that returns such text adds its place to
    `read_outside`. `agreed` says that the person has agreed to the call that runs.
    """

    agent_id: str = ""
    channel: str = ""
    sender_id: str = ""
    person: str = ""
    session_id: str = ""
    conversation: str = ""
    ask: AskConsent | None = field(default=None, compare=False, repr=False)
    ask_owner: AskConsent | None = field(default=None, compare=False, repr=False)
    visible_blocks: dict[str, RenderedBlock] = field(default_factory=dict, compare=False, repr=False)
    changes: list[str] = field(default_factory=list, compare=False, repr=False)
    read_skills: set[str] = field(default_factory=set, compare=False, repr=False)
    origin: str = field(default="user", compare=False)
    words: str = field(default="", compare=False, repr=False)
    outside: tuple[str, ...] = field(default=(), compare=False)
    read_now: tuple[str, ...] = field(default=(), compare=False)
    read_outside: list[str] = field(default_factory=list, compare=False, repr=False)
    agreed: bool = field(default=False, compare=False)

    @property
    def is_attended(self) -> bool:
        """Whether a person wrote the message and may wait for the answer."""
        return self.origin == "user"

    @property
    def author(self) -> str:
        """Who changes memory in this turn, and what else may be behind it."""
        return author_of(self.agent_id, self.outside)

    @property
    def sender(self) -> str:
        return f"{self.channel}:{self.sender_id}"

    @property
    def is_owner(self) -> bool:
        """Whether this is the owner of the assistant, whichever way they write."""
        return (self.person or default_person(self.sender)) == OWNER_NAME

    def known_as(self, person: str) -> Caller:
        """Return the caller as a person, with that person's memory, unless an agent of its own was named."""
        is_free = self.agent_id in ("", ASSISTANT)
        return replace(self, person=person, agent_id=agent_of(person) if is_free else self.agent_id)

    @property
    def address(self) -> Address:
        """Where the person writes: channel, conversation and sender."""
        return self.channel, self.conversation, self.sender_id


OWNER = Caller(agent_id="weft", channel="app", sender_id="owner")
"""The caller of a program that names none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRequest:
    """A message and everything that its sender brings along. Every channel translates into this value.

    `session` is the id or the name of the session; without one nothing is remembered. An app that holds the
    conversation itself gives it as `history` (shown in place of the session's log), with the `steps` it took
    since the message; its `tools` run in the app. `commands` says that a slash command is a command, not text
    for the model. `origin` is other than "user" where no person wrote the text. `blocks` are the ids of
    memory blocks that this turn alone shows. `inbox_id` names the durable message that this request answers.
    `parts` are pictures that go with the text, `notes` sentences about the request for the receipt.
    A request that is `one_off` is stored in its session, but the model sees nothing of that session.
    `outside` names where text of strangers in the message comes from, such as `file report.txt`, and `words`
    is then what the person wrote themselves.
    """

    text: str
    caller: Caller = OWNER
    session: str = ""
    commands: bool = False
    recipe: str = ""
    model: str = ""
    instructions: str = ""
    history: tuple[Message, ...] | None = None
    steps: tuple[Message, ...] = ()
    tools: tuple[ToolDefinition, ...] = ()
    origin: str = "user"
    blocks: tuple[str, ...] = ()
    inbox_id: str = ""
    parts: tuple[Mapping[str, Any], ...] = ()
    notes: tuple[str, ...] = ()
    one_off: bool = False
    outside: tuple[str, ...] = ()
    words: str | None = None

    @property
    def own_words(self) -> str:
        """What the person wrote themselves: nothing, if no person wrote the message."""
        if self.origin != "user":
            return ""
        return self.text if self.words is None else self.words

    @property
    def is_plain(self) -> bool:
        """Whether a person wrote it and it brings nothing along but its text."""
        brings = self.steps or self.tools or self.instructions or self.blocks or self.parts
        return self.origin == "user" and self.history is None and not brings
