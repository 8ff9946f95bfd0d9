"""Folds of sessions in the background: no answer waits for one."""

from __future__ import annotations

import asyncio
import logging

from weft.errors import WeftError
from weft.gateway.engine import Engine
from weft.turn.folding import fold_session, is_due
from weft.turn.run import Turn
from weft.types.reply import Reply

_log = logging.getLogger(__name__)
FOLDING = "The conversation is long: its older part is being summarized in the background."
_CLOSE_SECONDS = 30.0
"""How long a program that ends waits for the folds that run."""


class Folds:
    """The folds that run, at most one for each session."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._running: dict[str, asyncio.Task[None]] = {}

    def is_due(self, turn: Turn, reply: Reply) -> bool:
        """Return whether the session of a turn should be folded now that it was answered."""
        session_id = turn.request.caller.session_id
        if turn.turns is None or not session_id or session_id in self._running:
            return False
        return is_due(reply.receipt, reply.text, turn.builder.history_rule)

    def begin(self, turn: Turn, reply: Reply) -> None:
        """Fold the session of a turn in the background."""
        session_id = turn.request.caller.session_id
        task = asyncio.create_task(self._fold(turn, reply))
        self._running[session_id] = task
        task.add_done_callback(lambda _: self._running.pop(session_id, None))

    async def settle(self) -> None:
        """Wait for the folds that run, for a while; the rest is cancelled."""
        if self._running:
            _, late = await asyncio.wait(set(self._running.values()), timeout=_CLOSE_SECONDS)
            for task in late:
                task.cancel()

    async def _fold(self, turn: Turn, reply: Reply) -> None:
        if reply.receipt is None:
            return
        store = await self._engine.store.get()
        try:
            fold = await fold_session(self._engine.folding(turn, reply.receipt, store))
        except WeftError as error:
            _log.warning("a session was not folded: %s", error)
            return
        if fold is not None:
            _log.info(
                "messages 1-%d were folded: %d tokens became %d",
                fold.last,
                fold.tokens_before,
                fold.tokens_after,
                extra={"session": turn.request.caller.session_id},
            )
