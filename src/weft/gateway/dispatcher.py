"""From a channel to a turn and back.

May they? What is it? Whose turn is it? Then the turn runs, and its answer goes out. A message is in the inbox
before its channel hears of it, and an answer in the outbox before it is sent: a restart goes on where it was.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial

from weft.errors import ChannelError, StoreError, WeftError
from weft.gateway.assistant import Assistant
from weft.gateway.clean import sanitise
from weft.gateway.commands import is_command, run_command
from weft.gateway.consent import Asked
from weft.gateway.conversation import Conversation
from weft.gateway.deliveries import DOUBTFUL, Channel, Deliveries, GatewaySettings
from weft.tools.base import Caller
from weft.types.delivery import Waiting
from weft.types.envelope import Inbound, Outbound, Seen
from weft.types.redacted import Content

_log = logging.getLogger(__name__)

_STRANGE = "neither allowed nor paired"
_MOST_LINES = 1000
"""So many conversations are held between messages; of others the store has all that matters."""

_MOST_TAKEN = 10_000
"""So many messages that were taken up are known by their ids, so that none is taken up twice."""

_PAUSE_SECONDS = 1.0

_CODE_SECONDS = 60.0
"""A stranger who writes on and on is answered once in so long."""

EDITED = "I saw that you changed a message. I go by what was sent first: please send it again as a new one."
UNSUPPORTED = "I can read text only, so far. Please write what you mean."
NOTHING = "There was no text in that message."
BUSY = (
    "You have {count} messages waiting already. I will answer those first: please send this one again later."
)
FAILED = "Something went wrong here, and your message could not be answered. Please try again."
STRANGER = (
    "I do not know you yet. If this assistant is yours, let yourself in with\n\n`weft pair {code}`\n\n"
    "within 15 minutes, on the machine where it runs."
)


@dataclass(slots=True)
class _Line:
    """The messages of one conversation, in the order in which they are answered.

    While a turn runs the first of them is its own, and `asked` is what it asks the person.
    """

    waiting: deque[Waiting] = field(default_factory=deque)
    worker: asyncio.Task[None] | None = None
    conversation: Conversation | None = None
    asked: Asked | None = None
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)


class Gateway:
    """Takes messages over, answers them one at a time in each conversation, and sends the answers."""

    def __init__(
        self,
        app: Assistant,
        channels: Sequence[Channel],
        *,
        allowed: Mapping[str, Collection[str]],
        settings: GatewaySettings | None = None,
    ) -> None:
        self._app, self._settings = app, settings or GatewaySettings()
        self._channels = {channel.name: channel for channel in channels}
        self._allowed = allowed
        self._lines: dict[tuple[str, str, str], _Line] = {}
        self._slots = asyncio.Semaphore(self._settings.at_once)
        self._deliveries = Deliveries(app, self._channels, self._settings)
        self._turned_away: dict[tuple[str, str], float] = {}
        self._taken: dict[str, None] = {}
        self._stopping = False

    async def submit(self, message: Inbound, seen: Sequence[Seen] = ()) -> bool:
        """Take a message over. When this returns it is safe. False if it was known already.

        What somebody says who may not come in is never kept, not even until they are told so. What a stream
        has `seen` is kept together with the notice that tells it.
        """
        store = await self._app.store.get()
        if not await self._may(message):
            message = replace(message, text="", name="")
        inbox_id = await store.mailbox.receive(message, seen)
        if inbox_id is None:
            return False
        told = {"channel": message.channel, "kind": message.kind, "text": Content(message.text)}
        _log.info("message received", extra=told)
        await self._queue(Waiting(id=inbox_id, message=message))
        return True

    async def resume(self) -> None:
        """Go on after a restart: report what was interrupted, answer what waits, send what is due."""
        store = await self._app.store.get()
        await self._app.interrupted()
        await store.mailbox.doubtful(self._channels, note=DOUBTFUL)
        await self.look_again()

    async def look_again(self) -> None:
        """Something came into the inbox or the outbox from elsewhere: take it up."""
        store = await self._app.store.get()
        for waiting in await store.mailbox.waiting():
            await self._queue(waiting)
        self._deliveries.look()

    async def _queue(self, waiting: Waiting) -> None:
        if waiting.id in self._taken:  # whoever read the inbox a moment ago may know it as new still
            return
        self._taken[waiting.id] = None
        if len(self._taken) > _MOST_TAKEN:
            del self._taken[next(iter(self._taken))]
        message = waiting.message
        key = (message.channel, message.conversation, message.sender)
        line = self._lines.setdefault(key, _Line())
        if line.asked is not None and message.kind == "text" and line.asked.settle(message.text):
            await self._answer(waiting, "")
            return
        if len(line.waiting) >= self._settings.max_waiting and message.kind != "notice":
            _refused(message, "too many are waiting")
            await self._answer(waiting, BUSY.format(count=len(line.waiting)))
            return
        line.waiting.append(waiting)
        if line.worker is None and not self._stopping:
            line.worker = asyncio.create_task(self._work(key, line), name=f"line {message.channel}")

    async def _work(self, key: tuple[str, str, str], line: _Line) -> None:
        """Answer the messages of one conversation, one after the other."""
        try:
            while line.waiting and not self._stopping:
                async with self._slots:
                    if self._stopping:
                        break
                    await self._contained(line, line.waiting[0])
                line.waiting.popleft()
        finally:
            line.worker = None
            talk = line.conversation
            plain = talk is None or talk.provider is self._app.provider
            if plain and not line.waiting and len(self._lines) > _MOST_LINES:
                self._lines.pop(key, None)

    async def _contained(self, line: _Line, waiting: Waiting) -> None:
        """One message; whatever goes wrong with it, the next one is served."""
        try:
            await self._handle(line, waiting)
        except WeftError as error:
            await self._insist(waiting, str(error))
        except Exception:  # noqa: BLE001 - one message must not take the others with it
            _log.exception("a message could not be handled")
            await self._insist(waiting, FAILED)

    async def _insist(self, waiting: Waiting, text: str) -> None:
        """Answer, however long the store is busy: what is not answered now is reported at the next start."""
        while not self._stopping:
            try:
                await self._answer(waiting, text)
                return
            except StoreError as error:
                _log.warning("an answer could not be kept yet: %s", error)
                await asyncio.sleep(_PAUSE_SECONDS)

    async def _handle(self, line: _Line, waiting: Waiting) -> None:
        """Authorise, sanitise, command, typing, turn: in this order, and nothing of it for strangers."""
        message = waiting.message
        if not await self._may(message):
            await self._turn_away(waiting)
            return
        text = sanitise(message.text).text if message.text.strip() else ""
        if message.kind not in ("text", "notice") or not text:
            polite = {"edit": EDITED, "unsupported": UNSUPPORTED}.get(message.kind, NOTHING)
            await self._answer(waiting, polite)
            return
        if line.conversation is None:
            line.conversation = await self._conversation(line, message)
        if message.kind == "text" and is_command(text):
            await self._answer(waiting, await run_command(line.conversation, text))
            return
        say = partial(line.conversation.say, inbox_id=waiting.id, origin=message.origin)
        async with self._typing(message):
            steers = self._settings.while_running == "steer" and message.kind == "text"
            steering = partial(_since, line) if steers else None
            async for _ in say(text, steering=steering, blocks=message.blocks):
                pass
        self._deliveries.look()

    async def _may(self, message: Inbound) -> bool:
        """Whether somebody may come in: on the list of the settings, or paired. Nobody else."""
        if message.sender in self._allowed.get(message.channel, ()):
            return True
        return await (await self._app.store.get()).auth.is_paired(message.channel, message.sender)

    async def _turn_away(self, waiting: Waiting) -> None:
        store, message = await self._app.store.get(), waiting.message
        _refused(message, _STRANGE)
        await store.mailbox.refuse(waiting.id, _STRANGE)
        if message.kind == "notice":  # nobody asked to come in: they get no code
            _log.warning("a notice was told to nobody: whom it is for is %s", _STRANGE)
            return
        who, now = (message.channel, message.sender), time.monotonic()
        if self._turned_away.get(who, -_CODE_SECONDS) + _CODE_SECONDS > now:
            return  # they have a code
        if len(self._turned_away) >= _MOST_LINES:
            self._turned_away.clear()
        self._turned_away[who] = now
        code = await store.auth.offer_pairing(message.channel, message.sender)
        text = STRANGER.format(code=code)
        await store.mailbox.put(
            Outbound(channel=message.channel, conversation=message.conversation, text=text)
        )
        self._deliveries.look()

    async def _conversation(self, line: _Line, message: Inbound) -> Conversation:
        caller = Caller(
            agent_id="weft",
            channel=message.channel,
            sender_id=message.sender,
            ask=partial(self._ask, line, message),
        )
        return await Conversation.open(self._app, caller, message.conversation)

    async def _ask(self, line: _Line, place: Inbound, question: str) -> bool:
        """Whether the person of a conversation agrees. Who does not answer in time does not."""
        channel = self._channels.get(place.channel)
        async with line.asking:
            if channel is None or self._stopping:
                return False
            asked = line.asked = Asked()
            self._slots.release()  # others need not wait while somebody thinks
            try:
                await channel.ask(place.conversation, question, yes=asked.yes, no=asked.no)
                asked.is_seen = True
                async with asyncio.timeout(self._settings.consent_seconds):
                    return await asked.answer
            except TimeoutError:
                return False
            except ChannelError as error:
                _log.warning("a question could not be asked: %s", error)
                return False
            finally:
                line.asked = None
                await asyncio.shield(self._slots.acquire())

    async def _answer(self, waiting: Waiting, text: str) -> None:
        await (await self._app.store.get()).mailbox.answer(waiting.id, text)
        self._deliveries.look()

    @asynccontextmanager
    async def _typing(self, message: Inbound) -> AsyncIterator[None]:
        """Show that an answer is coming, again and again until it is there."""
        channel = self._channels.get(message.channel)

        async def show() -> None:
            while channel is not None:
                await channel.typing(message.conversation)
                await asyncio.sleep(self._settings.typing_seconds)

        shown = asyncio.create_task(show())
        await asyncio.sleep(0)  # it begins before anything else is done with the message
        try:
            yield
        finally:
            shown.cancel()
            await asyncio.wait([shown])

    async def deliver(self) -> None:
        """Send what must go out, until the gateway stops."""
        await self._deliveries.run()

    async def stop(self) -> None:
        """Let running turns come to their end and send their answers; what waits stays for the next start."""
        self._stopping = True
        for line in self._lines.values():
            if line.asked is not None:
                line.asked.end(agreed=False)
        workers = [line.worker for line in self._lines.values() if line.worker is not None]
        if workers:
            _, late = await asyncio.wait(workers, timeout=self._settings.stop_seconds)
            for worker in late:
                worker.cancel()
            if late:
                await asyncio.wait(late)
        await self._deliveries.stop()


def _since(line: _Line) -> list[Waiting]:
    """What was written since the turn of a line began, up to what is not plain text. It leaves the line."""
    taken = []
    while len(line.waiting) > 1 and _is_plain(line.waiting[1].message):
        waiting = line.waiting[1]
        del line.waiting[1]
        text = sanitise(waiting.message.text).text
        taken.append(replace(waiting, message=replace(waiting.message, text=text)))
    return taken


def _is_plain(message: Inbound) -> bool:
    return message.kind == "text" and bool(message.text.strip()) and not is_command(message.text)


def _refused(message: Inbound, reason: str) -> None:
    _log.info("message refused", extra={"channel": message.channel, "kind": message.kind, "reason": reason})
