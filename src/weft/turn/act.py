"""Acting: the model's tool calls are run within rules and limits, and their results go back to it.

Whatever happens in a tool becomes a result that the model reads. Only the cancellation of the turn and a
person's Ctrl-C get through.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from time import monotonic

from weft.errors import NotDone, WeftError, did_you_mean
from weft.spans import NOTHING, Span
from weft.store.base import Turns
from weft.tools.base import Tool
from weft.tools.registry import Offered
from weft.tools.rules import RuleWatch
from weft.turn.authorize import ActsFreely, authorize
from weft.turn.trace import calling
from weft.types.message import Message, ToolCall
from weft.types.reply import Event, Reply, ToolFinished, ToolStarted
from weft.types.request import AskConsent, Caller
from weft.types.rules import ToolRule
from weft.types.section import OUTSIDE
from weft.wire import clean

_log = logging.getLogger(__name__)

_GRACE_SECONDS = 5.0
"""How long a cancelled call may take to clean up; then it is left behind."""
_ERROR_CHARS = 4_000
"""How much of an error's text the model reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolLimits:
    """Limits of a turn: rounds of tool calls, seconds of a call, and characters of a result.

    `max_chars` of a result are shown, and `max_stored_chars` are stored, from which more can be read.
    `acts_freely` says which tools need no consent in a turn that has read text of strangers.
    """

    max_rounds: int = 25
    seconds: float = 60.0
    max_chars: int = 20_000
    acts_freely: ActsFreely = ActsFreely()
    max_stored_chars: int = 1_000_000


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The result of a call, and the kind of its error if it failed."""

    text: str
    error: str = ""
    at: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def failed(self) -> bool:
        return bool(self.error)


class _Clock:
    """The time limit of a call. It is paused while a person is asked, who may take longer than a tool."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._end, self._asking = seconds, monotonic() + seconds, 0

    def left(self) -> float:
        return self._seconds if self._asking else self._end - monotonic()

    def stopped_while(self, ask: AskConsent | None) -> AskConsent | None:
        if ask is None:
            return None

        async def asked(question: str) -> bool:
            started, self._asking = monotonic(), self._asking + 1
            try:
                return await ask(question)
            finally:
                self._asking -= 1
                self._end += monotonic() - started

        return asked


