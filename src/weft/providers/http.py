"""A vendor over HTTP: exactly the bytes that were rendered are sent, and the answer is read as it comes.

A request is tried again only for errors that pass by themselves, and only before any of the answer was
passed on. A key is in one header and nowhere else: not in errors, logs or receipts.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from http import HTTPStatus
from typing import Any

import httpx

from weft.errors import ProviderError, RequestTooLong
from weft.offload import offloaded
from weft.providers.access import HttpSettings
from weft.providers.base import FindWindow, collected
from weft.providers.discover import (
    ListedModel,
    described_window,
    find_listed,
    is_too_long,
    listed_models,
    props_window,
    window_in,
)
from weft.types.context import Context
from weft.types.limits import FROM_SERVER, ModelInfo
from weft.types.reply import Done, Event, Reply, RequestSent, TextDelta
from weft.wire.items import encode
from weft.wire.request import prepare
from weft.wire.vendor import Vendor, WireRequest
from weft.wire.vendors import ASSUMED_WINDOW

_log = logging.getLogger(__name__)

_PASSING = frozenset({408, 409, 429, 500, 502, 503, 504, 529})
_LONGEST_WAIT_SECONDS = 60.0
_STATUSES = frozenset(HTTPStatus)
_CODE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{1,39}")
_MOST_CHARS = 300
_MOST_LISTED = 12
_ASK_SECONDS = 1.0
"""How long a server may take to describe its models. Nothing depends on the answer."""


class _Passing(ProviderError):
    """An error that may not come again when the request is sent again."""

    def __init__(self, sentence: str, *, wait: float | None = None, log_text: str = "") -> None:
        super().__init__(sentence, log_text=log_text or sentence)
        self.wait = wait


class _NotListed(ProviderError):
    """The server does not describe its models, or not now."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence, log_text=sentence)


class _Unreachable(_NotListed):
    """There is no such server, or not now."""


