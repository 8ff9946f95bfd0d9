"""The contract of a database for people: facts, instructions, summaries, tasks, mail, streams and auth.

`base.py` has the protocols for conversations and memory.
"""

from __future__ import annotations

import builtins
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from weft.store.rules import MIN_REPEAT_SECONDS, TaskLimits
from weft.types.delivery import AccessToken, Delivery, Denial, Paired, Waiting
from weft.types.envelope import Inbound, Outbound, Seen
from weft.types.instruction import StandingInstruction
from weft.types.memory import Fact, Summary, Task
from weft.types.person import OWNER_NAME, Person


class FactReader(Protocol):
    async def list(self, sender: str) -> Sequence[Fact]:
        """Return the facts about a person, sorted by key."""

    async def list_replaced(
        self, sender: str, *, first: float | None = None, last: float | None = None
    ) -> Sequence[Fact]:
        """Return earlier values that a newer one replaced, the latest first.

        With times, only those that held between them. What was forgotten is not among them.
        """


class Facts(FactReader, Protocol):
    """Facts about people, with their history. Linked senders are one person and share their facts.

    A key can have several values after two people were linked; the newest counts until a new one is set.
    """

    async def find(self, sender: str, key: str) -> str | None: ...

    async def get(self, sender: str, key: str) -> str:
        """Return the value of a fact. Raises StoreError if there is none of that key."""

    async def history(self, sender: str, key: str) -> builtins.list[Fact]:
        """Return every value that a key has had, oldest first."""

    async def set(
        self,
        sender: str,
        key: str,
        value: str,
        *,
        by_model: bool = False,
        source: tuple[str, int] | None = None,
        asked_by: str = "",
    ) -> None:
        """Store a fact; its earlier value stays in its history.

        `source` is the message that the fact came from: a session, and the message's number in it. `asked_by`
        names the text of strangers that may be behind it.

        Raises:
            StoreError: the fact is not worth storing; the message says why.
        """

    async def delete(self, sender: str, key: str) -> bool:
        """End a fact; its history stays. Returns whether the fact existed."""

    async def last_change(self, sender: str) -> Fact | None:
        """Return the fact that was set or ended last."""

    async def undo(self, sender: str, key: str) -> str | None:
        """Take the newest change of a fact back. Returns its value now, or None if it has none."""


class InstructionReader(Protocol):
    async def list(self, sender: str) -> Sequence[StandingInstruction]:
        """Return the standing instructions of a person, oldest first."""

    async def list_ended(self, sender: str, session_id: str, limit: int) -> Sequence[StandingInstruction]:
        """Return those given in a session that were taken back or removed since, newest first."""


class Instructions(InstructionReader, Protocol):
    """What people told the assistant to always do. Linked senders are one person and share it.

    The same text is stored once.
    """

    async def add(
        self, sender: str, text: str, *, pinned: bool = False, source: tuple[str, int] | None = None
    ) -> StandingInstruction:
        """Store an instruction and return it, or the one with the same text.

        A recognized one becomes pinned if it is added as such. `source` is the message that it came from: a
        session, and the message's number in it.

        Raises:
            StoreError: it is empty, or there is no room for it beside the pinned ones.
        """

    async def remove(self, sender: str, which: str) -> StandingInstruction:
        """End an instruction by its number in the list, or by the start of its id, and return it.

        Raises:
            UnknownName: there is none, or several begin so.
        """

    async def last_change(self, sender: str) -> StandingInstruction | None:
        """Return the instruction that was added or removed last."""

    async def undo(self, sender: str, instruction_id: str) -> bool:
        """Take the newest change of an instruction back. Returns whether there was one."""


