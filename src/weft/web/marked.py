"""The words of a query, marked in a text."""

from __future__ import annotations

import re

from markupsafe import Markup, escape

from weft.types.escape import printable


def marked(text: str, pattern: re.Pattern[str] | None) -> Markup:
    """Return a text as HTML in which what a pattern finds stands out. All of it is escaped."""
    text, parts, end = printable(text), list[Markup](), 0
    for hit in pattern.finditer(text) if pattern else ():
        if hit.end() > hit.start():
            parts += [escape(text[end : hit.start()]), Markup("<mark>{}</mark>").format(hit.group())]
            end = hit.end()
    return Markup("").join([*parts, escape(text[end:])])
