"""Recognition of a purged text by its fingerprint and its length: the text itself is not stored. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from weft.types.secret import fingerprint

_ESCAPE = re.compile(r'\\(?:u([0-9a-fA-F]{4})|(["\\/bfnrt]))')
_LETTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_DEPTH = 3
"""How often JSON inside of JSON is unescaped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgeGuard:
    """A text that was purged a short time ago: whoever writes it again read it before."""

    fingerprint: str
    length: int
    mark: str


def purged_texts(value: Any, guards: Sequence[PurgeGuard]) -> Counter[tuple[str, str]]:
    """Count the purged texts in a value, each with its mark."""
    counts: Counter[tuple[str, str]] = Counter()
    if isinstance(value, str):
        for form in _forms(value):
            for guard in guards:
                counts.update(_windows(form, guard))
    elif isinstance(value, dict):
        for pair in value.items():
            for part in pair:
                counts += purged_texts(part, guards)
    elif isinstance(value, list | tuple):
        for item in value:
            counts += purged_texts(item, guards)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        counts += purged_texts(str(value), [one for one in guards if one.length == len(str(value))])
    return counts


def _windows(text: str, guard: PurgeGuard) -> list[tuple[str, str]]:
    size = guard.length
    windows = (text[at : at + size] for at in range(len(text) - size + 1))
    return [(window, guard.mark) for window in windows if fingerprint(window) == guard.fingerprint]


def _forms(value: str) -> list[str]:
    """Return a value as it is, and without the escapes of JSON."""
    forms = [value]
    while "\\" in forms[-1] and len(forms) <= _DEPTH:
        plain = _ESCAPE.sub(_unescaped, forms[-1])
        forms.append(plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    return list(dict.fromkeys(forms))


def _unescaped(match: re.Match[str]) -> str:
    code, letter = match.groups()
    return chr(int(code, 16)) if code else _LETTERS.get(letter, letter)
