"""Telegram: messages come by long polling, and are stored before they are confirmed to Telegram.

The Bot API is five calls of JSON over HTTP, so no package of its own is needed for it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from html import unescape
from types import ModuleType
from typing import Any

from weft.channels.telegram_settings import TelegramSettings
from weft.channels.telegram_text import messages, plain_messages
from weft.errors import ChannelError
from weft.gateway.channel import Submit
from weft.gateway.waiting import pause, unless
from weft.types.envelope import Inbound, Outbound
from weft.types.redacted import Redacted

_log = logging.getLogger(__name__)
_WANTED = json.dumps(["message", "edited_message", "callback_query"])
_REFUSED = "Telegram does not accept the token: check `telegram.token`."
_LATER = "Telegram cannot be reached: the answer is sent later."
_DOUBTFUL = "Telegram got the answer and did not confirm it."
_MAX_WAIT_SECONDS = 60.0
_PATIENCE_SECONDS = 300.0
"""How long an answer waits for Telegram's rate limits before it goes back to the outbox."""
_TIMEOUT_SECONDS = 20.0
_MAX_START_CHARS = 500


@dataclass(frozen=True, slots=True)
class _ApiError(Exception):
    """A call that failed. A status of 0 stands for the network; `doubtful`: Telegram may have done it."""

    status: int = 0
    description: str = ""
    retry_seconds: float | None = None
    doubtful: bool = False


class Telegram:
    """One bot."""

    name = "telegram"

    def __init__(self, token: str, settings: TelegramSettings) -> None:
        self._settings, self.allowed = settings, settings.allowed
        self._httpx = _load()
        self._http = self._httpx.AsyncClient(base_url=f"{settings.api_url}/bot{token}/")
        self._stopped = asyncio.Event()

    async def run(self, submit: Submit) -> None:
        """Bring messages in until `stop`. The next poll confirms an update, which is stored by then.

        Raises:
            ChannelError: the token is not accepted.
        """
        poll: dict[str, object] = {"timeout": self._settings.poll_seconds, "allowed_updates": _WANTED}
        wait = 1.0
        while not self._stopped.is_set():
            polling = await unless(self._stopped.wait(), self._call("getUpdates", poll))
            if polling is None:
                return
            if isinstance(error := polling.exception(), _ApiError):
                if error.status in (401, 403, 404):
                    raise ChannelError(_REFUSED)
                _log.warning("Telegram cannot be reached (status %d): trying again.", error.status)
                wait = error.retry_seconds or min(wait * 2, _MAX_WAIT_SECONDS)
                await pause(self._stopped, wait)
                continue
            wait = 1.0
            for update in polling.result():
                await self._receive(update, submit)
                poll["offset"] = update["update_id"] + 1

    async def _receive(self, update: Mapping[str, Any], submit: Submit) -> None:
        inbound = read(update)
        if inbound is not None:
            await submit(inbound)
        if query := update.get("callback_query"):
            await self._try("answerCallbackQuery", {"callback_query_id": query["id"]})

    async def send(self, message: Outbound) -> None:
        """Deliver an answer in as many messages as it takes. Parts that arrived before are left out.

        Raises:
            ChannelError: the person blocked the bot, or Telegram cannot be reached.
        """
        for number, (html, plain) in enumerate(_parts(message.text)):
            if number >= message.arrived:
                await self._send_part(message.conversation, html, plain, number)

    async def _send_part(self, chat: str, html: str, plain: str, number: int) -> None:
        try:
            await self._patiently({"chat_id": chat, "text": html, "parse_mode": "HTML"})
        except _ApiError as error:
            if error.status != 400:
                raise _failure(error, arrived=number) from error
            _log.warning("Telegram did not take the formatting of an answer: %s", Redacted(error.description))
            await self._deliver({"chat_id": chat, "text": plain}, arrived=number)

    async def typing(self, conversation: str) -> None:
        await self._try("sendChatAction", {"chat_id": conversation, "action": "typing"})

    async def ask(self, conversation: str, question: str, *, yes: str, no: str) -> None:
        """Ask with two buttons. A question that is too long for a message comes as a file, with its start.

        Raises:
            ChannelError: Telegram did not take the question.
        """
        buttons = [[{"text": "Yes", "callback_data": yes}, {"text": "No", "callback_data": no}]]
        text, *more = plain_messages(question)
        if more:
            file = {"document": ("question.txt", question.encode("utf-8", "replace"), "text/plain")}
            await self._deliver({"chat_id": conversation}, file=file)
            start = question.partition("\n")[0][:_MAX_START_CHARS]
            text = f"{start}\n\nThe file above has all of it, {len(question):,} characters: read it first."
        keyboard = json.dumps({"inline_keyboard": buttons})
        await self._deliver({"chat_id": conversation, "text": text, "reply_markup": keyboard})

    async def stop(self) -> None:
        self._stopped.set()

    async def close(self) -> None:
        self._stopped.set()
        await self._http.aclose()

    async def _call(
        self, method: str, fields: Mapping[str, object], file: Mapping[str, Any] | None = None
    ) -> Any:
        """Call a method of the Bot API and return its result.

        Raises:
            _ApiError: Telegram refused the call, or could not be reached.
        """
        seconds = _TIMEOUT_SECONDS + float(str(fields.get("timeout", 0)))
        try:
            answer = await self._http.post(method, data=fields, files=file, timeout=seconds)
            body = answer.json()
        except self._httpx.HTTPError as error:  # its text could hold the address, and with it the token
            kinds = self._httpx
            is_sent = isinstance(error, kinds.ReadTimeout | kinds.ReadError | kinds.RemoteProtocolError)
            raise _ApiError(description=type(error).__name__, doubtful=is_sent) from None
        except ValueError:
            raise _ApiError(answer.status_code, "no JSON") from None
        if answer.status_code == 200 and body.get("ok"):
            return body["result"]
        retry = (body.get("parameters") or {}).get("retry_after")
        raise _ApiError(answer.status_code, str(body.get("description", "")), retry)

    async def _try(self, method: str, fields: Mapping[str, object]) -> None:
        """Call a method whose failure does not matter."""
        try:
            await self._call(method, fields)
        except _ApiError as error:
            _log.info("Telegram did not do %s: %s", method, Redacted(error.description))

    async def _patiently(self, fields: Mapping[str, object], file: Mapping[str, Any] | None = None) -> None:
        """Send a message or a file, and wait where Telegram says to."""
        waited = 0.0
        while True:
            try:
                await self._call("sendDocument" if file else "sendMessage", fields, file)
                return
            except _ApiError as error:
                waited += error.retry_seconds or 0.0
                if not error.retry_seconds or waited > _PATIENCE_SECONDS or self._stopped.is_set():
                    raise
                await pause(self._stopped, error.retry_seconds)

    async def _deliver(
        self, fields: Mapping[str, object], *, arrived: int = 0, file: Mapping[str, Any] | None = None
    ) -> None:
        try:
            await self._patiently(fields, file)
        except _ApiError as error:
            raise _failure(error, arrived=arrived) from error


