"""The tool that looks into the part of a conversation that is not shown any more."""

from __future__ import annotations

from weft.errors import ToolError
from weft.store.base import MessageLog
from weft.tools.base import Tool
from weft.tools.function import tool_from
from weft.types.message import Message
from weft.types.request import Caller
from weft.types.section import OUTSIDE

_MOST, _CHARS, _PAGE = 40, 2_000, 16_000


class HistoryTools:
    """Reads the log of the running conversation, which keeps every message."""

    def __init__(self, log: MessageLog) -> None:
        self._log = log

    async def look_back(self, caller: Caller, first: int = 0, last: int = 0, words: str = "") -> str:
        """Read earlier messages of this conversation that are summarized or no longer shown, word for word.

        Args:
            first: The number of the first message to read.
            last: The number of the last one; at most 40 are read.
            words: In place of numbers: a text that the messages have in them.
        """
        if words.strip():
            messages = await self._log.find_text(caller.session_id, words.strip(), limit=_MOST)
        elif first > 0:
            end = min(max(last, first), first + _MOST - 1)
            messages = list(enumerate(await self._log.between(caller.session_id, first, end), first))
        else:
            raise ToolError("say which messages: the number of the first one, or words that are in them")
        caller.read_outside.extend(
            f"message {number} ({one.origin})" for number, one in messages if one.origin in OUTSIDE
        )
        text = "\n".join(_line(number, message) for number, message in messages)
        return text[:_PAGE] or "(nothing found)"


def history_tools(log: MessageLog) -> list[Tool]:
    return [tool_from(HistoryTools(log).look_back, source="weft", kind="read")]


def _line(number: int, message: Message) -> str:
    when = f" {message.timestamp:%Y-%m-%d %H:%M}" if message.timestamp else ""
    who = message.tool_name or message.role
    calls = "".join(f" [called {call.name}]" for call in message.tool_calls)
    return f"[{number}{when}] {who}: {message.content[:_CHARS]}{calls}"
