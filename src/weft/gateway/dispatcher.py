"""Durable channels around the one desk: an inbox before it, an outbox behind it.

A message is in the inbox before its channel confirms it, and an answer is in the outbox before it is sent: a
restart goes on where it was.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import replace
from functools import partial
from weakref import WeakValueDictionary

from weft.errors import ChannelError, StoreError, Unauthorized, WeftError
from weft.gateway.assistant import Assistant
from weft.gateway.channel import Channel
from weft.gateway.consent import PendingQuestion
from weft.gateway.deliveries import DOUBTFUL, Deliveries
from weft.types.delivery import Waiting
from weft.types.envelope import Inbound, Outbound, Seen, place_of
from weft.types.person import OWNER_NAME
from weft.types.redacted import Content
from weft.types.reply import Done, TurnStarted
from weft.types.request import Address, Caller, TurnRequest

_log = logging.getLogger(__name__)

_MAX_KNOWN_IDS = 10_000
"""Ids of messages that were taken up, so that none is taken up twice."""

_RETRY_SECONDS = 1.0
_CODE_SECONDS = 60.0
"""A stranger gets a pairing code at most this often."""
_MAX_STRANGERS = 1000
_MAX_SESSIONS = 1000
"""How many sessions are looked through, newest first, for one of the owner's."""

NOT_ALLOWED = "neither allowed nor paired"
EDITED = "I saw that you changed a message. I go by what was sent first: please send it again as a new one."
UNSUPPORTED = "I can read text only, so far. Please write what you mean."
FAILED = "Something went wrong here, and your message could not be answered. Please try again."
STRANGER = (
    "I do not know you yet. If this assistant is yours, let yourself in with\n\n`weft pair {code}`\n\n"
    "within 15 minutes, on the machine where it runs."
)
_REPLIES = {"edit": EDITED, "unsupported": UNSUPPORTED}


