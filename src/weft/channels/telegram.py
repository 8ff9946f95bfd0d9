"""Telegram: messages come by long polling, and are safe with us before Telegram is told so."""

from __future__ import annotations

import asyncio
import logging
import os
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from html import unescape
from types import ModuleType
from typing import TYPE_CHECKING, Any

from weft.channels.telegram_text import messages, plain_messages
from weft.errors import ChannelError
from weft.gateway.channel import Submit
from weft.types.envelope import Inbound, Outbound

if TYPE_CHECKING:
    from telegram import Bot, CallbackQuery, Update

_log = logging.getLogger(__name__)
_WANTED = ("message", "edited_message", "callback_query")
_REFUSED = "Telegram does not accept the token: check `telegram.token`."
_DOUBTFUL = frozenset({"ReadTimeout", "ReadError", "RemoteProtocolError"})
"""Errors of httpx after a request went out: Telegram may have done what it asks for."""
_LONGEST_WAIT = 60.0
_PATIENCE = 300.0
"""How long an answer waits for Telegram's own limits before it is given back to be tried later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TelegramSettings:
    """The bot's token or where it is, who may write, and where Telegram is."""

    token: str = ""
    allowed: tuple[str, ...] = ()
    poll_seconds: int = 30
    api_url: str = "https://api.telegram.org"

    def __repr__(self) -> str:
        return f"TelegramSettings(allowed={self.allowed!r}, api_url={self.api_url!r})"


