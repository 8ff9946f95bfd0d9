"""Which facts about a person are worth keeping."""

from __future__ import annotations

import re

from weft.types.lazy_pattern import lazy_pattern

MAX_KEY, MAX_VALUE = 50, 200
RESERVED_KEYS = frozenset({"id", "role", "sender", "channel", "system", "timezone_source", "welcomed"})
_NUMBER = lazy_pattern(r"[-+]?[\d.,\s]*\d[\d.,\s]*%?")
_PRICE = lazy_pattern(r"[$€£¥]\s*[\d.,]+|[\d.,]+\s*(?:[$€£¥]|usd|eur|gbp)", re.IGNORECASE)


def problem_with(key: str, value: str, *, by_model: bool = False) -> str | None:
    """Return why a fact is not stored, in one sentence, or None if it is."""
    key, value = key.strip(), value.strip()
    if not key or not value:
        return "A fact needs a key and a value: give both."
    if len(key) > MAX_KEY or len(value) > MAX_VALUE:
        return f"A fact has at most {MAX_KEY} characters of key and {MAX_VALUE} of value: shorten it."
    if by_model and key.lower() in RESERVED_KEYS:
        return f"The key {key!r} is reserved: a model cannot write it."
    if key.startswith("|") or value.startswith("|") or "---" in key:
        return "This looks like a row of a table: say it as a key and a value."
    if _NUMBER.fullmatch(value) or _NUMBER.fullmatch(key):
        return "A bare number tells nothing about a person: say what it stands for."
    if _PRICE.fullmatch(value):
        return "A price tells nothing about a person: say what it stands for."
    return None
