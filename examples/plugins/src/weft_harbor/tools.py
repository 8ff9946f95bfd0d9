"""Tools: plain functions. Their signatures and docstrings tell the model how to call them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any


def make(settings: Mapping[str, Any]) -> Sequence[Callable[..., Any]]:
    harbor = settings.get("name", "the harbor")

    def tide(hour: int) -> str:
        """Tell whether the tide is high at an hour of the day."""
        return f"At {hour} o'clock the tide in {harbor} is {'high' if hour % 12 < 6 else 'low'}."

    return [tide]
