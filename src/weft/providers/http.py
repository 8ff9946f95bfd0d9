"""Asking a vendor over HTTP: we send exactly the bytes that were rendered, and read the answer as it comes.

A request is tried again only while nothing of the answer was shown, and only for errors that pass by
themselves. A key is in one header, and nowhere else: not in errors, logs or receipts.
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
from weft.providers.base import collected
from weft.providers.vendors import HttpSettings, Vendor
from weft.types.context import Context
from weft.types.limits import ModelInfo
from weft.types.reply import Done, Event, Reply, TextDelta
from weft.wire import from_wire
from weft.wire.clean import compact
from weft.wire.dialects import written
from weft.wire.request import request
from weft.wire.streams import ASSEMBLERS

_log = logging.getLogger(__name__)

_PASSING = frozenset({408, 409, 429, 500, 502, 503, 504, 529})
_LONGEST_WAIT = 60.0
_SHOWN = 300


class _Passing(ProviderError):
    """An error that may be gone when the request is sent again."""

    def __init__(self, sentence: str, wait: float | None = None) -> None:
        super().__init__(sentence)
        self.wait = wait


class HttpProvider:
    """One vendor's model."""

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
        """The answer as it comes.

        Raises:
            ProviderError: the vendor refused, could not be reached, or broke off.
        """
        model = context.model or self.info.id
        asked = request(self._vendor.name, context, model=model, max_output_tokens=None, stream=True)
        body = compact(written(asked)).encode()
        shown = False
        for attempt in range(self._settings.retries + 1):
            try:
                async with aclosing(self._once(body, model)) as events:
                    async for event in events:
                        shown = True
                        if isinstance(event, Done):
                            event = Done(replace(event.reply, notes=asked.notes))  # noqa: PLW2901
                        yield event
                return
            except _Passing as error:
                if shown or attempt == self._settings.retries:
                    raise ProviderError(str(error)) from error
                wait = error.wait if error.wait is not None else random.uniform(0.5, 1) * 2**attempt  # noqa: S311
                _log.warning(
                    "Trying again in %.1f seconds: %s", wait, error, extra={"provider": self._vendor.name}
                )
                await asyncio.sleep(wait)

    async def _once(self, body: bytes, model: str) -> AsyncGenerator[Event]:
        headers = {"content-type": "application/json", **self._vendor.headers(self._key)}
        url = self._url + self._vendor.path(model, True)
        assembler = ASSEMBLERS[self._vendor.name]()
        try:
            async with self._client.stream("POST", url, content=body, headers=headers) as response:
                if response.status_code >= 400:
                    await response.aread()
                    raise self._refused(response)
                async for told in _events(response, lines=self._vendor.lines):
                    text = assembler.feed(told)
                    if assembler.error:
                        raise _Passing(f"{self._vendor.name} broke off: {self._cut(assembler.error)}.")
                    if text:
                        yield TextDelta(text)
        except httpx.TimeoutException as error:
            raise _Passing(f"{self._vendor.name} did not answer in time: try again later.") from error
        except httpx.HTTPError as error:
            remedy = "check the network." if self._vendor.key else "is it running?"
            raise _Passing(f"{self._vendor.name} cannot be reached at {self._place()}: {remedy}") from error
        if not assembler.done:
            raise _Passing(f"The answer of {self._vendor.name} broke off before its end: ask again.")
        yield Done(from_wire(self._vendor.name, assembler.answer()))

    def _refused(self, response: httpx.Response) -> ProviderError:
        """What a status means, in one sentence with a remedy."""
        name, status, told = self._vendor.name, response.status_code, self._cut(_message(response))
        if status in (401, 403):
            return ProviderError(f"{name} did not accept the key: check {self._vendor.key or 'its access'}.")
        if status == 404:
            return ProviderError(f"{name} does not know this model or address: {told}.")
        if status in _PASSING:
            return _Passing(f"{name} is busy or failed ({status}): {told}.", _retry_after(response))
        return ProviderError(f"{name} refused the request ({status}): {told}.")

    def _cut(self, text: str) -> str:
        """A vendor's words, short and without the key, whatever it echoes."""
        flat = " ".join((text.replace(self._key, "***") if self._key else text).split())
        return flat[:_SHOWN].rstrip(".") or "it did not say why"

    def _place(self) -> str:
        """The address without what may be secret in it."""
        url = httpx.URL(self._url)
        return f"{url.scheme}://{url.host}{f':{url.port}' if url.port else ''}"


async def _events(response: httpx.Response, *, lines: bool) -> AsyncIterator[Mapping[str, Any]]:
    """The JSON objects of a stream; a line that is none breaks it."""
    data: list[str] = []
    async for line in response.aiter_lines():
        if lines:
            data = [line] if line.strip() else []
        elif line.startswith("data:"):
            data.append(line[5:].lstrip(" "))
            continue
        elif line:
            continue  # an event's name, its number, or a comment
        if data and data != ["[DONE]"]:
            yield _object("\n".join(data))
        data = []
    if data and data != ["[DONE]"]:
        yield _object("\n".join(data))


def _object(text: str) -> Mapping[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise _Passing("The answer was not what the provider promises to send: ask again.") from error
    if not isinstance(found, Mapping):
        raise _Passing("The answer was not what the provider promises to send: ask again.")
    return found


def _message(response: httpx.Response) -> str:
    try:
        told = response.json()
    except ValueError:
        return response.text
    error = told.get("error", told) if isinstance(told, Mapping) else told
    return str(error.get("message") or error) if isinstance(error, Mapping) else str(error)


def _retry_after(response: httpx.Response) -> float | None:
    try:
        return min(max(float(response.headers["retry-after"]), 0.0), _LONGEST_WAIT)
    except (KeyError, ValueError):
        return None
