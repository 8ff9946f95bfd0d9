"""Markup as plain text."""

from __future__ import annotations

import re
from html import unescape

from weft.types.lazy_pattern import lazy_pattern

MAX_CHARS = 200_000
"""The rest of a piece of markup is not read; far less is ever shown."""
_BREAKS = frozenset(
    "address article blockquote br dd div dl dt figure footer h1 h2 h3 h4 h5 h6 header hr li "
    "main ol p pre section table td th title tr ul".split()
)
# Each part stops at the next `<` or runs to its end, so the time is linear: 20,000 characters of `<a ` take
# the `html.parser` of Python 3.11 five seconds.
_MARKUP = lazy_pattern(
    r"""
      <!--.*?(?:-->|\Z)
    | <(?P<hidden>script|style)\b[^<>]*+>.*?(?:</(?P=hidden)\s*+>|\Z)
    | </?(?P<tag>[a-z][a-z0-9]*+)(?:[^<>"']|"[^"<]*+"|'[^'<]*+')*+>
    | </?[a-z!?][^<>]*+>
    """,
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
_REFERENCE = lazy_pattern(r"&(?:#[0-9]{1,7}|#x[0-9a-f]{1,6}|[a-z][a-z0-9]{1,31});?", re.IGNORECASE)


def plain(markup: str) -> str:
    """Return the text of a piece of HTML with its lines and lists, without programs and styles."""
    text = _MARKUP.sub(_break, markup[:MAX_CHARS])
    return lines(_REFERENCE.sub(lambda match: unescape(match[0]), text))


def _break(markup: re.Match[str]) -> str:
    if (markup["tag"] or "").lower() not in _BREAKS:
        return ""
    return "\n- " if markup[0][:3].lower() == "<li" else "\n"


def lines(text: str) -> str:
    """Return the lines of a text that are not empty, with single spaces."""
    return "\n".join(line for raw in text.split("\n") if (line := " ".join(raw.split())))
