"""A provider: it answers with the words of the message, in capitals."""

from collections.abc import AsyncGenerator, Mapping
from typing import Any

import weft


class Shouting:
    """Stands in for a model. A model behind HTTP needs no provider: see `lighthouse.py`."""

    def __init__(self, model: str) -> None:
        self.info = weft.ModelInfo(id=model, provider="harbor", max_tokens=32_000)

    async def stream(self, context: weft.Context) -> AsyncGenerator[weft.TextDelta | weft.Done]:
        text = context.current_message.upper()
        yield weft.TextDelta(text)
        yield weft.Done(weft.Reply(text=text, model=self.info.id))

    async def complete(self, context: weft.Context) -> weft.Reply:
        return weft.Reply(text=context.current_message.upper(), model=self.info.id)

    async def close(self) -> None:
        """Nothing is open."""


def make(settings: Mapping[str, Any]) -> Shouting:
    """Make the provider from `[plugins.harbor]`; `model` is there if the user names one."""
    return Shouting(settings.get("model", "shout-1"))
