"""Checks that the validators of all vendors share."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


class Check:
    """A list of violations, each once."""

    def __init__(self) -> None:
        self._violations: list[str] = []

    def __call__(self, holds: bool, violation: str) -> None:
        if not holds and violation not in self._violations:
            self._violations.append(violation)

    def tools(self, tools: Any, names: Sequence[Any], empty: str = "", name: str = "") -> None:
        """Check the declared tools. `empty` and `name` are the ids of the vendor's rules."""
        self(tools is None or bool(names), f"{empty}tools are an empty list")
        self(all(map(is_name, names)), f"{name}a tool's name has letters that are not allowed")
        self(len(names) == len(set(names)), f"{name}two tools of one name")

    def violations_of(self, payload: Any) -> list[str]:
        """Return all violations, with those of U1 and U2: a payload must be JSON in UTF-8 without NUL."""
        try:
            text = json.dumps(payload, ensure_ascii=False, allow_nan=False)
            text.encode("utf-8")
        except UnicodeEncodeError:
            self(False, "U1: a character that UTF-8 cannot hold")
        except (TypeError, ValueError) as error:
            self(False, f"U2: not JSON ({error})")
        else:
            self("\\u0000" not in text or not _has_nul(payload), "U1: a NUL character")
        return self._violations


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