class People(Protocol):
    """Which senders are one human.

    Facts, instructions, summaries, tasks, blocks and recall follow the person.
    """

    async def find(self, sender: str) -> str:
        """Return the name of the person behind a sender: their linked name, or the sender itself."""

    async def list(self) -> builtins.list[Person]:
        """Return everybody who is known, the owner first."""

    async def senders(self, person: str) -> builtins.list[str]:
        """Return the senders that a person writes as."""

    async def link(self, sender: str, person: str) -> builtins.list[Fact]:
        """Make a sender one of a person's own, with everything that is known about them.

        Returns the facts that have several values now, newest first: all of them stay.

        Raises:
            ConfigError: the sender is not written as CHANNEL:ID, or the name cannot be used.
        """

    async def join(self, person: str, channel: str) -> tuple[str, str]:
        """Let a person be reached on a channel, and return their name and their id there.

        A sender (`CHANNEL:ID`) stands for the person behind it. Nothing is linked for the owner.

        Raises:
            ConfigError: the name cannot be used.
        """

    async def unlink(self, sender: str) -> bool:
        """Make a sender a person of their own again. Returns whether they were linked.

        What was learned about the person stays with the person.
        """

    async def rename(self, person: str, name: str) -> None:
        """Give a person another name.

        Raises:
            ConfigError: nobody has the old name, or somebody has the new one.
        """


class SummaryReader(Protocol):
    async def recent(self, channel: str, sender: str, limit: int = 3) -> Sequence[Summary]:
        """Return summaries, newest first."""


class Summaries(SummaryReader, Protocol):
    """Summaries of earlier conversations."""

    async def add(
        self,
        channel: str,
        sender: str,
        text: str,
        *,
        session_id: str | None = None,
        origin: str = "agent",
    ) -> None:
        """Store a summary. `origin` is the least trusted of what it was made from."""

    async def delete(self, summary_id: int) -> bool:
        """Delete a summary. Returns whether it existed."""


class TaskReader(Protocol):
    async def list(self, sender: str) -> Sequence[Task]:
        """Return pending tasks, by the time at which they are due."""


class Tasks(TaskReader, Protocol):
    """Tasks of people, which fire when they are due. A task is named by the start of its id."""

    async def add(  # noqa: PLR0913 - the public contract, and where an answer goes
        self,
        sender: str,
        text: str,
        due: datetime | None = None,
        repeat: str = "once",
        *,
        action: str = "reminder",
        zone: str = "",
        channel: str = "",
        conversation: str = "",
        asked_by: str = "",
        limits: TaskLimits | None = None,
    ) -> str:
        """Store a task and return its id; the same text due within half an hour is the same task.

        A time without an offset is local time in the zone. The answer goes to the channel and conversation.
        `asked_by` names the text of strangers that may be behind it.

        Raises:
            StoreError: the task is empty, it repeats and has no time, or it is beyond the limits.
            ConfigError: `repeat` is not a known interval.
        """

    async def update(
        self,
        sender: str,
        id_prefix: str,
        *,
        text: str | None = None,
        due: datetime | None = None,
        repeat: str | None = None,
        limits: TaskLimits | None = None,
    ) -> Task:
        """Change a sender's own task; an argument that is left out changes nothing.

        Raises:
            StoreError: none of the sender's tasks begins so, or several do.
            ConfigError: `repeat` is not a known interval.
        """

    async def cancel(self, sender: str, id_prefix: str) -> str:
        """Cancel a sender's own task and return its whole id.

        Raises:
            StoreError: none of the sender's tasks begins so, or several do.
        """

    async def next_due(self) -> float | None:
        """Return when the next task fires, in seconds since 1970. A task without a channel never fires."""

    async def fire(
        self,
        now: float,
        *,
        acting: Collection[str] = (),
        channels: Collection[str] | None = None,
        min_repeat_seconds: float = MIN_REPEAT_SECONDS,
    ) -> Sequence[Task]:
        """Fire due tasks and reschedule them in one transaction. Returns the tasks that fired.

        `acting` are the channels in which the assistant does tasks itself. With `channels`, only tasks of
        these fire. A task that repeats is due again after `min_repeat_seconds` at the earliest. A task whose
        time makes no sense is marked as failed, so that the others still fire.
        """


