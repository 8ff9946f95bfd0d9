"""The listener of a server: how long a client may take for each step, and how many may be connected.

uvicorn reads requests and writes answers; this adds the limits that it does not have. A client that sends its
headers or its body too slowly is cut off, and so is one that does not read its answer.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import logging
import resource
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from weft.channels.http_settings import HttpChannelSettings
from weft.channels.problems import described
from weft.types.codec import dump_json

_log = logging.getLogger(__name__)

_SLICE = 4096
"""How many bytes are parsed at a time: in chunks of one byte each, these take about 15 ms."""
_FILES = 65_536
"""The most open files that are asked for, whatever the system allows."""
_OTHER_FILES = 64
"""The files that everything besides connections may need."""
_LOG_SECONDS = 60.0
_OUT_OF_FILES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


def raise_file_limit() -> int:
    """Raise the number of files that may be open to what the system allows, and return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(hard, _FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        return wanted
    return soft if soft != resource.RLIM_INFINITY else wanted


class Seldom:
    """A line of the log that is written once a minute at most, however often it is reported."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._last = clock, -_LOG_SECONDS

    def warn(self, line: str, *values: object) -> None:
        if self._clock() - self._last >= _LOG_SECONDS:
            self._last = self._clock()
            _log.warning(line, *values)


@contextmanager
def quiet_accepting() -> Iterator[None]:
    """Report that there are no more files for connections in one line a minute, without a traceback."""
    loop, seldom = asyncio.get_running_loop(), Seldom()
    before = loop.get_exception_handler()

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, OSError) and error.errno in _OUT_OF_FILES and "socket" in context:
            seldom.warn(
                "no connection can be accepted (%s): raise the limit of open files, or lower "
                "`http.max_connections`",
                (error.strerror or str(error)).lower(),
            )
        elif before is not None:
            before(loop, context)
        else:
            loop.default_exception_handler(context)

    loop.set_exception_handler(handle)
    try:
        yield
    finally:
        loop.set_exception_handler(before)


class Connections:
    """The open connections of a listener, in all and by address."""

    def __init__(self, settings: HttpChannelSettings, files: int) -> None:
        self._most = min(settings.max_connections, max(files - _OTHER_FILES, _OTHER_FILES // 8))
        self._most_each = settings.max_connections_per_address
        self._by_address: Counter[str] = Counter()
        self._seldom = Seldom()

    def admit(self, address: str) -> bool:
        """Count a new connection. Returns whether there is room for it."""
        if self._by_address.total() >= self._most or self._by_address[address] >= self._most_each:
            self._seldom.warn("too many clients are connected: further ones are refused")
            return False
        self._by_address[address] += 1
        return True

    def release(self, address: str) -> None:
        self._by_address[address] -= 1
        if self._by_address[address] <= 0:
            del self._by_address[address]


def limited_protocol(settings: HttpChannelSettings) -> type[asyncio.Protocol]:
    """Make the protocol of a listener with the limits of the settings."""
    connections = Connections(settings, raise_file_limit())

    class Protocol(LimitedProtocol):
        def __init__(
            self,
            config: Config,
            server_state: ServerState,
            app_state: dict[str, Any],
            _loop: asyncio.AbstractEventLoop | None = None,
        ) -> None:
            super().__init__(config, server_state, app_state, _loop)
            self.limits, self.admission = settings, connections

    return Protocol


class LimitedProtocol(H11Protocol):
    """uvicorn's protocol with a time limit for headers, for a body, for idling, and for taking an answer."""

    limits: HttpChannelSettings
    admission: Connections
    _address = ""
    _is_admitted = False
    _awaited = ""
    _slow_sender: asyncio.TimerHandle | None = None
    _slow_reader: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._parts: deque[bytes] = deque()
        self._address = _network(transport.get_extra_info("peername"))
        self._is_admitted = self.admission.admit(self._address)
        if not self._is_admitted:
            self.transport = transport
            self._refuse(503, "Too many clients are connected: try again in a moment.")
            return
        super().connection_made(transport)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._slow_sender, self._slow_reader):
            if timer is not None:
                timer.cancel()
        self._parts.clear()
        if self._is_admitted:
            self.admission.release(self._address)
            super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read what came, in slices. While a part of it waits, no more is taken from the client."""
        if not self._is_admitted:
            return
        is_waiting = bool(self._parts)
        self._parts += (data[at : at + _SLICE] for at in range(0, len(data), _SLICE))
        if not is_waiting:
            self._read_slice()

    def _read_slice(self) -> None:
        if self.transport.is_closing():
            self._parts.clear()
        if not self._parts:
            return
        super().data_received(self._parts[0])
        self._watch()
        if self._parts:  # it is still open
            self._parts.popleft()
        if self._parts:
            self.transport.pause_reading()
            self.loop.call_soon(self._read_slice)
        elif not self.flow.read_paused:
            self.transport.resume_reading()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()
        if self.transport.is_closing():
            self.pause_writing()  # what is not yet taken must be taken in time

    def pause_writing(self) -> None:
        if self._is_admitted:
            super().pause_writing()
        if self._slow_reader is None:
            self._slow_reader = self.loop.call_later(self.limits.send_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        if self._slow_reader is not None and not self.transport.is_closing():
            self._slow_reader.cancel()
            self._slow_reader = None
        if self._is_admitted:
            super().resume_writing()

    def shutdown(self) -> None:
        """Begin to stop: a request that has not arrived is not waited for."""
        if self._awaited == "body":
            self._late()
        else:
            super().shutdown()

    def _watch(self) -> None:
        """Set the time limit of what the client has to send next."""
        awaited = self._next()
        if awaited == self._awaited:
            return
        self._awaited = awaited
        if self._slow_sender is not None:
            self._slow_sender.cancel()
        seconds: Mapping[str, float] = {
            "headers": self.limits.header_seconds,
            "body": self.limits.body_seconds,
        }
        self._slow_sender = self.loop.call_later(seconds[awaited], self._late) if awaited else None

    def _next(self) -> str:
        """Return what the client has to send: the headers of a request, its body, or nothing."""
        if self.cycle is None or self.cycle.response_complete:
            return "" if self.timeout_keep_alive_task else "headers"
        return "body" if self.cycle.more_body else ""

    def _late(self) -> None:
        if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
            self._refuse(408, "The request did not arrive in time: send it again.")
        else:
            self.transport.abort()

    def _refuse(self, status: int, sentence: str) -> None:
        if self.transport.is_closing():
            return
        body = dump_json(described(status, sentence)).encode()
        head = f"HTTP/1.1 {status} Refused\r\ncontent-type: application/json\r\nconnection: close\r\n"
        self.transport.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        self.transport.close()
        self.pause_writing()


def _network(peer: Any) -> str:
    """Return whom a connection counts for: an address, or of IPv6 the network of a household."""
    host = str(peer[0]) if isinstance(peer, tuple) and peer else ""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    return host if address.version == 4 else str(ipaddress.ip_network((address, 64), strict=False))