def _failure(error: _ApiError, *, arrived: int) -> ChannelError:
    """Translate a failure: some pass, some never will, and some leave it open whether the message arrived."""
    if error.retry_seconds:
        return ChannelError(_LATER, retry=error.retry_seconds, arrived=arrived, log_text=_LATER)
    if error.status == 401:
        return ChannelError(_REFUSED, log_text=_REFUSED)
    if 400 <= error.status < 500:
        refusal = "Telegram refuses to deliver this"
        return ChannelError(f"{refusal}: {error.description}.", log_text=f"{refusal} ({error.status}).")
    if error.doubtful:
        return ChannelError(_DOUBTFUL, doubtful=True, log_text=_DOUBTFUL)
    return ChannelError(_LATER, retry=5.0, arrived=arrived, log_text=_LATER)


def read(update: Mapping[str, Any]) -> Inbound | None:
    """Read an update as a message; None for what no person wrote, such as that somebody joined."""
    query, edit = update.get("callback_query"), update.get("edited_message")
    message = (query or {}).get("message") or update.get("message") or edit
    sender = (query or message or {}).get("from") or {}
    if message is None or not sender or sender.get("is_bot") or (query and not query.get("data")):
        return None
    is_text = bool(query or message.get("text"))
    return Inbound(
        channel=Telegram.name,
        conversation=str(message["chat"]["id"]),
        sender=str(sender["id"]),
        text=query["data"] if query else message.get("text") or message.get("caption") or "",
        external_id=str(update["update_id"]),
        name=" ".join(filter(None, (sender.get("first_name"), sender.get("last_name")))),
        kind="edit" if edit else "text" if is_text else "unsupported",
        # Somebody else wrote a message that was forwarded.
        origin="import" if message.get("forward_origin") or message.get("forward_date") else "user",
        at=datetime.fromtimestamp(message["date"], UTC) if message.get("date") else None,
    )


def _parts(text: str) -> list[tuple[str, str]]:
    """Return each part of an answer as HTML, and as plain text should Telegram refuse that."""
    formatted, plain = messages(text), plain_messages(text)
    if len(formatted) == len(plain):
        return list(zip(formatted, plain, strict=True))
    return [(html, unescape(re.sub(r"<[^>]+>", "", html))) for html in formatted]


def _load() -> ModuleType:
    import httpx  # noqa: PLC0415 - only a Telegram bot needs it

    # The address of every request holds the token, and httpx logs addresses.
    for name in ("httpx", "httpcore"):
        logging.getLogger(name).setLevel(logging.WARNING)
    return httpx
