"""Folds of sessions in the background: no answer waits for one."""

from __future__ import annotations

import asyncio
import logging

from weft.errors import WeftError
from weft.gateway.engine import Engine
from weft.turn.folding import Folding, fold_session, is_due, may_ask, without_waiting
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

    async def begin(self, turn: Turn, reply: Reply) -> str:
        """Fold the session of an answered turn in the background, if it is due.

        Returns a sentence for the person if a summary is being made.
        """
        session_id = turn.request.caller.session_id
        if turn.turns is None or not session_id or session_id in self._running or reply.receipt is None:
            return ""
        if not is_due(reply.receipt, reply.text, turn.builder.history_rule):
            return ""
        store = await self._engine.store.get()
        folding = await without_waiting(self._engine.folding(turn, reply, reply.receipt, store))
        if folding is None or session_id in self._running:
            return ""
        says_so = folding.is_long and folding.may_summarize and await may_ask(folding)
        task = asyncio.create_task(self._fold(folding))
        self._running[session_id] = task
        task.add_done_callback(lambda _: self._running.pop(session_id, None))
        return FOLDING if says_so else ""

    async def settle(self) -> None:
        """Wait for the folds that run, for a while; the rest is cancelled."""
        if self._running:
            _, late = await asyncio.wait(set(self._running.values()), timeout=_CLOSE_SECONDS)
            for task in late:
                task.cancel()

    async def _fold(self, folding: Folding) -> None:
        try:
            fold = await fold_session(folding)
        except WeftError as error:
            _log.warning("a session was not folded: %s", error)
            return
        if fold is not None:
            _log.info(
                "messages 1-%d were folded: %d tokens became %d",
                fold.last,
                fold.tokens_before,
                fold.tokens_after,
                extra={"session": folding.session_id},
            )