class Dispatcher:
    """Stores messages of channels, hands them to the desk in order, and sends the answers."""

    def __init__(self, assistant: Assistant, channels: Sequence[Channel]) -> None:
        self._assistant, self._settings = assistant, assistant.lanes.settings
        self._channels = {channel.name: channel for channel in channels}
        assistant.allowed |= {channel.name: channel.allowed for channel in channels}
        assistant.ask_owner = self._ask_owner
        self._deliveries = Deliveries(assistant.store, self._channels, self._settings)
        self._running: set[asyncio.Task[None]] = set()
        self._questions: dict[Address, PendingQuestion] = {}
        self._asking: WeakValueDictionary[Address, asyncio.Lock] = WeakValueDictionary()
        self._codes_sent: dict[tuple[str, str], float] = {}
        self._known_ids: dict[str, None] = {}
        self._stopping = False

    async def submit(self, message: Inbound, seen: Sequence[Seen] = ()) -> bool:
        """Store a message and take it up. When this returns it is safe.

        The text of a stranger is never stored. What a stream has `seen` is stored together with its notice.

        Returns:
            False if the message was known already.
        """
        store = await self._assistant.store.get()
        if not await self._assistant.is_allowed(_caller(message)):
            message = replace(message, text="", name="")
        inbox_id = await store.mailbox.receive(message, seen)
        if inbox_id is None:
            return False
        fields = {"channel": message.channel, "kind": message.kind, "text": Content(message.text)}
        _log.info("message received", extra=fields)
        self._take_up(Waiting(id=inbox_id, message=message))
        return True

    async def resume(self) -> None:
        """Go on after a restart: report what was interrupted, answer what waits, send what is due."""
        store = await self._assistant.store.get()
        await self._assistant.interrupted()
        await store.mailbox.fail_interrupted(self._channels, note=DOUBTFUL)
        await self.look_again()

    async def look_again(self) -> None:
        """Take up what somebody else put into the inbox or the outbox."""
        store = await self._assistant.store.get()
        for waiting in await store.mailbox.list_waiting():
            self._take_up(waiting)
        self._deliveries.look()

    async def deliver(self) -> None:
        """Send what is in the outbox, until `stop`."""
        await self._deliveries.run()

    async def stop(self) -> None:
        """Let running turns end and send their answers. What waits stays in the inbox for the next start."""
        self._stopping = True
        for question in self._questions.values():
            question.end(agreed=False)
        self._assistant.lanes.stop()
        if self._running:
            _, late = await asyncio.wait(self._running, timeout=self._settings.stop_seconds)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late)
        await self._deliveries.stop()

    def _take_up(self, waiting: Waiting) -> None:
        """Begin to handle a stored message. The order of calls is the order of answers in each lane."""
        if waiting.id in self._known_ids or self._stopping:
            return
        self._known_ids[waiting.id] = None
        if len(self._known_ids) > _MAX_KNOWN_IDS:
            del self._known_ids[next(iter(self._known_ids))]
        task = asyncio.create_task(self._contained(waiting), name=f"message of {waiting.message.channel}")
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _contained(self, waiting: Waiting) -> None:
        """Handle one message. Whatever goes wrong with it, the others are served."""
        try:
            await self._handle(waiting)
        except Unauthorized:
            await self._refuse(waiting)
        except WeftError as error:
            await self._answer_surely(waiting, str(error))
        except Exception:  # noqa: BLE001 - one message must not take the others with it
            _log.exception("a message could not be handled")
            await self._answer_surely(waiting, FAILED)

    async def _handle(self, waiting: Waiting) -> None:
        message, request = waiting.message, self._request(waiting)
        question = self._questions.get(request.caller.address)
        if question is not None and message.kind == "text" and question.take(message.text):
            await self._answer(waiting, "")
            return
        if message.kind in _REPLIES:
            async with self._assistant.lanes.admit(request):
                if not await self._assistant.is_allowed(request.caller):
                    raise Unauthorized
                await self._answer(waiting, _REPLIES[message.kind])
            return
        async with AsyncExitStack() as stack:
            events = await stack.enter_async_context(aclosing(self._assistant.handle(request)))
            async for event in events:
                if isinstance(event, TurnStarted):
                    await stack.enter_async_context(self._typing(message))
                elif isinstance(event, Done) and not event.reply.turn_id:
                    await self._answer(waiting, event.reply.text)  # a turn answers in its own transaction
        self._deliveries.look()

    def _request(self, waiting: Waiting) -> TurnRequest:
        message = waiting.message
        caller = replace(_caller(message), ask=partial(self._ask, _caller(message).address))
        return TurnRequest(
            text=message.text,
            caller=caller,
            session=message.conversation,
            commands=message.kind == "text" and message.origin == "user",
            origin=message.origin,
            blocks=message.blocks,
            inbox_id=waiting.id,
            outside=tuple(filter(None, (place_of(message),))),
        )

    async def _refuse(self, waiting: Waiting) -> None:
        """Refuse a stranger's message. They get a pairing code, but not with every message."""
        store, message = await self._assistant.store.get(), waiting.message
        fields = {"channel": message.channel, "kind": message.kind, "reason": NOT_ALLOWED}
        _log.info("message refused", extra=fields)
        await store.mailbox.refuse(waiting.id, NOT_ALLOWED)
        if message.kind == "notice":
            _log.warning("nobody was told a notice: its recipient is %s", NOT_ALLOWED)
            return
        sender, now = (message.channel, message.sender), time.monotonic()
        if self._codes_sent.get(sender, -_CODE_SECONDS) + _CODE_SECONDS > now:
            return
        if len(self._codes_sent) >= _MAX_STRANGERS:
            self._codes_sent.clear()
        self._codes_sent[sender] = now
        code = await store.auth.offer_pairing(message.channel, message.sender)
        text = STRANGER.format(code=code)
        reply = Outbound(channel=message.channel, conversation=message.conversation, text=text)
        await store.mailbox.enqueue(reply)
        self._deliveries.look()

    async def _answer(self, waiting: Waiting, text: str) -> None:
        await (await self._assistant.store.get()).mailbox.answer(waiting.id, text)
        self._deliveries.look()

    async def _answer_surely(self, waiting: Waiting, text: str) -> None:
        """Answer, and wait while the store is busy. The next start reports a message without an answer."""
        while not self._stopping:
            try:
                await self._answer(waiting, text)
                return
            except StoreError as error:
                _log.warning("an answer could not be stored yet: %s", error)
                await asyncio.sleep(_RETRY_SECONDS)

    async def _ask_owner(self, question: str) -> bool:
        """Ask the owner for consent where they wrote last. Nobody to ask counts as a refusal.

        By the settings the turn may continue without: then the owner reads the question and cannot answer.
        """
        address = await self._owner_address()
        if address is None:
            _log.warning("the owner could not be asked: they never wrote on a channel that is open here")
            return False
        if self._settings.owner_consent == "wait":
            return await self._ask(address, question)
        channel, conversation, _ = address
        told = Outbound(
            channel=channel, conversation=conversation, text=f"Not done without you.\n\n{question}"
        )
        await (await self._assistant.store.get()).mailbox.enqueue(told)
        self._deliveries.look()
        return False

    async def _owner_address(self) -> Address | None:
        """Return the conversation in which the owner wrote last, among the channels that are open here."""
        store = await self._assistant.store.get()
        senders = next((one.senders for one in await store.people.list() if one.name == OWNER_NAME), ())
        for session in await store.sessions.list(limit=_MAX_SESSIONS):
            if session.channel in self._channels and f"{session.channel}:{session.sender}" in senders:
                return session.channel, session.conversation, session.sender
        return None

    async def _ask(self, address: Address, question: str) -> bool:
        """Ask the person of a conversation for consent. A timeout counts as a refusal."""
        channel = self._channels.get(address[0])
        lock = self._asking.setdefault(address, asyncio.Lock())
        async with lock:
            if channel is None or self._stopping:
                return False
            pending = self._questions[address] = PendingQuestion()
            try:
                await channel.ask(address[1], question, yes=pending.yes, no=pending.no)
                pending.is_visible = True
                async with asyncio.timeout(self._settings.consent_seconds):
                    return await pending.answer
            except TimeoutError:
                return False
            except ChannelError as error:
                _log.warning("a question could not be asked: %s", error)
                return False
            finally:
                del self._questions[address]

    @asynccontextmanager
    async def _typing(self, message: Inbound) -> AsyncIterator[None]:
        """Show that an answer is coming, again and again until it is there."""
        channel = self._channels.get(message.channel)

        async def repeat() -> None:
            while channel is not None:
                await channel.typing(message.conversation)
                await asyncio.sleep(self._settings.typing_seconds)

        showing = asyncio.create_task(repeat())
        await asyncio.sleep(0)  # it begins before anything else is done with the message
        try:
            yield
        finally:
            showing.cancel()
            await asyncio.wait([showing])


def _caller(message: Inbound) -> Caller:
    return Caller(
        agent_id="weft",
        channel=message.channel,
        sender_id=message.sender,
        conversation=message.conversation,
    )
