"""Lanes: the requests of one conversation run one after the other, and only so many turns at once in all."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from weakref import WeakValueDictionary

from weft.errors import ChannelError
from weft.gateway.settings import GatewaySettings
from weft.types.reply import Reply
from weft.types.request import Address, AskConsent, TurnRequest

LANE_FULL = (
    "You have {count} messages waiting already. I will answer those first: please send this one again later."
)
LANE_BUSY = "I am still answering your last message: wait for the answer, then send this one again."
ALL_BUSY = "Too many others are waiting for an answer: ask again in a moment."
STOPPING = "The assistant is stopping: please send this message again in a moment."
STOPPED = "The turn that read this message was stopped: please send it again."


@dataclass(slots=True, eq=False)
class Ticket:
    """A request's place in its lane.

    `ready` resolves to None when it is this request's turn, or to the reply of the running turn that the
    request has steered.
    """

    request: TurnRequest
    ready: asyncio.Future[Reply | None] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )


@dataclass(slots=True, eq=False)
class Lane:
    """The requests of one conversation in order. The first one runs; `absorbed` ones steered it."""

    tickets: deque[Ticket] = field(default_factory=deque)
    absorbed: list[Ticket] = field(default_factory=list)

    def absorb(self, accepts: Callable[[TurnRequest], bool]) -> list[TurnRequest]:
        """Take the requests behind the running one, up to the first that is not accepted."""
        requests = []
        while len(self.tickets) > 1 and accepts(self.tickets[1].request):
            ticket = self.tickets[1]
            del self.tickets[1]
            self.absorbed.append(ticket)
            requests.append(ticket.request)
        return requests

    def settle(self, reply: Reply | None) -> None:
        """Give the requests that steered the turn its reply, or an error if it has none."""
        for ticket in self.absorbed:
            if ticket.ready.done():
                continue
            if reply is None:
                ticket.ready.set_exception(ChannelError(STOPPED, retry=1))
            else:
                ticket.ready.set_result(reply)
        self.absorbed.clear()


@dataclass(frozen=True, slots=True)
class Admission:
    """The head of a lane; with a `reply`, the running turn has answered this request already."""

    lane: Lane
    reply: Reply | None = None


class Lanes:
    """All lanes of an assistant, and its limit on turns at once."""

    def __init__(self, settings: GatewaySettings) -> None:
        self.settings = settings
        self._lanes: dict[Address, Lane] = {}
        self._sessions: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._slots = asyncio.Semaphore(max(settings.at_once, 1))
        self._present = 0
        self._is_stopping = False

    @asynccontextmanager
    async def admit(self, request: TurnRequest) -> AsyncIterator[Admission]:
        """Wait until it is the request's turn in its conversation.

        The place is taken before the first wait, so requests keep the order in which they came. A request
        without a session shares nothing with others, and waits for none.

        Raises:
            ChannelError: too many wait already, or the settings refuse messages while a turn runs.
        """
        caller = request.caller
        key = replace(caller, conversation=caller.conversation or request.session).address
        lane = self._lanes.get(key, Lane()) if request.session else Lane()
        self._refuse_if_full(lane, request)
        if request.session:
            self._lanes[key] = lane
        ticket = Ticket(request)
        lane.tickets.append(ticket)
        if len(lane.tickets) == 1:
            ticket.ready.set_result(None)
        try:
            self._present += 1
            yield Admission(lane, await ticket.ready)
        finally:
            self._present -= 1
            self._leave(key, lane, ticket)

    @asynccontextmanager
    async def turn(self, session_id: str) -> AsyncIterator[None]:
        """Hold a session and one of the slots for turns.

        Two addresses can lead to one session, and two turns at once there would not know what the other is
        about to store.
        """
        lock = self._sessions.setdefault(session_id, asyncio.Lock()) if session_id else asyncio.Lock()
        waits = lock.locked() or self._slots.locked()
        async with lock, self._slots:
            if waits and self._is_stopping:
                raise ChannelError(STOPPING, retry=1)
            yield

    def stop(self) -> None:
        """Refuse requests that wait, and new ones. Turns that have begun go on."""
        self._is_stopping = True
        for lane in self._lanes.values():
            for ticket in lane.tickets:
                if not ticket.ready.done():
                    ticket.ready.set_exception(ChannelError(STOPPING, retry=1))

    def without_slot(self, ask: AskConsent) -> AskConsent:
        """Return the same question, asked without holding a slot: others run while the person thinks."""

        async def asked(question: str) -> bool:
            self._slots.release()
            try:
                return await ask(question)
            finally:
                await asyncio.shield(self._slots.acquire())

        return asked

    def _refuse_if_full(self, lane: Lane, request: TurnRequest) -> None:
        if self._is_stopping:
            raise ChannelError(STOPPING, retry=1)
        if request.origin != "user":
            return  # notices and tasks are few, and nobody could send them again
        max_waiting = 0 if self.settings.while_running == "refuse" else self.settings.max_waiting
        if len(lane.tickets) > max_waiting:
            sentence = LANE_FULL.format(count=max_waiting) if max_waiting else LANE_BUSY
            raise ChannelError(sentence, retry=1)
        if self._present >= max(self.settings.at_once, 1) * (1 + max_waiting) and not request.inbox_id:
            raise ChannelError(ALL_BUSY, retry=1)

    def _leave(self, key: Address, lane: Lane, ticket: Ticket) -> None:
        if ticket in lane.tickets:
            lane.tickets.remove(ticket)
        if lane.tickets and not lane.tickets[0].ready.done():
            lane.tickets[0].ready.set_result(None)
        if not lane.tickets and self._lanes.get(key) is lane:
            del self._lanes[key]
