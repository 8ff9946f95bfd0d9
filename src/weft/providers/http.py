"""A vendor over HTTP: exactly the bytes that were rendered are sent, and the answer is read as it comes.

A request is tried again only for errors that pass by themselves, and only before any of the answer was
passed on. A key is in one header and nowhere else: not in errors, logs or receipts.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import httpx

from weft.errors import ProviderError
from weft.providers.access import HttpSettings
from weft.providers.base import collected
from weft.types.context import Context
from weft.types.limits import ModelInfo
from weft.types.reply import Done, Event, Reply, TextDelta
from weft.wire.clean import compact
from weft.wire.request import prepare
from weft.wire.vendor import Vendor

_log = logging.getLogger(__name__)

_PASSING = frozenset({408, 409, 429, 500, 502, 503, 504, 529})
_LONGEST_WAIT_SECONDS = 60.0
_MOST_CHARS = 300


class _Passing(ProviderError):
    """An error that may not come again when the request is sent again."""

    def __init__(self, sentence: str, wait: float | None = None) -> None:
        super().__init__(sentence)
        self.wait = wait


class HttpProvider:
    """A model of a vendor."""

    def __init__(
        self,
        vendor: Vendor,
        *,
        info: ModelInfo,
        url: str,
        key: str = "",
        settings: HttpSettings | None = None,
    ) -> None:
        self._vendor, self._url, self._key = vendor, url, key
        self._settings = settings or HttpSettings()
        self.info = info
        timeout = httpx.Timeout(self._settings.silence_seconds, connect=self._settings.connect_seconds)
        self._client = httpx.AsyncClient(timeout=timeout)

    async def complete(self, context: Context) -> Reply:
        return await collected(self.stream(context))

    async def close(self) -> None:
        await self._client.aclose()

    async def stream(self, context: Context) -> AsyncGenerator[Event]:
        """Yield the answer as it comes.

        Raises:
            ProviderError: the vendor refused, could not be reached, or broke off.
        """
        model = context.model or self.info.id
        request = prepare(self._vendor, context, model, max_output_tokens=None, stream=True)
        body = compact(self._vendor.to_wire(request)).encode()
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
                    raise ProviderError(str(error)) from error
                wait = error.wait if error.wait is not None else random.uniform(0.5, 1) * 2**attempt  # noqa: S311
                _log.warning(
                    "Trying again in %.1f seconds: %s", wait, error, extra={"provider": self._vendor.name}
                )
                await asyncio.sleep(wait)

    async def _once(self, body: bytes, model: str) -> AsyncGenerator[Event]:
        """Send the request once."""
        vendor, assembler = self._vendor, self._vendor.assembler()
        headers = {"content-type": "application/json", **vendor.headers_with(self._key)}
        url = vendor.url(self._url, model)
        try:
            async with self._client.stream("POST", url, content=body, headers=headers) as response:
                if response.status_code >= 400:
                    await response.aread()
                    raise self._refused(response)
                async for event in _events(response, lines=vendor.streams_lines):
                    text = assembler.feed(event)
                    if assembler.error:
                        raise _Passing(f"{vendor.name} broke off: {self._redact(assembler.error)}.")
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

    def _refused(self, response: httpx.Response) -> ProviderError:
        """Explain a status in one sentence with a remedy."""
        name, status, reason = self._vendor.name, response.status_code, self._redact(_message(response))
        if status in (401, 403):
            return ProviderError(
                f"{name} did not accept the key: check {self._vendor.key_variable or 'its access'}."
            )
        if status == 404:
            return ProviderError(f"{name} does not know this model or address: {reason}.")
        if status in _PASSING:
            return _Passing(f"{name} is busy or failed ({status}): {reason}.", _retry_after(response))
        return ProviderError(f"{name} refused the request ({status}): {reason}.")

    def _redact(self, text: str) -> str:
        """Shorten a vendor's text, and take the key out in case that the vendor echoes it."""
        flat = " ".join((text.replace(self._key, "***") if self._key else text).split())
        return flat[:_MOST_CHARS].rstrip(".") or "it did not say why"

    def _place(self) -> str:
        """Return the address without user, password, path and query."""
        url = httpx.URL(self._url)
        return f"{url.scheme}://{url.host}{f':{url.port}' if url.port else ''}"


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
    try:
        body = response.json()
    except ValueError:
        return response.text
    error = body.get("error", body) if isinstance(body, Mapping) else body
    return str(error.get("message") or error) if isinstance(error, Mapping) else str(error)


def _retry_after(response: httpx.Response) -> float | None:
    try:
        return min(max(float(response.headers["retry-after"]), 0.0), _LONGEST_WAIT_SECONDS)
    except (KeyError, ValueError):
        return None
