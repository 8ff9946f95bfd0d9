"""Scripts: which ones a text is written in. How many tokens a model needs for a text depends on that."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

from weft.types.lazy_pattern import lazy_pattern

Script = Literal["plain", "latin", "cyrillic", "arabic", "devanagari", "cjk", "emoji", "other"]
"""`plain` is text in ASCII letters, `latin` a language that adds others to them, such as German."""
SCRIPTS: tuple[Script, ...] = get_args(Script)
WESTERN: frozenset[Script] = frozenset({"plain", "latin"})

_WHOLE, _WINDOW = 1024, 256
_FEW = 0.005
"""A text with fewer letters beyond ASCII than this share is plain: a name or a foreign word stands in it."""
_LETTERS: Mapping[Script, re.Pattern[str]] = {
    "plain": lazy_pattern(r"[0-9A-Za-z]+"),
    "latin": lazy_pattern(r"[ªºÀ-ÖØ-öø-\u024f\u0300-\u036f\u1e00-\u1eff]+"),
    "cyrillic": lazy_pattern(r"[\u0400-\u052f\u1c80-\u1c8f\u2de0-\u2dff\ua640-\ua69f]+"),
    "arabic": lazy_pattern(r"[\u0600-\u06ff\u0750-\u077f\u0870-\u08ff\ufb50-\ufdff\ufe70-\ufefc]+"),
    "devanagari": lazy_pattern(r"[\u0900-\u097f\ua8e0-\ua8ff]+"),
    "cjk": lazy_pattern(
        r"[\u1100-\u11ff\u2e80-\ua4cf\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef"
        r"\U00020000-\U0003ffff]+"
    ),
    "emoji": lazy_pattern(
        r"[\u200d\u2600-\u27bf\u2b00-\u2bff\ufe0f\U0001f000-\U0001faff\U000e0020-\U000e007f]+"
    ),
    "other": lazy_pattern(
        r"[\u0250-\u02ff\u0370-\u03ff\u0530-\u05ff\u0700-\u074f\u0780-\u086f\u0980-\u10ff\u1200-\u1c7f"
        r"\u1c90-\u1dff\u1f00-\u1fff\u2070-\u25ff\u2800-\u2aff\u2c00-\u2ddf\ua4d0-\ua63f\ua6a0-\ua8df"
        r"\ua900-\ua95f\ua980-\uabff\ud800-\uf8ff\U00010000-\U0001efff\U0001fb00-\U0001ffff]+"
    ),
}
"""The letters of each script. Spaces and marks that all share belong to the letters around them."""


@dataclass(frozen=True, slots=True)
class Writing:
    """How a text is written: the share of each script in its UTF-8 bytes, and how many bytes there are."""

    shares: Mapping[Script, float]
    bytes_per_char: float = 1.0

    @property
    def is_plain(self) -> bool:
        return len(self.shares) == 1 and "plain" in self.shares


_PLAIN = Writing({"plain": 1.0})


def writing_of(text: str) -> Writing:
    """Return how a text is written. Of a long text only samples are looked at; of ASCII, nothing."""
    if text.isascii():
        return _PLAIN
    if len(text) <= _WHOLE:
        return _of_sample(text)
    step = (len(text) - _WINDOW) / (_WHOLE // _WINDOW - 1)
    starts = [round(number * step) for number in range(_WHOLE // _WINDOW)]
    return _of_sample("".join(text[start : start + _WINDOW] for start in starts))


def script_of(text: str) -> Script:
    """Return the script that takes most of a text."""
    shares = writing_of(text).shares
    return max(shares, key=lambda script: shares[script])


@lru_cache(maxsize=4096)
def _of_sample(sample: str) -> Writing:
    letters = {script: "".join(pattern.findall(sample)) for script, pattern in _LETTERS.items()}
    beyond = len(letters["latin"])
    is_plain = beyond < _FEW * (beyond + len(letters["plain"]))
    sizes = {script: _size(run) for script, run in letters.items()}
    western: Script = "plain" if is_plain else "latin"
    sizes[western] = sizes.pop("plain") + sizes.pop("latin")
    total = sum(sizes.values())
    shares = {script: size / total for script, size in sizes.items() if size} or _PLAIN.shares
    return Writing(shares, _size(sample) / len(sample))


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
