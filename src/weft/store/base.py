"""The contract of a database for conversations and memory: one protocol for each thing that is stored.

`blocks.py` has the protocols for memory blocks, `indexes.py` those for searches, `people.py` those for what
belongs to people (facts, tasks, mailbox, auth), and `backend.py` puts all of them together.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from weft.tokens import Counter
from weft.types.epoch import Attachment, Epoch, EpochView
from weft.types.line import LineSearch, RankedLine
from weft.types.memory import (
    ActivityEntry,
    ArchivalEntry,
    RenderedBlock,
)
from weft.types.message import Message
from weft.types.receipt import Receipt
from weft.types.search import Recalled, SearchFilter
from weft.types.sent import NO_RECORD, StoredRequest, TurnBrief, TurnRecord
from weft.types.session import Fold, OpenTurn, Session, SessionRule, SideCall, Tail, TurnInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Whose items a search covers: those of an agent or a sender, with blocks shared with it, or all.

    Of the session `without_session` only the messages before the number `view_from` are covered. `only`
    limits all of it further.
    """

    owner: str = ""
    everyone: bool = False
    without_session: str = ""
    view_from: int = 0
    only: SearchFilter = SearchFilter()


class MessageLog(Protocol):
    """Conversations: append-only, each message counted once when it is written."""

    async def append(self, session_id: str, *messages: Message) -> None:
        """Append messages, all of them or none."""

    async def newest(self, session_id: str, n: int) -> list[Message]:
        """Return the last n messages, oldest first."""

    async def all(self, session_id: str) -> list[Message]: ...

    async def tail(
        self,
        session_id: str,
        counter: Counter,
        *,
        max_tokens: int | None,
        max_messages: int | None,
        after: int = 0,
    ) -> Tail:
        """Return the newest entries, up to and including the one that passes a limit.

        Messages up to the number `after` are folded into a summary, and left out.
        """

    async def between(self, session_id: str, first: int, last: int) -> list[Message]:
        """Return messages by their numbers, counted from 1, both included."""

    async def find_text(self, session_id: str, text: str, *, limit: int = 20) -> list[tuple[int, Message]]:
        """Return the newest messages with a text in them, oldest first, each with its number."""

    async def fold(self, session_id: str) -> Fold | None:
        """Return the newest summary of the beginning of a conversation."""

    async def list_folds(self, session_id: str) -> list[Fold]:
        """Return all summaries of a conversation, oldest first, also those that were opened again."""

    async def add_fold(self, session_id: str, fold: Fold) -> None:
        """Store a summary. The messages that it stands for stay in the log."""

    async def remove_folds(self, session_id: str) -> int:
        """Open all folds of a conversation again, so that its messages are shown. Returns their number."""


class Sessions(Protocol):
    """Which conversation a message belongs to."""

    async def get(self, session_id: str) -> Session:
        """Return a session. Raises StoreError if there is none of that id."""

    async def find(self, session_id: str) -> Session | None: ...

    async def find_either(
        self, name: str, channel: str, sender: str, *, rule: SessionRule = ...
    ) -> tuple[Session | None, Session | None]:
        """Return the session with this id, and the session of the conversation with this name."""

    async def find_open(
        self, channel: str, conversation: str, sender: str, *, rule: SessionRule = ...
    ) -> Session | None:
        """Return the open session of this conversation, if there is one and it was not idle."""

    async def list(
        self, *, limit: int = ..., prefix: str = "", senders: Collection[str] | None = None
    ) -> Sequence[Session]:
        """Return sessions with their titles, the one last used first, whose ids begin with the prefix.

        With `senders` (`channel:sender_id`), only those of these senders are returned.
        """

    async def rename(self, session_id: str, title: str) -> None:
        """Give a session a title. Raises StoreError if there is none of that id."""

    async def delete(self, session_id: str) -> int:
        """Delete a session with everything in it but the fingerprint of its id. Returns how many messages.

        Raises:
            StoreError: there is none of that id, or a turn runs in it.
        """

    async def list_unlearned(self, before: float, *, limit: int = 20) -> Sequence[Session]:
        """Return sessions to learn from: idle since `before`, no summary yet, not one-off; oldest first.

        A session whose learning was postponed is left out until then.
        """

    async def postpone_learning(self, session_id: str, until: float) -> None: ...

    async def set_learned(self, session_id: str, messages: int) -> None:
        """Record from how many messages of a session facts were learned."""

    async def new(
        self,
        channel: str,
        conversation: str,
        sender: str,
        *,
        agent_id: str = "",
        rule: SessionRule = ...,
        session_id: str = "",
    ) -> Session:
        """Create a session and bind this conversation to it; an import brings its id, and binds nothing."""

    async def find_or_create(
        self, channel: str, conversation: str, sender: str, *, agent_id: str = "", rule: SessionRule = ...
    ) -> Session:
        """Return the open session of this conversation, or a new one if there is none or it was idle."""

    async def reopen(self, session_id: str, *, rule: SessionRule = ...) -> Session:
        """Open a closed session again, in the place of the session that its conversation is in now.

        Raises:
            StoreError: there is none of that id.
        """

    async def close(self, session_id: str) -> None:
        """Close a session. Raises StoreError if there is none of that id."""

    async def close_idle(self, session_id: str, before: float) -> bool:
        """Close a session that has not been used since `before` and has no running turn.

        Returns whether the session is closed.
        """


