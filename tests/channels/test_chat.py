"""A conversation in the terminal."""

import asyncio
import io
import os
import signal
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput
from rich.console import Console

import weft
from talking import ME
from weft.channels.chat import Chat
from weft.channels.live_markdown import GrowingText
from weft.channels.terminal_consent import TerminalConsent
from weft.types.reply import Event
from wired import calling


def tide(at: str) -> str:
    """Tell when high water is."""
    return "at six\nsharp"


class Talker(weft.ScriptedProvider):
    """Looks at the tide and answers with what it was told; `wait` never ends by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []
        self.stopped = False
        self.hangs = asyncio.Event()

    async def stream(self, context: weft.Context) -> AsyncGenerator[Event]:
        text = context.current_message
        if context.to_messages()[-1].role != "tool":
            self.said.append(text)
            call = weft.ToolCall(id="1", name="tide", arguments={"at": "dawn"})
            yield weft.Done(weft.Reply(tool_calls=(call,), stop_reason="tools"))
            return
        if text in ("wait", "hang"):
            yield weft.TextDelta("I begin")
            if text == "wait":
                os.kill(os.getpid(), signal.SIGINT)
            self.hangs.set()
            try:
                await asyncio.Event().wait()
            finally:
                self.stopped = True
        if text == "fail":
            raise weft.ProviderError("The network is down: try again.")
        yield weft.TextDelta(f"**{text}**, you say.")
        yield weft.Done(weft.Reply(text=f"**{text}**, you say."))


async def chat(talker: Talker, given: AsyncIterator[str], out: Console, err: Console) -> int:
    app = await weft.connect(provider=talker, tools=[tide])
    try:
        request = weft.TurnRequest(text="", caller=ME, session="chat", commands=True)
        return await Chat(app, request, out, err).run(given)
    finally:
        await app.close()


async def lines(*given: str) -> AsyncIterator[str]:
    for line in given:
        yield line


def console(*, terminal: bool = True, width: int = 80) -> Console:
    return Console(file=io.StringIO(), force_terminal=terminal, width=width, height=30, color_system=None)


def written(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


async def screen(*given: str, terminal: bool = True, width: int = 80) -> tuple[str, Talker]:
    out, talker = console(terminal=terminal, width=width), Talker()
    await chat(talker, lines(*given), out, console())
    return written(out), talker


async def test_messages_are_answered_and_empty_ones_are_not() -> None:
    shown, talker = await screen("hello\n", "  \n", "again")

    assert talker.said == ["hello", "again"]
    assert "hello, you say." in shown, "Markdown is drawn"


async def test_tool_calls_are_shown_as_they_run() -> None:
    shown, _ = await screen("hello")

    assert '→ tide {"at": "dawn"}' in shown
    assert "✓ tide: at six sharp" in shown


async def test_a_pipe_gets_the_answer_and_nothing_else() -> None:
    shown, _ = await screen("hello", "/facts", terminal=False)

    assert shown == "**hello**, you say.\nI know nothing about you yet.\n"


async def test_ctrl_c_stops_the_answer_and_the_conversation_goes_on() -> None:
    shown, talker = await screen("wait", "again")

    assert talker.stopped
    assert "stopped" in shown
    assert "again, you say." in shown


async def test_an_error_is_one_line_and_the_conversation_goes_on() -> None:
    shown, talker = await screen("fail", "/bad", "again")

    assert "The network is down: try again." in shown
    assert "There is no command '/bad': " in shown
    assert talker.said == ["fail", "again"]


async def test_an_error_is_not_broken_within_a_word() -> None:
    shown, _ = await screen("fail", width=20)

    assert "The network is down:\ntry again." in shown


async def test_errors_go_to_stderr_of_a_pipe_and_are_counted() -> None:
    out, err = console(terminal=False), console(terminal=False, width=400)

    failed = await chat(Talker(), lines("fail", "/bad", "again"), out, err)

    assert (failed, written(out)) == (2, "**again**, you say.\n")
    first, second = written(err).splitlines()
    assert first == "weft: The network is down: try again."
    assert second.startswith("weft: There is no command '/bad': ")


async def test_a_conversation_that_is_cancelled_ends_and_does_not_take_the_next_line() -> None:
    talker = Talker()
    talking = asyncio.create_task(chat(talker, lines("hang", "again"), console(), console()))
    async with asyncio.timeout(10):
        await talker.hangs.wait()
    talking.cancel()

    with pytest.raises(asyncio.CancelledError):
        await talking
    assert (talker.stopped, talker.said) == (True, ["hang"])


async def remind(store: weft.Store, text: str) -> None:
    due = datetime(2026, 11, 17, tzinfo=UTC)
    await store.tasks.add("terminal:owner", text, due, channel="terminal", conversation="chat")


@pytest.mark.parametrize("terminal", [True, False])
async def test_reminders_are_shown_before_the_first_line_and_after_each_answer(
    store: weft.Store, terminal: bool
) -> None:
    out, err = console(terminal=terminal), console(terminal=False)

    async def typed() -> AsyncIterator[str]:
        await remind(store, "tea")
        yield "hello"

    await remind(store, "water")
    await chat(Talker(), typed(), out, err)

    reminders = written(out) if terminal else written(err)
    assert reminders.count("⏰ water") == reminders.count("⏰ tea") == 1
    if terminal:
        assert reminders.index("water") < reminders.index("hello, you say.") < reminders.index("tea")
    else:
        assert written(out) == "**hello**, you say.\n", "a pipe gets them apart from the answers"


async def test_quit_ends_the_conversation() -> None:
    _, talker = await screen("/quit", "never")

    assert talker.said == []


@pytest.mark.parametrize(
    ("typed", "agreed"), [("yes\r", True), ("Y\r", True), ("no\r", False), ("\x04", False)]
)
async def test_a_person_at_the_terminal_is_asked_in_the_middle_of_an_answer(typed: str, agreed: bool) -> None:
    out = Console(file=io.StringIO(), force_terminal=True, width=80)
    consent = TerminalConsent(out)
    with (
        create_pipe_input() as keys,
        create_app_session(input=keys, output=DummyOutput()),
        GrowingText(out) as growing,
    ):
        consent.growing = growing
        growing.add("Let me see. ")
        keys.send_text(typed)
        assert await consent.ask("May I add **tea**?") is agreed
        growing.add("Done.")

    shown = out.file.getvalue()  # type: ignore[attr-defined]
    assert shown.index("Let me see.") < shown.index("May I add") < shown.index("Done.")


async def test_ctrl_c_stops_an_answer_also_after_a_question() -> None:
    out, answers = console(), list[bool]()
    consent = TerminalConsent(out)
    with create_pipe_input() as keys, create_app_session(input=keys, output=DummyOutput()):

        async def careful(caller: weft.Caller) -> str:
            """Ask first, and never end."""
            assert caller.ask is not None
            keys.send_text("yes\r")
            answers.append(await caller.ask("May I?"))
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.Event().wait()
            return ""

        model = weft.ScriptedProvider([calling("careful"), "never"])
        app = await weft.connect(provider=model, tools=[careful])
        caller = replace(ME, ask=consent.ask)
        request = weft.TurnRequest(text="", caller=caller, session="chat", commands=True)
        async with asyncio.timeout(30):
            await Chat(app, request, out, console(), consent).run(lines("go"))
        await app.close()

    assert (answers, len(model.requests)) == ([True], 1)
    assert "stopped" in written(out)


async def test_two_questions_at_the_terminal_come_one_after_the_other() -> None:
    consent = TerminalConsent(Console(file=io.StringIO()))
    with create_pipe_input() as keys, create_app_session(input=keys, output=DummyOutput()):
        first, second = (asyncio.create_task(consent.ask(question)) for question in ("first?", "second?"))
        keys.send_text("yes\r")
        assert await asyncio.wait_for(first, 30)
        keys.send_text("no\r")
        assert not await asyncio.wait_for(second, 30)
