"""Responses that end when their client disconnects: plain ones, and streams of server-sent events."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from weft.errors import WeftError
from weft.gateway.waiting import unless

T = TypeVar("T")
_log = logging.getLogger(__name__)
_BROKE_OFF = "The answer broke off: the log of the server says why."


async def while_connected(receive: Receive, work: Coroutine[Any, Any, T]) -> T:
    """Do some work while the client is connected.

    Raises:
        ClientDisconnect: the client disconnected, and the work was cancelled.
    """
    working = await unless(_disconnected(receive), work)
    if working is None or working.cancelled():  # a client that reads no further is as good as gone
        raise ClientDisconnect
    return working.result()


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class EventStream(Response):
    """A stream of events. It begins with the first event, so that an error before it has a status."""

    media_type = "text/event-stream"

    def __init__(self, events: AsyncGenerator[bytes], failure: Callable[[str], bytes]) -> None:
        super().__init__(headers={"cache-control": "no-cache", "x-accel-buffering": "no"})
        del self.headers["content-length"]
        self._events, self._failure = events, failure

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await while_connected(receive, self._send(send))
        except ClientDisconnect:
            _log.info("a client went away before its answer was complete")

    async def _send(self, send: Send) -> None:
        async with aclosing(self._events) as events:
            first = await anext(events, b"")
            head = {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
            await send(head)
            await send(_body(first))
            try:
                async for event in events:
                    await send(_body(event))
            except WeftError as error:
                await send(_body(self._failure(str(error))))
            except Exception:  # noqa: BLE001 - a stream that began can tell of any failure only in itself
                _log.exception("an answer broke off")
                await send(_body(self._failure(_BROKE_OFF)))
            await send(_body(b"", more=False))


def _body(part: bytes, *, more: bool = True) -> Message:
    return {"type": "http.response.body", "body": part, "more_body": more}
