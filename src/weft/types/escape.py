"""Text from outside can never forge structure.

Two kinds of marks are ours: tags (`<block:...>`, `<context:...>`) inside a request, and role labels
(`[System]`, `[User]`, `[Assistant]`) in the flat text. Neither is parsed here: whatever could open or
close one is made harmless, and all other text stays as it is.
"""

from __future__ import annotations

import re

TAG_NAMES = ("block", "context")

_NAMES = "|".join(TAG_NAMES)
# Possessive, so that a long run of spaces behind a `<` costs no more than its length.
_TAG = re.compile(rf"<(?=\s*+/?+\s*+(?:{_NAMES})\s*+:)", re.IGNORECASE)
_TAG_OR_ITS_START = re.compile(rf"<(?=\s*+/?+\s*+(?:(?:{_NAMES})\s*+:|[a-z]*+\s*+\Z))", re.IGNORECASE)
_LABEL = re.compile(r"(\A|[\n\r])(\\*\[(?:System|User|Assistant)\])")
_LINE_BREAKS = re.compile(r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+\s*")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]|\r(?!\n)")
_FENCES = re.compile(r"`{3,}")
_UNSENDABLE = re.compile("[\x00\ud800-\udfff]")


def without_tags(text: str) -> str:
    """Escape every tag of ours: `<block:` becomes `&lt;block:`."""
    return _TAG.sub("&lt;", text) if "<" in text else text


def inert(text: str) -> str:
    """Escape tags in a text that is joined to others, so that its end cannot begin a tag either."""
    return _TAG_OR_ITS_START.sub("&lt;", text) if "<" in text else text


def without_labels(text: str) -> str:
    """Escape role labels at the start of a line with one more backslash."""
    return _LABEL.sub(r"\1\\\2", text) if "[" in text else text


def one_line(text: str) -> str:
    """Put a text on one line, so that it cannot start a heading, a bullet or a tag."""
    return inert(_LINE_BREAKS.sub(" ", text).strip())


def fenced(text: str, name: str = "") -> str:
    """Quote a text in a fence that is longer than any fence in it."""
    fence = "`" * max((3, *(len(run) + 1 for run in _FENCES.findall(text))))
    return f"{fence}{one_line(name)}\n{text.removesuffix(chr(10))}\n{fence}"


def sendable(text: str) -> tuple[str, int]:
    """Replace NUL and lone surrogates, which no provider takes. Returns the text and how many there were."""
    return _UNSENDABLE.subn("\ufffd", text)


def printable(text: str) -> str:
    """Remove control characters, so that a text cannot move the cursor or recolor a terminal.

    Line ends stay, those of other systems too.
    """
    return _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", text)
