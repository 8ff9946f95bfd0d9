"""Reading a feed: RSS 2.0 or Atom, from anybody, so nothing in it is trusted.

A document that declares a DTD is refused before anything in it is expanded; markup becomes plain text.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from html import unescape
from types import ModuleType
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element, ParseError, TreeBuilder, XMLParser

from weft.errors import ChannelError

if TYPE_CHECKING:
    import httpx

MAX_BYTES = 2_000_000
_MAX_CHARS = 200_000
"""So much of one entry is read; far more than is ever shown."""
_SILENCE_SECONDS, _WHOLE_SECONDS, _REDIRECTS = 20.0, 60.0, 5
_ATOM = "{http://www.w3.org/2005/Atom}"
_ENCODED = "{http://purl.org/rss/1.0/modules/content/}encoded"
_BREAKS = frozenset(
    "address article blockquote br dd div dl dt figure footer h1 h2 h3 h4 h5 h6 header hr li "
    "main ol p pre section table td th tr ul".split()
)
# Each part stops at the next `<` or goes to its end, so that the time it takes grows with the length only:
# 20,000 characters of `<a ` cost the `html.parser` of Python 3.11 five seconds, and cost this nothing.
_MARKUP = re.compile(
    r"""
      <!--.*?(?:-->|\Z)
    | <(?P<hidden>script|style)\b[^<>]*+>.*?(?:</(?P=hidden)\s*+>|\Z)
    | </?(?P<tag>[a-z][a-z0-9]*+)(?:[^<>"']|"[^"<]*+"|'[^'<]*+')*+>
    | </?[a-z!?][^<>]*+>
    """,
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
_REFERENCE = re.compile(r"&(?:#[0-9]{1,7}|#x[0-9a-f]{1,6}|[a-z][a-z0-9]{1,31});?", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One entry of a feed, as plain text. `id` is how the feed knows it."""

    id: str
    title: str = ""
    link: str = ""
    text: str = ""


class Feed:
    """A feed at an address. It is asked whether it changed, once what it had is known to be `kept`."""

    def __init__(self, url: str) -> None:
        self._url, self._httpx = url, _load()
        self._offered: Mapping[str, str] = {}
        self._kept: Mapping[str, str] = {}

    async def fetch(self) -> list[Entry]:
        """The entries, oldest first; none if the feed has not changed since what was kept.

        Raises:
            ChannelError: it cannot be read now, and why.
        """
        try:
            async with asyncio.timeout(_WHOLE_SECONDS):
                data = await self._get()
        except (self._httpx.HTTPError, self._httpx.InvalidURL, TimeoutError, OSError) as error:
            # Its own words could hold the address, and with it a key.
            raise ChannelError(f"The feed cannot be reached ({type(error).__name__}).") from None
        return [] if data is None else await asyncio.to_thread(entries_in, data)

    def keep(self) -> None:
        """What was fetched last is dealt with."""
        self._kept = self._offered

    async def _get(self) -> bytes | None:
        """What is at the address, or where it leads; None if it has not changed.

        Redirects are followed here, because httpx would read what stands in them, however long.
        """
        headers = {"accept-encoding": "identity", "user-agent": "weft", **self._kept}
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
        self._offered = _validators(answer.headers)
        return data


def entries_in(data: bytes) -> list[Entry]:
    """The entries of a document, oldest first, each once.

    Raises:
        ChannelError: it is no feed, or declares a DTD.
    """
    try:
        parser = XMLParser(target=_Tree())  # noqa: S314 - a DTD, and with it every entity, is refused
        parser.feed(data)
        root: Element = parser.close()
        if root.tag == "rss":
            found = [_of_rss(item) for item in root.iterfind("channel/item")]
        elif root.tag == f"{_ATOM}feed":
            found = [_of_atom(entry) for entry in root.iterfind(f"{_ATOM}entry")]
        else:
            raise ChannelError("The feed is neither RSS 2.0 nor Atom.")
    except ParseError as error:  # its words could quote the feed
        line, column = error.position
        raise ChannelError(f"The feed is no XML, or breaks off: line {line}, column {column}.") from error
    except (ValueError, LookupError) as error:
        raise ChannelError(f"The feed cannot be understood ({type(error).__name__}).") from error
    return list({entry.id: entry for entry in reversed(found)}.values())


def plain(markup: str) -> str:
    """The text of a piece of HTML: its lines and lists stay, programs and styles do not."""
    told = _MARKUP.sub(_break, markup[:_MAX_CHARS])
    return _lines(_REFERENCE.sub(lambda match: unescape(match[0]), told))


def _break(markup: re.Match[str]) -> str:
    if (markup["tag"] or "").lower() not in _BREAKS:
        return ""
    return "\n- " if markup[0][:3].lower() == "<li" else "\n"


def _lines(text: str) -> str:
    return "\n".join(line for raw in text.split("\n") if (line := " ".join(raw.split())))


class _Tree(TreeBuilder):
    """Builds no tree from a document that could bring entities of its own."""

    def doctype(self, name: str, public: str | None, system: str | None) -> None:
        raise ChannelError("The feed declares a DTD, and was not read.")


def _of_rss(item: Element) -> Entry:
    link = _link(item.findtext("link"))
    text = plain(item.findtext(_ENCODED) or item.findtext("description") or "")
    title = plain(item.findtext("title") or "")
    return Entry(id=_id(item.findtext("guid"), link, title, text), title=title, link=link, text=text)


def _of_atom(entry: Element) -> Entry:
    links = [each for each in entry.iterfind(f"{_ATOM}link") if each.get("rel", "alternate") == "alternate"]
    link = _link(links[0].get("href") if links else "")
    title = _of_text(entry.find(f"{_ATOM}title"))
    text = _of_text(entry.find(f"{_ATOM}content")) or _of_text(entry.find(f"{_ATOM}summary"))
    return Entry(id=_id(entry.findtext(f"{_ATOM}id"), link, title, text), title=title, link=link, text=text)


def _of_text(element: Element | None) -> str:
    """A text of Atom, which says itself what it is made of."""
    if element is None:
        return ""
    told = "".join(element.itertext())[:_MAX_CHARS]
    if element.get("type", "text").lower() in ("html", "text/html"):
        return plain(told)
    return _lines(told)


def _id(told: str | None, link: str, title: str, text: str) -> str:
    """How an entry is known again: its own id, its link, or what it says."""
    known = (told or "").strip() or link
    return known or hashlib.sha256(f"{title}\n{text}".encode("utf-8", "replace")).hexdigest()


def _link(told: str | None) -> str:
    link = (told or "").strip()
    return link if link.lower().startswith(("http://", "https://")) and link.isprintable() else ""


async def _body(answer: httpx.Response) -> bytes:
    """All of an answer, as it was sent: one that is packed could be far larger than it looks."""
    if answer.headers.get("content-encoding", "identity") != "identity":
        raise ChannelError("The feed came packed though it was asked not to, and was not read.")
    data = bytearray()
    async for chunk in answer.aiter_raw():
        data += chunk
        if len(data) > MAX_BYTES:
            raise ChannelError(f"The feed has more than {MAX_BYTES:,} bytes, and was not read.")
    return bytes(data)


def _validators(headers: Mapping[str, str]) -> dict[str, str]:
    """What to ask with next time, so that a feed that did not change is not sent again."""
    pairs = (("etag", "if-none-match"), ("last-modified", "if-modified-since"))
    return {
        asked: headers[told] for told, asked in pairs if headers.get(told, "").isascii() and told in headers
    }


def _load() -> ModuleType:
    import httpx  # noqa: PLC0415 - only who watches a feed pays for it

    # The address of a feed may hold a key, and httpx logs addresses.
    for name in ("httpx", "httpcore"):
        logging.getLogger(name).setLevel(logging.WARNING)
    return httpx