class HttpProvider:
    """A model of a vendor.

    Where nobody named a model, `info_of` describes the one that the server has.
    """

    def __init__(
        self,
        vendor: Vendor,
        *,
        info: ModelInfo,
        url: str,
        key: str = "",
        settings: HttpSettings | None = None,
        info_of: Callable[[str], ModelInfo] | None = None,
    ) -> None:
        self._vendor, self._url, self._key = vendor, url, key
        self._settings = settings or HttpSettings()
        self.info = replace(info, address=self._place())
        self._info_of, self._is_described = info_of, False
        timeout = httpx.Timeout(self._settings.silence_seconds, connect=self._settings.connect_seconds)
        self._client = httpx.AsyncClient(timeout=timeout)

    async def complete(self, context: Context) -> Reply:
        return await collected(self.stream(context))

    async def close(self) -> None:
        await self._client.aclose()

    async def describe(self, find_window: FindWindow | None = None) -> ModelInfo:
        """Return the model with what its server says of it. The server is asked once, for a second at most.

        Raises:
            ProviderError: no model was named, and the server has none or several.
        """
        vendor, is_own = self._vendor, self._url == self._vendor.address
        if self._is_described or not (vendor.tells_windows or not is_own):
            return self.info
        info_of = self._info_of if not is_own or not vendor.key_variable else None
        if info_of is None:
            await self._find_window(find_window)
        if self.info.is_assumed or info_of is not None:
            try:
                async with asyncio.timeout(_ASK_SECONDS):
                    models = await self.list_models()
                    if info_of is not None:
                        self._take(models, info_of)
                        await self._find_window(find_window)
                    if self.info.is_assumed and (window := await self._ask_window(models)):
                        self._set_window(window)
            except (_NotListed, TimeoutError) as error:
                _log.info("%s does not list its models: %s", vendor.name, error)
                if isinstance(error, _Unreachable):
                    return self.info  # it is asked again, since it may be running by then
        self._is_described = True
        return self.info

    async def _find_window(self, find_window: FindWindow | None) -> None:
        """Take the window that is known from an earlier time, if none is set."""
        if self.info.is_assumed and find_window and (window := await find_window(self.info.id)):
            self._set_window(window)

    async def list_models(self) -> list[ListedModel]:
        """Ask the server for its models.

        Raises:
            ProviderError: it cannot be reached, refuses the key, or does not list them.
        """
        try:
            return listed_models(await self._json("GET", self._url + self._vendor.models_path))
        except _Unreachable:
            raise
        except _NotListed as error:
            raise _NotListed(f"{error}{self._missing_end()}") from error

    def _take(self, models: Sequence[ListedModel], info_of: Callable[[str], ModelInfo]) -> None:
        """Take the vendor's usual model, or the only one that the server has."""
        usual, ids = self._vendor.default_model, [model.id for model in models]
        if usual in ids or f"{usual}:latest" in ids:
            return
        chatting = [id_ for id_ in ids if "embed" not in id_.lower()]
        if len(chatting) == 1:
            self.info = replace(info_of(chatting[0]), address=self.info.address)
        elif not chatting:
            pull = f": pull one with `ollama pull {usual}`" if self._vendor.show_path else ": load one there"
            raise ProviderError(f"{self._vendor.name} has no model{pull}.")
        else:
            listing = ", ".join(chatting[:_MOST_LISTED])
            raise ProviderError(f"{self._vendor.name} has several models: name one with -m ({listing}).")

    async def _ask_window(self, models: Sequence[ListedModel]) -> int | None:
        """Ask the server how much the model reads: in its own way, and as LM Studio and llama-server tell."""
        if self._vendor.show_path:
            url = self._url + self._vendor.show_path
            return described_window(await self._json("POST", url, {"model": self.info.id}))
        listed = find_listed(models, self.info.id)
        if listed is not None and listed.window:
            return listed.window
        root = self._url.removesuffix("/v1")
        try:
            listed = find_listed(
                listed_models(await self._json("GET", f"{root}/api/v0/models")), self.info.id
            )
        except _NotListed:
            listed = None
        return listed.window if listed else props_window(await self._json("GET", f"{root}/props"))

    def _set_window(self, window: int) -> None:
        """Take the window that the server names. Ollama reserves memory for all of it, so within reason."""
        note = ""
        if self._vendor.show_path and window > ASSUMED_WINDOW:
            note = (
                f"{self.info.id!r} could read {window:,} tokens; {ASSUMED_WINDOW:,} are used to spare "
                f'memory. Set `window` below `[models."{self.info.id}"]` for more.'
            )
            window = ASSUMED_WINDOW
        self.info = replace(self.info, max_tokens=window, window_from=FROM_SERVER, note=note)

    async def _json(self, method: str, url: str, body: Mapping[str, Any] | None = None) -> Any:
        """Ask the server something beside the conversation.

        Raises:
            ProviderError: it refuses or does not answer; `_NotListed` if it does not know the question.
        """
        try:
            headers = self._vendor.headers_with(self._key)
            response = await self._client.request(method, url, json=body, headers=headers)
            if response.status_code in (401, 403) and self._key:
                raise await self._refused(response)
            if response.status_code >= 400:
                raise _NotListed(f"it answered {response.status_code} at {httpx.URL(url).path}")
            return response.json()
        except httpx.HTTPError as error:
            raise _Unreachable("it cannot be reached: is it running?") from error
        except ValueError as error:
            raise _NotListed("it answered with something other than JSON") from error

    async def stream(self, context: Context) -> AsyncGenerator[Event]:
        """Yield the answer as it comes.

        Raises:
            ProviderError: the vendor refused, could not be reached, or broke off.
        """
        model = context.model or self.info.id
        window = self.info.max_tokens if model == self.info.id else None
        request, payload, body = await offloaded(context.chars, self._encoded, context, model, window)
        yield RequestSent(payload, body)
        has_begun = False
        for attempt in range(self._settings.retries + 1):
            try:
                async with aclosing(self._once(body, model)) as events:
                    async for event in events:
                        has_begun = True
                        if isinstance(event, Done):
                            event = Done(replace(event.reply, notes=request.notes))  # noqa: PLW2901
                        yield event
                return
            except _Passing as error:
                if has_begun or attempt == self._settings.retries:
                    raise ProviderError(str(error), log_text=error.log_text) from error
                wait = error.wait if error.wait is not None else random.uniform(0.5, 1) * 2**attempt  # noqa: S311
                _log.warning(
                    "Trying again in %.1f seconds: %s", wait, error, extra={"provider": self._vendor.name}
                )
                await asyncio.sleep(wait)

    def _encoded(
        self, context: Context, model: str, window: int | None
    ) -> tuple[WireRequest, dict[str, Any], bytes]:
        """Return the request for a context, as data and as bytes."""
        request = prepare(self._vendor, context, model, stream=True, window=window)
        payload = self._vendor.to_wire(request)
        return request, payload, encode(payload)

    async def _once(self, body: bytes, model: str) -> AsyncGenerator[Event]:
        """Send the request once."""
        vendor, assembler = self._vendor, self._vendor.assembler()
        headers = {"content-type": "application/json", **vendor.headers_with(self._key)}
        url = vendor.url(self._url, model)
        try:
            async with self._client.stream("POST", url, content=body, headers=headers) as response:
                if response.status_code >= 400:
                    await response.aread()
                    raise await self._refused(response)
                async for event in _events(response, lines=vendor.streams_lines):
                    text = assembler.feed(event)
                    if assembler.error:
                        what = f"{vendor.name} broke off"
                        reason = self._redact(assembler.error)
                        raise _Passing(f"{what}: {reason}.", log_text=f"{what}.")
                    if text:
                        yield TextDelta(text)
        except httpx.TimeoutException as error:
            raise _Passing(f"{vendor.name} did not answer in time: try again later.") from error
        except httpx.HTTPError as error:
            remedy = "check the network." if vendor.key_variable else "is it running?"
            raise _Passing(f"{vendor.name} cannot be reached at {self._place()}: {remedy}") from error
        if not assembler.done:
            raise _Passing(f"The answer of {vendor.name} broke off before its end: ask again.")
        yield Done(vendor.from_wire(assembler.answer))

    async def _refused(self, response: httpx.Response) -> ProviderError:
        """Explain a status in one sentence with a remedy. A log gets the vendor's code, not its sentence."""
        name, status, reason = self._vendor.name, response.status_code, self._redact(_message(response))
        code = _code(response)
        if status in (401, 403):
            what = "did not accept the key" if self._key else "wants a key"
            sentence = f"{name} {what}: check {self._vendor.key_variable or 'its access'}."
            return ProviderError(sentence, log_text=sentence)
        if status in (400, 413, 422, 500) and is_too_long(reason):
            window = window_in(reason) or window_in(response.text)
            if window:
                self.info = replace(self.info, max_tokens=window, window_from=FROM_SERVER, note="")
            what = f"{name} cannot read a request of this length"
            return RequestTooLong(f"{what}: {reason}.", window=window, log_text=f"{what} ({status}): {code}.")
        if status == 404:
            what, known = f"{name} does not know this model or address", await self._known_models()
            return ProviderError(f"{what}: {reason}{known}.", log_text=f"{what} (404): {code}{known}.")
        if status in _PASSING:
            what, wait = f"{name} is busy or failed ({status})", _retry_after(response)
            return _Passing(f"{what}: {reason}.", wait=wait, log_text=f"{what}: {code}.")
        what = f"{name} refused the request ({status})"
        return ProviderError(f"{what}: {reason}.", log_text=f"{what}: {code}.")

    async def _known_models(self) -> str:
        """Say which models the server has, or that its address may lack the usual end."""
        try:
            async with asyncio.timeout(_ASK_SECONDS):
                models = await self.list_models()
        except (_NotListed, TimeoutError):
            return self._missing_end()
        listing = ", ".join(model.id for model in models[:_MOST_LISTED])
        return f". It has {listing}" if listing else ""

    def _missing_end(self) -> str:
        """Say that the address of a server may lack the usual end, if it does."""
        is_complete = self._vendor.models_path != "/models" or self._url.endswith("/v1")
        return "" if is_complete else f". Its address may have to end with /v1: {self._place()}/v1"

    def _redact(self, text: str) -> str:
        """Shorten a vendor's text, and take the key out in case that the vendor echoes it."""
        flat = " ".join((text.replace(self._key, "***") if self._key else text).split())
        return flat[:_MOST_CHARS].rstrip(".") or "it did not say why"

    def _place(self) -> str:
        """Return the address without user, password and query."""
        url = httpx.URL(self._url)
        return f"{url.scheme}://{url.host}{f':{url.port}' if url.port else ''}{url.path.rstrip('/')}"


