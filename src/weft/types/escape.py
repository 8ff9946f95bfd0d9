"""Text from outside can never forge structure.

Two kinds of marks are ours: tags (`<block:...>`, `<context:...>`) inside a request, and role labels
(`[System]`, `[User]`, `[Assistant]`) in the flat text. Neither is parsed here: whatever would be read as one
is made harmless, and all other text stays as it is. Recipes without tags need no escaping of tags.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

TAG_NAMES = ("block", "context")

_NAMES = "|".join(TAG_NAMES)
# Possessive, so that a long run of spaces behind a `<` costs no more than its length.
_TAG = re.compile(rf"<(?=\s*+/?+\s*+(?:{_NAMES})\s*+:)", re.IGNORECASE)
_TAG_START = re.compile(rf"<\s*+/?+\s*+(?:{_NAMES})?+\s*+\Z", re.IGNORECASE)
_LABEL = re.compile(r"(\A|[\n\r])(\\*\[(?:System|User|Assistant)\])")
_ESCAPED = r"\1\\\2"
_SLICE = 65_536
_LINE_BREAKS = re.compile(r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+\s*")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]|\r(?!\n)")
_FENCES = re.compile(r"`{3,}")
_UNSENDABLE = re.compile("[\x00\ud800-\udfff]")


def without_tags(text: str) -> str:
    """Escape every tag of ours: `<block:` becomes `&lt;block:`."""
    return replaced(_TAG, "&lt;", text, mark="<")


def replaced(pattern: re.Pattern[str], new: str, text: str, *, mark: str) -> str:
    """Replace each match of a pattern, all of which begin with the mark and have no other one in them.

    A long text is cut before marks: one call of the regular expressions over megabytes stops every thread.
    """
    if mark not in text:
        return text
    if len(text) <= _SLICE:
        return pattern.sub(new, text)
    return "".join(pattern.sub(new, part) for part in _cut_before(mark, text))


def _cut_before(mark: str, text: str) -> Iterator[str]:
    """Yield a text in parts of a limited length, each of which but the first begins with the mark."""
    start = 0
    while len(text) - start > _SLICE:
        end = text.rfind(mark, start + 1, start + _SLICE)
        end = end if end > 0 else text.find(mark, start + _SLICE)
        if end < 0:
            break
        yield text[start:end]
        start = end
    yield text[start:]


def joined(joint: str, texts: Iterable[str]) -> str:
    """Join texts whose tags are escaped or ours; a tag that two neighbors would make together is escaped."""
    parts = list(texts)
    for at in range(len(parts) - 1):
        start = _TAG_START.search(parts[at])
        if start and _TAG.match(start[0] + joint + parts[at + 1]):
            parts[at] = f"{parts[at][: start.start()]}&lt;{start[0][1:]}"
    return joint.join(parts)


def without_labels(text: str) -> str:
    """Escape role labels at the start of a line with one more backslash."""
    if "[" not in text:
        return text
    if len(text) <= _SLICE:
        return _LABEL.sub(_ESCAPED, text)
    parts = (piece for part in _cut_before("\n", text) for piece in _cut_before("\r", part))
    return "".join(map(_with_escaped_labels, parts))


def _with_escaped_labels(text: str) -> str:
    if len(text) <= _SLICE:
        return _LABEL.sub(_ESCAPED, text)
    label = _LABEL.match(text[:_SLICE])  # so long a part is one line, and a label stands at its start
    return label.expand(_ESCAPED) + text[label.end() :] if label else text


def one_line(text: str) -> str:
    """Put a text on one line, so that it cannot start a heading or a bullet."""
    return _LINE_BREAKS.sub(" ", text).strip()


def fenced(text: str, name: str = "") -> str:
    """Quote a text in a fence that is longer than any fence in it."""
    fence = "`" * max((3, *(len(run) + 1 for run in _FENCES.findall(text))))
    return f"{fence}{one_line(name)}\n{text.removesuffix(chr(10))}\n{fence}"


def sendable(text: str) -> tuple[str, int]:
    """Replace NUL and lone surrogates, which no provider takes. Returns the text and how many there were."""
    if len(text) <= _SLICE:
        return _UNSENDABLE.subn("\ufffd", text)
    parts = [_UNSENDABLE.subn("\ufffd", text[at : at + _SLICE]) for at in range(0, len(text), _SLICE)]
    return "".join(part for part, _ in parts), sum(count for _, count in parts)


def printable(text: str) -> str:
    """Remove control characters, so that a text cannot move the cursor or recolor a terminal.

    Line ends stay, those of other systems too.
    """
    return _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", text)
