"""Words of a query, marked in a text."""

from __future__ import annotations

from rich.text import Text

from weft.recall.explain import query_pattern

_STYLE = "bold yellow"


def highlighted(text: str, query: str) -> Text:
    """Return a text in which the words of a query stand out, also with another ending."""
    marked, pattern = Text(text), query_pattern(query)
    if pattern is not None:
        marked.highlight_regex(pattern, _STYLE)
    return marked
