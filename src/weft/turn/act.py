"""Acting: the calls of a model are run, within rules and limits, and their results go back to it.

Whatever happens in a tool becomes a result that the model can read. Only cancelling the turn gets through.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from weft.errors import WeftError, did_you_mean
from weft.store.base import Turns
from weft.tools.base import Caller
from weft.tools.registry import Offered
from weft.tools.rules import RuleWatch
from weft.types.message import Message, ToolCall
from weft.types.reply import Event, ToolFinished, ToolStarted
from weft.types.rules import ToolRule

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolLimits:
    """How often a turn may call tools, how long one call may take, and how much of its result is shown."""

    max_rounds: int = 25
    seconds: float = 60.0
    max_chars: int = 20_000


@dataclass(frozen=True, slots=True)
class _Outcome:
    text: str
    failed: bool = False


class Actor:
    """Runs the calls of one turn. `results` are those of the last round, in the order of its calls."""

    def __init__(
        self,
        offered: Offered,
        *,
        rules: Iterable[ToolRule] = (),
        limits: ToolLimits,
        caller: Caller,
        kept: Turns | None = None,
    ) -> None:
        self._offered, self._limits, self._caller, self._kept = offered, limits, caller, kept
        self._watch = RuleWatch(rules)
        self.warnings = (*offered.warnings, *self._watch.unmet([d.name for d in offered.definitions]))
        self.rounds = 0
        self.results: tuple[Message, ...] = ()
        self.ended = False

    @property
    def exhausted(self) -> bool:
        return self.rounds >= self._limits.max_rounds

    def runs(self, calls: Sequence[ToolCall]) -> bool:
        """Whether these calls are ours to run; a tool that is only declared runs at the caller's."""
        declared = {definition.name for definition in self._offered.definitions}
        return all(call.name in self._offered.tools or call.name not in declared for call in calls)

    async def act(self, calls: Sequence[ToolCall]) -> AsyncGenerator[Event]:
        """Run the calls of one reply side by side, where no rule wants one before another."""
        self.rounds += 1
        outcomes: dict[int, _Outcome] = {}
        running: dict[asyncio.Task[_Outcome], int] = {}
        try:
            for at, call in enumerate(calls):
                if self._watch.waits(call.name):
                    async for event in self._finished(running, calls, outcomes):
                        yield event
                yield ToolStarted(call)
                refusal = self._watch.refusal(call.name)
                if refusal is not None:
                    outcomes[at] = _Outcome(f"error: {refusal}", failed=True)
                    yield ToolFinished(call, outcomes[at].text, failed=True)
                    continue
                self._watch.called(call.name)
                running[asyncio.create_task(self._run(call))] = at
            async for event in self._finished(running, calls, outcomes):
                yield event
        finally:
            await _stopped(running)
        now = datetime.now(UTC)
        self.results = tuple(_result(call, outcomes[at].text, now) for at, call in enumerate(calls))
        self.ended = self._watch.ends([call.name for at, call in enumerate(calls) if not outcomes[at].failed])

    async def _finished(
        self,
        running: dict[asyncio.Task[_Outcome], int],
        calls: Sequence[ToolCall],
        outcomes: dict[int, _Outcome],
    ) -> AsyncGenerator[Event]:
        """Wait for the running calls, and tell of each as it ends."""
        while running:
            done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                at = running.pop(task)
                outcome = outcomes[at] = task.result()
                if not outcome.failed:
                    self._watch.succeeded(calls[at].name)
                yield ToolFinished(calls[at], outcome.text, failed=outcome.failed)

    async def _run(self, call: ToolCall) -> _Outcome:
        """One call, contained: an error of any kind is told to the model."""
        tool = self._offered.tools.get(call.name)
        if tool is None:
            names = [definition.name for definition in self._offered.definitions]
            return _Outcome(f"error: there is no tool {call.name!r}: {did_you_mean(call.name, names)}", True)
        try:
            async with asyncio.timeout(self._limits.seconds):
                text = await tool.run(call.arguments, self._caller)
            return _Outcome(await self._within_limit(call.name, text))
        except TimeoutError:
            return _Outcome(
                f"error: it took longer than {self._limits.seconds:g} seconds and was ended.", True
            )
        except WeftError as error:
            failed = f"error: {error}"
        except Exception as error:  # noqa: BLE001 - a tool is anybody's code: the turn goes on
            _log.exception("the tool %s failed", call.name, extra={"tool": call.name})
            failed = f"error: the tool failed: {type(error).__name__}: {error}"
        return _Outcome(await self._within_limit(call.name, failed), failed=True)

    async def _within_limit(self, tool: str, text: str) -> str:
        """The result as it is shown; the whole of a longer one is kept and can be read on."""
        shown = self._limits.max_chars
        if len(text) <= shown:
            return text or "(no output)"
        how = "the rest was not kept"
        if self._kept is not None and self._caller.session_id:
            result_id = await self._kept.keep_result(self._caller.session_id, tool, text)
            how = f"all of it is kept as {result_id}"
            if "read_result" in self._offered.tools:
                how += f', and read_result(id="{result_id}", offset={shown}) shows more'
        return f"{text[:shown]}\n[Cut: {shown} of {len(text)} characters are shown; {how}.]"


async def _stopped(running: Iterable[asyncio.Task[_Outcome]]) -> None:
    """End what still runs when the turn is given up."""
    tasks = tuple(running)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _result(call: ToolCall, text: str, at: datetime) -> Message:
    return Message(
        role="tool", content=text, tool_call_id=call.id, tool_name=call.name, timestamp=at, origin="tool"
    )