class Epochs(Protocol):
    """The stretches of sessions in which every request begins with the bytes of the one before."""

    async def view(self, session_id: str) -> EpochView:
        """Return the running epoch of a session, and the attachments of its messages."""

    async def list(self, session_id: str) -> Sequence[Epoch]:
        """Return all epochs of a session, oldest first."""

    async def attachments(self, epoch_id: int) -> Mapping[int, Attachment]:
        """Return what was attached to the messages of an epoch, by their numbers."""

    async def end(self, why: str, session_id: str | None = None) -> int:
        """End the running epoch of a session, or of all sessions. Returns how many were ended."""

    async def forget(self, why: str) -> None:
        """End all epochs, those of running turns too, because something was taken out of memory."""


class Turns(Protocol):
    """The work between a message and its answer. `finish` and `fail` raise if the turn has ended already."""

    async def begin(
        self,
        session_id: str,
        text: str,
        *,
        inbox_id: str = "",
        is_known: bool = False,
        outside: Sequence[str] = (),
    ) -> str:
        """Store a message before anything is done with it. Returns the id of its turn.

        `outside` names where text of strangers in the message comes from.

        If the message came from the inbox, the end of the turn also answers it there. A message that
        `is_known` is in the log already, because the turn continues an earlier one.
        """

    async def step(self, turn_id: str, *messages: Message, inbox_ids: Sequence[str] = ()) -> None:
        """Store what a turn did so far: calls before they run, results as they come.

        Messages of the inbox that became part of the turn need no answer of their own.
        """

    async def finish(
        self,
        turn_id: str,
        receipt: Receipt,
        *messages: Message,
        reply: str = "",
        record: TurnRecord = NO_RECORD,
    ) -> None:
        """Append the whole exchange to the log and store its receipt: all of it or nothing, and only once.

        `record` has its requests, and what the turn adds to its epoch.

        Raises:
            StoreError: the turn has ended already.
        """

    async def fail(
        self,
        turn_id: str,
        error: str,
        *messages: Message,
        reply: str = "",
        record: TurnRecord = NO_RECORD,
    ) -> None:
        """Give a turn up, and append what it did to the log. If it did nothing, the turn has its message."""

    async def list_interrupted(self, session_id: str | None = None) -> Sequence[OpenTurn]:
        """Return turns whose process is gone, oldest first."""

    async def settle(self, turn_id: str, *messages: Message, reply: str = "") -> bool:
        """Append an interrupted turn to the log as it is. Returns False if another process did so already."""

    async def list(self, session_id: str, *, limit: int = 100) -> Sequence[str]:
        """Return the ids of a session's turns that were answered, newest first."""

    async def get(self, turn_id: str) -> Receipt:
        """Return the receipt of a turn. Raises StoreError if there is none."""

    async def find(self, turn_id: str) -> Receipt | None:
        """Return the receipt of a turn, if the turn was answered."""

    async def page(
        self, session_id: str, *, limit: int = 100, before: int | None = None
    ) -> Sequence[TurnInfo]:
        """Return turns of a session that ended, newest first, with the beginnings of their messages.

        With `before`, only those with smaller numbers are returned.
        """

    async def briefs(
        self, session_id: str, *, limit: int = 100, before: int | None = None
    ) -> Sequence[TurnBrief]:
        """Return turns as `page` does, each with its receipt and the sizes of its requests."""

    async def find_at(
        self, senders: Collection[str], times: Collection[datetime]
    ) -> Mapping[datetime, TurnInfo]:
        """Return the turns of these senders that ran at these times, where one did."""

    async def number_at(self, session_id: str, message: int) -> int:
        """Return the number of the turn in which a message was said, by the message's number; 0 for none."""

    async def find_info(self, session_id: str, number: int) -> TurnInfo | None:
        """Return a turn of a session by its number, if there is one."""

    async def number(self, turn_id: str) -> TurnInfo | None:
        """Return a turn by its id, with its number in its session."""

    async def find_prefix(
        self, prefix: str, *, session_id: str | None = None, limit: int = 10
    ) -> Sequence[TurnInfo]:
        """Return turns that ended and whose ids begin so, newest first; with a session only those in it."""

    async def requests(self, turn_id: str) -> Sequence[StoredRequest]:
        """Return the requests of a turn as they were sent, in their order."""

    async def delete_requests(self, before: float) -> int:
        """Delete the requests that were sent before a time. Returns how many."""

    async def find_session(self, turn_id: str) -> str | None:
        """Return the id of the session of a turn, if there is such a turn."""

    async def find_ratios(self, model: str, counter: str) -> Mapping[str, float]:
        """Return how many of a model's tokens one of a counter's is, by script, as its provider reported."""

    async def find_window(self, model: str) -> int | None:
        """Return the window that a server named for `PROVIDER:MODEL`, if it was asked before."""

    async def save_window(self, model: str, window: int) -> None: ...

    async def add_call(self, call: SideCall) -> None:
        """Store a request that was made beside the answers, with what it cost."""

    async def list_calls(self, session_id: str) -> Sequence[SideCall]:
        """Return the requests that were made beside the answers of a session, oldest first."""

    async def failed_at(self, kind: str, model: str) -> datetime | None:
        """Return when the newest request of a kind failed, if it did; None after one that succeeded."""

    async def save_result(self, session_id: str, tool: str, content: str, *, outside: str = "") -> str:
        """Store the whole of a result that is too long to be shown. Returns its id."""

    async def read_result(
        self, session_id: str, result_id: str, offset: int, length: int
    ) -> tuple[str, int, str]:
        """Return a part of a result, counted in characters from 0, and the length of the whole.

        The third value is the place that strangers' text in it comes from; empty, if there is none.

        Raises:
            StoreError: this session has no such result.
        """


