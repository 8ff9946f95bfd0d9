"""Asking a person for consent in the middle of a turn: their next yes or no is the answer."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from uuid import uuid4

YES = frozenset({"/yes", "yes", "y"})
NO = frozenset({"/no", "no", "n"})


@dataclass(slots=True)
class PendingQuestion:
    """A question that waits for a yes or a no. An answer may name it, so that an old button means nothing.

    Until the question `is_visible` only an answer that names it counts: a bare yes answers something else.
    """

    id: str = field(default_factory=lambda: uuid4().hex[:8])
    is_visible: bool = False
    answer: asyncio.Future[bool] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    @property
    def yes(self) -> str:
        return f"/yes {self.id}"

    @property
    def no(self) -> str:
        return f"/no {self.id}"

    def take(self, text: str) -> bool:
        """Take a message as the answer. Returns whether it is one to this question."""
        word, *more = text.lower().split() or [""]
        if word not in YES | NO or more not in ([], [self.id]) or not (more or self.is_visible):
            return False
        self.end(agreed=word in YES)
        return True

    def end(self, *, agreed: bool) -> None:
        if not self.answer.done():
            self.answer.set_result(agreed)
