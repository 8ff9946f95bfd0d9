"""Text from outside can never forge structure.

Two kinds of marks are ours: tags (`<block:...>`, `<context:...>`) inside a request, and role labels
(`[System]`, `[User]`, `[Assistant]`) in the flat text. Neither is parsed here: whatever would be read as one
is made harmless, also with invisible characters in it or behind spaces, and all other text stays as it is.
Recipes without tags need no escaping of tags. `template_tokens.py` has the marks of models.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from weft.types.invisible import INVISIBLE, LINE_BREAKS
from weft.types.lazy_pattern import lazy_pattern

TAG_NAMES = ("block", "context")

# Possessive, so that a long run of spaces behind a `<` costs no more than its length.
_UNSEEN = f"[{INVISIBLE}]*+"
_GAP = rf"[\s{INVISIBLE}]*+"


def _spelled(word: str) -> str:
    """Return a pattern for a word with invisible characters anywhere in it."""
    return _UNSEEN.join(word)


_NAMES = "|".join(map(_spelled, TAG_NAMES))
_BRACKETS = "<\uff1c\ufe64"
_OPEN = f"[{_BRACKETS}]"
_TAG = lazy_pattern(rf"{_OPEN}(?={_GAP}[/\uff0f]?+{_GAP}(?:{_NAMES}){_GAP}[:\uff1a])", re.IGNORECASE)
_TAG_START = lazy_pattern(
    rf"{_OPEN}[\s/\uff0f{INVISIBLE}{''.join(sorted(set(''.join(TAG_NAMES))))}]*+\Z", re.IGNORECASE
)
_LABEL_BRACKETS = "[\uff3b"
_LABELS = "|".join(map(_spelled, ("System", "User", "Assistant")))
_INDENT = rf"(?:(?![{LINE_BREAKS}])[\s{INVISIBLE}])*+"
_LABEL = lazy_pattern(
    rf"((?:\A|[{LINE_BREAKS}]){_INDENT})(\\*[{re.escape(_LABEL_BRACKETS)}]{_UNSEEN}(?:{_LABELS}){_UNSEEN}[\]\uff3d])"
)
_LINE_BREAKS = re.compile(rf"[{LINE_BREAKS}]+\s*")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]|\r(?!\n)")
_HIDDEN = lazy_pattern(f"[{INVISIBLE}\u2028\u2029\ufff0-\ufffb]")
"""Characters that nobody sees, or that change the direction of a text."""
_FENCE_START = re.compile(r"^`{3,}", re.MULTILINE)
_FENCES = re.compile(r"`{3,}")
WINDOW, OVERLAP = 65_536, 4_096
_UNSENDABLE = re.compile("[\x00\ud800-\udfff]")


def has_tags(text: str) -> bool:
    """Check whether a text has something that would be read as a tag of ours."""
    return _has_one_of(_BRACKETS, text) and next(windowed(_TAG, text), None) is not None


def without_tags(text: str) -> str:
    """Escape every tag of ours: `<block:` becomes `&lt;block:`."""
    if not _has_one_of(_BRACKETS, text):
        return text
    return spliced(text, ((match.start(), match.end(), "&lt;") for match in windowed(_TAG, text)))


def _has_one_of(brackets: str, text: str) -> bool:
    """Check whether a text has one of these, of which the first is ASCII. No pattern is as fast."""
    if text.isascii():
        return brackets[0] in text
    return any(bracket in text for bracket in brackets)


def windowed(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Yield the matches of a pattern, which are looked for in one window after the other.

    One call of the regular expressions over megabytes stops every thread until it has ended.
    """
    for start in range(0, len(text) or 1, WINDOW):
        end = start + WINDOW
        matches = pattern.finditer(text, start, end + OVERLAP)
        yield from (match for match in matches if match.start() < end)


def spliced(text: str, changes: Iterable[tuple[int, int, str]]) -> str:
    """Put new text in the place of parts of a text, each given by its start and end, in their order."""
    parts, last = list[str](), 0
    for start, end, new in changes:
        parts += [text[last:start], new]
        last = end
    return "".join((*parts, text[last:])) if parts else text


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
    if not _has_one_of(_LABEL_BRACKETS, text):
        return text
    return spliced(text, ((match.start(2), match.start(2), "\\") for match in windowed(_LABEL, text)))


def one_line(text: str) -> str:
    """Put a text on one line, so that it cannot start a heading or a bullet."""
    return _LINE_BREAKS.sub(" ", text).strip()


def fenced(text: str, name: str = "") -> str:
    """Quote a text in a fence that is longer than any fence in it."""
    fence = "`" * max((3, *(len(run) + 1 for run in _FENCES.findall(text))))
    return f"{fence}{one_line(name)}\n{text.removesuffix(chr(10))}\n{fence}"


def without_fenced(text: str) -> str:
    """Return a text without what is quoted in fences. A fence that is not closed goes on to the end."""
    parts, at = list[str](), 0
    while "```" in text and (fence := _FENCE_START.search(text, at)):
        parts.append(text[at : fence.start()])
        end = text.find(f"\n{fence[0]}", fence.end())
        at = len(text) if end < 0 else text.find("\n", end + 1)
        if at in (-1, len(text)):
            return "".join(parts)
    return "".join((*parts, text[at:])) if parts else text


def sendable(text: str) -> tuple[str, int]:
    """Replace NUL and lone surrogates, which no provider takes. Returns the text and how many there were."""
    if text.isascii() and "\0" not in text:  # nearly every text, in a tenth of the time
        return text, 0
    if len(text) <= WINDOW:
        return _UNSENDABLE.subn("\ufffd", text)
    parts = [_UNSENDABLE.subn("\ufffd", text[at : at + WINDOW]) for at in range(0, len(text), WINDOW)]
    return "".join(part for part, _ in parts), sum(count for _, count in parts)


def printable(text: str) -> str:
    """Remove control characters, so that a text cannot move the cursor or recolor a terminal.

    Line ends stay, those of other systems too.
    """
    return _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", text)


def visible(text: str) -> str:
    """Write out every character that nobody sees, or that changes the direction of a text."""
    return _HIDDEN.sub(lambda match: f"<U+{ord(match[0]):04X}>", text)


def quoted_lines(text: str, mark: str = "") -> str:
    """Quote a whole text for a question to a person: each line indented, hidden characters made visible."""
    return "\n".join(f"    {mark}{printable(line)}" for line in visible(text).splitlines() or [""])
