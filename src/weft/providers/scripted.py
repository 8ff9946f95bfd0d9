"""The public fake: it answers from a script, and lists the contexts that it was asked with."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Iterable

from weft.errors import EmptyMessage, ProviderError
from weft.providers.base import collected
from weft.types.context import Context
from weft.types.limits import ModelInfo
from weft.types.receipt import Usage
from weft.types.reply import Done, Event, Reply, TextDelta

_WORDS = re.compile(r"\S+\s*|\s+")


class ScriptedProvider:
    """A provider that gives scripted replies one after another. An exception in the script is raised.

    `requests` lists the contexts of all requests; a server that runs for days sets `remember` to False.
    Text is streamed word by word, after `delay_seconds`; `{message}` in a text stands for the message.
    """

    def __init__(
        self,
        script: str | Iterable[str | Reply | BaseException] = (),
        *,
        info: ModelInfo | None = None,
        delay_seconds: float = 0.0,
        remember: bool = True,
    ) -> None:
        self._script = iter((script,) if isinstance(script, str) else tuple(script))
        self.info = info or ModelInfo(id="scripted", provider="scripted")
        self.requests: list[Context] = []
        self._asked, self._remember = 0, remember
        self._delay_seconds = delay_seconds

    async def complete(self, context: Context) -> Reply:
        return await collected(self.stream(context))

    async def stream(self, context: Context) -> AsyncGenerator[Event]:
        if not context.current_message.strip():
            raise EmptyMessage
        self._asked += 1
        if self._remember:
            self.requests.append(context)
        answer = next(self._script, None)
        if answer is None:
            raise ProviderError(f"The script has no reply for request {self._asked}: add one to the script.")
        if self._delay_seconds:
            await asyncio.sleep(self._delay_seconds)
        if isinstance(answer, BaseException):
            raise answer
        reply = _reply(answer, context) if isinstance(answer, str) else answer
        for word in _WORDS.findall(reply.text):
            yield TextDelta(word)
        yield Done(reply)

    async def close(self) -> None:
        return None


def _reply(text: str, context: Context) -> Reply:
    text = text.replace("{message}", context.current_message)
    seen = context.receipt.total_tokens if context.receipt else 0
    return Reply(text=text, model="scripted", usage=Usage(input_tokens=seen, output_tokens=len(text) // 4))
