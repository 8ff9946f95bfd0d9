"""Standing instructions at the desk: what a person's message tells the assistant to always do is stored."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from weft.errors import StoreError
from weft.gateway.engine import Engine
from weft.gateway.sanitize import sanitize
from weft.memory.base import Store
from weft.store.instruction_limits import problem_with_instruction
from weft.tokens import COUNTERS
from weft.turn.run import Steering
from weft.types.instruction import instruction_key
from weft.types.recognize import standing_instructions
from weft.types.request import TurnRequest
from weft.types.session import ONE_OFF

_log = logging.getLogger(__name__)
_SEARCHED = 200
"""How many of the newest messages are looked through for the one with the instruction."""
_PREFIX = "from now on"


@dataclass(slots=True)
class HeardInstructions:
    """The standing instructions in the messages of one turn.

    They are recognized when a message is read, so that the reply can tell of them, and stored once it is
    answered: a turn that fails has told the person nothing. `changes` are the few words for the person.
    """

    engine: Engine
    changes: list[str] = field(default_factory=list)
    _is_open: bool = False
    _known: set[str] = field(default_factory=set)
    _pinned: list[str] = field(default_factory=list)
    _pending: list[tuple[str, TurnRequest]] = field(default_factory=list)

    async def hear(self, request: TurnRequest, *, is_steered: bool) -> None:
        """Read the message of a turn. With `is_steered` others may follow while the turn runs."""
        if not self._may_give(request) or not (is_steered or standing_instructions(request.own_words)):
            return
        store = await self.engine.store.get()
        session = await store.sessions.find(request.caller.session_id)
        active = await store.instructions.list(request.caller.sender)
        self._is_open = session is not None and session.channel != ONE_OFF
        self._known = {instruction_key(one.text) for one in active}
        self._pinned = [one.text for one in active if one.pinned]
        self.take(request)

    def listening(self, running: TurnRequest, steering: Steering) -> Steering:
        """Return the same function, with the messages that it returns read for instructions too."""

        def read() -> Sequence[TurnRequest]:
            requests = steering()
            for each in requests:
                self.take(replace(each, caller=running.caller))
            return requests

        return read

    def take(self, request: TurnRequest) -> None:
        """Recognize what is new in a person's own words."""
        for sentence in standing_instructions(request.own_words) if self._is_open else ():
            text = sanitize(sentence).text
            if instruction_key(text) in self._known:
                continue
            if problem := problem_with_instruction(text, self._pinned):
                _log.info("an instruction was not stored: %s", problem)
                continue
            self._known.add(instruction_key(text))
            self._pending.append((text, request))
            self.changes.append(change_of(text))

    async def save(self) -> None:
        """Store what was heard, with the messages that it came from, which are in the log by now."""
        pending, self._pending = self._pending, []
        for text, request in pending:
            store = await self.engine.store.get()
            source = await _source(store, request)
            try:
                await store.instructions.add(request.caller.sender, text, source=source)
            except StoreError as error:
                _log.warning("an instruction was not stored: %s", error)

    def _may_give(self, request: TurnRequest) -> bool:
        """Return whether a person may give instructions with this request, and its recipe shows them.

        An app that holds the conversation sends a history, and nothing is learned from what is one-off.
        """
        is_kept = bool(request.session) and not request.one_off and request.history is None
        return is_kept and request.origin == "user" and self.engine.shows_instructions(request.recipe)


def change_of(text: str) -> str:
    """Return a few words about a new instruction: `from now on: always answer in Spanish`."""
    line = " ".join(text.split()).rstrip(".!。！ ")
    if line.lower().startswith(_PREFIX):
        line = line[len(_PREFIX) :].lstrip(" ,:")
    first, _, rest = line.partition(" ")
    is_word = first[1:].islower() and first.lower() in ("always", "never", "please", "don't", "in", "every")
    line = f"{first.lower()} {rest}" if is_word else line
    return f"{_PREFIX}: {line}"


async def _source(store: Store, request: TurnRequest) -> tuple[str, int] | None:
    """Return the session and the number of a message that was logged, if it is among the newest."""
    session_id = request.caller.session_id
    tail = await store.messages.tail(session_id, COUNTERS["exact"], max_tokens=None, max_messages=_SEARCHED)
    for at in range(len(tail.entries) - 1, -1, -1):
        message = tail.entries[at].message
        if message.role == "user" and message.content == request.text:
            return session_id, tail.messages_before + at + 1
    return None
