"""What the validators of all dialects share."""

from __future__ import annotations

import json
import re
from typing import Any

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


class Check:
    """Collects what does not hold, each thing once."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def __call__(self, holds: bool, sentence: str) -> None:
        if not holds and sentence not in self.found:
            self.found.append(sentence)

    def characters(self, payload: Any) -> list[str]:
        """U1 and U2: whether the payload can be sent at all, as JSON in UTF-8."""
        try:
            text = json.dumps(payload, ensure_ascii=False, allow_nan=False)
            text.encode("utf-8")
        except UnicodeEncodeError:
            return ["U1: a character that UTF-8 cannot hold"]
        except (TypeError, ValueError) as error:
            return [f"U2: not JSON ({error})"]
        return ["U1: a NUL character"] if "\\u0000" in text and _has_nul(payload) else []


def _has_nul(value: Any) -> bool:
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, dict):
        return any(_has_nul(part) for pair in value.items() for part in pair)
    return isinstance(value, list | tuple) and any(map(_has_nul, value))


def is_name(value: Any) -> bool:
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


def has_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())
