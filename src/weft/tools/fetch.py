"""A web page as text. What it says was written by strangers, and where it leads is checked at each step.

The address that was checked is the one that is connected to: a name that leads to another place a moment
later changes nothing. Only public addresses are connected to, so that no page makes us read this network.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from ipaddress import IPv6Address, IPv6Network, ip_address
from types import ModuleType
from typing import Any

from weft.errors import ToolError
from weft.tools.base import Tool
from weft.tools.function import tool_from
from weft.types.markup import plain

MAX_BYTES = 2_000_000
MAX_REDIRECTS = 5
_SILENCE_SECONDS, _WHOLE_SECONDS = 10.0, 30.0
_TEXT = ("text/", "application/json", "application/xml", "application/xhtml+xml")
_TRANSLATED = IPv6Network("64:ff9b::/96")

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns the addresses of a host."""


async def resolve(host: str, port: int) -> list[str]:
    """Return the addresses that the system knows for a host."""
    loop = asyncio.get_running_loop()
    rows = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(row[4][0]) for row in rows]


def is_public(address: str) -> bool:
    """Return whether an address is one of the public internet, and not one inside of another."""
    ip = ip_address(address.partition("%")[0])
    if isinstance(ip, IPv6Address) and (ip.ipv4_mapped or ip.sixtofour or ip.teredo or ip in _TRANSLATED):
        return False
    return ip.is_global and not ip.is_multicast and not ip.is_reserved


class PageFetcher:
    """The tool of `fetch`. Tests give it a resolver and a transport of their own."""

    def __init__(self, resolve: Resolve = resolve, transport: Any = None) -> None:
        self._resolve, self._transport, self._httpx = resolve, transport, _load()

    async def fetch_page(self, url: str) -> str:
        """Fetch a public web page over https and return its text.

        Args:
            url: The address, beginning with `https://`.
        """
        try:
            async with asyncio.timeout(_WHOLE_SECONDS):
                return await self._fetch(url)
        except (self._httpx.HTTPError, self._httpx.InvalidURL, TimeoutError, OSError, UnicodeError) as error:
            raise ToolError(f"The page cannot be fetched ({type(error).__name__}): {error}") from error

    async def _fetch(self, address: str) -> str:
        url = self._httpx.URL(address)
        # The environment could name a proxy, which would connect to whatever it likes.
        async with self._httpx.AsyncClient(
            timeout=_SILENCE_SECONDS, trust_env=False, transport=self._transport
        ) as client:
            for _ in range(MAX_REDIRECTS + 1):
                request = client.build_request(
                    "GET",
                    url.copy_with(host=await self._checked(url)),
                    headers={"host": url.netloc.decode("ascii"), "accept-encoding": "identity"},
                    extensions={"sni_hostname": url.raw_host.decode("ascii")},
                )
                answer = await client.send(request, stream=True)
                try:
                    if not answer.has_redirect_location:
                        return f"{url}\n\n{await _text(answer)}"
                    url = url.join(answer.headers["location"])
                finally:
                    await answer.aclose()
        raise ToolError(f"The page leads on more than {MAX_REDIRECTS} times, and was not fetched.")

    async def _checked(self, url: Any) -> str:
        """Return the address to connect to.

        Raises:
            ToolError: the page is not to be fetched.
        """
        if url.scheme != "https" or not url.host or url.userinfo:
            raise ToolError(f"{str(url.copy_with(userinfo=b''))!r} is no plain https address.")
        addresses = await self._resolve(url.host, url.port or 443)
        if not addresses or not all(map(is_public, addresses)):
            raise ToolError(f"{url.host!r} is not on the public internet: such pages are not fetched.")
        return addresses[0]


async def _text(answer: Any) -> str:
    kind = answer.headers.get("content-type", "text/html").lower()
    if answer.status_code != 200:
        raise ToolError(f"The page cannot be fetched (status {answer.status_code}).")
    if not kind.startswith(_TEXT):
        raise ToolError(f"The page is no text ({kind[:60]}), and was not read.")
    if answer.headers.get("content-encoding", "identity") != "identity":
        raise ToolError("The page came compressed though it was asked not to, and was not read.")
    data = bytearray()
    async for chunk in answer.aiter_raw():
        data += chunk
        if len(data) > MAX_BYTES:
            raise ToolError(f"The page has more than {MAX_BYTES:,} bytes, and was not read.")
    try:
        text = bytes(data).decode(answer.charset_encoding or "utf-8", "replace")
    except LookupError:
        text = bytes(data).decode("utf-8", "replace")
    return plain(text) if "html" in kind else text


def fetch_tools() -> list[Tool]:
    return [replace(tool_from(PageFetcher().fetch_page, source="the web", kind="send"), origin="web")]


def _load() -> ModuleType:
    import httpx  # noqa: PLC0415 - only who enabled the tool needs it

    logging.getLogger("httpx").setLevel(logging.WARNING)  # it logs addresses
    return httpx