class ToolRunner:
    """Runs the calls of one turn. `ending` is the result of the call that ended the turn, if one did."""

    def __init__(
        self,
        offered: Offered,
        *,
        rules: Iterable[ToolRule] = (),
        limits: ToolLimits,
        caller: Caller,
        turns: Turns | None = None,
        span: Span = NOTHING,
    ) -> None:
        self._offered, self._limits, self._caller, self._turns = offered, limits, caller, turns
        self._span = span
        self._watch = RuleWatch(rules)
        self.warnings = (*offered.warnings, *self._watch.unmet([d.name for d in offered.definitions]))
        self._names = {clean.name(each.name): each.name for each in offered.definitions}
        self._calls: Sequence[ToolCall] = ()
        self._outcomes: dict[int, _Outcome] = {}
        self.rounds = 0
        self.ended = False
        self.ending = ""
        self.not_done: list[str] = []

    def hear(self, texts: Iterable[str]) -> None:
        """Add what the person wrote meanwhile to their own words."""
        self._caller = replace(self._caller, words="\n".join((self._caller.words, *texts)))

    @property
    def results(self) -> tuple[Message, ...]:
        """The results of the last round so far, in the order of its calls."""
        outcomes = self._outcomes
        return tuple(
            self._result(call, outcomes[at]) for at, call in enumerate(self._calls) if at in outcomes
        )

    def _result(self, call: ToolCall, outcome: _Outcome) -> Message:
        tool = self._offered.tools.get(call.name)
        return Message(
            role="tool",
            content=outcome.text,
            tool_call_id=call.id,
            tool_name=call.name,
            timestamp=outcome.at,
            origin="tool" if tool is None else tool.origin,
            outside=tuple(filter(None, (_stranger(tool),))),
        )

    @property
    def outside(self) -> tuple[str, ...]:
        """The places of all text of strangers that is in view by now."""
        return self._caller.outside

    @property
    def read_now(self) -> tuple[str, ...]:
        """The places of text of strangers that this exchange has read."""
        return self._caller.read_now

    @property
    def changes(self) -> Sequence[str]:
        """The changes of memory so far, each in a few words."""
        return self._caller.changes

    @property
    def exhausted(self) -> bool:
        return self.rounds >= self._limits.max_rounds

    def understood(self, reply: Reply) -> Reply:
        """Give calls their tools' own names back: providers do not accept every character in a name."""
        calls = tuple(replace(call, name=self._names.get(call.name, call.name)) for call in reply.tool_calls)
        return replace(reply, tool_calls=calls)

    def ours(self, calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
        """Return the calls that are ours to run. Calls of unknown tools are among them: they get an error."""
        return tuple(call for call in calls if not self._is_declared(call))

    def theirs(self, calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
        """Return the calls that the app runs, because its tool is only declared here."""
        return tuple(call for call in calls if self._is_declared(call))

    def _is_declared(self, call: ToolCall) -> bool:
        names = {definition.name for definition in self._offered.definitions}
        return call.name in names and call.name not in self._offered.tools

    async def act(self, calls: Sequence[ToolCall]) -> AsyncGenerator[Event]:
        """Run the calls of one reply concurrently, unless a rule wants one before another."""
        self.rounds += 1
        self._calls, self._outcomes = calls, {}
        running: dict[asyncio.Task[_Outcome], int] = {}
        try:
            for at, call in enumerate(calls):
                if self._watch.waits(call.name):
                    async for event in self._finished(running):
                        yield event
                yield ToolStarted(call)
                refusal = self._watch.refusal(call.name)
                if refusal is not None:
                    _log.info("tool refused", extra={"tool": self._known(call)})
                    self._outcomes[at] = _Outcome(f"error: {refusal}", "refused")
                    yield ToolFinished(call, self._outcomes[at].text, failed=True)
                    continue
                self._watch.called(call.name)
                running[asyncio.create_task(self._run(call))] = at
            async for event in self._finished(running):
                yield event
        finally:
            await _stopped(running)
            self._note_outside()
        done = [at for at in range(len(calls)) if not self._outcomes[at].failed]
        self.ended = self._watch.ends([calls[at].name for at in done])
        self.ending = next((self._outcomes[at].text for at in done if self._watch.ends([calls[at].name])), "")

    def _note_outside(self) -> None:
        """Note where the results of this round come from: the model reads them before its next calls."""
        called = [self._offered.tools.get(self._calls[at].name) for at in self._outcomes]
        sources = [*map(_stranger, called), *self._caller.read_outside]
        read = tuple(filter(None, sources))
        self._caller = replace(
            self._caller,
            outside=tuple(dict.fromkeys((*self._caller.outside, *read))),
            read_now=tuple(dict.fromkeys((*self._caller.read_now, *read))),
        )

    async def _finished(self, running: dict[asyncio.Task[_Outcome], int]) -> AsyncGenerator[Event]:
        """Wait for the running calls, and yield an event as each ends."""
        while running:
            done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                at = running.pop(task)
                call, outcome = self._calls[at], task.result()
                self._outcomes[at] = outcome
                if not outcome.failed:
                    self._watch.succeeded(call.name)
                yield ToolFinished(call, outcome.text, failed=outcome.failed)

    async def _run(self, call: ToolCall) -> _Outcome:
        """Run one call, with a log line and a span."""
        with calling(call, self._known(call), self._span) as called:
            outcome = await self._timed(call)
            called.error, called.result = outcome.error, outcome.text
        return outcome

    def _known(self, call: ToolCall) -> str:
        """Return the tool's name if it is ours. Names that a model made up stay out of logs."""
        return call.name if call.name in self._offered.tools else "unknown"

    async def _timed(self, call: ToolCall) -> _Outcome:
        """Run one call within its time limit. A tool that does not end is left behind."""
        tool = self._offered.tools.get(call.name)
        if tool is None:
            names = [definition.name for definition in self._offered.definitions]
            text = f"error: there is no tool {call.name!r}: {did_you_mean(call.name, names)}"
            return _Outcome(text, "unknown_tool")
        clock = _Clock(self._limits.seconds)
        caller = replace(self._caller, ask=clock.stopped_while(self._caller.ask))
        work = asyncio.create_task(self._contained(tool, call, caller))
        try:
            while not work.done() and (left := clock.left()) > 0:
                await asyncio.wait({work}, timeout=left)
            in_time = work.done()
        finally:
            await _stopped({work})
        if in_time:
            return work.result()
        text = f"error: it took longer than {self._limits.seconds:g} seconds and was ended."
        return _Outcome(text, "timeout")

    async def _contained(self, tool: Tool, call: ToolCall, caller: Caller) -> _Outcome:
        """Run one call. An error of any kind becomes a result for the model."""
        try:
            if tool.load is not None:
                tool = await tool.load()
            caller = await authorize(tool, call, caller, self._limits.acts_freely)
            text = await tool.run(call.arguments, caller)
            return _Outcome(await self._within_limit(call.name, text))
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            failed, kind = "error: the tool failed: something that it waited for was cancelled", "cancelled"
        except NotDone as error:
            self.not_done += [error.wanted] if error.wanted else []
            failed, kind = str(error), "refused"
        except WeftError as error:
            failed, kind = f"error: {_cut(error)}", type(error).__name__
        except SystemExit as error:  # a library that ends its program would end ours
            failed, kind = f"error: the tool failed: SystemExit: {_cut(error)}", "SystemExit"
        except Exception as error:  # noqa: BLE001 - a tool is anybody's code: the turn goes on
            _log.exception("the tool %s failed", call.name, extra={"tool": call.name})
            kind = type(error).__name__
            failed = f"error: the tool failed: {kind}: {_cut(error)}"
        return _Outcome(failed, kind)

    async def _within_limit(self, tool: str, text: str) -> str:
        """Cut a result to the limit. A longer one is stored, and `read_result` shows the rest."""
        limit, most = self._limits.max_chars, self._limits.max_stored_chars
        if len(text) <= limit:
            return text or "(no output)"
        how = "the rest was not stored"
        if self._turns is not None and self._caller.session_id and most:
            result_id = await self._turns.save_result(
                self._caller.session_id, tool, text[:most], outside=_stranger(self._offered.tools.get(tool))
            )
            part = "all of it is" if len(text) <= most else f"the first {most} are"
            how = f"{part} stored as {result_id}"
            if "read_result" in self._offered.tools:
                how += f', and read_result(id="{result_id}", offset={limit}) shows more'
        return f"{text[:limit]}\n[Cut: {limit} of {len(text)} characters are shown; {how}.]"


def _stranger(tool: Tool | None) -> str:
    """Return where the results of a tool come from, if strangers write them."""
    return tool.source if tool is not None and tool.origin in OUTSIDE else ""


def _cut(error: BaseException) -> str:
    """Return the text of an error, cut before anything else is done with it: a tool may put all into it."""
    text = str(error)
    return text if len(text) <= _ERROR_CHARS else f"{text[:_ERROR_CHARS]} [cut: {len(text)} characters]"


async def _stopped(running: Iterable[asyncio.Task[_Outcome]]) -> None:
    """Cancel what still runs, and wait for its clean-up, within a limit."""
    tasks = {task for task in running if not task.done()}
    for task in tasks:
        task.cancel()
    if tasks:
        _, left = await asyncio.wait(tasks, timeout=_GRACE_SECONDS)
        if left:
            _log.warning("%d calls did not end when they were told to: they are left behind", len(left))
