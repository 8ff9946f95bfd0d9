"""Reading a feed: RSS 2.0 or Atom. Nothing in it is trusted.

A document that declares a DTD is refused before an entity is expanded. Markup becomes plain text.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from types import ModuleType
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element, ParseError, TreeBuilder, XMLParser

from weft.errors import ChannelError
from weft.types.markup import MAX_CHARS, lines, plain

if TYPE_CHECKING:
    import httpx

MAX_BYTES = 2_000_000
MAX_ENTRIES = 1_000
"""How many entries of a feed are read, the first ones, which are the newest."""
_SLICE = 65_536
_SILENCE_SECONDS, _WHOLE_SECONDS, _REDIRECTS = 20.0, 60.0, 5
_ATOM = "{http://www.w3.org/2005/Atom}"
_ENCODED = "{http://purl.org/rss/1.0/modules/content/}encoded"


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedEntry:
    """One entry of a feed as plain text, with the feed's own id for it."""

    id: str
    title: str = ""
    link: str = ""
    text: str = ""


class Feed:
    """A feed at an address. After `confirm`, an unchanged feed is not downloaded again."""

    def __init__(self, url: str) -> None:
        self._url, self._httpx = url, _load()
        self._received: Mapping[str, str] = {}
        self._confirmed: Mapping[str, str] = {}

    async def fetch(self) -> list[FeedEntry]:
        """Return the entries, oldest first; none if the feed has not changed since `confirm`.

        Raises:
            ChannelError: the feed cannot be read now.
        """
        try:
            async with asyncio.timeout(_WHOLE_SECONDS):
                data = await self._get()
        except (self._httpx.HTTPError, self._httpx.InvalidURL, TimeoutError, OSError) as error:
            # The error's own text could hold the address, and with it a key.
            raise ChannelError(f"The feed cannot be reached ({type(error).__name__}).") from None
        return [] if data is None else await asyncio.to_thread(entries_in, data)

    def confirm(self) -> None:
        """Note that the entries of the last fetch are stored."""
        self._confirmed = self._received

    async def _get(self) -> bytes | None:
        """Download the feed; None if it has not changed.

        Redirects are followed here, because httpx would read their bodies, however long.
        """
        headers = {"accept-encoding": "identity", "user-agent": "weft", **self._confirmed}
        async with self._httpx.AsyncClient(timeout=_SILENCE_SECONDS) as client:
            request: httpx.Request | None = client.build_request("GET", self._url, headers=headers)
            for _ in range(_REDIRECTS + 1):
                if request is None or request.url.scheme not in ("http", "https"):
                    break
                answer = await client.send(request, stream=True)
                try:
                    if not answer.has_redirect_location:
                        return await self._read(answer)
                    request = answer.next_request
                finally:
                    await answer.aclose()
        raise ChannelError("The feed leads on and on, or to no page: check its address.")

    async def _read(self, answer: httpx.Response) -> bytes | None:
        if answer.status_code == 304:
            return None
        if answer.status_code != 200:
            raise ChannelError(f"The feed cannot be read (status {answer.status_code}).")
        data = await _body(answer)
        self._received = _validators(answer.headers)
        return data


def entries_in(data: bytes) -> list[FeedEntry]:
    """Return the entries of a document, oldest first, each id once.

    Raises:
        ChannelError: it is no feed, or declares a DTD.
    """
    try:
        parser = XMLParser(target=_Tree())  # noqa: S314 - a DTD, and with it every entity, is refused
        for at in range(0, len(data), _SLICE):  # one call with all of it stops every thread
            parser.feed(data[at : at + _SLICE])
        root: Element = parser.close()
        if root.tag == "rss":
            entries = [_rss_entry(item) for item in islice(root.iterfind("channel/item"), MAX_ENTRIES)]
        elif root.tag == f"{_ATOM}feed":
            entries = [_atom_entry(entry) for entry in islice(root.iterfind(f"{_ATOM}entry"), MAX_ENTRIES)]
        else:
            raise ChannelError("The feed is neither RSS 2.0 nor Atom.")
    except ParseError as error:  # its own text could quote the feed
        line, column = error.position
        raise ChannelError(f"The feed is no XML, or breaks off: line {line}, column {column}.") from error
    except (ValueError, LookupError) as error:
        raise ChannelError(f"The feed cannot be understood ({type(error).__name__}).") from error
    return list({entry.id: entry for entry in reversed(entries)}.values())


class _Tree(TreeBuilder):
    """A tree builder that refuses documents with entities of their own."""

    def doctype(self, name: str, public: str | None, system: str | None) -> None:
        raise ChannelError("The feed declares a DTD, and was not read.")


def _rss_entry(item: Element) -> FeedEntry:
    link = _link(item.findtext("link"))
    text = plain(item.findtext(_ENCODED) or item.findtext("description") or "")
    title = plain(item.findtext("title") or "")
    return FeedEntry(id=_id(item.findtext("guid"), link, title, text), title=title, link=link, text=text)


def _atom_entry(entry: Element) -> FeedEntry:
    links = [each for each in entry.iterfind(f"{_ATOM}link") if each.get("rel", "alternate") == "alternate"]
    link = _link(links[0].get("href") if links else "")
    title = _atom_text(entry.find(f"{_ATOM}title"))
    text = _atom_text(entry.find(f"{_ATOM}content")) or _atom_text(entry.find(f"{_ATOM}summary"))
    return FeedEntry(
        id=_id(entry.findtext(f"{_ATOM}id"), link, title, text), title=title, link=link, text=text
    )


def _atom_text(element: Element | None) -> str:
    if element is None:
        return ""
    text = "".join(element.itertext())[:MAX_CHARS]
    is_html = element.get("type", "text").lower() in ("html", "text/html")
    return plain(text) if is_html else lines(text)


def _id(given: str | None, link: str, title: str, text: str) -> str:
    """Return the entry's own id, else its link, else a digest of its text."""
    return (
        (given or "").strip()
        or link
        or hashlib.sha256(f"{title}\n{text}".encode("utf-8", "replace")).hexdigest()
    )


def _link(address: str | None) -> str:
    link = (address or "").strip()
    return link if link.lower().startswith(("http://", "https://")) and link.isprintable() else ""


async def _body(answer: httpx.Response) -> bytes:
    """Read a response up to the limit. A compressed one is refused: it could be far larger."""
    if answer.headers.get("content-encoding", "identity") != "identity":
        raise ChannelError("The feed came compressed though it was asked not to, and was not read.")
    data = bytearray()
    async for chunk in answer.aiter_raw():
        data += chunk
        if len(data) > MAX_BYTES:
            raise ChannelError(f"The feed has more than {MAX_BYTES:,} bytes, and was not read.")
    return bytes(data)


def _validators(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers that make the server skip an unchanged feed."""
    pairs = (("etag", "if-none-match"), ("last-modified", "if-modified-since"))
    return {ask: headers[name] for name, ask in pairs if name in headers and headers[name].isascii()}


def _load() -> ModuleType:
    import httpx  # noqa: PLC0415 - only a watched feed needs it

    # The address of a feed may hold a key, and httpx logs addresses.
    for name in ("httpx", "httpcore"):
        logging.getLogger(name).setLevel(logging.WARNING)
    return httpx
