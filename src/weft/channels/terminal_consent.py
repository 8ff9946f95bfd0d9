"""Consent at the terminal: a question to the person in the middle of an answer."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from types import ModuleType
from typing import TYPE_CHECKING

from rich.console import Console

from weft.channels.terminal import show
from weft.gateway.consent import NO, YES

if TYPE_CHECKING:
    from weft.channels.live_markdown import GrowingText

_PROMPT_LINES = 4


class TerminalConsent:
    """Asks the person at the terminal for consent, in the middle of an answer."""

    def __init__(self, out: Console) -> None:
        self._out, self._one = out, asyncio.Lock()
        self.growing: GrowingText | None = None

    async def ask(self, question: str) -> bool:
        """Ask, and return whether they type yes. Ctrl-D counts as no."""
        async with self._one:
            with self.growing.paused() if self.growing else nullcontext():
                show(question, self._out)
                if len(question) // self._out.width + question.count("\n") > self._out.height - _PROMPT_LINES:
                    show(f"(All of it is above.) {question.partition(chr(10))[0]}", self._out)
                try:  # Ctrl-C stops the answer and its question
                    while (answer := await self._answer()) not in YES | NO:
                        show("Please type yes or no.", self._out)
                except (KeyboardInterrupt, EOFError):
                    return False
        return answer in YES

    async def _answer(self) -> str:
        text: str = await editor().make_prompt().prompt_async("yes or no › ", handle_sigint=False)
        return text.strip().lower()


def editor() -> ModuleType:
    """Return the module in which a person types; it is loaded at its first use."""
    from weft.channels import prompt  # noqa: PLC0415 - only a person who types needs an editor

    return prompt