class Telegram:
    """One bot."""

    name = "telegram"

    def __init__(self, token: str, settings: TelegramSettings) -> None:
        self._settings, self.allowed = settings, settings.allowed
        self._sdk: ModuleType = _load()
        self._lines = self._sdk.request.HTTPXRequest(), self._sdk.request.HTTPXRequest()
        self._bot: Bot = self._sdk.Bot(
            token,
            base_url=f"{settings.api_url}/bot",
            base_file_url=f"{settings.api_url}/file/bot",
            get_updates_request=self._lines[0],
            request=self._lines[1],
        )
        self._stopped = asyncio.Event()

    async def run(self, submit: Submit) -> None:
        """Bring messages in until `stop`. An update counts as received when it is safe here.

        Raises:
            ChannelError: the token is not accepted.
        """
        offset: int | None = None
        while not self._stopped.is_set():
            updates = await self._trying(lambda: self._poll(offset))  # noqa: B023 - it is called at once
            for update in updates or ():
                inbound = read(update)
                if inbound is not None:
                    await submit(inbound)
                if update.callback_query is not None:
                    await self._pressed(update.callback_query.id)
                offset = update.update_id + 1

    async def send(self, message: Outbound) -> None:
        """Carry an answer out, in as many messages as it takes; those that arrived before are left out.

        Raises:
            ChannelError: the person blocked the bot, or Telegram cannot be reached.
        """
        for number, (html, plain) in enumerate(_pairs(message.text)):
            if number < message.arrived:
                continue
            try:
                await self._send_part(message, html, plain)
            except self._sdk.error.TelegramError as error:
                raise self._failed(error, arrived=number) from error

    async def _send_part(self, message: Outbound, html: str, plain: str) -> None:
        try:
            await self._patiently(lambda: self._say(message, html, "HTML"))
        except self._sdk.error.BadRequest as error:
            _log.warning("Telegram did not take the formatting of an answer: %s", error)
            await self._patiently(lambda: self._say(message, plain, None))

    async def typing(self, conversation: str) -> None:
        try:
            await self._bot.send_chat_action(chat_id=conversation, action="typing")
        except self._sdk.error.TelegramError as error:
            _log.info("Telegram did not show that an answer is coming: %s", error)

    async def ask(self, conversation: str, question: str, *, yes: str, no: str) -> None:
        """Ask with two buttons.

        Raises:
            ChannelError: Telegram did not take the question.
        """
        button, rows = self._sdk.InlineKeyboardButton, self._sdk.InlineKeyboardMarkup
        keys = rows([[button("Yes", callback_data=yes), button("No", callback_data=no)]])
        *before, last = plain_messages(question)
        for text in before:
            await self._once(lambda: self._bot.send_message(chat_id=conversation, text=text))  # noqa: B023
        await self._once(lambda: self._bot.send_message(chat_id=conversation, text=last, reply_markup=keys))

    async def _pressed(self, query_id: str) -> None:
        """Let the button rest that somebody pressed."""
        try:
            await self._bot.answer_callback_query(query_id)
        except self._sdk.error.TelegramError as error:
            _log.info("Telegram did not let a button rest: %s", type(error).__name__)

    async def stop(self) -> None:
        self._stopped.set()

    async def close(self) -> None:
        self._stopped.set()
        for line in self._lines:
            await line.shutdown()

    async def _poll(self, offset: int | None) -> Any:
        return await self._bot.get_updates(
            offset=offset, timeout=self._settings.poll_seconds, allowed_updates=_WANTED
        )

    async def _say(self, message: Outbound, text: str, mode: str | None) -> Any:
        return await self._bot.send_message(
            chat_id=message.conversation, text=text, parse_mode=mode, disable_notification=False
        )

    async def _trying(self, ask: Callable[[], Awaitable[Any]]) -> Any:
        """What Telegram answers; while the line is down or it is busy, wait longer and longer."""
        wait = 1.0
        while not self._stopped.is_set():
            asking = asyncio.ensure_future(ask())
            stopping = asyncio.ensure_future(self._stopped.wait())
            await asyncio.wait({asking, stopping}, return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
            if not asking.done():
                asking.cancel()
                await asyncio.wait({asking})
                return None
            try:
                return asking.result()
            except (self._sdk.error.InvalidToken, self._sdk.error.Forbidden) as error:
                _log.debug("refused: %s", type(error).__name__)
                raise ChannelError(_REFUSED) from None
            except self._sdk.error.RetryAfter as error:
                wait = _seconds(error)
            except self._sdk.error.TelegramError as error:
                _log.warning("Telegram cannot be reached (%s): trying again.", type(error).__name__)
                wait = min(wait * 2, _LONGEST_WAIT)
            await self._pause(wait)
        return None

    async def _patiently(self, ask: Callable[[], Awaitable[Any]]) -> None:
        """Ask, and where Telegram says to wait, wait: parts that were sent already are not sent again."""
        waited = 0.0
        while True:
            try:
                await ask()
                return
            except self._sdk.error.RetryAfter as error:
                waited += _seconds(error)
                if waited > _PATIENCE or self._stopped.is_set():
                    raise
                await self._pause(_seconds(error))

    async def _once(self, ask: Callable[[], Awaitable[Any]]) -> None:
        try:
            await self._patiently(ask)
        except self._sdk.error.TelegramError as error:
            raise self._failed(error) from error

    def _failed(self, error: Any, *, arrived: int = 0) -> ChannelError:
        """A failure in our words: some pass, some never will, and of some nobody knows."""
        kinds = self._sdk.error
        if isinstance(error, kinds.RetryAfter):
            told = "Telegram wants us to wait: the answer is sent later."
            return ChannelError(told, retry=_seconds(error), arrived=arrived)
        if isinstance(error, kinds.InvalidToken):  # its message has the token in it
            return ChannelError(_REFUSED)
        if isinstance(error, kinds.BadRequest | kinds.Forbidden):
            return ChannelError(f"Telegram refuses to deliver this: {error.message}.")
        if type(error.__cause__).__name__ in _DOUBTFUL:
            return ChannelError("Telegram was told and did not say whether it understood.", doubtful=True)
        told = "Telegram cannot be reached: the answer is sent later."
        return ChannelError(told, retry=5.0, arrived=arrived)

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._stopped.wait()
        except TimeoutError:
            return


def read(update: Update) -> Inbound | None:
    """A message of somebody; None for what no person said, such as that somebody joined."""
    if (pressed := update.callback_query) is not None:
        return _pressed(update.update_id, pressed)
    message = update.message or update.edited_message
    if message is None or message.from_user is None or message.from_user.is_bot:
        return None
    text = message.text or message.caption or ""
    kind = "edit" if update.edited_message else "text" if message.text else "unsupported"
    return Inbound(
        channel=Telegram.name,
        conversation=str(message.chat.id),
        sender=str(message.from_user.id),
        text=text,
        external_id=str(update.update_id),
        name=message.from_user.full_name,
        kind=kind,  # type: ignore[arg-type]
        at=message.date,
    )


def _pressed(update_id: int, pressed: CallbackQuery) -> Inbound | None:
    """A button is what it says: a yes or a no. Only our own have a text."""
    if pressed.message is None or not pressed.data:
        return None
    return Inbound(
        channel=Telegram.name,
        conversation=str(pressed.message.chat.id),
        sender=str(pressed.from_user.id),
        text=pressed.data,
        external_id=str(update_id),
        name=pressed.from_user.full_name,
    )


def _pairs(text: str) -> list[tuple[str, str]]:
    """Each part of an answer as HTML, and as plain text should Telegram not take that."""
    formatted, plain = messages(text), plain_messages(text)
    if len(formatted) == len(plain):
        return list(zip(formatted, plain, strict=True))
    return [(html, _stripped(html)) for html in formatted]


def _stripped(html: str) -> str:
    return unescape(re.sub(r"<[^>]+>", "", html))


def _seconds(error: Any) -> float:
    after = error.retry_after
    return float(after.total_seconds() if hasattr(after, "total_seconds") else after)


def _load() -> ModuleType:
    os.environ.setdefault("PTB_TIMEDELTA", "true")  # times as durations, as the next version has them
    import telegram.request  # noqa: PLC0415 - half a second that only who uses Telegram pays

    # The address of every request holds the token, and httpx logs addresses.
    for name in ("httpx", "httpcore", "telegram"):
        logging.getLogger(name).setLevel(logging.WARNING)
    return telegram