class Recall(Protocol):
    async def recall(
        self,
        query: str,
        *,
        sender: str,
        session_id: str,
        limit: int,
        view_from: int = 0,
        now: datetime | None = None,
    ) -> Sequence[Recalled]:
        """Return lines of the sender's conversations that bear on the query, best first.

        "Last week" is the one before `now`, or before the present. Of the session `session_id`, only messages
        before the number `view_from` are returned: the model sees the others.
        """


class Blocks(Protocol):
    async def rendered_blocks(
        self, agent_id: str, *, named: Collection[str] | None = None
    ) -> Sequence[RenderedBlock]:
        """Return the blocks that the agent may read, its own before those shared with it.

        With `named`, only the blocks that every turn shows (core, and pinned working ones) and those with
        these ids are read.
        """


class Archive(Protocol):
    """Notes that are only shown when a search asks for them."""

    async def insert(self, agent_id: str, content: str, metadata: Mapping[str, Any] | None = None) -> str:
        """Store a note and return its id."""

    async def list(self, ids: Sequence[str]) -> Mapping[str, ArchivalEntry]:
        """Return notes by their ids."""

    async def newest(self, agent_id: str, limit: int) -> Sequence[ArchivalEntry]:
        """Return notes of an agent, newest first."""

    async def delete(self, entry_id: str, *, agent_id: str | None = None) -> bool:
        """Delete a note; with `agent_id` only one of that agent's. Returns whether it existed."""


class LineIndex(Protocol):
    """Finds lines of conversations, with what is said around them."""

    async def search(self, search: LineSearch, scope: Scope) -> Sequence[RankedLine]:
        """Return the best lines of a search within a scope, best first, with their texts.

        `search.ask` and `search.rank` are called in a thread of the store.
        """


class Activity(Protocol):
    async def recent(self, agent_id: str, *, since: datetime, limit: int) -> Sequence[ActivityEntry]:
        """Return what happened since then, newest last."""
