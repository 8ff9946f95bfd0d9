"""Characters that a reader does not see, and those that look like another. Pure.

A text from outside can hide a mark behind them: a tag with an invisible space in it, or full-width signs.
"""

from __future__ import annotations

import re
from bisect import bisect_right

INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff"
)
"""The inside of a character class of regular expressions."""

LINE_BREAKS = "\n\r\v\f\x1c-\x1e\x85\u2028\u2029"
"""The same, of characters that begin a new line."""

_HIDDEN = re.compile(f"[{INVISIBLE}]")
_LOOK_ALIKES = {
    **{code + 0xFEE0: chr(code) for code in range(0x21, 0x7F)},
    **dict.fromkeys(map(ord, "﹤‹〈⟨❮˂ᐸ"), "<"),
    **dict.fromkeys(map(ord, "﹥›〉⟩❯˃ᐳ"), ">"),
    **dict.fromkeys(map(ord, "❘∣ǀ¦︱│┃￨∥"), "|"),
    **dict.fromkeys(map(ord, "〚⟦"), "["),
    **dict.fromkeys(map(ord, "〛⟧"), "]"),
    **dict.fromkeys(map(ord, "⁄∕⧸"), "/"),
    **dict.fromkeys(map(ord, "▁‿＿ˍ"), "_"),
}


def seen(text: str) -> tuple[str, list[int]]:
    """Return a text as a reader sees it: without what is invisible, look-alikes as plain signs.

    The second value has, for each invisible character, the place in the visible text behind it.
    """
    if text.isascii():
        return text, []
    plain = text.translate(_LOOK_ALIKES)
    hidden = [match.start() - at for at, match in enumerate(_HIDDEN.finditer(plain))]
    return _HIDDEN.sub("", plain) if hidden else plain, hidden


def place_in_text(place: int, hidden: list[int]) -> int:
    """Return where a character of the visible text stands in the text itself."""
    return place + bisect_right(hidden, place)
