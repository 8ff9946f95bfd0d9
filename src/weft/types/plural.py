"""Numbers of things, in words."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """Write a number with its noun: `1 fact`, `2 facts`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