class Mailbox(Protocol):
    """The inbox, with messages that came in, and the outbox, with messages that must go out."""

    async def receive(self, message: Inbound, seen: Iterable[Seen] = ()) -> str | None:
        """Store a message in the inbox. Returns its id, or None if it is known already.

        A notice of a stream is stored together with the items that it reports.
        """

    async def refuse(self, inbox_id: str, why: str) -> None:
        """Delete the text of a message from somebody who is not allowed, and record the attempt."""

    async def answer(self, inbox_id: str, text: str) -> None:
        """Answer a message that needed no turn, such as a command."""

    async def list_waiting(self) -> Sequence[Waiting]:
        """Return messages of the inbox on which no work has begun, oldest first."""

    async def enqueue(self, message: Outbound, *, task_id: str = "") -> None:
        """Store a message in the outbox."""

    async def claim_due(
        self, now: float, channels: Collection[str], *, busy: Collection[tuple[str, str]] = ()
    ) -> Sequence[Delivery]:
        """Return the messages to send now over these channels, oldest first, and mark them as being sent.

        Of several messages to one conversation only the first is returned: the next one waits for it. A
        conversation that is `busy` (a channel and a conversation) gets none.
        """

    async def mark_sent(self, delivery_id: str) -> None:
        """Record that a message has arrived, and delete its text."""

    async def reschedule(self, delivery_id: str, at: float, *, arrived: int = 0) -> None:
        """Schedule another attempt. `arrived`: number of parts delivered before the failure."""

    async def mark_failed(self, delivery_id: str, *, note: str = "") -> None:
        """Give a message up; its text stays. A note may be sent to the same conversation."""

    async def fail_interrupted(self, channels: Collection[str], *, note: str = "") -> Sequence[Delivery]:
        """Give up the messages that were being sent when a process died, and return them.

        Nobody can know whether they arrived. The note is sent to the conversation of each.
        """

    async def delete_old(self, now: float) -> None:
        """Delete old inbox and outbox rows and old refusals. Messages that could not be delivered stay."""


class Streams(Protocol):
    """The items that streams have seen already: a stream watches a source, such as a folder or a feed."""

    async def find_seen(self, stream: str, source: str) -> Mapping[str, Seen] | None:
        """Return what a stream has seen, by item; None if it never read that source."""

    async def start(self, stream: str, source: str, origin: str, seen: Iterable[Seen]) -> None:
        """Record the first look at a source. Its items are known from now on, those of another are not."""

    async def save(self, seen: Iterable[Seen]) -> None: ...

    async def has_open_notice(self, stream: str) -> bool:
        """Check whether a notice of the stream is not answered yet."""

    async def list_oldest_blocks(self, stream: str, keep: int) -> Sequence[str]:
        """Return the ids of all blocks of a stream but the newest `keep`."""

    async def forget_block(self, block_id: str) -> None:
        """Forget the block of an item. The item itself stays known."""


class Auth(Protocol):
    """Paired people, and programs with a token. A secret is shown once and stored as a hash."""

    async def offer_pairing(self, channel: str, sender: str) -> str:
        """Create a code that pairs this person once the owner confirms it. It replaces an earlier code."""

    async def confirm_pairing(self, code: str) -> Paired:
        """Pair the person who has this code.

        Raises:
            StoreError: nobody has this code, or it is too old.
        """

    async def is_paired(self, channel: str, sender: str) -> bool: ...

    async def list_paired(self) -> Sequence[Paired]:
        """Return all paired people, by channel."""

    async def unpair(self, channel: str, sender: str) -> bool:
        """Revoke a pairing. Returns whether it existed."""

    async def list_denied(self, *, limit: int = 100) -> Sequence[Denial]:
        """Return the people who were refused, the one who tried last before the others."""

    async def create_token(self, name: str, sender: str = OWNER_NAME) -> str:
        """Create a token that speaks for a sender over HTTP. It replaces the old token of that name."""

    async def find_token(self, token: str) -> tuple[str | None, bool]:
        """Return the sender that a token speaks for, if it is valid, and whether there is any token."""

    async def list_tokens(self) -> Sequence[AccessToken]:
        """Return all tokens, by sender."""

    async def revoke_token(self, name: str) -> bool:
        """Revoke a token. Returns whether it existed."""