async def _events(response: httpx.Response, *, lines: bool) -> AsyncIterator[Mapping[str, Any]]:
    """Yield the JSON objects of a stream: one per line, or server-sent events.

    Raises:
        _Passing: something else came.
    """
    data: list[str] = []
    async for line in _lines(response):
        if lines:
            data = [line]
        elif line.startswith("data:"):
            data.append(line[5:].lstrip(" "))
            continue
        elif line:
            continue  # an event's name, its number, or a comment
        text, data = "\n".join(data), []
        if text.strip() and text != "[DONE]":
            yield _parse(text)


async def _lines(response: httpx.Response) -> AsyncIterator[str]:
    """Yield the lines of a stream, and an empty one at its end.

    httpx's own lines end at U+2028, U+0085 and others too, which JSON may hold inside of a text.
    """
    rest = b""
    async for chunk in response.aiter_bytes():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line.decode("utf-8", "replace").rstrip("\r")
    for line in (rest, b""):
        yield line.decode("utf-8", "replace")


def _parse(text: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, Mapping):
        raise _Passing("The answer was not what the provider promises to send: ask again.")
    return value


def _message(response: httpx.Response) -> str:
    error = _error(response)
    return str(error.get("message") or error) if isinstance(error, Mapping) else str(error)


def _code(response: httpx.Response) -> str:
    """Return the vendor's short name of an error, such as `rate_limit_exceeded`, or that of its status.

    The vendor's sentence may quote the message of a person; a name of one word does not.
    """
    error = _error(response)
    names = [error.get(key) for key in ("code", "status", "type")] if isinstance(error, Mapping) else []
    codes = [name for name in names if isinstance(name, str) and _CODE.fullmatch(name) and name != "error"]
    phrase = HTTPStatus(response.status_code).phrase if response.status_code in _STATUSES else "no reason"
    return codes[0] if codes else phrase


def _error(response: httpx.Response) -> Any:
    """Return what an answer says about an error, parsed as far as it can be."""
    try:
        body = response.json()
    except ValueError:
        return response.text
    return body.get("error", body) if isinstance(body, Mapping) else body


def _retry_after(response: httpx.Response) -> float | None:
    try:
        return min(max(float(response.headers["retry-after"]), 0.0), _LONGEST_WAIT_SECONDS)
    except (KeyError, ValueError):
        return None
